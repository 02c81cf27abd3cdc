#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/json_codec.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

template <typename T>
T DecodeAs(model::Kind kind, const std::string& body) {
  const absl::StatusOr<Object> object = json::DecodeObject(kind, body);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<T>(*object) : T();
}

std::string Meta(const char* name) {
  return absl::StrCat(R"("metadata":{"name":")", name,
                      R"(","namespace":"team","uid":"u1","generation":3})");
}

model::CapacityBuffer Buffer(const std::string& spec, const std::string& status = "{}") {
  return DecodeAs<model::CapacityBuffer>(
      model::Kind::kCapacityBuffer,
      absl::StrCat(R"({"kind":"CapacityBuffer",)", Meta("b"), R"(,"spec":)", spec, R"(,"status":)",
                   status, "}"));
}

TEST(CapacityJsonTest, ATemplateIsReadAsAPodOfItsNamespace) {
  // The API server may write metadata last.
  const auto object = DecodeAs<model::PodTemplate>(
      model::Kind::kPodTemplate,
      absl::StrCat(
          R"({"template":{"metadata":{"labels":{"kai.scheduler/queue":"q"},
               "annotations":{"gpu-fraction":"0.5"}},
             "spec":{"schedulerName":"fairlead","containers":[{"name":"c","resources":{
               "requests":{"cpu":"2","memory":"1Gi"}}}]}},)",
          Meta("t"), "}"));
  EXPECT_EQ(object.meta.name, "t");
  EXPECT_EQ(object.pod.invalid, "");
  EXPECT_EQ(object.pod.spec.ns, "team");
  EXPECT_EQ(object.pod.meta.labels.Get("kai.scheduler/queue"), "q");
  EXPECT_EQ(model::Get(object.pod.spec.requests, "cpu"), 2000);
  EXPECT_EQ(object.pod.spec.gpu_share.fraction_milli, 500);
}

TEST(CapacityJsonTest, ATemplateThatIsWrongSaysWhere) {
  const auto object = DecodeAs<model::PodTemplate>(
      model::Kind::kPodTemplate,
      absl::StrCat("{", Meta("t"), R"(,"template":{"spec":{"containers":[{"name":"c",
        "resources":{"requests":{"cpu":"many"}}}]}}})"));
  EXPECT_THAT(object.pod.invalid, HasSubstr("template.spec.containers[0].resources.requests[cpu]"));
}

TEST(CapacityJsonTest, ReadsABufferAndItsStatus) {
  const model::CapacityBuffer buffer = Buffer(
      R"({"podTemplateRef":{"name":"t"},"replicas":3,"limits":{"cpu":"8","nvidia.com/gpu":"2"}})",
      R"({"podTemplateRef":{"name":"t"},"replicas":2,"podTemplateGeneration":7,"conditions":[
        {"type":"Provisioning","status":"True","reason":"R","message":"m","observedGeneration":2,
         "lastTransitionTime":"2026-01-02T03:04:05Z"}]})");
  EXPECT_EQ(buffer.invalid, "");
  EXPECT_EQ(buffer.strategy, model::kActiveCapacity);
  EXPECT_EQ(buffer.pod_template, "t");
  EXPECT_EQ(buffer.replicas, 3);
  EXPECT_THAT(buffer.limits, ElementsAre(Pair("cpu", 8000), Pair("nvidia.com/gpu", 2000)));
  EXPECT_EQ(buffer.resolved_template, "t");
  EXPECT_EQ(buffer.resolved_replicas, 2);
  EXPECT_EQ(buffer.resolved_generation, 7);
  ASSERT_EQ(buffer.conditions.size(), 1u);
  EXPECT_TRUE(buffer.conditions[0].IsTrue());
  EXPECT_EQ(buffer.conditions[0].observed_generation, 2);
  EXPECT_EQ(absl::FormatTime(*buffer.conditions[0].since, absl::UTCTimeZone()),
            "2026-01-02T03:04:05+00:00");
}

TEST(CapacityJsonTest, WrongBuffersSayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "spec: must have exactly one of podTemplateRef, scalableRef"},
      {R"({"podTemplateRef":{"name":"t"},"scalableRef":{"kind":"Deployment","name":"d"}})",
       "spec: must have exactly one of podTemplateRef, scalableRef"},
      {R"({"podTemplateRef":{"name":"t"}})", "spec: must have replicas or limits"},
      {R"({"podTemplateRef":{},"replicas":1})", "spec.podTemplateRef.name: must be set"},
      {R"({"podTemplateRef":{"name":"t"},"replicas":-1})", "spec.replicas: -1 is not within"},
      {R"({"podTemplateRef":{"name":"t"},"replicas":2000000000})", "is not within 0-1000000"},
      {R"({"podTemplateRef":{"name":"t"},"replicas":"2"})", "spec.replicas"},
      {R"({"podTemplateRef":{"name":"t"},"limits":{"cpu":"-1"}})",
       "spec.limits[cpu]: \"-1\" must not be negative"},
      {R"({"podTemplateRef":{"name":"t"},"limits":{"cpu":"lots"}})", "spec.limits[cpu]"},
  };
  for (const auto& [spec, why] : cases) EXPECT_THAT(Buffer(spec).invalid, HasSubstr(why)) << spec;
  // What others write into the status makes no buffer wrong.
  EXPECT_EQ(Buffer(R"({"podTemplateRef":{"name":"t"},"replicas":1})",
                   R"({"replicas":"x","conditions":[{"lastTransitionTime":"never"}]})")
                .invalid,
            "");
}

TEST(CapacityJsonTest, ReadsARequest) {
  const auto read = [](const std::string& spec) {
    return DecodeAs<model::ProvisioningRequest>(
        model::Kind::kProvisioningRequest,
        absl::StrCat(R"({"kind":"ProvisioningRequest",)", Meta("r"), R"(,"spec":)", spec, "}"));
  };
  const model::ProvisioningRequest request = read(
      R"({"provisioningClassName":"check-capacity.autoscaling.x-k8s.io",
          "parameters":{"noRetry":"true"},
          "podSets":[{"count":2,"podTemplateRef":{"name":"a"}},
                     {"count":1,"podTemplateRef":{"name":"b"}}]})");
  EXPECT_EQ(request.invalid, "");
  EXPECT_EQ(request.class_name, "check-capacity.autoscaling.x-k8s.io");
  EXPECT_EQ(request.parameters.Get("noRetry"), "true");
  ASSERT_EQ(request.pod_sets.size(), 2u);
  EXPECT_EQ(request.pod_sets[0].count, 2);
  EXPECT_EQ(request.pod_sets[1].pod_template, "b");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"podSets":[{"count":1,"podTemplateRef":{"name":"a"}}]})",
       "spec.provisioningClassName: must be set"},
      {R"({"provisioningClassName":"c","podSets":[]})", "spec.podSets: must have 1 to 32 entries"},
      {R"({"provisioningClassName":"c","podSets":[{"podTemplateRef":{"name":"a"}}]})",
       "spec.podSets[0].count: must be set"},
      {R"({"provisioningClassName":"c","podSets":[{"count":0,"podTemplateRef":{"name":"a"}}]})",
       "spec.podSets[0].count: 0 is not within"},
      {R"({"provisioningClassName":"c","podSets":[{"count":1}]})",
       "spec.podSets[0].podTemplateRef: must be set"},
  };
  for (const auto& [spec, why] : cases) EXPECT_THAT(read(spec).invalid, HasSubstr(why)) << spec;
}

TEST(CapacityJsonTest, WritesConditionsWithTheRestOfTheStatus) {
  model::SetConditions write{model::Kind::kCapacityBuffer, "team", "b", "u1", {}, {}};
  const absl::Time then = absl::FromUnixSeconds(1'000'000'000);
  write.conditions = {{"ReadyForProvisioning", "True", "Resolved", "fine", 3, then},
                      {"Provisioning", "False", "GpuCapReached", "no \"room\"", 0, std::nullopt}};
  write.buffer = {"t", 7, 2};
  const EncodedWrite encoded = EncodeConditions(write, absl::FromUnixSeconds(1'000'000'060));
  EXPECT_EQ(encoded.method, "PATCH");
  EXPECT_EQ(encoded.path,
            "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/team/capacitybuffers/b/status");
  EXPECT_EQ(
      encoded.body,
      R"({"metadata":{"uid":"u1"},"status":{"podTemplateRef":{"name":"t"},)"
      R"("podTemplateGeneration":7,"replicas":2,)"
      R"("provisioningStrategy":"buffer.x-k8s.io/active-capacity","conditions":[)"
      R"({"type":"ReadyForProvisioning","status":"True","reason":"Resolved","message":"fine",)"
      R"("observedGeneration":3,"lastTransitionTime":"2001-09-09T01:46:40Z"},)"
      R"({"type":"Provisioning","status":"False","reason":"GpuCapReached",)"
      R"("message":"no \"room\"","lastTransitionTime":"2001-09-09T01:47:40Z"}]}})");
  write.kind = model::Kind::kNodePool;
  write.ns = "";
  EXPECT_EQ(EncodeConditions(write, then).path, "/apis/fairlead.dev/v1alpha1/nodepools/b/status");
}

}  // namespace
}  // namespace fairlead::kube
