#include "scheduler/plugins/pod_topology_spread.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/testing/affinity_builders.h"
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/scale.h"

namespace fairlead::plugins {
namespace {

using model::testing::AppSelector;

constexpr char kNo[] = "U node(s) didn't match pod topology spread constraints";
constexpr char kNoKey[] =
    "X node(s) didn't match pod topology spread constraints (missing required label)";

model::TopologySpreadConstraint Constraint(const char* key, int32_t max_skew = 1) {
  model::TopologySpreadConstraint c;
  c.topology_key = key;
  c.max_skew = max_skew;
  c.selector = AppSelector("web");
  return c;
}

class PodTopologySpreadTest : public PluginTest {
 protected:
  PodTopologySpreadTest() : spread_(Only("PodTopologySpread")) {}
  model::Node Zoned(const std::string& name, const std::string& zone) {
    model::Node node = MakeNode(name, 0);
    if (!zone.empty()) node.meta.labels.Set("zone", zone);
    return node;
  }
  void AddPods(const std::string& node, int count, const char* app = "web", const char* ns = "ns") {
    for (int i = 0; i < count; ++i) {
      AddPod(PodBuilder(ns, absl::StrCat("pod-", ++pods_)).Label("app", app).On(node));
    }
  }
  void Spread(std::vector<model::TopologySpreadConstraint> constraints) {
    model::PodSpec spec;
    spec.topology_spread = std::move(constraints);
    spec.labels_for_affinity = {{"app", "web"}};
    Waiting(spec);
  }

  std::unique_ptr<framework::Framework> spread_;
  int pods_ = 0;
};

// As upstream counts: no pod is counted, the pod itself is one.
TEST_F(PodTopologySpreadTest, AnEmptySelectorCountsNoPod) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddPods("a1", 5);
  model::TopologySpreadConstraint all = Constraint("zone");
  all.selector = {};
  all.selector.none = false;
  Spread({all});
  EXPECT_EQ(Why(*spread_, "a1"), "");
  all.max_skew = 0;
  Spread({all});
  EXPECT_EQ(Why(*spread_, "a1"), kNo) << "it counts itself";
}

TEST_F(PodTopologySpreadTest, TheFirstConstraintThatRefusesIsTold) {
  model::Node node = Zoned("a1", "a");
  AddNode(node);
  AddNode(Zoned("b1", "b"));
  node = Zoned("a2", "a");
  node.meta.labels.Set("rack", "r");
  AddNode(node);
  node = Zoned("b2", "b");
  node.meta.labels.Set("rack", "r");
  AddNode(node);
  AddPods("a2", 5);
  Spread({Constraint("zone"), Constraint("rack", 10)});
  EXPECT_EQ(Why(*spread_, "a1"), kNo) << "and it has no rack";
  EXPECT_EQ(Why(*spread_, "b1"), kNoKey);
}

TEST_F(PodTopologySpreadTest, SkewOverZones) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("a2", "a"));
  AddNode(Zoned("b1", "b"));
  AddNode(Zoned("none", ""));
  AddPods("a1", 1);
  AddPods("b1", 5, "other");
  AddPods("b1", 5, "web", "elsewhere");
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a1"), kNo);
  EXPECT_EQ(Why(*spread_, "a2"), kNo);
  EXPECT_EQ(Why(*spread_, "b1"), "") << "other pods and namespaces do not count";
  EXPECT_EQ(Why(*spread_, "none"), kNoKey);
  EXPECT_EQ(Why(*spread_, "none", Capacity::kEmpty), kNoKey);
  EXPECT_EQ(Why(*spread_, "a1", Capacity::kEmpty), "");
  Spread({Constraint("zone", 2)});
  EXPECT_EQ(Why(*spread_, "a2"), "");
}

TEST_F(PodTopologySpreadTest, AnswersFollowTheTransaction) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  Spread({Constraint("zone")});
  AddPod(PodBuilder("ns", "sibling").Label("app", "web"));
  EXPECT_EQ(Why(*spread_, "a1"), "");
  {
    state::Transaction txn(state_);
    txn.Allocate(state_.FindPod("ns", "sibling"), state_.FindNode("a1"));
    EXPECT_EQ(Why(*spread_, "a1"), kNo);
    EXPECT_EQ(Why(*spread_, "b1"), "");
  }
  EXPECT_EQ(Why(*spread_, "a1"), "");
}

TEST_F(PodTopologySpreadTest, TerminatingPodsDoNotCount) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddPod(PodBuilder("ns", "ends").Label("app", "web").On("a1").Deleting());
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a1"), "");
}

// Its eviction may wait for its pace, or be refused.
TEST_F(PodTopologySpreadTest, VictimsCountNowUntilTheyAreToldToEnd) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("a2", "a"));
  AddNode(Zoned("b1", "b"));
  PodBuilder ends("ns", "ends");
  ends.Label("app", "web").On("a1");
  AddPod(ends);
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a2", Capacity::kFuture), kNo);
  const state::PodId victim = state_.FindPod("ns", "ends");
  state_.AssumeEvicted(victim);
  EXPECT_EQ(Why(*spread_, "a2"), kNo);
  EXPECT_EQ(Why(*spread_, "a2", Capacity::kFuture), "") << "a place to wait for";
  state_.ForgetEviction(victim);
  EXPECT_EQ(Why(*spread_, "a2", Capacity::kFuture), kNo) << "it runs on";
  state_.AssumeEvicted(victim);
  EXPECT_TRUE(state_.UpsertPod(ends.Deleting()).capacity) << "calls for a cycle";
  EXPECT_EQ(Why(*spread_, "a2"), "");
  EXPECT_EQ(Why(*spread_, "a2", Capacity::kFuture), "");
}

// A pod must not be bound for the sake of one that may come.
TEST_F(PodTopologySpreadTest, TheSkewIsKeptWithAndWithoutPromisedPods) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddPods("a1", 1);
  AddPod(PodBuilder("ns", "sibling").Label("app", "web"));
  Spread({Constraint("zone")});
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "sibling"), state_.FindNode("b1"));
  EXPECT_EQ(Why(*spread_, "a1"), kNo) << "zone b has no pod yet";
  EXPECT_EQ(Why(*spread_, "a1", Capacity::kFuture), "") << "a place to wait for";
  EXPECT_EQ(Why(*spread_, "b1"), "");
  txn.RollbackTo(0);
  txn.Allocate(state_.FindPod("ns", "sibling"), state_.FindNode("b1"));
  EXPECT_EQ(Why(*spread_, "a1"), "");
}

TEST_F(PodTopologySpreadTest, VictimsDoNotCountForPreferences) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddPods("a1", 1);
  model::TopologySpreadConstraint soft = Constraint("zone");
  soft.do_not_schedule = false;
  Spread({soft});
  EXPECT_LT(Score(*spread_, "a1"), Score(*spread_, "b1"));
  state_.AssumeEvicted(state_.FindPod("ns", "pod-1"));
  EXPECT_EQ(Score(*spread_, "a1"), Score(*spread_, "b1"));
}

TEST_F(PodTopologySpreadTest, WhichNodesAreDomains) {
  AddNode(Zoned("a1", "a"));
  model::Node tainted = Zoned("b1", "b");
  tainted.taints = {{"gpu", "", model::TaintEffect::kNoSchedule}};
  AddNode(tainted);
  AddPods("a1", 1);
  // An empty zone that is tainted holds the pod back, unless taints are honoured.
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a1"), kNo);
  model::TopologySpreadConstraint honour = Constraint("zone");
  honour.honor_node_taints = true;
  Spread({honour});
  EXPECT_EQ(Why(*spread_, "a1"), "");
  // The node selector leaves zone b out, unless affinity is ignored.
  model::PodSpec spec;
  spec.topology_spread = {Constraint("zone")};
  spec.labels_for_affinity = {{"app", "web"}};
  spec.node_selector = {{"zone", "a"}};
  Waiting(spec);
  EXPECT_EQ(Why(*spread_, "a1"), "");
  spec.topology_spread[0].honor_node_affinity = false;
  Waiting(spec);
  EXPECT_EQ(Why(*spread_, "a1"), kNo);
}

TEST_F(PodTopologySpreadTest, NodesWithoutAllKeysAreNoDomains) {
  AddNode(Zoned("a1", "a"));
  model::Node node = Zoned("b1", "b");
  node.meta.labels.Erase(model::kHostnameLabel);
  AddNode(node);
  AddPods("a1", 1);
  Spread({Constraint("zone"), Constraint(model::kHostnameLabel, 5)});
  EXPECT_EQ(Why(*spread_, "a1"), "") << "zone b has no node with both keys";
  EXPECT_EQ(Why(*spread_, "b1"), kNoKey);
}

TEST_F(PodTopologySpreadTest, FewerDomainsThanMinDomains) {
  AddNode(Zoned("a1", "a"));
  AddPods("a1", 1);
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a1"), "") << "the only zone is also the least";
  model::TopologySpreadConstraint two = Constraint("zone");
  two.min_domains = 2;
  Spread({two});
  EXPECT_EQ(Why(*spread_, "a1"), kNo);
}

TEST_F(PodTopologySpreadTest, OrderedNodesAreDomainsOfTheFuture) {
  AddNode(Zoned("a1", "a"));
  state_.UpsertOrderedNode(Zoned("b1", "b"), "nr-1");
  AddPods("a1", 1);
  Spread({Constraint("zone")});
  EXPECT_EQ(Why(*spread_, "a1", Capacity::kNow), "");
  EXPECT_EQ(Why(*spread_, "a1", Capacity::kFuture), kNo);
  EXPECT_EQ(Why(*spread_, "b1", Capacity::kFuture), "");
}

TEST_F(PodTopologySpreadTest, PodThatDoesNotMatchItself) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddPods("a1", 1);
  model::PodSpec spec;
  spec.topology_spread = {Constraint("zone")};
  spec.labels_for_affinity = {{"app", "observer"}};
  Waiting(spec);
  EXPECT_EQ(Why(*spread_, "a1"), "") << "it adds nothing to the skew";
}

TEST_F(PodTopologySpreadTest, ScoreOfSoftConstraints) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("b1", "b"));
  AddNode(Zoned("c1", "c"));
  AddNode(Zoned("none", ""));
  AddPods("a1", 4);
  AddPods("b1", 1);
  model::TopologySpreadConstraint soft = Constraint("zone");
  soft.do_not_schedule = false;
  Spread({soft});
  EXPECT_EQ(Why(*spread_, "a1"), "");
  EXPECT_EQ(Why(*spread_, "none"), "");
  // Three domains: 4, 1 and 0 times ln 5 are 6, 2 and 0 when rounded.
  EXPECT_EQ(Score(*spread_, "a1"), 0);
  EXPECT_EQ(Score(*spread_, "b1"), 66 * kPreferenceStep);
  EXPECT_EQ(Score(*spread_, "c1"), 100 * kPreferenceStep);
  EXPECT_EQ(Score(*spread_, "none"), 0);
}

// Constraints of the system count each for itself; 100 (most + least - sum) / most.
TEST_F(PodTopologySpreadTest, ANodeWithoutAZoneHasAScoreByTheSystemsConstraints) {
  AddNode(Zoned("a1", "a"));
  AddNode(Zoned("a2", "a"));
  AddNode(Zoned("none1", ""));
  model::Node bare = Zoned("none2", "");
  bare.meta.labels.Erase(model::kHostnameLabel);
  AddNode(bare);
  AddPods("a1", 2);
  AddPods("none1", 1);
  model::PodSpec spec;
  spec.topology_spread = {Constraint(model::kHostnameLabel, 3), Constraint("zone", 5)};
  for (auto& each : spec.topology_spread) each.do_not_schedule = false;
  spec.labels_for_affinity = {{"app", "web"}};
  Waiting(spec);
  EXPECT_EQ(Score(*spread_, "none1"), 0) << "of the pod's own, a node needs all keys";
  EXPECT_EQ(Score(*spread_, "a1"), 72 * kPreferenceStep) << "11, and a2 has 8";
  spec.spread_origin = model::SpreadOrigin::kSystem;
  Waiting(spec);
  // Four nodes by host name, weight ln 6, plus 2; two zones, one of them of nodes without, weight
  // ln 4, plus 4: a1 2 * 1.79 + 2 + 2 * 1.39 + 4 = 12, a2 0 + 2 + 2.77 + 4 = 9, none1 1.79 + 2 = 4,
  // none2 0.
  EXPECT_EQ(Score(*spread_, "a1"), 0);
  EXPECT_EQ(Score(*spread_, "a2"), 25 * kPreferenceStep);
  EXPECT_EQ(Score(*spread_, "none1"), 66 * kPreferenceStep);
  EXPECT_EQ(Score(*spread_, "none2"), 100 * kPreferenceStep);
}

TEST_F(PodTopologySpreadTest, BadArgsMakeNoPlugin) {
  const auto status = [](absl::string_view args) { return PodTopologySpread::Make(args).status(); };
  EXPECT_TRUE(status("").ok());
  EXPECT_TRUE(status(R"({"defaultingType":"System"})").ok());
  EXPECT_EQ(status(R"({"defaultingType":"Some"})").code(), absl::StatusCode::kInvalidArgument);
}

// Against the definition, written out: put the pod there and look at all zones.
TEST_F(PodTopologySpreadTest, AgreesWithTheDefinition) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 engine(seed);
  const auto below = [&](unsigned n) {
    return static_cast<int>(static_cast<unsigned>(engine()) % n);
  };
  std::map<std::string, std::string> zone_of;
  for (int i = 0; i < 6; ++i) {
    const std::string name = absl::StrCat("n", i);
    zone_of[name] = absl::StrCat("z", below(3));
    AddNode(Zoned(name, zone_of[name]));
  }
  std::map<std::string, int> web;  // by zone
  for (const auto& [name, zone] : zone_of) web[zone] += 0;
  int refusals = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string on = absl::StrCat("n", below(6));
    const bool counts = below(3) > 0;
    AddPods(on, 1, counts ? "web" : "other");
    if (counts) ++web[zone_of[on]];
    const int max_skew = 1 + below(3);
    Spread({Constraint("zone", max_skew)});
    for (const auto& [name, zone] : zone_of) {
      int least = web.begin()->second;
      for (const auto& [z, count] : web) least = std::min(least, count);
      const bool fits = web[zone] + 1 - least <= max_skew;
      ASSERT_EQ(Why(*spread_, name), fits ? "" : kNo) << round << name;
      refusals += fits ? 0 : 1;
    }
  }
  if (web.size() > 1) {
    EXPECT_GT(refusals, 0);
  }
}

}  // namespace
}  // namespace fairlead::plugins
