// Which budgets cover a pod, and what is left of them while the API server's numbers lag behind.
#include "scheduler/state/disruption_budgets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/budget_builders.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

using model::testing::MakeBudget;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NamesOf(const DisruptionBudgets& budgets, const BudgetIds& ids) {
  std::vector<std::string> names;
  for (const BudgetId id : ids) names.push_back(budgets.Name(id));
  return names;
}

model::StringMap App(absl::string_view app) {
  model::StringMap labels;
  labels.Set("app", app);
  return labels;
}

TEST(DisruptionBudgetsTest, CoversByNamespaceAndSelectorAlone) {
  DisruptionBudgets budgets;
  budgets.Upsert(MakeBudget("web", "web", 1));
  budgets.Upsert(MakeBudget("all", "", 1));
  model::PodDisruptionBudget none = MakeBudget("none", "", 1);
  none.selector = {};  // absent
  budgets.Upsert(none);
  model::PodDisruptionBudget elsewhere = MakeBudget("web", "web", 1);
  elsewhere.meta.ns = "other";
  budgets.Upsert(elsewhere);
  EXPECT_THAT(NamesOf(budgets, budgets.Covering("ns", App("web"))),
              ElementsAre("ns/all", "ns/web"));
  EXPECT_THAT(NamesOf(budgets, budgets.Covering("ns", App("db"))), ElementsAre("ns/all"));
  EXPECT_THAT(NamesOf(budgets, budgets.Covering("other", App("db"))), IsEmpty());
  EXPECT_THAT(NamesOf(budgets, budgets.Covering("n", App("web"))), IsEmpty());
}

TEST(DisruptionBudgetsTest, WhatCannotBeReadSparesRatherTooMany) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget broken = MakeBudget("broken", "web", 0);
  broken.invalid = "spec.selector.matchExpressions[0].operator: unknown operator";
  budgets.Upsert(broken);
  EXPECT_THAT(NamesOf(budgets, budgets.Covering("ns", App("db"))), ElementsAre("ns/broken"));
}

TEST(DisruptionBudgetsTest, AllowsNothingBeforeItsSpecWasSeenNorBelowZero) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget budget = MakeBudget("b", "", 3);
  budget.meta.generation = 2;
  budgets.Upsert(budget);
  const BudgetId id = budgets.Covering("ns", {}).front();
  EXPECT_EQ(budgets.Left(id), 0);
  budget.observed_generation = 2;
  EXPECT_TRUE(budgets.Upsert(budget));
  EXPECT_EQ(budgets.Left(id), 3);
  budget.disruptions_allowed = -1;
  budgets.Upsert(budget);
  EXPECT_EQ(budgets.Left(id), 0);
}

TEST(DisruptionBudgetsTest, UpsertTellsWhatDecisionsRead) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget budget = MakeBudget("b", "web", 1);
  EXPECT_TRUE(budgets.Upsert(budget));
  const BudgetId id = budgets.Covering("ns", App("web")).front();
  const uint64_t version = budgets.Version(id);
  budget.meta.resource_version = "2";
  EXPECT_FALSE(budgets.Upsert(budget));
  EXPECT_EQ(budgets.Version(id), version);
  budget.current_healthy = 7;
  EXPECT_TRUE(budgets.Upsert(budget));
  EXPECT_GT(budgets.Version(id), version);
  EXPECT_FALSE(budgets.Remove("ns", "b", "another uid"));
  EXPECT_TRUE(budgets.Remove("ns", "b", budget.meta.uid));
  EXPECT_TRUE(budgets.empty());
}

TEST(DisruptionBudgetsTest, AnEvictionInFlightIsSpentOnce) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget budget = MakeBudget("b", "", 2);
  budgets.Upsert(budget);
  const BudgetIds covering = budgets.Covering("ns", {});
  budgets.Charge("u1", "p1", covering);
  budgets.Charge("u1", "p1", covering);
  EXPECT_EQ(budgets.Left(covering[0]), 1);
  // The server let it through: its status has the pod and one less.
  budget.disruptions_allowed = 1;
  budget.disrupted_pods = {"p1"};
  budgets.Upsert(budget);
  EXPECT_EQ(budgets.Left(covering[0]), 1);
  EXPECT_EQ(budgets.in_flight(), 0u);
}

TEST(DisruptionBudgetsTest, ARefusedEvictionIsGivenBack) {
  DisruptionBudgets budgets;
  budgets.Upsert(MakeBudget("b", "", 2));
  const BudgetIds covering = budgets.Covering("ns", {});
  budgets.Charge("u1", "p1", covering);
  budgets.Release("u1");
  budgets.Release("u1");
  EXPECT_EQ(budgets.Left(covering[0]), 2);
}

TEST(DisruptionBudgetsTest, APodThatIsSeenToGoCountsUntilTheStatusHasMoved) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget budget = MakeBudget("b", "", 1);
  budgets.Upsert(budget);
  const BudgetIds covering = budgets.Covering("ns", {});
  budgets.Charge("u1", "p1", covering);
  budgets.SeenLeaving("u1");
  EXPECT_EQ(budgets.Left(covering[0]), 0) << "the status is older than the pod";
  // The controller has seen it go, and the pod is no longer listed.
  budget.current_healthy = 3;
  budgets.Upsert(budget);
  EXPECT_EQ(budgets.Left(covering[0]), 1);
}

TEST(DisruptionBudgetsTest, ANewBudgetOfTheSameNameStartsAnew) {
  DisruptionBudgets budgets;
  model::PodDisruptionBudget budget = MakeBudget("b", "", 1);
  budgets.Upsert(budget);
  const BudgetIds former = budgets.Covering("ns", {});
  budgets.Charge("u1", "p1", former);
  budget.meta.uid = "another";
  budgets.Upsert(budget);
  const BudgetIds now = budgets.Covering("ns", {});
  EXPECT_NE(now[0], former[0]);
  EXPECT_EQ(budgets.Left(now[0]), 1);
  budgets.Release("u1");
  EXPECT_EQ(budgets.Left(now[0]), 1);
}

TEST(DisruptionBudgetsTest, StateKnowsWhichPodsAskABudgetAndWhichDoNot) {
  ClusterState state({.scheduler_names = {"fairlead"}});
  EXPECT_TRUE(state.UpsertDisruptionBudget(MakeBudget("b", "", 1)).Any());
  state.UpsertNode(MakeNode("n", 8));
  PodBuilder pod("ns", "p");
  state.UpsertPod(PodBuilder(pod).On("n", model::PodPhase::kPending));
  const PodId id = state.FindPod("ns", "p");
  EXPECT_THAT(state.BudgetsOf(state.pod(id)), IsEmpty()) << "it does not run yet";
  state.UpsertPod(PodBuilder(pod).On("n"));
  ASSERT_EQ(state.BudgetsOf(state.pod(id)).size(), 1u);
  const BudgetId budget = state.BudgetsOf(state.pod(id))[0];

  state.ChargeBudgets(id);
  EXPECT_EQ(state.budgets().Left(budget), 0);
  state.AssumeEvicted(id);
  state.ForgetEviction(id);
  EXPECT_EQ(state.budgets().Left(budget), 1);

  state.ChargeBudgets(id);
  state.UpsertPod(PodBuilder(pod).On("n").Deleting());
  EXPECT_THAT(state.BudgetsOf(state.pod(id)), IsEmpty()) << "it is going already";
  EXPECT_EQ(state.budgets().Left(budget), 0);
  state.RemovePod("ns", "p", "");
  EXPECT_EQ(state.budgets().Left(budget), 0);
  model::PodDisruptionBudget moved = MakeBudget("b", "", 1);
  moved.desired_healthy = 1;
  state.UpsertDisruptionBudget(moved);
  EXPECT_EQ(state.budgets().Left(budget), 1);
  EXPECT_TRUE(state.RemoveDisruptionBudget("ns", "b").Any());
  EXPECT_FALSE(state.RemoveDisruptionBudget("ns", "b").Any());
}

// pkg/registry/core/pod/storage/eviction.go, by the policies of policy/v1.
TEST(DisruptionBudgetsTest, APodThatIsNotReadyGoesIfItsOneBudgetSaysSo) {
  struct Case {
    bool always_allow;
    int64_t healthy, desired;
    bool asked;
  };
  for (const Case& c : {Case{false, 0, 0, true}, Case{false, 1, 2, true}, Case{false, 2, 2, false},
                        Case{true, 0, 2, false}}) {
    SCOPED_TRACE(::testing::Message() << c.always_allow << " " << c.healthy << "/" << c.desired);
    ClusterState state({.scheduler_names = {"fairlead"}});
    model::PodDisruptionBudget budget = MakeBudget("b", "", 0);
    budget.always_allow = c.always_allow;
    budget.current_healthy = c.healthy;
    budget.desired_healthy = c.desired;
    state.UpsertDisruptionBudget(budget);
    state.UpsertNode(MakeNode("n", 8));
    state.UpsertPod(PodBuilder("ns", "p").On("n"));
    const PodRecord& pod = state.pod(state.FindPod("ns", "p"));
    EXPECT_EQ(state.BudgetsOf(pod).size(), c.asked ? 1u : 0u);
    state.UpsertPod(PodBuilder("ns", "p").On("n").Ready());
    EXPECT_EQ(state.BudgetsOf(pod).size(), 1u) << "it is ready";
    EXPECT_TRUE(state.UpsertPod(PodBuilder("ns", "p").On("n")).Any()) << "it may go again";
    state.UpsertDisruptionBudget(MakeBudget("second", "", 9));
    EXPECT_EQ(state.BudgetsOf(pod).size(), 2u) << "several are refused, whatever they say";
  }
}

}  // namespace
}  // namespace fairlead::state
