#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"

namespace fairlead::state {
namespace {

using testing::OurPods;

model::Topology MakeTopology(absl::string_view name, std::vector<std::string> labels) {
  model::Topology topology;
  topology.meta.name = std::string(name);
  topology.meta.uid = absl::StrCat("uid-", name);
  for (std::string& label : labels) topology.levels.push_back({std::move(label), ""});
  return topology;
}

class TopologyEntries final : public StateSubscriber {
 public:
  void OnChange(const StateChange&) override { ++told; }
  [[nodiscard]] ChangeKinds Kinds() const override {
    return {StateChange::Kind::kTopology, StateChange::Kind::kTopologyGone};
  }
  int told = 0;
};

class TopologiesTest : public ::testing::Test {
 protected:
  TopologiesTest() : state_(OurPods()) { state_.Subscribe(&entries_); }
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  // Whether `f` changes a topology for those that follow the log.
  template <typename F>
  bool Moves(F f) {
    const int before = entries_.told;
    f();
    return entries_.told != before;
  }

  TopologyEntries entries_;
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

TEST_F(TopologiesTest, AnIdIsFreeWhenItsTopologyHasGone) {
  state_.UpsertTopology(MakeTopology("a", {"rack"}));
  state_.UpsertTopology(MakeTopology("b", {"zone"}));
  state_.RemoveTopology("a");
  state_.UpsertTopology(MakeTopology("c", {"host"}));
  EXPECT_EQ(state_.topology(0).meta.name, "c");
  EXPECT_EQ(state_.FindTopology("c"), &state_.topology(0));
  EXPECT_EQ(state_.FindTopology("b")->levels[0].node_label, "zone");
}

}  // namespace
}  // namespace fairlead::state
