// The scores of NodeResourcesFit and NodeResourcesBalancedAllocation. The numbers are computed by
// hand from upstream's formulas; where upstream's tests have the same case, they are theirs.
#include "scheduler/plugins/resource_scores.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

constexpr char kFit[] = "NodeResourcesFit";
constexpr char kBalanced[] = "NodeResourcesBalancedAllocation";

// Requests of a pod, and what it counts of CPU and memory for scores.
struct Amounts {
  model::ResourceList requests;
  model::ScoringRequests scoring;
};

class ResourceScoresTest : public PluginTest {
 protected:
  // A node "n" with a pod that uses what `used` says, and a waiting one.
  void World(const model::ResourceList& allocatable, const Amounts& used, const Amounts& wanted) {
    model::Node node = MakeNode("n", 0);
    node.allocatable = allocatable;
    AddNode(node);
    model::Pod runs = PodBuilder("ns", "runs").On("n");
    runs.spec.requests = used.requests;
    runs.spec.scoring_requests = used.scoring;
    AddPod(runs);
    model::PodSpec spec;
    spec.requests = wanted.requests;
    spec.scoring_requests = wanted.scoring;
    Waiting(spec);
  }
  // Zero also if the plugin does not apply to the class.
  int64_t ScoreOf(const char* plugin, const std::string& args = "") {
    const auto framework = Only(plugin, args);
    const state::NodeInfo* node = &Node("n");
    const auto scores = framework->ScoresByPlugin(Ctx(), absl::MakeConstSpan(&node, 1));
    EXPECT_EQ(scores.size(), 1u);
    return scores.at(0).scores.at(0);
  }
  static std::string Strategy(const std::string& type, const std::string& resources = "[]",
                              const std::string& shape = "") {
    return absl::StrCat(
        R"({"scoringStrategy":{"type":")", type, R"(","resources":)", resources,
        shape.empty() ? "" : absl::StrCat(R"(,"requestedToCapacityRatio":{"shape":)", shape, "}"),
        "}}");
  }
};

TEST_F(ResourceScoresTest, CpuAndMemory) {
  struct Case {
    int64_t cpu, memory;  // allocatable
    model::ScoringRequests used, wanted;
    int64_t least, most;
  };
  const Case cases[] = {
      // 4000-0: 100, 10000-0: 100.
      {4000, 10000, {0, 0}, {0, 0}, 100, 0},
      // (4000-3000)/4000 = 25 %, (10000-5000)/10000 = 50 %: 75/2; 75 % and 50 %: 125/2.
      {4000, 10000, {0, 0}, {3000, 5000}, 37, 62},
      {6000, 10000, {0, 0}, {3000, 5000}, 50, 50},
      // 62.5 % and 62.5 % are each rounded down; 37.5 % likewise.
      {4000, 16, {1000, 4}, {500, 2}, 62, 37},
      // More than there is.
      {1000, 10000, {900, 5000}, {200, 0}, 25, 75},
      // A resource of which the node has none is left out.
      {0, 10000, {900, 5000}, {200, 0}, 50, 50},
      {0, 0, {900, 5000}, {200, 0}, 0, 0},
      {4000, 10000, {INT64_MAX, INT64_MAX}, {INT64_MAX, 1}, 0, 100},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.cpu, " ", c.memory, " ", c.wanted.cpu_milli));
    // The requests themselves do not count.
    World({{"cpu", c.cpu}, {"memory", c.memory}}, {{{"cpu", 7}}, c.used},
          {{{"cpu", 99}, {"memory", 1}}, c.wanted});
    EXPECT_EQ(ScoreOf(kFit), c.least);
    EXPECT_EQ(ScoreOf(kFit, R"({"scoringStrategy":null})"), c.least);
    EXPECT_EQ(ScoreOf(kFit, Strategy("LeastAllocated")), c.least);
    EXPECT_EQ(ScoreOf(kFit, Strategy("MostAllocated")), c.most);
    EXPECT_EQ(ScoreOf(kFit, Strategy("RequestedToCapacityRatio", "[]",
                                     R"([{"utilization":0},{"utilization":100,"score":10}])")),
              c.cpu == 4000 && c.memory == 10000 && c.wanted.cpu_milli == 3000 ? 63 : c.most)
        << "125/2 is rounded up";
  }
}

TEST_F(ResourceScoresTest, OtherResourcesCountAsRequested) {
  const std::string resources =
      R"([{"name":"cpu"},{"name":"nvidia.com/gpu","weight":5},{"name":"ephemeral-storage","weight":0},)"
      R"({"name":"pods","weight":90},{"name":"example.com/unknown","weight":100},)"
      R"({"name":"example.com/x","weight":2}])";
  const std::string least = Strategy("LeastAllocated", resources);
  const model::ResourceList allocatable = {{"cpu", 4000},
                                           {"ephemeral-storage", 1000},
                                           {"example.com/x", 10},
                                           {"nvidia.com/gpu", 8000},
                                           {"pods", 110}};
  const Amounts used = {
      {{"ephemeral-storage", 300}, {"example.com/x", 4}, {"nvidia.com/gpu", 3000}}, {1000, 0}};
  // CPU 62, storage 70 although the pod requests none, GPUs (8-4)/8: (62 + 5*50 + 70) / 7.
  World(allocatable, used, {{{"nvidia.com/gpu", 1000}}, {500, 0}});
  EXPECT_EQ(ScoreOf(kFit, least), 54);
  // Extended resources that the pod does not request are left out: (62 + 70) / 2.
  World(allocatable, used, {{}, {500, 0}});
  EXPECT_EQ(ScoreOf(kFit, least), 66);
  // (62 + 60 + 2*(10-7)/10) / 4: x has no index that every table has.
  World(allocatable, used, {{{"ephemeral-storage", 100}, {"example.com/x", 3}}, {500, 0}});
  EXPECT_EQ(ScoreOf(kFit, least), (62 + 60 + 2 * 30) / 4);
  // The node has no GPUs.
  World({{"cpu", 4000}}, used, {{{"nvidia.com/gpu", 1000}}, {500, 0}});
  EXPECT_EQ(ScoreOf(kFit, least), 62);
  // Nothing counts.
  EXPECT_EQ(ScoreOf(kFit, Strategy("MostAllocated", R"([{"name":"pods"}])")), 0);
}

TEST_F(ResourceScoresTest, RequestedToCapacityRatio) {
  const auto ratio = [&](const char* shape, int64_t cpu, int64_t memory) {
    World({{"cpu", 100}, {"memory", 100}}, {}, {{}, {cpu, memory}});
    return ScoreOf(kFit, Strategy("RequestedToCapacityRatio", "[]", shape));
  };
  constexpr char kRise[] = R"([{"utilization":20,"score":2},{"utilization":60,"score":10}])";
  EXPECT_EQ(ratio(kRise, 10, 10), 20);
  EXPECT_EQ(ratio(kRise, 20, 20), 20);
  EXPECT_EQ(ratio(kRise, 40, 40), 60);  // 20 + 80*20/40
  EXPECT_EQ(ratio(kRise, 41, 41), 62);
  EXPECT_EQ(ratio(kRise, 90, 90), 100);
  EXPECT_EQ(ratio(kRise, 101, 500), 100);
  constexpr char kFall[] = R"([{"utilization":0,"score":10},{"utilization":100}])";
  EXPECT_EQ(ratio(kFall, 37, 37), 63);
  EXPECT_EQ(ratio(kFall, 37, 0), 82);    // 163/2, rounded
  EXPECT_EQ(ratio(kFall, 100, 50), 50);  // what scores 0 has no weight
  EXPECT_EQ(ratio(kFall, 100, 100), 0);
  // 100 - 100*1/3: the quotient is cut towards zero.
  EXPECT_EQ(ratio(R"([{"utilization":0,"score":10},{"utilization":3}])", 1, 1), 67);
  EXPECT_EQ(ratio(R"([{"utilization":50,"score":3}])", 99, 0), 30);
}

TEST_F(ResourceScoresTest, BalancedAllocation) {
  struct Case {
    model::ResourceList allocatable, used, wanted;
    int64_t score;
  };
  const Case cases[] = {
      // 75 % and 50 %: 1 - 0.125 is 87; without the pod 100: 50 + (50 + 87 - 100)/2.
      {{{"cpu", 4000}, {"memory", 10000}}, {}, {{"cpu", 3000}, {"memory", 5000}}, 68},
      {{{"cpu", 6000}, {"memory", 10000}}, {}, {{"cpu", 3000}, {"memory", 5000}}, 75},
      // 80 % and 0 % become 80 % and 80 %: 60 -> 100.
      {{{"cpu", 100}, {"memory", 100}}, {{"cpu", 80}}, {{"memory", 80}}, 95},
      // The other way: 100 -> 60.
      {{{"cpu", 100}, {"memory", 100}}, {}, {{"cpu", 80}}, 55},
      // More than there is counts as all: 100 % and 0 % -> 100 % and 100 %.
      {{{"cpu", 100}, {"memory", 100}}, {{"cpu", 250}}, {{"memory", 300}}, 100},
      // One resource alone is always in balance, and so is none.
      {{{"cpu", 100}}, {}, {{"cpu", 80}}, 75},
      {{}, {}, {{"cpu", 80}}, 75},
      // Nothing is requested: skipped.
      {{{"cpu", 100}, {"memory", 100}}, {{"cpu", 50}}, {}, 0},
      {{{"cpu", 100}, {"memory", 100}}, {{"cpu", 50}}, {{"nvidia.com/gpu", 1000}}, 0},
  };
  for (const Case& c : cases) {
    // What containers without requests count for NodeResourcesFit does not count here.
    World(c.allocatable, {c.used, {17, 19}}, {c.wanted, {23, 5}});
    EXPECT_EQ(ScoreOf(kBalanced), c.score);
  }
}

TEST_F(ResourceScoresTest, BalancedAllocationOfThreeResources) {
  const std::string args =
      R"({"resources":[{"name":"cpu","weight":1},{"name":"memory"},{"name":"nvidia.com/gpu","weight":0}]})";
  const model::ResourceList allocatable = {
      {"cpu", 1000}, {"memory", 1000}, {"nvidia.com/gpu", 8000}};
  // 0.5, 0.5, 1: the mean is 2/3, the deviation sqrt((2/36 + 4/36)/3) = 0.2357: 76; before: 100.
  World(allocatable, {}, {{{"cpu", 500}, {"memory", 500}, {"nvidia.com/gpu", 8000}}, {}});
  EXPECT_EQ(ScoreOf(kBalanced, args), 63);
  // Without GPUs two are left: 0.5 and 0.25: 87.
  World(allocatable, {}, {{{"cpu", 500}, {"memory", 250}}, {}});
  EXPECT_EQ(ScoreOf(kBalanced, args), 68);
  World(allocatable, {}, {{{"nvidia.com/gpu", 8000}}, {}});
  EXPECT_GT(ScoreOf(kBalanced, args), 0) << "one of the listed is requested";
}

// What ends there is in use; what is promised is not, as for upstream, which promises nothing.
TEST_F(ResourceScoresTest, WhatEndsCountsAndPromisesDoNot) {
  World({{"cpu", 100}, {"memory", 100}}, {{}, {20, 20}}, {{}, {10, 10}});
  model::Pod other = PodBuilder("ns", "other");
  other.spec.scoring_requests = {30, 30};
  AddPod(other);
  EXPECT_EQ(ScoreOf(kFit), 70);
  state::Transaction txn(state_);
  txn.Evict(state_.FindPod("ns", "runs"));
  EXPECT_EQ(ScoreOf(kFit), 70);
  const auto mark = txn.Mark();
  txn.Pipeline(state_.FindPod("ns", "other"), state_.FindNode("n"));
  EXPECT_EQ(ScoreOf(kFit), 70);
  txn.RollbackTo(mark);
  txn.Allocate(state_.FindPod("ns", "other"), state_.FindNode("n"));
  EXPECT_EQ(ScoreOf(kFit), 40);
}

}  // namespace
}  // namespace fairlead::plugins
