// A hypothesis is right: what it says of a node to be bought is what the engine does when the node
// and the pods are really there, in a state of its own that was built from the same objects.
//
// FAIRLEAD_WHAT_IF_SEEDS sets how many worlds.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/environment.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::AppSelector;
using model::testing::MakeNode;
using model::testing::PodBuilder;

constexpr char kNew[] = "new";  // label that only the added node has

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Upto(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Upto(n) == 0; }
  std::string Zone() { return absl::StrCat("z", 1 + Upto(3)); }
  std::string App() { return absl::StrCat("app", Upto(3)); }
  std::string Key() { return OneIn(2) ? model::kHostnameLabel : model::kZoneLabel; }

 private:
  std::mt19937_64 random_;
};

model::Node RandomNode(Dice& dice, const std::string& name) {
  model::Node node = MakeNode(name, dice.Upto(5));
  node.meta.labels.Set(model::kZoneLabel, dice.Zone());
  node.meta.labels.Set(model::kHostnameLabel, name);
  if (dice.OneIn(2)) node.meta.labels.Set(model::kGpuMemoryLabel, "40000");
  if (dice.OneIn(5)) node.taints.push_back({"t", "", model::TaintEffect::kNoSchedule});
  if (dice.OneIn(3)) model::Set(node.allocatable, "pods", 1 + dice.Upto(6));
  return node;
}

model::Pod RandomPod(Dice& dice, const std::string& name) {
  PodBuilder builder("ns", name);
  builder.Queue("q").Cpu(100 + 100 * dice.Upto(20));
  switch (dice.Upto(4)) {
    case 0:
      builder.Gpus(1 + dice.Upto(2));
      break;
    case 1:
      builder.GpuFraction(100 + 100 * dice.Upto(9), 1 + dice.Upto(2));
      break;
    case 2:
      builder.GpuMemory(1000 * (1 + dice.Upto(40)));
      break;
    default:
      break;
  }
  const std::string app = dice.App();
  builder.Label("app", app);
  model::Pod pod = builder.Build();
  if (dice.OneIn(4)) pod.spec.host_ports = {{static_cast<int32_t>(80 + dice.Upto(2)), "TCP", ""}};
  if (dice.OneIn(3)) pod.spec.tolerations.push_back({"t", true, "", std::nullopt});
  const auto term = [&] {
    model::PodAffinityTerm made;
    made.selector = AppSelector(dice.App());
    made.topology_key = dice.Key();
    return made;
  };
  if (dice.OneIn(4)) pod.spec.pod_affinity.push_back(term());
  if (dice.OneIn(4)) pod.spec.pod_anti_affinity.push_back(term());
  if (dice.OneIn(5)) {
    pod.spec.topology_spread.push_back({static_cast<int32_t>(1 + dice.Upto(2)), dice.Key(), true,
                                        AppSelector(dice.App()), 1, dice.OneIn(2), dice.OneIn(2)});
  }
  const bool sees = !pod.spec.pod_affinity.empty() || !pod.spec.pod_anti_affinity.empty() ||
                    !pod.spec.topology_spread.empty();
  if (sees) pod.spec.labels_for_affinity = pod.meta.labels;
  return pod;
}

struct HypothesisWorld {
  std::vector<model::Node> nodes;
  std::vector<model::Pod> pods;  // they run
};

HypothesisWorld RandomWorld(Dice& dice) {
  HypothesisWorld world;
  const int64_t nodes = dice.Upto(5);
  for (int64_t i = 0; i < nodes; ++i) {
    world.nodes.push_back(RandomNode(dice, absl::StrCat("n", i)));
    const int64_t pods = dice.Upto(4);
    for (int64_t p = 0; p < pods; ++p) {
      model::Pod pod = RandomPod(dice, absl::StrCat("run", i, "-", p));
      pod.node_name = world.nodes.back().meta.name;
      pod.phase = model::PodPhase::kRunning;
      if (dice.OneIn(3)) pod.scheduler_name = "other";
      world.pods.push_back(std::move(pod));
    }
  }
  return world;
}

void Fill(testing::Cluster& cluster, const HypothesisWorld& world) {
  cluster.Queue("q", model::kUnlimited);
  for (const model::Node& node : world.nodes) cluster.state().UpsertNode(node);
  for (const model::Pod& pod : world.pods) cluster.Pod(pod);
}

// Pods of a kind that may go to the new node alone.
struct Kind {
  model::Pod pod;
  int64_t count = 0;
};

Kind RandomKind(Dice& dice, const std::string& name) {
  Kind kind{RandomPod(dice, name), 1 + dice.Upto(6)};
  kind.pod.spec.node_selector.Set(kNew, "yes");
  return kind;
}

// The same kind as the hook has it.
std::shared_ptr<const model::PodSpec> SpecOf(const Kind& kind) {
  model::PodSpec spec = kind.pod.spec;
  spec.labels_for_affinity = kind.pod.meta.labels;
  return std::make_shared<const model::PodSpec>(std::move(spec));
}

// How many of the pods the engine places, one arrival a cycle.
int64_t Really(testing::Cluster& cluster, const Kind& kind, int& at) {
  int64_t placed = 0;
  for (int64_t i = 0; i < kind.count; ++i) {
    model::Pod pod = kind.pod;
    pod.meta.name = absl::StrCat(pod.meta.name, "-", i);
    pod.meta.uid = absl::StrCat("uid-", pod.meta.name);
    cluster.Pod(pod);
    const size_t bound = cluster.Run(++at).bindings.size();
    EXPECT_LE(bound, 1u);
    placed += static_cast<int64_t>(bound);
    if (bound == 0) {
      cluster.state().RemovePod(pod.meta.ns, pod.meta.name, "");
      break;
    }
  }
  return placed;
}

TEST(HypothesisProperty, WhatItSaysOfANewNodeIsWhatTheEngineDoes) {
  const auto seeds =
      static_cast<int64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_WHAT_IF_SEEDS", 400));
  int64_t kinds_that_fit = 0, kinds_refused = 0;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Dice dice(static_cast<uint64_t>(seed));
    const HypothesisWorld world = RandomWorld(dice);
    model::Node added = RandomNode(dice, "zzz");
    added.meta.labels.Set(kNew, "yes");
    std::vector<Kind> kinds;
    for (int64_t i = 0; i <= dice.Upto(3); ++i) {
      kinds.push_back(RandomKind(dice, absl::StrCat("k", i)));
    }

    testing::Cluster asked;
    Fill(asked, world);
    asked.Run(1);
    const std::string before = asked.state().Dump();
    std::vector<int64_t> said;
    {
      const auto what_if = asked.engine().WhatIf();
      const state::NodeId node = what_if->AddNode(added);
      for (const Kind& kind : kinds) {
        const state::PodClassId wanted = what_if->ClassOf(SpecOf(kind));
        const int64_t fits = what_if->HowManyFit(wanted, node, kind.count);
        EXPECT_EQ(what_if->Fits(wanted, node, framework::Capacity::kFuture), fits > 0);
        EXPECT_LE(fits, what_if->MostThatFit(wanted, node, kind.count));
        EXPECT_EQ(what_if->Place(wanted, node, kind.count), fits);
        EXPECT_EQ(asked.state().CheckConsistency(), "");
        said.push_back(fits);
      }
    }
    ASSERT_EQ(asked.state().Dump(), before);
    ASSERT_EQ(asked.engine().CheckConsistency(), "");

    testing::Cluster real;
    Fill(real, world);
    real.state().UpsertNode(added);
    int at = 1;
    real.Run(at);
    for (size_t i = 0; i < kinds.size(); ++i) {
      const int64_t placed = Really(real, kinds[i], at);
      ASSERT_EQ(said[i], placed) << "kind " << i << " of " << kinds.size();
      (placed > 0 ? kinds_that_fit : kinds_refused) += 1;
    }
  }
  // The dice are such that both happen.
  EXPECT_GT(kinds_that_fit, seeds / 4);
  EXPECT_GT(kinds_refused, seeds / 4);
}

// Asked node by node: those on which it fits, and what the best of them scores; -1: none.
int64_t BestScore(const Hypothesis& what_if, state::PodClassId wanted,
                  const std::vector<state::NodeId>& nodes, state::NodeId& best) {
  std::vector<state::NodeId> fits;
  for (const state::NodeId node : nodes) {
    if (what_if.Fits(wanted, node, Hypothesis::kPromised)) fits.push_back(node);
  }
  best = fits.empty() ? state::kNoId : fits[what_if.BestOf(wanted, fits)];
  if (fits.empty()) return -1;
  const std::vector<int64_t> scores = what_if.ScoresOf(wanted, fits);
  return *std::max_element(scores.begin(), scores.end());
}

// Nodes are added, pods placed and all of it rolled back between the questions.
TEST(HypothesisProperty, TheBestNodeIsTheBestOfAllThatAreAskedOneByOne) {
  const auto seeds =
      static_cast<int64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_WHAT_IF_SEEDS", 400)) / 4;
  int64_t on_added = 0, on_present = 0, nowhere = 0;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Dice dice(static_cast<uint64_t>(seed + 5'000));
    testing::Cluster cluster;
    Fill(cluster, RandomWorld(dice));
    cluster.Run(1);
    const std::string before = cluster.state().Dump();
    {
      const auto what_if = cluster.engine().WhatIf();
      std::vector<state::NodeId> nodes;
      for (const auto& [name, id] : cluster.state().nodes_by_name()) nodes.push_back(id);
      const size_t present = nodes.size();
      std::vector<std::shared_ptr<const model::PodSpec>> specs;
      for (int64_t i = 0; i < 4; ++i) {
        Kind kind = RandomKind(dice, absl::StrCat("k", i));
        if (dice.OneIn(2)) kind.pod.spec.node_selector = {};
        specs.push_back(SpecOf(kind));
      }
      std::vector<std::pair<Hypothesis::Checkpoint, size_t>> marks;
      for (int step = 0; step < 40; ++step) {
        marks.emplace_back(what_if->Mark(), nodes.size());
        if (dice.OneIn(4)) {
          model::Node added = RandomNode(dice, "zzz");
          added.meta.labels.Erase(model::kHostnameLabel);
          if (dice.OneIn(2)) added.meta.labels.Set(kNew, "yes");
          nodes.push_back(what_if->AddNode(added));
        }
        const auto wanted = what_if->ClassOf(specs[static_cast<size_t>(dice.Upto(4))]);
        state::NodeId expected = state::kNoId, best = state::kNoId;
        const int64_t score = BestScore(*what_if, wanted, nodes, expected);
        uint64_t work = 0;
        const auto found = what_if->BestNode(wanted, work, [](state::NodeId) { return false; });
        ASSERT_TRUE(found.has_value());
        ASSERT_EQ(*found == state::kNoId, expected == state::kNoId);
        if (*found == state::kNoId) {
          ++nowhere;
        } else {
          // Of equals any may be the one.
          ASSERT_TRUE(what_if->Fits(wanted, *found, Hypothesis::kPromised));
          std::vector<state::NodeId> fits;
          for (const state::NodeId node : nodes) {
            if (what_if->Fits(wanted, node, Hypothesis::kPromised)) fits.push_back(node);
          }
          const std::vector<int64_t> scores = what_if->ScoresOf(wanted, fits);
          const auto at = std::find(fits.begin(), fits.end(), *found) - fits.begin();
          ASSERT_EQ(scores[static_cast<size_t>(at)], score);
          const bool is_added = std::find(nodes.begin() + static_cast<ptrdiff_t>(present),
                                          nodes.end(), *found) != nodes.end();
          ++(is_added ? on_added : on_present);
          // Passed over, it is another one that is the best.
          std::vector<state::NodeId> others = nodes;
          std::erase(others, *found);
          const auto second =
              what_if->BestNode(wanted, work, [&](state::NodeId id) { return id == *found; });
          ASSERT_TRUE(second.has_value());
          EXPECT_NE(*second, *found);
          BestScore(*what_if, wanted, others, best);
          EXPECT_EQ(*second == state::kNoId, best == state::kNoId);
          what_if->Place(wanted, *found, 1 + dice.Upto(2));
        }
        ASSERT_EQ(what_if->CheckConsistency(), "");
        if (!dice.OneIn(6)) continue;
        const auto back = static_cast<size_t>(dice.Upto(static_cast<int64_t>(marks.size())));
        what_if->RollbackTo(marks[back].first);
        nodes.resize(marks[back].second);
        marks.resize(back);
        ASSERT_EQ(what_if->CheckConsistency(), "");
      }
    }
    ASSERT_EQ(cluster.state().Dump(), before);
    ASSERT_EQ(cluster.engine().CheckConsistency(), "");
  }
  EXPECT_GT(on_added, seeds);
  EXPECT_GT(on_present, seeds);
  EXPECT_GT(nowhere, seeds);
}

}  // namespace
}  // namespace fairlead::engine
