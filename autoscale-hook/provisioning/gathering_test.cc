// Demand that comes one after another is gathered, and what of it is told meanwhile.
#include "autoscale-hook/provisioning/gathering.h"

#include <string>
#include <vector>

#include "autoscale-hook/hook_fixture_testing.h"

namespace fairlead::hook {
namespace {

using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kStart;
using testing::Service;
using testing::Spec;
using testing::Type;
using verdict::Code;

class GatheringTest : public HookTest {
 protected:
  GatheringTest() {
    catalog_ =
        Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar), Type("g.8", 64, 256, 8, 5 * kDollar)});
    options_.gathering_quiet = absl::Milliseconds(300);
    options_.gathering_max = absl::Seconds(3);
    Restart();
  }
};

TEST_F(GatheringTest, PodsThatComeOneAfterAnotherCostWhatTheyCostTogether) {
  Demand demand;
  for (int i = 0; i < 64; ++i) {
    demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    EXPECT_EQ(out.wake_at, std::min(now_ + absl::Milliseconds(300), kStart + absl::Seconds(3)));
    now_ += absl::Milliseconds(20);
  }
  now_ += absl::Milliseconds(280);
  const StepOutput out = StepAndApply(demand);
  int64_t price = 0;
  for (const auto& node : out.created) price += node.request.price_micro_usd_per_hour;
  EXPECT_EQ(price, 40 * kDollar);
}

TEST_F(GatheringTest, NothingWaitsLongerThanTheMaximum) {
  Demand demand;
  absl::Time first_order = absl::InfiniteFuture();
  for (int i = 0; i < 50; ++i, now_ += absl::Milliseconds(200)) {
    if (i < 20) demand.push_back(Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1));
    if (!StepAndApply(demand).created.empty()) first_order = std::min(first_order, now_);
  }
  EXPECT_EQ(first_order, kStart + absl::Seconds(3));
}

TEST_F(GatheringTest, GangsThatComeOneAfterAnotherCostWhatTheyCostTogether) {
  Demand demand;
  for (int i = 0; i < 32; ++i) {
    demand.push_back(
        Item(absl::StrCat("team/gang", 100 + i), Spec(1000, 4, 1), 2, /*atomic=*/true));
    EXPECT_TRUE(StepAndApply(demand).created.empty());
    now_ += absl::Milliseconds(20);
  }
  now_ += absl::Milliseconds(280);
  int64_t price = 0;
  for (const auto& node : StepAndApply(demand).created) {
    price += node.request.price_micro_usd_per_hour;
  }
  EXPECT_EQ(price, 40 * kDollar);
}

TEST_F(GatheringTest, WhatCannotBeServedDoesNotKeepTheWindowOpen) {
  const Demand demand = {Item("team/huge", Spec(1000000, 4, 1), 1)};
  StepAndApply(demand);
  now_ += absl::Milliseconds(300);
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  now_ += absl::Milliseconds(20);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  EXPECT_GT(out.wake_at, now_ + absl::Seconds(3));
}

// ---- demand that is not charged

TEST_F(HookTest, NothingIsProvisionedForWhatIsNotCharged) {
  options_.max_nodes = 1;
  Restart();
  Demand demand = {Item("team/first", Spec(1000, 4, 1), 1), Item("team/next", Spec(1001, 4, 1), 1)};
  demand[0].charged = false;
  StepOutput out = StepAndApply(demand);
  // It is planned behind what is charged: with what the cap leaves then.
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].service, Service::kServed);
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.reason_workloads, std::vector<std::string>{"team/next"});

  options_.max_nodes = 2;
  Restart();
  out = StepAndApply({demand[0]});
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
  EXPECT_GT(out.wake_at, now_ + absl::Seconds(10)) << "it is for others to charge it";

  demand[0].charged = true;
  out = StepAndApply({demand[0]});
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.created.size(), 1u);
}

TEST_F(HookTest, WhatIsHeldForAMomentIsNotRefused) {
  options_.guard.burst = 1;
  options_.gathering_quiet = absl::Milliseconds(300);
  Restart();
  const auto kind = Spec(1000, 4, 1);
  const Demand demand = {Item("team/a", kind, 1), Item("team/b", kind, 1),
                         Item("team/huge", Spec(100'000'000, 4, 1), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[2].service, Service::kRefused);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen) << "beyond the rate";
  EXPECT_EQ(out.outcomes[2].service, Service::kRefused);
  out = StepAndApply({demand[1], demand[2]});
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
}

// ---- demand that is held is tried

TEST_F(GatheringTest, WhatCannotBeServedIsRefusedAtOnceAndTriedOnce) {
  DemandItem many = Item("team/huge", Spec(1000000, 4, 1), 1);
  many.members = 1000;
  Demand demand = {Item("team/a", Spec(1000, 4, 1), 1), many};
  StepOutput out = StepAndApply(demand);
  EXPECT_TRUE(out.created.empty());
  ASSERT_EQ(out.outcomes.size(), 2u);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[0].code, Code::kInsufficientCapacity);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(out.outcomes[1].members, 1000);

  const int64_t questions = placement_.questions;
  now_ += absl::Milliseconds(20);
  const StepOutput same = StepAndApply(demand);
  EXPECT_EQ(placement_.questions, questions);
  EXPECT_EQ(same.outcomes[1].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(same.outcomes[1].details, out.outcomes[1].details);

  // What is not charged is not gathered: it is planned, so that it is charged as soon as it can be
  // served.
  demand[1].charged = false;
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[1].code, Code::kNoInstanceTypeFits);
}

TEST_F(GatheringTest, CapsAreLookedAtWhenItIsPlanned) {
  options_.cluster_gpu_limit = 1;
  Restart();
  const Demand demand = {Item("team/two", Spec(1000, 4, 2), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  EXPECT_EQ(out.outcomes[0].code, Code::kGpuCapReached);
}

TEST_F(GatheringTest, WhatOnlyReservedMachinesServeIsNotRefused) {
  InstanceType reserved = Type("g.1", 4, 16, 1, kDollar);
  reserved.on_demand_micro_usd.reset();
  reserved.reservations = {{"cr-1", "", 1, 0, {}}};
  catalog_ = Catalog::FromTypes({reserved});
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1), Item("team/b", Spec(1001, 4, 1), 1)};
  StepOutput out = StepAndApply(demand);
  // Which of them gets the one that is left is decided when they are planned.
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
  EXPECT_EQ(out.outcomes[1].service, Service::kOpen);
  now_ += absl::Milliseconds(300);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kServed);
  ASSERT_EQ(out.created.size(), 1u);
  EXPECT_EQ(out.created[0].request.reservation, "cr-1");

  // None is left for another pod.
  now_ += absl::Milliseconds(20);
  out = StepAndApply({demand[0], Item("team/c", Spec(1002, 4, 1), 1)});
  EXPECT_EQ(out.outcomes[1].service, Service::kRefused);
}

TEST_F(HookTest, WhatIsHeldIsTriedAgainWhenTheLastReservedMachineIsTaken) {
  InstanceType reserved = Type("g.1", 4, 16, 1, kDollar);
  reserved.on_demand_micro_usd.reset();
  reserved.reservations = {{"cr-1", "", 2, 0, {}}};
  catalog_ = Catalog::FromTypes({reserved});
  options_.guard.total_burst = 1;
  options_.guard.total_per_minute = 1;
  Restart();
  ASSERT_EQ(StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)}).created.size(), 1u);
  const Demand demand = {Item("team/b", Spec(1001, 4, 1), 1)};
  EXPECT_EQ(StepAndApply(demand).outcomes[0].service, Service::kOpen) << "beyond the rate";
  model::NodeRequest other = The();
  other.meta.name = "written-by-another-process";
  other.meta.uid = "uid-of-other";
  requests_.emplace(other.meta.name, other);
  StepAndApply(demand);
  const StepOutput out = StepAndApply(demand);
  EXPECT_TRUE(out.created.empty());
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
}

TEST_F(GatheringTest, PodsThatLookAtOthersAreNotTried) {
  auto beside = std::make_shared<model::PodSpec>(*Spec(1000000, 4, 1));
  beside->pod_affinity.emplace_back();
  const StepOutput out = StepAndApply({Item("team/beside", beside, 1)});
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
}

TEST_F(GatheringTest, OtherOffersAreTriedAgain) {
  const Demand demand = {Item("team/b200", Spec(1000, 4, 1, {{"kind", "b200"}}), 1)};
  StepOutput out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kRefused);
  model::NodePool pool;
  pool.meta.name = "b200";
  pool.labels.Set("kind", "b200");
  pools_.push_back(pool);
  now_ += absl::Milliseconds(20);
  out = StepAndApply(demand);
  EXPECT_EQ(out.outcomes[0].service, Service::kOpen);
}

}  // namespace
}  // namespace fairlead::hook
