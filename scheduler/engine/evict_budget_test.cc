// Which pods are evicted if PodDisruptionBudgets protect some and the API server has refused
// others: case by case, and against a search through all sets of victims on small clusters.
#include <functional>
#include <map>
#include <ostream>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/budget_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeBudget;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;
using ::testing::UnorderedElementsAreArray;
using verdict::Code;

PodBuilder Low(absl::string_view name, absl::string_view node, int64_t created) {
  return Job(name, "q", 1, created).Priority("low", 10).On(node);
}

PodBuilder High(absl::string_view name, int64_t gpus = 1) {
  return Job(name, "q", gpus, 50).Priority("high", 60);
}

// Two of low priority on a full node, the younger one, b, of app "web".
void FullNode(Cluster& c) {
  c.Queue("q", 2);
  c.Node("n1", 2);
  c.Pod(Low("a", "n1", 1));
  c.Pod(Low("b", "n1", 2).Label("app", "web"));
}

TEST(EvictBudgetTest, TheOlderOneGoesWhereABudgetProtectsTheYounger) {
  for (const auto& [allowed, victim] : {std::pair{0, "preempt:a"}, std::pair{1, "preempt:b"}}) {
    SCOPED_TRACE(absl::StrCat("the budget allows ", allowed));
    Cluster c;
    FullNode(c);
    c.Pod(High("high"));
    c.Budget(MakeBudget("web", "web", allowed));
    c.Run();
    EXPECT_THAT(c.Evicted(), ElementsAre(victim));
  }
}

TEST(EvictBudgetTest, APodThatIsNotReadyGoesWithoutTheBudgetsLeave) {
  for (const auto& [ready, victim] :
       {std::pair{true, "preempt:a"}, std::pair{false, "preempt:b"}}) {
    SCOPED_TRACE(absl::StrCat("ready: ", ready));
    Cluster c;
    FullNode(c);
    PodBuilder b = Low("b", "n1", 2);
    b.Label("app", "web");
    if (ready) b.Ready();
    c.Pod(b);
    c.Pod(High("high"));
    model::PodDisruptionBudget budget = MakeBudget("web", "web", 0);
    budget.always_allow = true;
    c.Budget(budget);
    const CycleResult& result = c.Run();
    ASSERT_THAT(c.Evicted(), ElementsAre(victim));
    EXPECT_FALSE(result.evictions[0].against_budget);
  }
}

// One budget, and a pod of high priority that needs capacity in queue q: which pods are evicted?
struct ChoiceCase {
  const char* name;
  int64_t quota;  // of q
  std::vector<std::pair<const char*, int64_t>> nodes;
  int32_t gang_min;  // of gang "g", created at 9
  std::vector<model::Pod> running;
  struct {
    const char* app;  // empty: all
    int64_t allowed;
  } budget;
  int64_t wanted_gpus;
  std::vector<std::string> evicted;  // with "!" if marked as against the budget
  friend void PrintTo(const ChoiceCase& row, std::ostream* out) { *out << row.name; }
};

std::vector<ChoiceCase> Choices() {
  const auto web = [](PodBuilder pod) { return pod.Label("app", "web"); };
  return {
      // Only one of web may go: the first one reached, of those that free as much.
      {"VictimsOfOneSearchAreCountedTogether",
       4,
       {{"n1", 4}},
       0,
       {Low("a", "n1", 1), web(Low("web0", "n1", 2)), web(Low("web1", "n1", 3)),
        web(Low("web2", "n1", 4))},
       {"web", 1},
       2,
       {"preempt:a", "preempt:web2"}},
      {"OnlyWhereNoOtherChoiceIsThereTheEvictionApiDecides",
       2,
       {{"n1", 2}},
       0,
       {Low("a", "n1", 1), web(Low("b", "n1", 2))},
       {"web", 0},
       2,
       {"preempt:a", "preempt:b!"}},
      {"ReclaimAgainstABudgetComesAfterPreemptionThatRespectsIt",
       1,
       {{"n1", 2}},
       0,
       {Low("low", "n1", 1), web(Job("r", "rich", 1, 2).On("n1"))},
       {"web", 0},
       1,
       {"preempt:low"}},
      {"ABlockOfAGangIsSparedAsAWhole",
       4,
       {{"n1", 4}},
       2,
       {Low("a", "n1", 1), Low("b", "n1", 2), web(Member("g-0", "g").On("n1")),
        Member("g-1", "g").On("n1").Label("app", "x")},
       {"web", 0},
       2,
       {"preempt:a", "preempt:b"}},
      {"AGangThatKeepsAnExtraPodKeepsItsCore",
       4,
       {{"n1", 2}, {"n2", 1}},
       1,
       {Member("g-0", "g").On("n1").Created(1), web(Member("g-1", "g").On("n1").Created(2)),
        Low("a", "n2", 1)},
       {"web", 0},
       1,
       {"preempt:a"}},
      {"PodsThatDoNotRunYetNeedNoBudget",
       1,
       {{"n1", 1}},
       0,
       {Low("b", "n1", 2).On("n1", model::PodPhase::kPending)},
       {"", 0},
       1,
       {"preempt:b"}},
      // The younger ones of web use up the budget on n1, where they free too little.
      {"ProtectedPodsOnOneNodeLeaveTheRoomOfAnother",
       8,
       {{"n1", 3}, {"n2", 2}},
       0,
       {Job("keep", "q", 2, 1).Priority("high", 60).On("n1"), web(Low("web1", "n1", 9)),
        web(Low("web2", "n2", 3).Gpus(2))},
       {"web", 1},
       2,
       {"preempt:web2"}},
  };
}

class EvictBudgetChoice : public ::testing::TestWithParam<ChoiceCase> {};

INSTANTIATE_TEST_SUITE_P(EvictBudgetTest, EvictBudgetChoice, ::testing::ValuesIn(Choices()),
                         [](const auto& row) { return row.param.name; });

TEST_P(EvictBudgetChoice, WhichPodsGoAndWhichAreMarked) {
  const ChoiceCase& row = GetParam();
  Cluster c;
  c.Queue("q", row.quota);
  c.Queue("rich", 0);
  for (const auto& [node, gpus] : row.nodes) c.Node(node, gpus);
  if (row.gang_min > 0) c.Group(PreemptibleGroup("g", "q", row.gang_min, 9));
  for (const model::Pod& pod : row.running) c.Pod(pod);
  c.Pod(High("high", row.wanted_gpus));
  c.Budget(MakeBudget("budget", row.budget.app, row.budget.allowed));
  const CycleResult& result = c.Run();
  std::vector<std::string> evicted;
  for (const Eviction& eviction : result.evictions) {
    evicted.push_back(absl::StrCat(eviction.action, ":", c.state().pod(eviction.pod).name,
                                   eviction.against_budget ? "!" : ""));
    EXPECT_EQ(eviction.set, result.evictions[0].set);
  }
  EXPECT_THAT(evicted, UnorderedElementsAreArray(row.evicted));
}

TEST(EvictBudgetTest, SearchesOfOneCycleAndEvictionsInFlightCountDown) {
  Cluster c;
  FullNode(c);
  c.Budget(MakeBudget("all", "", 1));
  c.Pod(High("high1"));
  c.Pod(High("high2"));
  const CycleResult& result = c.Run();
  ASSERT_EQ(result.evictions.size(), 2u);
  EXPECT_FALSE(result.evictions[0].against_budget);
  EXPECT_TRUE(result.evictions[1].against_budget) << "no pod is left that the budget lets go";
  EXPECT_LT(result.evictions[0].set, result.evictions[1].set);
}

TEST(EvictBudgetTest, PodsOfSeveralBudgetsAreNeverVictimsAndTheVerdictSaysSo) {
  Cluster c;
  c.Queue("q", 1);
  c.Node("n1", 1);
  c.Pod(Low("b", "n1", 2).Label("app", "web"));
  c.Pod(High("high"));
  c.Budget(MakeBudget("one", "web", 5));
  c.Budget(MakeBudget("two", "", 5));
  c.Run();
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_THAT(c.DetailsOf("high"), HasSubstr("preemption, possible victims: 1 covered by several"));
}

TEST(EvictBudgetTest, ConsolidationMovesNoPodAgainstABudget) {
  for (const int64_t allowed : {0, 1}) {
    SCOPED_TRACE(allowed);
    Cluster c;
    c.Queue("q", 8);
    for (const char* node : {"n1", "n2"}) {
      c.Node(node, 4);
      c.Pod(Job(absl::StrCat("j-", node), "q", 1, 1).On(node));
    }
    c.Pod(Job("big", "q", 4, 3));
    c.Budget(MakeBudget("all", "", allowed));
    c.Run();
    EXPECT_EQ(c.Evicted().size(), static_cast<size_t>(allowed));
    if (allowed > 0) continue;
    EXPECT_EQ(c.CodeOf("big"), Code::kInsufficientCapacity);
    EXPECT_THAT(c.DetailsOf("big"), HasSubstr("consolidation, possible victims: 2 protected by "
                                              "PodDisruptionBudgets (ns/all)"));
  }
}

// ---- refusals

// One pod on the one GPU, and a pod of high priority that needs it.
void TwoForOneGpu(Cluster& c) {
  c.Queue("q", 1);
  c.Node("n1", 1);
  c.Pod(Low("a", "n1", 1));
  c.Pod(High("high"));
}

// The API server does not evict it.
void Refuse(Cluster& c, absl::string_view name, absl::Time until, bool by_budget) {
  const state::PodId pod = c.state().FindPod("ns", name);
  c.state().ForgetEviction(pod);
  c.engine().OnEvictionRefused(pod, until, by_budget, At(100));
}

TEST(EvictRefusalTest, APodThatWasRefusedIsLeftAloneUntilItsBackOffEnds) {
  Cluster c;
  TwoForOneGpu(c);
  c.Run(100);
  ASSERT_THAT(c.Evicted(), ElementsAre("preempt:a"));
  Refuse(c, "a", At(105), /*by_budget=*/false);
  const CycleResult& again = c.Run(101);
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_EQ(c.CodeOf("high"), Code::kInsufficientCapacity) << "nodes would help it";
  EXPECT_THAT(c.DetailsOf("high"),
              HasSubstr("preemption, possible victims: 1 refused by the API server"));
  EXPECT_EQ(again.wake_at, At(105));
  c.Run(104);
  EXPECT_THAT(c.Evicted(), IsEmpty());
  c.Run(105);
  EXPECT_THAT(c.Evicted(), ElementsAre("preempt:a"));
}

TEST(EvictRefusalTest, ABudgetThatSaidNoIsNotAskedAgainBeforeItMoves) {
  Cluster c;
  TwoForOneGpu(c);
  model::PodDisruptionBudget budget = MakeBudget("b", "", 0);
  c.Budget(budget);
  const CycleResult first = c.Run(100);
  ASSERT_EQ(first.evictions.size(), 1u);
  EXPECT_TRUE(first.evictions[0].against_budget);
  Refuse(c, "a", At(101), /*by_budget=*/true);
  EXPECT_EQ(c.Run(5000).wake_at, absl::InfiniteFuture());
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_THAT(c.DetailsOf("high"),
              HasSubstr("preemption, possible victims: 1 refused by PodDisruptionBudget ns/b"));
  // It moves, and says no still: asked once more. It moves and says yes: taken.
  budget.current_healthy = 1;
  c.Budget(budget);
  c.Run(5001);
  EXPECT_THAT(c.Evicted(), ElementsAre("preempt:a"));
  Refuse(c, "a", At(6000), /*by_budget=*/true);
  budget.disruptions_allowed = 1;
  c.Budget(budget);
  const CycleResult& allowed = c.Run(5002);
  ASSERT_THAT(c.Evicted(), ElementsAre("preempt:a")) << "at once, whatever the back-off says";
  EXPECT_FALSE(allowed.evictions[0].against_budget);
}

TEST(EvictRefusalTest, AnotherVictimIsTakenInstead) {
  Cluster c;
  FullNode(c);
  c.Pod(High("high"));
  const state::PodId b = c.state().FindPod("ns", "b");
  c.engine().OnEvictionRefused(b, At(200), /*by_budget=*/false, At(100));
  c.Run(100);
  EXPECT_THAT(c.Evicted(), ElementsAre("preempt:a"));
}

TEST(EvictRefusalTest, AStaleGangIsNotAskedAgainAtOnceEither) {
  Cluster c;
  c.Queue("q", 8);
  c.Node("n1", 4);
  model::PodGroup group = MakeGroup("ns", "g", "q", 3);
  group.staleness_grace_period = absl::ZeroDuration();
  c.Group(group);
  c.Pod(Member("g-0", "g").On("n1"));
  c.Run(100);
  ASSERT_EQ(c.Evicted().size(), 1u);
  Refuse(c, "g-0", At(130), /*by_budget=*/false);
  EXPECT_EQ(c.Run(101).wake_at, At(130));
  EXPECT_THAT(c.Evicted(), IsEmpty());
  c.Run(130);
  EXPECT_EQ(c.Evicted().size(), 1u);
}

// ---- messages, and the least loss

TEST(EvictMessageTest, NamesActionWorkloadAndTheNumbers) {
  Cluster c;
  c.Queue("research", 1);
  c.Queue("prod", 2);
  c.Node("n1", 3);
  for (int i = 0; i < 3; ++i) c.Pod(Job(absl::StrCat("r", i), "research", 1, i).On("n1"));
  c.Pod(Job("p", "prod", 1, 9));
  const CycleResult& result = c.Run();
  ASSERT_EQ(result.evictions.size(), 1u);
  EXPECT_EQ(
      result.evictions[0].message,
      "Evicted (reclaim) for workload ns/p of queue prod: GPUs held/fair share: queue research "
      "3/2, queue prod 0/1");
}

TEST(EvictMessageTest, PreemptionNamesBothPriorities) {
  Cluster c;
  FullNode(c);
  c.Pod(High("high"));
  const CycleResult& result = c.Run();
  ASSERT_EQ(result.evictions.size(), 1u);
  EXPECT_EQ(result.evictions[0].message,
            "Evicted (preempt) for workload ns/high of queue q: its priority is 60, and that of "
            "ns/b in the same queue 10");
}

TEST(LostWorkTest, OfEqualVictimsTheLastStartedGoes) {
  for (const bool turned : {false, true}) {
    Cluster c;
    c.Queue("q", 2);
    c.Node("n1", 2);
    const char* const early = turned ? "b" : "a";
    const char* const late = turned ? "a" : "b";
    c.Pod(Low(early, "n1", 1).Annotation(model::kLastStartAnnotation, "2026-01-01T00:00:00Z"));
    c.Pod(Low(late, "n1", 1).Annotation(model::kLastStartAnnotation, "2026-01-01T08:00:00Z"));
    c.Pod(High("high"));
    c.Run();
    EXPECT_THAT(c.Evicted(), ElementsAre(absl::StrCat("preempt:", late)));
  }
}

// ---- property

struct Small {
  struct Victim {
    int64_t node, gpus;
    int64_t budget;  // -1: none; -2: two of them
  };
  std::vector<Victim> victims;
  std::vector<int64_t> allowed;    // by budget
  std::vector<int64_t> free_gpus;  // by node
  int64_t wanted = 0;
};

// Some node has a set of victims that its budgets allow and that makes room.
bool SomeChoiceRespectsBudgets(const Small& s) {
  for (uint32_t set = 0; set < 1U << s.victims.size(); ++set) {
    std::vector<int64_t> left = s.allowed;
    std::vector<int64_t> capacity = s.free_gpus;
    bool fine = true;
    for (size_t i = 0; i < s.victims.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      const Small::Victim& victim = s.victims[i];
      capacity[static_cast<size_t>(victim.node)] += victim.gpus;
      if (victim.budget == -2) fine = false;
      if (victim.budget >= 0) fine = fine && --left[static_cast<size_t>(victim.budget)] >= 0;
    }
    for (const int64_t gpus : capacity) {
      if (fine && gpus >= s.wanted) return true;
    }
  }
  return false;
}

using Below = std::function<int64_t(uint32_t)>;  // a draw

// Nodes partly full of victims, one of high priority, and budgets of which some victims have two.
Small MakeSmall(Cluster& c, const Below& below) {
  Small s;
  c.Queue("q", 100);
  const int64_t budgets = 1 + below(3);
  for (int64_t b = 0; b < budgets; ++b) {
    s.allowed.push_back(below(3));
    c.Budget(MakeBudget(absl::StrCat("b", b), absl::StrCat("app", b), s.allowed.back()));
  }
  for (const char* name : {"second", "third"}) c.Budget(MakeBudget(name, "two", 9));
  const int64_t nodes = 1 + below(3);
  for (int64_t n = 0; n < nodes; ++n) {
    const std::string node = absl::StrCat("n", n);
    const int64_t gpus = 2 + below(4);
    c.Node(node, gpus);
    int64_t left = gpus;
    while (left > 0 && s.victims.size() < 10 && below(5) != 0) {
      const int64_t size = std::min(left, 1 + below(2));
      const int64_t budget = below(8) == 0 ? -2 : below(static_cast<uint32_t>(budgets) + 1) - 1;
      PodBuilder pod = Job(absl::StrCat("v", s.victims.size()), "q", size, below(20));
      pod.Priority("low", 10).On(node);
      if (budget == -2) pod.Label("app", "two");
      if (budget >= 0) pod.Label("app", absl::StrCat("app", budget));
      c.Pod(pod);
      s.victims.push_back({n, size, budget});
      left -= size;
    }
    s.free_gpus.push_back(left);
  }
  s.wanted = 1 + below(4);
  c.Pod(High("high", s.wanted));
  return s;
}

// Whether these evictions break a budget.
bool BreaksABudget(const Small& s, const Cluster& c, const std::vector<Eviction>& evictions) {
  std::vector<int64_t> left = s.allowed;
  bool broken = false;
  for (const Eviction& eviction : evictions) {
    const std::string& name = c.state().pod(eviction.pod).name;
    const int64_t budget = s.victims[static_cast<size_t>(std::stoi(name.substr(1)))].budget;
    EXPECT_NE(budget, -2) << name << " could never be evicted";
    if (budget >= 0) broken = --left[static_cast<size_t>(budget)] < 0 || broken;
  }
  return broken;
}

TEST(EvictBudgetProperty, NoBudgetIsBrokenWhereAnyChoiceRespectsAll) {
  int respected = 0, against = 0, none = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    EngineOptions options;
    options.consolidation = false;
    Cluster c(options);
    const Small s =
        MakeSmall(c, [&](uint32_t bound) { return static_cast<int64_t>(random() % bound); });
    const CycleResult& result = c.Run();
    const bool broken = BreaksABudget(s, c, result.evictions);
    EXPECT_EQ(broken, std::any_of(result.evictions.begin(), result.evictions.end(),
                                  [](const Eviction& e) { return e.against_budget; }));
    if (SomeChoiceRespectsBudgets(s)) {
      EXPECT_FALSE(broken) << absl::StrJoin(c.Evicted(), " ");
      EXPECT_EQ(c.Bound().size() + c.Promised().size(), 1u) << "no victim was found";
      respected += result.evictions.empty() ? 0 : 1;
    } else if (broken) {
      ++against;
    } else {
      ++none;
      EXPECT_THAT(result.evictions, IsEmpty());
    }
  }
  // Each outcome was there often enough to mean something.
  EXPECT_GT(respected, 50);
  EXPECT_GT(against, 20);
  EXPECT_GT(none, 20);
}

// Gangs on several nodes, many searches: what is not marked as against a budget never breaks one.
TEST(EvictBudgetProperty, UnmarkedVictimsStayWithinTheirBudgets) {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    auto below = [&](uint32_t bound) { return static_cast<int64_t>(random() % bound); };
    Cluster c;
    c.Queue("q", 3);
    c.Queue("rich", 0);
    std::map<std::string, int64_t> left;
    for (int b = 0; b < 3; ++b) {
      left[absl::StrCat("app", b)] = below(4);
      c.Budget(
          MakeBudget(absl::StrCat("b", b), absl::StrCat("app", b), left[absl::StrCat("app", b)]));
    }
    for (int n = 0; n < 4; ++n) c.Node(absl::StrCat("n", n), 3);
    for (int g = 0; g < 4; ++g) {
      const std::string name = absl::StrCat("g", g);
      const char* const queue = g % 2 == 0 ? "rich" : "q";
      c.Group(PreemptibleGroup(name, queue, static_cast<int32_t>(1 + below(3)), g));
      for (int i = 0; i < 3; ++i) {
        c.Pod(Member(absl::StrCat(name, "-", i), name)
                  .On(absl::StrCat("n", (g + i) % 4))
                  .Label("app", absl::StrCat("app", below(4))));
      }
    }
    for (int i = 0; i < 4; ++i) c.Pod(High(absl::StrCat("high", i), 1 + below(3)));
    const CycleResult& result = c.Run();
    for (const Eviction& eviction : result.evictions) {
      ++evictions;
      if (eviction.against_budget) continue;
      const std::string app(c.state().pod(eviction.pod).labels.Get("app"));
      const auto budget = left.find(app);
      if (budget != left.end()) {
        EXPECT_GE(--budget->second, 0) << c.state().pod(eviction.pod).name;
      }
    }
  }
  EXPECT_GT(evictions, 100);
}

}  // namespace
}  // namespace fairlead::engine
