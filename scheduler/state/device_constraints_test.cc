// allocationMode All, firstAvailable and matchAttribute in ClusterState: what such claims count,
// which devices they get, and how their allocation is told.
#include "base/testing/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/device_placement.h"
#include "scheduler/state/device_state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using fairlead::testing::Random;
using model::testing::Allocated;
using model::testing::AllOf;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using testing::kGpuClass;
using testing::MakeNumaSlice;

model::ResourceClaim AllClaim(absl::string_view name) {
  return AllOf(MakeClaim(name, 1, kGpuClass, "q"));
}

model::ResourceClaim SameNuma(model::ResourceClaim claim) {
  claim.constraints.push_back({{}, "gpu.nvidia.com/numa"});
  return claim;
}

// Two GPUs, or a network card.
model::ResourceClaim GpusOrNic(absl::string_view name) {
  model::ResourceClaim claim = MakeClaim(name, 1, "", "q");
  model::DeviceRequest gpus;
  gpus.name = "gpus";
  gpus.device_class = kGpuClass;
  gpus.count = 2;
  model::DeviceRequest nic;
  nic.name = "nic";
  nic.device_class = "nic";
  nic.tolerations = R"([{"key":"k"}])";
  claim.requests[0].first_available = {gpus, nic};
  return claim;
}

class DeviceConstraintsTest : public testing::DeviceStateTest {};

TEST_F(DeviceConstraintsTest, AllNeedsEveryDeviceOfTheNode) {
  state_.UpsertDeviceObject(AllClaim("a"));
  state_.UpsertDeviceObject(MakeClaim("one", 1, kGpuClass, "q"));
  const PodId all = Add("all", {"a"});
  const PodId one = Add("one", {"one"});
  EXPECT_TRUE(Suits(all, "n0"));
  Place(one, "n0");
  EXPECT_FALSE(Suits(all, "n0"));
  EXPECT_TRUE(Suits(all, "n1"));
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    txn.Allocate(all, state_.FindNode("n1"));
    EXPECT_EQ(Held("ns/a").size(), 4);
    state_.UpsertDeviceObject(MakeClaim("late", 1, kGpuClass, "q"));
    EXPECT_FALSE(Suits(Add("late", {"late"}), "n1"));
    state_.RemovePod("ns", "late", "");
    state_.RemoveResourceClaim("ns", "late");
  }
  EXPECT_EQ(state_.Dump(), before);
}

TEST_F(DeviceConstraintsTest, NodesArePromisedToAsManyClaimsAsTheyCouldHave) {
  struct Case {
    const char* what;
    model::ResourceClaim claim;
    size_t promises;
  };
  const Case cases[] = {
      {"all", AllClaim("c"), 1},
      {"a pair of one value", SameNuma(MakeClaim("c", 2, kGpuClass, "q")), 2},
      {"one value for three", SameNuma(MakeClaim("c", 3, kGpuClass, "q")), 0},
      {"two GPUs or a card", GpusOrNic("c"), 3},
  };
  for (const Case& c : cases) {
    std::vector<PodId> pods;
    for (const char* name : {"c0", "c1", "c2", "c3"}) {
      model::ResourceClaim claim = c.claim;
      claim.meta.name = name;
      state_.UpsertDeviceObject(claim);
      pods.push_back(Add(name, {name}));
    }
    const NodeId n1 = state_.FindNode("n1");
    size_t promises = 0;
    Transaction txn(state_);
    for (PodId pod : pods) {
      if (!state_.class_of(pod).requests.FitsIn(state_.node(n1).Future())) break;
      txn.Pipeline(pod, n1);
      ++promises;
    }
    EXPECT_EQ(promises, c.promises) << c.what;
  }
}

TEST_F(DeviceConstraintsTest, AllIsNotKnownWhileAPartOfThePoolIsMissing) {
  state_.UpsertDeviceObject(AllClaim("a"));
  const PodId pod = Add("all", {"a"});
  model::ResourceSlice slice = MakeNumaSlice("n0");
  slice.slice_count = 2;
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(Suits(pod, "n0"));
  model::ResourceSlice second = slice;
  second.meta.name = "second";
  second.devices = {{"9", {}, {}}};
  state_.UpsertDeviceObject(second);
  EXPECT_TRUE(Suits(pod, "n0"));
  second.invalid = "spec.devices: must be an array";
  state_.UpsertDeviceObject(second);
  EXPECT_FALSE(Suits(pod, "n0"));
  state_.RemoveResourceSlice("second");
  EXPECT_FALSE(Suits(pod, "n0"));
}

// All of the GPUs, or a network card.
model::ResourceClaim AllGpusOrNic(absl::string_view name) {
  model::ResourceClaim claim = GpusOrNic(name);
  claim.requests[0].first_available[0].all = true;
  return claim;
}

// As for kube-scheduler, which refuses the claim before it tries the first option.
TEST_F(DeviceConstraintsTest, WhileAPartOfAPoolIsMissingAnOptionForAllKeepsTheOthersAway) {
  const PodId gpu = [&] {
    state_.UpsertDeviceObject(MakeClaim("one", 1, kGpuClass, "q"));
    return Add("gpu", {"one"});
  }();
  state_.UpsertDeviceObject(AllGpusOrNic("a"));
  state_.UpsertDeviceObject(GpusOrNic("plain"));
  const PodId pod = Add("pod", {"a"}), plain = Add("plain", {"plain"});
  Place(gpu, "n1");
  EXPECT_TRUE(Suits(pod, "n1")) << "not all of the GPUs, but the card";
  model::ResourceSlice nics = MakeSlice("n1", 1, "nic.io");
  nics.slice_count = 2;
  state_.UpsertDeviceObject(nics);
  EXPECT_FALSE(Suits(pod, "n1"));
  EXPECT_TRUE(Suits(plain, "n1")) << "two GPUs, or the card: how many there are is not asked";
  EXPECT_TRUE(Suits(pod, "n0")) << "its pool is whole";
  nics.slice_count = 1;
  state_.UpsertDeviceObject(nics);
  EXPECT_TRUE(Suits(pod, "n1"));
}

TEST_F(DeviceConstraintsTest, WhatWasChosenBeforeAPartOfThePoolWasMissingIsWritten) {
  state_.UpsertDeviceObject(MakeClaim("one", 1, kGpuClass, "q"));
  state_.UpsertDeviceObject(AllGpusOrNic("a"));
  Place(Add("gpu", {"one"}), "n1");
  Place(Add("pod", {"a"}), "n1");
  ASSERT_THAT(Held("ns/a"), ElementsAre("nic.io/n1/0"));
  model::ResourceSlice gpus = MakeNumaSlice("n1");
  gpus.slice_count = 2;
  state_.UpsertDeviceObject(gpus);
  EXPECT_TRUE(state_.devices().IsWhole("ns/a"));
  EXPECT_EQ(state_.devices().AllocationOf("ns/a").devices.size(), 1u);
}

TEST_F(DeviceConstraintsTest, AllIsRefusedWhereADeviceIsNotGivenOutOrThereIsNone) {
  state_.UpsertDeviceObject(AllClaim("a"));
  const PodId pod = Add("all", {"a"});
  model::ResourceSlice slice = MakeNumaSlice("n0");
  slice.devices[3].taints = {{"broken", "", "NoSchedule"}};
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(Suits(pod, "n0"));
  state_.RemoveResourceSlice(slice.meta.name);
  EXPECT_FALSE(Suits(pod, "n0"));
  slice = MakeSlice("n0", model::kMaxClaimDevices + 1);
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(Suits(pod, "n0")) << "a claim cannot have so many";
  slice.devices.pop_back();
  state_.UpsertDeviceObject(slice);
  EXPECT_TRUE(Suits(pod, "n0"));
}

TEST_F(DeviceConstraintsTest, AllCountsAsOneGpuUntilItsPodIsSeenOnItsNode) {
  state_.UpsertDeviceObject(AllClaim("a"));
  const PodId pod = Add("all", {"a"});
  EXPECT_EQ(Charge(pod), 1000);
  Place(pod, "n1");
  state_.UpsertDeviceObject(Allocated(AllClaim("a"), "n1", {"0", "1", "2", "3"}));
  EXPECT_EQ(Charge(pod), 1000) << "the cycle that decided it has counted it so";
  Show("all", "a", "n1");
  EXPECT_EQ(Charge(pod), 4000);
  state_.RemovePod("ns", "all", "");
}

TEST_F(DeviceConstraintsTest, DevicesOfOneValueAreTaken) {
  state_.UpsertDeviceObject(SameNuma(MakeClaim("c", 2, kGpuClass, "q")));
  const PodId pod = Add("p", {"c"});
  EXPECT_EQ(Charge(pod), 2000);
  Place(pod, "n0");
  EXPECT_THAT(Held("ns/c"), ElementsAre("gpu.nvidia.com/n0/0", "gpu.nvidia.com/n0/2"));
}

TEST_F(DeviceConstraintsTest, WhatNoChoiceOfDevicesCanGiveIsToldBeforehand) {
  state_.UpsertDeviceObject(SameNuma(MakeClaim("three", 3, kGpuClass, "q")));
  const PodId three = Add("three", {"three"});
  EXPECT_FALSE(Counts(three, "n0")) << "not even if it were empty";
  // Two devices are free, but not of one value.
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 2, kGpuClass, "q"), "n0", {"0", "1"}));
  state_.UpsertDeviceObject(SameNuma(MakeClaim("two", 2, kGpuClass, "q")));
  const PodId two = Add("two", {"two"});
  EXPECT_TRUE(Counts(two, "n0"));
  EXPECT_EQ(Choice(two, "n0"), ChoiceOutcome::kNone);
  EXPECT_TRUE(Suits(two, "n1"));
  // An attribute that no device has.
  model::ResourceClaim claim = MakeClaim("rack", 1, kGpuClass, "q");
  claim.constraints.push_back({{}, "gpu.nvidia.com/rack"});
  state_.UpsertDeviceObject(claim);
  EXPECT_FALSE(Suits(Add("rack", {"rack"}), "n1"));
}

TEST_F(DeviceConstraintsTest, ClaimsOfOnePodAreChosenTogether) {
  // The first claim has its pick; the second can only do with device 0.
  state_.UpsertDeviceObject(MakeClaim("any", 1, kGpuClass, "q"));
  model::ResourceSlice slice = MakeNumaSlice("n0");
  slice.devices[0].attributes["best"].value = true;
  state_.UpsertDeviceObject(slice);
  model::ResourceClaim best = MakeClaim("best", 1, kGpuClass, "q");
  best.requests[0].selectors = {"device.attributes[\"gpu.nvidia.com\"].best == true"};
  state_.UpsertDeviceObject(best);
  const PodId pod = Add("p", {"any", "best"});
  ASSERT_TRUE(Suits(pod, "n0"));
  Place(pod, "n0");
  EXPECT_THAT(Held("ns/any"), ElementsAre("gpu.nvidia.com/n0/1"));
  EXPECT_THAT(Held("ns/best"), ElementsAre("gpu.nvidia.com/n0/0"));
}

TEST_F(DeviceConstraintsTest, TheFirstAvailableIsTakenNodeByNode) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 3, kGpuClass, "q"), "n1", {"0", "1", "2"}));
  state_.UpsertDeviceObject(Allocated(MakeClaim("here", 3, kGpuClass, "q"), "n0", {"0", "1", "2"}));
  state_.UpsertDeviceObject(GpusOrNic("c"));
  const PodId pod = Add("p", {"c"});
  EXPECT_EQ(Charge(pod), 2000) << "it could become two";
  EXPECT_FALSE(Suits(pod, "n0"));
  ASSERT_TRUE(Suits(pod, "n1"));
  Place(pod, "n1");
  EXPECT_THAT(Held("ns/c"), ElementsAre("nic.io/n1/0"));
  model::ResourceClaim claim = GpusOrNic("c");
  claim.allocated = true;
  claim.devices = state_.devices().AllocationOf("ns/c").devices;
  EXPECT_THAT(claim.devices, ElementsAre(model::AllocatedDevice{"r/nic", "nic.io", "n1", "0",
                                                                R"([{"key":"k"}])"}));
  state_.UpsertDeviceObject(claim);
  EXPECT_EQ(Charge(pod), 2000);
  Show("p", "c", "n1");
  EXPECT_EQ(Charge(pod), 0);
  state_.RemovePod("ns", "p", "");
}

TEST_F(DeviceConstraintsTest, TheAllocationNamesRequestsAndConfiguration) {
  model::DeviceClass gpus = MakeDeviceClass(kGpuClass, {"device.driver == \"gpu.nvidia.com\""});
  gpus.config = {{{}, "{\"class\":1}"}};
  state_.UpsertDeviceObject(gpus);
  model::ResourceClaim claim = GpusOrNic("c");
  claim.config = {{{"r/nic"}, "{\"nic\":1}"}, {{"r/gpus"}, "{\"gpus\":1}"}, {{"r"}, "{\"r\":1}"}};
  model::DeviceRequest rest;
  rest.name = "rest";
  rest.device_class = "nic";
  rest.all = true;
  claim.requests.push_back(rest);
  claim.constraints.push_back({{"r/gpus"}, "gpu.nvidia.com/numa"});
  state_.UpsertDeviceObject(claim);
  const PodId pod = Add("p", {"c"});
  EXPECT_FALSE(Suits(pod, "n0")) << "no network card";
  ASSERT_TRUE(Suits(pod, "n1"));
  Place(pod, "n1");
  const model::ClaimAllocation allocation = state_.devices().AllocationOf("ns/c");
  EXPECT_EQ(allocation.node, "n1");
  EXPECT_THAT(allocation.devices,
              ElementsAre(model::AllocatedDevice{"r/gpus", kGpuClass, "n1", "0"},
                          model::AllocatedDevice{"r/gpus", kGpuClass, "n1", "2"},
                          model::AllocatedDevice{"rest", "nic.io", "n1", "0"}));
  using Config = model::ClaimAllocation::Config;
  EXPECT_THAT(allocation.config, ElementsAre(Config{true, {{"r/gpus"}, "{\"class\":1}"}},
                                             Config{false, {{"r/gpus"}, "{\"gpus\":1}"}},
                                             Config{false, {{"r"}, "{\"r\":1}"}}));
}

TEST_F(DeviceConstraintsTest, WhatAClaimLostOrLacksByNowIsSeenBeforeItIsWritten) {
  state_.UpsertDeviceObject(AllClaim("a"));
  const PodId pod = Add("all", {"a"});
  Place(pod, "n0");
  EXPECT_TRUE(state_.devices().IsWhole("ns/a"));
  // One device more: it is not all any more.
  model::ResourceSlice slice = MakeSlice("n0", 5);
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(state_.devices().IsWhole("ns/a"));
  EXPECT_THAT(state_.devices().AllocationOf("ns/a").devices, IsEmpty());
  state_.UpsertDeviceObject(MakeNumaSlice("n0"));
  EXPECT_TRUE(state_.devices().IsWhole("ns/a"));
  state_.UpsertDeviceObject(Allocated(MakeClaim("thief", 1, kGpuClass, "q"), "n0", {"2"}));
  EXPECT_FALSE(state_.devices().IsWhole("ns/a"));
  EXPECT_FALSE(state_.devices().IsWhole("ns/absent"));
}

// kube-scheduler serves claims in the order of the pod, and gives up an alternative for any claim
// before.
TEST_F(DeviceConstraintsTest, AClaimThatHasAChoiceDoesNotCostAnotherItsFirstAlternative) {
  model::ResourceClaim claim = GpusOrNic("c");
  claim.requests[0].first_available[0].selectors = {
      "device.attributes[\"gpu.nvidia.com\"].numa == 0"};
  state_.UpsertDeviceObject(claim);
  state_.UpsertDeviceObject(SameNuma(MakeClaim("pair", 2, kGpuClass, "q")));
  Place(Add("p", {"pair", "c"}), "n1");
  EXPECT_EQ(Held("ns/c").size(), 2) << "GPUs of NUMA node 0, and not the card";
  EXPECT_EQ(Held("ns/pair").size(), 2);
}

TEST_F(DeviceConstraintsTest,
       AClaimThatCouldHaveItsFirstChoiceByNowIsNotWrittenWithDevicesTooMany) {
  model::ResourceClaim claim = GpusOrNic("c");
  model::DeviceRequest best = claim.requests[0].first_available[0];
  best.name = "best";
  best.count = 1;
  best.selectors = {"device.attributes[\"gpu.nvidia.com\"].best == true"};
  claim.requests[0].first_available.insert(claim.requests[0].first_available.begin(), best);
  state_.UpsertDeviceObject(claim);
  Place(Add("p", {"c"}), "n0");
  ASSERT_EQ(Held("ns/c").size(), 2);
  EXPECT_TRUE(state_.devices().IsWhole("ns/c"));
  model::ResourceSlice slice = MakeNumaSlice("n0");
  slice.devices[0].attributes["best"].value = true;
  state_.UpsertDeviceObject(slice);
  EXPECT_FALSE(state_.devices().IsWhole("ns/c"));
}

TEST_F(DeviceConstraintsTest, ClaimsOfOneShapeMakeOneClassOfPods) {
  // Names of requests do not matter for where a pod can go, what they ask for does.
  for (const char* name : {"a", "b", "c"}) {
    model::ResourceClaim claim = SameNuma(MakeClaim(name, 2, kGpuClass));
    claim.requests[0].name = name;
    if (absl::string_view(name) == "c") claim.requests[0].all = true;
    state_.UpsertDeviceObject(claim);
    model::Pod pod = PodBuilder("ns", name).Queue("q");
    pod.spec.claim_templates = {"t"};
    pod.generated_claims = {name};
    state_.UpsertPod(pod);
  }
  const auto class_of = [&](const char* name) {
    return state_.pod(state_.FindPod("ns", name)).pod_class;
  };
  EXPECT_EQ(class_of("a"), class_of("b"));
  EXPECT_NE(class_of("a"), class_of("c"));
}

TEST_F(DeviceConstraintsTest, EachSubRequestNeedsItsClass) {
  state_.RemoveDeviceClass("nic");
  state_.UpsertDeviceObject(GpusOrNic("c"));
  const PodId pod = Add("p", {"c"});
  EXPECT_EQ(Spec(pod).missing_claim, "device class nic");
  state_.UpsertDeviceObject(MakeDeviceClass("nic", {"device.driver.foo"}));
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("not understood"));
}

model::ResourceClaim RandomClaim(Random& random, const std::string& name) {
  model::ResourceClaim claim = MakeClaim(name, random.Between(1, 2), kGpuClass, "q");
  if (random.OneIn(6)) claim = AllClaim(name);
  if (random.OneIn(4)) claim = GpusOrNic(name);
  if (random.OneIn(3)) {
    model::DeviceRequest second;
    second.name = "second";
    second.device_class = kGpuClass;
    second.selectors = {"device.attributes[\"gpu.nvidia.com\"].numa == 1"};
    claim.requests.push_back(second);
  }
  return random.OneIn(2) ? SameNuma(claim) : claim;
}

// What the two ways to ask promise is kept, whatever was placed before; and undo leaves nothing.
TEST_F(DeviceConstraintsTest, APodThatSuitsANodeGetsAllOfItsDevicesThere) {
  Random random(20261121);
  SCOPED_TRACE(random.Describe());
  int placed = 0;
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<PodId> pods;
    for (int i = 0; i < 6; ++i) {
      std::vector<std::string> claims;
      for (int64_t k = random.Between(1, 2); k > 0; --k) {
        claims.push_back(absl::StrCat("c", i, "-", k));
        state_.UpsertDeviceObject(RandomClaim(random, claims.back()));
      }
      pods.push_back(Add(absl::StrCat("p", i), claims));
      ASSERT_EQ(Spec(pods.back()).claim_problem, "");
    }
    const std::string before = state_.Dump();
    {
      Transaction txn(state_);
      for (PodId pod : pods) {
        const char* node = random.OneIn(2) ? "n0" : "n1";
        if (!Suits(pod, node)) {
          ++refused;
          continue;
        }
        ++placed;
        const Transaction::Checkpoint mark = txn.Mark();
        txn.Allocate(pod, state_.FindNode(node));
        for (const std::string& key : state_.ClaimKeysOf(pod)) {
          ASSERT_TRUE(state_.devices().IsWhole(key)) << "round " << round << " " << key;
          ASSERT_EQ(state_.devices().AllocationOf(key).devices.size(), Held(key.c_str()).size());
        }
        ASSERT_EQ(state_.CheckConsistency(), "") << "round " << round;
        if (random.OneIn(4)) txn.RollbackTo(mark);
      }
    }
    ASSERT_EQ(state_.Dump(), before) << "round " << round;
    for (int i = 0; i < 6; ++i) state_.RemovePod("ns", absl::StrCat("p", i), "");
    for (int i = 0; i < 6; ++i) {
      for (int k = 1; k <= 2; ++k) {
        state_.RemoveResourceClaim("ns", absl::StrCat("c", i, "-", k));
      }
    }
  }
  EXPECT_GT(placed, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace fairlead::state
