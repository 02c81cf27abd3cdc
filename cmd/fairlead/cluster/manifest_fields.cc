#include "cmd/fairlead/cluster/manifest_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cmd/fairlead/terminal/nearest.h"

namespace fairlead::cmd {
namespace {

constexpr char kAnywhere[] =
    "apiVersion kind status.** metadata.name metadata.namespace metadata.labels.* "
    "metadata.annotations.* metadata.ownerReferences.** metadata.uid metadata.resourceVersion "
    "metadata.generation metadata.creationTimestamp metadata.deletionTimestamp "
    "metadata.deletionGracePeriodSeconds metadata.managedFields.** metadata.finalizers.** "
    "metadata.generateName metadata.selfLink";

constexpr char kQueue[] =
    "spec.displayName spec.parentQueue spec.priority spec.preemptMinRuntime spec.reclaimMinRuntime "
    "spec.resources.gpu.quota spec.resources.gpu.limit spec.resources.gpu.overQuotaWeight "
    "spec.resources.gpu.lendingLimit spec.resources.cpu.quota spec.resources.cpu.limit "
    "spec.resources.cpu.overQuotaWeight spec.resources.cpu.lendingLimit "
    "spec.resources.memory.quota spec.resources.memory.limit spec.resources.memory.overQuotaWeight "
    "spec.resources.memory.lendingLimit spec.resources.other.*.quota spec.resources.other.*.limit "
    "spec.resources.other.*.overQuotaWeight spec.resources.other.*.lendingLimit";

constexpr char kNodePool[] =
    "spec.provider spec.nodeClassRef.group spec.nodeClassRef.kind spec.nodeClassRef.name "
    "spec.instanceTypes[] spec.zones[] spec.allowSpot spec.reservations[] spec.labels.* "
    "spec.taints[].key "
    "spec.taints[].value spec.taints[].effect spec.startupTaints[].key spec.startupTaints[].value "
    "spec.startupTaints[].effect spec.weight spec.gpuSharing.strategy spec.gpuSharing.replicas "
    "spec.gpuSharing.renameByDefault spec.gpuSharing.migDevices.* "
    "spec.disruption.consolidationPolicy spec.disruption.consolidateAfter "
    "spec.disruption.budgets[].nodes spec.disruption.budgets[].schedule "
    "spec.disruption.budgets[].duration spec.disruption.budgets[].reasons[] spec.maxNodes "
    "spec.devices[].driver spec.devices[].count spec.devices[].capacity.* "
    "spec.devices[].attributes.*.bool spec.devices[].attributes.*.int "
    "spec.devices[].attributes.*.string spec.devices[].attributes.*.version";

constexpr char kTopology[] = "spec.levels[].nodeLabel spec.levels[].alias";

constexpr char kPodGroup[] =
    "spec.queue spec.priorityClassName spec.preemptibility spec.minMember spec.minSubGroup "
    "spec.markUnschedulable spec.schedulingBackoff spec.preemptionDelay spec.stalenessGracePeriod "
    "spec.topologyConstraint.topology spec.topologyConstraint.requiredTopologyLevel "
    "spec.topologyConstraint.preferredTopologyLevel spec.subGroups[].name spec.subGroups[].parent "
    "spec.subGroups[].minMember spec.subGroups[].minSubGroup "
    "spec.subGroups[].topologyConstraint.topology "
    "spec.subGroups[].topologyConstraint.requiredTopologyLevel "
    "spec.subGroups[].topologyConstraint.preferredTopologyLevel";

constexpr char kPriorityClass[] = "value globalDefault description preemptionPolicy";

constexpr char kPod[] =
    "spec.activeDeadlineSeconds spec.affinity.nodeAffinity.** spec.affinity.podAffinity.** "
    "spec.affinity.podAntiAffinity.** spec.automountServiceAccountToken spec.dnsConfig.** "
    "spec.dnsPolicy spec.enableServiceLinks spec.ephemeralContainers.** spec.hostAliases.** "
    "spec.hostIPC spec.hostNetwork spec.hostPID spec.hostUsers spec.hostname "
    "spec.hostnameOverride spec.imagePullSecrets.** spec.nodeName spec.nodeSelector.* spec.os.** "
    "spec.overhead.* spec.preemptionPolicy spec.priority spec.priorityClassName "
    "spec.readinessGates.** spec.resourceClaims.** spec.resources.** spec.restartPolicy "
    "spec.runtimeClassName spec.schedulerName spec.schedulingGates.** spec.schedulingGroup.** "
    "spec.securityContext.** spec.serviceAccount spec.serviceAccountName "
    "spec.setHostnameAsFQDN spec.shareProcessNamespace spec.subdomain "
    "spec.terminationGracePeriodSeconds spec.tolerations.** spec.topologySpreadConstraints.** "
    "spec.volumes.**";

constexpr const char* kContainerFields[] = {"args.**",
                                            "command.**",
                                            "env.**",
                                            "envFrom.**",
                                            "image",
                                            "imagePullPolicy",
                                            "lifecycle.**",
                                            "livenessProbe.**",
                                            "name",
                                            "ports.**",
                                            "readinessProbe.**",
                                            "resizePolicy.**",
                                            "resources.limits.*",
                                            "resources.requests.*",
                                            "resources.claims.**",
                                            "restartPolicy",
                                            "restartPolicyRules.**",
                                            "securityContext.**",
                                            "startupProbe.**",
                                            "stdin",
                                            "stdinOnce",
                                            "terminationMessagePath",
                                            "terminationMessagePolicy",
                                            "tty",
                                            "volumeDevices.**",
                                            "volumeMounts.**",
                                            "workingDir"};

std::vector<std::string> Words(absl::string_view text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

std::vector<std::string> PodFields() {
  std::vector<std::string> fields = Words(kPod);
  for (const char* list : {"spec.containers[].", "spec.initContainers[]."}) {
    for (const char* field : kContainerFields) fields.push_back(absl::StrCat(list, field));
  }
  return fields;
}

class Walk {
 public:
  explicit Walk(std::vector<std::string> known) : known_(std::move(known)) {}

  // `pattern`: where the value stands, as the known fields are spelled.
  void Visit(const Json& value, const std::string& pattern, const std::string& path) {
    if (value.is_array()) {
      size_t i = 0;
      for (const Json& item : value.items()) {
        Visit(item, absl::StrCat(pattern, "[]"), absl::StrCat(path, "[", i++, "]"));
      }
      return;
    }
    for (const auto& [key, field] : value.fields()) {
      const std::string at = path.empty() ? key : absl::StrCat(path, ".", key);
      const std::string named = pattern.empty() ? key : absl::StrCat(pattern, ".", key);
      const std::string any = absl::StrCat(pattern, ".*");
      if (Has(absl::StrCat(named, ".**"))) continue;
      if (Leads(named)) {
        Visit(field, named, at);
      } else if (!pattern.empty() && Leads(any)) {
        Visit(field, any, at);
      } else {
        unknown_.push_back({at, Nearest(key, Siblings(pattern)), field.key_place()});
      }
    }
  }

  std::vector<UnknownField> Take() { return std::move(unknown_); }

 private:
  [[nodiscard]] bool Has(const std::string& pattern) const {
    return std::find(known_.begin(), known_.end(), pattern) != known_.end();
  }
  // Whether it is a known field, or above one.
  [[nodiscard]] bool Leads(const std::string& pattern) const {
    return std::any_of(known_.begin(), known_.end(), [&](const std::string& field) {
      return absl::StartsWith(field, pattern) &&
             (field.size() == pattern.size() || field[pattern.size()] == '.' ||
              field[pattern.size()] == '[');
    });
  }
  [[nodiscard]] std::vector<std::string> Siblings(const std::string& pattern) const {
    const std::string prefix = pattern.empty() ? "" : absl::StrCat(pattern, ".");
    std::vector<std::string> names;
    for (const std::string& field : known_) {
      if (!absl::StartsWith(field, prefix)) continue;
      const std::string rest = field.substr(prefix.size());
      names.push_back(rest.substr(0, rest.find_first_of(".[")));
    }
    return names;
  }

  std::vector<std::string> known_;
  std::vector<UnknownField> unknown_;
};

}  // namespace

std::vector<std::string> KnownFields(absl::string_view api_version, absl::string_view kind) {
  if (kind == "Queue") return Words(kQueue);
  if (kind == "NodePool") return Words(kNodePool);
  if (kind == "Topology") return Words(kTopology);
  if (kind == "PodGroup" && absl::StartsWith(api_version, "scheduling.run.ai/")) {
    return Words(kPodGroup);
  }
  if (kind == "PriorityClass") return Words(kPriorityClass);
  if (kind == "Pod") return PodFields();
  return {};
}

std::vector<UnknownField> UnknownFields(const Json& object) {
  std::vector<std::string> known =
      KnownFields(object.TextAt({"apiVersion"}), object.TextAt({"kind"}));
  const bool whole = !known.empty();
  for (std::string& field : Words(kAnywhere)) known.push_back(std::move(field));
  if (!whole) {
    for (const auto& [key, value] : object.fields()) {
      if (key != "metadata") known.push_back(absl::StrCat(key, ".**"));
    }
  }
  Walk walk(std::move(known));
  walk.Visit(object, "", "");
  return walk.Take();
}

}  // namespace fairlead::cmd
