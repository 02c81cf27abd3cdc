// The files of tests/behaviours on a real API server. Fairlead meets the expectations of all of
// them, the real kube-scheduler those of all that it can know: each accepts the other's end states.
#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "tests/behaviours/behaviour.h"
#include "tests/behaviours/expectations.h"
#include "tests/integration/fixture.h"
#include "tests/integration/live_behaviour.h"

namespace fairlead::integration {
namespace {

using behaviours::Behaviour;
using behaviours::ReadBehaviour;
using behaviours::Scheduler;

// Tests run at the root of the repository.
std::vector<std::string> Files() { return behaviours::BehaviourFiles("tests/behaviours"); }

// A file that cannot be read is left in, for the test to say why.
std::vector<std::string> FilesForKubeScheduler() {
  std::vector<std::string> files = Files();
  files.erase(std::remove_if(files.begin(), files.end(),
                             [](const std::string& file) {
                               const absl::StatusOr<Behaviour> read = ReadBehaviour(file);
                               return read.ok() && !read->for_kube_scheduler;
                             }),
              files.end());
  return files;
}

using BehavioursTest = IntegrationTest;

class BehaviourFileTest : public IntegrationTest,
                          public ::testing::WithParamInterface<std::string> {
 protected:
  void Play(Scheduler scheduler) {
    absl::StatusOr<Behaviour> behaviour = ReadBehaviour(GetParam());
    ASSERT_TRUE(behaviour.ok()) << behaviour.status();
    LiveBehaviour live(api(), *Plane::Get(), *std::move(behaviour), scheduler);
    EXPECT_TRUE(live.Play());
    if (HasFailure()) std::cerr << "---- log of the scheduler\n" << live.Log();
  }
};

using BehavioursOfFairlead = BehaviourFileTest;
using BehavioursOfKubeScheduler = BehaviourFileTest;

TEST_P(BehavioursOfFairlead, OnAnApiServer) { Play(Scheduler::kFairlead); }

TEST_P(BehavioursOfKubeScheduler, OnAnApiServer) {
  if (!Plane::Get()->HasKubeScheduler()) GTEST_SKIP() << "this control plane has no kube-scheduler";
  Play(Scheduler::kKubeScheduler);
}

// Only how long it looks on is short: every expectation of the file's first step is wrong.
TEST_F(BehavioursTest, AWrongExpectationFailsWithItsLine) {
  const std::string file = "tests/behaviours/testdata/wrong-node.yaml";
  LiveBehaviour live(api(), *Plane::Get(), *ReadBehaviour(file), Scheduler::kFairlead);
  const ::testing::AssertionResult result = live.Play(absl::Seconds(2));
  EXPECT_FALSE(result);
  EXPECT_TRUE(absl::StrContains(result.message(), file + ":7: pod default/bound: expected node b"))
      << result.message();
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& file) {
  return behaviours::TestNameOf(file.param);
}
INSTANTIATE_TEST_SUITE_P(All, BehavioursOfFairlead, ::testing::ValuesIn(Files()), NameOf);
INSTANTIATE_TEST_SUITE_P(All, BehavioursOfKubeScheduler,
                         ::testing::ValuesIn(FilesForKubeScheduler()), NameOf);

}  // namespace
}  // namespace fairlead::integration
