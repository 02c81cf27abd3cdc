// Devices that more than one node can use, and the taints that admins give to devices.
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "scheduler/state/device_state_testing.h"

namespace fairlead::state {
namespace {

using model::testing::AllOf;
using model::testing::MakeClaim;
using model::testing::MakeNode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFabric[] = "fabric.io";

model::SelectorRequirement In(absl::string_view key, std::vector<std::string> values) {
  return {std::string(key), model::SelectorOperator::kIn, std::move(values)};
}

// One slice of a pool with so many devices, "0", "1", ...; of no node yet.
model::ResourceSlice MakeFabric(int64_t devices, absl::string_view pool = "fabric") {
  model::ResourceSlice slice = model::testing::MakeSlice(pool, devices, kFabric);
  slice.nodes = {};
  return slice;
}

model::ResourceSlice ForAllNodes(model::ResourceSlice slice) {
  slice.nodes.all = true;
  return slice;
}

model::ResourceSlice ForRack(model::ResourceSlice slice, const char* rack) {
  slice.nodes.terms = {{{In("rack", {rack})}, {}}};
  return slice;
}

// n0 and n1 are in rack r0, n2 is in rack r1.
class DeviceScopesTest : public testing::DeviceStateTest {
 protected:
  DeviceScopesTest() {
    state_.UpsertDeviceObject(
        model::testing::MakeDeviceClass(kFabric, {"device.driver == \"fabric.io\""}));
    for (const char* name : {"n0", "n1"}) PutInRack(name, "r0");
    PutInRack("n2", "r1");
  }
  void PutInRack(const char* name, const char* rack) {
    model::Node node = MakeNode(name, 0);
    node.meta.labels.Set("rack", rack);
    state_.UpsertNode(node);
  }
  // A pod with a claim of the same name.
  PodId AddFor(const std::string& name, int64_t devices, absl::string_view device_class = kFabric) {
    return AddWith(MakeClaim(name, devices, device_class, "q"));
  }
  PodId AddWith(const model::ResourceClaim& claim) {
    state_.UpsertDeviceObject(claim);
    return Add(claim.meta.name, {claim.meta.name});
  }
  std::vector<std::string> NodesFor(PodId pod) {
    std::vector<std::string> nodes;
    for (const char* node : {"n0", "n1", "n2"}) {
      if (Suits(pod, node)) nodes.emplace_back(node);
    }
    return nodes;
  }
  std::vector<model::NodeSelectorTerm> Where(const char* claim) {
    return *state_.devices().AllocationOf(claim).node_terms;
  }
};

// ---- which nodes --------------------------------------------------------------------------------

TEST_F(DeviceScopesTest, ADeviceSuitsEveryNodeThatItsSelectorAdmits) {
  struct Case {
    const char* name;
    model::NodeScope nodes;
    std::vector<std::string> want;
  };
  const Case cases[] = {
      {"none", {}, {}},
      {"all", {"", true, {}}, {"n0", "n1", "n2"}},
      {"one", {"n1", false, {}}, {"n1"}},
      {"labels", {"", false, {{{In("rack", {"r0"})}, {}}}}, {"n0", "n1"}},
      {"fields", {"", false, {{{}, {In("metadata.name", {"n2"})}}}}, {"n2"}},
      {"both", {"", false, {{{In("rack", {"r0"})}, {In("metadata.name", {"n2"})}}}}, {}},
      {"any term",
       {"", false, {{{In("rack", {"r1"})}, {}}, model::TermOfNode("n0")}},
       {"n0", "n2"}},
      {"an empty term", {"", false, {{}}}, {}},
  };
  const PodId pod = AddFor("c", 1);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    model::ResourceSlice slice = MakeFabric(1);
    slice.nodes = c.nodes;
    state_.UpsertDeviceObject(slice);
    EXPECT_EQ(NodesFor(pod), c.want);
    // The same of the device alone.
    slice.per_device = true;
    slice.devices[0].nodes = std::exchange(slice.nodes, {});
    state_.UpsertDeviceObject(slice);
    EXPECT_EQ(NodesFor(pod), c.want);
    ASSERT_EQ(state_.CheckConsistency(), "");
  }
}

TEST_F(DeviceScopesTest, NodesComeGoAndChangeTheirLabels) {
  state_.UpsertDeviceObject(ForRack(MakeFabric(1), "r1"));
  const PodId pod = AddFor("c", 1);
  EXPECT_THAT(NodesFor(pod), ElementsAre("n2"));
  PutInRack("n0", "r1");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n2"));
  PutInRack("n2", "r0");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0"));
  state_.RemoveNode("n0", "");
  EXPECT_THAT(state_.devices().inventory().DevicesOf("n0"), SizeIs(4)) << "its own alone";
  PutInRack("n0", "r1");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0"));
  state_.RemoveResourceSlice("fabric-fabric.io");
  EXPECT_THAT(NodesFor(pod), IsEmpty());
}

// ---- once over all nodes ------------------------------------------------------------------------

TEST_F(DeviceScopesTest, ADeviceIsAllocatedOnceOverAllNodes) {
  state_.UpsertDeviceObject(ForAllNodes(MakeFabric(2)));
  const PodId a = AddFor("a", 1), b = AddFor("b", 1), c = AddFor("c", 1);
  const auto version = [&](const char* node) { return state_.node(state_.FindNode(node)).version; };
  const uint64_t before = version("n2");
  Transaction txn(state_);
  txn.Allocate(a, state_.FindNode("n0"));
  EXPECT_NE(version("n2"), before) << "it has one device less";
  const Transaction::Checkpoint mark = txn.Mark();
  txn.Allocate(b, state_.FindNode("n1"));
  EXPECT_THAT(Held("ns/a"), ElementsAre("fabric.io/fabric/0"));
  EXPECT_THAT(Held("ns/b"), ElementsAre("fabric.io/fabric/1"));
  EXPECT_THAT(NodesFor(c), IsEmpty());
  ASSERT_EQ(state_.CheckConsistency(), "");
  txn.RollbackTo(mark);
  EXPECT_THAT(NodesFor(c), ElementsAre("n0", "n1", "n2"));
  txn.Allocate(c, state_.FindNode("n2"));
  EXPECT_THAT(Held("ns/c"), ElementsAre("fabric.io/fabric/1"));
  EXPECT_THAT(NodesFor(b), IsEmpty());
  txn.RollbackTo(0);
  EXPECT_THAT(Held("ns/a"), IsEmpty());
  EXPECT_THAT(NodesFor(b), ElementsAre("n0", "n1", "n2"));
}

TEST_F(DeviceScopesTest, WhatTheApiServerShowsCountsOnEveryNode) {
  state_.UpsertDeviceObject(ForAllNodes(MakeFabric(1)));
  const PodId pod = AddFor("c", 1);
  model::ResourceClaim other =
      model::testing::Allocated(MakeClaim("other", 1, kFabric), "fabric", {"0"}, kFabric);
  state_.UpsertDeviceObject(other);
  EXPECT_THAT(NodesFor(pod), IsEmpty());
  state_.RemoveResourceClaim("ns", "other");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n1", "n2"));
}

TEST_F(DeviceScopesTest, PodsOfOneClaimMayBeOnDifferentNodes) {
  state_.UpsertDeviceObject(ForRack(MakeFabric(1), "r0"));
  const PodId a = AddFor("c", 1);
  Place(a, "n0");
  const ClaimRow& row = *state_.devices().Find("ns/c");
  EXPECT_TRUE(state_.devices().IsHeldOn(row, "n0"));
  EXPECT_TRUE(state_.devices().IsHeldOn(row, "n1"));
  EXPECT_FALSE(state_.devices().IsHeldOn(row, "n2"));
  model::ResourceSlice bound = ForRack(MakeFabric(1), "r0");
  bound.devices[0].binds_to_node = true;
  state_.UpsertDeviceObject(bound);
  EXPECT_TRUE(state_.devices().IsHeldOn(row, "n0"));
  EXPECT_FALSE(state_.devices().IsHeldOn(row, "n1")) << "it binds to the first node";
}

// ---- what is written ----------------------------------------------------------------------------

TEST_F(DeviceScopesTest, TheAllocationSaysWhereItsDevicesCanBeUsed) {
  const model::SelectorRequirement rack = In("rack", {"r0"}), zone = In("zone", {"a", "b"});
  const std::vector<model::NodeSelectorTerm> here = {model::TermOfNode("n0")};
  struct Case {
    const char* name;
    std::vector<model::NodeScope> nodes;  // by device
    bool binds = false;
    std::vector<model::NodeSelectorTerm> want;
  };
  const Case cases[] = {
      {"anywhere", {{"", true, {}}, {"", true, {}}}, false, {}},
      {"binds to the node", {{"", true, {}}, {"", true, {}}}, true, here},
      {"a single node", {{"", true, {}}, {"n0", false, {}}}, false, here},
      {"one selector", {{"", false, {{{rack}, {}}}}, {"", true, {}}}, false, {{{rack}, {}}}},
      {"the same selector twice, its values in another order",
       {{"", false, {{{rack, zone}, {}}}}, {"", false, {{{In("zone", {"b", "a"})}, {}}}}},
       false,
       {{{rack, zone}, {}}}},
      {"labels and fields",
       {{"", false, {{{rack}, {}}}}, {"", false, {{{}, {In("metadata.name", {"n0", "n1"})}}}}},
       false,
       {{{rack}, {In("metadata.name", {"n0", "n1"})}}}},
  };
  model::Node node = MakeNode("n0", 0);
  node.meta.labels.Set("rack", "r0");
  node.meta.labels.Set("zone", "a");
  state_.UpsertNode(node);
  int at = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    model::ResourceSlice slice = MakeFabric(2);
    slice.per_device = true;
    for (size_t i = 0; i < 2; ++i) slice.devices[i].nodes = c.nodes[i];
    slice.devices[1].binds_to_node = c.binds;
    state_.UpsertDeviceObject(slice);
    const std::string name = absl::StrCat("c", at++), key = absl::StrCat("ns/", name);
    const PodId pod = AddFor(name, 2);
    ASSERT_TRUE(Suits(pod, "n0"));
    Place(pod, "n0");
    EXPECT_EQ(Where(key.c_str()), c.want);
    EXPECT_EQ(state_.devices().AllocationOf(key).node, "n0");
    state_.RemovePod("ns", name, "");
  }
}

TEST_F(DeviceScopesTest, WhenTheWatchShowsItsAllocationTheClaimIsHeldAsBefore) {
  state_.UpsertDeviceObject(ForRack(MakeFabric(1), "r0"));
  const PodId a = AddFor("a", 1), b = AddFor("b", 1);
  Place(a, "n0");
  const model::ClaimAllocation allocation = state_.devices().AllocationOf("ns/a");
  model::ResourceClaim claim = MakeClaim("a", 1, kFabric, "q");
  claim.allocated = true;
  claim.devices = allocation.devices;
  claim.node_terms = *allocation.node_terms;
  state_.UpsertDeviceObject(claim);
  Show("a", "a", "n0");
  ASSERT_EQ(state_.CheckConsistency(), "");
  EXPECT_THAT(NodesFor(b), IsEmpty());
  state_.RemovePod("ns", "a", "");
  state_.RemoveResourceClaim("ns", "a");
  EXPECT_THAT(NodesFor(b), ElementsAre("n0", "n1"));
}

// ---- pools --------------------------------------------------------------------------------------

TEST_F(DeviceScopesTest, AllDevicesAreThoseOfTheNodeAndThoseOfMany) {
  model::ResourceSlice one = MakeFabric(1, "own");
  one.nodes.name = "n0";
  state_.UpsertDeviceObject(one);
  state_.UpsertDeviceObject(ForRack(MakeFabric(2), "r0"));
  const PodId all = AddWith(AllOf(MakeClaim("all", 1, kFabric, "q")));
  EXPECT_THAT(NodesFor(all), ElementsAre("n0", "n1"));
  Place(all, "n0");
  EXPECT_THAT(Held("ns/all"), SizeIs(3));
  const PodId next = AddWith(AllOf(MakeClaim("next", 1, kFabric, "q")));
  EXPECT_THAT(NodesFor(next), IsEmpty()) << "two of n1's are in use";
}

TEST_F(DeviceScopesTest, APoolWhoseSlicesAreMissingGivesNothing) {
  model::ResourceSlice slice = ForAllNodes(MakeFabric(2));
  slice.slice_count = 2;
  state_.UpsertDeviceObject(slice);
  const PodId pod = AddFor("c", 1);
  const PodId all = AddWith(AllOf(MakeClaim("gpus", 1, testing::kGpuClass, "q")));
  EXPECT_THAT(NodesFor(pod), IsEmpty());
  EXPECT_THAT(NodesFor(all), IsEmpty()) << "GPUs of that pool may be missing";
  model::ResourceSlice rest = ForRack(MakeFabric(1), "r1");
  rest.meta.name = "rest";
  rest.slice_count = 2;
  rest.devices[0].name = "2";
  state_.UpsertDeviceObject(rest);
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(NodesFor(all), ElementsAre("n0", "n1"));
  // Of a newer generation: the pool is being replaced.
  rest.generation = 1;
  state_.UpsertDeviceObject(rest);
  EXPECT_THAT(NodesFor(pod), IsEmpty());
}

TEST_F(DeviceScopesTest, ANodeWithTwoDevicesOfOneNameGetsNoneOfThatPool) {
  model::ResourceSlice a = ForAllNodes(MakeFabric(1)), b = ForRack(MakeFabric(1), "r0");
  b.meta.name = "twin";
  a.slice_count = b.slice_count = 2;
  state_.UpsertDeviceObject(a);
  state_.UpsertDeviceObject(b);
  const PodId pod = AddFor("c", 1);
  EXPECT_THAT(NodesFor(pod), ElementsAre("n2"));
  EXPECT_FALSE(state_.devices().inventory().KnowsAll("n0"));
  EXPECT_TRUE(state_.devices().inventory().KnowsAll("n2"));
}

TEST_F(DeviceScopesTest, APoolWithoutTheCountersThatADeviceUsesGivesNothing) {
  model::ResourceSlice slice = ForAllNodes(MakeFabric(2));
  slice.devices[0].uses = {{"lanes", "n", 1000}};
  state_.UpsertDeviceObject(slice);
  const PodId pod = AddFor("c", 1);
  EXPECT_THAT(NodesFor(pod), IsEmpty());
  slice.counters_milli["lanes"]["n"] = 1000;
  state_.UpsertDeviceObject(slice);
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n1", "n2"));
}

TEST_F(DeviceScopesTest, PartitionsOnDifferentNodesShareTheirCounters) {
  // A partition on each of n0 and n1, and one that both nodes can use.
  model::ResourceSlice slice = MakeFabric(3);
  slice.per_device = true;
  slice.counters_milli["lanes"]["n"] = 2000;
  for (size_t i = 0; i < 3; ++i) slice.devices[i].uses = {{"lanes", "n", 1000}};
  slice.devices[0].nodes.name = "n0";
  slice.devices[1].nodes.name = "n1";
  slice.devices[2].nodes.terms = {{{In("rack", {"r0"})}, {}}};
  state_.UpsertDeviceObject(slice);
  const PodId a = AddFor("a", 1), b = AddFor("b", 1), c = AddFor("c", 1);
  EXPECT_THAT(NodesFor(AddFor("two", 2)), ElementsAre("n0", "n1"));
  Place(a, "n0");
  EXPECT_THAT(NodesFor(b), ElementsAre("n0", "n1"));
  Place(b, "n1");
  EXPECT_THAT(NodesFor(c), IsEmpty()) << "a device is free, but no counter";
  state_.RemovePod("ns", "a", "");
  EXPECT_THAT(NodesFor(c), ElementsAre("n0", "n1"));
}

TEST_F(DeviceScopesTest, RollbackRestoresDevicesOfManyNodes) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    model::ResourceSlice slice =
        random() % 2 == 0 ? ForAllNodes(MakeFabric(3)) : ForRack(MakeFabric(3), "r0");
    if (random() % 2 == 0) {
      slice.counters_milli["lanes"]["n"] = 2000;
      for (model::Device& device : slice.devices) device.uses = {{"lanes", "n", 1000}};
    }
    state_.UpsertDeviceObject(slice);
    constexpr int kPods = 6;
    for (int i = 0; i < kPods; ++i) AddFor(absl::StrCat("c", i), 1 + int64_t(random() % 2));
    const std::string before = state_.Dump();
    {
      Transaction txn(state_);
      std::vector<std::pair<Transaction::Checkpoint, std::string>> marks;
      for (int step = 0; step < 30; ++step) {
        if (random() % 4 == 0) marks.emplace_back(txn.Mark(), state_.Dump());
        const PodId pod = state_.FindPod("ns", absl::StrCat("c", random() % kPods));
        const NodeId node = state_.FindNode(absl::StrCat("n", random() % 3));
        const PodStatus status = state_.pod(pod).status;
        if (status == PodStatus::kPending) {
          txn.Allocate(pod, node);
        } else if (status == PodStatus::kReleasing) {
          txn.Pipeline(pod, node);
        } else if (status != PodStatus::kPipelined) {
          txn.Evict(pod);
        }
        ASSERT_EQ(state_.CheckConsistency(), "");
        std::set<std::string> held;
        for (int i = 0; i < kPods; ++i) {
          for (const std::string& device : Held(absl::StrCat("ns/c", i).c_str())) {
            ASSERT_TRUE(held.insert(device).second) << device << " is held twice";
          }
        }
        if (!marks.empty() && random() % 6 == 0) {
          const size_t to = random() % marks.size();
          txn.RollbackTo(marks[to].first);
          ASSERT_EQ(state_.Dump(), marks[to].second);
          marks.resize(to);
        }
      }
    }
    ASSERT_EQ(state_.Dump(), before);
    for (int i = 0; i < kPods; ++i) {
      state_.RemovePod("ns", absl::StrCat("c", i), "");
      state_.RemoveResourceClaim("ns", absl::StrCat("c", i));
    }
  }
}

// ---- taints of admins ---------------------------------------------------------------------------

model::DeviceTaintRule MakeRule(std::string driver, std::string pool, std::string device,
                                std::string effect = "NoSchedule") {
  model::DeviceTaintRule rule;
  rule.meta.name = "rule";
  rule.driver = std::move(driver);
  rule.pool = std::move(pool);
  rule.device = std::move(device);
  rule.taint = {"broken", "yes", std::move(effect)};
  return rule;
}

TEST_F(DeviceScopesTest, ARuleTaintsTheDevicesThatItSelects) {
  struct Case {
    const char* name;
    model::DeviceTaintRule rule;
    int64_t n0, n1;       // GPUs that are left
    bool changes = true;  // what was there before
  };
  const Case cases[] = {
      {"all", MakeRule("", "", ""), 0, 0},
      {"a driver", MakeRule(testing::kGpuClass, "", ""), 0, 0},
      {"another driver", MakeRule("nic.io", "", ""), 4, 4},
      {"a pool", MakeRule("", "n1", ""), 4, 0},
      {"a device of each pool", MakeRule("", "", "2"), 3, 3},
      {"one device", MakeRule(testing::kGpuClass, "n0", "2", "NoExecute"), 3, 4},
      {"no such device", MakeRule(testing::kGpuClass, "n0", "4"), 4, 4},
      {"it is not tainted any more", MakeRule("", "", "2", "NoExecute"), 3, 3},
      {"only informs", MakeRule("", "", "", "None"), 4, 4},
      {"an effect of the future", MakeRule("", "", "", "PreferNoSchedule"), 4, 4, false},
      {"no effect", MakeRule("", "", "", ""), 4, 4, false},
      {"other names that read the same", MakeRule(testing::kGpuClass, "", "n0/2"), 4, 4, false},
      {"the same once more", MakeRule(testing::kGpuClass, "", "n0/2"), 4, 4, false},
  };
  std::vector<PodId> pods;
  for (int64_t i = 1; i <= 4; ++i) {
    pods.push_back(AddFor(absl::StrCat("c", i), i, testing::kGpuClass));
  }
  const auto left = [&](const char* node) {
    return std::count_if(pods.begin(), pods.end(), [&](PodId pod) { return Suits(pod, node); });
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(state_.UpsertDeviceObject(c.rule).capacity, c.changes);
    EXPECT_EQ(left("n0"), c.n0);
    EXPECT_EQ(left("n1"), c.n1);
    ASSERT_EQ(state_.CheckConsistency(), "");
  }
  state_.UpsertDeviceObject(MakeRule("", "", ""));
  EXPECT_EQ(left("n0"), 0);
  EXPECT_TRUE(state_.RemoveDeviceTaintRule("rule").capacity);
  EXPECT_EQ(left("n0"), 4);
}

TEST_F(DeviceScopesTest, ATaintOfARuleIsToleratedAsOneOfTheDriver) {
  state_.UpsertDeviceObject(MakeRule("", "", ""));
  state_.UpsertDeviceObject(ForAllNodes(MakeFabric(1)));
  model::ResourceClaim claim = MakeClaim("t", 1, kFabric, "q");
  claim.requests[0].tolerates = {{"broken", "yes", "", false}};
  EXPECT_THAT(NodesFor(AddWith(claim)), ElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(NodesFor(AddFor("c", 1)), IsEmpty());
  // All: none of the devices may be kept away.
  claim.meta.name = "all";
  EXPECT_THAT(NodesFor(AddWith(AllOf(claim))), ElementsAre("n0", "n1", "n2"));
}

// How long it is tolerated concerns what has the device already (kubelets and controllers).
TEST_F(DeviceScopesTest, ATolerationOfOneEffectIsNoneOfTheOther) {
  struct Case {
    model::DeviceToleration toleration;
    bool no_schedule, no_execute;
  };
  const Case cases[] = {
      {{"", "", "", true}, true, true},
      {{"broken", "", "", true}, true, true},
      {{"broken", "yes", "NoExecute", false}, false, true},
      {{"broken", "", "NoSchedule", true}, true, false},
      {{"broken", "no", "", false}, false, false},
      {{"brok", "yes", "", false}, false, false},
  };
  int at = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(at);
    model::ResourceClaim claim = MakeClaim(absl::StrCat("c", at++), 1, testing::kGpuClass, "q");
    claim.requests[0].tolerates = {c.toleration};
    const PodId pod = AddWith(claim);
    state_.UpsertDeviceObject(MakeRule("", "", ""));
    EXPECT_EQ(Suits(pod, "n0"), c.no_schedule);
    state_.UpsertDeviceObject(MakeRule("", "", "", "NoExecute"));
    EXPECT_EQ(Suits(pod, "n0"), c.no_execute);
  }
}

TEST_F(DeviceScopesTest, WhatTheStatusOfARuleSaysIsNotRead) {
  model::DeviceTaintRule rule = MakeRule("", "n0", "");
  EXPECT_TRUE(state_.UpsertDeviceObject(rule).Any());
  const uint64_t before = state_.node(state_.FindNode("n0")).version;
  rule.meta.resource_version = "2";
  EXPECT_FALSE(state_.UpsertDeviceObject(rule).Any());
  EXPECT_EQ(state_.node(state_.FindNode("n0")).version, before);
  EXPECT_TRUE(state_.RemoveDeviceTaintRule("rule").Any());
  EXPECT_FALSE(state_.RemoveDeviceTaintRule("rule").Any());
}

TEST_F(DeviceScopesTest, RulesCountOneByOne) {
  const PodId pod = AddFor("c", 1, testing::kGpuClass);
  model::DeviceTaintRule other = MakeRule("", "n0", "");
  other.meta.name = "other";
  state_.UpsertDeviceObject(MakeRule(testing::kGpuClass, "", ""));
  state_.UpsertDeviceObject(other);
  EXPECT_THAT(NodesFor(pod), IsEmpty());
  state_.RemoveDeviceTaintRule("rule");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n1"));
  // A slice that comes, or is written again, is tainted as the others.
  state_.UpsertDeviceObject(model::testing::MakeSlice("n2", 1));
  state_.UpsertDeviceObject(testing::MakeNumaSlice("n0"));
  EXPECT_THAT(NodesFor(pod), ElementsAre("n1", "n2"));
  state_.RemoveDeviceTaintRule("other");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n1", "n2"));
}

TEST_F(DeviceScopesTest, AThousandRulesOfLongTextsAreOneTaintEach) {
  const PodId pod = AddFor("c", 1, testing::kGpuClass);
  const std::string text(10'000, 'x');
  for (int i = 0; i < 1000; ++i) {
    model::DeviceTaintRule rule = MakeRule("", i % 2 == 0 ? "n0" : text, i % 3 == 0 ? text : "");
    rule.meta.name = absl::StrCat(i);
    rule.taint = {text, text, i == 2 ? "NoExecute" : text};
    state_.UpsertDeviceObject(rule);
  }
  EXPECT_THAT(NodesFor(pod), ElementsAre("n1"));
  state_.RemoveDeviceTaintRule("2");
  EXPECT_THAT(NodesFor(pod), ElementsAre("n0", "n1"));
}

// What is used counts in the numbers of the node, so it counts in what there is.
TEST_F(DeviceScopesTest, ATaintedDeviceInUseTakesNoOthersPlace) {
  const auto numa = [](model::ResourceClaim claim) {
    claim.constraints.push_back({{}, "gpu.nvidia.com/numa"});
    return claim;
  };
  const auto claim = [&](const char* name, bool shaped) {
    model::ResourceClaim made = MakeClaim(name, 2, testing::kGpuClass, "q");
    return shaped ? numa(made) : made;
  };
  for (const bool shaped : {false, true}) {
    SCOPED_TRACE(shaped);
    const PodId first = AddWith(claim("first", shaped)), next = AddWith(claim("next", shaped));
    Place(first, "n0");
    const std::string held = Held("ns/first").front();
    state_.UpsertDeviceObject(MakeRule("", "n0", held.substr(held.rfind('/') + 1)));
    EXPECT_TRUE(Suits(next, "n0"));
    Place(next, "n0");
    EXPECT_FALSE(Suits(AddWith(claim("last", shaped)), "n0"));
    state_.RemovePod("ns", "first", "");
    state_.RemoveResourceClaim("ns", "first");
    EXPECT_FALSE(Suits(state_.FindPod("ns", "last"), "n0")) << "one is free, and one is tainted";
    for (const char* name : {"next", "last"}) {
      state_.RemovePod("ns", name, "");
      state_.RemoveResourceClaim("ns", name);
    }
    state_.RemoveDeviceTaintRule("rule");
  }
}

TEST_F(DeviceScopesTest, WhatAPodHasItKeeps) {
  const PodId pod = AddFor("c", 1, testing::kGpuClass);
  Place(pod, "n0");
  state_.UpsertDeviceObject(MakeRule("", "", "", "NoExecute"));
  EXPECT_THAT(Held("ns/c"), ElementsAre("gpu.nvidia.com/n0/0"));
  EXPECT_EQ(state_.pod(pod).status, PodStatus::kBinding);
}

}  // namespace
}  // namespace fairlead::state
