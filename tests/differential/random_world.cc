#include "tests/differential/random_world.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::differential {
namespace {

const std::vector<std::string> kNamespaces = {"blue", "green", "red"};
const std::vector<std::string> kZones = {"a", "b", "c"};
const std::vector<std::string> kApps = {"db", "web", "cache"};
const std::vector<std::string> kTiers = {"front", "back"};
const std::vector<std::string> kTopologyKeys = {"zone", "kubernetes.io/hostname", "rack"};
const std::vector<std::string> kTaintKeys = {"gpu", "team", "node.kubernetes.io/unschedulable"};
const std::vector<std::string> kTaintValues = {"", "yes", "blue"};
const std::vector<std::string> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

}  // namespace

const std::vector<std::string>& ComparedPlugins() {
  static const auto& names = *new std::vector<std::string>{
      "NodeUnschedulable", "TaintToleration",    "NodeAffinity",     "NodePorts",
      "NodeResourcesFit",  "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
      "VolumeZone",        "PodTopologySpread",  "InterPodAffinity"};
  return names;
}

Json RandomWorld::Make(int nodes, int asked) {
  Json world;
  world["plugins"] = ComparedPlugins();
  for (const std::string& name : kNamespaces) {
    Json labels = {{"kubernetes.io/metadata.name", name}};
    if (!OneIn(3)) labels["team"] = Pick({"x", "y"});
    world["namespaces"].push_back(
        {{"apiVersion", "v1"},
         {"kind", "Namespace"},
         {"metadata", {{"name", name}, {"uid", name}, {"labels", labels}}}});
  }
  RandomStorage storage(dice_, kNamespaces, nodes);
  world["pods"] = Json::array();
  int number = 0;
  for (int i = 0; i < nodes; ++i) {
    Json node = Node(i);
    storage.AddZoneLabels(node["metadata"]["labels"]);
    const std::string name = node["metadata"]["name"];
    world["nodes"].push_back(std::move(node));
    for (int64_t left = Between(0, 4); left > 0; --left) {
      Json pod = BoundPod(number++, name);
      storage.AddVolumes(pod, true);
      world["pods"].push_back(std::move(pod));
    }
  }
  for (int i = 0; i < asked; ++i) {
    Json pod = WaitingPod(i);
    storage.AddVolumes(pod, false);
    if (pod["spec"].contains("volumes") && !OneIn(3)) LeaveToVolumes(pod["spec"]);
    world["ask"].push_back(std::move(pod));
  }
  storage.MoveInto(world);
  return world;
}

// ---- nodes

Json RandomWorld::Node(int number) {
  const std::string name = absl::StrCat("node-", number);
  Json labels = Json::object();
  if (!OneIn(8)) labels["kubernetes.io/hostname"] = name;
  if (!OneIn(6)) labels["zone"] = Pick(kZones);
  if (OneIn(2)) labels["rack"] = absl::StrCat("r", Between(1, 4));
  if (OneIn(2)) labels["disk"] = Pick({"ssd", "hdd", ""});
  if (OneIn(2)) labels["cores"] = Pick({"4", "16", "64", "-1", "many", "0016"});
  Json allocatable = {{"cpu", Pick({"1", "2", "3900m", "8"})},
                      {"memory", Pick({"1Gi", "4Gi", "2G", "1500Mi"})},
                      {"pods", Pick({"2", "4", "110"})}};
  if (OneIn(2)) allocatable["ephemeral-storage"] = Pick({"10Gi", "500M"});
  if (OneIn(2)) allocatable["nvidia.com/gpu"] = Pick({"1", "4", "8", "0"});
  if (OneIn(3)) allocatable["hugepages-2Mi"] = Pick({"4Mi", "64Mi"});
  Json spec = Json::object();
  if (OneIn(10)) spec["unschedulable"] = true;
  while (OneIn(3)) {
    spec["taints"].push_back(
        {{"key", Pick(kTaintKeys)}, {"value", Pick(kTaintValues)}, {"effect", Pick(kEffects)}});
  }
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"uid", name}, {"labels", labels}}},
          {"spec", spec},
          {"status",
           {{"allocatable", allocatable},
            {"capacity", allocatable},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

// ---- pods

Json RandomWorld::PodLabels() {
  Json labels = Json::object();
  if (!OneIn(5)) labels["app"] = Pick(kApps);
  if (OneIn(2)) labels["tier"] = Pick(kTiers);
  return labels;
}

Json RandomWorld::Requests(bool of_pod) {
  Json requests = Json::object();
  if (OneIn(2)) requests["cpu"] = Pick({"100m", "0.5", "1", "2500m", "1e1", "0"});
  if (OneIn(2)) requests["memory"] = Pick({"64Mi", "1Gi", "500M", "0", "1"});
  if (of_pod) return requests;
  if (OneIn(8)) requests["ephemeral-storage"] = Pick({"1Gi", "400M"});
  if (OneIn(5)) requests["nvidia.com/gpu"] = Pick({"1", "2", "4"});
  if (OneIn(12)) requests["hugepages-2Mi"] = Pick({"2Mi", "8Mi"});
  if (OneIn(12)) requests["example.com/dongle"] = "1";
  return requests;
}

void RandomWorld::AddPorts(Json& container) {
  Json port = {{"containerPort", 80}, {"protocol", Pick({"TCP", "TCP", "UDP"})}};
  if (!OneIn(6)) port["hostPort"] = Between(8080, 8081);
  if (OneIn(3)) port["hostIP"] = Pick({"0.0.0.0", "127.0.0.1", "10.0.0.1", "::"});
  container["ports"].push_back(port);
}

Json RandomWorld::Container(const std::string& name) {
  Json container = {{"name", name}, {"image", "x"}};
  container["resources"]["requests"] = Requests(false);
  return container;
}

void RandomWorld::AddContainers(Json& spec) {
  for (int64_t i = 0, count = OneIn(4) ? 2 : 1; i < count; ++i) {
    spec["containers"].push_back(Container(absl::StrCat("main-", i)));
  }
  if (OneIn(4)) AddPorts(spec["containers"][0]);
  while (OneIn(4)) {
    const size_t at = spec.contains("initContainers") ? spec["initContainers"].size() : 0;
    Json init = Container(absl::StrCat("init-", at));
    if (OneIn(2)) init["restartPolicy"] = "Always";
    if (OneIn(4)) AddPorts(init);
    spec["initContainers"].push_back(init);
  }
  if (OneIn(8)) spec["overhead"] = {{"cpu", "250m"}, {"memory", "120Mi"}};
  if (OneIn(8)) spec["resources"]["requests"] = Requests(true);
}

Json RandomWorld::Tolerations() {
  Json tolerations = Json::array();
  while (OneIn(2)) {
    Json toleration = Json::object();
    if (OneIn(3)) {
      toleration["operator"] = "Exists";
      if (!OneIn(3)) toleration["key"] = Pick(kTaintKeys);
    } else {
      toleration["key"] = Pick(kTaintKeys);
      toleration["value"] = Pick(kTaintValues);
      if (OneIn(2)) toleration["operator"] = "Equal";
    }
    if (!OneIn(3)) toleration["effect"] = Pick(kEffects);
    tolerations.push_back(toleration);
  }
  return tolerations;
}

Json RandomWorld::Pod(const std::string& name) {
  Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"name", name}, {"namespace", Pick(kNamespaces)}, {"uid", name}, {"labels", PodLabels()}}},
      {"spec", {{"schedulerName", "fairlead"}, {"priority", 0}}},
      {"status", {{"phase", "Pending"}}}};
  AddContainers(pod["spec"]);
  return pod;
}

Json RandomWorld::BoundPod(int number, const std::string& node) {
  Json pod = Pod(absl::StrCat("bound-", number));
  pod["spec"]["nodeName"] = node;
  pod["status"]["phase"] = Pick({"Pending", "Running", "Running"});
  if (OneIn(8)) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  }
  if (OneIn(4)) pod["spec"]["affinity"]["podAntiAffinity"] = PodTerms(true);
  if (OneIn(6)) pod["spec"]["affinity"]["podAffinity"] = PodTerms(false);
  return pod;
}

Json RandomWorld::WaitingPod(int number) {
  Json pod = Pod(absl::StrCat("asked-", number));
  Json& spec = pod["spec"];
  spec["tolerations"] = Tolerations();
  if (OneIn(6)) spec["nodeSelector"] = {{"zone", Pick(kZones)}};
  if (OneIn(12)) spec["nodeSelector"]["disk"] = Pick({"ssd", ""});
  if (OneIn(3)) spec["affinity"]["nodeAffinity"] = NodeAffinity();
  if (OneIn(4)) spec["affinity"]["podAffinity"] = PodTerms(false);
  if (OneIn(4)) spec["affinity"]["podAntiAffinity"] = PodTerms(true);
  if (OneIn(3)) spec["topologySpreadConstraints"].push_back(SpreadConstraint());
  if (OneIn(8)) spec["topologySpreadConstraints"].push_back(SpreadConstraint());
  return pod;
}

// Takes away what would refuse most nodes before the volumes are looked at.
void RandomWorld::LeaveToVolumes(Json& spec) {
  for (const char* field : {"nodeSelector", "resources", "overhead", "initContainers"}) {
    spec.erase(field);
  }
  for (Json& container : spec["containers"]) container["resources"] = Json::object();
  if (spec.contains("affinity") && !OneIn(4)) spec["affinity"].erase("nodeAffinity");
  spec["tolerations"] = Json::array({{{"operator", "Exists"}}});
}

// ---- selectors

Json RandomWorld::NodeRequirement() {
  switch (Between(0, 4)) {
    case 0:
      return {{"key", "zone"}, {"operator", "In"}, {"values", {Pick(kZones), Pick(kZones)}}};
    case 1:
      return {{"key", "disk"}, {"operator", "NotIn"}, {"values", {Pick({"ssd", "hdd", ""})}}};
    case 2:
      return {{"key", Pick({"rack", "disk"})}, {"operator", "Exists"}};
    case 3:
      return {{"key", Pick({"rack", "zone"})}, {"operator", "DoesNotExist"}};
    default:
      return {
          {"key", "cores"}, {"operator", Pick({"Gt", "Lt"})}, {"values", {Pick({"8", "16", "0"})}}};
  }
}

Json RandomWorld::NodeTerm() {
  Json term = Json::object();
  while (OneIn(2)) term["matchExpressions"].push_back(NodeRequirement());
  while (OneIn(4)) {
    term["matchFields"].push_back({{"key", "metadata.name"},
                                   {"operator", Pick({"In", "In", "NotIn"})},
                                   {"values", {absl::StrCat("node-", Between(0, 9))}}});
  }
  return term;
}

Json RandomWorld::NodeAffinity() {
  Json terms = Json::array({NodeTerm()});
  while (OneIn(2)) terms.push_back(NodeTerm());
  return {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}};
}

Json RandomWorld::LabelSelector() {
  Json selector = Json::object();
  if (!OneIn(3)) selector["matchLabels"]["app"] = Pick(kApps);
  if (OneIn(3)) {
    selector["matchExpressions"].push_back(
        {{"key", "tier"}, {"operator", Pick({"In", "NotIn"})}, {"values", {Pick(kTiers)}}});
  } else if (OneIn(4)) {
    selector["matchExpressions"].push_back(
        {{"key", Pick({"tier", "app"})}, {"operator", Pick({"Exists", "DoesNotExist"})}});
  }
  return selector;
}

Json RandomWorld::PodTerm() {
  Json term = {{"topologyKey", Pick(kTopologyKeys)}};
  if (!OneIn(10)) term["labelSelector"] = LabelSelector();
  if (OneIn(3)) term["namespaces"] = {Pick(kNamespaces), Pick(kNamespaces)};
  if (OneIn(4)) term["namespaceSelector"] = NamespaceSelector();
  return term;
}

Json RandomWorld::NamespaceSelector() {
  switch (Between(0, 3)) {
    case 0:
      return Json::object();
    case 1:
      return {{"matchLabels", {{"team", Pick({"x", "y"})}}}};
    case 2:
      return {{"matchLabels", {{"kubernetes.io/metadata.name", Pick(kNamespaces)}}}};
    default:
      return {{"matchExpressions",
               {{{"key", "team"}, {"operator", Pick({"DoesNotExist", "Exists"})}}}}};
  }
}

Json RandomWorld::PodTerms(bool anti) {
  Json terms = Json::array({PodTerm()});
  while (OneIn(anti ? 3 : 4)) terms.push_back(PodTerm());
  return {{"requiredDuringSchedulingIgnoredDuringExecution", terms}};
}

Json RandomWorld::SpreadConstraint() {
  Json constraint = {{"maxSkew", Between(1, 3)},
                     {"topologyKey", Pick(kTopologyKeys)},
                     {"whenUnsatisfiable", OneIn(5) ? "ScheduleAnyway" : "DoNotSchedule"}};
  if (!OneIn(10)) constraint["labelSelector"] = LabelSelector();
  if (OneIn(4) && constraint["whenUnsatisfiable"] == "DoNotSchedule") {
    constraint["minDomains"] = Between(1, 5);
  }
  if (OneIn(3)) constraint["nodeAffinityPolicy"] = Pick({"Honor", "Ignore"});
  if (OneIn(3)) constraint["nodeTaintsPolicy"] = Pick({"Honor", "Ignore"});
  return constraint;
}

}  // namespace fairlead::differential
