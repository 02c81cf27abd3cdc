#include <gtest/gtest.h>

#include "sim/world/objects.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {
namespace {

class TruthPlacementTest : public ::testing::Test {
 protected:
  void Node(absl::string_view name, absl::string_view zone) {
    Operation fields;
    fields.With("name", name).With("zone", zone).With("gpu", 8);
    ASSERT_TRUE(server_.Create(ResourceType::kNodes, MakeNode(fields), "test").ok());
  }
  const PodRow& Pod(Operation fields, const std::string& name) {
    fields.With("ns", "ns");
    EXPECT_TRUE(server_.Create(ResourceType::kPods, MakePod(fields, name), "fairlead-a.1").ok());
    return truth_.pods().at("ns/" + name);
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  Truth truth_{&time_, &server_};
};

TEST_F(TruthPlacementTest, AntiAffinityHoldsForBothSides) {
  Node("n0", "a");
  Node("n1", "b");
  const PodRow& alone =
      Pod(Operation().With("app", "db").With("apart", "web").With("node", "n0"), "db");
  const PodRow& web = Pod(Operation().With("app", "web"), "web");
  EXPECT_NE(truth_.ApartFrom(web, "n0", absl::InfiniteFuture()), "");
  EXPECT_EQ(truth_.ApartFrom(web, "n1", absl::InfiniteFuture()), "");
  EXPECT_EQ(truth_.ApartFrom(alone, "n0", absl::InfiniteFuture()), "");
}

TEST_F(TruthPlacementTest, CountsPodsOfTheOwnAndTheEmptiestDomain) {
  Node("n0", "a");
  Node("n1", "b");
  const std::string zone = "topology.kubernetes.io/zone";
  const auto spread = Operation().With("app", "s").With("spread", zone).With("node", "n0");
  Pod(spread, "s0");
  const PodRow& second = Pod(spread, "s1");
  const SpreadRule& rule = second.facts.placement->spread.front();
  EXPECT_EQ(truth_.CountBeside(second, rule), 2);
  EXPECT_EQ(truth_.LeastCount(second, rule, time_.now()), 0);
}

TEST_F(TruthPlacementTest, AGpuIsSharedByNoMoreThanOne) {
  Node("n0", "a");
  const auto shared = [&](const std::string& name) -> const PodRow& {
    Operation fields;
    fields.With("ns", "ns").With("fraction", "0.5").With("node", "n0");
    Json pod = MakePod(fields, name);
    pod["metadata"]["labels"]["runai-gpu-group"] = "g";
    EXPECT_TRUE(server_.Create(ResourceType::kPods, std::move(pod), "fairlead-a.1").ok());
    return truth_.pods().at("ns/" + name);
  };
  shared("p0");
  EXPECT_EQ(truth_.OverShared(shared("p1")), "");
  EXPECT_NE(truth_.OverShared(shared("p2")), "");
}

}  // namespace
}  // namespace fairlead::sim::world
