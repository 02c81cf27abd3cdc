#include "tests/differential/random_world.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/differential/random_preemption.h"

namespace fairlead::differential {
namespace {

const std::vector<std::string> kTaintKeys = {"gpu", "team", "node.kubernetes.io/unschedulable"};
const std::vector<std::string> kTaintValues = {"", "yes", "blue"};
const std::vector<std::string> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

}  // namespace

const std::vector<std::string>& ComparedPlugins() {
  static const auto& names = *new std::vector<std::string>{"NodeUnschedulable",
                                                           "NodeName",
                                                           "TaintToleration",
                                                           "NodeAffinity",
                                                           "NodePorts",
                                                           "NodeResourcesFit",
                                                           "VolumeRestrictions",
                                                           "NodeVolumeLimits",
                                                           "VolumeBinding",
                                                           "VolumeZone",
                                                           "PodTopologySpread",
                                                           "InterPodAffinity",
                                                           "NodeResourcesBalancedAllocation",
                                                           "ImageLocality",
                                                           "NodeDeclaredFeatures"};
  return names;
}

Json RandomWorld::Make(int nodes, int asked) {
  Json world;
  world["plugins"] = ComparedPlugins();
  world["pluginConfig"] = RandomPluginConfig(dice_);
  if (!OneIn(4)) world["pluginConfig"]["PodTopologySpread"] = terms_.SpreadArgs();
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
    world["ask"].push_back(WaitingPod(i, storage));
  }
  storage.MoveInto(world);
  owners_.MoveInto(world);
  if (OneIn(3)) AddPreemption(dice_, world);
  return world;
}

// ---- nodes

Json RandomWorld::Node(int number) {
  const std::string name = absl::StrCat("node-", number);
  Json labels = Json::object();
  // Some lack their own name, and a few have that of another one.
  if (!OneIn(8)) labels["kubernetes.io/hostname"] = name;
  if (OneIn(16)) labels["kubernetes.io/hostname"] = absl::StrCat("node-", Between(0, number));
  if (!OneIn(6)) labels["zone"] = Pick(kZones);
  if (OneIn(2)) labels["rack"] = absl::StrCat("r", Between(1, 4));
  if (OneIn(2)) labels["disk"] = Pick({"ssd", "hdd", ""});
  if (OneIn(2)) labels["cores"] = Pick({"4", "16", "64", "-1", "many", "0016"});
  Json allocatable = {{"cpu", Pick({"1", "2", "3900m", "8", "16", "96"})},
                      {"memory", Pick({"1Gi", "1500Mi", "2G", "4Gi", "16Gi", "33Gi", "1Ti"})},
                      {"pods", Pick({"2", "4", "110", "110"})}};
  if (OneIn(16)) allocatable["cpu"] = "0";
  if (OneIn(2)) allocatable["ephemeral-storage"] = Pick({"10Gi", "500M"});
  if (OneIn(2)) allocatable["nvidia.com/gpu"] = Pick({"1", "4", "8", "0"});
  if (OneIn(3)) allocatable["hugepages-2Mi"] = Pick({"4Mi", "64Mi"});
  if (OneIn(4)) allocatable["example.com/dongle"] = Pick({"1", "3"});
  Json spec = Json::object();
  if (OneIn(10)) spec["unschedulable"] = true;
  while (OneIn(3)) {
    spec["taints"].push_back(
        {{"key", Pick(kTaintKeys)}, {"value", Pick(kTaintValues)}, {"effect", Pick(kEffects)}});
  }
  Json features = Json::array();
  for (const char* feature : {"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits",
                              "UserNamespacesHostNetworkSupport"}) {
    if (!OneIn(3)) features.push_back(feature);
  }
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"uid", name}, {"labels", labels}}},
          {"spec", spec},
          {"status",
           {{"allocatable", allocatable},
            {"capacity", allocatable},
            {"images", images_.OfNode()},
            {"declaredFeatures", features},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

// ---- pods

Json RandomWorld::PodLabels() {
  Json labels = Json::object();
  if (!OneIn(5)) labels["app"] = Pick(kApps);
  if (OneIn(2)) labels["tier"] = Pick(kTiers);
  return labels;
}

Json RandomWorld::Requests() {
  Json requests = Json::object();
  if (OneIn(2)) requests["cpu"] = Pick({"100m", "0.5", "1", "2500m", "1e1", "0"});
  if (OneIn(2)) requests["memory"] = Pick({"64Mi", "1Gi", "500M", "0", "1"});
  if (OneIn(8)) requests["ephemeral-storage"] = Pick({"1Gi", "400M"});
  if (OneIn(5)) requests["nvidia.com/gpu"] = Pick({"1", "2", "4"});
  if (OneIn(12)) requests["hugepages-2Mi"] = Pick({"2Mi", "8Mi"});
  if (OneIn(12)) requests["example.com/dongle"] = "1";
  return requests;
}

// Little, or nothing: what scores count instead of it.
Json RandomWorld::ModestRequests() {
  Json requests = Json::object();
  if (OneIn(2)) requests["cpu"] = Pick({"10m", "100m", "250m", "1", "0"});
  if (OneIn(2)) requests["memory"] = Pick({"1", "64Mi", "200Mi", "1Gi", "0"});
  if (OneIn(6)) requests["ephemeral-storage"] = Pick({"1Mi", "100M"});
  if (OneIn(6)) requests["nvidia.com/gpu"] = "1";
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
  Json container = {{"name", name}, {"image", images_.Reference()}};
  container["resources"]["requests"] = Requests();
  return container;
}

void RandomWorld::AddContainers(Json& spec) {
  for (int64_t i = 0, count = OneIn(4) ? 2 : 1; i < count; ++i) {
    spec["containers"].push_back(Container(absl::StrCat("main-", i)));
  }
  if (OneIn(4)) AddPorts(spec["containers"][0]);
  if (OneIn(8))
    spec["containers"][0]["restartPolicyRules"] = {{{"action", "RestartAllContainers"}}};
  // With ports the API server would have written host ports by now.
  if (OneIn(8) && !spec["containers"][0].contains("ports")) {
    spec["hostNetwork"] = true;
    if (!OneIn(3)) spec["hostUsers"] = OneIn(4);
  }
  while (OneIn(4)) {
    const size_t at = spec.contains("initContainers") ? spec["initContainers"].size() : 0;
    Json init = Container(absl::StrCat("init-", at));
    if (OneIn(2)) init["restartPolicy"] = "Always";
    if (OneIn(4)) AddPorts(init);
    spec["initContainers"].push_back(init);
  }
  if (OneIn(8)) spec["overhead"] = {{"cpu", "250m"}, {"memory", "120Mi"}};
  if (OneIn(8)) AddPodRequests(spec);
}

// Requests of the pod as a whole. The API server requires that they are no less than those of its
// containers together.
void RandomWorld::AddPodRequests(Json& spec) {
  Json requests = Json::object();
  if (OneIn(2)) requests["cpu"] = Pick({"0.5", "1", "2500m", "0"});
  if (OneIn(2)) requests["memory"] = Pick({"500M", "1Gi", "0"});
  spec["resources"]["requests"] = requests;
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) {
      Json& part = container["resources"]["requests"];
      for (const auto& [resource, whole] : requests.items()) {
        if (!part.contains(resource)) continue;
        if (whole == "0" || OneIn(2)) {
          part.erase(resource);
        } else {
          part[resource] = resource == "cpu" ? "10m" : "1Mi";
        }
      }
    }
  }
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
  owners_.AddOwner(pod);
  return pod;
}

// What a kubelet says of resources: what they are, or what they are during a resize.
void RandomWorld::AddResize(Json& pod) {
  const auto report = [&](Json& status) {
    if (!OneIn(8)) status["resources"]["requests"] = Requests();
    if (!OneIn(4)) status["allocatedResources"] = Requests();
  };
  const Json& spec = pod["spec"];
  for (const char* list : {"container", "initContainer"}) {
    const std::string containers = absl::StrCat(list, "s");
    if (!spec.contains(containers)) continue;
    for (const Json& container : spec[containers]) {
      if (OneIn(4)) continue;
      Json status = {{"name", container["name"]}};
      report(status);
      pod["status"][absl::StrCat(list, "Statuses")].push_back(status);
    }
  }
  if (spec.contains("resources") && OneIn(2)) report(pod["status"]);
  if (OneIn(3)) {
    pod["status"]["conditions"].push_back({{"type", "PodResizePending"},
                                           {"status", "True"},
                                           {"reason", Pick({"Infeasible", "Deferred"})}});
  }
}

Json RandomWorld::BoundPod(int number, const std::string& node) {
  Json pod = Pod(absl::StrCat("bound-", number));
  pod["spec"]["nodeName"] = node;
  pod["status"]["phase"] = Pick({"Pending", "Running", "Running"});
  if (OneIn(8)) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  }
  if (OneIn(4)) AddResize(pod);
  Json& spec = pod["spec"];
  if (OneIn(5)) spec["affinity"]["podAntiAffinity"].update(terms_.RequiredPods(true));
  if (OneIn(4)) spec["affinity"]["podAffinity"].update(terms_.RequiredPods(false));
  if (OneIn(4)) spec["affinity"]["podAffinity"].update(terms_.PreferredPods());
  if (OneIn(4)) spec["affinity"]["podAntiAffinity"].update(terms_.PreferredPods());
  return pod;
}

Json RandomWorld::WaitingPod(int number, RandomStorage& storage) {
  const bool demanding = OneIn(2);
  Json pod = demanding ? DemandingPod(number) : ModestPod(number);
  Json& spec = pod["spec"];
  AddPreferences(spec);
  if (demanding || OneIn(8)) storage.AddVolumes(pod, false);
  if (spec.contains("volumes") && !OneIn(3)) LeaveToVolumes(spec);
  images_.AddVolumes(spec);
  return pod;
}

Json RandomWorld::DemandingPod(int number) {
  Json pod = Pod(absl::StrCat("asked-", number));
  Json& spec = pod["spec"];
  spec["tolerations"] = Tolerations();
  if (OneIn(6)) spec["nodeSelector"] = {{"zone", Pick(kZones)}};
  if (OneIn(12)) spec["nodeSelector"]["disk"] = Pick({"ssd", ""});
  if (OneIn(3)) spec["affinity"]["nodeAffinity"].update(terms_.RequiredNodes());
  if (OneIn(4)) spec["affinity"]["podAffinity"].update(terms_.RequiredPods(false));
  if (OneIn(4)) spec["affinity"]["podAntiAffinity"].update(terms_.RequiredPods(true));
  const int hard = OneIn(3) ? static_cast<int>(Between(1, 2)) : 0;
  const int soft = OneIn(4) ? 1 : 0;
  spec["topologySpreadConstraints"] = terms_.SpreadConstraints(hard, soft);
  return pod;
}

Json RandomWorld::ModestPod(int number) {
  Json pod = Pod(absl::StrCat("asked-", number));
  Json& spec = pod["spec"];
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) {
      container["resources"]["requests"] = ModestRequests();
      if (!OneIn(8)) container.erase("ports");
    }
  }
  if (spec.contains("resources")) AddPodRequests(spec);
  spec["tolerations"] = Tolerations();
  if (!OneIn(4)) {
    // Leaves the taints that only scores look at.
    spec["tolerations"].push_back({{"operator", "Exists"}, {"effect", "NoSchedule"}});
    spec["tolerations"].push_back({{"operator", "Exists"}, {"effect", "NoExecute"}});
  }
  if (OneIn(10)) spec["affinity"]["nodeAffinity"].update(terms_.RequiredNodes());
  if (OneIn(12)) spec["affinity"]["podAffinity"].update(terms_.RequiredPods(false));
  if (OneIn(12)) spec["affinity"]["podAntiAffinity"].update(terms_.RequiredPods(true));
  const int hard = OneIn(8) ? 1 : 0;
  const int soft = static_cast<int>(Between(0, 3));
  // Without any, those of the profile apply.
  if (!OneIn(3)) spec["topologySpreadConstraints"] = terms_.SpreadConstraints(hard, soft);
  return pod;
}

void RandomWorld::AddPreferences(Json& spec) {
  if (OneIn(2)) spec["affinity"]["nodeAffinity"].update(terms_.PreferredNodes());
  if (OneIn(3)) spec["affinity"]["podAffinity"].update(terms_.PreferredPods());
  if (OneIn(3)) spec["affinity"]["podAntiAffinity"].update(terms_.PreferredPods());
}

// Takes away what would refuse most nodes before the volumes are looked at.
void RandomWorld::LeaveToVolumes(Json& spec) {
  for (const char* field : {"nodeSelector", "resources", "overhead", "initContainers"}) {
    spec.erase(field);
  }
  for (Json& container : spec["containers"]) container["resources"] = Json::object();
  const Json::json_pointer required(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  if (spec.contains(required) && !OneIn(4)) {
    spec["affinity"]["nodeAffinity"].erase(required.back());
  }
  spec["tolerations"] = Json::array({{{"operator", "Exists"}}});
}

}  // namespace fairlead::differential
