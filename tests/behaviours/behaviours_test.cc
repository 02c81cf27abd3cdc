// Every YAML file beside this file is a test: what a user relies on, in virtual time. That the
// runner can fail is proven by the files in testdata/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/scenario.h"
#include "tests/behaviours/virtual_run.h"

namespace fairlead::behaviours {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kFolder[] = "tests/behaviours";  // tests run at the root of the repository
constexpr char kTestData[] = "tests/behaviours/testdata";

// The failures, or the error.
std::vector<std::string> Play(const absl::StatusOr<Behaviour>& behaviour,
                              HeardFirst first = HeardFirst::kAnswer) {
  if (!behaviour.ok()) return {std::string(behaviour.status().message())};
  absl::StatusOr<std::vector<std::string>> failures = PlayInVirtualTime(*behaviour, first);
  if (!failures.ok()) return {std::string(failures.status().message())};
  return *std::move(failures);
}

std::vector<std::string> Play(const std::string& file) { return Play(ReadBehaviour(file)); }

class BehavioursTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BehavioursTest, InVirtualTime) {
  EXPECT_THAT(Play(ReadBehaviour(GetParam()), HeardFirst::kAnswer), IsEmpty());
}

TEST_P(BehavioursTest, InVirtualTimeWithTheWatchAheadOfAnswers) {
  EXPECT_THAT(Play(ReadBehaviour(GetParam()), HeardFirst::kWatch), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, BehavioursTest, ::testing::ValuesIn(BehaviourFiles(kFolder)),
                         [](const auto& param_info) { return TestNameOf(param_info.param); });

TEST(BehaviourRunnerTest, ReportsAWrongExpectationWithItsLineAndTheVerdict) {
  const std::string file = std::string(kTestData) + "/wrong-node.yaml";
  EXPECT_THAT(Play(file),
              ElementsAre(AllOf(StartsWith(file + ":7: pod default/bound: "),
                                HasSubstr("expected node b; it is on node a")),
                          AllOf(StartsWith(file + ":8: pod default/waiting: "),
                                HasSubstr("expected node a; it waits: InsufficientCapacity: "),
                                HasSubstr("node(s) didn't match Pod's node affinity/selector")),
                          AllOf(StartsWith(file + ":9: pod default/late: "),
                                HasSubstr("there is no such pod"))));
}

TEST(BehaviourRunnerTest, ReportsAWaitForAnotherReason) {
  const std::string file = std::string(kTestData) + "/wrong-wait.yaml";
  EXPECT_THAT(Play(file),
              ElementsAre(AllOf(StartsWith(file + ":7: pod default/gated: "),
                                HasSubstr("expected waits: InsufficientCapacity; it waits: Gated")),
                          AllOf(StartsWith(file + ":8: pod default/large: "),
                                HasSubstr("reason with \"Insufficient memory\""),
                                HasSubstr("[Insufficient cpu]")),
                          AllOf(StartsWith(file + ":9: pod default/large-too: "),
                                HasSubstr("message with \"no such words\""))));
}

TEST(BehaviourRunnerTest, ReportsAnEvictionThatIsNotExpectedAndASpread) {
  const std::string file = std::string(kTestData) + "/wrong-victim.yaml";
  EXPECT_THAT(
      Play(file),
      ElementsAre(AllOf(StartsWith(file + ":9: spread by zone: expected [1]; it is []"),
                        HasSubstr("pod default/low: it was evicted")),
                  StartsWith(file + ":10: evicted: expected [default/high]; it is [default/low]")));
}

TEST(BehaviourRunnerTest, TheExampleOfTheReadmeAndItsFailure) {
  const std::string readme = *sim::ReadFile(std::string(kFolder) + "/README.md");
  const std::string begin = "```yaml\n";
  const size_t at = readme.find(begin) + begin.size();
  const std::string example = readme.substr(at, readme.find("```", at) - at);
  const std::string file = std::string(kFolder) + "/ssd.yaml";
  EXPECT_THAT(Play(ParseBehaviour(example, file)), IsEmpty());

  std::string wrong = example;
  const size_t waits = wrong.find("{waits:");
  wrong.replace(waits, wrong.find("}}", waits) + 2 - waits, "{node: a}");
  const std::vector<std::string> failures = Play(ParseBehaviour(wrong, file));
  ASSERT_THAT(failures, SizeIs(1));
  const size_t shown = readme.find(file + ":6: ");
  ASSERT_NE(shown, std::string::npos);
  EXPECT_THAT(failures[0], StartsWith(readme.substr(shown, readme.find(" ...\n", shown) - shown)));
}

TEST(BehaviourRunnerTest, RefusesAStepThatCannotBeDone) {
  const std::string file = std::string(kTestData) + "/applied-twice.yaml";
  EXPECT_THAT(Play(file),
              ElementsAre(AllOf(StartsWith(file + ":6: Node/a: "), HasSubstr("already exists"))));
}

TEST(BehaviourRunnerTest, RefusesAWrongConfigurationWithItsLine) {
  const std::string file = std::string(kTestData) + "/wrong-config.yaml";
  EXPECT_THAT(Play(file), ElementsAre(AllOf(StartsWith(file + ":6: config: "),
                                            HasSubstr("hook.clusterGPULimits"))));
}

}  // namespace
}  // namespace fairlead::behaviours
