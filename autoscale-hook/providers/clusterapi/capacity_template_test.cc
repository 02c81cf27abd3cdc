// Templates of MachineDeployments, hostile ones too.
#include "autoscale-hook/providers/clusterapi/capacity_template.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autoscale-hook/providers/groups/group_offer.h"
#include "autoscale-hook/providers/groups/node_labels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/node_devices.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "CAP/" stands for the prefix of the annotations.
Json Object(const std::string& annotations, const std::string& spec = "{}") {
  const std::string text =
      absl::StrReplaceAll(absl::StrCat(R"({"metadata":{"namespace":"ns","annotations":{)",
                                       annotations, R"(}},"spec":)", spec, "}"),
                          {{"CAP/", "capacity.cluster-autoscaler.kubernetes.io/"}});
  absl::StatusOr<Json> json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}
constexpr char kUsual[] = R"("CAP/cpu":"16","CAP/memory":"128Gi")";

TEST(CapacityTemplate, EveryAnnotation) {
  const auto node = MakeCapacityTemplate(
      Object(absl::StrCat(kUsual, R"(,"CAP/ephemeral-disk":"100Gi","CAP/maxPods":"200",
      "CAP/gpu-type":"nvidia.com/gpu","CAP/gpu-count":"2",
      "CAP/labels":"key1=value1, key2=,kubernetes.io/arch=arm64",
      "CAP/taints":"key1=value1:NoSchedule,key2:NoExecute, key3=v:PreferNoSchedule")")),
      nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  const model::ResourceList expected = {{"cpu", 16'000},
                                        {"ephemeral-storage", int64_t{100} << 30},
                                        {"memory", int64_t{128} << 30},
                                        {"nvidia.com/gpu", 2'000},
                                        {"pods", 200}};
  EXPECT_EQ(node->allocatable, expected);
  EXPECT_EQ(node->meta.labels,
            (model::StringMap{{"key1", "value1"}, {"key2", ""}, {"kubernetes.io/arch", "arm64"}}));
  EXPECT_THAT(node->taints,
              ElementsAre(model::Taint{"key1", "value1", model::TaintEffect::kNoSchedule},
                          model::Taint{"key2", "", model::TaintEffect::kNoExecute},
                          model::Taint{"key3", "v", model::TaintEffect::kPreferNoSchedule}));
}

TEST(CapacityTemplate, GpusAreNvidiasUnlessTheTypeSaysOtherwise) {
  auto node =
      MakeCapacityTemplate(Object(absl::StrCat(kUsual, R"(,"CAP/gpu-count":"4")")), nullptr);
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 4'000);
  node = MakeCapacityTemplate(
      Object(absl::StrCat(kUsual, R"(,"CAP/gpu-count":"4","CAP/gpu-type":"example.com/tpu")")),
      nullptr);
  EXPECT_EQ(model::Get(node->allocatable, "example.com/tpu"), 4);
}

TEST(CapacityTemplate, GpusOfADriverAreDevices) {
  auto node = MakeCapacityTemplate(
      Object(absl::StrCat(kUsual, R"(,"CAP/gpu-count":"4","CAP/dra-driver":"gpu.nvidia.com")")),
      nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 0);
  ASSERT_NE(node->devices, nullptr);
  EXPECT_EQ(model::DescribeDevices(*node->devices), "4 x gpu.nvidia.com");
  EXPECT_TRUE(node->devices->slices[0].devices[3].attributes.contains("type"));
  OfferParts parts;
  parts.node = &*node;
  EXPECT_EQ(MakeInstanceType(parts).gpu_count, 4) << "caps count them";
  node = MakeCapacityTemplate(Object(absl::StrCat(kUsual, R"(,"CAP/dra-driver":"gpu.nvidia.com")")),
                              nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->devices, nullptr);
}

TEST(CapacityTemplate, WhatClusterApiPropagates) {
  const auto node = MakeCapacityTemplate(
      Object(absl::StrCat(kUsual, R"(,"CAP/labels":"node-role.kubernetes.io/a=annotated",
      "CAP/taints":"t=annotated:NoSchedule")"),
             R"({"template":{"metadata":{"labels":{"node-role.kubernetes.io/a":"1",
      "node-restriction.kubernetes.io/b":"2","x.node-restriction.kubernetes.io/c":"3",
      "node.cluster.x-k8s.io/d":"4","x.node.cluster.x-k8s.io/e":"5",
      "example.com/other":"6","notnode.cluster.x-k8s.io/f":"7","plain":"8"}},
      "spec":{"failureDomain":"z1","taints":[
      {"key":"t","value":"spec","effect":"NoSchedule","propagation":"Always"},
      {"key":"u","effect":"NoExecute","propagation":"Always"},
      {"key":"start","effect":"NoSchedule","propagation":"OnInitialization"}]}}})"),
      nullptr);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->meta.labels, (model::StringMap{{"node-role.kubernetes.io/a", "annotated"},
                                                 {"node-restriction.kubernetes.io/b", "2"},
                                                 {"x.node-restriction.kubernetes.io/c", "3"},
                                                 {"node.cluster.x-k8s.io/d", "4"},
                                                 {"x.node.cluster.x-k8s.io/e", "5"},
                                                 {"topology.kubernetes.io/zone", "z1"}}));
  EXPECT_THAT(node->taints,
              ElementsAre(model::Taint{"t", "annotated", model::TaintEffect::kNoSchedule},
                          model::Taint{"u", "", model::TaintEffect::kNoExecute}));
}

TEST(CapacityTemplate, TheZone) {
  const auto zone = [](const std::string& annotations, const std::string& spec) {
    const auto node =
        MakeCapacityTemplate(Object(absl::StrCat(kUsual, annotations), spec), nullptr);
    return node.ok() ? std::string(node->meta.labels.Get("topology.kubernetes.io/zone"))
                     : node.status().ToString();
  };
  EXPECT_EQ(zone("", R"({"failureDomains":["z2"]})"), "z2");
  EXPECT_EQ(zone("", R"({"failureDomains":["z2","z3"]})"), "") << "any of two";
  EXPECT_EQ(zone(R"(,"CAP/labels":"topology.kubernetes.io/zone=z9")",
                 R"({"template":{"spec":{"failureDomain":"z1"}}})"),
            "z9");
  EXPECT_THAT(zone("", R"({"template":{"spec":{"failureDomain":"a b"}}})"),
              HasSubstr("failureDomain: \"a b\" is not a label value"));
}

TEST(CapacityTemplate, WrongAnnotationsNameTheField) {
  const struct {
    const char *annotations, *problem;
  } cases[] = {
      {R"("CAP/memory":"1Gi")", "/cpu]: missing"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-count":"1","CAP/dra-driver":"A B")",
       "/dra-driver]: not the name of a DRA driver"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-count":"1025","CAP/dra-driver":"a.io")",
       "/gpu-count]: a machine has 1024 devices at most"},
      {R"("CAP/cpu":"1")", "/memory]: missing"},
      {R"("CAP/cpu":"0","CAP/memory":"1Gi")", "/cpu]: missing"},
      {R"("CAP/cpu":"-1","CAP/memory":"1Gi")", "/cpu]: -1 is negative"},
      {R"("CAP/cpu":"many","CAP/memory":"1Gi")", "/cpu]: "},
      {R"("CAP/cpu":"","CAP/memory":"1Gi")", "/cpu]: "},
      {R"("CAP/cpu":"9e18","CAP/memory":"1Gi")", "/cpu]: 9e18 is too large"},
      {R"("CAP/cpu":"1","CAP/memory":"99999999999999999999")", "/memory]: 9"},
      {R"("CAP/cpu":"1","CAP/memory":"1000000Ti")", "is too large"},
      {R"("CAP/cpu":{},"CAP/memory":"1Gi")", "/cpu]: not a quantity"},
      {R"("CAP/cpu":"1111111111111111111111111111111111111111111","CAP/memory":"1Gi")",
       "not a quantity"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/maxPods":"1.5")", "/maxPods]: \"1.5\" is not"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/maxPods":"-3")", "/maxPods]: -3 is negative"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-count":"1k")", "/gpu-count]: \"1k\" is not"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-count":"9223372036854775807")",
       "is too large for one machine"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-type":"a b","CAP/gpu-count":"1")",
       "/gpu-type]: \"a b\" is not a resource name"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/gpu-type":"","CAP/gpu-count":"1")", "/gpu-type]:"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/labels":"key")",
       "/labels]: \"key\" is not key=val"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/labels":"=v")", "is not a label key"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/labels":"k=a/b")", "is not a label value"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/labels":7)", "/labels]: not a list"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/taints":"k=v")",
       "/taints]: \"k=v\" is not a taint"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/taints":"k=v:Never")", "taint effect"},
      {R"("CAP/cpu":"1","CAP/memory":"1Gi","CAP/taints":":NoSchedule")", "is not a label key"}};
  for (const auto& c : cases) {
    const auto node = MakeCapacityTemplate(Object(c.annotations), nullptr);
    EXPECT_FALSE(node.ok()) << c.annotations;
    EXPECT_THAT(node.status().message(), HasSubstr(c.problem)) << c.annotations;
    EXPECT_LT(node.status().message().size(), 400u);
  }
  const auto longest = MakeCapacityTemplate(
      Object(absl::StrCat(kUsual, R"(,"CAP/labels":")", std::string(20'000, 'a'), "\"")), nullptr);
  EXPECT_FALSE(longest.ok());
}

TEST(CapacityTemplate, WrongStatusOfAMachineTemplate) {
  for (const char* status : {R"({"capacity":7})", R"({"capacity":{"cpu":"-1","memory":"1Gi"}})",
                             R"({"capacity":{"cpu":[],"memory":"1Gi"}})", R"({"capacity":null})"}) {
    Json infrastructure = Json::Object();
    infrastructure.Set("status", *Json::Parse(status));
    EXPECT_FALSE(MakeCapacityTemplate(Object(""), &infrastructure).ok()) << status;
  }
}

TEST(CapacityTemplate, TheMachineTemplateIsReadIfNeeded) {
  constexpr char kRef[] = R"({"template":{"spec":{"infrastructureRef":{"apiVersion":
      "infrastructure.cluster.x-k8s.io/v1beta1","kind":"AWSMachineTemplate","name":"big"}}}})";
  const auto needed = NeededInfrastructure(Object("", kRef));
  ASSERT_TRUE(needed.has_value());
  EXPECT_EQ(needed->group, "infrastructure.cluster.x-k8s.io");
  EXPECT_EQ(needed->version, "v1beta1");
  EXPECT_EQ(needed->ns, "ns");
  EXPECT_FALSE(NeededInfrastructure(Object(kUsual, kRef)).has_value());
  EXPECT_FALSE(NeededInfrastructure(Object("")).has_value());
  EXPECT_FALSE(NeededInfrastructure(Object("", R"({"template":{"spec":{"infrastructureRef":{
      "apiGroup":"g","kind":"AWSMachinePool","name":"big"}}}})"))
                   .has_value());
}

TEST(CapacityTemplate, Prices) {
  const auto price = [](const std::string& text) {
    return PriceOf(Object(absl::StrCat(R"("fairlead.dev/price-usd-per-hour":)", text)));
  };
  EXPECT_EQ(*price("\"2.5\""), 2.5);
  EXPECT_EQ(*PriceOf(Object("")), std::nullopt);
  for (const char* text :
       {"\"\"", "\"-1\"", "\"inf\"", "\"nan\"", "\"1e999\"", "{}", "\"1 dollar\""}) {
    EXPECT_FALSE(price(text).ok()) << text;
  }
}

TEST(NodeLabels, Syntax) {
  for (const char* key : {"a", "a.b-c_d", "example.com/a", "x.y/Z9"}) {
    EXPECT_TRUE(CheckLabelKey(key).ok()) << key;
  }
  for (const std::string& key :
       {std::string(), std::string("-a"), std::string("a-"), std::string("a b"), std::string("/a"),
        std::string("a/"), std::string("a/b/c"), std::string(64, 'a'), std::string("a\nb"),
        std::string("a_b/c"), std::string("\xff")}) {
    EXPECT_FALSE(CheckLabelKey(key).ok()) << key;
  }
  EXPECT_TRUE(CheckLabelValue("").ok());
  EXPECT_FALSE(CheckLabelValue(std::string(64, 'a')).ok());
}

}  // namespace
}  // namespace fairlead::hook
