// CapacityBuffers and ProvisioningRequests on a real API server, with the definitions that
// manifests/capacity-apis installs. kwok plays the kubelets.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kPodTemplates[] = "/api/v1/namespaces/default/podtemplates";
constexpr char kBuffers[] = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers";
constexpr char kProvisioning[] =
    "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests";

class CapacityTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    const std::string folder = FAIRLEAD_SOURCE_DIR "/manifests/capacity-apis/";
    Define(folder + "capacitybuffer.yaml", kBuffers);
    Define(folder + "provisioningrequest.yaml", kProvisioning);
    Plane& plane = *Plane::Get();
    kwok_ = std::make_unique<ChildProcess>(plane.Kwok(), plane.NewFile("kwok.log"));
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    kwok_.reset();
    for (const char* collection : {kBuffers, kProvisioning, kPodTemplates}) Empty(collection);
    IntegrationTest::TearDown();
  }
  // With the rights of the manifests.
  ChildProcess& StartHook(const std::string& more_of_hook = "") {
    return Start({.kubeconfig = InstallRights({"base", "kwok"}),
                  .hook = true,
                  .more_of_hook = more_of_hook,
                  .unneeded_after = "1s"});
  }
  void MakeTemplate(const std::string& name, int gpus) {
    api().Create(kPodTemplates,
                 absl::StrCat(R"({"apiVersion":"v1","kind":"PodTemplate","metadata":
      {"name":")",
                              name, R"("},"template":{"metadata":{},"spec":{
      "containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi",
      "nvidia.com/gpu":")",
                              gpus, R"("},"limits":{"nvidia.com/gpu":")", gpus, R"("}}}]}}})"));
  }
  void MakeBuffer(const std::string& spec) {
    api().Create(kBuffers, absl::StrCat(R"({"apiVersion":"autoscaling.x-k8s.io/v1beta1",
      "kind":"CapacityBuffer","metadata":{"name":"b"},"spec":)",
                                        spec, "}"));
  }
  void MakeRequest(const std::string& name, const std::string& class_name, int pods) {
    api().Create(kProvisioning, absl::StrCat(R"({"apiVersion":"autoscaling.x-k8s.io/v1",
      "kind":"ProvisioningRequest","metadata":{"name":")",
                                             name, R"("},"spec":{"provisioningClassName":")",
                                             class_name, R"(","podSets":[{"count":)", pods,
                                             R"(,"podTemplateRef":{"name":"t"}}]}})"));
  }
  ::testing::AssertionResult Says(const std::string& collection, const std::string& name,
                                  const std::string& type, const std::string& status,
                                  const std::string& reason) {
    return Eventually(
        absl::StrCat("condition ", type, " of ", name, " is ", status, " for ", reason),
        [&] {
          const Json object = api().Get(Path(collection, name)).body;
          const Json* condition = FindCondition(object, type);
          return condition != nullptr && condition->TextAt({"status"}) == status &&
                 condition->TextAt({"reason"}) == reason;
        },
        [&] { return api().Get(Path(collection, name)).body.Compact(); });
  }

  std::unique_ptr<ChildProcess> kwok_;
};

TEST_F(CapacityTest, ABufferHasANodeThatAPodTakesAtOnceAndIsFilledAgain) {
  ChildProcess& process = StartHook();
  MakeTemplate("t", 1);
  MakeBuffer(R"({"podTemplateRef":{"name":"t"},"replicas":1})");
  ASSERT_TRUE(Says(kBuffers, "b", "ReadyForProvisioning", "True", "Resolved")) << process.Log();
  ASSERT_TRUE(Says(kBuffers, "b", "Provisioning", "True", "CapacityProvisioned")) << process.Log();
  const Json buffer = api().Get(Path(kBuffers, "b")).body;
  EXPECT_EQ(buffer.TextAt({"status", "replicas"}), "1");
  EXPECT_EQ(buffer.TextAt({"status", "podTemplateRef", "name"}), "t");
  EXPECT_EQ(buffer.TextAt({"status", "podTemplateGeneration"}), "1");
  const std::vector<Json> nodes = api().List(kNodes);
  ASSERT_EQ(nodes.size(), 1u);
  const std::string first = nodes[0].TextAt({"metadata", "name"});
  MakePod({.name = "p"});
  ASSERT_TRUE(Bound({"p"}));
  EXPECT_EQ(NodeOf("p"), first);
  EXPECT_TRUE(Eventually(
      "the buffer has another node", [&] { return api().List(kNodes).size() == 2; },
      [&] { return process.Log(); }));
  api().Delete(Path(kBuffers, "b"));
  api().Delete(Path(kPods, "p"));
  EXPECT_TRUE(Eventually(
      "all is given back", [&] { return api().List(kRequests).empty(); },
      [&] { return process.Log(); }));
}

TEST_F(CapacityTest, WhatIsWrongIsSaidInTheCondition) {
  StartHook();
  MakeBuffer(R"({"podTemplateRef":{"name":"none"},"replicas":1})");
  EXPECT_TRUE(Says(kBuffers, "b", "ReadyForProvisioning", "False", "Refused"));
  EXPECT_TRUE(api().List(kRequests).empty());
  for (const char* spec : {R"({"podTemplateRef":{"name":"t"}})",
                           R"({"podTemplateRef":{"name":"t"},"replicas":1,
                               "scalableRef":{"kind":"Deployment","name":"d"}})"}) {
    const Answer answer = api().Call(
        "POST", kBuffers,
        absl::StrCat(R"({"apiVersion":"autoscaling.x-k8s.io/v1beta1","kind":"CapacityBuffer",
          "metadata":{"name":"c"},"spec":)",
                     spec, "}"));
    EXPECT_EQ(answer.status, 422) << spec;
  }
}

TEST_F(CapacityTest, AProvisioningRequestIsMetWholeOrNotAtAll) {
  ChildProcess& process = StartHook("  clusterGPULimit: 2\n");
  MakeTemplate("t", 1);
  MakeRequest("check", "check-capacity.autoscaling.x-k8s.io", 2);
  ASSERT_TRUE(Says(kProvisioning, "check", "Provisioned", "False", "CapacityIsNotFound"));
  MakeRequest("much", "best-effort-atomic-scale-up.autoscaling.x-k8s.io", 3);
  ASSERT_TRUE(Says(kProvisioning, "much", "Accepted", "True", "Accepted"));
  ASSERT_TRUE(Says(kProvisioning, "much", "Provisioned", "False", "CapacityIsNotFound"));
  EXPECT_TRUE(api().List(kRequests).empty());
  MakeRequest("two", "best-effort-atomic-scale-up.autoscaling.x-k8s.io", 2);
  EXPECT_TRUE(Says(kProvisioning, "two", "Provisioned", "True", "CapacityIsProvisioned"))
      << process.Log();
  // Two GPUs are there, and their room is kept for it.
  EXPECT_TRUE(Says(kProvisioning, "check", "Provisioned", "False", "CapacityIsNotFound"));
  EXPECT_TRUE(Says(kProvisioning, "much", "Provisioned", "False", "CapacityIsNotFound"));
  EXPECT_EQ(api().List(kNodes).size(), 2u);
}

}  // namespace
}  // namespace fairlead::integration
