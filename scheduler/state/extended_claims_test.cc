// Extended resources that device classes give: which node gives them how, and the claim of a pod
// that is to be made.
#include "scheduler/state/extended_claims.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OurPods;
using ::testing::SizeIs;

constexpr char kGpuDriver[] = "gpu.nvidia.com";
constexpr char kHca[] = "rdma.io/hca";

model::DeviceClass Gives(absl::string_view device_class, absl::string_view resource,
                         int64_t created = 0) {
  model::DeviceClass out = MakeDeviceClass(
      device_class,
      {absl::StrCat("device.driver == \"",
                    absl::StartsWith(device_class, "hca") ? "rdma.io" : kGpuDriver, "\"")});
  out.extended_resource = std::string(resource);
  out.meta.creation = model::testing::At(created);
  return out;
}

// Nodes "claim" with two GPUs by DRA, "plugin" with two by device plugin, "bare" without.
class ExtendedClaimsTest : public ::testing::Test {
 protected:
  ExtendedClaimsTest() : state_(OurPods()) {
    state_.UpsertNode(MakeNode("claim", 0));
    state_.UpsertNode(MakeNode("plugin", 2));
    state_.UpsertNode(MakeNode("bare", 0));
    state_.UpsertDeviceObject(MakeSlice("claim", 2));
    state_.UpsertDeviceObject(Gives(kGpuDriver, model::kGpuName));
  }
  ~ExtendedClaimsTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  PodId Add(const std::string& name, int64_t gpus = 1) {
    state_.UpsertPod(PodBuilder("ns", name).Queue("q").Gpus(gpus));
    return state_.FindPod("ns", name);
  }
  void Place(PodId pod, const char* node) {
    Transaction txn(state_);
    txn.Allocate(pod, state_.FindNode(node));
    txn.Commit();
  }
  const NodeInfo& Node(const char* name) { return state_.node(state_.FindNode(name)); }
  const model::PodSpec& Spec(PodId pod) { return *state_.class_of(pod).spec; }
  std::string Key(PodId pod) { return state_.ExtendedClaimOf(pod).key; }
  const ClaimRow& Row(PodId pod) { return *state_.devices().Find(Key(pod)); }
  // As the API server shows it after it was made.
  model::ResourceClaim Made(PodId pod, int64_t count = 1) {
    model::ResourceClaim claim =
        MakeClaim(ExtendedClaimName(state_.pod(pod).name, state_.pod(pod).uid), count);
    claim.meta.uid = "made";
    claim.requests[0].name = "container-0-request-0";
    claim.meta.owners.push_back({"v1", "Pod", state_.pod(pod).name, state_.pod(pod).uid, true});
    return claim;
  }

  ClusterState state_;
};

TEST_F(ExtendedClaimsTest, ANodeHasWhatItsPluginOrItsDevicesGive) {
  const PodId pod = Add("p");
  EXPECT_EQ(Node("claim").allocatable[model::kGpu], 2000);
  EXPECT_EQ(Node("plugin").allocatable[model::kGpu], 2000);
  EXPECT_EQ(Node("bare").allocatable[model::kGpu], 0);
  EXPECT_TRUE(Node("claim").gpus_by_claim);
  EXPECT_FALSE(Node("plugin").gpus_by_claim);
  // Each GPU counts once, also for queues; so does what the pod requests.
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 4000);
  EXPECT_EQ(state_.class_of(pod).charge[model::kGpu], 1000);
  EXPECT_THAT(Spec(pod).extended->resources, ElementsAre(model::kGpuName));
  EXPECT_THAT(Spec(pod).extended->demands, SizeIs(1));
}

TEST_F(ExtendedClaimsTest, ThePodTakesDevicesWhereTheyAreGivenByClaim) {
  const PodId a = Add("a"), b = Add("b");
  Place(a, "claim");
  Place(b, "plugin");
  EXPECT_THAT(Row(a).devices, ElementsAre("gpu.nvidia.com/claim/0"));
  EXPECT_THAT(Row(b).devices, IsEmpty());
  EXPECT_TRUE(state_.ExtendedClaimOf(a).by_claim);
  EXPECT_FALSE(state_.ExtendedClaimOf(b).by_claim);
  EXPECT_FALSE(state_.ExtendedClaimOf(a).exists);
  EXPECT_EQ(Node("claim").used[model::kGpu], 1000);
  state_.ForgetBinding(a);
  EXPECT_EQ(state_.devices().HolderOf("gpu.nvidia.com/claim/0"), nullptr);
}

TEST_F(ExtendedClaimsTest, TheClaimThatWasMadeKeepsWhatTheDecisionGave) {
  const PodId pod = Add("p");
  Place(pod, "claim");
  state_.UpsertDeviceObject(Made(pod));
  EXPECT_TRUE(state_.ExtendedClaimOf(pod).exists);
  EXPECT_THAT(Row(pod).devices, ElementsAre("gpu.nvidia.com/claim/0"));
  const model::ClaimAllocation allocation = state_.devices().AllocationOf(Key(pod));
  ASSERT_THAT(allocation.devices, SizeIs(1));
  EXPECT_EQ(allocation.devices[0].request, "container-0-request-0");
}

TEST_F(ExtendedClaimsTest, AWaitingPodGoesWhereItsClaimHasDevices) {
  const PodId pod = Add("p");
  model::ResourceClaim claim = Made(pod);
  state_.UpsertDeviceObject(claim);
  EXPECT_THAT(Spec(pod).claims_to_join, IsEmpty());
  claim.allocated = true;
  claim.devices = {{"container-0-request-0", kGpuDriver, "claim", "1"}};
  state_.UpsertDeviceObject(claim);
  EXPECT_THAT(Spec(pod).claims_to_join, ElementsAre(Key(pod)));
  EXPECT_FALSE(Spec(pod).extended->Any());
  EXPECT_TRUE(state_.ExtendedClaimOf(pod).by_claim);
  EXPECT_EQ(state_.class_of(pod).charge[model::kGpu], 1000);
  EXPECT_THAT(state_.IdleClaims(), ElementsAre(Key(pod)));
}

TEST_F(ExtendedClaimsTest, AClaimOfThatNameThatIsAnotherIsThePodsProblem) {
  const PodId pod = Add("p");
  model::ResourceClaim foreign = Made(pod);
  foreign.meta.owners.clear();
  state_.UpsertDeviceObject(foreign);
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("is not of this pod"));
  // More devices than its queue is charged for.
  state_.UpsertDeviceObject(Made(pod, 2));
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("asks for other devices"));
  state_.RemoveResourceClaim("ns", foreign.meta.name);
  EXPECT_EQ(Spec(pod).claim_problem, "");
  EXPECT_TRUE(Row(pod).implied);
}

TEST_F(ExtendedClaimsTest, AnotherPodCannotUseAClaimThatIsToBeMade) {
  const PodId pod = Add("p");
  const std::string name = ExtendedClaimName("p", state_.pod(pod).uid);
  model::Pod thief = PodBuilder("ns", "thief").Queue("q");
  thief.spec.resource_claims = {name};
  state_.UpsertPod(thief);
  EXPECT_THAT(Spec(state_.FindPod("ns", "thief")).claim_problem, HasSubstr("does not exist"));
  state_.RemovePod("ns", "p", "");
  EXPECT_FALSE(state_.devices().Find(absl::StrCat("ns/", name))->exists);
}

TEST_F(ExtendedClaimsTest, ClassesComeAndGo) {
  state_.RemoveDeviceClass(kGpuDriver);
  const PodId pod = Add("p");
  EXPECT_EQ(Key(pod), "");
  EXPECT_EQ(Node("claim").allocatable[model::kGpu], 0);
  state_.UpsertDeviceObject(Gives(kGpuDriver, model::kGpuName));
  EXPECT_NE(Key(pod), "");
  EXPECT_EQ(Node("claim").allocatable[model::kGpu], 2000);
  state_.UpsertDeviceObject(Gives(kGpuDriver, "example.com/other"));
  EXPECT_EQ(Key(pod), "");
  EXPECT_FALSE(Spec(pod).extended->Any());
  EXPECT_EQ(Node("claim").allocatable[model::kGpu], 0);
  // The pod waits while its class goes.
  state_.UpsertDeviceObject(Gives(kGpuDriver, model::kGpuName));
  EXPECT_NE(Key(pod), "");
  state_.RemoveDeviceClass(kGpuDriver);
  EXPECT_EQ(Key(pod), "");
  EXPECT_EQ(Spec(pod).claim_problem, "");
}

TEST_F(ExtendedClaimsTest, TheNewestClassGivesAResourceThatSeveralName) {
  state_.UpsertDeviceObject(Gives("zz", model::kGpuName, 10));
  EXPECT_EQ(*state_.devices().ClassOfResource(model::kGpuName), "zz");
  state_.UpsertDeviceObject(Gives("aa", model::kGpuName, 10));
  EXPECT_EQ(*state_.devices().ClassOfResource(model::kGpuName), "aa");
  state_.UpsertDeviceObject(Gives("bb", model::kGpuName, 9));
  EXPECT_EQ(*state_.devices().ClassOfResource(model::kGpuName), "aa");
  EXPECT_EQ(*state_.devices().ClassOfResource("deviceclass.resource.kubernetes.io/bb"), "bb");
  EXPECT_EQ(state_.devices().ClassOfResource("cpu"), nullptr);
}

TEST_F(ExtendedClaimsTest, AllResourcesComeFromOneSide) {
  state_.UpsertDeviceObject(Gives("hca", kHca));
  state_.UpsertDeviceObject(MakeSlice("claim", 1, "rdma.io"));
  model::Node plugin = MakeNode("plugin", 2);
  model::Set(plugin.allocatable, kHca, 4);
  state_.UpsertNode(plugin);
  model::Node mixed = MakeNode("mixed", 2);
  state_.UpsertNode(mixed);
  model::Pod pod = PodBuilder("ns", "p").Queue("q").Gpus(1);
  model::Set(pod.spec.requests, kHca, 1);
  state_.UpsertPod(pod);
  const model::ExtendedDevices& extended = *Spec(state_.FindPod("ns", "p")).extended;
  EXPECT_THAT(extended.resources, ElementsAre(model::kGpuName, kHca));
  EXPECT_EQ(SourceOf(Node("claim").object, extended), DeviceSource::kClaim);
  EXPECT_EQ(SourceOf(Node("plugin").object, extended), DeviceSource::kPlugin);
  EXPECT_EQ(SourceOf(Node("mixed").object, extended), DeviceSource::kMixed);
}

TEST_F(ExtendedClaimsTest, ABoundPodHasTheClaimThatItsStatusNames) {
  const PodId pod = Add("p");
  Place(pod, "claim");
  model::ResourceClaim claim = Made(pod);
  claim.allocated = true;
  claim.devices = {{"container-0-request-0", kGpuDriver, "claim", "0"}};
  state_.UpsertDeviceObject(claim);
  model::Pod bound = PodBuilder("ns", "p").Queue("q").Gpus(1).On("claim");
  bound.meta.uid = state_.pod(pod).uid;
  bound.extended_claim = claim.meta.name;
  state_.UpsertPod(bound);
  EXPECT_EQ(state_.ExtendedClaimOf(pod).told, claim.meta.name);
  EXPECT_THAT(Row(pod).devices, ElementsAre("gpu.nvidia.com/claim/0"));
  // One on a node with a device plugin has none, and needs none.
  const PodId other = Add("o");
  Place(other, "plugin");
  model::Pod there = PodBuilder("ns", "o").Queue("q").Gpus(1).On("plugin");
  there.meta.uid = state_.pod(other).uid;
  state_.UpsertPod(there);
  EXPECT_EQ(Key(other), "");
}

TEST_F(ExtendedClaimsTest, PodsOfOthersMakeTheirOwnClaims) {
  state_.UpsertPod(PodBuilder("ns", "p").Scheduler("default-scheduler").Gpus(1));
  EXPECT_EQ(Key(state_.FindPod("ns", "p")), "");
}

TEST(ExtendedClaimNameTest, IsANameForAnyPod) {
  const std::string uid = "0b7c0f3e-6f4e-4f4e-8f4e-0123456789ab";
  EXPECT_EQ(ExtendedClaimName("p", uid), absl::StrCat("p-extended-resources-", uid));
  for (size_t size = 150; size <= 253; ++size) {
    std::string pod(size, '.');
    pod[0] = 'a';
    EXPECT_LE(ExtendedClaimName(pod, uid).size(), 253);
    EXPECT_EQ(ExtendedClaimName(pod, uid), absl::StrCat("a-extended-resources-", uid));
    EXPECT_LE(ExtendedClaimName(std::string(size, 'a'), uid).size(), 253);
  }
}

}  // namespace
}  // namespace fairlead::state
