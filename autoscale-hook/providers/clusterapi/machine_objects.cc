#include "autoscale-hook/providers/clusterapi/machine_objects.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autoscale-hook/providers/groups/group_offer.h"
#include "base/status_macros.h"

namespace fairlead::hook {
namespace {

constexpr size_t kLongestText = 2048;
constexpr char kPlacePrefix[] = "machine.cluster.x-k8s.io://";

std::string Cut(std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  return text;
}

std::string IdOf(ScalableKind kind, absl::string_view ns, absl::string_view name) {
  return absl::StrCat(ScalableKindName(kind), "/", ns, "/", name);
}

// The first of two places where versions of the API have a text.
std::string EitherText(const Json& object, std::initializer_list<absl::string_view> newer,
                       std::initializer_list<absl::string_view> older) {
  std::string text = object.TextAt(newer);
  return Cut(text.empty() ? object.TextAt(older) : std::move(text));
}

class ObjectErrors {
 public:
  explicit ObjectErrors(std::string object) : object_(std::move(object)) {}
  absl::Status operator()(absl::string_view field, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(object_, ": ", field, ": ", what));
  }

 private:
  std::string object_;
};

absl::StatusOr<int64_t> SizeIn(absl::string_view text, const ObjectErrors& error,
                               absl::string_view field) {
  int64_t size = 0;
  if (text.size() > 20 || !absl::SimpleAtoi(text, &size)) {
    return error(field, absl::StrCat("\"", text.substr(0, 40), "\" is not a whole number"));
  }
  if (size < 0) return error(field, absl::StrCat(size, " is negative"));
  if (size > kLargestSize) return error(field, absl::StrCat(size, " is more than ", kLargestSize));
  return size;
}

std::string AnnotationField(absl::string_view key) {
  return absl::StrCat("metadata.annotations[", key, "]");
}

absl::StatusOr<std::string> RequiredText(const Json& object,
                                         std::initializer_list<absl::string_view> path,
                                         const ObjectErrors& error, absl::string_view field) {
  std::string text = object.TextAt(path);
  if (text.empty()) return error(field, "missing");
  if (text.size() > kLongestText) return error(field, "too long");
  return text;
}

absl::StatusOr<std::vector<std::string>> ProviderIdsIn(const Json& object,
                                                       const ObjectErrors& error) {
  constexpr char kField[] = "spec.providerIDList";
  std::vector<std::string> ids;
  const Json* const list = object.At({"spec", "providerIDList"});
  if (list == nullptr || list->is_null()) return ids;
  if (!list->is_array()) return error(kField, "not a list");
  if (list->items().size() > kMostInstances) {
    return error(kField, absl::StrCat("more than ", kMostInstances));
  }
  for (const Json& item : list->items()) {
    if (item.type() != Json::Type::kString || item.text().empty()) {
      return error(kField, "an item is not a string");
    }
    ids.push_back(Cut(item.text()));
  }
  return ids;
}

bool IsDefiniteReason(absl::string_view reason) {
  return absl::EndsWith(reason, "Failed") || absl::EndsWith(reason, "Error") ||
         absl::StartsWith(reason, "Insufficient") || absl::StartsWith(reason, "Invalid");
}

// Conditions of v1beta1 say by a severity what is an error; those of v1beta2 by their reason alone.
void ReadConditions(const Json* conditions, bool older, ClusterMachine& machine) {
  if (conditions == nullptr || !conditions->is_array()) return;
  for (const Json& condition : conditions->items()) {
    const std::string type = condition.TextAt({"type"});
    if (type != "InfrastructureReady" && type != "BootstrapConfigReady" &&
        type != "BootstrapReady") {
      continue;
    }
    if (condition.TextAt({"status"}) != "False") continue;
    const std::string reason = Cut(condition.TextAt({"reason"}));
    const bool is_error =
        older ? condition.TextAt({"severity"}) == "Error" : IsDefiniteReason(reason);
    if (!is_error || reason.empty()) continue;
    machine.trouble_reason = reason;
    machine.trouble_message = Cut(condition.TextAt({"message"}));
    return;
  }
}

void ReadFailure(const Json& object, ClusterMachine& machine) {
  machine.failure_reason = EitherText(object, {"status", "failureReason"},
                                      {"status", "deprecated", "v1beta1", "failureReason"});
  machine.failure_message = EitherText(object, {"status", "failureMessage"},
                                       {"status", "deprecated", "v1beta1", "failureMessage"});
  if (machine.failure_reason.empty() &&
      (!machine.failure_message.empty() || object.TextAt({"status", "phase"}) == "Failed")) {
    machine.failure_reason = "Failed";
  }
  const bool older = absl::EndsWith(object.TextAt({"apiVersion"}), "/v1beta1");
  ReadConditions(object.At({"status", "conditions"}), older, machine);
}

void ReadController(const Json& object, ClusterMachine& machine) {
  const Json* const owners = object.At({"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return;
  for (const Json& owner : owners->items()) {
    const std::string version = owner.TextAt({"apiVersion"});
    if (!absl::StartsWith(version, "cluster.x-k8s.io/")) continue;
    const std::string kind = owner.TextAt({"kind"});
    if (kind != "MachineSet" && kind != "MachinePool") continue;
    machine.owner_kind = kind;
    machine.owner_name = Cut(owner.TextAt({"name"}));
    machine.owner_uid = Cut(owner.TextAt({"uid"}));
    return;
  }
}

}  // namespace

const char* ScalableKindName(ScalableKind kind) {
  return kind == ScalableKind::kMachinePool ? "MachinePool" : "MachineDeployment";
}

const char* ScalablePlural(ScalableKind kind) {
  return kind == ScalableKind::kMachinePool ? "machinepools" : "machinedeployments";
}

std::string Scalable::Id() const { return IdOf(kind, ns, name); }

std::string GroupIdOf(ScalableKind kind, const Json& object) {
  const std::string name = object.TextAt({"metadata", "name"});
  if (name.empty() || name.size() > kLongestText) return "";
  return IdOf(kind, Cut(object.TextAt({"metadata", "namespace"})), name);
}

bool IsNodeGroup(const Json& object) {
  const Json* const annotations = object.At({"metadata", "annotations"});
  return annotations != nullptr && annotations->Find(kMinSizeAnnotation) != nullptr &&
         annotations->Find(kMaxSizeAnnotation) != nullptr &&
         object.At({"metadata", "deletionTimestamp"}) == nullptr;
}

absl::StatusOr<Scalable> DecodeScalable(ScalableKind kind, const Json& object) {
  const std::string id = GroupIdOf(kind, object);
  const ObjectErrors error(id.empty() ? absl::StrCat(ScalableKindName(kind), " without a name")
                                      : id);
  Scalable group;
  group.kind = kind;
  FAIRLEAD_ASSIGN_OR_RETURN(group.name,
                            RequiredText(object, {"metadata", "name"}, error, "metadata.name"));
  group.ns = object.TextAt({"metadata", "namespace"});
  FAIRLEAD_ASSIGN_OR_RETURN(group.uid,
                            RequiredText(object, {"metadata", "uid"}, error, "metadata.uid"));
  FAIRLEAD_ASSIGN_OR_RETURN(
      group.resource_version,
      RequiredText(object, {"metadata", "resourceVersion"}, error, "metadata.resourceVersion"));
  group.deleting = object.At({"metadata", "deletionTimestamp"}) != nullptr;
  for (const auto& [key, size] : {std::pair(kMinSizeAnnotation, &group.min_size),
                                  std::pair(kMaxSizeAnnotation, &group.max_size)}) {
    FAIRLEAD_ASSIGN_OR_RETURN(*size, SizeIn(object.TextAt({"metadata", "annotations", key}), error,
                                            AnnotationField(key)));
  }
  if (group.min_size > group.max_size) {
    return error(AnnotationField(kMinSizeAnnotation),
                 absl::StrCat(group.min_size, " is more than the maximum of ", group.max_size));
  }
  FAIRLEAD_ASSIGN_OR_RETURN(group.replicas,
                            SizeIn(object.TextAt({"spec", "replicas"}), error, "spec.replicas"));
  const Json* const annotations = object.At({"metadata", "annotations"});
  group.paused = object.TextAt({"spec", "paused"}) == "true" ||
                 (annotations != nullptr && annotations->Find(kPausedAnnotation) != nullptr);
  const std::string removed =
      object.TextAt({"metadata", "annotations", kRemovedMachinesAnnotation});
  for (const absl::string_view uid : absl::StrSplit(removed, ',', absl::SkipWhitespace())) {
    group.removed.emplace(absl::StripAsciiWhitespace(uid));
  }
  if (kind == ScalableKind::kMachinePool) {
    FAIRLEAD_ASSIGN_OR_RETURN(group.provider_ids, ProviderIdsIn(object, error));
  }
  return group;
}

std::string ClusterMachine::PlaceId() const { return absl::StrCat(kPlacePrefix, ns, "/", name); }

absl::StatusOr<ClusterMachine> DecodeMachine(const Json& object) {
  ClusterMachine machine;
  machine.ns = object.TextAt({"metadata", "namespace"});
  machine.name = object.TextAt({"metadata", "name"});
  const ObjectErrors error(machine.name.empty()
                               ? std::string("Machine without a name")
                               : absl::StrCat("Machine ", Cut(machine.ns), "/", Cut(machine.name)));
  for (const auto& [field, text] : {std::pair("name", &machine.name),
                                    {"uid", &machine.uid},
                                    {"resourceVersion", &machine.resource_version}}) {
    FAIRLEAD_ASSIGN_OR_RETURN(
        *text, RequiredText(object, {"metadata", field}, error, absl::StrCat("metadata.", field)));
  }
  machine.deployment = Cut(object.TextAt({"metadata", "labels", kDeploymentNameLabel}));
  machine.provider_id = object.TextAt({"spec", "providerID"});
  if (machine.provider_id.size() > kLongestText) return error("spec.providerID", "too long");
  machine.deleting = object.At({"metadata", "deletionTimestamp"}) != nullptr;
  const Json* const annotations = object.At({"metadata", "annotations"});
  machine.annotated =
      annotations != nullptr && annotations->Find(kDeleteMachineAnnotation) != nullptr;
  machine.has_node = !object.TextAt({"status", "nodeRef", "name"}).empty();
  ReadController(object, machine);
  ReadFailure(object, machine);
  return machine;
}

std::string GroupIdOf(ScalableKind kind, const ClusterMachine& machine) {
  const bool pool = kind == ScalableKind::kMachinePool;
  return IdOf(kind, Cut(machine.ns), pool ? machine.owner_name : machine.deployment);
}

bool IsMachineOf(const ClusterMachine& machine, const Scalable& group) {
  if (machine.ns != group.ns) return false;
  if (group.kind == ScalableKind::kMachinePool) {
    return machine.owner_kind == "MachinePool" && machine.owner_name == group.name;
  }
  return machine.owner_kind == "MachineSet" && machine.deployment == group.name;
}

bool IsShortage(absl::string_view reason, absl::string_view message) {
  for (const absl::string_view word :
       {"insufficient", "out of capacity", "outofcapacity", "no available", "quota", "stockout"}) {
    for (const absl::string_view text : {reason, message}) {
      if (absl::StrContains(absl::AsciiStrToLower(text), word)) return true;
    }
  }
  return false;
}

}  // namespace fairlead::hook
