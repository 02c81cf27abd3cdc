// What is asked of the hook for gangs that a topology binds together.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine::testing {
namespace {

using model::kUnlimited;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using ::testing::HasSubstr;
using verdict::Code;

constexpr char kRack[] = "example.com/rack";
const std::vector<std::string> kKnown = {model::kHostnameLabel, model::kZoneLabel};

class DomainDemandTest : public ::testing::Test {
 protected:
  DomainDemandTest() { Start({}); }
  void Start(const EngineOptions& options) {
    cluster_ = std::make_unique<Cluster>(options);
    cluster_->Queue("q", kUnlimited);
    cluster_->engine().SetOfferedLabels({kKnown});
    Topology("t", {model::kZoneLabel, model::kHostnameLabel});
    Topology("racks", {model::kZoneLabel, kRack, model::kHostnameLabel});
  }
  void Topology(const std::string& name, const std::vector<std::string>& labels) {
    model::Topology topology;
    topology.meta.name = name;
    for (const std::string& label : labels) topology.levels.push_back({label, ""});
    topology.levels.back().alias = "host";
    cluster_->state().UpsertTopology(topology);
  }
  void Node(absl::string_view name, absl::string_view zone, int64_t gpus,
            absl::string_view rack = "") {
    model::Node node = MakeNode(name, gpus);
    if (!zone.empty()) node.meta.labels.Set(model::kZoneLabel, zone);
    if (!rack.empty()) node.meta.labels.Set(kRack, rack);
    cluster_->state().UpsertNode(node);
  }
  // As the hook's: of a request, in the state before it registers.
  void Ordered(absl::string_view name, absl::string_view zone, int64_t gpus) {
    model::Node node = MakeNode(name, gpus);
    node.meta.labels.Set(model::kZoneLabel, zone);
    node.meta.labels.Set(model::kNodeRequestLabel, name);
    cluster_->state().UpsertOrderedNode(node, name);
  }
  void Group(absl::string_view name, int32_t min, const model::TopologyConstraint& constraint,
             std::vector<model::SubGroup> sub_groups = {}) {
    model::PodGroup group = MakeGroup("ns", name, "q", min);
    group.topology = constraint;
    group.sub_groups = std::move(sub_groups);
    if (!group.sub_groups.empty()) group.min_member.reset();
    cluster_->Group(group);
  }
  static model::SubGroup Sub(const std::string& name, int32_t min,
                             const model::TopologyConstraint& constraint,
                             const std::string& parent = "") {
    model::SubGroup sub;
    sub.name = name;
    sub.parent = parent;
    if (min > 0) sub.min_member = min;
    sub.topology = constraint;
    return sub;
  }
  // Pods of one GPU, from number `first` on.
  void Pods(absl::string_view group, int count, absl::string_view sub = "", int first = 0,
            absl::string_view on = "") {
    for (int i = first; i < first + count; ++i) {
      PodBuilder pod("ns", absl::StrCat(group, sub, i));
      pod.Gpus(1).Group(group).Created(i);
      if (!sub.empty()) pod.Label(model::kSubGroupLabel, sub);
      if (!on.empty()) pod.On(on);
      cluster_->Pod(pod);
    }
  }
  const Waiting* Wait(absl::string_view workload) {
    return FindWaiting(cluster_->state(), cluster_->Run(), workload);
  }
  // "rule:countxmin" of every class, in order.
  static std::string Parts(const Waiting& waiting) {
    std::vector<std::string> texts;
    for (const verdict::DomainPart& part : waiting.domains.parts) {
      for (const verdict::DemandClass& pods : part.classes) {
        texts.push_back(absl::StrCat(part.rule, ":", pods.count, "/", pods.min_count));
      }
    }
    return absl::StrJoin(texts, " ");
  }

  // Nodes like this are on offer in each of the zones.
  void Offer(const std::vector<std::string>& zones) {
    std::vector<model::OfferedNode> offers;
    for (const std::string& zone : zones) {
      model::OfferedNode& offer = offers.emplace_back();
      offer.node = MakeNode(absl::StrCat("offer-", zone), 8);
      offer.node.meta.labels.Set(model::kZoneLabel, zone);
    }
    cluster_->engine().SetOfferedNodes(std::move(offers));
  }
  // "zone: count/min" of those without room there.
  static std::string Room(const Waiting* waiting) {
    if (waiting == nullptr) return "does not wait";
    if (!waiting->domains.room.has_value()) return "";
    std::string text = absl::StrCat(absl::StrJoin(waiting->domains.room->values, "/"), ":");
    for (const verdict::DemandClass& pods : waiting->domains.room->rest) {
      absl::StrAppend(&text, " ", pods.count, "/", pods.min_count);
    }
    return text;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(DomainDemandTest, FromNoNodesAtAllOneZoneIsAskedFor) {
  Group("g", 3, {"t", model::kZoneLabel, ""});
  Pods("g", 4);
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->verdict.code, Code::kInsufficientCapacity);
  EXPECT_TRUE(waiting->wants_nodes);
  ASSERT_EQ(waiting->domains.rules.size(), 1u);
  const verdict::DomainRule& rule = waiting->domains.rules[0];
  EXPECT_EQ(rule.labels, (std::vector<std::string>{model::kZoneLabel, model::kHostnameLabel}));
  EXPECT_EQ(rule.required, 1);
  EXPECT_EQ(rule.preferred, 0);
  EXPECT_TRUE(rule.pinned.empty());
  EXPECT_EQ(Parts(*waiting), "0:4/3");
}

TEST_F(DomainDemandTest, LevelsByAliasAndPreferredInsideRequiredOnly) {
  Group("in", 2, {"t", model::kZoneLabel, "host"});
  Pods("in", 2);
  Group("out", 2, {"t", "host", model::kZoneLabel});
  Pods("out", 2);
  const Waiting* in = Wait("in");
  ASSERT_TRUE(in != nullptr && in->domains.rules.size() == 1);
  EXPECT_EQ(in->domains.rules[0].required, 1);
  EXPECT_EQ(in->domains.rules[0].preferred, 2);
  const Waiting* out = Wait("out");
  ASSERT_TRUE(out != nullptr && out->domains.rules.size() == 1);
  EXPECT_EQ(out->domains.rules[0].required, 2);
  EXPECT_EQ(out->domains.rules[0].preferred, 0);
}

TEST_F(DomainDemandTest, UnknownLevelOfNewNodesIsNotBoughtFor) {
  const std::vector<model::TopologyConstraint> constraints = {
      {"racks", kRack, ""},              // the level itself
      {"racks", model::kZoneLabel, ""},  // one outside of it: the node would not be in the tree
      {"racks", "", model::kZoneLabel},  // only preferred: the same
  };
  for (const model::TopologyConstraint& constraint : constraints) {
    Start({});
    Group("g", 2, constraint);
    Pods("g", 2);
    const Waiting* waiting = Wait("g");
    ASSERT_NE(waiting, nullptr);
    EXPECT_FALSE(waiting->wants_nodes);
    EXPECT_TRUE(waiting->domains.empty());
    EXPECT_EQ(waiting->verdict.code, Code::kTopologyInfeasible);
    EXPECT_THAT(cluster_->DetailsOf("g"),
                HasSubstr("which example.com/rack a new node would have is not known"));
    ASSERT_FALSE(waiting->verdict.unblockers.empty());
    EXPECT_THAT(waiting->verdict.unblockers.back().what,
                HasSubstr("set example.com/rack in spec.labels of a NodePool"));
    // Where there is such a domain and it is only full, time helps as well.
    Node("n", "z1", 2, "r1");
    cluster_->Pod(PodBuilder("ns", "other").Gpus(2).On("n"));
    waiting = Wait("g");
    ASSERT_NE(waiting, nullptr);
    EXPECT_FALSE(waiting->wants_nodes);
    EXPECT_EQ(waiting->verdict.code, Code::kInsufficientCapacity);
    ASSERT_EQ(waiting->verdict.unblockers.size(), 2u);
    EXPECT_EQ(waiting->verdict.unblockers[0].by, verdict::ResolvableBy::kTime);
    EXPECT_EQ(waiting->verdict.unblockers[1].by, verdict::ResolvableBy::kUserChange);
    // A pool whose nodes are in one rack.
    cluster_->engine().SetOfferedLabels(
        {kKnown, {kRack, model::kHostnameLabel, model::kZoneLabel}});
    waiting = Wait("g");
    ASSERT_NE(waiting, nullptr);
    EXPECT_TRUE(waiting->wants_nodes);
    EXPECT_EQ(cluster_->DetailsOf("g"), "");
  }
}

TEST_F(DomainDemandTest, LabelsThatNoSingleKindOfNodeHasAll) {
  cluster_->engine().SetOfferedLabels({kKnown, {kRack, model::kHostnameLabel}});
  Group("g", 2, {"racks", kRack, ""});
  Pods("g", 2);
  EXPECT_FALSE(Wait("g")->wants_nodes);
  EXPECT_THAT(cluster_->DetailsOf("g"),
              HasSubstr("no node that may be bought has the labels of all levels"));
}

TEST_F(DomainDemandTest, WhatIsNotBoughtForTakesNoOtherShareOfALimit) {
  cluster_->Queue("small", 2, 2);
  model::PodGroup group = MakeGroup("ns", "g", "small", 2);
  group.topology = {"racks", kRack, ""};
  cluster_->Group(group);
  Pods("g", 2);
  cluster_->Pod(PodBuilder("ns", "single").Gpus(1).Queue("small").Created(50));
  const Waiting* single = Wait("single");
  ASSERT_NE(single, nullptr);
  EXPECT_TRUE(single->wants_nodes);
  EXPECT_EQ(single->verdict.code, Code::kInsufficientCapacity);
  // What is bought for does.
  group.topology = {"t", model::kZoneLabel, ""};
  cluster_->Group(group);
  single = Wait("single");
  ASSERT_NE(single, nullptr);
  EXPECT_FALSE(single->wants_nodes);
  EXPECT_EQ(single->verdict.code, Code::kQueueLimitReached);
  EXPECT_TRUE(FindWaiting(cluster_->state(), cluster_->Run(), "g")->wants_nodes);
}

TEST_F(DomainDemandTest, WhereItRunsIsWhereMoreIsBought) {
  Node("a", "z1", 1);
  Node("b", "z2", 2);
  Group("g", 2, {"t", model::kZoneLabel, ""});
  Pods("g", 2, "", 0, "b");
  Pods("g", 2, "", 2);
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_TRUE(waiting->wants_nodes);
  ASSERT_EQ(waiting->domains.rules.size(), 1u);
  EXPECT_EQ(waiting->domains.rules[0].pinned, (std::vector<std::vector<std::string>>{{"z2"}}));
  EXPECT_EQ(Parts(*waiting), "0:2/1");
}

TEST_F(DomainDemandTest, PromisedPodsPinLikeRunningOnes) {
  Ordered("fl-1", "z2", 1);
  Ordered("fl-2", "z2", 1);
  Group("g", 2, {"t", model::kZoneLabel, ""});
  Pods("g", 3);
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->verdict.code, Code::kNodesRequested);
  EXPECT_EQ(cluster_->Promised().size(), 2u);
  EXPECT_EQ(waiting->domains.rules[0].pinned, (std::vector<std::vector<std::string>>{{"z2"}}));
  EXPECT_EQ(Parts(*waiting), "0:1/1");
  // All of it is on order: nothing is asked for.
  Ordered("fl-3", "z2", 1);
  waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_FALSE(waiting->wants_nodes);
  EXPECT_TRUE(waiting->domains.empty());
}

TEST_F(DomainDemandTest, PodsThatRunOnANodeOrOutsideTheTreeAreNotBoughtFor) {
  Node("a", "z1", 1);
  Group("g", 1, {"t", "host", ""});
  Pods("g", 1, "", 0, "a");
  Pods("g", 1, "", 1);
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_FALSE(waiting->wants_nodes);
  EXPECT_THAT(cluster_->DetailsOf("g"),
              HasSubstr("pods of it have a node already, and a new one would be another domain"));

  Node("plain", "", 1);
  Group("h", 1, {"t", model::kZoneLabel, ""});
  Pods("h", 1, "", 0, "plain");
  Pods("h", 1, "", 1);
  waiting = Wait("h");
  ASSERT_NE(waiting, nullptr);
  EXPECT_FALSE(waiting->wants_nodes);
  EXPECT_THAT(cluster_->DetailsOf("h"), HasSubstr("without the labels of all levels"));
}

// Two sub-groups on a node each, all in one zone, and one that goes anywhere.
TEST_F(DomainDemandTest, SubGroupsAreRulesInsideRules) {
  Group("g", 0, {},
        {Sub("decode-1", 2, {"t", "host", ""}, "decode"),
         Sub("decode", 0, {"t", model::kZoneLabel, ""}),
         Sub("decode-2", 2, {"t", "host", ""}, "decode"), Sub("web", 1, {})});
  Pods("g", 2, "decode-1");
  Pods("g", 2, "decode-2");
  Pods("g", 2, "web");
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_TRUE(waiting->wants_nodes);
  ASSERT_EQ(waiting->domains.rules.size(), 3u);
  EXPECT_EQ(waiting->domains.rules[0].around, -1);
  EXPECT_EQ(waiting->domains.rules[0].required, 1);
  for (int i : {1, 2}) {
    EXPECT_EQ(waiting->domains.rules[i].around, 0);
    EXPECT_EQ(waiting->domains.rules[i].required, 2);
  }
  EXPECT_EQ(Parts(*waiting), "-1:2/1 1:2/2 2:2/2");
}

// One sub-group that is not needed cannot be bought for: the others can.
TEST_F(DomainDemandTest, ExtrasThatNewNodesDoNotHelpAreLeftOut) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.min_member.reset();
  group.min_sub_group = 1;
  group.sub_groups = {Sub("a", 1, {"t", model::kZoneLabel, ""}), Sub("b", 2, {"racks", kRack, ""})};
  cluster_->Group(group);
  Pods("g", 2, "a");
  Pods("g", 2, "b");
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_TRUE(waiting->wants_nodes);
  EXPECT_EQ(Parts(*waiting), "0:2/1");
}

TEST_F(DomainDemandTest, RoomInADomainIsToldBesidesTheWhole) {
  Node("a", "z1", 2);
  Node("b1", "z2", 2);
  Node("b2", "z2", 1);
  Offer({"z1", "z2"});
  Group("g", 5, {"t", model::kZoneLabel, ""});
  Pods("g", 6);
  const Waiting* waiting = Wait("g");
  EXPECT_EQ(Room(waiting), "z2: 3/2") << "the sixth one is an extra";
  EXPECT_EQ(Parts(*waiting), "0:6/5");
  // What the first may have is not told to the next.
  Group("h", 5, {"t", model::kZoneLabel, ""});
  Pods("h", 5);
  EXPECT_EQ(Room(Wait("h")), "z1: 3/3");
  EXPECT_EQ(Room(Wait("g")), "z2: 3/2");
}

TEST_F(DomainDemandTest, RoomCountsWhereNodesAreOnOffer) {
  Node("a", "z1", 1);
  Node("b", "z2", 2);
  Group("g", 4, {"t", model::kZoneLabel, ""});
  Pods("g", 4);
  Offer({"z1"});
  EXPECT_EQ(Room(Wait("g")), "z1: 3/3");
  Offer({"z3"});
  EXPECT_EQ(Room(Wait("g")), "");
}

TEST_F(DomainDemandTest, WhereItRunsIsWhereRoomCounts) {
  Node("a", "z1", 8);
  Node("b", "z2", 3);
  Offer({"z1", "z2"});
  Group("g", 4, {"t", model::kZoneLabel, ""});
  Pods("g", 1, "", 0, "b");
  Pods("g", 3, "", 1);
  EXPECT_EQ(Room(Wait("g")), "z2: 1/1");
}

TEST_F(DomainDemandTest, NoRoomIsToldForSetsOfOneNodeAndRulesInsideOfRules) {
  Node("a", "z1", 2);
  Offer({"z1"});
  Group("one", 3, {"t", "host", ""});
  Pods("one", 3);
  EXPECT_EQ(Room(Wait("one")), "");
  Group("tree", 0, {"t", model::kZoneLabel, ""},
        {Sub("x", 2, {"t", model::kZoneLabel, ""}), Sub("y", 2, {})});
  Pods("tree", 2, "x");
  Pods("tree", 2, "y");
  EXPECT_EQ(Room(Wait("tree")), "");
}

TEST_F(DomainDemandTest, APreferredDomainForbidsNoRoomElsewhere) {
  Node("a", "z1", 1);
  Node("b", "z2", 1);
  Offer({"z1", "z2"});
  Group("g", 4, {"t", "", model::kZoneLabel});
  Pods("g", 4);
  EXPECT_EQ(Room(Wait("g")), ": 2/2");
}

TEST_F(DomainDemandTest, WithoutTheHookNothingIsSaidOfNewNodes) {
  EngineOptions options;
  options.hook_on = false;
  Start(options);
  Node("a", "z1", 1);
  cluster_->Pod(PodBuilder("ns", "other").Gpus(1).On("a"));
  Group("g", 1, {"t", model::kZoneLabel, ""});
  Pods("g", 1);
  const Waiting* waiting = Wait("g");
  ASSERT_NE(waiting, nullptr);
  EXPECT_FALSE(waiting->wants_nodes);
  EXPECT_EQ(waiting->verdict.code, Code::kInsufficientCapacity);
  EXPECT_EQ(cluster_->DetailsOf("g"), "");
}

TEST_F(DomainDemandTest, TopologyOrLevelThatDoesNotExist) {
  Group("g", 1, {"nowhere", model::kZoneLabel, ""});
  Group("h", 1, {"t", "no-level", ""});
  for (const char* name : {"g", "h"}) {
    Pods(name, 1);
    const Waiting* waiting = Wait(name);
    ASSERT_NE(waiting, nullptr);
    EXPECT_FALSE(waiting->wants_nodes);
    EXPECT_EQ(waiting->verdict.code, Code::kMissingObject);
  }
}

}  // namespace
}  // namespace fairlead::engine::testing
