// DynamicResources: claims have to be held, or their devices free, on the node.
#include "scheduler/plugins/dynamic_resources.h"

#include "absl/strings/str_cat.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using model::testing::Allocated;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;

constexpr char kNotHere[] = "U resourceclaim not available on the node";

class DynamicResourcesTest : public PluginTest {
 protected:
  DynamicResourcesTest() : plugin_(Only("DynamicResources")) {
    for (const char* name : {"n0", "n1"}) {
      AddNode(MakeNode(name, 0));
      state_.UpsertDeviceObject(MakeSlice(name, 2, "nic.io"));
    }
    state_.UpsertDeviceObject(MakeDeviceClass("nic"));
    state_.UpsertDeviceObject(MakeDeviceClass("first", {"device.driver == \"nic.io\""}));
  }
  void Wait(const char* claim) {
    model::PodSpec spec;
    spec.resource_claims = {claim};
    Waiting(std::move(spec));
  }
  void Runs(const char* name, const char* node, const char* claim, bool ends = false) {
    PodBuilder builder("ns", name);
    builder.On(node);
    if (ends) builder.Deleting();
    model::Pod pod = builder;
    pod.spec.resource_claims = {claim};
    AddPod(pod);
  }
  std::unique_ptr<framework::Framework> plugin_;
};

TEST_F(DynamicResourcesTest, ProblemsOfClaimsAreTheReason) {
  Wait("absent");
  for (Capacity capacity : {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty}) {
    EXPECT_EQ(Why(*plugin_, "n0", capacity), "X ResourceClaim ns/absent does not exist");
  }
}

TEST_F(DynamicResourcesTest, ExactDevicesHaveToBeFree) {
  // Another class names the same devices: numbers alone would not tell.
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 2, "first"), "n0", {"0", "1"}, "nic.io"));
  state_.UpsertDeviceObject(MakeClaim("c", 1, "nic"));
  Runs("runs", "n0", "held");
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), "");
  EXPECT_EQ(Why(*plugin_, "n1"), "");
  Runs("runs", "n0", "held", /*ends=*/true);
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
}

// The claim controller frees it a moment after the pod.
TEST_F(DynamicResourcesTest, DevicesOfAClaimWhosePodIsGoneAreComing) {
  model::ResourceClaim held = Allocated(MakeClaim("held", 2, "first"), "n0", {"0", "1"}, "nic.io");
  state_.UpsertDeviceObject(held);
  state_.UpsertDeviceObject(MakeClaim("c", 1, "nic"));
  Wait("c");
  // Nothing says that it will be freed.
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), kNotHere);
  held.reserved_for = {"uid of a pod that is gone"};
  state_.UpsertDeviceObject(held);
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
}

// The other one names the same devices by another class: numbers alone would not tell.
TEST_F(DynamicResourcesTest, DevicesThatArePromisedAreNotGivenToAnotherPod) {
  state_.UpsertDeviceObject(MakeClaim("first", 1, "first"));
  state_.UpsertDeviceObject(MakeClaim("c", 1, "nic"));
  model::Pod promised = PodBuilder("ns", "promised");
  promised.spec.resource_claims = {"first"};
  AddPod(promised);
  Wait("c");
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n0"));
  for (Capacity capacity : {Capacity::kNow, Capacity::kFuture}) {
    EXPECT_EQ(Why(*plugin_, "n0", capacity), "");
  }
  model::ResourceClaim both = MakeClaim("c", 2, "nic");
  both.meta.resource_version = "2";
  state_.UpsertDeviceObject(both);
  for (Capacity capacity : {Capacity::kNow, Capacity::kFuture}) {
    EXPECT_EQ(Why(*plugin_, "n0", capacity), kNotHere);
    EXPECT_EQ(Why(*plugin_, "n1", capacity), "");
  }
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), "");
}

// Room that was made by its eviction is not there for the pod again.
TEST_F(DynamicResourcesTest, AClaimOfOthersIsNotJoinedWhereItsDevicesArePromised) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("shared", 2, "first"), "n0", {"0", "1"}, "nic.io"));
  Runs("r1", "n0", "shared", /*ends=*/true);
  Runs("r2", "n0", "shared", /*ends=*/true);
  state_.UpsertDeviceObject(MakeClaim("c", 2, "nic"));
  model::Pod promised = PodBuilder("ns", "promised");
  promised.spec.resource_claims = {"c"};
  AddPod(promised);
  Wait("shared");
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
  state::Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "promised"), state_.FindNode("n0"));
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), kNotHere);
}

// A pod that is made in the place of an evicted one must not keep the claim from being freed.
TEST_F(DynamicResourcesTest, AClaimThatAllLeaveIsNotJoined) {
  model::ResourceClaim shared =
      Allocated(MakeClaim("shared", 2, "first"), "n0", {"0", "1"}, "nic.io");
  shared.reserved_for = {"uid-ns-r1", "uid-ns-r2"};
  state_.UpsertDeviceObject(shared);
  Runs("r1", "n0", "shared", /*ends=*/true);
  Runs("r2", "n0", "shared");
  Wait("shared");
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  Runs("r2", "n0", "shared", /*ends=*/true);
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), "");
  for (const char* name : {"r1", "r2"}) state_.RemovePod("ns", name, "");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  shared.reserved_for_others = true;  // nothing says that they leave
  state_.UpsertDeviceObject(shared);
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  shared.reserved_for_others = false;
  shared.reserved_for.clear();
  state_.UpsertDeviceObject(shared);
  EXPECT_EQ(Why(*plugin_, "n0"), "");
}

// Its own pods may wait for it already.
TEST_F(DynamicResourcesTest, DevicesOfAClaimThatAllLeaveAreComingForOthers) {
  model::ResourceClaim shared =
      Allocated(MakeClaim("shared", 2, "first"), "n0", {"0", "1"}, "nic.io");
  shared.reserved_for = {"uid-ns-r1"};
  state_.UpsertDeviceObject(shared);
  Runs("r1", "n0", "shared", /*ends=*/true);
  model::Pod successor = PodBuilder("ns", "successor");
  successor.spec.resource_claims = {"shared"};
  AddPod(successor);
  state_.UpsertDeviceObject(MakeClaim("c", 2, "nic"));
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
  state_.RemovePod("ns", "r1", "");
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
  shared.reserved_for = {"uid-ns-successor"};
  state_.UpsertDeviceObject(shared);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), kNotHere);
}

TEST_F(DynamicResourcesTest, AllIsRefusedWhileOneDeviceIsHeld) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 1, "nic"), "n0", {"1"}, "nic.io"));
  state_.UpsertDeviceObject(model::testing::AllOf(MakeClaim("c", 1, "nic")));
  Runs("runs", "n0", "held");
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), "");
  EXPECT_EQ(Why(*plugin_, "n1"), "");
  Runs("runs", "n0", "held", /*ends=*/true);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), "");
}

TEST_F(DynamicResourcesTest, ASearchThatTakesTooLongSaysSo) {
  // Two devices for twenty requests, each of which can be asked for in two ways.
  model::ResourceClaim claim = MakeClaim("c", 1, "nic");
  model::DeviceRequest way;
  way.device_class = "first";
  claim.requests[0].first_available = {way, way};
  claim.requests.resize(20, claim.requests[0]);
  state_.UpsertDeviceObject(claim);
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), "U resourceclaim has too many ways to choose devices of the node");
}

TEST_F(DynamicResourcesTest, WhatAClaimOfItsOwnHoldsIsNotGivenOutTwice) {
  // The pod's binding failed after its first claim was allocated; its second is open.
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 1, "nic"), "n0", {"0"}, "nic.io"));
  state_.UpsertDeviceObject(MakeClaim("open", 1, "first"));
  model::PodSpec spec;
  spec.resource_claims = {"held", "open"};
  Waiting(spec);
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  state_.UpsertDeviceObject(Allocated(MakeClaim("other", 1, "nic"), "n0", {"1"}, "nic.io"));
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
}

TEST_F(DynamicResourcesTest, AClaimThatIsHeldIsFollowed) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("c", 1, "nic"), "n1", {"0"}, "nic.io"));
  Runs("runs", "n1", "c");
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), kNotHere);
  EXPECT_EQ(Why(*plugin_, "n1"), "");
}

TEST_F(DynamicResourcesTest, AnAllocationSaysItselfWhereItCanBeUsed) {
  model::ResourceClaim claim = Allocated(MakeClaim("c", 1, "nic"), "fabric", {"7"}, "other.io");
  model::SelectorRequirement rack;
  rack.key = "rack";
  rack.values = {"r1"};
  claim.node_terms.emplace_back().match_expressions.push_back(rack);
  state_.UpsertDeviceObject(claim);
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
  model::Node node = MakeNode("n1", 0);
  node.meta.labels.Set("rack", "r1");
  state_.UpsertNode(node);
  EXPECT_EQ(Why(*plugin_, "n1"), "");
}

TEST_F(DynamicResourcesTest, APodJoinsAClaimOnEveryNodeThatCanUseItsDevices) {
  model::ResourceSlice fabric = MakeSlice("fabric", 1, "fabric.io");
  fabric.nodes = {"", true, {}};
  state_.UpsertDeviceObject(fabric);
  state_.UpsertDeviceObject(MakeDeviceClass("port", {"device.driver == \"fabric.io\""}));
  state_.UpsertDeviceObject(MakeClaim("c", 1, "port"));
  model::Pod carrier = PodBuilder("ns", "carrier").Created(-5);
  carrier.spec.resource_claims = {"c"};
  AddPod(carrier);
  Wait("c");
  state::Transaction txn(state_);
  txn.Allocate(state_.FindPod("ns", "carrier"), state_.FindNode("n0"));
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  EXPECT_EQ(Why(*plugin_, "n1"), "");
  fabric.nodes = {"n0", false, {}};
  state_.UpsertDeviceObject(fabric);
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  EXPECT_EQ(Why(*plugin_, "n1"), kNotHere);
}

TEST_F(DynamicResourcesTest, ADeviceOfSeveralNodesIsNotPromised) {
  model::ResourceSlice fabric = MakeSlice("fabric", 1, "fabric.io");
  fabric.nodes = {"", true, {}};
  state_.UpsertDeviceObject(fabric);
  state_.UpsertDeviceObject(MakeDeviceClass("port", {"device.driver == \"fabric.io\""}));
  state_.UpsertDeviceObject(MakeClaim("c", 1, "port"));
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  EXPECT_EQ(Why(*plugin_, "n1", Capacity::kFuture), "");
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 1, "port"), "fabric", {"0"}, "fabric.io"));
  Runs("runs", "n0", "held", /*ends=*/true);
  for (const char* node : {"n0", "n1"}) {
    EXPECT_EQ(Why(*plugin_, node), kNotHere);
    EXPECT_EQ(Why(*plugin_, node, Capacity::kFuture), kNotHere);
    EXPECT_EQ(Why(*plugin_, node, Capacity::kEmpty), "");
  }
}

TEST_F(DynamicResourcesTest, AClaimThatAnotherPodCarriesIsWaitedFor) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, "nic"));
  model::Pod carrier = PodBuilder("ns", "carrier").Created(-5);
  carrier.spec.resource_claims = {"c"};
  AddPod(carrier);
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n1"), kNotHere);
  const state::PodId id = state_.FindPod("ns", "carrier");
  {
    state::Transaction txn(state_);
    txn.Pipeline(id, state_.FindNode("n1"));
    EXPECT_EQ(Why(*plugin_, "n1"), kNotHere);
    EXPECT_EQ(Why(*plugin_, "n1", Capacity::kFuture), "");
    EXPECT_EQ(Why(*plugin_, "n0", Capacity::kFuture), kNotHere);
  }
  state::Transaction txn(state_);
  txn.Allocate(id, state_.FindNode("n1"));
  EXPECT_EQ(Why(*plugin_, "n1"), "");
  EXPECT_EQ(Why(*plugin_, "n0"), kNotHere);
}

TEST_F(DynamicResourcesTest, SharesOfGpusAreRefusedWhereOnlyClaimsGetThem) {
  state_.UpsertDeviceObject(MakeSlice("n0", 2, "gpu.nvidia.com"));
  model::PodSpec spec;
  spec.gpu_share = {500, 0, 1};
  Waiting(spec);
  EXPECT_EQ(Why(*OnlyForShares("GpuKind"), "n0"),
            "X fractional/shared GPU pods are not yet supported on DRA-only nodes");
  EXPECT_EQ(Why(*OnlyForShares("GpuKind"), "n1"), "X node(s) have no GPU to share");
}

// On this node there are others, which may be freed; the verdict says what is left out.
TEST_F(DynamicResourcesTest, DevicesForSeveralClaimsAreNamedAndNotGiven) {
  constexpr char kLeftOut[] =
      " {devices of nic.io are for several claims at once (allowMultipleAllocations), and Fairlead "
      "gives them to none}";
  model::ResourceSlice slice = MakeSlice("n0", 2, "nic.io");
  slice.devices[1].for_several = true;
  state_.UpsertDeviceObject(slice);
  state_.UpsertDeviceObject(MakeClaim("c", 1, "nic"));
  Wait("c");
  EXPECT_EQ(Why(*plugin_, "n0"), "");
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 1, "first"), "n0", {"0"}, "nic.io"));
  Runs("runs", "n0", "held");
  EXPECT_EQ(Why(*plugin_, "n0"), std::string(kNotHere) + kLeftOut);
  EXPECT_EQ(Why(*plugin_, "n0", Capacity::kEmpty), "");
  // By numbers.
  const auto fit = Only("NodeResourcesFit");
  state_.UpsertDeviceObject(MakeClaim("two", 2, "nic"));
  Wait("two");
  EXPECT_EQ(Why(*fit, "n0"), absl::StrCat("X Insufficient deviceclass:nic", kLeftOut));
  EXPECT_EQ(Why(*fit, "n1"), "");
  // And of an extended resource.
  model::DeviceClass gives = MakeDeviceClass("nic");
  gives.extended_resource = "example.com/nic";
  state_.UpsertDeviceObject(gives);
  model::PodSpec spec;
  spec.requests = {{"example.com/nic", 2}};
  Waiting(spec);
  EXPECT_EQ(Why(*fit, "n0"), absl::StrCat("X Insufficient example.com/nic", kLeftOut));
}

TEST(DynamicResourcesArgsTest, TheBindingTimeoutIsTheLongestOfTheProfiles) {
  const auto with = [](const char* timeout) {
    framework::Profile profile{"p"};
    profile.plugins.push_back({"NodeName"});
    if (*timeout == '\0') return profile;
    profile.plugins.push_back(
        {"DynamicResources", 1, absl::StrCat("{\"bindingTimeout\":\"", timeout, "\"}")});
    return profile;
  };
  EXPECT_EQ(*DeviceTimeoutOf(std::vector{with("")}), absl::Minutes(10));
  EXPECT_EQ(*DeviceTimeoutOf(std::vector{with("20s"), with("1m"), with("")}), absl::Minutes(1));
  EXPECT_FALSE(DeviceTimeoutOf(std::vector{with("0s")}).ok());
}

TEST(DynamicResourcesArgsTest, Timeouts) {
  EXPECT_TRUE(DynamicResources::Make(R"({"filterTimeout":"0s","bindingTimeout":"5m"})").ok());
  EXPECT_EQ(DynamicResources::Make(R"({"filterTimeout":"-1s"})").status().message(),
            "args.filterTimeout: must be a duration, zero or positive");
  EXPECT_EQ(DynamicResources::Make(R"({"bindingTimeout":"0s"})").status().message(),
            "args.bindingTimeout: must be a duration of at least 1 second");
  EXPECT_FALSE(DynamicResources::Make(R"({"bindingTimeout":"soon"})").ok());
}

// Two nodes with NICs, the second with GPUs besides.
class DynamicResourcesScoreTest : public DynamicResourcesTest {
 protected:
  DynamicResourcesScoreTest() {
    state_.UpsertDeviceObject(MakeSlice("n1", 2, "gpu.io"));
    state_.UpsertDeviceObject(MakeDeviceClass("gpu", {"device.driver == \"gpu.io\""}));
  }
  static model::ResourceClaim FirstOf(const char* name, const std::vector<const char*>& classes) {
    model::ResourceClaim claim = MakeClaim(name, 1, "nic");
    for (const char* device_class : classes) {
      model::DeviceRequest option;
      option.name = absl::StrCat("of-", device_class);
      option.device_class = device_class;
      claim.requests[0].first_available.push_back(option);
    }
    return claim;
  }
  // Of n0 and n1.
  std::pair<int64_t, int64_t> Scores(Capacity capacity = Capacity::kNow) {
    return {Score(*plugin_, "n0", capacity) / framework::kPreferenceStep,
            Score(*plugin_, "n1", capacity) / framework::kPreferenceStep};
  }
};

TEST_F(DynamicResourcesScoreTest, TheNodeWithTheBetterAlternativeIsPreferred) {
  state_.UpsertDeviceObject(FirstOf("c", {"gpu", "nic"}));
  Wait("c");
  EXPECT_EQ(Scores(), std::make_pair(87L, 100L)) << "7 and 8 of 8";
  state_.UpsertDeviceObject(Allocated(MakeClaim("held", 2, "gpu"), "n1", {"0", "1"}, "gpu.io"));
  Runs("runs", "n1", "held");
  EXPECT_EQ(Scores(), std::make_pair(100L, 100L)) << "the second one on both";
  Runs("runs", "n1", "held", /*ends=*/true);
  EXPECT_EQ(Scores(Capacity::kFuture), std::make_pair(87L, 100L));
}

TEST_F(DynamicResourcesScoreTest, AListOfOneCounts) {
  // 8 on both nodes for the one; 7 and 8 for the other.
  model::ResourceClaim claim = FirstOf("c", {"nic"});
  claim.requests.push_back(FirstOf("", {"gpu", "first"}).requests[0]);
  claim.requests[1].name = "second";
  state_.UpsertDeviceObject(claim);
  Wait("c");
  EXPECT_EQ(Scores(), std::make_pair(93L, 100L)) << "15 and 16 of 16";
}

TEST_F(DynamicResourcesScoreTest, WhatAClaimHoldsCountsBesideWhatIsChosen) {
  model::ResourceClaim held = Allocated(FirstOf("held", {"gpu", "nic"}), "n1", {"0"}, "gpu.io");
  held.devices[0].request = state::RequestName(held.requests[0], 0);
  state_.UpsertDeviceObject(held);
  state_.UpsertDeviceObject(FirstOf("c", {"first", "gpu"}));
  model::PodSpec spec;
  spec.resource_claims = {"held", "c"};
  Waiting(spec);
  EXPECT_EQ(Scores().second, 100);
  // Alone it makes no difference: upstream does not score a pod that needs no devices any more.
  spec.resource_claims = {"held"};
  Waiting(spec);
  EXPECT_EQ(Scores(), std::make_pair(0L, 0L));
}

TEST_F(DynamicResourcesScoreTest, ClaimsWithoutAlternativesAreNotScored) {
  state_.UpsertDeviceObject(model::testing::AllOf(MakeClaim("c", 1, "nic")));
  Wait("c");
  EXPECT_FALSE(DynamicResources().ScoresVary(Ctx()));
  EXPECT_EQ(Scores(), std::make_pair(0L, 0L));
}

}  // namespace
}  // namespace fairlead::plugins
