// What pods have of NUMA nodes, by annotation and by decision; and undo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/model/testing/numa_builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::NumaPolicy;
using model::Pod;
using model::testing::MakeGuaranteed;
using model::testing::MakeNode;
using model::testing::MakeNodeTopology;
using model::testing::OnZone;
using model::testing::PodBuilder;

StateOptions Aligning() {
  StateOptions options = testing::OurPods();
  options.align_to_numa_nodes = true;
  return options;
}

class PodZonesTest : public ::testing::Test {
 protected:
  PodZonesTest() : state_(Aligning()) {}
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  static Pod Guaranteed(const std::string& name, int64_t cores, const std::string& node = "") {
    PodBuilder pod("ns", name);
    if (!node.empty()) pod.On(node);
    return MakeGuaranteed(pod, cores);
  }
  PodId Add(const Pod& pod) {
    state_.UpsertPod(pod);
    return state_.FindPod(pod.meta.ns, pod.meta.name);
  }
  // "zone-0=2000 zone-1=1000"
  std::string Zones(PodId pod) {
    std::vector<std::string> texts;
    for (const model::ZoneAmounts& zone : state_.ZonesOf(pod)) {
      texts.push_back(absl::StrCat(zone.zone, "=", model::Get(zone.amounts, "cpu")));
    }
    return absl::StrJoin(texts, " ");
  }
  // Of the CPUs of each zone: used, releasing, pipelined.
  std::string Ledger(const std::string& node) {
    const NumaNode* numa = state_.node(state_.FindNode(node)).numa.get();
    if (numa == nullptr) return "none";
    std::vector<std::string> texts;
    for (const NumaNode::Zone& zone : numa->zones) {
      texts.push_back(absl::StrCat(zone.used[model::kCpu], "/", zone.releasing[model::kCpu], "/",
                                   zone.pipelined[model::kCpu]));
    }
    return absl::StrJoin(texts, " ");
  }

  ClusterState state_;
};

TEST_F(PodZonesTest, NothingIsKeptUnlessAskedFor) {
  ClusterState state(testing::OurPods());
  state.UpsertNode(MakeNode("n", 0));
  EXPECT_FALSE(state.UpsertNodeTopology(MakeNodeTopology("n", {4, 4})).Any());
  EXPECT_EQ(state.node(state.FindNode("n")).numa, nullptr);
}

TEST_F(PodZonesTest, ThePodSaysWhatItHas) {
  state_.UpsertNode(MakeNode("n", 0));
  EXPECT_TRUE(state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4})).capacity);
  const PodId pod = Add(OnZone(Guaranteed("p", 3, "n"), "zone-1", 3));
  EXPECT_EQ(Zones(pod), "zone-1=3000");
  EXPECT_EQ(Ledger("n"), "0/0/0 3000/0/0");
  // An agent has looked.
  EXPECT_TRUE(state_.UpsertPod(OnZone(Guaranteed("p", 3, "n"), "zone-0", 3)).capacity);
  EXPECT_EQ(Ledger("n"), "3000/0/0 0/0/0");
  EXPECT_FALSE(state_.UpsertPod(OnZone(Guaranteed("p", 3, "n"), "zone-0", 3)).Any());
  Pod going = OnZone(Guaranteed("p", 3, "n"), "zone-0", 3);
  going.meta.deletion = model::testing::At(1);
  state_.UpsertPod(going);
  EXPECT_EQ(Ledger("n"), "3000/3000/0 0/0/0");
  state_.RemovePod("ns", "p", "");
  EXPECT_EQ(Ledger("n"), "0/0/0 0/0/0");
}

TEST_F(PodZonesTest, ObjectsMayComeInAnyOrder) {
  const PodId pod = Add(OnZone(Guaranteed("p", 3, "n"), "zone-1", 3));
  EXPECT_EQ(Zones(pod), "");
  EXPECT_FALSE(state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4})).Any() &&
               state_.node(state_.FindNode("n")).exists);
  state_.UpsertNode(MakeNode("n", 0));
  EXPECT_EQ(Ledger("n"), "0/0/0 3000/0/0");
  EXPECT_TRUE(state_.RemoveNodeTopology("n", "uid-n").capacity);
  EXPECT_EQ(Ledger("n"), "none");
  EXPECT_EQ(Zones(pod), "");
}

TEST_F(PodZonesTest, WhatMakesNoSenseIsNotKnown) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4}));
  // A zone that is not there; more than it requests, in one zone or two; one zone twice.
  Add(OnZone(Guaranteed("a", 3, "n"), "zone-7", 3));
  Add(OnZone(Guaranteed("b", 3, "n"), "zone-0", 4));
  Add(OnZone(OnZone(Guaranteed("c", 3, "n"), "zone-0", 2), "zone-1", 2));
  Add(OnZone(OnZone(Guaranteed("d", 3, "n"), "zone-0", 1), "zone-0", 1));
  EXPECT_EQ(Ledger("n"), "0/0/0 0/0/0");
}

TEST_F(PodZonesTest, OnlyWhatDecisionsReadIsAChange) {
  state_.UpsertNode(MakeNode("n", 0));
  model::NodeResourceTopology topology = MakeNodeTopology("n", {4, 4});
  state_.UpsertNodeTopology(topology);
  topology.zones[0].available = {{"cpu", 1000}};
  topology.meta.resource_version = "7";
  const uint64_t version = state_.version();
  EXPECT_FALSE(state_.UpsertNodeTopology(topology).Any());
  EXPECT_EQ(state_.version(), version);
  topology.policy = NumaPolicy::kRestricted;
  EXPECT_TRUE(state_.UpsertNodeTopology(topology).capacity);
}

TEST_F(PodZonesTest, ADecisionPicksZonesAndUndoReturnsThem) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4}));
  const PodId victim = Add(OnZone(Guaranteed("v", 3, "n"), "zone-0", 3));
  const PodId other = Add(OnZone(Guaranteed("o", 3, "n"), "zone-1", 3));
  const PodId pod = Add(Guaranteed("p", 3));
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    txn.Evict(victim);
    EXPECT_EQ(Ledger("n"), "3000/3000/0 3000/0/0");
    txn.Pipeline(pod, state_.FindNode("n"));
    EXPECT_EQ(Zones(pod), "zone-0=3000");
    EXPECT_EQ(Ledger("n"), "3000/3000/3000 3000/0/0");
    EXPECT_EQ(state_.CheckConsistency(), "");
  }
  EXPECT_EQ(state_.Dump(), before);
  EXPECT_EQ(Zones(other), "zone-1=3000");
}

TEST_F(PodZonesTest, ABindingIsConfirmedWithItsZones) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertNodeTopology(MakeNodeTopology("n", {2, 4}));
  const PodId pod = Add(Guaranteed("p", 3));
  {
    Transaction txn(state_);
    txn.Allocate(pod, state_.FindNode("n"));
    txn.Commit();
  }
  EXPECT_EQ(Zones(pod), "zone-1=3000");
  // A webhook may drop the annotation: what was decided holds.
  state_.UpsertPod(Guaranteed("p", 3, "n"));
  EXPECT_EQ(Zones(pod), "zone-1=3000");
  state_.UpsertPod(OnZone(Guaranteed("p", 3, "n"), "zone-1", 3));
  EXPECT_EQ(Ledger("n"), "0/0/0 3000/0/0");
}

TEST_F(PodZonesTest, AChangedTopologyKeepsWhatPodsHave) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4}));
  const PodId pod = Add(Guaranteed("p", 3));
  {
    Transaction txn(state_);
    txn.Allocate(pod, state_.FindNode("n"));
    txn.Commit();
  }
  model::NodeResourceTopology topology = MakeNodeTopology("n", {8, 4});
  std::swap(topology.zones[0].name, topology.zones[1].name);
  state_.UpsertNodeTopology(topology);
  EXPECT_EQ(Zones(pod), "zone-0=3000");
  EXPECT_EQ(Ledger("n"), "0/0/0 3000/0/0");
  topology.zones.pop_back();
  state_.UpsertNodeTopology(topology);
  EXPECT_EQ(Zones(pod), "");
}

TEST_F(PodZonesTest, WhatIsOrderedIsLikeOthersOfItsType) {
  model::Node known = MakeNode("n", 0);
  known.meta.labels.Set(model::kInstanceTypeLabel, "big");
  state_.UpsertNode(known);
  state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4}));
  model::Node ordered = MakeNode("o", 0);
  ordered.meta.labels.Set(model::kInstanceTypeLabel, "big");
  state_.UpsertOrderedNode(ordered, "request");
  EXPECT_EQ(Ledger("o"), "0/0/0 0/0/0");
  {
    Transaction txn(state_);
    const NodeId virtual_node = txn.AddNode(ordered);
    EXPECT_NE(state_.node(virtual_node).numa, nullptr);
  }
  // It may have come differently.
  state_.RemoveNode("n", "");
  state_.RemoveNodeTopology("n");
  EXPECT_EQ(Ledger("o"), "0/0/0 0/0/0");
  EXPECT_EQ(state_.most_zones(), 0u);
}

TEST_F(PodZonesTest, MachinesWithoutATopologyAreLookedAtWhenTheMostChanges) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertNode(MakeNode("plain", 0));
  const uint64_t version = state_.node(state_.FindNode("plain")).version;
  state_.UpsertNodeTopology(MakeNodeTopology("n", {4, 4}));
  EXPECT_EQ(state_.most_zones(), 2u);
  EXPECT_GT(state_.node(state_.FindNode("plain")).version, version);
}

TEST(PodZonesProperty, UndoIsExact) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    ClusterState state(Aligning());
    const auto node_name = [&] { return absl::StrCat("n", random() % 3); };
    for (int i = 0; i < 3; ++i) {
      state.UpsertNode(MakeNode(absl::StrCat("n", i), 0));
      const auto policy = static_cast<NumaPolicy>(random() % 4);
      if (random() % 4 != 0) {
        state.UpsertNodeTopology(MakeNodeTopology(
            absl::StrCat("n", i), {static_cast<int64_t>(random() % 8), 4, 6}, policy));
      }
    }
    constexpr int kPods = 10;
    for (int i = 0; i < kPods; ++i) {
      PodBuilder builder("ns", absl::StrCat("p", i));
      if (random() % 2 == 0) builder.On(node_name());
      const auto cores = static_cast<int64_t>(1 + random() % 5);
      Pod pod = MakeGuaranteed(builder, cores);
      pod.spec.guaranteed = random() % 5 != 0;
      if (random() % 2 == 0) pod = OnZone(pod, absl::StrCat("zone-", random() % 4), cores);
      state.UpsertPod(pod);
    }
    const std::string before = state.Dump();
    {
      Transaction txn(state);
      std::vector<std::pair<Transaction::Checkpoint, std::string>> marks;
      for (int step = 0; step < 60; ++step) {
        if (random() % 4 == 0) marks.emplace_back(txn.Mark(), state.Dump());
        const PodId pod = state.FindPod("ns", absl::StrCat("p", random() % kPods));
        const NodeId node = state.FindNode(node_name());
        switch (state.pod(pod).status) {
          case PodStatus::kPending:
            if (random() % 2 == 0) {
              txn.Allocate(pod, node);
            } else {
              txn.Pipeline(pod, node);
            }
            break;
          case PodStatus::kReleasing:
            txn.Pipeline(pod, node);
            break;
          default:
            txn.Evict(pod);
            break;
        }
        ASSERT_EQ(state.CheckConsistency(), "");
        if (!marks.empty() && random() % 6 == 0) {
          const size_t to = random() % marks.size();
          txn.RollbackTo(marks[to].first);
          ASSERT_EQ(state.Dump(), marks[to].second);
          marks.resize(to);
        }
      }
    }
    ASSERT_EQ(state.Dump(), before);
  }
}

}  // namespace
}  // namespace fairlead::state
