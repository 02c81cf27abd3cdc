// Workloads that are left out because they fail like the one before them: no verdict tells the
// difference.
//
// The oracle is the same engine made to look at every workload: with a depth, however large, it
// leaves no workload out (CycleContext::leaves_out_equivalents).
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

constexpr int64_t kWholeQueue = 1'000'000;

struct World {
  explicit World(EngineOptions options)
      : state(testing::OurPods()),
        tree(state.resource_names()),
        engine(testing::MakeEngine(options, state, tree)) {}
  state::ClusterState state;
  queues::QueueTree tree;
  std::unique_ptr<Engine> engine;
};

// Which of two bounds is told may differ: that of the first of an equivalence class stands for all
// of it.
std::string Why(const verdict::Verdict& v) {
  const bool held = v.code == verdict::Code::kQueueLimitReached ||
                    v.code == verdict::Code::kNonPreemptibleOverQuota;
  return held ? "held by its queue" : std::string(verdict::CodeName(v.code));
}

// The waiting come queue by queue: whose turn it is between queues depends on what the first of
// each requests, so a workload that is left out does not change it. Therefore also, which of two
// queues under one tight limit is held by it is only compared if `codes`.
std::string Describe(const World& world, const CycleResult& result, bool codes) {
  std::string text;
  for (const Binding& binding : result.bindings) {
    absl::StrAppend(&text, "bind ", world.state.pod(binding.pod).name, " ",
                    world.state.node(binding.node).name(), "\n");
  }
  for (const Eviction& eviction : result.evictions) {
    absl::StrAppend(&text, eviction.action, " ", world.state.pod(eviction.pod).name, " for ",
                    eviction.for_workload, "\n");
  }
  std::map<std::string, std::string> by_queue;
  for (const Waiting& waiting : result.waiting) {
    const verdict::Verdict& v = waiting.verdict;
    std::string& row = by_queue[v.queue];
    if (!codes) {
      absl::StrAppend(&row, world.state.workload(waiting.workload).name, " #", v.position, "\n");
      continue;
    }
    absl::StrAppend(&row, world.state.workload(waiting.workload).name, " ", Why(v), " ", v.queue,
                    " #", v.position, " ", waiting.wants_nodes ? "wants nodes" : "", " ",
                    waiting.pods.size());
    for (const Waiting::PodPromise& pod : waiting.pods) {
      absl::StrAppend(&row, " ", world.state.pod(pod.pod).name, "@",
                      pod.node == state::kNoId ? "" : world.state.node(pod.node).name());
    }
    absl::StrAppend(&row, "\n");
  }
  for (const auto& [queue, rows] : by_queue) absl::StrAppend(&text, rows);
  return text;
}

// Queues below two departments, some with a limit; nodes that run pods of some of them; waiting
// pods of few kinds, so that most are like others, in the order of their age or not. With gangs,
// all that waits is of one queue: in which order queues are granted reservations is not told.
//
// `groups`: what waits has a PodGroup of its own, of few shapes: one or several pods, more than the
// minimum or fewer, sub-groups of which not all are needed.
void Fill(World& world, uint64_t seed, bool limit_departments, int64_t gangs = 0,
          bool groups = false) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const auto limit = [&](int64_t most) { return below(2) == 0 ? model::kUnlimited : below(most); };
  for (int d = 0; d < 2; ++d) {
    const int64_t department_limit = limit(24);
    world.tree.Upsert(MakeQueue(absl::StrCat("d", d), "", below(8),
                                limit_departments ? department_limit : model::kUnlimited));
    for (int q = 0; q < 2; ++q) {
      world.tree.Upsert(
          MakeQueue(absl::StrCat("q", d, q), absl::StrCat("d", d), below(5), limit(12)));
    }
  }
  const int64_t nodes = 1 + below(4);
  for (int64_t n = 0; n < nodes; ++n) {
    world.state.UpsertNode(MakeNode(absl::StrCat("n", n), 4));
    for (int64_t p = below(5); p > 0; --p) {
      PodBuilder pod("ns", absl::StrCat("run-", n, "-", p));
      pod.Gpus(1).Queue(absl::StrCat("q", below(2), below(2))).Preemptible(below(4) != 0);
      world.state.UpsertPod(pod.On(absl::StrCat("n", n)).Build());
    }
  }
  for (int64_t g = gangs; g > 0; --g) {
    const std::string name = absl::StrCat("gang-", g);
    const int64_t members = 2 + below(3);
    model::PodGroup group = MakeGroup("ns", name, "q00", static_cast<int32_t>(members));
    group.meta.creation = At(below(50));
    world.state.UpsertPodGroup(group);
    for (int64_t p = 0; p < members; ++p) {
      world.state.UpsertPod(
          PodBuilder("ns", absl::StrCat(name, "-", p)).Gpus(1 + below(4)).Group(name));
    }
  }
  const int64_t waiting = 5 + below(40);
  for (int64_t p = 0; groups && p < waiting; ++p) {
    const std::string name = absl::StrCat("group-", p);
    const int64_t shape = below(5);
    model::PodGroup group = MakeGroup("ns", name, absl::StrCat("q", below(2), below(2)),
                                      shape == 3 ? 3 : 1 + static_cast<int32_t>(shape == 1));
    group.meta.creation = At(below(50));
    group.preemptibility = below(3) != 0 ? model::Preemptibility::kPreemptible
                                         : model::Preemptibility::kNonPreemptible;
    if (shape == 4) {
      group.sub_groups = {{"a", "", 2, {}, {}}, {"b", "", 1, {}, {}}};
      group.min_sub_group = 1;
    }
    world.state.UpsertPodGroup(group);
    const int64_t gpus = 1 + below(2);
    for (int64_t i = 0; i < (shape == 4 ? 3 : 1 + shape % 3); ++i) {
      PodBuilder pod("ns", absl::StrCat(name, "-", i));
      pod.Gpus(gpus).Group(name);
      if (shape == 4) pod.Label(model::kSubGroupLabel, i < 2 ? "a" : "b");
      world.state.UpsertPod(pod.Build());
    }
  }
  for (int64_t p = 0; !groups && p < waiting; ++p) {
    PodBuilder pod("ns", absl::StrCat("wait-", p));
    pod.Gpus(1 + below(2));
    pod.Queue(gangs > 0 ? "q00" : absl::StrCat("q", below(2), below(2)));
    if (gangs > 0 && below(3) == 0) {
      pod.Annotation(model::kExpectedDurationAnnotation, below(2) == 0 ? "30s" : "20m");
    }
    model::Pod built = pod.Preemptible(below(3) != 0).Build();
    built.meta.creation = At(below(50));
    world.state.UpsertPod(built);
  }
}

TEST(FoldTest, NobodyCanTellWhoWasLeftOut) {
  int64_t left_out = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EngineOptions options;
    options.hook_on = seed % 3 == 0;
    World folds(options);
    options.allocate_depth = kWholeQueue;
    World looks(options);
    const bool limit_departments = seed % 2 == 0;
    const bool groups = seed % 4 >= 2;
    Fill(folds, seed, limit_departments, 0, groups);
    Fill(looks, seed, limit_departments, 0, groups);
    for (const int64_t at : {100, 101}) {
      CycleResult folded = folds.engine->RunCycle(At(at));
      for (const Waiting& waiting : folded.waiting) {
        left_out += waiting.behind;
        EXPECT_FALSE(waiting.wants_nodes && waiting.behind > 0);
      }
      folded.waiting = folds.engine->ExpandEquivalents(std::move(folded.waiting));
      const CycleResult whole = looks.engine->RunCycle(At(at));
      ASSERT_EQ(Describe(folds, folded, !limit_departments),
                Describe(looks, whole, !limit_departments));
      ASSERT_EQ(folds.engine->CheckConsistency(), "");
    }
  }
  EXPECT_GT(left_out, 500) << "the worlds are too small to leave a workload out";
}

TEST(FoldTest, NorWhereRoomIsKeptForGangs) {
  int64_t left_out = 0, held = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EngineOptions options;
    options.hook_on = false;
    options.reservations.on = true;
    options.reservations.reserve_after = absl::Seconds(60);
    options.reservations.reserve_min_gpus = 2;
    World folds(options);
    options.allocate_depth = kWholeQueue;
    World looks(options);
    Fill(folds, seed, false, 4);
    Fill(looks, seed, false, 4);
    for (const int64_t at : {100, 101, 102, 103}) {
      // Capacity is reserved before a pod is evicted.
      const bool may_evict = at > 100;
      CycleResult folded = folds.engine->RunCycle(At(at), may_evict);
      for (const Waiting& waiting : folded.waiting) left_out += waiting.behind;
      folded.waiting = folds.engine->ExpandEquivalents(std::move(folded.waiting));
      const CycleResult whole = looks.engine->RunCycle(At(at), may_evict);
      ASSERT_EQ(Describe(folds, folded, true), Describe(looks, whole, true)) << "at " << at;
      ASSERT_EQ(folds.engine->ReservedNodes(), looks.engine->ReservedNodes());
      held += static_cast<int64_t>(folds.engine->ReservedNodes().size());
      // Victims go, and a running pod ends: capacity comes bit by bit.
      for (World* world : {&folds, &looks}) {
        for (const Eviction& eviction : (world == &folds ? folded : whole).evictions) {
          const state::PodRecord& pod = world->state.pod(eviction.pod);
          world->state.RemovePod("ns", std::string(pod.name), "");
        }
        world->state.RemovePod("ns", absl::StrCat("run-0-", at - 99), "");
      }
    }
  }
  EXPECT_GT(left_out, 500) << "the worlds are too small to leave a workload out";
  EXPECT_GT(held, 100) << "capacity is reserved too seldom";
}

TEST(FoldTest, ACycleLooksAtOneOfManyGroupsAlike) {
  EngineOptions options;
  options.hook_on = false;
  World world(options);
  world.tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  world.state.UpsertNode(MakeNode("n", 4));
  for (int p = 0; p < 1000; ++p) {
    const std::string name = absl::StrCat("g", p);
    world.state.UpsertPodGroup(MakeGroup("ns", name, "q", 2));
    for (const char* pod : {"-a", "-b"}) {
      world.state.UpsertPod(PodBuilder("ns", absl::StrCat(name, pod)).Gpus(1).Group(name));
    }
  }
  const CycleResult result = world.engine->RunCycle(At(100));
  EXPECT_EQ(result.bindings.size(), 4u);
  ASSERT_EQ(result.waiting.size(), 1u);
  EXPECT_EQ(result.waiting.front().behind, 997);
  const std::vector<Waiting> all = world.engine->ExpandEquivalents(result.waiting);
  ASSERT_EQ(all.size(), 998u);
  EXPECT_EQ(all.back().pods.size(), 2u);
}

TEST(FoldTest, ACycleLooksAtOneOfManyAlike) {
  EngineOptions options;
  options.hook_on = false;
  World world(options);
  world.tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  world.state.UpsertNode(MakeNode("n", 4));
  for (int p = 0; p < 1000; ++p) {
    world.state.UpsertPod(PodBuilder("ns", absl::StrCat("p", p)).Gpus(1).Queue("q"));
  }
  const CycleResult result = world.engine->RunCycle(At(100));
  EXPECT_EQ(result.bindings.size(), 4u);
  ASSERT_EQ(result.waiting.size(), 1u);
  EXPECT_EQ(result.waiting.front().behind, 995);
  EXPECT_EQ(world.engine->ExpandEquivalents(result.waiting).size(), 996u);
}

}  // namespace
}  // namespace fairlead::engine
