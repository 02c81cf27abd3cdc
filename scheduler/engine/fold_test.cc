// Workloads that are left out because they fail like the one before them: no verdict tells the
// difference.
//
// The oracle is the same engine made to look at every workload: each object has a generation of its
// own, so that none of them is equivalent to another one.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

struct FoldWorld {
  explicit FoldWorld(EngineOptions options)
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
//
// `places`: a place in a queue may differ by those that have started in part since, so it is only
// compared where nothing has.
std::string Describe(const FoldWorld& world, const CycleResult& result, bool codes,
                     bool places = true) {
  std::string text;
  for (const Binding& binding : result.bindings) {
    absl::StrAppend(&text, "bind ", world.state.pod(binding.pod).name, " ",
                    world.state.node(binding.node).name(), "\n");
  }
  for (const Eviction& eviction : result.evictions) {
    absl::StrAppend(&text, eviction.action, " ", world.state.pod(eviction.pod).name, " for ",
                    eviction.for_workload, "\n");
  }
  std::map<std::string, std::map<std::string, std::string>> by_queue;
  for (const Waiting& waiting : result.waiting) {
    const verdict::Verdict& v = waiting.verdict;
    const std::string name = world.state.workload(waiting.workload).name;
    std::string& row = by_queue[v.queue][places ? absl::StrFormat("%06d", v.position) : name];
    absl::StrAppend(&row, name, places ? absl::StrCat(" #", v.position) : "");
    if (!codes) {
      absl::StrAppend(&row, "\n");
      continue;
    }
    absl::StrAppend(&row, " ", Why(v), " ", v.queue, " ", waiting.wants_nodes ? "wants nodes" : "",
                    " ", waiting.tried ? "" : "not evaluated ", waiting.pods.size());
    if (v.until.has_value()) absl::StrAppend(&row, " until ", absl::FormatTime(*v.until));
    for (const Waiting::PodPromise& pod : waiting.pods) {
      absl::StrAppend(&row, " ", world.state.pod(pod.pod).name, "@",
                      pod.node == state::kNoId ? "" : world.state.node(pod.node).name());
    }
    absl::StrAppend(&row, "\n");
  }
  for (const auto& [queue, rows] : by_queue) {
    for (const auto& [place, row] : rows) absl::StrAppend(&text, row);
  }
  return text;
}

// Queues below two departments, some with a limit; nodes that run pods of some of them; waiting
// pods of few kinds, so that most are like others, in the order of their age or not. With gangs,
// all that waits is of one queue: in which order queues are granted reservations is not told.
//
// `groups`: what waits has a PodGroup of its own, of few shapes: one or several pods, more than the
// minimum or fewer, sub-groups of which not all are needed.
//
// `lending`: some queues do not lend all of their quota. `models`: nodes of two GPU models, and
// queues with limits for them. `delays`: some of what waits has a preemption delay, which may end
// between cycles.
struct Shape {
  bool limit_departments = false;
  int64_t gangs = 0;
  bool groups = false, lending = false, models = false, delays = false;
};

// `alone`: no object is like another one (see above).
void Fill(FoldWorld& world, uint64_t seed, const Shape& shape, bool alone) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const auto [limit_departments, gangs, groups, lending, models, delays] = shape;
  int64_t generation = 1;
  const auto next_generation = [&] { return alone ? ++generation : 1; };
  const auto queue_below = [&](absl::string_view name, absl::string_view parent, int64_t quota,
                               int64_t most) {
    model::Queue queue = MakeQueue(name, parent, quota, most);
    if (lending && below(2) == 0) queue.gpu.lending_limit = below(3) * 1000;
    for (const char* product : {"gpu-model/H100", "gpu-model/L4"}) {
      if (!models || below(2) == 0) continue;
      queue.other.emplace_back(product,
                               model::QueueResource{model::kUnlimited, below(6) * 1000, 1'000'000});
    }
    world.tree.Upsert(queue);
  };
  const auto limit = [&](int64_t most) { return below(2) == 0 ? model::kUnlimited : below(most); };
  for (int d = 0; d < 2; ++d) {
    const int64_t department_limit = limit(24);
    queue_below(absl::StrCat("d", d), "", below(8),
                limit_departments ? department_limit : model::kUnlimited);
    for (int q = 0; q < 2; ++q) {
      queue_below(absl::StrCat("q", d, q), absl::StrCat("d", d), below(5), limit(12));
    }
  }
  const int64_t nodes = 1 + below(4);
  for (int64_t n = 0; n < nodes; ++n) {
    model::Node node = MakeNode(absl::StrCat("n", n), 4);
    if (models) node.meta.labels.Set(model::kGpuProductLabel, below(2) == 0 ? "H100" : "L4");
    world.state.UpsertNode(node);
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
    group.meta.generation = next_generation();
    world.state.UpsertPodGroup(group);
    for (int64_t p = 0; p < members; ++p) {
      world.state.UpsertPod(
          PodBuilder("ns", absl::StrCat(name, "-", p)).Gpus(1 + below(4)).Group(name));
    }
  }
  const int64_t waiting = 5 + below(40);
  for (int64_t p = 0; groups && p < waiting; ++p) {
    const std::string name = absl::StrCat("group-", p);
    const int64_t kind = below(5);
    model::PodGroup group = MakeGroup("ns", name, absl::StrCat("q", below(2), below(2)),
                                      kind == 3 ? 3 : 1 + static_cast<int32_t>(kind == 1));
    group.meta.creation = At(below(50));
    group.preemptibility = below(3) != 0 ? model::Preemptibility::kPreemptible
                                         : model::Preemptibility::kNonPreemptible;
    if (kind == 4) {
      group.sub_groups = {{"a", "", 2, {}, {}}, {"b", "", 1, {}, {}}};
      group.min_sub_group = 1;
    }
    group.meta.generation = next_generation();
    if (delays && below(2) == 0) group.preemption_delay = absl::Seconds(below(2) == 0 ? 60 : 1000);
    world.state.UpsertPodGroup(group);
    const int64_t gpus = 1 + below(2);
    for (int64_t i = 0; i < (kind == 4 ? 3 : 1 + kind % 3); ++i) {
      PodBuilder pod("ns", absl::StrCat(name, "-", i));
      pod.Gpus(gpus).Group(name);
      if (kind == 4) pod.Label(model::kSubGroupLabel, i < 2 ? "a" : "b");
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
    if (delays && below(2) == 0) {
      pod.Annotation(model::kPreemptionDelayAnnotation, below(2) == 0 ? "60s" : "1000s");
    }
    model::Pod built = pod.Preemptible(below(3) != 0).Build();
    built.meta.creation = At(below(50));
    built.meta.generation = next_generation();
    world.state.UpsertPod(built);
  }
}

TEST(FoldTest, NoDecisionTellsWhichWorkloadsWereLeftOut) {
  int64_t left_out = 0, demanded = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EngineOptions options;
    options.hook_on = seed % 3 == 0;
    FoldWorld folds(options), looks(options);
    const bool limit_departments = seed % 2 == 0;
    Shape shape;
    shape.limit_departments = limit_departments;
    shape.groups = seed % 4 >= 2;
    Fill(folds, seed, shape, false);
    Fill(looks, seed, shape, true);
    for (const int64_t at : {100, 101}) {
      CycleResult folded = folds.engine->RunCycle(At(at));
      for (const Waiting& waiting : folded.waiting) {
        left_out += waiting.behind;
        demanded += waiting.wants_nodes ? waiting.behind : 0;
      }
      folded.waiting = folds.engine->ExpandEquivalents(std::move(folded.waiting));
      const CycleResult whole = looks.engine->RunCycle(At(at));
      ASSERT_EQ(Describe(folds, folded, !limit_departments),
                Describe(looks, whole, !limit_departments));
      ASSERT_EQ(folds.engine->CheckConsistency(), "");
    }
  }
  EXPECT_GT(left_out, 500) << "the worlds are too small to leave a workload out";
  EXPECT_GT(demanded, 200) << "the worlds are too small to demand nodes for several at once";
}

TEST(FoldTest, NorWhereRoomIsKeptForGangs) {
  int64_t left_out = 0, held = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EngineOptions options;
    options.hook_on = false;
    options.reservations.on = true;
    options.reservations.reserve_after = absl::Seconds(60);
    options.reservations.reserve_min_devices = 2;
    FoldWorld folds(options), looks(options);
    Shape shape;
    shape.gangs = 4;
    Fill(folds, seed, shape, false);
    Fill(looks, seed, shape, true);
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
      for (FoldWorld* world : {&folds, &looks}) {
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

// The writer of verdicts reads an entry's equivalents only if the entry is another one than in the
// last cycle, and else those that are news: no other workload may have come to wait behind another
// entry.
class NewsChecker {
 public:
  void Check(const FoldWorld& world, const CycleResult& result) {
    const WaitingChanges changes = world.engine->TakeChanges();
    std::set<state::WorkloadId> news(changes.came.begin(), changes.came.end());
    std::map<state::WorkloadId, uint64_t> behind;
    std::set<uint64_t> ranges;
    for (const Waiting& entry : result.waiting) {
      if (entry.behind == 0) continue;
      EXPECT_TRUE(ranges.insert(entry.equivalence_class).second);
      int64_t count = 0;
      world.engine->ForEachBehind(entry, [&](state::WorkloadId id) {
        ++count;
        EXPECT_TRUE(behind.emplace(id, entry.equivalence_class).second) << "behind two entries";
        EXPECT_EQ(world.engine->EquivalenceClassOf(id), entry.equivalence_class);
        if (changes.all || news.contains(id) || entries_.contains(id)) return;
        const auto before = behind_.find(id);
        const bool looked_at =
            !ranges_.contains(entry.equivalence_class) ||
            (before != behind_.end() && before->second == entry.equivalence_class);
        EXPECT_TRUE(looked_at) << world.state.workload(id).name;
      });
      EXPECT_EQ(count, entry.behind);
    }
    entries_.clear();
    for (const Waiting& entry : result.waiting) entries_.insert(entry.workload);
    behind_ = std::move(behind);
    ranges_ = std::move(ranges);
  }

 private:
  std::set<state::WorkloadId> entries_;
  std::map<state::WorkloadId, uint64_t> behind_;
  std::set<uint64_t> ranges_;
};

void RemoveEvicted(FoldWorld& world, const CycleResult& result) {
  for (const Eviction& eviction : result.evictions) {
    world.state.RemovePod("ns", std::string(world.state.pod(eviction.pod).name), "");
  }
}

// `left_out`: how many were, in all.
void CompareOverCycles(const EngineOptions& options, const Shape& shape, uint64_t seed,
                       int64_t& left_out) {
  FoldWorld folds(options), looks(options);
  Fill(folds, seed, shape, false);
  Fill(looks, seed, shape, true);
  NewsChecker news;
  for (const int64_t at : {90, 100, 101, 107}) {
    SCOPED_TRACE(absl::StrCat("at ", at));
    const bool may_evict = at > 90;
    CycleResult folded = folds.engine->RunCycle(At(at), may_evict);
    for (const Waiting& waiting : folded.waiting) {
      left_out += waiting.behind;
    }
    news.Check(folds, folded);
    folded.waiting = folds.engine->ExpandEquivalents(std::move(folded.waiting));
    const CycleResult whole = looks.engine->RunCycle(At(at), may_evict);
    // Guaranteed quota is a bound over all queues.
    const bool codes = !shape.limit_departments && !shape.lending;
    const bool places = at == 90;
    ASSERT_EQ(Describe(folds, folded, codes, places), Describe(looks, whole, codes, places));
    ASSERT_EQ(folds.engine->CheckConsistency(), "");
    RemoveEvicted(folds, folded);
    RemoveEvicted(looks, whole);
    for (FoldWorld* world : {&folds, &looks}) {
      world->state.RemovePod("ns", absl::StrCat("run-0-", at - 99), "");
    }
  }
}

// `make` sets what the worlds of a test have in particular.
void CompareManySeeds(const std::function<void(uint64_t seed, EngineOptions&, Shape&)>& make) {
  int64_t left_out = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EngineOptions options;
    options.hook_on = seed % 3 == 0;
    Shape shape;
    shape.groups = seed % 4 >= 2;
    make(seed, options, shape);
    CompareOverCycles(options, shape, seed, left_out);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(left_out, 200) << "the worlds are too small to leave a workload out";
}

TEST(FoldTest, NorWhereADepthCountsWorkloads) {
  CompareManySeeds([](uint64_t seed, EngineOptions& options, Shape& shape) {
    options.allocate = seed % 7 != 0;
    options.allocate_depth = 1 + static_cast<int64_t>(seed % 9);
    if (seed % 5 == 0) options.allocate_depth = model::kUnlimited;
    options.reclaim_depth = 1 + static_cast<int64_t>(seed % 4);
    options.preempt_depth = options.consolidation_depth = 2;
    shape.limit_departments = seed % 2 == 0;
  });
}

TEST(FoldTest, NorWhereQueuesKeepQuotaOrBoundModels) {
  CompareManySeeds([](uint64_t seed, EngineOptions&, Shape& shape) {
    shape.lending = seed % 2 == 0;
    shape.models = seed % 2 == 1 || seed % 8 == 0;
  });
}

TEST(FoldTest, NorWithPreemptionDelays) {
  CompareManySeeds([](uint64_t seed, EngineOptions&, Shape& shape) {
    shape.limit_departments = seed % 2 == 0;
    shape.delays = true;
  });
}

TEST(FoldTest, ACycleWithADepthHasTwoEntriesForManyAlike) {
  EngineOptions options;
  options.hook_on = false;
  options.allocate_depth = 100;
  FoldWorld world(options);
  world.tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  world.state.UpsertNode(MakeNode("n", 4));
  for (int p = 0; p < 1000; ++p) {
    world.state.UpsertPod(PodBuilder("ns", absl::StrCat("p", p)).Gpus(1).Queue("q"));
  }
  const CycleResult result = world.engine->RunCycle(At(100));
  EXPECT_EQ(result.bindings.size(), 4u);
  ASSERT_EQ(result.waiting.size(), 2u);
  EXPECT_TRUE(result.waiting[0].tried);
  EXPECT_FALSE(result.waiting[1].tried);
  EXPECT_EQ(result.waiting[0].behind, 95);
  EXPECT_EQ(result.waiting[1].behind, 899);
}

// Delays that end at the same time, and those that are over, make no difference.
TEST(FoldTest, ACycleLooksAtOneOfManyWithAPreemptionDelay) {
  EngineOptions options;
  options.hook_on = false;
  FoldWorld world(options);
  world.tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  for (int p = 0; p < 1000; ++p) {
    PodBuilder pod("ns", absl::StrCat("p", p));
    pod.Gpus(1).Queue("q").Created(p % 2);
    if (p % 3 > 0) pod.Annotation(model::kPreemptionDelayAnnotation, "5m");
    world.state.UpsertPod(pod);
  }
  EXPECT_EQ(world.engine->RunCycle(At(100)).waiting.size(), 3u);
  EXPECT_EQ(world.engine->RunCycle(At(300)).waiting.size(), 2u);
  EXPECT_EQ(world.engine->RunCycle(At(301)).waiting.size(), 1u);
  EXPECT_EQ(world.engine->CheckConsistency(), "");
}

TEST(FoldTest, ACycleLooksAtOneOfManyGroupsAlike) {
  EngineOptions options;
  options.hook_on = false;
  FoldWorld world(options);
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
  FoldWorld world(options);
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

// Equivalent workloads share a verdict, which names the generation; and a nominated node makes a
// pod one of a kind. Nothing else of the objects changes.
TEST(FoldTest, AnotherGenerationOrANominatedNodeEndsTheEquivalence) {
  EngineOptions options;
  options.hook_on = false;
  FoldWorld world(options);
  world.tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  const auto pod = [](int p) { return PodBuilder("ns", absl::StrCat("p", p)).Gpus(1).Queue("q"); };
  for (int p = 0; p < 6; ++p) world.state.UpsertPod(pod(p));
  for (int g = 0; g < 3; ++g) {
    const std::string name = absl::StrCat("g", g);
    world.state.UpsertPodGroup(MakeGroup("ns", name, "q", 1));
    world.state.UpsertPod(PodBuilder("ns", name).Gpus(2).Group(name));
  }
  EXPECT_EQ(world.engine->RunCycle(At(100)).waiting.size(), 2u);
  model::Pod other = pod(3);
  other.meta.generation = 2;
  EXPECT_TRUE(world.state.UpsertPod(other).workloads) << "its verdict names the generation";
  EXPECT_EQ(world.engine->RunCycle(At(101)).waiting.size(), 3u);
  EXPECT_EQ(world.engine->CheckConsistency(), "");
  other = pod(4);
  other.nominated_node_name = "n";
  EXPECT_FALSE(world.state.UpsertPod(other).Any()) << "no decision depends on it";
  EXPECT_EQ(world.engine->CheckConsistency(), "");
  EXPECT_EQ(world.engine->RunCycle(At(102)).waiting.size(), 4u);
  model::PodGroup group = MakeGroup("ns", "g1", "q", 1);
  group.meta.generation = 2;
  EXPECT_TRUE(world.state.UpsertPodGroup(group).workloads);
  EXPECT_EQ(world.engine->RunCycle(At(103)).waiting.size(), 5u);
  EXPECT_EQ(world.engine->CheckConsistency(), "");
}

}  // namespace
}  // namespace fairlead::engine
