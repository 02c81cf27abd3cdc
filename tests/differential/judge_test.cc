#include "tests/differential/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/differential/random_world.h"

namespace fairlead::differential {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Three nodes, of which the pod prefers the first; the last one has a taint that keeps it away.
Json SmallWorld() {
  return Json::parse(R"json({
    "plugins": ["TaintToleration", "NodeAffinity", "NodeResourcesFit"],
    "pluginConfig": {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
    "nodes": [
      {"metadata": {"name": "near", "labels": {"zone": "a"}},
       "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}}},
      {"metadata": {"name": "far", "labels": {"zone": "b"}},
       "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}},
      {"metadata": {"name": "shut"},
       "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
       "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}}],
    "ask": [
      {"metadata": {"name": "p", "namespace": "n", "uid": "p"},
       "spec": {
         "schedulerName": "fairlead",
         "containers": [
           {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
         "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
           {"weight": 7, "preference": {"matchExpressions": [
             {"key": "zone", "operator": "In", "values": ["a"]}]}}]}}}}]})json");
}

// As kube-scheduler's source computes them.
Json SmallAnswer() {
  return Json::parse(R"json({
    "pods": [{
      "near": {}, "far": {},
      "shut": {"plugin": "TaintToleration", "code": "UnschedulableAndUnresolvable",
               "reasons": ["node(s) had untolerated taint(s)"]
}
}],
    "scores": [{
      "TaintToleration": {"near": 100, "far": 100},
      "NodeAffinity": {"near": 100, "far": 0},
      "NodeResourcesFit": {"near": 25, "far": 12}}]
})json");
}

Comparison CompareSmall(const Json& theirs) {
  const absl::StatusOr<Comparison> result = Compare(SmallWorld(), theirs);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Comparison();
}

TEST(Compare, CountsWhatIsTheSame) {
  const Comparison result = CompareSmall(SmallAnswer());
  EXPECT_THAT(result.differences, IsEmpty());
  EXPECT_EQ(result.pairs, 3);
  EXPECT_EQ(result.scores, 6);
}

TEST(Compare, FindsAScoreThatIsOneOff) {
  Json theirs = SmallAnswer();
  theirs["scores"][0]["NodeResourcesFit"]["far"] = 13;
  EXPECT_THAT(CompareSmall(theirs).differences,
              ElementsAre(AllOf(HasSubstr("n/p: NodeResourcesFit on far"),
                                HasSubstr("fairlead 12, kube-scheduler 13"))));
}

TEST(Compare, FindsAScoreThatFairleadLacks) {
  Json theirs = SmallAnswer();
  theirs["scores"][0]["ImageLocality"] = {{"near", 0}, {"far", 0}};
  EXPECT_THAT(CompareSmall(theirs).differences, SizeIs(2));
  theirs = SmallAnswer();
  theirs["scores"][0]["NodeAffinity"]["shut"] = 0;
  EXPECT_THAT(CompareSmall(theirs).differences, SizeIs(1));
}

TEST(Compare, APluginThatIsSkippedScoresAllNodesAlike) {
  Json theirs = SmallAnswer();
  theirs["scores"][0].erase("TaintToleration");
  EXPECT_THAT(CompareSmall(theirs).differences, IsEmpty());
  theirs["scores"][0].erase("NodeAffinity");
  EXPECT_THAT(CompareSmall(theirs).differences, ElementsAre(HasSubstr("NodeAffinity on near")));
}

TEST(Compare, FindsScoresThatAreMissing) {
  Json theirs = SmallAnswer();
  theirs["scores"][0] = nullptr;
  EXPECT_THAT(CompareSmall(theirs).differences, ElementsAre(HasSubstr("scores none of 2 nodes")));
  theirs.erase("scores");
  EXPECT_THAT(CompareSmall(theirs).differences, SizeIs(1));
}

TEST(Compare, FindsAnotherRefusalAndNoAnswer) {
  Json theirs = SmallAnswer();
  theirs["pods"][0]["shut"]["code"] = "Unschedulable";
  EXPECT_THAT(CompareSmall(theirs).differences, ElementsAre(HasSubstr("n/p on shut")));
  EXPECT_THAT(CompareSmall(Json()).differences, SizeIs(3));
}

// Each score of a random world is looked at: no other one of the answer may be.
TEST(Compare, FindsEachScoreOfARandomWorld) {
  const Json world = RandomWorld(5).Make(4, 6);
  const absl::StatusOr<Json> answer = Judge(world);
  ASSERT_TRUE(answer.ok()) << answer.status();
  int64_t altered = 0;
  for (size_t pod = 0; pod < (*answer)["scores"].size(); ++pod) {
    for (const auto& [plugin, scores] : (*answer)["scores"][pod].items()) {
      for (const auto& [node, score] : scores.items()) {
        Json theirs = *answer;
        theirs["scores"][pod][plugin][node] = score.get<int64_t>() + 1;
        const absl::StatusOr<Comparison> result = Compare(world, theirs);
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_THAT(result->differences, SizeIs(1)) << plugin << " on " << node;
        ++altered;
      }
    }
  }
  EXPECT_GT(altered, 0);
}

}  // namespace
}  // namespace fairlead::differential
