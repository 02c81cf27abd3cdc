// The claim for a pod's extended resources, and which container uses which request of it.
#include "kube/codec/extended_claim.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mapping = ExtendedRequests::Mapping;
using Extended = ExtendedRequests::Request;

constexpr char kFpga[] = "example.com/fpga";
const std::vector<model::SetExtendedClaim::Resource> kFpgas = {{kFpga, "fpga"}};

PodContainer Main(const std::string& name, model::ResourceList requests) {
  return {name, false, std::move(requests)};
}
PodContainer Init(const std::string& name, int64_t devices) {
  return {name, true, {{kFpga, devices}}};
}

TEST(ExtendedRequestsTest, EachContainerHasARequestOfItsOwn) {
  const ExtendedRequests made = MakeExtendedRequests(
      {Main("a", {{"cpu", 1000}, {kFpga, 2}}), Main("b", {{"memory", 1}}), Main("c", {{kFpga, 1}})},
      kFpgas);
  // As the kubelet knows them: the container's position, and that of the resource by name.
  EXPECT_THAT(made.requests, ElementsAre(Extended{"container-0-request-1", "fpga", 2},
                                         Extended{"container-2-request-0", "fpga", 1}));
  EXPECT_THAT(made.mappings, ElementsAre(Mapping{"a", kFpga, "container-0-request-1"},
                                         Mapping{"c", kFpga, "container-2-request-0"}));
}

TEST(ExtendedRequestsTest, GpusAreWholeDevices) {
  const ExtendedRequests made = MakeExtendedRequests({Main("a", {{model::kGpuName, 2000}})},
                                                     {{model::kGpuName, "gpu.nvidia.com"}});
  EXPECT_THAT(made.requests, ElementsAre(Extended{"container-0-request-0", "gpu.nvidia.com", 2}));
}

TEST(ExtendedRequestsTest, AnInitContainerUsesTheDevicesOfThoseThatRunLater) {
  const ExtendedRequests made = MakeExtendedRequests(
      {Init("i", 2), Main("a", {{kFpga, 1}}), Main("b", {{kFpga, 2}})}, kFpgas);
  EXPECT_THAT(made.requests, ElementsAre(Extended{"container-1-request-0", "fpga", 1},
                                         Extended{"container-2-request-0", "fpga", 2}));
  EXPECT_THAT(made.mappings, ElementsAre(Mapping{"a", kFpga, "container-1-request-0"},
                                         Mapping{"b", kFpga, "container-2-request-0"},
                                         Mapping{"i", kFpga, "container-1-request-0"},
                                         Mapping{"i", kFpga, "container-2-request-0"}));
}

TEST(ExtendedRequestsTest, InitContainersShareWhatIsMissing) {
  const ExtendedRequests made =
      MakeExtendedRequests({Init("i", 2), Init("j", 5), Main("a", {{kFpga, 1}})}, kFpgas);
  EXPECT_THAT(made.requests, ElementsAre(Extended{"container-1-request-0", "fpga", 4},
                                         Extended{"container-2-request-0", "fpga", 1}));
  EXPECT_THAT(made.mappings, ElementsAre(Mapping{"a", kFpga, "container-2-request-0"},
                                         Mapping{"i", kFpga, "container-2-request-0"},
                                         Mapping{"i", kFpga, "container-1-request-0"},
                                         Mapping{"j", kFpga, "container-2-request-0"},
                                         Mapping{"j", kFpga, "container-1-request-0"}));
}

TEST(ExtendedRequestsTest, ASidecarKeepsItsDevices) {
  const ExtendedRequests made = MakeExtendedRequests(
      {Main("side", {{kFpga, 1}}), Init("i", 1), Main("a", {{kFpga, 1}})}, kFpgas);
  EXPECT_THAT(made.requests, ElementsAre(Extended{"container-0-request-0", "fpga", 1},
                                         Extended{"container-2-request-0", "fpga", 1}));
  EXPECT_THAT(made.mappings.back(), (Mapping{"i", kFpga, "container-2-request-0"}));
}

TEST(ExtendedRequestsTest, WithoutSuchRequestsThereAreNone) {
  EXPECT_THAT(MakeExtendedRequests({Main("a", {{"cpu", 1}, {kFpga, 0}})}, kFpgas).requests,
              IsEmpty());
}

// The scheduler decides by the pod's effective requests: the claim asks for as many devices.
// Source of that formula: KEP-753 (sidecar containers).
TEST(ExtendedRequestsProperty, TheClaimAsksForWhatThePodCountsFor) {
  const uint32_t seed = 20261127;
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<PodContainer> containers;
    int64_t sidecars = 0, most = 0, sum = 0;
    const size_t inits = random() % 5;
    for (size_t i = 0; i < inits + 1 + random() % 4; ++i) {
      const auto devices = static_cast<int64_t>(random() % 4);
      const bool ends_first = i < inits && random() % 2 == 0;
      containers.push_back({absl::StrCat("c", i), ends_first, {{kFpga, devices}}});
      if (ends_first) {
        most = std::max(most, sidecars + devices);
        continue;
      }
      if (i < inits) sidecars += devices;
      sum += devices;
    }
    int64_t asked = 0;
    const ExtendedRequests made = MakeExtendedRequests(containers, kFpgas);
    for (const Extended& request : made.requests) asked += request.count;
    ASSERT_EQ(asked, std::max(most, sum)) << "seed " << seed << ", round " << round;
    for (const Mapping& mapping : made.mappings) {
      ASSERT_TRUE(std::any_of(made.requests.begin(), made.requests.end(),
                              [&](const Extended& r) { return r.name == mapping.request; }))
          << mapping.request << " of seed " << seed << ", round " << round;
    }
  }
}

TEST(DecodeContainersTest, SaysWhichInitContainersEndFirst) {
  const auto read = DecodeContainers(R"({"kind":"Pod","spec":{
    "containers":[{"name":"m","resources":{"requests":{"example.com/fpga":"3"}}}],
    "initContainers":[{"name":"s","restartPolicy":"Always"},
                      {"name":"i","resources":{"requests":{"nvidia.com/gpu":"1"}}}]}})");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3);
  EXPECT_EQ((*read)[0].name, "s");
  EXPECT_FALSE((*read)[0].ends_first);
  EXPECT_TRUE((*read)[1].ends_first);
  EXPECT_EQ(model::Get((*read)[1].requests, model::kGpuName), 1000);
  EXPECT_FALSE((*read)[2].ends_first);
  EXPECT_EQ(model::Get((*read)[2].requests, kFpga), 3);
}

TEST(DecodeContainersTest, RefusesWhatCannotBeRead) {
  EXPECT_FALSE(DecodeContainers("[]").ok());
  const auto bad = DecodeContainers(
      R"({"spec":{"containers":[{"resources":{"requests":{"example.com/fpga":"x"}}}]}})");
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("spec.containers[0]"));
}

TEST(EncodeExtendedClaimTest, TheClaimIsThePods) {
  const model::SetExtendedClaim action{"ns", "p", "u", "n1", "p-claim", kFpgas};
  const EncodedWrite claim = EncodeExtendedClaim(action, {{"container-0-request-0", "fpga", 2}});
  EXPECT_EQ(claim.method, "POST");
  EXPECT_EQ(claim.path, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims");
  EXPECT_EQ(claim.body,
            R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{)"
            R"("namespace":"ns","name":"p-claim","annotations":{)"
            R"("resource.kubernetes.io/extended-resource-claim":"true"},"ownerReferences":[{)"
            R"("apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]},)"
            R"("spec":{"devices":{"requests":[{"name":"container-0-request-0","exactly":{)"
            R"("deviceClassName":"fpga","allocationMode":"ExactCount","count":2}}]}}})");
}

TEST(EncodeExtendedClaimTest, ThePodsStatusNamesItOrNone) {
  model::SetExtendedClaim action{"ns", "p", "u", "n1", "p-claim", kFpgas};
  const EncodedWrite told = EncodeExtendedClaimStatus(action, {{"m", kFpga, "r"}});
  EXPECT_EQ(told.method, "PATCH");
  EXPECT_EQ(told.path, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(told.body, R"({"metadata":{"uid":"u"},"status":{"extendedResourceClaimStatus":{)"
                       R"("resourceClaimName":"p-claim","requestMappings":[{"containerName":"m",)"
                       R"("resourceName":"example.com/fpga","requestName":"r"}]}}})");
  action.claim.clear();
  EXPECT_EQ(EncodeExtendedClaimStatus(action, {}).body,
            R"({"metadata":{"uid":"u"},"status":{"extendedResourceClaimStatus":null}})");
}

}  // namespace
}  // namespace fairlead::kube
