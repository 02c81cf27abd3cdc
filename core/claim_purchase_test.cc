// Nodes for pods whose devices come by claims, through the whole decision loop: what is demanded,
// when a node is usable, what it teaches.
#include <map>
#include <set>
#include <string>

#include "core/machines_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/extended_claims.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeSlice;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Phase = model::NodeRequestPhase;

constexpr char kGpuClass[] = "gpu.nvidia.com";
constexpr char kDeviceCatalog[] = R"(
types:
- name: dra.2
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 2}
  devices: [{driver: gpu.nvidia.com, count: 2, attributes: {productName: Test}}]
  zones: [z1]
  price: {on_demand: 1.00}
- name: dra.4
  cpu: 16
  memory: 64Gi
  gpu: {model: Test-GPU, count: 4}
  devices: [{driver: gpu.nvidia.com, count: 4, attributes: {productName: Test}}]
  zones: [z1]
  price: {on_demand: 3.00}
- name: plain
  cpu: 8
  memory: 32Gi
  zones: [z1]
  price: {on_demand: 0.10}
)";

class ClaimPurchaseTest : public MachinesTest {
 protected:
  ClaimPurchaseTest() { UseCatalog(kDeviceCatalog); }
  void UseCatalog(const char* yaml) {
    auto catalog = hook::Catalog::Parse(yaml, "test.yaml");
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
    Restart();
  }
  void BeginWithDevices() {
    Begin();
    Put(MakeDeviceClass(kGpuClass, {"device.driver == \"gpu.nvidia.com\""}));
  }
  // A pod with a claim; claims of several pods are of their queue.
  void AddClaim(const std::string& name, int64_t devices) {
    model::ResourceClaim claim = MakeClaim(name, devices, kGpuClass, "research");
    claim.meta.uid = "uid-" + name;
    claim.meta.resource_version = "1";
    claims_[name] = claim;
    Put(claim);
  }
  void AddPodWith(const std::string& name, const std::string& claim, int64_t cpu_milli = 1000,
                  const std::string& group = "") {
    PodBuilder builder("ns", name);
    builder.Queue("research").Cpu(cpu_milli).Created(0);
    if (!group.empty()) builder.Group(group);
    model::Pod pod = builder.Build();
    pod.spec.resource_claims = {claim};
    AddPod(pod);
  }
  void AddPodWithOwn(const std::string& name, int64_t devices, const std::string& group = "") {
    AddClaim("c-" + name, devices);
    AddPodWith(name, "c-" + name, 1000, group);
  }
  // The API server takes writes of claims; drivers publish what nodes have.
  void Note(const StepResult& result) override {
    for (const auto& write : Of<model::ReserveClaim>(result)) {
      model::ResourceClaim& claim = claims_.at(write.name);
      if (write.allocate) {
        claim.allocated = true;
        claim.devices = write.allocation.devices;
        claim.node_terms = {model::TermOfNode(write.allocation.node)};
      }
      for (const auto& pod : write.pods) claim.reserved_for.push_back(pod.uid);
      claim.meta.resource_version += "1";
      Put(claim);
    }
    for (const auto& write : Of<model::SetExtendedClaim>(result)) {
      model::ResourceClaim claim = MakeClaim(write.claim, 1, kGpuClass);
      claim.meta.uid = "uid-" + write.claim;
      claim.meta.resource_version = "1";
      claim.requests[0].name = "container-0-request-0";
      claim.meta.owners.push_back({"v1", "Pod", write.name, write.uid, true});
      claims_[write.claim] = claim;
      Put(claim);
      pods_.at(write.name).extended_claim = write.claim;
      Put(pods_.at(write.name));
    }
    for (const auto& [name, node] : nodes_) {
      const int64_t devices = DevicesOf(node);
      if (devices == 0 || !published_.insert(name).second) continue;
      Put(MakeSlice(name, devices));
    }
    for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
      told_[write.name] = write.verdict_json;
    }
  }
  virtual int64_t DevicesOf(const model::Node& node) {
    if (!drivers_run_) return 0;
    const std::string type(node.meta.labels.Get(model::kInstanceTypeLabel));
    const auto known = devices_of_.find(type);
    return known == devices_of_.end() ? 0 : known->second;
  }
  std::map<std::string, int> Types() const {
    std::map<std::string, int> types;
    for (const auto& [name, request] : requests_) ++types[request.instance_type];
    return types;
  }
  using Counts = std::map<std::string, int>;

  bool drivers_run_ = true;
  std::map<std::string, int64_t> devices_of_ = {{"dra.2", 2}, {"dra.4", 4}};
  std::map<std::string, model::ResourceClaim> claims_;
  std::set<std::string> published_;
  std::map<std::string, std::string> told_;
};

TEST_F(ClaimPurchaseTest, ClaimsAreDemandAndAsManyNodesComeAsTheyNeed) {
  BeginWithDevices();
  for (const char* name : {"a", "b", "c"}) AddPodWithOwn(name, 1);
  Play(absl::Minutes(3));
  EXPECT_EQ(Types(), (Counts{{"dra.2", 2}}));
  EXPECT_THAT(bound_, SizeIs(3));
  std::set<std::string> devices;
  for (const auto& [name, claim] : claims_) {
    ASSERT_THAT(claim.devices, SizeIs(1)) << name;
    devices.insert(claim.devices[0].pool + "/" + claim.devices[0].device);
  }
  EXPECT_THAT(devices, SizeIs(3));
  Play(absl::Minutes(20));
  EXPECT_EQ(created_, 2) << "nothing is bought for pods that run";
  for (const char* name : {"a", "b", "c"}) EndPod(name);
  for (auto& [name, claim] : claims_) {
    loop_->Apply(model::Delete{model::Kind::kResourceClaim, "ns", name, claim.meta.uid});
  }
  Play(absl::Minutes(20));
  EXPECT_EQ(terminated_, 2);
}

TEST_F(ClaimPurchaseTest, NothingIsBoughtForDevicesThatNoTypeBrings) {
  BeginWithDevices();
  Put(MakeDeviceClass("fpga", {"device.driver == \"fpga.io\""}));
  model::ResourceClaim claim = MakeClaim("c", 1, "fpga");
  Put(claim);
  AddPodWith("p", "c");
  AddPodWithOwn("large", 5);
  Play(absl::Minutes(5));
  EXPECT_EQ(created_, 0);
  EXPECT_THAT(told_["p"], HasSubstr("NoInstanceTypeFits"));
  EXPECT_THAT(told_["p"], HasSubstr("dra.2 (2 x gpu.nvidia.com)"));
  EXPECT_THAT(told_["p"], HasSubstr("plain (no devices known)"));
  EXPECT_THAT(told_["large"], HasSubstr("dra.4 (4 x gpu.nvidia.com)"));
}

TEST_F(ClaimPurchaseTest, ANodeIsReadyOnlyWithItsDevices) {
  BeginWithDevices();
  drivers_run_ = false;
  AddPodWithOwn("a", 1);
  Play(absl::Minutes(10));
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kRegistered);
  EXPECT_THAT(bound_, SizeIs(0));
  EXPECT_EQ(created_, 1) << "the pod waits for this one";
  drivers_run_ = true;
  Play(absl::Seconds(20));
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
  EXPECT_THAT(bound_, SizeIs(1));
}

TEST_F(ClaimPurchaseTest, ANodeWithoutAnyOfThemIsGivenUp) {
  BeginWithDevices();
  drivers_run_ = false;
  AddPodWithOwn("a", 1);
  Play(absl::Minutes(20));
  EXPECT_GE(terminated_, 1);
  EXPECT_THAT(bound_, SizeIs(0));
}

TEST_F(ClaimPurchaseTest, ATypeThatBringsFewerIsNotBoughtAgainForWhatDoesNotFit) {
  BeginWithDevices();
  devices_of_["dra.2"] = 1;
  AddPodWithOwn("a", 2);
  Play(absl::Minutes(30), absl::Seconds(10));
  EXPECT_EQ(bound_.count("a"), 1u);
  ASSERT_EQ(Types().count("dra.4"), 1u) << "the next type that suits it";
  AddPodWithOwn("b", 2);
  AddPodWithOwn("c", 4);
  Play(absl::Minutes(10), absl::Seconds(10));
  EXPECT_EQ(bound_.count("b"), 1u);
  EXPECT_EQ(bound_.count("c"), 1u);
  EXPECT_EQ(created_, 3) << "one of dra.2, and then dra.4 alone";
}

// What a device plugin was expected to give, a driver gives.
TEST_F(ClaimPurchaseTest, GpusByDriverMakeANodeReadyWhereAPluginWasExpected) {
  UseCatalog(kCatalog);
  BeginWithDevices();
  model::DeviceClass gives = MakeDeviceClass(kGpuClass, {"device.driver == \"gpu.nvidia.com\""});
  gives.extended_resource = model::kGpuName;
  Put(gives);
  plugin_ = false;
  devices_of_ = {{"gpu.small", 1}, {"gpu.large", 4}};
  AddPod(GpuPod("p"));
  Play(absl::Minutes(3));
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
  EXPECT_EQ(bound_.count("p"), 1u);
  // Learned: claims for such devices are served by that type from now on.
  AddPodWithOwn("q", 1);
  Play(absl::Minutes(3));
  EXPECT_EQ(bound_.count("q"), 1u) << told_["q"];
  EXPECT_EQ(Types(), (Counts{{"gpu.small", 2}}));
}

TEST_F(ClaimPurchaseTest, PodsThatShareAClaimGetOneNode) {
  BeginWithDevices();
  AddClaim("shared", 1);
  AddPodWith("a", "shared", 6000);
  AddPodWith("b", "shared", 6000);
  Play(absl::Minutes(4));
  EXPECT_EQ(Types(), (Counts{{"dra.4", 1}})) << "dra.2 has too few CPUs for both";
  ASSERT_THAT(bound_, SizeIs(2));
  EXPECT_EQ(bound_["a"], bound_["b"]);
  EXPECT_THAT(claims_["shared"].reserved_for, SizeIs(2));
}

TEST_F(ClaimPurchaseTest, NothingIsBoughtForAPodWhoseClaimIsHeldOnAFullNode) {
  BeginWithDevices();
  AddClaim("shared", 1);
  AddPodWith("a", "shared", 7000);
  Play(absl::Minutes(3));
  ASSERT_THAT(bound_, SizeIs(1));
  AddPodWith("b", "shared", 7000);
  Play(absl::Minutes(10));
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(bound_, SizeIs(1));
  EXPECT_THAT(told_["b"], HasSubstr("ResourceClaim ns/shared is held on a node"));
}

TEST_F(ClaimPurchaseTest, AGangWithClaimsIsBoughtForWholeOrNotAtAll) {
  options_.hook.cluster_gpu_limit = 6;
  Restart();
  BeginWithDevices();
  Put(MakeGroup("ns", "gang", "research", 4));
  for (const char* name : {"g0", "g1", "g2", "g3"}) AddPodWithOwn(name, 2, "gang");
  Play(absl::Minutes(5));
  EXPECT_EQ(created_, 0);
  const View view = loop_->MakeView(now_);
  ASSERT_THAT(view.waiting, SizeIs(1));
  EXPECT_EQ(view.waiting[0].verdict.code, verdict::Code::kGpuCapReached);
  Put(MakeGroup("ns", "small", "research", 3));
  for (const char* name : {"s0", "s1", "s2"}) AddPodWithOwn(name, 2, "small");
  Play(absl::Minutes(5));
  EXPECT_EQ(Types(), (Counts{{"dra.2", 3}}));
  EXPECT_THAT(bound_, SizeIs(3));
}

TEST_F(ClaimPurchaseTest, ExtendedResourcesThatAClassGivesCountAlike) {
  BeginWithDevices();
  model::DeviceClass gives = MakeDeviceClass(kGpuClass, {"device.driver == \"gpu.nvidia.com\""});
  gives.extended_resource = "example.com/gpu";
  Put(gives);
  model::Pod pod = PodBuilder("ns", "p").Queue("research").Created(0).Build();
  model::Set(pod.spec.requests, "example.com/gpu", 1);
  AddPod(pod);
  Play(absl::Minutes(4));
  EXPECT_EQ(Types(), (Counts{{"dra.2", 1}}));
  EXPECT_EQ(bound_.count("p"), 1u);
}

}  // namespace
}  // namespace fairlead::core::testing
