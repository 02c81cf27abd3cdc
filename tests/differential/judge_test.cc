#include "tests/differential/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/differential/judge_devices.h"
#include "tests/differential/random_devices.h"
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

// Pod `p` needs a core of either node. The pods of node `near` have the priorities 1 and 0; the one
// of node `far` is protected by a budget.
Json SmallPreemption() {
  Json world = SmallWorld();
  world["preempt"] = true;
  world["plugins"] = {"NodeResourcesFit"};
  world["nodes"].erase(2);
  const auto running = [](const char* name, const char* node, const char* cpu, int priority) {
    Json pod = Json::parse(R"json({
      "metadata": {"namespace": "n", "labels": {}},
      "spec": {"schedulerName": "fairlead", "containers": [{"name": "c"}]},
      "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                 "conditions": [{"type": "Ready", "status": "True"}]}})json");
    pod["metadata"]["name"] = pod["metadata"]["uid"] = pod["metadata"]["labels"]["app"] = name;
    pod["spec"]["nodeName"] = node;
    pod["spec"]["priority"] = priority;
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu;
    return pod;
  };
  world["pods"] = {running("low", "near", "2", 1), running("lower", "near", "2", 0),
                   running("web", "far", "8", 0)};
  world["podDisruptionBudgets"] = Json::parse(R"json([
    {"metadata": {"name": "web", "namespace": "n", "uid": "web"},
     "spec": {"selector": {"matchLabels": {"app": "web"}}},
     "status": {"disruptionsAllowed": 0}}])json");
  world["ask"][0]["spec"]["priority"] = 10;
  return world;
}

Json SmallVictims() {
  return Json::parse(R"json({
    "nodes": {"near": {"pods": ["n/lower"], "violations": 0},
              "far": {"pods": ["n/web"], "violations": 1}},
    "chosen": "near"})json");
}

std::vector<std::string> ComparePreempted(const Json& victims) {
  absl::StatusOr<Json> theirs = Judge(SmallPreemption());
  EXPECT_TRUE(theirs.ok()) << theirs.status();
  if (!theirs.ok()) return {};
  (*theirs)["preemptions"] = Json::array({victims});
  const absl::StatusOr<Comparison> result = Compare(SmallPreemption(), *theirs);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->differences : std::vector<std::string>();
}

TEST(ComparePreemption, TheSameVictimsAreNoDifference) {
  EXPECT_THAT(ComparePreempted(SmallVictims()), IsEmpty());
}

TEST(ComparePreemption, FindsOtherVictimsAndAnotherNode) {
  Json theirs = SmallVictims();
  theirs["nodes"]["near"]["pods"] = {"n/low"};
  EXPECT_THAT(ComparePreempted(theirs), ElementsAre(HasSubstr("victims on near")));
  theirs = SmallVictims();
  theirs["nodes"]["far"]["violations"] = 0;
  EXPECT_THAT(ComparePreempted(theirs), ElementsAre(HasSubstr("victims on far")));
  theirs = SmallVictims();
  theirs["nodes"].erase("far");
  EXPECT_THAT(ComparePreempted(theirs), ElementsAre(HasSubstr("victims on far")));
  for (const char* chosen : {"far", ""}) {
    theirs = SmallVictims();
    theirs["chosen"] = chosen;
    EXPECT_THAT(ComparePreempted(theirs), ElementsAre(HasSubstr("the node to evict on")));
  }
  EXPECT_THAT(ComparePreempted(Json()), ElementsAre(HasSubstr("nothing about preemption")));
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

// Each answer about devices is looked at: no other one may be given, and none left out.
TEST(CompareDevices, FindsEachWrongAnswer) {
  const Json world = RandomDevices(7).Make();
  const auto differences = [&](const Json& theirs) {
    const absl::StatusOr<DeviceComparison> result = CompareDevices(world, theirs);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->differences : std::vector<std::string>();
  };
  // Ours, by what differs from "nowhere".
  Json right = Json::array();
  for (size_t i = 0; i < world["asks"].size(); ++i) {
    Json& nodes = right.emplace_back(Json::object());
    for (const std::string node : world["nodes"]) nodes[node] = {{"allocated", false}};
  }
  const std::vector<std::string> found = differences(right);
  EXPECT_THAT(found, ::testing::Not(IsEmpty()));
  for (size_t i = 0; i < right.size(); ++i) {
    for (auto& [node, answer] : right[i].items()) {
      const std::string about = absl::StrCat("ask ", i, " on ", node, ": fairlead has devices");
      answer["allocated"] = std::any_of(found.begin(), found.end(), [&](const std::string& each) {
        return each.starts_with(about);
      });
    }
  }
  int compared = 0;
  for (const std::string& each : differences(right)) {
    // "ask 3 on n1: alternatives: fairlead [[0,1]], kube-scheduler []"
    const std::vector<std::string> words = absl::StrSplit(each, ' ');
    ASSERT_EQ(words[4], "alternatives:") << each;
    const Json chosen = Json::parse(words[6].substr(0, words[6].size() - 1));
    const size_t ask = std::stoul(words[1]);
    const std::string node = words[3].substr(0, words[3].size() - 1);
    Json& answer = right[ask][node];
    answer["chosen"] = chosen;
    if (chosen.size() != 1) continue;
    const size_t wrong = differences(right).size();
    for (const int change : {-1, 1}) {
      Json theirs = right;
      for (Json& option : theirs[ask][node]["chosen"][0]) {
        if (option.get<int>() + change < 0) continue;
        option = option.get<int>() + change;
        break;
      }
      const bool better = theirs[ask][node]["chosen"] < chosen;
      EXPECT_EQ(differences(theirs).size(), better ? wrong + 1 : wrong) << each;
      compared += better;
    }
  }
  EXPECT_GT(compared, 0);
  EXPECT_THAT(differences(right), IsEmpty());
  for (size_t i = 0; i < right.size(); ++i) {
    for (const std::string node : world["nodes"]) {
      Json theirs = right;
      theirs[i][node]["allocated"] = !theirs[i][node]["allocated"].get<bool>();
      EXPECT_THAT(differences(theirs), SizeIs(1)) << i << " " << node;
      theirs[i].erase(node);
      EXPECT_THAT(differences(theirs), ElementsAre(HasSubstr("says nothing")));
      theirs = right;
      theirs[i][node] = {{"allocated", false}, {"error", "CEL runtime error: no such key: x"}};
      EXPECT_THAT(differences(theirs), IsEmpty()) << "kube-scheduler gives it up";
    }
  }
  EXPECT_THAT(differences(Json()), SizeIs(right.size() * world["nodes"].size()));
}

}  // namespace
}  // namespace fairlead::differential
