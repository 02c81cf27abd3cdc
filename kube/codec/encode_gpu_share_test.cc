// What is written about shared GPUs.
#include <gtest/gtest.h>

#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"
#include "simdjson.h"

namespace fairlead::kube {
namespace {

constexpr char kReservation[] =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"gpu-reservation-1","namespace":"res",)"
    R"("labels":{"app":"kai-resource-reservation","app.kubernetes.io/managed-by":"fairlead",)"
    R"("runai-gpu-group":"g"},"annotations":{"karpenter.sh/do-not-disrupt":"true"}},)"
    R"("spec":{"nodeName":"n1","serviceAccountName":"sa","runtimeClassName":"nvidia",)"
    R"("tolerations":[{"operator":"Exists"}],"terminationGracePeriodSeconds":5,)"
    R"("securityContext":{"runAsNonRoot":true,"runAsUser":65532,)"
    R"("seccompProfile":{"type":"RuntimeDefault"}},)"
    R"("containers":[{"name":"gpu-index","image":"registry.example/fairlead:1",)"
    R"("command":["fairlead-gpu-index"],)"
    R"("env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},)"
    R"({"name":"POD_NAMESPACE","valueFrom":{"fieldRef":{"fieldPath":"metadata.namespace"}}}],)"
    R"("resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}},)"
    R"("securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,)"
    R"("capabilities":{"drop":["ALL"]}}}]}})";

TEST(EncodeGpuShareTest, AReservationPodIsPinnedToItsNodeAndHoldsOneGpu) {
  const model::CreateGpuReservation action{"res",    "gpu-reservation-1",           "n1",
                                           "g",      "registry.example/fairlead:1", "sa",
                                           "nvidia", {"fairlead-gpu-index"}};
  const EncodedWrite write = EncodeGpuReservation(action);
  EXPECT_EQ(write.method, "POST");
  EXPECT_EQ(write.path, "/api/v1/namespaces/res/pods");
  EXPECT_EQ(write.content_type, kJson);
  EXPECT_EQ(write.body, kReservation);
}

TEST(EncodeGpuShareTest, OurOwnDecoderTakesItForAReservation) {
  const EncodedWrite write = EncodeGpuReservation({"res", "r", "n1", "g", "i", "", "", {}});
  const auto object = DecodeObject(model::Kind::kPod, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& pod = std::get<model::Pod>(*object);
  EXPECT_EQ(pod.invalid, "");
  EXPECT_EQ(pod.node_name, "n1");
  EXPECT_EQ(pod.meta.labels.Get(model::kGpuGroupLabel), "g");
  EXPECT_EQ(model::Get(pod.spec.requests, model::kGpuName), 1000);
  EXPECT_EQ(pod.spec.requests.size(), 1u) << "it takes nothing but the GPU";
}

TEST(EncodeGpuShareTest, ItsDeviceIsRead) {
  const auto object = DecodeObject(
      model::Kind::kPod, kJson,
      R"({"metadata":{"name":"r","namespace":"res","annotations":{"other":"x",)"
      R"("run.ai/reserve_for_gpu_index":"GPU-1","runai/shared-gpu-configmap":"c"}},"spec":{}})");
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& pod = std::get<model::Pod>(*object);
  EXPECT_EQ(pod.meta.annotations.Get(model::kGpuIndexAnnotation), "GPU-1");
  EXPECT_EQ(pod.meta.annotations.Get(model::kSharedGpuConfigMapAnnotation), "c");
  EXPECT_FALSE(pod.meta.annotations.Has("other"));
}

TEST(EncodeGpuShareTest, APodIsDeletedByItsUidIfThereIsOne) {
  const EncodedWrite write = EncodeDeletePod({"res", "r", "u1"});
  EXPECT_EQ(write.method, "DELETE");
  EXPECT_EQ(write.path, "/api/v1/namespaces/res/pods/r");
  EXPECT_EQ(write.body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u1"}})");
  EXPECT_EQ(EncodeDeletePod({"res", "r", ""}).body,
            R"({"apiVersion":"v1","kind":"DeleteOptions"})");
}

TEST(EncodeGpuShareTest, AConfigMapIsAppliedByForceAndGoesWithItsPod) {
  const EncodedWrite write =
      EncodeConfigMap({"ns", "m-0", {{"GPU_PORTION", "0.50"}, {"A", "b"}}, "p", "u1"});
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/configmaps/m-0?fieldManager=fairlead&force=true");
  EXPECT_EQ(write.content_type, kApplyPatch);
  EXPECT_EQ(write.body,
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m-0","namespace":"ns",)"
            R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]},)"
            R"("data":{"A":"b","GPU_PORTION":"0.50"}})");
}

}  // namespace
}  // namespace fairlead::kube
