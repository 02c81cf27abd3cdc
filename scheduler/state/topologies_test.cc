#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;

model::Topology MakeTopology(absl::string_view name, std::vector<std::string> labels) {
  model::Topology topology;
  topology.meta.name = std::string(name);
  topology.meta.uid = absl::StrCat("uid-", name);
  for (std::string& label : labels) topology.levels.push_back({std::move(label), ""});
  return topology;
}

model::Node Labelled(absl::string_view name, absl::string_view rack) {
  model::Node node = MakeNode(name, 8);
  if (!rack.empty()) node.meta.labels.Set("rack", rack);
  return node;
}

class TopologiesTest : public testing::Test {
 protected:
  TopologiesTest() : state_(Options()) {}
  static StateOptions Options() {
    StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  // Whether `f` makes what trees show stale.
  template <typename F>
  bool Moves(F f) {
    const uint64_t before = state_.topology_version();
    f();
    EXPECT_GE(state_.topology_version(), before);
    return state_.topology_version() != before;
  }

  ClusterState state_;
};

TEST_F(TopologiesTest, UpsertFindAndRemove) {
  EXPECT_EQ(state_.FindTopology("t"), nullptr);
  EXPECT_FALSE(state_.RemoveTopology("t").Any());
  EXPECT_TRUE(state_.UpsertTopology(MakeTopology("t", {"zone", "rack"})).policy);
  ASSERT_NE(state_.FindTopology("t"), nullptr);
  EXPECT_EQ(state_.FindTopology("t")->levels.size(), 2u);
  EXPECT_FALSE(state_.RemoveTopology("t", "uid-of-a-former-one").Any());
  ASSERT_NE(state_.FindTopology("t"), nullptr);
  EXPECT_TRUE(state_.RemoveTopology("t", "uid-t").policy);
  EXPECT_EQ(state_.FindTopology("t"), nullptr);
}

TEST_F(TopologiesTest, OnlyWhatDecisionsReadIsAChange) {
  model::Topology topology = MakeTopology("t", {"rack"});
  state_.UpsertTopology(topology);
  topology.meta.resource_version = "17";
  topology.meta.labels.Set("team", "a");
  EXPECT_FALSE(Moves([&] { EXPECT_FALSE(state_.UpsertTopology(topology).Any()); }));
  EXPECT_EQ(state_.FindTopology("t")->meta.resource_version, "17");
  topology.levels[0].alias = "r";
  EXPECT_TRUE(Moves([&] { EXPECT_TRUE(state_.UpsertTopology(topology).policy); }));
  topology.levels.push_back({"host", ""});
  EXPECT_TRUE(Moves([&] { EXPECT_TRUE(state_.UpsertTopology(topology).policy); }));
  topology.invalid = "spec.levels: wrong";
  EXPECT_TRUE(Moves([&] { EXPECT_TRUE(state_.UpsertTopology(topology).policy); }));
  EXPECT_TRUE(Moves([&] { state_.RemoveTopology("t"); }));
}

TEST_F(TopologiesTest, VersionMovesWithTheNodesAndWithTheLabelsThatLevelsName) {
  state_.UpsertTopology(MakeTopology("t", {"rack"}));
  EXPECT_TRUE(Moves([&] { state_.UpsertNode(Labelled("a", "r1")); }));
  EXPECT_TRUE(Moves([&] { state_.UpsertNode(Labelled("a", "r2")); }));
  EXPECT_TRUE(Moves([&] { state_.UpsertNode(Labelled("a", "")); }));
  EXPECT_TRUE(Moves([&] { state_.UpsertNode(Labelled("a", "r2")); }));
  model::Node other_label = Labelled("a", "r2");
  other_label.meta.labels.Set("colour", "blue");
  EXPECT_FALSE(Moves([&] { state_.UpsertNode(other_label); }));
  other_label.unschedulable = true;
  EXPECT_FALSE(Moves([&] { state_.UpsertNode(other_label); }));
  EXPECT_FALSE(Moves([&] { state_.UpsertPod(PodBuilder("ns", "p").Gpus(1).On("a")); }));
  EXPECT_TRUE(Moves([&] { state_.RemoveNode("a", ""); }));
  EXPECT_TRUE(Moves([&] { state_.UpsertNode(Labelled("a", "r2")); }));
  state_.RemoveNode("a", "");
  EXPECT_TRUE(Moves([&] { state_.RemovePod("ns", "p", ""); }))
      << "the id of the node is free again";
}

TEST_F(TopologiesTest, VersionMovesWithNodesThatAreOrdered) {
  state_.UpsertTopology(MakeTopology("t", {"rack"}));
  EXPECT_TRUE(Moves([&] { state_.UpsertOrderedNode(Labelled("a", "r1"), "req"); }));
  EXPECT_FALSE(Moves([&] { state_.UpsertOrderedNode(Labelled("a", "r1"), "req"); }));
  EXPECT_TRUE(Moves([&] { state_.UpsertOrderedNode(Labelled("a", "r2"), "req"); }));
  EXPECT_TRUE(Moves([&] { state_.RemoveOrderedNode("a"); }));
}

}  // namespace
}  // namespace fairlead::state
