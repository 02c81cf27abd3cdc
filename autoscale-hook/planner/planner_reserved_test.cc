// Machines that are paid for anyway: taken first, never more than there are, and counted against
// caps as stated.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "autoscale-hook/planner/planner_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InputOf;
using testing::Item;
using testing::kDollar;
using testing::Random;
using testing::Spec;
using testing::Type;
using verdict::Code;

InstanceType Reserved(InstanceType type, const std::string& name, int64_t count, int64_t price = 0,
                      const std::string& zone = "") {
  type.reservations.push_back({name, zone, count, price, {}});
  return type;
}

std::shared_ptr<const model::PodSpec> Offering(int64_t gpus, bool spot, bool on_demand,
                                               bool reserved) {
  auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, gpus));
  spec->wishes.Own().spot = spot;
  spec->wishes.Own().on_demand = on_demand;
  spec->wishes.Own().reserved = reserved;
  return spec;
}

class ReservedPlanTest : public ::testing::Test {
 protected:
  // `used`: machines of each reservation that there are already.
  Plan Run(std::vector<InstanceType> types, const Demand& demand,
           const std::map<std::string, int64_t>& used = {}, CapsLeft caps = {}) {
    catalog_ = std::make_unique<Catalog>(Catalog::FromTypes(std::move(types)));
    PlanInput input = InputOf(*catalog_, Pools(), demand);
    input.caps = std::move(caps);
    CapUsage usage;
    usage.nodes_by_reservation = used;
    input.caps.AddReservations(input.offers, usage);
    return MakePlan(input, placement_);
  }
  std::vector<const model::NodePool*> Pools() const {
    std::vector<const model::NodePool*> pools;
    for (const model::NodePool& pool : pools_) pools.push_back(&pool);
    return pools;
  }
  using Map = std::map<std::string, int64_t>;
  // By type, with "/" and the reservation behind it.
  static Map Bought(const Plan& plan) {
    Map bought;
    for (const PlannedNode& node : plan.nodes) {
      const Reservation* reservation = node.offer.reservation;
      ++bought[reservation == nullptr
                   ? node.offer.type->name
                   : absl::StrCat(node.offer.type->name, "/", reservation->name)];
    }
    return bought;
  }

  std::vector<model::NodePool> pools_ = std::vector<model::NodePool>(1);
  std::unique_ptr<Catalog> catalog_;
  testing::ArithmeticPlacement placement_;
};

TEST_F(ReservedPlanTest, NeverMoreThanThereAre) {
  const InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 3);
  const Demand demand = {Item("a", Spec(1000, 4, 1), 5)};
  EXPECT_EQ(Bought(Run({gpu}, demand)), (Map{{"g.1/cr-1", 3}, {"g.1", 2}}));
  EXPECT_EQ(Bought(Run({gpu}, demand, {{"cr-1", 1}})), (Map{{"g.1/cr-1", 2}, {"g.1", 3}}));
  EXPECT_EQ(Bought(Run({gpu}, demand, {{"cr-1", 3}})), (Map{{"g.1", 5}}));
  EXPECT_EQ(Bought(Run({gpu}, demand, {{"cr-1", 9}})), (Map{{"g.1", 5}}))
      << "the catalogue was changed";
}

TEST_F(ReservedPlanTest, WithoutAnAnswerHowManyAreLeftThereAreNone) {
  const Catalog catalog = Catalog::FromTypes({Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 3)});
  const Demand demand = {Item("a", Spec(1000, 4, 1), 1)};
  const PlanInput input = InputOf(catalog, Pools(), demand);
  EXPECT_EQ(Bought(MakePlan(input, placement_)), (Map{{"g.1", 1}}));
}

TEST_F(ReservedPlanTest, AllZonesAndPoolsShareTheCount) {
  InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 3);
  gpu.zones = {"z1", "z2", "z3"};
  pools_.resize(2);
  pools_[0].meta.name = "p1";
  pools_[1].meta.name = "p2";
  EXPECT_EQ(Bought(Run({gpu}, {Item("a", Spec(1000, 4, 1), 7)})),
            (Map{{"g.1/cr-1", 3}, {"g.1", 4}}));
}

TEST_F(ReservedPlanTest, PaidAnywayComesBeforeSpotWhateverItsStatedPrice) {
  InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 1, 700'000);
  gpu.spot_micro_usd = 200'000;
  pools_[0].allow_spot = true;
  const Plan plan = Run({gpu}, {Item("a", Spec(1000, 4, 1), 2)});
  EXPECT_EQ(Bought(plan), (Map{{"g.1/cr-1", 1}, {"g.1", 1}}));
  EXPECT_EQ(plan.price_micro_usd_per_hour, 900'000) << "what is stated, and spot";
}

TEST_F(ReservedPlanTest, TheStatedPriceCountsAgainstTheCostCap) {
  const InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 3, 600'000);
  CapsLeft caps;
  caps.micro_usd_per_hour = 1'300'000;
  const Plan plan = Run({gpu}, {Item("a", Spec(1000, 4, 1), 4)}, {}, caps);
  EXPECT_EQ(Bought(plan), (Map{{"g.1/cr-1", 2}}));
  EXPECT_LE(plan.price_micro_usd_per_hour, caps.micro_usd_per_hour);
}

TEST_F(ReservedPlanTest, TheSmallestThatDoesIsTaken) {
  const InstanceType big = Reserved(Type("g.8", 64, 256, 8, 8 * kDollar), "cr-8", 4);
  const InstanceType small = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 4);
  EXPECT_EQ(Bought(Run({big, small}, {Item("a", Spec(1000, 4, 1), 1)})), (Map{{"g.1/cr-1", 1}}));
}

TEST_F(ReservedPlanTest, WhatIsDearElsewhereGetsTheReservedMachines) {
  // Both kinds of pods fit on it; one of them costs ten times as much elsewhere.
  const InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, 10 * kDollar), "cr-1", 2);
  const InstanceType cpu = Type("c.1", 8, 32, 0, kDollar);
  const Plan plan =
      Run({gpu, cpu}, {Item("cheap", Spec(7000, 4, 0), 2), Item("dear", Spec(7000, 4, 1), 2)});
  EXPECT_EQ(Bought(plan), (Map{{"c.1", 2}, {"g.1/cr-1", 2}}));
}

TEST_F(ReservedPlanTest, WhatSuitsReservedMachinesAloneWaitsForOne) {
  InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 1);
  const Plan plan = Run({gpu}, {Item("a", Offering(1, false, false, true), 2)});
  EXPECT_EQ(Bought(plan), (Map{{"g.1/cr-1", 1}}));
  const Plan none = Run({gpu}, {Item("a", Offering(1, false, false, true), 1)}, {{"cr-1", 1}});
  EXPECT_EQ(Bought(none), Map());
  ASSERT_EQ(none.items.size(), 1u);
  EXPECT_EQ(none.items[0].code, Code::kInsufficientCapacity);
  EXPECT_THAT(none.items[0].details, ElementsAre("all reserved machines that suit it are in use"));
}

TEST_F(ReservedPlanTest, OnDemandMayBeReservedAndSpotMayNot) {
  InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 1);
  gpu.spot_micro_usd = 200'000;
  pools_[0].allow_spot = true;
  EXPECT_EQ(Bought(Run({gpu}, {Item("a", Offering(1, false, true, false), 1)})),
            (Map{{"g.1/cr-1", 1}}));
  EXPECT_EQ(Bought(Run({gpu}, {Item("a", Offering(1, true, false, false), 1)})), (Map{{"g.1", 1}}));
}

TEST_F(ReservedPlanTest, AGangIsServedByBothTogether) {
  const InstanceType gpu = Reserved(Type("g.8", 64, 256, 8, 8 * kDollar), "cr-1", 2);
  const Plan plan = Run({gpu}, {Item("g", Spec(1000, 4, 8), 4, /*atomic=*/true)});
  EXPECT_EQ(Bought(plan), (Map{{"g.8/cr-1", 2}, {"g.8", 2}}));
}

TEST(ReservedCaps, WhatIsTakenIsTakenFromTheReservation) {
  const InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 2);
  const model::NodePool pool;
  const Offer offer{&gpu, &pool, "z1", false, 0, &gpu.reservations.front()};
  CapsLeft left;
  EXPECT_FALSE(Allows(left, offer)) << "nothing says that there is one";
  left.AddReservations({offer}, {});
  EXPECT_TRUE(Allows(left, offer));
  TakeFrom(left, offer);
  TakeFrom(left, offer);
  EXPECT_FALSE(Overdrawn(left));
  EXPECT_FALSE(Allows(left, offer));
  EXPECT_EQ(left.WithoutCaps().nodes_by_reservation.at("cr-1"), 0);
}

TEST(ReservedCaps, AnUnknownPriceIsNeverFree) {
  InstanceType gpu = Reserved(Type("g.1", 8, 32, 1, kDollar), "cr-1", 2, 0);
  gpu.reservations.push_back({"cr-2", "", 1, 9 * kDollar, {}});
  const Catalog catalog = Catalog::FromTypes({gpu});
  model::NodeRequest request;
  request.instance_type = "g.1";
  request.price_known = false;
  request.reservation = "cr-1";
  CapUsage usage;
  usage.Add(request, catalog);
  EXPECT_EQ(usage.micro_usd_per_hour, 0) << "the catalogue says so";
  EXPECT_EQ(usage.unpriced, 0);
  request.reservation = "cr-gone";
  usage.Add(request, catalog);
  EXPECT_EQ(usage.micro_usd_per_hour, 9 * kDollar) << "as the dearest that there is";
  EXPECT_EQ(usage.unpriced, 1);
  EXPECT_EQ(usage.nodes_by_reservation,
            (std::map<std::string, int64_t>{{"cr-1", 1}, {"cr-gone", 1}}));
}

// Random demands and reservations: never more than there are, nothing left out that fits without
// them, and never dearer than without them.
TEST_F(ReservedPlanTest, RandomReservationsAreNeverPassedAndNeverCostMore) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<InstanceType> types, plain;
    std::map<std::string, int64_t> counts;
    for (int t = 0; t < 4; ++t) {
      const int64_t gpus = random.Between(0, 3) == 0 ? 0 : int64_t{1} << random.Between(0, 3);
      InstanceType type = Type(absl::StrCat("t", t), random.Between(4, 64), random.Between(16, 256),
                               gpus, random.Between(1, 20) * kDollar);
      plain.push_back(type);
      if (random.Between(0, 1) == 0) {
        const std::string name = absl::StrCat("cr-", t);
        counts[name] = random.Between(1, 4);
        type = Reserved(type, name, counts[name], random.Between(0, 1) * kDollar / 1000);
      }
      types.push_back(type);
    }
    Demand demand;
    for (int64_t i = random.Between(1, 5); i > 0; --i) {
      demand.push_back(
          Item(absl::StrCat("w", i),
               Spec(random.Between(1, 16) * 1000, random.Between(1, 32), random.Between(0, 2)),
               random.Between(1, 12)));
    }
    const Plan without = Run(plain, demand);
    const Plan with = Run(types, demand);
    std::map<std::string, int64_t> used;
    int64_t paid = 0;
    for (const PlannedNode& node : with.nodes) {
      const Reservation* reservation = node.offer.reservation;
      if (reservation != nullptr) ++used[reservation->name];
      if (reservation == nullptr) paid += node.offer.price_micro_usd_per_hour;
    }
    for (const auto& [name, nodes] : used) EXPECT_LE(nodes, counts.at(name)) << name;
    for (size_t i = 0; i < with.items.size() && i < without.items.size(); ++i) {
      EXPECT_EQ(with.items[i].code, without.items[i].code);
    }
    EXPECT_LE(paid, without.price_micro_usd_per_hour);
    EXPECT_EQ(Bought(Run(types, demand)), Bought(with)) << "the same plan again";
  }
}

}  // namespace
}  // namespace fairlead::hook
