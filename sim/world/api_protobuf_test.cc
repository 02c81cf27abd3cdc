// The protobuf of an object says what its JSON says: both go through the product's decoders, and
// what comes out must be the same; for random pods and nodes it must be what the codec's own oracle
// says.
#include "sim/world/api_protobuf.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

// Every field that the product decodes, and some that it does not.
constexpr char kRichPod[] = R"({
  "metadata": {"name": "p", "namespace": "default", "labels": {"a": "1"},
    "annotations": {"gpu-fraction": "0.5", "kai.scheduler/topology": "t"},
    "finalizers": ["f"],
    "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju",
                         "controller": true, "blockOwnerDeletion": true}]},
  "spec": {
    "schedulerName": "fairlead", "priorityClassName": "high", "priority": -7, "nodeName": "n",
    "hostNetwork": true, "nodeSelector": {"disk": "ssd"},
    "overhead": {"cpu": "250m"},
    "resources": {"requests": {"cpu": 3}, "limits": {"cpu": "4"}},
    "schedulingGates": [{"name": "g1"}, {"name": "g2"}],
    "schedulingGroup": {"podGroupName": "pg"},
    "resourceClaims": [{"name": "c1", "resourceClaimName": "shared"},
                       {"name": "c2", "resourceClaimTemplateName": "tmpl"}],
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute",
                     "tolerationSeconds": 300}, {"operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "minDomains": 3,
      "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "1"}},
      "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore", "matchLabelKeys": ["a"]}],
    "affinity": {
      "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
          {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["5"]}],
           "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n", "m"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
          {"weight": 50, "preference": {"matchExpressions": [{"key": "y", "operator": "Exists"}]}}]},
      "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 9, "podAffinityTerm": {"topologyKey": "zone",
          "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]},
          "namespaces": ["n1", "n2"], "mismatchLabelKeys": ["a"]}}]},
      "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"t": "x"}},
         "matchLabelKeys": ["a"]}]}},
    "volumes": [
      {"name": "v1", "persistentVolumeClaim": {"claimName": "pvc", "readOnly": true}},
      {"name": "v2", "configMap": {"name": "cm"}}, {"name": "v3", "emptyDir": {}},
      {"name": "v4", "configMap": {"name": "cm-opt", "optional": true}},
      {"name": "v5", "projected": {"sources": [{"configMap": {"name": "cm-proj"}}]}}],
    "initContainers": [
      {"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "containers": [
      {"name": "c", "image": "i", "command": ["sh", "-c"],
       "ports": [{"hostPort": 80, "containerPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}],
       "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "cm-env", "key": "k"}}}],
       "envFrom": [{"configMapRef": {"name": "cm-from"}}],
       "resources": {"requests": {"cpu": "500m", "memory": "1Gi", "example.com/nic": 2},
                     "limits": {"memory": "2Gi"}}}]},
  "status": {"phase": "Running", "nominatedNodeName": "nom",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "r", "message": "m",
                    "lastTransitionTime": "2026-01-02T03:04:05Z"}],
    "resourceClaimStatuses": [{"name": "c2", "resourceClaimName": "made"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": [
      {"containerName": "c", "resourceName": "r", "requestName": "q"}]}}})";

constexpr char kRichNode[] = R"({
  "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}},
  "spec": {"providerID": "kwok://n", "unschedulable": true,
           "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}]},
  "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "7500m", "nvidia.com/gpu": 8},
             "conditions": [{"type": "MemoryPressure", "status": "False"},
                            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}]}})";

constexpr char kRichBudget[] = R"({
  "metadata": {"name": "b", "namespace": "default"},
  "spec": {"minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow",
           "selector": {"matchLabels": {"a": "1"},
           "matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["2"]}]}},
  "status": {"observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1,
             "expectedPods": 3, "disruptedPods": {"p1": "2026-01-02T03:04:05Z"}}})";

constexpr char kRichClass[] =
    R"({"metadata": {"name": "high"}, "value": -1000, "globalDefault": true,
                                  "description": "d"})";

void ExpectSame(const kube::Object& got, const kube::Object& want) {
  ASSERT_EQ(got.index(), want.index());
  EXPECT_EQ(kube::MetaOf(got).name, kube::MetaOf(want).name);
  EXPECT_EQ(kube::MetaOf(got).uid, kube::MetaOf(want).uid);
  EXPECT_EQ(kube::MetaOf(got).resource_version, kube::MetaOf(want).resource_version);
  EXPECT_EQ(kube::MetaOf(got).generation, kube::MetaOf(want).generation);
  if (const auto* pod = std::get_if<model::Pod>(&want)) {
    kube::testing::ExpectSamePod(std::get<model::Pod>(got), *pod);
    EXPECT_EQ(std::get<model::Pod>(got).generated_claims, pod->generated_claims);
    EXPECT_EQ(std::get<model::Pod>(got).extended_claim, pod->extended_claim);
    EXPECT_EQ(pod->invalid, "");
  } else if (const auto* node = std::get_if<model::Node>(&want)) {
    kube::testing::ExpectSameNode(std::get<model::Node>(got), *node);
  } else if (const auto* budget = std::get_if<model::PodDisruptionBudget>(&want)) {
    const auto& other = std::get<model::PodDisruptionBudget>(got);
    EXPECT_EQ(other.selector, budget->selector);
    EXPECT_EQ(other.observed_generation, budget->observed_generation);
    EXPECT_EQ(other.disruptions_allowed, budget->disruptions_allowed);
    EXPECT_EQ(other.current_healthy, budget->current_healthy);
    EXPECT_EQ(other.desired_healthy, budget->desired_healthy);
    EXPECT_TRUE(other.always_allow && budget->always_allow);
    EXPECT_EQ(other.disrupted_pods, budget->disrupted_pods);
  } else {
    const auto& a = std::get<model::PriorityClass>(got);
    const auto& b = std::get<model::PriorityClass>(want);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.global_default, b.global_default);
  }
}

struct ProtobufRow {
  ResourceType type;
  model::Kind kind;
  const char* text;
  const char* path;
};
class ApiProtobufTest : public ::testing::TestWithParam<ProtobufRow> {};

TEST_P(ApiProtobufTest, SaysWhatTheJsonSays) {
  const ProtobufRow& row = GetParam();
  TestWorld world;
  const Json object = Parse(row.text);
  ASSERT_FALSE(object.is_discarded());
  world.Create(row.type, object);
  const std::string name = TextAt(object, {"metadata", "name"});
  const std::string accept = absl::StrCat(kube::kProtobuf, ", ", kube::kJson);
  const auto get = [&](const std::string& path, const std::string& as) {
    return world.server.Handle(GetOf(path, as), "c");
  };
  const std::string path = absl::StrCat(row.path, "/", name);
  const kube::HttpResponse wire = get(path, accept);
  const kube::HttpResponse text = get(path, kube::kJson);
  EXPECT_EQ(wire.content_type, kube::kProtobuf);
  EXPECT_EQ(text.content_type, kube::kJson);
  const auto from_wire = kube::DecodeObject(row.kind, wire.content_type, wire.body);
  const auto from_text = kube::DecodeObject(row.kind, text.content_type, text.body);
  ASSERT_TRUE(from_wire.ok()) << from_wire.status();
  ASSERT_TRUE(from_text.ok()) << from_text.status();
  ExpectSame(*from_wire, *from_text);

  const kube::HttpResponse list = get(row.path, accept);
  const auto page = kube::DecodeList(row.kind, list.content_type, list.body);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, absl::StrCat(world.server.version()));
  ASSERT_EQ(page->items.size(), 1u);
  ExpectSame(page->items[0], *from_text);
}

// Back to JSON: nothing that the schema names is lost.
TEST_P(ApiProtobufTest, ComesBackAsItWas) {
  const Json object = Parse(GetParam().text);
  const MessageSchema& schema = SchemaOf(GetParam().type);
  const Json back = DecodeMessage(schema, EncodeMessage(schema, object));
  ASSERT_FALSE(back.is_discarded());
  EXPECT_EQ(EncodeMessage(schema, back), EncodeMessage(schema, object));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ApiProtobufTest,
    ::testing::Values(
        ProtobufRow{ResourceType::kPods, model::Kind::kPod, kRichPod,
                    "/api/v1/namespaces/default/pods"},
        ProtobufRow{ResourceType::kNodes, model::Kind::kNode, kRichNode, "/api/v1/nodes"},
        ProtobufRow{ResourceType::kPodDisruptionBudgets, model::Kind::kPodDisruptionBudget,
                    kRichBudget, "/apis/policy/v1/namespaces/default/poddisruptionbudgets"},
        ProtobufRow{ResourceType::kPriorityClasses, model::Kind::kPriorityClass, kRichClass,
                    "/apis/scheduling.k8s.io/v1/priorityclasses"}),
    [](const auto& row) { return std::string(RowOf(row.param.type).kind); });

TEST(ApiProtobufRandomTest, RandomPodsAndNodesAreWhatTheOracleSays) {
  kube::testing::Random random(11);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const auto pod = kube::testing::RandomPod(random);
    const std::string raw =
        EncodeMessage(SchemaOf(ResourceType::kPods), Parse(kube::testing::PodJson(pod)));
    const auto decoded =
        kube::DecodeObject(model::Kind::kPod, kube::kProtobuf, Enveloped("v1", "Pod", raw));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    kube::testing::ExpectSamePod(std::get<model::Pod>(*decoded), kube::testing::ExpectedPod(pod));
    const auto node = kube::testing::RandomNode(random);
    const std::string raw_node =
        EncodeMessage(SchemaOf(ResourceType::kNodes), Parse(kube::testing::NodeJson(node)));
    const auto decoded_node =
        kube::DecodeObject(model::Kind::kNode, kube::kProtobuf, Enveloped("v1", "Node", raw_node));
    ASSERT_TRUE(decoded_node.ok()) << decoded_node.status();
    kube::testing::ExpectSameNode(std::get<model::Node>(*decoded_node),
                                  kube::testing::ExpectedNode(node));
    if (HasFailure()) break;
  }
}

TEST(ApiProtobufStatusTest, ErrorsAreStatusesInTheEncodingThatWasAskedFor) {
  TestWorld world;
  const std::string accept = absl::StrCat(kube::kProtobuf, ", ", kube::kJson);
  const kube::HttpResponse wire =
      world.server.Handle(GetOf("/api/v1/namespaces/default/pods/x", accept), "c");
  EXPECT_EQ(wire.content_type, kube::kProtobuf);
  kube::ApiStatus status = kube::DecodeStatus(wire.content_type, wire.body);
  EXPECT_EQ(status.code, 404);
  EXPECT_EQ(status.reason, "NotFound");
  EXPECT_EQ(status.message, "pods \"x\" not found");
  // Custom kinds have no protobuf.
  const kube::HttpResponse text =
      world.server.Handle(GetOf("/apis/scheduling.run.ai/v2/queues/x", accept), "c");
  EXPECT_EQ(text.content_type, kube::kJson);
  EXPECT_EQ(kube::DecodeStatus(text.content_type, text.body).reason, "NotFound");
}

TEST(ApiProtobufStatusTest, WhatIsCutIsNoMessage) {
  const std::string whole = EncodeMessage(SchemaOf(ResourceType::kPods), Parse(kRichPod));
  EXPECT_TRUE(DecodeMessage(SchemaOf(ResourceType::kPods), absl::string_view(whole).substr(0, 40))
                  .is_discarded());
}

}  // namespace
}  // namespace fairlead::sim::world
