#include "tests/differential/random_preemption.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/differential/random_terms.h"

namespace fairlead::differential {
namespace {

Json Budget(Dice& dice, const std::string& ns, const std::string& app) {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", app}, {"namespace", ns}, {"uid", absl::StrCat(ns, "-", app)}}},
          {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", app}}}}}}},
          {"status",
           {{"disruptionsAllowed", dice.Between(0, 2)},
            {"currentHealthy", 4},
            {"desiredHealthy", 1},
            {"expectedPods", 4}}}};
}

// Where another pod of the node has ports of the host already, which is known in `taken`:
// kube-scheduler forgets a port that two pods have when the first of them goes.
void LeavePorts(Json& pod, std::set<std::string>& taken) {
  std::vector<Json*> with_ports;
  for (const char* list : {"containers", "initContainers"}) {
    if (!pod["spec"].contains(list)) continue;
    for (Json& container : pod["spec"][list]) {
      if (container.contains("ports")) with_ports.push_back(&container);
    }
  }
  if (with_ports.empty() || taken.insert(pod["spec"]["nodeName"].get<std::string>()).second) return;
  for (Json* container : with_ports) container->erase("ports");
}

// Names of claims that are ReadWriteOncePod in some namespace.
std::set<std::string> OncePodNames(const Json& world) {
  std::set<std::string> names;
  for (const Json& claim : world["persistentVolumeClaims"]) {
    for (const Json& mode : claim["spec"].value("accessModes", Json::array())) {
      if (mode == "ReadWriteOncePod") names.insert(claim["metadata"]["name"].get<std::string>());
    }
  }
  return names;
}

// One running pod at most has a claim of such a name, as it is in a cluster. kube-scheduler counts
// the claims in use, and takes one off for each pod with a claim of that name that goes, whatever
// its namespace.
void LeaveClaims(const std::set<std::string>& once_pod, Json& pod, std::set<std::string>& taken) {
  const auto volumes = pod["spec"].find("volumes");
  if (volumes == pod["spec"].end()) return;
  Json kept = Json::array();
  std::set<std::string> own;
  for (const Json& volume : *volumes) {
    std::string name;
    if (volume.contains("persistentVolumeClaim")) {
      name = volume["persistentVolumeClaim"]["claimName"].get<std::string>();
    }
    if (once_pod.contains(name)) {
      if (taken.contains(name)) continue;
      own.insert(name);
    }
    kept.push_back(volume);
  }
  taken.merge(own);
  *volumes = std::move(kept);
}

}  // namespace

void AddPreemption(Dice& dice, Json& world) {
  world["preempt"] = true;
  // A permutation of the moments.
  const int64_t moments = 997;
  const int64_t stride = dice.Between(1, moments - 1);
  int64_t number = 0;
  std::set<std::string> nodes_with_ports;
  const std::set<std::string> once_pod = OncePodNames(world);
  std::set<std::string> taken;
  for (Json& pod : world["pods"]) {
    LeavePorts(pod, nodes_with_ports);
    LeaveClaims(once_pod, pod, taken);
    pod["metadata"].erase("deletionTimestamp");
    pod["metadata"].erase("deletionGracePeriodSeconds");
    pod["spec"]["priority"] = dice.Between(-1, 3) * 100;
    const absl::Time start = absl::FromUnixSeconds(1'700'000'000 + ++number * stride % moments);
    pod["status"] = {
        {"phase", "Running"},
        {"startTime", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", start, absl::UTCTimeZone())},
        {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  }
  for (Json& pod : world["ask"]) pod["spec"]["priority"] = dice.Between(0, 4) * 100;
  world["podDisruptionBudgets"] = Json::array();
  for (const std::string& ns : kNamespaces) {
    for (const std::string& app : kApps) {
      if (!dice.OneIn(3)) world["podDisruptionBudgets"].push_back(Budget(dice, ns, app));
    }
  }
}

}  // namespace fairlead::differential
