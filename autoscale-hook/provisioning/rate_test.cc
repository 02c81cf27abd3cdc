// The rate at which nodes are ordered, and the cap of their total.
#include <functional>
#include <set>
#include <string>

#include "autoscale-hook/hook_fixture_testing.h"

namespace fairlead::hook {
namespace {

using testing::DetailsOf;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::Service;
using testing::Spec;
using testing::Type;
using verdict::Code;

TEST_F(HookTest, WhatIsBeyondTheRateAndCannotBeServedIsRefused) {
  options_.guard.total_burst = 1;
  options_.guard.total_per_minute = 1;
  Restart();
  StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  const StepOutput out = StepAndApply(
      {Item("team/b", Spec(1000, 4, 1), 1), Item("team/huge", Spec(100'000'000, 4, 1), 1)});
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("rate"), std::string::npos);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
}

// The plan's nodes for the second pod of a kind are dropped; the cap that they would have taken is
// left for the other kind.
TEST_F(HookTest, CapThatTheRateLeavesIsNotToldAsReached) {
  options_.guard.burst = 1;
  for (const bool by_cost : {false, true}) {
    SCOPED_TRACE(by_cost ? "cost" : "nodes");
    requests_.clear();
    nodes_.clear();
    options_.max_nodes = by_cost ? model::kUnlimited : 2;
    options_.cost_limit_micro_usd_per_hour = by_cost ? 2 * kDollar : model::kUnlimited;
    Restart();
    const auto kind = Spec(3000, 4, 1);
    const DemandItem other = Item("team/other", Spec(1001, 4, 1), 1);
    StepOutput out = StepAndApply({Item("team/a", kind, 1), Item("team/b", kind, 1), other});
    EXPECT_EQ(out.created.size(), 1u);
    EXPECT_NE(DetailsOf(out.outcomes[1]).find("rate"), std::string::npos);
    EXPECT_EQ(out.outcomes[2].code, Code::kInsufficientCapacity);
    EXPECT_EQ(DetailsOf(out.outcomes[2]), "more nodes are requested in the next step; ");
    EXPECT_LE(out.wake_at, now_);
    out = StepAndApply({Item("team/b", kind, 1), other});
    EXPECT_EQ(out.created.size(), 1u);
    EXPECT_EQ(out.outcomes[1].code, Code::kNodesRequested);
  }
}

// Pods come one a second, and 10 at once are allowed and 6 a minute.
class ArrivalsTest : public HookTest {
 protected:
  void ExpectTheRate(const std::function<DemandItem(int)>& arrival) {
    Restart();
    size_t created = 0;
    StepOutput out;
    for (int i = 0; i < 120; ++i, now_ += absl::Seconds(1)) {
      out = StepAndApply({arrival(i)});
      created += out.created.size();
    }
    EXPECT_EQ(created, 10u + 11u) << "the burst, and one more every ten seconds";
    EXPECT_LT(out.wake_at, now_ + absl::Seconds(11));
  }
};

TEST_F(ArrivalsTest, RateOfOneSizeIsLimited) {
  options_.guard.burst = 10;
  options_.guard.per_minute = 6;
  ExpectTheRate([](int i) { return Item(absl::StrCat("team/p", i), Spec(1000, 4, 1), 1); });
  EXPECT_EQ(StepAndApply({Item("team/other", Spec(2001, 4, 1), 1)}).created.size(), 1u)
      << "another size has its own";
}

TEST_F(HookTest, RateHoldsWithinOnePlan) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 32, 1, kDollar)});
  options_.guard.burst = 8;
  options_.guard.per_minute = 6;
  Restart();
  Demand demand;
  for (int i = 0; i < 24; ++i) {
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
  }
  demand.push_back(Item("team/other", Spec(2001, 4, 1), 1));
  const StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.created.size(), 8u + 1u) << "another size has its own";
  for (size_t i = 0; i < demand.size(); ++i) {
    const bool held = i >= 8 && i < 24;
    EXPECT_EQ(out.outcomes[i].node_requests.size(), held ? 0u : 1u) << i;
    EXPECT_EQ(DetailsOf(out.outcomes[i]).find("rate of provisioning") != std::string::npos, held);
  }
  std::set<std::string> named, created;
  for (const DemandOutcome& outcome : out.outcomes) {
    named.insert(outcome.node_requests.begin(), outcome.node_requests.end());
  }
  for (const auto& node : out.created) created.insert(node.request.meta.name);
  EXPECT_EQ(named, created);
  EXPECT_LE(out.wake_at, now_ + absl::Seconds(10));
}

// Users can give each pod other requests, selectors, tolerations and terms.
TEST_F(HookTest, PodsThatDifferByAByteShareOneRate) {
  options_.guard.burst = 10;
  options_.guard.per_minute = 6;
  Restart();
  Demand demand;
  for (int i = 0; i < 40; ++i) {
    auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
    if (i % 3 == 0) model::Add(spec->requests, model::kMemoryName, i);
    if (i % 3 == 1) spec->tolerations = {{absl::StrCat("key-", i), true, "", std::nullopt}};
    if (i % 3 == 2) spec->preferred_node_terms.resize(static_cast<size_t>(i));
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), spec, 1));
  }
  EXPECT_EQ(StepAndApply(demand).created.size(), 10u);
  for (DemandItem& item : demand) item.queue = "another";
  EXPECT_EQ(StepAndApply(demand).created.size(), 10u) << "another queue has its own";
}

// Sizes can be varied, too.
TEST_F(ArrivalsTest, RateOfAllPodsTogetherIsLimited) {
  options_.guard.total_burst = 10;
  options_.guard.total_per_minute = 6;
  ExpectTheRate([](int i) {
    DemandItem item = Item(absl::StrCat("team/p", i), Spec(int64_t{1} << i % 11, 4, 1), 1);
    item.queue = absl::StrCat("q", i % 7);
    return item;
  });
}

// Each life provisions what the former one has given up meanwhile.
class RateTest : public HookTest {
 protected:
  // Nodes that are provisioned in a minute of 20 lives, each of which wants 10: 10 at once are
  // allowed, and 6 a minute.
  size_t CreatedInAMinute(const std::function<void()>& begin_next_life) {
    options_.guard.burst = 10;
    options_.guard.per_minute = 6;
    Restart();
    size_t created = 0;
    for (int life = 0; life < 20; ++life, now_ += absl::Seconds(3)) {
      Demand demand;
      for (int i = 0; i < 10; ++i) {
        demand.push_back(Item(absl::StrCat("team/p", life, "-", i), Spec(1000, 4, 1), 1));
      }
      created += StepAndApply(demand).created.size();
      begin_next_life();
    }
    return created;
  }
};

TEST_F(RateTest, RestartsDoNotRaiseIt) {
  EXPECT_LE(CreatedInAMinute([this] { Restart(); }), 10u + 6u);
}

TEST_F(RateTest, ReloadContinuesIt) {
  EXPECT_EQ(CreatedInAMinute([this] { Reload(); }), 10u + 5u)
      << "what is found is not counted twice";
}

TEST_F(HookTest, GangIsNeverCutByTheRate) {
  options_.guard.burst = options_.guard.total_burst = 10;
  Restart();
  EXPECT_EQ(StepAndApply({Item("team/gang", Spec(1000, 4, 1), 64, true)}).created.size(), 64u);
}

TEST_F(HookTest, TotalOfNodesIsCapped) {
  options_.max_nodes = 3;
  Restart();
  const StepOutput out = StepAndApply(
      {Item("team/gang", Spec(1000, 4, 1), 4, true), Item("team/p", Spec(1000, 4, 1), 5)});
  EXPECT_EQ(out.created.size(), 3u);
  EXPECT_TRUE(out.outcomes[0].node_requests.empty()) << "a gang is whole or nothing";
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("hook.maxNodes"), std::string::npos)
      << DetailsOf(out.outcomes[0]);
}

}  // namespace
}  // namespace fairlead::hook
