// What is written, to the byte, because the API server reads it.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"
#include "scheduler/model/volumes.h"
#include "simdjson.h"

namespace fairlead::kube {
namespace {

namespace core = testing::core;

const absl::Time kTime = absl::FromUnixMicros(1795226439123456);
constexpr char kSeconds[] = "2026-11-21T02:00:39Z";

TEST(EncodeTest, BindIsAProtobufBinding) {
  const EncodedWrite write = EncodeBind({"ns",
                                         "pod",
                                         "uid-1",
                                         "node-1",
                                         {{"fairlead.dev/decision", "17"}, {"a", "b"}},
                                         {{"runai-gpu-group", "g"}}});
  EXPECT_EQ(write.method, "POST");
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/pods/pod/binding");
  EXPECT_EQ(write.content_type, kProtobuf);
  ASSERT_EQ(write.body.substr(0, 4), std::string("k8s\0", 4));
  core::Unknown unknown;
  core::Binding binding;
  ASSERT_TRUE(unknown.ParseFromString(write.body.substr(4)));
  ASSERT_TRUE(binding.ParseFromString(unknown.raw()));
  EXPECT_EQ(unknown.typemeta().apiversion(), "v1");
  EXPECT_EQ(unknown.typemeta().kind(), "Binding");
  EXPECT_EQ(binding.metadata().name(), "pod");
  EXPECT_EQ(binding.metadata().namespace_(), "ns");
  EXPECT_EQ(binding.metadata().uid(), "uid-1");
  EXPECT_EQ(binding.metadata().annotations_size(), 2);
  EXPECT_EQ(binding.metadata().annotations().at("fairlead.dev/decision"), "17");
  EXPECT_EQ(binding.metadata().labels_size(), 1);
  EXPECT_EQ(binding.metadata().labels().at("runai-gpu-group"), "g");
  EXPECT_EQ(binding.target().kind(), "Node");
  EXPECT_EQ(binding.target().name(), "node-1");
}

TEST(EncodeTest, BindWithLongValues) {
  const std::string value(300, 'v');  // lengths of two bytes
  const EncodedWrite write = EncodeBind({"ns", "pod", "u", value, {{"k", value}}});
  core::Unknown unknown;
  core::Binding binding;
  ASSERT_TRUE(unknown.ParseFromString(write.body.substr(4)));
  ASSERT_TRUE(binding.ParseFromString(unknown.raw()));
  EXPECT_EQ(binding.target().name(), value);
  EXPECT_EQ(binding.metadata().annotations().at("k"), value);
}

TEST(EncodeTest, EvictHasTheUidAsPrecondition) {
  const EncodedWrite write = EncodeEvict({"ns", "pod", "uid-1", "Preempted", "for q"});
  EXPECT_EQ(write.method, "POST");
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/pods/pod/eviction");
  EXPECT_EQ(
      write.body,
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"pod","namespace":"ns"},)"
      R"("deleteOptions":{"preconditions":{"uid":"uid-1"}}})");
  const EncodedWrite condition =
      EncodeDisruptionTarget({"ns", "pod", "uid-1", "Preempted", "for q"}, kTime);
  EXPECT_EQ(condition.method, "PATCH");
  EXPECT_EQ(condition.path, "/api/v1/namespaces/ns/pods/pod/status");
  EXPECT_EQ(condition.content_type, kStrategicMergePatch);
  EXPECT_EQ(condition.body,
            absl::StrCat(
                R"({"metadata":{"uid":"uid-1"},"status":{"conditions":[{"type":"DisruptionTarget",)"
                R"("status":"True","reason":"Preempted","message":"for q","lastTransitionTime":")",
                kSeconds, R"("}]}})"));
}

// Conditions and the verdict stay what they are.
TEST(EncodeTest, NominatedNode) {
  const EncodedWrite write = EncodeNominatedNode({"ns", "pod", "uid-1", "node-3"});
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/pods/pod/status");
  EXPECT_EQ(write.content_type, kStrategicMergePatch);
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"uid-1"},"status":{"nominatedNodeName":"node-3"}})");
}

TEST(EncodeTest, PodUnschedulable) {
  model::SetPodUnschedulable action{"ns",          "pod",           "uid-1",  "QueueLimitReached",
                                    "a \"limit\"", R"({"code":1})", "node-3", 4};
  const EncodedWrite write = EncodePodUnschedulable(action, kTime);
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/pods/pod/status");
  EXPECT_EQ(write.content_type, kStrategicMergePatch);
  EXPECT_EQ(
      write.body,
      absl::StrCat(
          R"({"metadata":{"uid":"uid-1","annotations":{"fairlead.dev/verdict":"{\"code\":1}"}},)"
          R"("status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"QueueLimitReached",)"
          R"("message":"a \"limit\"","lastTransitionTime":")",
          kSeconds, R"(","observedGeneration":4}],"nominatedNodeName":"node-3"}})"));
  action.verdict_json.clear();
  action.nominated_node.clear();
  action.observed_generation = 0;
  const std::string cleared = EncodePodUnschedulable(action, kTime).body;
  EXPECT_TRUE(absl::StrContains(cleared, R"("annotations":{"fairlead.dev/verdict":null})"));
  EXPECT_TRUE(absl::StrContains(cleared, R"("nominatedNodeName":null)"));
  EXPECT_FALSE(absl::StrContains(cleared, "observedGeneration"));
}

TEST(EncodeTest, MessagesAreCutOnACodePoint) {
  std::string message(1023, 'm');
  message += "\xE2\x82\xAC tail";
  const std::string body =
      EncodePodUnschedulable({"ns", "p", "u", "R", message, "", "", 0}, kTime).body;
  EXPECT_TRUE(absl::StrContains(body, absl::StrCat("\"", std::string(1023, 'm'), "\"")));
  const std::string broken =
      EncodePodUnschedulable({"ns", "p", "u", "R", "x\xFFy", "", "", 0}, kTime).body;
  EXPECT_TRUE(absl::StrContains(broken, "\"x\xEF\xBF\xBDy\""));
}

TEST(EncodeTest, PodGroupSchedulabilityInKaisForm) {
  const EncodedWrite write = EncodePodGroupSchedulability(
      {"ns", "pg", "uid-2", R"({"code":"QueueLimitReached","hash":"h"})", "OverLimit",
       "q has reached its limit."},
      kTime);
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/pg/status");
  EXPECT_EQ(write.content_type, kJsonPatch);
  const std::string conditions =
      R"([{"type":"UnschedulableOnNodePool","status":"True","nodePool":"default",)"
      R"("reason":"Unschedulable","message":"OverLimit: q has reached its limit.",)"
      R"("reasons":[{"reason":"OverLimit","message":"q has reached its limit"}],)"
      R"("transitionID":"1795226439","lastTransitionTime":"2026-11-21T02:00:39Z"}])";
  EXPECT_EQ(write.body,
            absl::StrCat(R"([{"op":"test","path":"/metadata/uid","value":"uid-2"},)"
                         R"({"op":"add","path":"/status/schedulability",)"
                         R"("value":{"code":"QueueLimitReached","hash":"h"}},)"
                         R"({"op":"test","path":"/status/schedulingConditions","value":null},)"
                         R"({"op":"add","path":"/status/schedulingConditions","value":)",
                         conditions, "}]"));
  EXPECT_EQ(EncodePodGroupSchedulability({"ns", "pg", "u", "", "", ""}, kTime).body,
            R"([{"op":"test","path":"/metadata/uid","value":"u"},)"
            R"({"op":"add","path":"/status/schedulability","value":null},)"
            R"({"op":"test","path":"/status/schedulingConditions","value":null},)"
            R"({"op":"add","path":"/status/schedulingConditions","value":null}])");
  EXPECT_EQ(
      EncodePodGroupSchedulability({"ns", "pg", "u", "{}", "", ""}, kTime, StatusShape::kWhole)
          .body.substr(0, 149),
      R"([{"op":"test","path":"/metadata/uid","value":"u"},)"
      R"({"op":"test","path":"/status","value":null},)"
      R"({"op":"add","path":"/status","value":{"schedulability":)");
}

TEST(EncodeTest, UsageIsAppliedToOneKeyOfAConfigMap) {
  const EncodedWrite write = EncodeStoreUsage({"ns", "fairlead-usage", "fairlead-usage/1:x:y"});
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path,
            "/api/v1/namespaces/ns/configmaps/fairlead-usage?fieldManager=fairlead&force=true");
  EXPECT_EQ(write.content_type, "application/apply-patch+yaml");
  EXPECT_EQ(write.body,
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fairlead-usage",)"
            R"("namespace":"ns"},"data":{"usage":"fairlead-usage/1:x:y"}})");
  EXPECT_EQ(DecodeStoredUsage(write.body).value_or("?"), "fairlead-usage/1:x:y");
  EXPECT_EQ(DecodeStoredUsage(R"({"data":{"other":"x"}})").value_or("?"), "");
  EXPECT_EQ(DecodeStoredUsage(R"({"metadata":{}})").value_or("?"), "");
  EXPECT_EQ(DecodeStoredUsage(R"({"data":{"usage":5}})").value_or("?"), "");
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeStoredUsage("no JSON").status()));
}

TEST(EncodeTest, ConditionsOfOtherNodePoolsStay) {
  const model::SchedulingCondition a{"a", "7", R"({"nodePool":"a","x":1})"};
  const model::SchedulingCondition mine{"b", "1795226500", R"({"nodePool":"b"})"};
  const model::SchedulingCondition c{"default", "no number", R"({"nodePool":"default"})"};
  model::SetPodGroupSchedulability write{"ns", "pg", "u", "{}", "R", "m", "b", {a, mine, c}};
  const std::string body = EncodePodGroupSchedulability(write, kTime).body;
  EXPECT_TRUE(absl::StrContains(
      body, R"({"op":"test","path":"/status/schedulingConditions","value":)"
            R"([{"nodePool":"a","x":1},{"nodePool":"b"},{"nodePool":"default"}]})"))
      << body;
  EXPECT_TRUE(absl::StrContains(
      body, R"({"op":"add","path":"/status/schedulingConditions","value":)"
            R"([{"nodePool":"a","x":1},{"nodePool":"default"},{"type":"UnschedulableOnNodePool",)"
            R"("status":"True","nodePool":"b","reason":"Unschedulable",)"))
      << body;
  // Above all other ids, even if the clock is behind.
  EXPECT_TRUE(absl::StrContains(body, R"("transitionID":"1795226501")")) << body;

  write.schedulability_json.clear();
  EXPECT_TRUE(absl::StrContains(EncodePodGroupSchedulability(write, kTime).body,
                                R"({"op":"add","path":"/status/schedulingConditions","value":)"
                                R"([{"nodePool":"a","x":1},{"nodePool":"default"}]}])"));
  write.conditions = {mine};
  EXPECT_TRUE(
      absl::StrContains(EncodePodGroupSchedulability(write, kTime).body,
                        R"({"op":"add","path":"/status/schedulingConditions","value":null}])"));
}

TEST(EncodeTest, OwnConditionIsWrittenKeptOrRemoved) {
  model::SetPodGroupSchedulability write{"ns", "pg", "u", R"({"code":"C"})", "R", "m."};
  write.node_pool = "b";
  write.conditions = {{"a", "7", R"({"nodePool":"a"})"}, {"b", "8", R"({"nodePool":"b"})"}};
  write.names_pool = true;
  EXPECT_TRUE(absl::StrContains(EncodePodGroupSchedulability(write, kTime).body,
                                R"("message":"Node-Pool 'b': R: m.","reasons":)"
                                R"([{"reason":"R","message":"m"}])"));
  write.own_condition = model::OwnCondition::kKeep;
  EXPECT_EQ(EncodePodGroupSchedulability(write, kTime).body,
            R"([{"op":"test","path":"/metadata/uid","value":"u"},)"
            R"({"op":"add","path":"/status/schedulability","value":{"code":"C"}}])");
  write.own_condition = model::OwnCondition::kRemove;
  EXPECT_TRUE(absl::StrContains(EncodePodGroupSchedulability(write, kTime).body,
                                R"({"op":"add","path":"/status/schedulingConditions","value":)"
                                R"([{"nodePool":"a"}]}])"));
}

TEST(EncodeTest, PodGroupAnnotationsEmptyRemoves) {
  const EncodedWrite write = EncodePodGroupAnnotations({"ns", "pg", "u", {{"a", "1"}, {"b", ""}}});
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/pg");
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"u","annotations":{"a":"1","b":null}}})");
}

model::NodeRequest Request() {
  model::NodeRequest request;
  request.meta.name = "nr-1";
  request.meta.labels.Set("fairlead.dev/node-pool", "p");
  request.pool = "p";
  request.provider = "kwok";
  request.instance_type = "gpu-8";
  request.zone = "z1";
  request.spot = true;
  request.price_micro_usd_per_hour = 3912000;
  request.queue = "team-a";
  request.reason_workloads = {"ns/pg"};
  return request;
}

TEST(EncodeTest, NodeRequestReadsBackAsItWas) {
  const model::NodeRequest request = Request();
  const EncodedWrite write = EncodeCreateNodeRequest(request);
  EXPECT_EQ(write.method, "POST");
  EXPECT_EQ(write.path, "/apis/fairlead.dev/v1alpha1/noderequests");
  EXPECT_TRUE(absl::StrContains(write.body, R"("priceUsdPerHour":"3.912")"));
  absl::StatusOr<Object> object = DecodeObject(model::Kind::kNodeRequest, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& got = std::get<model::NodeRequest>(*object);
  EXPECT_EQ(got.meta.name, "nr-1");
  EXPECT_TRUE(got.meta.labels == request.meta.labels);
  EXPECT_EQ(got.pool, "p");
  EXPECT_EQ(got.provider, "kwok");
  EXPECT_EQ(got.instance_type, "gpu-8");
  EXPECT_EQ(got.zone, "z1");
  EXPECT_TRUE(got.spot);
  EXPECT_EQ(got.reservation, "");
  EXPECT_EQ(got.price_micro_usd_per_hour, 3912000);
  EXPECT_EQ(got.queue, "team-a");
  EXPECT_EQ(got.reason_workloads, request.reason_workloads);
  for (int64_t price : {int64_t{0}, int64_t{1}, int64_t{999999}, int64_t{10000000}}) {
    model::NodeRequest priced = request;
    priced.price_micro_usd_per_hour = price;
    object = DecodeObject(model::Kind::kNodeRequest, kJson, EncodeCreateNodeRequest(priced).body);
    ASSERT_TRUE(object.ok());
    EXPECT_EQ(std::get<model::NodeRequest>(*object).price_micro_usd_per_hour, price);
  }
}

// A node request whose status is what the patch adds.
std::string Patched(const std::string& patch) {
  simdjson::dom::parser parser;
  std::string status;
  const simdjson::dom::array operations = parser.parse(patch).get_array().value();
  for (const simdjson::dom::element operation : operations) {
    const std::string path(operation["path"].get_string().value());
    if (operation["op"].get_string().value() != "add") continue;
    const std::string value = simdjson::minify(operation["value"].value());
    if (path == "/status")
      return absl::StrCat(R"({"metadata":{"name":"nr-1"},"status":)", value, "}");
    absl::StrAppend(&status, status.empty() ? "{" : ",", "\"", path.substr(path.rfind('/') + 1),
                    "\":", value);
  }
  return absl::StrCat(R"({"metadata":{"name":"nr-1"},"status":)", status, "}}");
}

TEST(EncodeTest, NodeRequestThatReplacesOthersReadsBack) {
  model::NodeRequest request = Request();
  EXPECT_FALSE(absl::StrContains(EncodeCreateNodeRequest(request).body, "replaces"));
  request.reason_workloads.clear();
  request.replaces = {{"fl-1", "u1"}, {"fl-2", "u2"}};
  const EncodedWrite write = EncodeCreateNodeRequest(request);
  EXPECT_TRUE(absl::StrContains(
      write.body, R"("replaces":[{"name":"fl-1","uid":"u1"},{"name":"fl-2","uid":"u2"}])"))
      << write.body;
  const absl::StatusOr<Object> object = DecodeObject(model::Kind::kNodeRequest, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<model::NodeRequest>(*object).replaces, request.replaces);
}

TEST(EncodeTest, NodeRequestOfAReservationReadsBack) {
  model::NodeRequest request = Request();
  request.spot = false;
  request.reservation = "cr-1";
  const EncodedWrite write = EncodeCreateNodeRequest(request);
  EXPECT_TRUE(absl::StrContains(write.body, R"("reservation":"cr-1")")) << write.body;
  const absl::StatusOr<Object> object = DecodeObject(model::Kind::kNodeRequest, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& got = std::get<model::NodeRequest>(*object);
  EXPECT_EQ(got.reservation, "cr-1");
  EXPECT_STREQ(got.CapacityType(), "reserved");
}

TEST(EncodeTest, NodeRequestKeepsItsFinalizerAndAnUnknownPrice) {
  model::NodeRequest request = Request();
  request.finalizers = {"example.com/keep", model::kMachineFinalizer};
  request.price_known = false;
  absl::StatusOr<Object> object =
      DecodeObject(model::Kind::kNodeRequest, kJson, EncodeCreateNodeRequest(request).body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& got = std::get<model::NodeRequest>(*object);
  EXPECT_EQ(got.finalizers, request.finalizers);
  EXPECT_FALSE(got.price_known);
  const EncodedWrite release = EncodeNodeRequestFinalizer({"r", "u1", request.finalizers});
  EXPECT_EQ(release.method, "PATCH");
  EXPECT_EQ(release.body,
            R"([{"op":"test","path":"/metadata/uid","value":"u1"},)"
            R"({"op":"test","path":"/metadata/finalizers/1","value":"fairlead.dev/machine"},)"
            R"({"op":"remove","path":"/metadata/finalizers/1"}])");
  EXPECT_EQ(EncodeNodeRequestFinalizer({"r", "u1", {"example.com/keep"}}).method, "");
}

TEST(EncodeTest, NodeRequestStatusReadsBackInEveryPhase) {
  for (model::NodeRequestPhase phase :
       {model::NodeRequestPhase::kPending, model::NodeRequestPhase::kLaunched,
        model::NodeRequestPhase::kRegistered, model::NodeRequestPhase::kReady,
        model::NodeRequestPhase::kDraining, model::NodeRequestPhase::kFailed,
        model::NodeRequestPhase::kGone}) {
    model::NodeRequest request = Request();
    request.meta.uid = "u";
    request.phase = phase;
    request.node_name = "n";
    request.message = "m";
    request.failure = "Stockout";
    request.launched_at = kTime;
    request.failed_at = kTime + absl::Nanoseconds(5);
    for (StatusShape shape : {StatusShape::kFields, StatusShape::kWhole}) {
      const EncodedWrite write = EncodeNodeRequestStatus(request, shape);
      EXPECT_EQ(write.path, "/apis/fairlead.dev/v1alpha1/noderequests/nr-1/status");
      EXPECT_EQ(write.content_type, kJsonPatch);
      EXPECT_TRUE(
          absl::StartsWith(write.body, R"([{"op":"test","path":"/metadata/uid","value":"u"},)"));
      absl::StatusOr<Object> object =
          DecodeObject(model::Kind::kNodeRequest, kJson, Patched(write.body));
      ASSERT_TRUE(object.ok()) << object.status();
      const auto& got = std::get<model::NodeRequest>(*object);
      EXPECT_EQ(got.phase, phase);
      EXPECT_EQ(got.node_name, "n");
      EXPECT_EQ(got.message, "m");
      EXPECT_EQ(got.failure, "Stockout");
      EXPECT_EQ(got.launched_at, request.launched_at);
      EXPECT_EQ(got.failed_at, request.failed_at);
      EXPECT_FALSE(got.ready_at.has_value());
    }
  }
}

TEST(EncodeTest, CountsReadBackAndLeaveTheRestOfTheStatus) {
  const model::KaiCounts counts{{{"cpu", 1500}, {model::kGpuName, 250}}, {}, {{"memory", 1 << 20}}};
  model::SetKaiStatus action{model::Kind::kPodGroup, "ns", "g", "u", counts, {}};
  EncodedWrite write = EncodeKaiStatus(action);
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g/status");
  EXPECT_EQ(write.content_type, kJsonPatch);
  EXPECT_EQ(write.body, R"([{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add",)"
                        R"("path":"/status/resourcesStatus","value":{"allocated":{"cpu":"1500m",)"
                        R"("nvidia.com/gpu":"250m"},"requested":{"memory":"1048576"}}}])");
  absl::StatusOr<Object> object = DecodeObject(model::Kind::kPodGroup, kJson, Patched(write.body));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<model::PodGroup>(*object).resources_status, counts);
  action.counts = {};
  EXPECT_TRUE(absl::EndsWith(EncodeKaiStatus(action).body,
                             R"("path":"/status/resourcesStatus","value":{}}])"));

  action = {model::Kind::kQueue, "", "q", "u", counts, {"a", "b"}};
  write = EncodeKaiStatus(action);
  EXPECT_EQ(write.path, "/apis/scheduling.run.ai/v2/queues/q/status");
  // A null removes what was there.
  EXPECT_TRUE(absl::StrContains(
      write.body, R"({"op":"add","path":"/status/allocatedNonPreemptible","value":null})"))
      << write.body;
  for (const StatusShape shape : {StatusShape::kFields, StatusShape::kWhole}) {
    object = DecodeObject(model::Kind::kQueue, kJson, Patched(EncodeKaiStatus(action, shape).body));
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(std::get<model::Queue>(*object).status, counts);
    EXPECT_EQ(std::get<model::Queue>(*object).child_queues, action.child_queues);
  }
}

TEST(EncodeTest, Deletes) {
  const EncodedWrite write = EncodeDeleteNodeRequest({"nr-1", "u"});
  EXPECT_EQ(write.method, "DELETE");
  EXPECT_EQ(write.path, "/apis/fairlead.dev/v1alpha1/noderequests/nr-1");
  EXPECT_EQ(write.body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"}})");
  EXPECT_EQ(EncodeDeleteNode("n", "").body, R"({"apiVersion":"v1","kind":"DeleteOptions"})");
  EXPECT_EQ(EncodeDeleteNode("n", "").path, "/api/v1/nodes/n");
}

TEST(EncodeTest, NodeReadsBackAsItWas) {
  model::Node node;
  node.meta.name = "n1";
  node.meta.uid = "u";
  node.meta.resource_version = "77";
  node.meta.labels.Set("a", "b");
  node.provider_id = "kwok://n1";
  node.allocatable = {{"cpu", 1500}, {"memory", 1 << 30}, {"nvidia.com/gpu", 8000}, {"pods", 110}};
  node.taints = {{"k", "v", model::TaintEffect::kNoExecute}};
  const EncodedWrite create = EncodeCreateNode(node);
  EXPECT_EQ(create.path, "/api/v1/nodes");
  absl::StatusOr<Object> object = DecodeObject(model::Kind::kNode, kJson, create.body);
  ASSERT_TRUE(object.ok()) << object.status();
  const auto& got = std::get<model::Node>(*object);
  EXPECT_EQ(got.allocatable, node.allocatable);
  EXPECT_TRUE(got.taints == node.taints);
  EXPECT_EQ(got.provider_id, node.provider_id);
  EXPECT_TRUE(got.ready);
  node.ready = false;
  object = DecodeObject(model::Kind::kNode, kJson, EncodeCreateNode(node).body);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_FALSE(std::get<model::Node>(*object).ready);
  const EncodedWrite status = EncodeNodeStatus(node);
  EXPECT_EQ(status.path, "/api/v1/nodes/n1/status");
  EXPECT_EQ(status.content_type, kStrategicMergePatch);
  EXPECT_EQ(
      status.body,
      R"({"metadata":{"uid":"u"},"status":{)"
      R"("capacity":{"cpu":"1500m","memory":"1073741824","nvidia.com/gpu":"8","pods":"110"},)"
      R"("allocatable":{"cpu":"1500m","memory":"1073741824","nvidia.com/gpu":"8","pods":"110"},)"
      R"("conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady"}]}})");
  const EncodedWrite taints = EncodeNodeTaints(node);
  EXPECT_EQ(taints.path, "/api/v1/nodes/n1");
  EXPECT_EQ(taints.content_type, kMergePatch);
  EXPECT_EQ(taints.body, R"({"metadata":{"uid":"u","resourceVersion":"77"},"spec":{"taints":[)"
                         R"({"key":"k","value":"v","effect":"NoExecute"}]}})");
  node.taints.clear();
  EXPECT_TRUE(absl::StrContains(EncodeNodeTaints(node).body, R"("taints":[])"));
}

TEST(EncodeTest, VolumesAreBoundAtTheVersionThatWasSeen) {
  model::BindVolume bind{"pv-1", "uid-1", "77", "ns", "data", "uid-2"};
  const EncodedWrite write = EncodeBindVolume(bind);
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/api/v1/persistentvolumes/pv-1");
  EXPECT_EQ(write.content_type, kMergePatch);
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"uid-1","resourceVersion":"77",)"
                        R"("annotations":{"pv.kubernetes.io/bound-by-controller":"yes"}},)"
                        R"("spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim",)"
                        R"("namespace":"ns","name":"data","uid":"uid-2"}}})");
  // What its user has named stays the user's.
  bind.prebound = true;
  EXPECT_EQ(EncodeBindVolume(bind).body.find("annotations"), std::string::npos);
  bind.volume = "../nodes/n";
  EXPECT_EQ(EncodeBindVolume(bind).path, "/api/v1/persistentvolumes/..%2Fnodes%2Fn");
}

// As the API server merges it: what is patched decodes to a volume with the claim.
TEST(EncodeTest, ABoundVolumeReadsBack) {
  const EncodedWrite write = EncodeBindVolume({"pv-1", "uid-1", "77", "ns", "data", "uid-2"});
  const auto object = DecodeObject(model::Kind::kPersistentVolume, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<model::PersistentVolume>(*object).claim,
            (model::PersistentVolume::ClaimRef{"ns", "data", "uid-2"}));
}

TEST(EncodeTest, TheNodeOfAVolumeIsSelectedAtTheVersionThatWasSeen) {
  const EncodedWrite write = EncodeSelectVolumeNode({"ns", "data", "uid-2", "78", "node-1"});
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/api/v1/namespaces/ns/persistentvolumeclaims/data");
  EXPECT_EQ(write.content_type, kMergePatch);
  EXPECT_EQ(write.body, R"({"metadata":{"uid":"uid-2","resourceVersion":"78",)"
                        R"("annotations":{"volume.kubernetes.io/selected-node":"node-1"}}})");
  const auto object = DecodeObject(model::Kind::kPersistentVolumeClaim, kJson, write.body);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(std::get<model::PersistentVolumeClaim>(*object).selected_node, "node-1");
}

// What an event says beside its object, as kube-scheduler's events of a victim do.
TEST(EncodeTest, AnEventNamesItsActionItsReporterAndWhatItIsRelatedTo) {
  model::EmitEvent event{model::Kind::kPod, "ns", "victim", "v", false, "Preempted", "by u"};
  event.action = model::EventAction::kPreempting;
  event.reporter = "kai-scheduler";
  event.related.Own() = {model::Kind::kPodGroup, "other", "train", "g"};
  const std::string body = EncodeEvent(event, "fairlead", "host-1", kTime).body;
  EXPECT_TRUE(absl::StrContains(
      body, R"("reportingController":"kai-scheduler","reportingInstance":"host-1",)"
            R"("action":"Preempting","reason":"Preempted",)"))
      << body;
  EXPECT_TRUE(absl::StrContains(
      body, R"("related":{"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup",)"
            R"("namespace":"other","name":"train","uid":"g"},"note":"by u")"))
      << body;
  const auto action = [&](model::EventAction is) {
    event.action = is;
    const std::string text = EncodeEvent(event, "fairlead", "h", kTime).body;
    const size_t at = text.find("\"action\":\"") + 10;
    return text.substr(at, text.find('"', at) - at);
  };
  EXPECT_EQ(action(model::EventAction::kOfKind), "Scheduling");
  EXPECT_EQ(action(model::EventAction::kScheduling), "Scheduling");
  EXPECT_EQ(action(model::EventAction::kBinding), "Binding");
  EXPECT_EQ(action(model::EventAction::kEvicting), "Evicting");
  event = {model::Kind::kNodeRequest, "", "r", "u", false, "R", "n"};
  EXPECT_EQ(action(model::EventAction::kOfKind), "Scaling");
  EXPECT_FALSE(absl::StrContains(EncodeEvent(event, "f", "h", kTime).body, "related"));
}

TEST(EncodeTest, ASeriesIsAPatchOfTheEventThatWasPosted) {
  const model::EmitEvent event{model::Kind::kPod, "ns", "pod", "u", true, "FailedScheduling", "n"};
  const std::string posted = EncodeEvent(event, "fairlead", "h", kTime).body;
  const EncodedWrite write = EncodeEventSeries(event, kTime, 3, kTime + absl::Minutes(2));
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.content_type, kMergePatch);
  EXPECT_EQ(write.body,
            R"({"series":{"count":3,"lastObservedTime":"2026-11-21T02:02:39.123456Z"}})");
  const std::string name = write.path.substr(write.path.rfind('/') + 1);
  EXPECT_TRUE(absl::StrContains(posted, absl::StrCat("\"name\":\"", name, "\"")));
}

TEST(EncodeTest, EventNamesAreTheSameForTheSameObservation) {
  const model::EmitEvent event{model::Kind::kPod, "ns",     "pod", "u", true,
                               "Unschedulable",   "no room"};
  const EncodedWrite write = EncodeEvent(event, "fairlead", "host-1", kTime);
  EXPECT_EQ(write.path, "/apis/events.k8s.io/v1/namespaces/ns/events");
  EXPECT_TRUE(absl::StrContains(write.body, R"("eventTime":"2026-11-21T02:00:39.123456Z")"));
  EXPECT_TRUE(absl::StrContains(
      write.body,
      R"("regarding":{"apiVersion":"v1","kind":"Pod","namespace":"ns","name":"pod","uid":"u"},)"
      R"("note":"no room","type":"Warning"})"));
  const auto name = [](const model::EmitEvent& e, absl::Time at_time = kTime) {
    const std::string body = EncodeEvent(e, "fairlead", "h", at_time).body;
    const size_t at = body.find("\"name\":\"") + 8;
    return body.substr(at, body.find('"', at) - at);
  };
  EXPECT_TRUE(absl::StartsWith(name(event), "pod."));
  EXPECT_EQ(name(event), name(event));
  EXPECT_NE(name(event), name(event, kTime + absl::Microseconds(1)));
  for (auto change : {+[](model::EmitEvent& e) { e.uid = "u2"; },
                      +[](model::EmitEvent& e) { e.reason = "Other"; },
                      +[](model::EmitEvent& e) { e.note = "other"; }}) {
    model::EmitEvent other = event;
    change(other);
    EXPECT_NE(name(other), name(event));
  }
  model::EmitEvent node{model::Kind::kNode, "", std::string(199, 'n') + "-x", "u", false, "R", ""};
  node.note = std::string(2000, 'x');
  const EncodedWrite about_node = EncodeEvent(node, "fairlead", "h", kTime);
  EXPECT_EQ(about_node.path, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_TRUE(absl::StrContains(about_node.body, std::string(1024, 'x')));
  EXPECT_FALSE(absl::StrContains(about_node.body, std::string(1025, 'x')));
  EXPECT_EQ(name(node), absl::StrCat(std::string(199, 'n'), ".", name(node).substr(200)));
}

TEST(EncodeTest, NamesCannotLeaveTheirPlaceInAPath) {
  EXPECT_EQ(EncodeDeleteNode("../pods?x=%", "").path, "/api/v1/nodes/..%2Fpods%3Fx%3D%25");
  EXPECT_EQ(EncodeDeleteNode("..", "").path, "/api/v1/nodes/%2E%2E");
  EXPECT_EQ(EncodeDeleteNode("a.b-c", "").path, "/api/v1/nodes/a.b-c");
}

TEST(EncodeTest, Collections) {
  for (model::Kind kind : model::kAllKinds) {
    EXPECT_TRUE(absl::StartsWith(CollectionPath(kind), "/api"));
  }
  EXPECT_EQ(CollectionPath(model::Kind::kTopology), "/apis/kai.scheduler/v1alpha1/topologies");
  EXPECT_TRUE(HasProtobuf(model::Kind::kPod));
  EXPECT_FALSE(HasProtobuf(model::Kind::kQueue));
}

}  // namespace
}  // namespace fairlead::kube
