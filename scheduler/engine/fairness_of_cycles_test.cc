// What one cycle leaves to the next, and what it takes from others: the budget of searches, demand
// of pods that can never run, and bindings that are taken back before they are sent.
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using ::testing::Not;
using ::testing::StartsWith;
using verdict::Code;

// The budget does for one search a cycle. In each cycle something of queue `early` comes before
// what waits in queue `later`, and would use it.
class SmallBudgetTest : public ::testing::Test {
 protected:
  SmallBudgetTest() {
    c_.Queue("early", 100);  // its next job is a smaller part of its share
    c_.Queue("later", 2);
    c_.Queue("rich", 0);
    for (const std::string node : {"n1", "n2", "n3"}) {
      c_.Node(node, 1);
      c_.Pod(Job("v-" + node, "rich", 1).On(node));
    }
    c_.Pod(Job("first", "early", 1, 1).Preemptible(false));
  }
  static EngineOptions SmallBudget() {
    EngineOptions options;
    options.max_search_work = 0;
    return options;
  }
  Cluster c_{SmallBudget()};
};

TEST_F(SmallBudgetTest, WhatWasNotSearchedForComesFirstInTheNextCycle) {
  c_.Pod(Job("late", "later", 1, 2).Preemptible(false));
  const CycleResult before = c_.Run(100);
  EXPECT_EQ(c_.Evicted().size(), 1u);
  EXPECT_EQ(c_.CodeOf("first"), Code::kWaitingForVictims);
  EXPECT_THAT(c_.DetailsOf("late"), HasSubstr("victims not evaluated yet"));
  EXPECT_LT(before.wake_at, absl::InfiniteFuture());

  c_.Pod(Job("second", "early", 1, 3).Preemptible(false));
  c_.Run(101);
  EXPECT_EQ(c_.Evicted().size(), 1u);
  EXPECT_EQ(c_.CodeOf("late"), Code::kWaitingForVictims)
      << "what comes later is never searched for";
  EXPECT_THAT(c_.DetailsOf("second"), HasSubstr("victims not evaluated yet"));
}

// Nothing helps `hopeless`: who is on the only node that is large enough may not be evicted. When
// the budget is spent on another workload, its verdict stays as its own search has left it.
TEST_F(SmallBudgetTest, WhatIsPostponedKeepsTheVerdictOfItsLastSearch) {
  c_.Node("n4", 2);
  c_.Pod(Job("fixed", "rich", 2).Preemptible(false).On("n4"));
  c_.Pod(Job("hopeless", "later", 2, 2).Preemptible(false));
  c_.Run(100);
  EXPECT_EQ(c_.Evicted().size(), 1u);
  EXPECT_THAT(c_.DetailsOf("hopeless"), HasSubstr("not evaluated yet"));
  c_.Run(101);
  const std::string answer = c_.DetailsOf("hopeless");
  EXPECT_THAT(answer, Not(HasSubstr("not evaluated yet")));
  EXPECT_THAT(answer, Not(IsEmpty()));

  c_.Pod(Job("second", "early", 1, 3).Preemptible(false));
  c_.Run(102);
  EXPECT_EQ(c_.Evicted().size(), 1u);
  EXPECT_EQ(c_.DetailsOf("hopeless"), answer);
}

// No node is large enough, and the budget is spent on what comes after it.
TEST_F(SmallBudgetTest, WhatFitsNoNodeEvenIfItIsEmptyIsNotSearchedFor) {
  c_.Pod(Job("huge", "early", 2, 0).Preemptible(false));
  c_.Run(100);
  EXPECT_EQ(c_.CodeOf("first"), Code::kWaitingForVictims);
  EXPECT_EQ(c_.CodeOf("huge"), Code::kInsufficientCapacity);
  EXPECT_THAT(c_.DetailsOf("huge"), IsEmpty());
  // Until there is such a node.
  c_.Node("n4", 2);
  c_.Pod(Job("v-n4", "rich", 2).On("n4"));
  c_.Run(101);
  EXPECT_EQ(c_.CodeOf("huge"), Code::kWaitingForVictims);
}

TEST(DemandTest, APodThatCanNeverRunTakesNoLimitFromOthers) {
  Cluster c;  // the hook is on, there is no node yet
  c.Queue("q", 2, 2);
  c.engine().SetOfferedNodes({{MakeNode("offer", 8)}});
  c.Pod(Job("typo", "q", 2, 1).NodeSelector("gpu", "h1OO"));
  c.Pod(Job("next", "q", 2, 2));
  const CycleResult& result = c.Run();
  EXPECT_EQ(c.CodeOf("next"), Code::kInsufficientCapacity);
  ASSERT_NE(testing::FindWaiting(c.state(), result, "next"), nullptr);
  EXPECT_TRUE(testing::FindWaiting(c.state(), result, "next")->wants_nodes);
  // The hook says that no instance type fits.
  EXPECT_TRUE(testing::FindWaiting(c.state(), result, "typo")->wants_nodes);
}

// A pod that is moved is created again: nothing can wait to be near it.
TEST(ConsolidationTest, ThePodThatOthersHaveToBeNearIsNotMoved) {
  const auto labelled = [](model::Pod pod, const char* app) {
    pod.meta.labels.Set("app", app);
    return pod;
  };
  const auto evicted = [&](const char* key, const char* app_of_fixed) {
    EngineOptions options;
    options.consolidation_min_runtime = absl::ZeroDuration();
    Cluster c(options);
    c.Queue("q", 20);
    const std::map<std::string, std::pair<const char*, int64_t>> nodes = {
        {"n1", {"a", 4}}, {"n2", {"b", 4}}, {"n3", {"b", 2}}};
    for (const auto& [name, zone_and_gpus] : nodes) {
      model::Node node = MakeNode(name, zone_and_gpus.second);
      node.meta.labels.Set("zone", zone_and_gpus.first);
      node.meta.labels.Set("region", "r");
      c.state().UpsertNode(node);
    }
    c.Pod(labelled(Job("partner", "q", 1, 1).On("n1"), "partner"));
    if (app_of_fixed != nullptr) {
      c.Pod(labelled(Job("fixed", "q", 1, 1).Preemptible(false).On("n2"), app_of_fixed));
    }
    model::Pod near = Job("near", "q", 4, 2);
    near.spec.pod_affinity = {model::testing::AppTerm("partner", key)};
    c.Pod(near);
    c.Run();
    return c.Evicted();
  };
  // n2 would do, if the partner went to zone b; n1 would, if it went anywhere.
  EXPECT_THAT(evicted("zone", nullptr), IsEmpty());
  EXPECT_THAT(evicted("region", "other"), IsEmpty());
  // Another partner stays.
  EXPECT_THAT(evicted("region", "partner"), ElementsAre(StartsWith("consolidation:partner>")));
}

// The hook has said that it can provision nothing for the first one.
TEST(DemandTest, WhatTheHookCannotServeTakesNoLimitFromOthers) {
  Cluster c;
  c.Queue("q", 2, 2);
  c.Pod(Job("first", "q", 2, 1));
  c.Pod(Job("large", "q", 3, 1));
  c.Pod(Job("next", "q", 1, 2));
  c.Pod(Job("last", "q", 2, 3));
  CycleResult cycle;
  const auto run = [&] { cycle = c.Run(); };
  const auto find = [&](const std::string& name) {
    return *testing::FindWaiting(c.state(), cycle, name);
  };
  run();
  EXPECT_FALSE(find("first").uncharged);
  EXPECT_NE(find("first").demand_kind, 0u);
  EXPECT_EQ(c.CodeOf("next"), Code::kQueueLimitReached);

  const absl::flat_hash_set<uint64_t> unservable = {find("first").demand_kind};
  c.engine().SetUnservable(&unservable);
  run();
  EXPECT_TRUE(find("first").wants_nodes);
  EXPECT_TRUE(find("first").uncharged);
  EXPECT_TRUE(find("next").wants_nodes);
  EXPECT_FALSE(find("next").uncharged);
  // It is asked for in its place: beside what is charged before it.
  EXPECT_EQ(c.CodeOf("last"), Code::kQueueLimitReached);
  EXPECT_EQ(c.VerdictOf("last")->queue_block->promised, 1000);
  EXPECT_EQ(c.CodeOf("large"), Code::kQueueLimitReached);
  EXPECT_EQ(c.VerdictOf("large")->queue_block->promised, 0);

  c.engine().SetUnservable(nullptr);
  run();
  EXPECT_FALSE(find("first").uncharged);
  EXPECT_EQ(c.CodeOf("next"), Code::kQueueLimitReached);
}

TEST(DemandTest, WithoutTheHookItComesAfterTheOthersAndInUseIsWhatIsInUse) {
  EngineOptions options;
  options.hook_on = false;
  Cluster c(options);
  c.Queue("q", 2, 2);
  c.Queue("other", 0);
  c.Node("n", 2);
  c.Pod(Job("full", "other", 2).Preemptible(false).On("n"));
  c.Pod(Job("typo", "q", 2, 1).NodeSelector("gpu", "h1OO"));
  c.Pod(Job("next", "q", 2, 2));
  c.Run();
  EXPECT_EQ(c.CodeOf("next"), Code::kInsufficientCapacity);
  ASSERT_EQ(c.CodeOf("typo"), Code::kQueueLimitReached);
  EXPECT_EQ(c.VerdictOf("typo")->queue_block->used, 0);
  EXPECT_EQ(c.VerdictOf("typo")->queue_block->promised, 2000);
}

TEST(DemandTest, WithoutTheHookAMistypedPodHoldsNoOtherBelowALimit) {
  EngineOptions options;
  options.hook_on = false;
  Cluster c(options);
  c.Queue("q", 2, 2);
  c.Pod(Job("typo", "q", 2, 1).NodeSelector("gpu", "h1OO"));
  c.Pod(Job("next", "q", 2, 2));
  c.Run();
  // There is no node: both kinds could be the mistyped one.
  EXPECT_EQ(c.CodeOf("typo"), Code::kInsufficientCapacity);
  EXPECT_EQ(c.CodeOf("next"), Code::kInsufficientCapacity);
}

TEST(DemandTest, WithoutTheHookOneKindIsNotDemandedBeyondALimit) {
  EngineOptions options;
  options.hook_on = false;
  Cluster c(options);
  c.Queue("q", 2, 2);
  for (int i = 0; i < 5; ++i) {
    c.Pod(Job(absl::StrCat("typo-", i), "q", 1, i).NodeSelector("gpu", "h1OO"));
  }
  c.Run();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(c.CodeOf(absl::StrCat("typo-", i)),
              i < 2 ? Code::kInsufficientCapacity : Code::kQueueLimitReached)
        << i;
  }
}

TEST(DepthTest, WhatALimitHoldsSaysSoBeyondTheDepth) {
  EngineOptions options;
  options.allocate_depth = 1;
  Cluster c(options);
  c.Queue("full", 2, 2);
  c.Queue("free", 2, 8);
  c.Node("n", 2);
  c.Pod(Job("runs", "full", 2).On("n"));
  for (const std::string queue : {"full", "free"}) {
    c.Pod(Job(queue + "-1", queue, 1, 1));
    c.Pod(Job(queue + "-2", queue, 2, 2));
  }
  c.Run();
  EXPECT_EQ(c.CodeOf("full-1"), Code::kQueueLimitReached);
  EXPECT_EQ(c.CodeOf("full-2"), Code::kQueueLimitReached);
  EXPECT_EQ(c.VerdictOf("full-2")->queue_block->requested, 2000);
  EXPECT_EQ(c.CodeOf("free-2"), Code::kInsufficientCapacity);
  EXPECT_THAT(c.DetailsOf("free-2"), HasSubstr("queueDepth.allocate"));
}

TEST(ImpossibleTest, WhatNoNodeCanTakeSaysSoAndNothingElse) {
  for (const bool hook_on : {false, true}) {
    EngineOptions options;
    options.hook_on = hook_on;
    Cluster c(options);
    c.Queue("q", 8);
    c.Node("n", 8);
    model::PersistentVolumeClaim data;
    data.meta.ns = "ns";
    data.meta.name = "data";
    data.meta.deletion = model::testing::At(1);
    c.state().UpsertVolumeObject(data);
    model::PersistentVolumeClaim scratch;  // of no pod
    scratch.meta.ns = "ns";
    scratch.meta.name = "ephemeral-scratch";
    c.state().UpsertVolumeObject(scratch);
    model::Pod claims = Job("claims", "q", 1);
    claims.spec.volume_claims = {{"data"}};
    c.Pod(claims);
    model::Pod apart = Job("apart", "q", 1);
    apart.spec.pod_anti_affinity = {model::testing::AppTerm("web", model::kHostnameLabel)};
    apart.spec.pod_anti_affinity[0].namespace_selector =
        model::LabelSelector{false, {{"team", model::SelectorOperator::kExists, {}}}};
    c.Pod(apart);
    c.Group(model::testing::MakeGroup("ns", "gang", "q", 1));
    model::Pod member = testing::Member("member", "gang");
    member.spec.volume_claims = {{"data"}};
    c.Pod(member);
    model::Pod ephemeral = Job("ephemeral", "q", 1);
    ephemeral.spec.volume_claims = {{"scratch", /*ephemeral=*/true}};
    c.Pod(ephemeral);
    model::Pod slices = Job("slices", "q", 0);
    slices.spec.legacy_mig = {{"nvidia.com/mig-1g.10gb", 1}};
    c.Pod(slices);
    const CycleResult& result = c.Run();
    EXPECT_THAT(c.Bound(), IsEmpty());
    const std::string deleted = "spec.volumes: persistentvolumeclaim \"data\" is being deleted";
    const std::pair<const char*, std::string> expected[] = {
        {"claims", deleted},
        {"gang", "pod member: " + deleted},
        {"ephemeral",
         "spec.volumes: PVC ns/ephemeral-scratch was not created for pod ns/ephemeral"},
        {"apart", "namespaceSelector"},
        {"slices", "is not placed any more"},
    };
    for (const auto& [name, subject] : expected) {
      SCOPED_TRACE(name);
      ASSERT_EQ(c.CodeOf(name), Code::kInvalidRequest);
      EXPECT_THAT(c.VerdictOf(name)->subject, HasSubstr(subject));
      EXPECT_FALSE(testing::FindWaiting(c.state(), result, name)->wants_nodes);
    }
  }
}

// `low` is bound to the free GPU, `high` needs it and that of `runs`: the binding is not sent.
TEST(WithdrawTest, ABindingOfThisCycleGivesWayToWhatComesFirst) {
  Cluster c;
  c.Queue("q", 2);
  c.Node("n", 2);
  c.Pod(Job("runs", "q", 1, 1).On("n"));
  c.Pod(Job("low", "q", 1, 2));
  c.Pod(Job("high", "q", 2, 3).Priority("high", 1000));
  const CycleResult& result = c.Run();
  EXPECT_THAT(c.Bound(), IsEmpty());
  ASSERT_EQ(result.withdrawn.size(), 1u);
  EXPECT_EQ(c.state().pod(result.withdrawn[0].pod).name, "low");
  EXPECT_THAT(c.Evicted(), ElementsAre("preempt:runs"));
  EXPECT_THAT(c.Promised(), ElementsAre("high>n"));
  EXPECT_EQ(c.CodeOf("low"), Code::kInsufficientCapacity);
  EXPECT_THAT(c.DetailsOf("low"), HasSubstr("its place went to workload ns/high"));

  c.state().RemovePod("ns", "runs", "");
  c.Run(101);
  EXPECT_THAT(c.Bound(), ElementsAre("high>n"));
}

}  // namespace
}  // namespace fairlead::engine
