#include "sim/world/objects.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/world/device_objects.h"
#include "sim/world/facts.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr int64_t kDefaultPods = 110;
constexpr size_t kMaxLabel = 63;

Json Bounds(const Operation& fields, const std::string& resource) {
  const auto number = [&](const std::string& key) -> Json {
    const std::string text = fields.Text(key);
    if (text.empty()) return -1;
    return Json::parse(text, nullptr, false);
  };
  Json quota = number(resource + "_quota"), limit = number(resource + "_limit");
  if (!quota.is_number()) quota = -1;
  if (!limit.is_number()) limit = -1;
  return {{"quota", quota}, {"limit", limit}, {"overQuotaWeight", 1}};
}

void AddOddity(Json& pod, const std::string& odd) {
  Json& spec = pod["spec"];
  if (odd == "selector") spec["nodeSelector"] = {{"no-such-label", "typo"}};
  if (odd == "volume") {
    spec["volumes"] =
        Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data-0"}}}}});
  }
  if (odd == "gated") spec["schedulingGates"] = Json::array({{{"name", "example.com/wait"}}});
  if (odd == "namespace-affinity" || odd == "namespace-anti-affinity") {
    const Json term = {{"labelSelector", {{"matchLabels", {{"app", "x"}}}}},
                       {"namespaceSelector", {{"matchLabels", {{"team", "x"}}}}},
                       {"topologyKey", "kubernetes.io/hostname"}};
    const char* kind = odd == "namespace-affinity" ? "podAffinity" : "podAntiAffinity";
    spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"] = Json::array({term});
  }
}

// Where the pod may run: see objects.h.
void AddPlacement(Json& pod, const Operation& fields) {
  Json& spec = pod["spec"];
  const std::string app = fields.Text("app");
  if (!app.empty()) pod["metadata"]["labels"]["app"] = app;
  const std::pair<std::string, std::string> select =
      absl::StrSplit(fields.Text("select"), absl::MaxSplits(':', 1));
  if (!select.first.empty()) spec["nodeSelector"][select.first] = select.second;
  const std::string required = "requiredDuringSchedulingIgnoredDuringExecution";
  const std::string zones = fields.Text("zones");
  if (!zones.empty()) {
    const std::vector<std::string> values = absl::StrSplit(zones, ',');
    const Json expression = {
        {"key", "topology.kubernetes.io/zone"}, {"operator", "In"}, {"values", values}};
    spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] =
        Json::array({{{"matchExpressions", Json::array({expression})}}});
  }
  const std::string topology = fields.Text("topology");
  const auto term = [&](const std::string& other) {
    return Json::array({{{"labelSelector", {{"matchLabels", {{"app", other}}}}},
                         {"topologyKey", topology.empty() ? "kubernetes.io/hostname" : topology}}});
  };
  if (!fields.Text("near").empty()) {
    spec["affinity"]["podAffinity"][required] = term(fields.Text("near"));
  }
  if (!fields.Text("apart").empty()) {
    spec["affinity"]["podAntiAffinity"][required] = term(fields.Text("apart"));
  }
  if (!fields.Text("spread").empty()) {
    spec["topologySpreadConstraints"] =
        Json::array({{{"maxSkew", 1},
                      {"topologyKey", fields.Text("spread")},
                      {"whenUnsatisfiable", "DoNotSchedule"},
                      {"labelSelector", {{"matchLabels", {{"app", app}}}}}}});
  }
}

void AddShard(const Operation& fields, Json& object) {
  if (fields.Text("shard").empty()) return;
  object["metadata"]["labels"][kShardLabel] = fields.Text("shard");
}

// The end of a text that is too long for a label.
std::string LabelOf(const std::string& text) {
  if (text.size() <= kMaxLabel) return text;
  std::string end = text.substr(text.size() - kMaxLabel);
  while (!end.empty() && absl::ascii_isalnum(end.front()) == 0) end.erase(0, 1);
  return end;
}

}  // namespace

std::string JobLabel(const std::string& name) { return LabelOf(name); }

void SetCondition(Json& object, const std::string& type, bool value, const std::string& reason) {
  Json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (Json& condition : conditions) {
    if (condition.value("type", "") != type) continue;
    condition["status"] = value ? "True" : "False";
    condition["reason"] = reason;
    return;
  }
  conditions.push_back({{"type", type}, {"status", value ? "True" : "False"}, {"reason", reason}});
}

void SetNodeReady(Json& node, bool ready) {
  SetCondition(node, "Ready", ready, ready ? "KubeletReady" : "KubeletNotReady");
}

Json MakeNode(const Operation& fields) {
  const std::string name = fields.Text("name");
  Json labels = {{"kubernetes.io/hostname", LabelOf(name)},
                 {"kubernetes.io/arch", "amd64"},
                 {"kubernetes.io/os", "linux"},
                 {"topology.kubernetes.io/zone",
                  fields.Text("zone").empty() ? "zone-a" : fields.Text("zone")}};
  const int64_t gpus = fields.Number("gpu");
  if (gpus > 0) {
    labels["nvidia.com/gpu.product"] = "Sim-GPU";
    labels["nvidia.com/gpu.memory"] = "40000";
    labels["nvidia.com/gpu.count"] = absl::StrCat(gpus);
  }
  Json amounts = {{"cpu", absl::StrCat(fields.Number("cpu", 8000), "m")},
                  {"memory", absl::StrCat(fields.Number("memory", int64_t{32} << 30))},
                  {"pods", absl::StrCat(fields.Number("pods", kDefaultPods))}};
  if (gpus > 0) amounts["nvidia.com/gpu"] = absl::StrCat(gpus);
  Json node = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata", {{"name", name}, {"labels", labels}}},
               {"spec", {{"providerID", absl::StrCat("static://", name)}}},
               {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
  AddShard(fields, node);
  SetNodeReady(node, true);
  return node;
}

Json MakeQueue(const Operation& fields) {
  Json spec = {{"resources",
                {{"gpu", Bounds(fields, "gpu")},
                 {"cpu", Bounds(fields, "cpu")},
                 {"memory", Bounds(fields, "memory")}}}};
  if (!fields.Text("parent").empty()) spec["parentQueue"] = fields.Text("parent");
  if (!fields.Text("priority").empty()) spec["priority"] = fields.Number("priority");
  Json meta = {{"name", fields.Text("name")}};
  if (!fields.Text("over_quota").empty()) {
    meta["annotations"]["fairlead.dev/over-quota"] = fields.Text("over_quota");
  }
  Json queue = {{"apiVersion", "scheduling.run.ai/v2"},
                {"kind", "Queue"},
                {"metadata", meta},
                {"spec", spec}};
  AddShard(fields, queue);
  return queue;
}

Json MakeGroup(const Operation& fields) {
  Json spec = {{"queue", fields.Text("queue")}, {"minMember", fields.Number("min", 1)}};
  if (!fields.Text("class").empty()) spec["priorityClassName"] = fields.Text("class");
  const int64_t parts = fields.Number("sub_groups");
  if (parts > 0) {
    spec.erase("minMember");
    spec["minSubGroup"] = 1;
    for (int64_t i = 0; i < parts; ++i) {
      spec["subGroups"].push_back(
          {{"name", absl::StrCat("s", i)}, {"minMember", fields.Number("sub_min", 1)}});
    }
  }
  Json group = {{"apiVersion", "scheduling.run.ai/v2alpha2"},
                {"kind", "PodGroup"},
                {"metadata", {{"name", fields.Text("name")}, {"namespace", fields.Text("ns")}}},
                {"spec", spec}};
  AddShard(fields, group);
  return group;
}

Json MakePod(const Operation& fields, const std::string& name) {
  Json labels = Json::object(), annotations = Json::object();
  // A queue whose name is too long for a label is named by the PodGroup alone.
  const std::string queue = fields.Text("queue");
  if (!queue.empty() && queue.size() <= kMaxLabel) labels["kai.scheduler/queue"] = queue;
  const std::string priority_class = fields.Text("class");
  const bool class_in_label = fields.Text("class_in") == "label";
  if (class_in_label) labels["priorityClassName"] = priority_class;
  if (!fields.Text("name").empty()) labels["sim/job"] = JobLabel(fields.Text("name"));
  if (!fields.Text("group").empty()) annotations["pod-group-name"] = fields.Text("group");
  if (!fields.Text("fraction").empty()) annotations["gpu-fraction"] = fields.Text("fraction");
  if (!fields.Text("note").empty()) annotations["example.com/note"] = fields.Text("note");
  if (!fields.Text("run").empty()) annotations["sim/run-seconds"] = fields.Text("run");
  Json requests = {{"cpu", absl::StrCat(fields.Number("cpu", 1000), "m")},
                   {"memory", absl::StrCat(fields.Number("memory", int64_t{1} << 30))}};
  if (!fields.Text("cpu_text").empty()) requests["cpu"] = fields.Text("cpu_text");
  if (!fields.Text("memory_text").empty()) requests["memory"] = fields.Text("memory_text");
  Json limits = Json::object();
  if (!fields.Text("gpu").empty() && fields.Text("gpu") != "0") {
    requests["nvidia.com/gpu"] = fields.Text("gpu");
    limits["nvidia.com/gpu"] = fields.Text("gpu");
  }
  if (!fields.Text("extended").empty()) {
    requests[kExtendedResource] = limits[kExtendedResource] = fields.Text("extended");
  }
  for (int64_t i = fields.Number("names"); i > 0; --i) {
    const std::string resource = absl::StrCat(kUnknownResource, LabelOf(name), "-", i);
    requests[resource] = limits[resource] = "1";
  }
  const std::string scheduler = fields.Text("scheduler");
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", name},
                {"namespace", fields.Text("ns")},
                {"labels", labels},
                {"annotations", annotations}}},
              {"spec",
               {{"schedulerName", scheduler.empty() ? "fairlead" : scheduler},
                {"terminationGracePeriodSeconds", fields.Number("grace", 2)},
                {"containers",
                 Json::array({{{"name", "c"},
                               {"image", "i"},
                               {"resources", {{"requests", requests}, {"limits", limits}}}}})}}},
              {"status", {{"phase", "Pending"}}}};
  if (!priority_class.empty() && !class_in_label) {
    pod["spec"]["priorityClassName"] = priority_class;
  }
  AddShard(fields, pod);
  AddOddity(pod, fields.Text("odd"));
  AddPlacement(pod, fields);
  AddClaims(pod, fields, name);
  AddVolumes(pod, fields, name);
  if (!fields.Text("tolerate").empty()) {
    pod["spec"]["tolerations"] =
        Json::array({{{"key", fields.Text("tolerate")}, {"operator", "Exists"}}});
  }
  if (!fields.Text("node").empty()) pod["spec"]["nodeName"] = fields.Text("node");
  return pod;
}

Json MakeStaticPod(const std::string& name, const std::string& node) {
  Operation fields;
  fields.With("ns", "kube-system").With("scheduler", "default-scheduler").With("cpu", 100);
  Json pod = MakePod(fields, name);
  pod["spec"]["nodeName"] = node;
  pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "mirror";
  pod["metadata"]["annotations"]["kubernetes.io/config.source"] = "file";
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                     {"kind", "Node"},
                                                     {"name", node},
                                                     {"uid", "node"},
                                                     {"controller", true}}});
  return pod;
}

Json MakeNamespace(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Namespace"},
          {"metadata", {{"name", name}, {"labels", {{"kubernetes.io/metadata.name", name}}}}},
          {"status", {{"phase", "Active"}}}};
}

Json MakePriorityClass(const std::string& name, int64_t value) {
  return {{"apiVersion", "scheduling.k8s.io/v1"},
          {"kind", "PriorityClass"},
          {"metadata", {{"name", name}}},
          {"value", value}};
}

}  // namespace fairlead::sim::world
