// Numa: who is refused, and who is preferred.
#include "scheduler/plugins/numa.h"

#include "scheduler/framework/score_tiers.h"
#include "scheduler/model/testing/numa_builders.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using framework::kNumaStep;
using model::NumaPolicy;
using model::testing::MakeGuaranteed;
using model::testing::MakeNodeTopology;
using model::testing::OnZone;

constexpr char kNotAligned[] =
    "node(s) cannot give the pod what it requests on NUMA nodes as their Topology Manager demands";

class NumaTest : public ::testing::Test {
 protected:
  NumaTest() : state_(Options()) {
    EXPECT_TRUE(RegisterAll(registry_).ok());
    auto made = framework::Framework::Make({"test", {{"Numa"}}}, registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    plugin_ = *std::move(made);
  }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    options.align_to_numa_nodes = true;
    return options;
  }
  void AddNode(const std::string& name, const std::vector<int64_t>& zones,
               NumaPolicy policy = NumaPolicy::kSingleNumaNode) {
    state_.UpsertNode(MakeNode(name, 0));
    if (!zones.empty()) state_.UpsertNodeTopology(MakeNodeTopology(name, zones, policy));
  }
  void Wait(int64_t cores, bool guaranteed = true) {
    model::Pod pod = MakeGuaranteed(PodBuilder("ns", "waiting"), cores);
    pod.spec.guaranteed = guaranteed;
    state_.UpsertPod(pod);
  }
  framework::Context Context(Capacity capacity) {
    const state::PodRecord& pod = state_.pod(state_.FindPod("ns", "waiting"));
    return {state_, state_.pod_class(pod.pod_class), pod.pod_class, capacity};
  }
  // As PluginTest::Why.
  std::string Why(const std::string& name, Capacity capacity = Capacity::kNow) {
    framework::Status why;
    const state::NodeInfo& node = state_.node(state_.FindNode(name));
    const bool yes = plugin_->Filter(Context(capacity), node, &why);
    EXPECT_EQ(plugin_->Filter(Context(capacity), node, nullptr), yes);
    if (yes) return "";
    return (why.code == Code::kUnschedulableAndUnresolvable ? "X " : "U ") + why.reason;
  }
  int64_t Steps(const std::string& name) {
    const int64_t score =
        plugin_->Score(Context(Capacity::kNow), state_.node(state_.FindNode(name)));
    EXPECT_EQ(score % kNumaStep, 0);
    return score / kNumaStep;
  }

  framework::Registry registry_;
  std::unique_ptr<framework::Framework> plugin_;
  state::ClusterState state_;
};

TEST_F(NumaTest, RefusesWhatTheKubeletWould) {
  AddNode("n", {4, 4});
  AddNode("small", {2, 2});
  AddNode("lax", {2, 2}, NumaPolicy::kBestEffort);
  AddNode("unknown", {});
  state_.UpsertPod(OnZone(MakeGuaranteed(PodBuilder("ns", "a").On("n"), 3), "zone-0", 3));
  state_.UpsertPod(
      OnZone(MakeGuaranteed(PodBuilder("ns", "b").On("n").Deleting(), 3), "zone-1", 3));
  Wait(3);
  EXPECT_EQ(Why("n"), std::string("U ") + kNotAligned);
  EXPECT_EQ(Why("n", Capacity::kFuture), "");
  EXPECT_EQ(Why("small"), std::string("X ") + kNotAligned);
  EXPECT_EQ(Why("lax"), "");
  EXPECT_EQ(Why("unknown"), "");
}

TEST_F(NumaTest, LeavesOthersAlone) {
  AddNode("small", {2, 2});
  Wait(3, /*guaranteed=*/false);
  EXPECT_EQ(Why("small"), "");
  EXPECT_EQ(Steps("small"), 0);
}

TEST_F(NumaTest, PrefersTheFewestNumaNodes) {
  AddNode("one", {4, 4});
  AddNode("two", {2, 2}, NumaPolicy::kRestricted);
  AddNode("three", {1, 1, 1}, NumaPolicy::kBestEffort);
  AddNode("all", {4, 4}, NumaPolicy::kNone);
  AddNode("unknown", {});
  Wait(3);
  EXPECT_EQ(Steps("one"), 3);
  EXPECT_EQ(Steps("two"), 2);
  EXPECT_EQ(Steps("three"), 1);
  EXPECT_EQ(Steps("all"), 2);
  EXPECT_EQ(Steps("unknown"), 1);  // as many as the machine that has most
}

}  // namespace
}  // namespace fairlead::plugins
