// Plans for pods with device claims, and above all for those that share one.
#include "autoscale-hook/planner/shared_claims.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "autoscale-hook/devices_testing.h"
#include "autoscale-hook/planner/planner_testing.h"

namespace fairlead::hook {
namespace {

using testing::Bringing;
using testing::Claiming;
using testing::Devices;
using testing::InputOf;
using testing::Item;
using testing::Joining;
using testing::kDollar;
using testing::Spec;
using testing::Type;
using verdict::Code;

// CPUs, GPUs that are devices, dollars.
InstanceType DeviceType(const std::string& name, int64_t cpus, int64_t gpus, int64_t dollars) {
  InstanceType type = Type(name, cpus, 64, gpus, dollars * kDollar);
  if (gpus > 0) type.devices = Devices(gpus);
  return type;
}

class SharedClaimsTest : public ::testing::Test {
 protected:
  const Plan& Run(std::vector<InstanceType> types, Demand demand, CapsLeft caps = {}) {
    catalog_ = std::make_unique<Catalog>(Catalog::FromTypes(std::move(types)));
    demand_ = std::move(demand);
    PlanInput input = InputOf(*catalog_, {&pool_}, demand_);
    input.caps = std::move(caps);
    return plan_ = MakePlan(input, placement_);
  }
  std::map<std::string, int64_t> Bought() const {
    std::map<std::string, int64_t> bought;
    for (const PlannedNode& node : plan_.nodes) ++bought[node.offer.type->name];
    return bought;
  }
  using Types = std::map<std::string, int64_t>;

  testing::ArithmeticPlacement placement_;
  model::NodePool pool_;
  std::unique_ptr<Catalog> catalog_;
  Demand demand_;
  Plan plan_;
};

TEST_F(SharedClaimsTest, NothingIsBoughtForDevicesThatNoTypeBrings) {
  Run({DeviceType("cpu", 8, 0, 1), Type("plugin", 8, 64, 4, kDollar)},
      {Item("team/a", Claiming(1000, 1), 1)});
  EXPECT_TRUE(plan_.nodes.empty());
  EXPECT_EQ(plan_.items[0].code, Code::kNoInstanceTypeFits);
  // More than a node has.
  Run({DeviceType("g.4", 8, 4, 1)}, {Item("team/a", Claiming(1000, 5), 1)});
  EXPECT_TRUE(plan_.nodes.empty());
}

TEST_F(SharedClaimsTest, AsManyNodesAsTheClaimsNeedAtTheLowestPrice) {
  const std::vector<InstanceType> types = {DeviceType("g.4", 32, 4, 4),
                                           DeviceType("g.8", 64, 8, 7)};
  Run(types, {Item("team/a", Claiming(1000, 2), 4)});
  EXPECT_EQ(Bought(), (Types{{"g.8", 1}}));
  Run(types, {Item("team/a", Claiming(1000, 2), 5)});
  EXPECT_EQ(Bought(), (Types{{"g.4", 1}, {"g.8", 1}}));
  // A claim with two requests, of devices of two drivers.
  InstanceType both = DeviceType("both", 32, 4, 9);
  auto devices = std::make_shared<model::NodeDevices>(*both.devices);
  const model::ResourceSlice nics = model::testing::MakeSlice("any", 1, "nic.io");
  model::AddPool({&nics}, *devices);
  both.devices = devices;
  auto spec = Claiming(1000, 2);
  model::Set(spec->requests, testing::DevicesOf("nic.io"), 1);
  Run({DeviceType("g.4", 32, 4, 4), both}, {Item("team/a", spec, 2)});
  EXPECT_EQ(Bought(), (Types{{"both", 2}}));
}

TEST_F(SharedClaimsTest, CapsOfGpusHoldClaims) {
  CapsLeft caps;
  caps.gpus = 7;
  Run({DeviceType("g.4", 32, 4, 4)},
      {Item("team/a", Claiming(1000, 4), 1), Item("team/b", Claiming(1000, 3), 1)}, caps);
  EXPECT_EQ(Bought(), (Types{{"g.4", 1}}));
  EXPECT_EQ(plan_.items[1].code, Code::kGpuCapReached);
}

TEST_F(SharedClaimsTest, PodsThatShareAClaimGetOneNodeThatHoldsAllOfThem) {
  // The cheapest for the one that brings the claim would be too small for the other.
  Run({DeviceType("small", 4, 1, 1), DeviceType("large", 8, 1, 3), DeviceType("cpu", 64, 0, 1)},
      {Item("team/join", Joining("c", 4000), 1), Item("team/plain", Spec(1000, 0, 0), 1),
       Item("team/bring", Bringing("c", 4000, 1), 1)});
  EXPECT_EQ(Bought(), (Types{{"large", 1}, {"cpu", 1}}));
  ASSERT_EQ(plan_.items.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan_.items[i].item, i);
    EXPECT_EQ(plan_.items[i].code, Code::kNodesRequested) << i;
  }
  EXPECT_EQ(plan_.items[0].nodes, plan_.items[2].nodes);
  // Each of the pods is told of on its node.
  const PlannedNode& node = plan_.nodes[plan_.items[0].nodes[0]];
  EXPECT_EQ(node.pods_of_item, (std::vector<std::pair<size_t, int64_t>>{{0, 1}, {2, 1}}));
}

TEST_F(SharedClaimsTest, NoPodGetsANodeWithoutTheClaim) {
  Run({DeviceType("g", 8, 1, 1)}, {Item("team/join", Joining("c", 1000), 1)});
  EXPECT_TRUE(plan_.nodes.empty());
  EXPECT_EQ(plan_.items[0].code, Code::kNoInstanceTypeFits);
  // It is brought by a pod that fits nowhere.
  Run({DeviceType("g", 8, 1, 1)},
      {Item("team/join", Joining("c", 1000), 1), Item("team/bring", Bringing("c", 1000, 2), 1)});
  EXPECT_TRUE(plan_.nodes.empty());
  for (const ItemOutcome& outcome : plan_.items) {
    EXPECT_EQ(outcome.code, Code::kNoInstanceTypeFits);
  }
}

TEST_F(SharedClaimsTest, AsManyJoinAsTheNodeHolds) {
  Run({DeviceType("g", 4, 1, 1)},
      {Item("team/bring", Bringing("c", 1000, 1), 1), Item("team/j0", Joining("c", 2000), 1),
       Item("team/j1", Joining("c", 2000), 1)});
  EXPECT_EQ(Bought(), (Types{{"g", 1}}));
  EXPECT_EQ(plan_.items[0].code, Code::kNodesRequested);
  EXPECT_EQ(plan_.items[1].code, Code::kNodesRequested);
  EXPECT_EQ(plan_.items[2].code, Code::kInsufficientCapacity);
  EXPECT_TRUE(plan_.items[2].nodes.empty());
}

TEST_F(SharedClaimsTest, AGangIsAllOrNothing) {
  // Two pods share a claim, three others have claims of their own.
  const auto gang = [](int64_t cpu_of_joiner) {
    DemandItem item = Item("team/gang", Claiming(1000, 1), 3, /*atomic=*/true);
    item.classes.push_back({Joining("c", cpu_of_joiner), 1, 1});
    item.classes.push_back({Bringing("c", 1000, 2), 1, 1});
    return item;
  };
  const std::vector<InstanceType> types = {DeviceType("g.2", 8, 2, 1)};
  Run(types, {gang(4000), Item("team/after", Claiming(1000, 1), 1)});
  // The shared one has a node of its own: what else is planned there could take its place.
  EXPECT_EQ(Bought(), (Types{{"g.2", 3}}));
  EXPECT_EQ(plan_.items[0].nodes.size() + plan_.items[1].nodes.size(), 4u);
  Run(types, {gang(8000), Item("team/after", Claiming(1000, 1), 1)});
  EXPECT_EQ(Bought(), (Types{{"g.2", 1}}));
  EXPECT_EQ(plan_.items[0].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(plan_.items[1].code, Code::kNodesRequested);
  CapsLeft caps;
  caps.nodes = 1;
  Run(types, {gang(1000)}, caps);
  EXPECT_TRUE(plan_.nodes.empty());
}

TEST_F(SharedClaimsTest, ClaimsThatHangTogetherAreOnOneNode) {
  // The second pod joins the claim of the first, and brings one that the third joins.
  auto middle = Joining("a", 1000);
  model::Set(middle->requests, testing::DevicesOf("gpu.nvidia.com"), 1);
  middle->resource_claims.push_back("b");
  Run({DeviceType("g.2", 8, 2, 1)},
      {Item("team/last", Joining("b", 1000), 1), Item("team/middle", middle, 1),
       Item("team/first", Bringing("a", 1000, 1), 1)});
  EXPECT_EQ(Bought(), (Types{{"g.2", 1}}));
  for (const ItemOutcome& outcome : plan_.items) EXPECT_EQ(outcome.code, Code::kNodesRequested);
}

}  // namespace
}  // namespace fairlead::hook
