// Reserved machines in the life of requests: how many are left, what happens if one cannot be had,
// and which go last.
#include <map>
#include <string>
#include <vector>

#include "autoscale-hook/hook_fixture_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using ::testing::HasSubstr;
using testing::HookTest;
using ::testing::IsEmpty;
using testing::Item;
using testing::kDollar;
using ::testing::SizeIs;
using testing::Spec;
using testing::Type;

class ReservationsTest : public HookTest {
 protected:
  ReservationsTest() {
    SetCatalog(2);
    Restart();
  }
  void SetCatalog(int64_t count) {
    InstanceType type = Type("g.1", 4, 16, 1, kDollar);
    if (count > 0) {
      type.reservations = {{"cr-1", "", count, 0, {{"example.com/contract", "c7"}}}};
    }
    catalog_ = Catalog::FromTypes({type});
  }
  static Demand Pods(const std::string& name, int64_t count) {
    return {Item(name, Spec(1000, 4, 1), count)};
  }
  int64_t CountOf(const std::string& reservation) const {
    int64_t count = 0;
    for (const auto& [name, request] : requests_) count += request.reservation == reservation;
    return count;
  }
  // All that is requested is launched and becomes usable.
  void BecomeReady() {
    for (const model::LaunchNode& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
    StepAndApply();
    for (auto& [name, node] : nodes_) {
      node.registered = node.ready = node.needed_by_pods_alone = true;
      node.uid = "uid-of-" + name;
    }
    StepTwice();
    for (const auto& [name, request] : requests_) ASSERT_EQ(request.phase, Phase::kReady);
  }
};

TEST_F(ReservationsTest, TheRequestAndItsNodeSaySo) {
  const StepOutput out = StepAndApply(Pods("team/a", 1));
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(The().reservation, "cr-1");
  EXPECT_STREQ(The().CapacityType(), "reserved");
  EXPECT_EQ(The().price_micro_usd_per_hour, 0);
  ASSERT_THAT(out.created, SizeIs(1));
  const std::vector<model::LaunchNode> launches = All<model::LaunchNode>(StepAndApply());
  ASSERT_THAT(launches, SizeIs(1));
  for (const model::Node& node : {out.created.front().node, *launches.front().node}) {
    EXPECT_EQ(node.meta.labels.Get(model::kCapacityTypeLabel), "reserved");
    EXPECT_EQ(node.meta.labels.Get(model::kReservationLabel), "cr-1");
    EXPECT_EQ(node.meta.labels.Get("example.com/contract"), "c7");
  }
  EXPECT_EQ(launches.front().reservation_labels.Get("example.com/contract"), "c7");
}

TEST_F(ReservationsTest, WhatIsInFlightIsNotTakenAgainNotEvenAfterARestart) {
  StepAndApply(Pods("team/a", 1));
  StepAndApply(Pods("team/b", 3));
  EXPECT_EQ(CountOf("cr-1"), 2);
  EXPECT_EQ(CountOf(""), 2);
  Restart();
  StepAndApply(Pods("team/c", 2));
  EXPECT_EQ(CountOf("cr-1"), 2);
  BecomeReady();
  StepAndApply(Pods("team/d", 1));
  EXPECT_EQ(CountOf("cr-1"), 2) << "steady ones are machines, too";
  EXPECT_EQ(CountOf(""), 5);
}

TEST_F(ReservationsTest, AStockOutBacksOffThatOfferAlone) {
  StepAndApply(Pods("team/a", 1));
  ASSERT_EQ(The().reservation, "cr-1");
  StepAndApply();
  Answer(true, absl::ResourceExhaustedError("no capacity left in cr-1"));
  StepAndApply(Pods("team/a", 1));
  EXPECT_EQ(CountOf(""), 1) << "on demand instead";
  now_ += options_.backoff_initial;
  StepAndApply(Pods("team/b", 1));
  EXPECT_GE(CountOf("cr-1"), 1) << "and reserved again later";
}

TEST_F(ReservationsTest, AMachineThatIsGoneLeavesItsPlace) {
  SetCatalog(1);
  Restart();
  StepAndApply(Pods("team/a", 1));
  const std::string first = TheName();
  BecomeReady();
  nodes_.at(first).needed = nodes_.at(first).needed_by_pods_alone = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
  StepAndApply();
  StepAndApply();
  ASSERT_EQ(The().phase, Phase::kDraining);
  StepAndApply(Pods("team/b", 1));
  EXPECT_EQ(CountOf("cr-1"), 1) << "the provider has not confirmed its end";
  EXPECT_EQ(CountOf(""), 1);
  Answer(false, absl::OkStatus());
  nodes_.erase(first);
  StepTwice();
  ASSERT_FALSE(requests_.contains(first));
  StepAndApply(Pods("team/c", 1));
  EXPECT_EQ(CountOf("cr-1"), 1);
}

TEST_F(ReservationsTest, WhatLeftTheCatalogueIsNotLaunched) {
  StepAndApply(Pods("team/a", 1));
  SetCatalog(0);
  Restart();
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kFailed);
  EXPECT_EQ(The().failure, "Other") << "the former process may have launched it";
  EXPECT_THAT(The().message, HasSubstr("spec.reservation \"cr-1\" is not in the catalogue"));
}

TEST_F(ReservationsTest, WhatRunsStaysWhenItsReservationLeavesTheCatalogue) {
  StepAndApply(Pods("team/a", 1));
  BecomeReady();
  SetCatalog(0);
  Reload();
  StepTwice();
  EXPECT_EQ(ThePhase(), Phase::kReady);
  const auto node = hook_->ExpectedNode(The());
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->meta.labels.Get(model::kReservationLabel), "cr-1");
  EXPECT_EQ(node->meta.labels.Get(model::kCapacityTypeLabel), "reserved");
}

TEST_F(ReservationsTest, ANodeWithoutItsRequestTellsItsReservation) {
  NodeUse node = Arrived("ip-1", "fl-0123456789abcdef");
  node.instance_type = "g.1";
  node.reservation = "cr-1";
  node.needed = true;
  nodes_["ip-1"] = node;
  StepAndApply();
  now_ += absl::Minutes(2);
  StepAndApply();
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(The().reservation, "cr-1");
  EXPECT_TRUE(The().price_known);
}

TEST_F(ReservationsTest, ReservedMachinesGoLast) {
  options_.max_removals_per_step = 1;
  Restart();
  StepAndApply(Pods("team/a", 3));
  BecomeReady();
  for (auto& [name, node] : nodes_) node.needed = node.needed_by_pods_alone = false;
  StepAndApply();
  now_ += options_.unneeded_after;
  StepAndApply();
  for (const auto& [name, node] : nodes_) {
    EXPECT_EQ(node.removal_tainted, requests_.at(name).reservation.empty()) << name;
  }
}

TEST_F(ReservationsTest, AnEstimateKnowsHowManyAreLeft) {
  StepAndApply(Pods("team/a", 1));
  StepAndApply();
  const Estimate estimate =
      hook_->EstimateFor(Item("team/b", Spec(1000, 4, 1), 2), {}, placement_, now_);
  EXPECT_EQ(NodesAndPrice(estimate), "1 x g.1 and 1 x g.1 (reserved, cr-1), $1.00 an hour");
}

TEST_F(ReservationsTest, NodesOnOfferAreThoseThatAreLeft) {
  const auto reserved = [&] {
    int64_t count = 0;
    for (const model::OfferedNode& offered : hook_->NodesOnOffer({})) {
      count += offered.node.meta.labels.Get(model::kCapacityTypeLabel) == "reserved";
    }
    return count;
  };
  StepAndApply();
  EXPECT_EQ(reserved(), 1);
  const uint64_t version = hook_->offers_version();
  StepAndApply(Pods("team/a", 2));
  EXPECT_EQ(reserved(), 0);
  EXPECT_NE(hook_->offers_version(), version);
}

}  // namespace
}  // namespace fairlead::hook
