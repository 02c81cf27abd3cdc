// What an event costs: a decision that follows it asks the nodes that it changed, and no others. So
// there is no queue of pods that an event has to move, as kube-scheduler's queueing hints do.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeNode;
using testing::Cluster;
using testing::Job;

constexpr int64_t kNodes = 40, kKinds = 30;
// Each kind asks a node what fits now, and what fits when those that leave are gone.
constexpr uint64_t kOneNode = 2 * kKinds;

std::string NodeName(int64_t number) { return absl::StrCat("n", number); }

model::Pod Runs(int64_t number) {
  return Job(absl::StrCat("runs", number), "team", 7).Preemptible(false).On(NodeName(number));
}

// Every node has one free GPU, and each of the kinds wants more.
class WakeTest : public ::testing::Test {
 protected:
  WakeTest() {
    cluster_.Queue("team", model::kUnlimited);
    for (int64_t n = 0; n < kNodes; ++n) {
      cluster_.Node(NodeName(n), 8);
      cluster_.Pod(Runs(n));
    }
    for (int64_t k = 0; k < kKinds; ++k) {
      cluster_.Pod(Job(absl::StrCat("waits", k), "team", 2, k).Preemptible(false).Cpu(1000 + k));
    }
    EXPECT_GE(Decide(), static_cast<uint64_t>(kNodes * kKinds)) << "each kind asks each node";
  }
  // Filters that were asked.
  uint64_t Decide() {
    const CycleResult& result = cluster_.Run(at_++);
    EXPECT_TRUE(result.bindings.empty());
    return result.work;
  }

  Cluster cluster_;
  int64_t at_ = 100;
};

TEST_F(WakeTest, AnEventThatCuresNothingAsksNoNode) {
  EXPECT_EQ(Decide(), 0u) << "nothing happened";
  const std::vector<std::pair<const char*, std::function<void()>>> events = {
      {"a label of a pod that runs",
       [&] {
         model::Pod pod = Runs(3);
         pod.meta.labels.Set("colour", "red");
         cluster_.Pod(pod);
       }},
      {"the same node again", [&] { cluster_.Node(NodeName(5), 8); }},
      {"a queue", [&] { cluster_.Queue("other", 1); }},
      {"a group without pods",
       [&] { cluster_.Group(model::testing::MakeGroup("ns", "g", "team", 2)); }},
      {"a pod of another scheduler that waits",
       [&] { cluster_.Pod(Job("foreign", "team", 1).Scheduler("default-scheduler")); }}};
  for (const auto& [name, happen] : events) {
    happen();
    EXPECT_EQ(Decide(), 0u) << name;
  }
}

TEST_F(WakeTest, AnEventAboutANodeAsksThatNode) {
  model::Node labelled = MakeNode(NodeName(7), 8);
  labelled.meta.labels.Set("colour", "red");
  cluster_.state().UpsertNode(labelled);
  EXPECT_LE(Decide(), kOneNode) << "a label";
  cluster_.Pod(Job("runs-too", "team", 1).Preemptible(false).On(NodeName(9)));
  EXPECT_LE(Decide(), kOneNode) << "a pod that comes";
}

// Of the kinds that could have it, the first does.
TEST_F(WakeTest, AnEventThatCuresOneBindsIt) {
  cluster_.state().RemovePod("ns", "runs11", "");
  const CycleResult& result = cluster_.Run(at_++);
  EXPECT_EQ(result.bindings.size(), 4u) << "8 GPUs for pods of 2";
  EXPECT_LE(result.work, 5 * kOneNode) << "its node, after each binding too";
}

}  // namespace
}  // namespace fairlead::engine
