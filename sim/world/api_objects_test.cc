// Objects of all types: creation, change, deletion, patches, apply, lists; what clients and actors
// may.
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPodsPath[] = "/api/v1/namespaces/default/pods";
constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";
constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kQueues[] = "/apis/scheduling.run.ai/v2/queues";
constexpr char kGroups[] = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups";
constexpr char kRequests[] = "/apis/fairlead.dev/v1alpha1/noderequests";
constexpr char kClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/fairlead/leases";
constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/default/events";

class ApiObjectsTest : public ::testing::Test {
 protected:
  std::string VersionOf(ResourceType type, const std::string& name) const {
    return TextAt(world_.Get(type, name), {"metadata", "resourceVersion"});
  }
  std::string UidOf(ResourceType type, const std::string& name) const {
    return TextAt(world_.Get(type, name), {"metadata", "uid"});
  }
  static Json Object(const char* api_version, const char* kind, const std::string& name,
                     Json more = Json::object()) {
    Json object = std::move(more);
    object["apiVersion"] = api_version;
    object["kind"] = kind;
    object["metadata"]["name"] = name;
    return object;
  }
  static Json NodeRequest(const std::string& name) {
    return Object("fairlead.dev/v1alpha1", "NodeRequest", name,
                  {{"spec", {{"provider", "p"}, {"instanceType", "t"}}}});
  }
  static Json AnEvent() {
    return Object("events.k8s.io/v1", "Event", "e",
                  {{"reportingController", "c"},
                   {"reportingInstance", "i"},
                   {"action", "a"},
                   {"reason", "r"},
                   {"note", "n"},
                   {"regarding", {{"kind", "Pod"}, {"namespace", "default"}}}});
  }

  TestWorld world_;
};

// ---- creation -----------------------------------------------------------------------------------

TEST_F(ApiObjectsTest, TheServerOwnsTheIdentityOfANewObject) {
  Json pod = PodJson("a");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["uid"] = "mine";
  pod["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z";
  pod["status"] = {{"phase", "Running"}};
  const auto answer = world_.Call("POST", kPodsPath, pod);
  ASSERT_EQ(answer.status, 201) << answer.response.body;
  EXPECT_EQ(answer.body, world_.Get(ResourceType::kPods, "a"));
  const Json& meta = answer.body["metadata"];
  EXPECT_NE(meta["uid"], "mine");
  EXPECT_EQ(meta["creationTimestamp"], TimeText(TestStart()));
  EXPECT_EQ(meta["generation"], 1);
  EXPECT_FALSE(meta.contains("deletionTimestamp"));
  EXPECT_EQ(TextAt(answer.body, {"status", "phase"}), "Pending");
  EXPECT_EQ(meta["resourceVersion"], absl::StrCat(world_.server.version()));
}

TEST_F(ApiObjectsTest, ATakenNameIsAlreadyExists) {
  world_.Create(ResourceType::kNodeRequests, NodeRequest("r"));
  const auto answer = world_.Call("POST", kRequests, NodeRequest("r"));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.reason(), "AlreadyExists");
  EXPECT_EQ(answer.message(), "noderequests.fairlead.dev \"r\" already exists");
  EXPECT_TRUE(absl::IsAlreadyExists(
      world_.server.Create(ResourceType::kNodeRequests, NodeRequest("r"), "a")));
}

TEST_F(ApiObjectsTest, NewObjectsOfOurKindsHaveAStatusAndOthersHaveNone) {
  Json request = NodeRequest("r");
  request["status"] = {{"phase", "Ready"}};
  EXPECT_EQ(world_.Call("POST", kRequests, request).body["status"], Json::object());
  Json queue = Object("scheduling.run.ai/v2", "Queue", "q", {{"status", {{"x", 1}}}});
  EXPECT_FALSE(world_.Call("POST", kQueues, queue).body.contains("status"));
  // A kubelet registers with its status.
  Json node = Object("v1", "Node", "n", NodeJson("n"));
  EXPECT_EQ(TextAt(world_.Call("POST", kNodes, node).body, {"status", "capacity", "cpu"}), "8");
}

// KAI's CRD has no default: then a JSON patch finds no status to add to, and makes it.
TEST_F(ApiObjectsTest, WithoutTheDefaultAPodGroupHasNoStatus) {
  world_.server.DefaultStatus(ResourceType::kPodGroups, false);
  world_.Create(ResourceType::kPodGroups,
                {{"metadata", {{"name", "g"}, {"namespace", "default"}}}});
  EXPECT_EQ(At(world_.Get(ResourceType::kPodGroups, "g"), {"status"}), nullptr);
  const auto patch = [&](const Json& operations) {
    return world_.Call("PATCH", absl::StrCat(kGroups, "/g/status"), operations, kube::kJsonPatch)
        .status;
  };
  EXPECT_EQ(patch({{{"op", "add"}, {"path", "/status/x"}, {"value", 1}}}), 422);
  EXPECT_EQ(patch({{{"op", "test"}, {"path", "/status"}, {"value", nullptr}},
                   {{"op", "add"}, {"path", "/status"}, {"value", {{"x", 1}}}}}),
            200);
  EXPECT_EQ(IntAt(world_.Get(ResourceType::kPodGroups, "g"), {"status", "x"}), 1);
}

TEST_F(ApiObjectsTest, WhatNoServerTakesIsRefused) {
  Json bad_name = NodeRequest("Not_A_Name");
  EXPECT_EQ(world_.Call("POST", kRequests, bad_name).status, 422);
  Json bad_label = NodeRequest("r");
  bad_label["metadata"]["labels"]["queue"] = "a/b c";
  const auto refused = world_.Call("POST", kRequests, bad_label);
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.reason(), "Invalid");
  EXPECT_THAT(refused.message(), HasSubstr("NodeRequest.fairlead.dev \"r\" is invalid: "
                                           "metadata.labels: Invalid value: \"a/b c\""));
  EXPECT_EQ(world_.Call("POST", kRequests, Object("v1", "Pod", "r")).status, 400);
  kube::HttpRequest broken;
  broken.method = "POST";
  broken.path = kRequests;
  broken.body = "{";
  EXPECT_EQ(world_.server.Handle(broken, "c").status, 400);
}

TEST_F(ApiObjectsTest, NamespacesCountInWorldsThatHaveThem) {
  Json map = Object("v1", "ConfigMap", "m");
  EXPECT_EQ(world_.Call("POST", "/api/v1/namespaces/a/configmaps", map).status, 201);
  world_.Create(ResourceType::kNamespaces, {{"metadata", {{"name", "b"}}}});
  const auto missing = world_.Call("POST", "/api/v1/namespaces/c/configmaps", map);
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.message(), "namespaces \"c\" not found");
  EXPECT_EQ(world_.Call("POST", kMaps, map).status, 201);
  world_.Merge(ResourceType::kNamespaces, "b", {{"metadata", {{"finalizers", {"x"}}}}});
  EXPECT_TRUE(world_.server.Remove(ResourceType::kNamespaces, "", "b", "test").ok());
  const auto ending = world_.Call("POST", "/api/v1/namespaces/b/configmaps", map);
  EXPECT_EQ(ending.status, 403);
  EXPECT_THAT(ending.message(), HasSubstr("because it is being terminated"));
}

TEST_F(ApiObjectsTest, PodsGetTheirPriorityAndTheirGatedCondition) {
  world_.Create(ResourceType::kPriorityClasses, {{"metadata", {{"name", "high"}}}, {"value", 7}});
  Json pod = PodJson("a");
  pod["spec"]["priorityClassName"] = "high";
  pod["spec"]["schedulingGates"] = Json::array({{{"name", "g"}}});
  world_.Create(ResourceType::kPods, pod);
  EXPECT_EQ(IntAt(world_.Get(ResourceType::kPods, "a"), {"spec", "priority"}), 7);
  EXPECT_EQ(world_.Get(ResourceType::kPods, "a")["status"]["conditions"][0]["reason"],
            "SchedulingGated");
  pod = Object("v1", "Pod", "b", PodJson("b"));
  pod["spec"]["priorityClassName"] = "none";
  const auto refused = world_.Call("POST", kPodsPath, pod);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "pods \"b\" is forbidden: no PriorityClass with name none was found");
}

// ---- change -------------------------------------------------------------------------------------

TEST_F(ApiObjectsTest, AChangeThatChangesNothingMakesNoVersion) {
  world_.Create(ResourceType::kNodes, NodeJson("n"));
  const std::string before = VersionOf(ResourceType::kNodes, "n");
  const std::string path = absl::StrCat(kNodes, "/n");
  EXPECT_EQ(
      world_.Call("PATCH", path, {{"spec", {{"taints", Json::array()}}}}, kube::kMergePatch).status,
      200);
  EXPECT_EQ(
      world_.Call("PATCH", path, {{"metadata", {{"labels", {{"a", nullptr}}}}}}, kube::kMergePatch)
          .status,
      200);
  world_.Merge(ResourceType::kNodes, "n", {{"spec", {{"unschedulable", nullptr}}}});
  EXPECT_EQ(VersionOf(ResourceType::kNodes, "n"), before);
  world_.Merge(ResourceType::kNodes, "n", {{"spec", {{"unschedulable", true}}}});
  EXPECT_NE(VersionOf(ResourceType::kNodes, "n"), before);
}

TEST_F(ApiObjectsTest, GenerationGrowsWithTheSpecAlone) {
  world_.Create(ResourceType::kQueues, {{"metadata", {{"name", "q"}}}, {"spec", {{"a", 1}}}});
  const auto generation = [&] {
    return IntAt(world_.Get(ResourceType::kQueues, "q"), {"metadata", "generation"});
  };
  world_.Merge(ResourceType::kQueues, "q", {{"status", {{"b", 1}}}});
  world_.Merge(ResourceType::kQueues, "q", {{"metadata", {{"labels", {{"b", "1"}}}}}});
  EXPECT_EQ(generation(), 1);
  world_.Merge(ResourceType::kQueues, "q", {{"spec", {{"a", 2}}}});
  EXPECT_EQ(generation(), 2);
}

TEST_F(ApiObjectsTest, VersionsAndUidsArePreconditions) {
  world_.Create(ResourceType::kNodes, NodeJson("n"));
  const std::string path = absl::StrCat(kNodes, "/n");
  const std::string former = VersionOf(ResourceType::kNodes, "n");
  world_.Merge(ResourceType::kNodes, "n", {{"metadata", {{"labels", {{"a", "1"}}}}}});
  const auto patch = [&](const char* field, const std::string& value) {
    return world_.Call("PATCH", path,
                       {{"metadata", {{field, value}}}, {"spec", {{"unschedulable", true}}}},
                       kube::kMergePatch);
  };
  const auto conflict = patch("resourceVersion", former);
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(conflict.reason(), "Conflict");
  EXPECT_EQ(conflict.message(),
            "Operation cannot be fulfilled on nodes \"n\": the object has been modified; please "
            "apply your changes to the latest version and try again");
  const auto other = patch("uid", "u");
  EXPECT_EQ(other.status, 422);
  EXPECT_THAT(other.message(), HasSubstr("metadata.uid: Invalid value: \"u\": field is immutable"));
  EXPECT_EQ(patch("resourceVersion", VersionOf(ResourceType::kNodes, "n")).status, 200);
  EXPECT_EQ(patch("uid", UidOf(ResourceType::kNodes, "n")).status, 200);
  EXPECT_TRUE(BoolAt(world_.Get(ResourceType::kNodes, "n"), {"spec", "unschedulable"}));
}

TEST_F(ApiObjectsTest, AStatusWriteChangesTheStatusAlone) {
  world_.Create(ResourceType::kPodGroups,
                {{"metadata", {{"name", "g"}, {"namespace", "default"}}}, {"spec", {{"a", 1}}}});
  const Json patch = {{"metadata", {{"labels", {{"x", "y"}}}, {"uid", "another"}}},
                      {"spec", {{"a", 2}}},
                      {"status", {{"b", 1}}}};
  ASSERT_EQ(
      world_.Call("PATCH", absl::StrCat(kGroups, "/g/status"), patch, kube::kMergePatch).status,
      200);
  const Json& group = world_.Get(ResourceType::kPodGroups, "g");
  EXPECT_EQ(IntAt(group, {"spec", "a"}), 1);
  EXPECT_EQ(IntAt(group, {"status", "b"}), 1);
  EXPECT_FALSE(group["metadata"].contains("labels"));
  // And the other way round.
  Json other = {{"spec", {{"a", 3}}}, {"status", {{"b", 9}}}};
  world_.Call("PATCH", absl::StrCat(kGroups, "/g"), other, kube::kMergePatch);
  EXPECT_EQ(IntAt(world_.Get(ResourceType::kPodGroups, "g"), {"spec", "a"}), 3);
  EXPECT_EQ(IntAt(world_.Get(ResourceType::kPodGroups, "g"), {"status", "b"}), 1);
}

TEST_F(ApiObjectsTest, AStatusOfAPodCarriesAnnotationsAndRefusesAnotherUid) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  const std::string path = absl::StrCat(kPodsPath, "/a/status");
  Json patch = {
      {"metadata", {{"annotations", {{"fairlead.dev/verdict", "{}"}}}}},
      {"spec", {{"nodeName", "stolen"}}},
      {"status", {{"conditions", Json::array({{{"type", "PodScheduled"}, {"status", "False"}}})}}}};
  ASSERT_EQ(world_.Call("PATCH", path, patch, kube::kStrategicMergePatch).status, 200);
  const Json& pod = world_.Get(ResourceType::kPods, "a");
  EXPECT_EQ(TextAt(pod, {"metadata", "annotations", "fairlead.dev/verdict"}), "{}");
  EXPECT_EQ(TextAt(pod, {"spec", "nodeName"}), "");
  EXPECT_EQ(pod["status"]["conditions"].size(), 1u);
  patch["metadata"]["uid"] = "u";
  EXPECT_EQ(world_.Call("PATCH", path, patch, kube::kStrategicMergePatch).status, 422);
}

TEST_F(ApiObjectsTest, JsonPatchesOfAStatusFailAsAWhole) {
  world_.Create(ResourceType::kNodeRequests, NodeRequest("r"));
  const std::string path = absl::StrCat(kRequests, "/r/status");
  const auto patch = [&](const std::string& uid) {
    return world_.Call(
        "PATCH", path,
        Json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", uid}},
                     {{"op", "add"}, {"path", "/status/phase"}, {"value", "Ready"}},
                     {{"op", "add"}, {"path", "/status/readyAt"}, {"value", nullptr}}}),
        kube::kJsonPatch);
  };
  const auto refused = patch("another");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.message(), "the server rejected our request due to an error in our request");
  const auto done = patch(UidOf(ResourceType::kNodeRequests, "r"));
  ASSERT_EQ(done.status, 200);
  EXPECT_EQ(Dump(done.body["status"]), R"({"phase":"Ready"})") << "nulls are dropped";
}

TEST_F(ApiObjectsTest, TheSchemasOfOurKindsAreKept) {
  Json incomplete = NodeRequest("r");
  incomplete["spec"].erase("instanceType");
  EXPECT_THAT(world_.Call("POST", kRequests, incomplete).message(),
              HasSubstr("spec.instanceType: Required value"));
  world_.Create(ResourceType::kNodeRequests, NodeRequest("r"));
  const std::string path = absl::StrCat(kRequests, "/r");
  const auto status = [&](const char* field, const Json& value) {
    return world_.Call("PATCH", absl::StrCat(path, "/status"), {{"status", {{field, value}}}},
                       kube::kMergePatch);
  };
  EXPECT_THAT(status("phase", "Sideways").message(),
              HasSubstr("status.phase: Unsupported value: \"Sideways\": supported values: "
                        "\"Pending\", \"Launched\""));
  EXPECT_EQ(status("readyAt", "yesterday").status, 422);
  EXPECT_EQ(status("failure", "").status, 200);
  EXPECT_EQ(status("phase", "Ready").status, 200);
  EXPECT_THAT(
      world_.Call("PATCH", path, {{"spec", {{"provider", "q"}}}}, kube::kMergePatch).message(),
      HasSubstr("the spec of a NodeRequest cannot be changed"));
  world_.Create(ResourceType::kPodGroups,
                {{"metadata", {{"name", "g"}, {"namespace", "default"}}}});
  const Json verdict = {{"v", 1}, {"code", "C"}, {"category", "no"}, {"hash", "h"}};
  EXPECT_THAT(world_
                  .Call("PATCH", absl::StrCat(kGroups, "/g/status"),
                        {{"status", {{"schedulability", verdict}}}}, kube::kMergePatch)
                  .message(),
              HasSubstr("category"));
}

// As crds/queue.yaml and crds/podgroup.yaml have them.
TEST_F(ApiObjectsTest, CountsHaveASchema) {
  world_.Create(ResourceType::kQueues, {{"metadata", {{"name", "q"}}}});
  world_.Create(ResourceType::kPodGroups,
                {{"metadata", {{"name", "g"}, {"namespace", "default"}}}});
  const std::string queue = absl::StrCat(kQueues, "/q/status");
  const std::string group = absl::StrCat(kGroups, "/g/status");
  const auto patch = [&](const std::string& path, const Json& status) {
    return world_.Call("PATCH", path, {{"status", status}}, kube::kMergePatch);
  };
  EXPECT_THAT(patch(queue, {{"allocated", {{"cpu", 1.5}}}}).message(),
              HasSubstr("status.allocated.cpu"));
  EXPECT_THAT(patch(queue, {{"requested", "much"}}).message(), HasSubstr("type object"));
  EXPECT_THAT(patch(queue, {{"childQueues", {1}}}).message(), HasSubstr("status.childQueues"));
  const Json counts = {{"allocated", {{"cpu", "1500m"}, {"nvidia.com/gpu", 2}}}, {"used", 1}};
  ASSERT_EQ(patch(queue, counts).status, 200);
  EXPECT_EQ(Dump(world_.Get(ResourceType::kQueues, "q")["status"]),
            R"({"allocated":{"cpu":"1500m","nvidia.com/gpu":2}})")
      << "unknown fields are dropped";
  EXPECT_EQ(patch(group, {{"resourcesStatus", {{"requested", {{"cpu", true}}}}}}).status, 422);
  ASSERT_EQ(patch(group, {{"resourcesStatus", counts}}).status, 200);
  EXPECT_FALSE(
      world_.Get(ResourceType::kPodGroups, "g")["status"]["resourcesStatus"].contains("used"));
}

TEST_F(ApiObjectsTest, PatchesOfTheWrongSortAreNotTaken) {
  world_.Create(ResourceType::kQueues, {{"metadata", {{"name", "q"}}}});
  const std::string path = absl::StrCat(kQueues, "/q");
  EXPECT_EQ(world_.Call("PATCH", path, Json::object(), kube::kStrategicMergePatch).status, 415);
  EXPECT_EQ(world_.Call("PATCH", path, Json::object(), kube::kJson).status, 415);
  EXPECT_EQ(world_.Call("PATCH", absl::StrCat(kQueues, "/x"), Json::object(), kube::kMergePatch)
                .message(),
            "queues.scheduling.run.ai \"x\" not found");
}

TEST_F(ApiObjectsTest, AClaimIsAllocatedOnceAndReservedOnlyThen) {
  world_.Create(ResourceType::kResourceClaims,
                {{"metadata", {{"name", "c"}, {"namespace", "default"}}}});
  const std::string path = absl::StrCat(kClaims, "/c/status");
  const auto patch = [&](const Json& status) {
    return world_.Call("PATCH", path, {{"status", status}}, kube::kStrategicMergePatch);
  };
  const Json pod = Json::array({{{"uid", "1"}, {"name", "a"}, {"resource", "pods"}}});
  EXPECT_EQ(patch({{"reservedFor", pod}}).status, 422);
  EXPECT_EQ(patch({{"reservedFor", pod}, {"allocation", {{"nodeSelector", 1}}}}).status, 200);
  EXPECT_EQ(patch({{"allocation", {{"nodeSelector", 2}}}}).status, 422);
  EXPECT_EQ(patch({{"allocation", nullptr}, {"reservedFor", nullptr}}).status, 200);
  EXPECT_EQ(At(world_.Get(ResourceType::kResourceClaims, "c"), {"status"}), nullptr);
}

// ---- apply --------------------------------------------------------------------------------------

TEST_F(ApiObjectsTest, AnApplyMakesMergesAndTakesItsOwnFieldsAway) {
  const std::string path = absl::StrCat(kMaps, "/m?fieldManager=fairlead&force=true");
  const auto apply = [&](const Json& data) {
    return world_.Call("PATCH", path, Object("v1", "ConfigMap", "m", {{"data", data}}),
                       kube::kApplyPatch);
  };
  EXPECT_EQ(apply({{"a", "1"}, {"b", "2"}}).status, 201);
  world_.Merge(ResourceType::kConfigMaps, "m", {{"data", {{"theirs", "3"}}}});
  const auto again = apply({{"a", "4"}});
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(Dump(again.body["data"]), R"({"a":"4","theirs":"3"})");
  const std::string version = VersionOf(ResourceType::kConfigMaps, "m");
  EXPECT_EQ(apply({{"a", "4"}}).status, 200);
  EXPECT_EQ(VersionOf(ResourceType::kConfigMaps, "m"), version);
  EXPECT_EQ(world_.Call("PATCH", path, Object("v1", "Secret", "m"), kube::kApplyPatch).status, 400);
}

// ---- deletion -----------------------------------------------------------------------------------

TEST_F(ApiObjectsTest, DeletionsHavePreconditions) {
  world_.Create(ResourceType::kNodeRequests, NodeRequest("r"));
  const std::string path = absl::StrCat(kRequests, "/r");
  const auto remove = [&](const char* field, const std::string& value) {
    return world_.Call("DELETE", path, {{"preconditions", {{field, value}}}});
  };
  EXPECT_EQ(remove("uid", "another").status, 409);
  EXPECT_EQ(remove("resourceVersion", "1").reason(), "Conflict");
  const auto done = remove("uid", UidOf(ResourceType::kNodeRequests, "r"));
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(TextAt(done.body, {"status"}), "Success");
  EXPECT_EQ(world_.Find(ResourceType::kNodeRequests, "r"), nullptr);
  EXPECT_EQ(world_.Call("DELETE", path).status, 404);
}

TEST_F(ApiObjectsTest, FinalizersKeepAnObjectUntilTheLastIsGone) {
  Json request = NodeRequest("r");
  request["metadata"]["finalizers"] = {"a", "b"};
  world_.Create(ResourceType::kNodeRequests, request);
  const std::string path = absl::StrCat(kRequests, "/r");
  const auto first = world_.Call("DELETE", path);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(TextAt(first.body, {"metadata", "deletionTimestamp"}), TimeText(TestStart()));
  const std::string version = VersionOf(ResourceType::kNodeRequests, "r");
  world_.Run(absl::Seconds(9));
  world_.Call("DELETE", path);
  EXPECT_EQ(VersionOf(ResourceType::kNodeRequests, "r"), version);
  const auto set = [&](const Json& finalizers) {
    return world_.Call("PATCH", path, {{"metadata", {{"finalizers", finalizers}}}},
                       kube::kMergePatch);
  };
  EXPECT_EQ(set({"a", "b", "c"}).status, 422) << "none can be added to what is being deleted";
  EXPECT_EQ(set({"b"}).status, 200);
  EXPECT_NE(world_.Find(ResourceType::kNodeRequests, "r"), nullptr);
  EXPECT_EQ(set(Json::array()).status, 200);
  EXPECT_EQ(world_.Find(ResourceType::kNodeRequests, "r"), nullptr);
}

TEST_F(ApiObjectsTest, APodOnANodeGoesWhenTheKubeletSaysSo) {
  Json pod = PodJson("a");
  pod["spec"]["nodeName"] = "n";
  world_.Create(ResourceType::kPods, pod);
  const std::string path = absl::StrCat(kPodsPath, "/a");
  const auto answer = world_.Call("DELETE", path);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(TextAt(answer.body, {"kind"}), "Pod");
  EXPECT_EQ(TextAt(answer.body, {"metadata", "deletionTimestamp"}),
            TimeText(TestStart() + absl::Seconds(30)));
  EXPECT_TRUE(world_.server.Remove(ResourceType::kPods, "default", "a", "t", 5).ok());
  EXPECT_EQ(IntAt(world_.Get(ResourceType::kPods, "a"), {"metadata", "deletionGracePeriodSeconds"}),
            5);
  EXPECT_TRUE(world_.server.Remove(ResourceType::kPods, "default", "a", "t", 0).ok());
  EXPECT_EQ(world_.Find(ResourceType::kPods, "a"), nullptr);
}

TEST_F(ApiObjectsTest, APodWithoutANodeOrThatHasEndedGoesAtOnce) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Json ended = PodJson("b");
  ended["spec"]["nodeName"] = "n";
  ended["status"] = {{"phase", "Succeeded"}};
  world_.Create(ResourceType::kPods, ended);
  world_.Call("DELETE", absl::StrCat(kPodsPath, "/a"));
  world_.Call("DELETE", absl::StrCat(kPodsPath, "/b"));
  EXPECT_EQ(world_.server.Count(ResourceType::kPods), 0u);
}

TEST_F(ApiObjectsTest, RemoveNowWaitsForNoFinalizer) {
  Json request = NodeRequest("r");
  request["metadata"]["finalizers"] = {"a"};
  world_.Create(ResourceType::kNodeRequests, request);
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kNodeRequests, "", "r", "t").ok());
  EXPECT_EQ(world_.Find(ResourceType::kNodeRequests, "r"), nullptr);
  EXPECT_TRUE(absl::IsNotFound(world_.server.RemoveNow(ResourceType::kNodeRequests, "", "r", "t")));
}

// ---- events and leases --------------------------------------------------------------------------

TEST_F(ApiObjectsTest, EventsAreCheckedAndForgottenAfterAnHour) {
  Json event = AnEvent();
  EXPECT_EQ(world_.Call("POST", kEvents, event).status, 201);
  EXPECT_EQ(world_.Call("POST", kEvents, event).reason(), "AlreadyExists");
  world_.Run(absl::Hours(1));
  EXPECT_EQ(world_.Call("POST", kEvents, event).status, 201);
  event["note"] = std::string(1025, 'x');
  event["metadata"]["name"] = "f";
  EXPECT_EQ(world_.Call("POST", kEvents, event).status, 422);
}

TEST_F(ApiObjectsTest, OfAnEventTheSeriesAloneMayChange) {
  Json event = AnEvent();
  const std::string path = absl::StrCat(kEvents, "/e");
  const Json series = {
      {"series", {{"count", 2}, {"lastObservedTime", "2026-11-21T02:00:39.123456Z"}}}};
  const auto patch = [&](const Json& change) {
    return world_.Call("PATCH", path, change, kube::kMergePatch).status;
  };
  EXPECT_EQ(patch(series), 404);
  EXPECT_EQ(world_.Call("POST", kEvents, event).status, 201);
  EXPECT_EQ(patch(series), 200);
  EXPECT_EQ(world_.Get(ResourceType::kEvents, "e").at("series").at("count"), 2);
  for (const Json& wrong :
       {Json{{"note", "m"}}, Json{{"regarding", {{"kind", "Node"}}}},
        Json{{"series", {{"count", 1}}}}, Json{{"series", {{"lastObservedTime", nullptr}}}}}) {
    EXPECT_EQ(patch(wrong), 422) << wrong;
  }
}

TEST_F(ApiObjectsTest, OfTwoTakersOfALeaseOneGetsAConflict) {
  const Json lease = Object("coordination.k8s.io/v1", "Lease", "l",
                            {{"spec", {{"holderIdentity", "a"}, {"leaseDurationSeconds", 15}}}});
  const auto made = world_.Call("POST", kLeases, lease);
  ASSERT_EQ(made.status, 201);
  const std::string version = TextAt(made.body, {"metadata", "resourceVersion"});
  const auto take = [&](const char* holder, int seconds) {
    return world_.Call("PATCH", absl::StrCat(kLeases, "/l"),
                       {{"metadata", {{"resourceVersion", version}}},
                        {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", seconds}}}},
                       kube::kMergePatch);
  };
  EXPECT_EQ(take("b", 0).status, 422);
  EXPECT_EQ(take("b", 15).status, 200);
  EXPECT_EQ(take("c", 15).status, 409);
}

// ---- lists --------------------------------------------------------------------------------------

TEST_F(ApiObjectsTest, PagesOfAListAreOfOneVersion) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    world_.Create(ResourceType::kPods, PodJson(name));
  }
  const uint64_t version = world_.server.version();
  std::vector<std::string> names;
  const auto page = [&](const std::string& token) {
    auto answer = world_.Call(
        "GET", absl::StrCat("/api/v1/pods?limit=2", token.empty() ? "" : "&continue=", token));
    EXPECT_EQ(answer.status, 200) << answer.response.body;
    EXPECT_EQ(TextAt(answer.body, {"metadata", "resourceVersion"}), absl::StrCat(version));
    for (const Json& item : answer.body["items"]) {
      names.push_back(TextAt(item, {"metadata", "name"}));
    }
    return TextAt(answer.body, {"metadata", "continue"});
  };
  const std::string second = page("");
  world_.Create(ResourceType::kPods, PodJson("bb"));
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "d", "t").ok());
  const std::string third = page(second);
  EXPECT_EQ(page(third), "");
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d", "e"));
  // A page that was lost is asked for again.
  names.clear();
  page(second);
  EXPECT_THAT(names, ElementsAre("c", "d"));
}

TEST_F(ApiObjectsTest, TokensExpireWithCompactionAndWithTime) {
  for (const char* name : {"a", "b"}) world_.Create(ResourceType::kPods, PodJson(name));
  const auto token = [&] {
    return TextAt(world_.Call("GET", "/api/v1/pods?limit=1").body, {"metadata", "continue"});
  };
  const auto go_on = [&](const std::string& with) {
    return world_.Call("GET", absl::StrCat("/api/v1/pods?limit=1&continue=", with));
  };
  std::string first = token();
  world_.server.Compact();
  EXPECT_EQ(go_on(first).status, 410);
  EXPECT_EQ(go_on(first).reason(), "Expired");
  first = token();
  world_.Run(absl::Minutes(5));
  EXPECT_EQ(go_on(first).status, 410);
  EXPECT_EQ(go_on("rubbish").status, 400);
}

TEST_F(ApiObjectsTest, ListsAreSelectedByNamespaceAndField) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  Json other = PodJson("b");
  other["metadata"]["namespace"] = "default-2";
  world_.Create(ResourceType::kPods, other);
  const auto names = [&](const std::string& path) {
    std::vector<std::string> out;
    const auto answer = world_.Call("GET", path);
    for (const Json& item : answer.body["items"]) {
      out.push_back(TextAt(item, {"metadata", "name"}));
    }
    return out;
  };
  EXPECT_THAT(names("/api/v1/pods"), ElementsAre("b", "a")) << "in the order of etcd's keys";
  EXPECT_THAT(names(kPodsPath), ElementsAre("a"));
  EXPECT_THAT(names("/api/v1/pods?fieldSelector=metadata.namespace%3Ddefault-2"), ElementsAre("b"));
  world_.Merge(ResourceType::kPods, "a", {{"status", {{"phase", "Failed"}}}});
  EXPECT_THAT(names("/api/v1/pods?fieldSelector=status.phase!%3DFailed"), ElementsAre("b"));
  EXPECT_EQ(world_.Call("GET", "/api/v1/pods?fieldSelector=spec.x=1").status, 400);
  // Of one node, as its removal asks for; before a binding the field is empty.
  world_.Merge(ResourceType::kPods, "a", {{"status", {{"phase", "Running"}}}});
  Json third = PodJson("c");
  third["spec"]["nodeName"] = "n1";
  world_.Create(ResourceType::kPods, third);
  const std::string running = "%2Cstatus.phase!%3DSucceeded%2Cstatus.phase!%3DFailed";
  const std::string on = "/api/v1/pods?fieldSelector=spec.nodeName%3D";
  EXPECT_THAT(names(on + "n1" + running), ElementsAre("c"));
  EXPECT_THAT(names(on + "%3Dn1"), ElementsAre("c")) << "two equals signs";
  EXPECT_THAT(names(on + "n" + running), ElementsAre());
  EXPECT_THAT(names(on + running), ElementsAre("b", "a"));
  EXPECT_THAT(names("/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1"), ElementsAre("b", "a"));
  world_.Merge(ResourceType::kPods, "c", {{"status", {{"phase", "Failed"}}}});
  EXPECT_THAT(names(on + "n1" + running), ElementsAre());
  EXPECT_EQ(world_.Call("GET", "/api/v1/pods?resourceVersion=999").status, 504);
}

// ---- actors and onlookers -----------------------------------------------------------------------

TEST_F(ApiObjectsTest, ListenersSeeEveryChangeOnce) {
  std::vector<std::string> seen;
  world_.server.Listen([&](const ApiServer::Commit& commit) {
    seen.push_back(absl::StrCat(commit.actor, commit.before == nullptr ? " -" : " x",
                                commit.after == nullptr ? "-" : "x", " ", commit.version));
    EXPECT_EQ(commit.type, ResourceType::kPods);
  });
  world_.Create(ResourceType::kPods, PodJson("a"));
  world_.Merge(ResourceType::kPods, "a", {{"status", {{"phase", "Running"}}}});
  world_.Merge(ResourceType::kPods, "a", Json::object());
  world_.Call("DELETE", absl::StrCat(kPodsPath, "/a"));
  EXPECT_THAT(seen, ElementsAre("test -x 2", "test xx 3", "client x- 4"));
}

TEST_F(ApiObjectsTest, AChangeThatItsActorRefusesIsNone) {
  world_.Create(ResourceType::kPods, PodJson("a"));
  const uint64_t version = world_.server.version();
  const absl::Status status = world_.server.Modify(
      ResourceType::kPods, "default", "a",
      [](Json& pod) {
        pod["spec"] = 1;
        return absl::OutOfRangeError("no");
      },
      "t");
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(world_.server.version(), version);
  EXPECT_TRUE(absl::IsNotFound(world_.server.Modify(
      ResourceType::kPods, "default", "x", [](Json&) { return absl::OkStatus(); }, "t")));
}

TEST_F(ApiObjectsTest, UidsAreNeverGivenTwice) {
  std::set<std::string> uids;
  for (int i = 0; i < 3; ++i) {
    world_.Create(ResourceType::kPods, PodJson("a"));
    uids.insert(UidOf(ResourceType::kPods, "a"));
    EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  }
  EXPECT_EQ(uids.size(), 3u);
}

TEST_F(ApiObjectsTest, AListOfALabel) {
  Json other = PodJson("b");
  other["metadata"]["labels"]["team/x"] = "red";
  world_.Create(ResourceType::kPods, PodJson("a"));
  world_.Create(ResourceType::kPods, other);
  const auto names = [&](const std::string& query) {
    const Json list = world_.Call("GET", absl::StrCat(kPodsPath, "?labelSelector=", query)).body;
    std::vector<std::string> found;
    for (const Json& pod : list.at("items")) found.push_back(pod["metadata"]["name"]);
    return found;
  };
  EXPECT_THAT(names("team%2Fx%3Dred"), ElementsAre("b"));
  EXPECT_THAT(names("team%2Fx%3Dblue"), IsEmpty());
  EXPECT_EQ(world_.Call("GET", absl::StrCat(kPodsPath, "?labelSelector=team")).status, 501);
}

TEST_F(ApiObjectsTest, AGroupTellsItsVersion) {
  EXPECT_EQ(world_.Call("GET", "/apis/batch").body["preferredVersion"]["groupVersion"], "batch/v1");
  EXPECT_EQ(world_.Call("GET", "/apis/ray.io").status, 404);
  EXPECT_EQ(world_.Call("GET", "/apis/bat").status, 404);
}

TEST_F(ApiObjectsTest, WhatIsNotImplementedIsRemembered) {
  EXPECT_THAT(world_.server.unimplemented(), IsEmpty());
  EXPECT_EQ(world_.Call("GET", "/apis/apps/v1/deployments").status, 501);
  EXPECT_EQ(world_.Call("POST", absl::StrCat(kPodsPath, "/a/exec")).status, 501);
  EXPECT_EQ(world_.Call("DELETE", kPodsPath).status, 501);
  EXPECT_THAT(
      world_.server.unimplemented(),
      ElementsAre("GET /apis/apps/v1/deployments", absl::StrCat("POST ", kPodsPath, "/a/exec"),
                  absl::StrCat("DELETE ", kPodsPath)));
}

TEST_F(ApiObjectsTest, TextThatIsNoUnicodeHarmsNothing) {
  Json pod = PodJson("a");
  pod["metadata"]["annotations"]["x"] = "\xff\xfe";
  world_.Create(ResourceType::kPods, pod);
  EXPECT_FALSE(world_.Call("GET", absl::StrCat(kPodsPath, "/a")).body.is_discarded());
}

}  // namespace
}  // namespace fairlead::sim::world
