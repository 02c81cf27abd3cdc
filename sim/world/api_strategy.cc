#include "sim/world/api_strategy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/api_schema.h"
#include "sim/world/api_validation.h"

namespace fairlead::sim::world {
namespace {

bool HasGeneration(const ResourceRow& row) {
  switch (row.type) {
    case ResourceType::kNodes:
    case ResourceType::kNamespaces:
    case ResourceType::kConfigMaps:
    case ResourceType::kLeases:
    case ResourceType::kEvents:
    case ResourceType::kResourceClaims:
    case ResourceType::kPersistentVolumeClaims:
    case ResourceType::kPersistentVolumes:
    case ResourceType::kStorageClasses:
    case ResourceType::kCsiNodes:
    case ResourceType::kCsiStorageCapacities:
    case ResourceType::kVolumeAttachments:
    case ResourceType::kServices:
      return false;
    default:
      return true;
  }
}

// Kubelets and schedulers write labels and annotations with the status of pods and nodes; the
// status of any other type carries none.
bool StatusCarriesMetadata(const ResourceRow& row) {
  return row.type == ResourceType::kPods || row.type == ResourceType::kNodes;
}

// Upstream's types drop nulls and empty lists; custom objects drop nulls. The parameters of device
// drivers are opaque and stay as they are.
void DropEmpty(bool custom, Json& value) {
  if (value.is_array()) {
    for (Json& item : value) DropEmpty(custom, item);
    return;
  }
  if (!value.is_object()) return;
  for (auto it = value.begin(); it != value.end();) {
    if (it->is_structured() && it.key() != "parameters") DropEmpty(custom, *it);
    const bool empty = it->is_null() || (!custom && it->is_array() && it->empty());
    it = empty ? value.erase(it) : std::next(it);
  }
}

void Normalize(const ResourceRow& row, Json& object) {
  DropEmpty(IsCustom(row), object);
  for (const char* half : {"spec", "status"}) {
    const auto found = object.find(half);
    if (!IsCustom(row) && found != object.end() && found->empty()) object.erase(found);
  }
  Json& meta = MakeObject(object, {"metadata"});
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const auto found = meta.find(field);
    if (found != meta.end() && (!found->is_structured() || found->empty())) meta.erase(found);
  }
}

// ---- admission ----------------------------------------------------------------------------------

ApiError ResolvePriority(const ApiStore& store, bool strict, Json& pod) {
  Json& spec = MakeObject(pod, {"spec"});
  const auto given = spec.find("priority");
  if (given != spec.end() && given->is_number_integer()) return {};
  const std::string name = TextAt(spec, {"priorityClassName"});
  if (name == "system-cluster-critical" || name == "system-node-critical") {
    spec["priority"] = name == "system-node-critical" ? 2000001000 : 2000000000;
    return {};
  }
  const auto& classes = store.All(ResourceType::kPriorityClasses);
  ObjectPtr chosen;
  if (!name.empty()) {
    chosen = store.Find(ResourceType::kPriorityClasses, name);
    if (chosen == nullptr) {
      if (!strict) return {};
      return ForbiddenError(RowOf(ResourceType::kPods), TextAt(pod, {"metadata", "name"}),
                            absl::StrCat("no PriorityClass with name ", name, " was found"));
    }
  } else {
    for (const auto& [key, object] : classes) {
      if (BoolAt(object->json(), {"globalDefault"})) chosen = object;
    }
  }
  spec["priority"] = chosen == nullptr ? 0 : IntAt(chosen->json(), {"value"});
  if (chosen != nullptr && name.empty()) {
    spec["priorityClassName"] = TextAt(chosen->json(), {"metadata", "name"});
  }
  return {};
}

void SetDefault(Json& object, const char* field, Json value) {
  if (!object.contains(field)) object[field] = std::move(value);
}

// A pod with gates says from the beginning why it waits.
void SetGatedCondition(Json& pod) {
  if (!HasItems(pod, {"spec", "schedulingGates"}) || HasItems(pod, {"status", "conditions"}))
    return;
  pod["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "SchedulingGated"},
                    {"message", "Scheduling is blocked due to non-empty scheduling gates"}}});
}

ApiError CompletePod(const ApiStore& store, WriteScope scope, Json& pod) {
  Json& spec = MakeObject(pod, {"spec"});
  SetDefault(spec, "restartPolicy", "Always");
  SetDefault(spec, "terminationGracePeriodSeconds", 30);
  SetDefault(spec, "schedulerName", "default-scheduler");
  if (scope != WriteScope::kActor) pod.erase("status");
  SetDefault(MakeObject(pod, {"status"}), "phase", "Pending");
  SetGatedCondition(pod);
  return ResolvePriority(store, scope != WriteScope::kActor, pod);
}

// NamespaceLifecycle, in worlds that have namespaces at all.
ApiError CheckNamespace(const ApiStore& store, const ResourceRow& row, const Json& object) {
  if (!row.namespaced || store.All(ResourceType::kNamespaces).empty()) return {};
  const std::string ns = TextAt(object, {"metadata", "namespace"});
  const ObjectPtr found = store.Find(ResourceType::kNamespaces, ns);
  if (found == nullptr) {
    if (ns == "default" || ns == "kube-system") return {};
    return NotFoundError(RowOf(ResourceType::kNamespaces), ns);
  }
  if (At(found->json(), {"metadata", "deletionTimestamp"}) == nullptr) return {};
  ApiError error = ForbiddenError(row, TextAt(object, {"metadata", "name"}),
                                  absl::StrCat("unable to create new content in namespace ", ns,
                                               " because it is being terminated"));
  error.details["causes"] =
      Json::array({{{"reason", "NamespaceTerminating"},
                    {"message", absl::StrCat("namespace ", ns, " is being terminated")},
                    {"field", "metadata.namespace"}}});
  return error;
}

// ---- updates ------------------------------------------------------------------------------------

void TakeBack(const Json& old, const char* field, Json& object) {
  const auto before = old.find(field);
  if (before == old.end()) {
    object.erase(field);
  } else if (!object.contains(field) || object[field] != *before) {
    object[field] = *before;
  }
}

void TakeBackMetadata(const Json& old, Json& object) {
  const Json& before = old.at("metadata");
  Json& meta = MakeObject(object, {"metadata"});
  for (const char* field :
       {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generation", "resourceVersion", "generateName"}) {
    TakeBack(before, field, meta);
  }
}

// A status write changes the status alone, and metadata where upstream lets it.
void KeepToStatus(const ResourceRow& row, const Json& old, Json& object) {
  for (auto it = object.begin(); it != object.end();) {
    const bool own = it.key() == "status" || it.key() == "metadata" || old.contains(it.key());
    it = own ? std::next(it) : object.erase(it);
  }
  for (auto it = old.begin(); it != old.end(); ++it) {
    if (it.key() == "status") continue;
    if (it.key() == "metadata" && StatusCarriesMetadata(row)) continue;
    TakeBack(old, it.key().c_str(), object);
  }
  if (StatusCarriesMetadata(row)) {
    TakeBack(old.at("metadata"), "ownerReferences", object["metadata"]);
  }
}

bool SpecChanged(const Json& old, const Json& object) {
  const auto differs = [](const Json& a, const Json& b) {
    for (auto it = a.begin(); it != a.end(); ++it) {
      if (it.key() == "metadata" || it.key() == "status") continue;
      const auto other = b.find(it.key());
      if (other == b.end() || *other != *it) return true;
    }
    return false;
  };
  return differs(old, object) || differs(object, old);
}

ApiError CheckIdentity(const ResourceRow& row, WriteScope scope, const Json& old,
                       const Json& object) {
  const std::string name = TextAt(old, {"metadata", "name"});
  const std::string other = TextAt(object, {"metadata", "name"});
  if (other != name) {
    return BadRequestError(absl::StrCat("the name of the object (", other,
                                        ") does not match the name on the URL (", name, ")"));
  }
  if (TextAt(object, {"metadata", "namespace"}) != TextAt(old, {"metadata", "namespace"})) {
    return BadRequestError("the namespace of the object does not match the namespace on the URL");
  }
  const std::string version = TextAt(object, {"metadata", "resourceVersion"});
  if (!version.empty() && version != TextAt(old, {"metadata", "resourceVersion"})) {
    return VersionConflictError(row, name);
  }
  if (At(old, {"metadata", "deletionTimestamp"}) != nullptr) {
    const Json* const finalizers = At(object, {"metadata", "finalizers"});
    const Json* const former = At(old, {"metadata", "finalizers"});
    for (const Json& finalizer : finalizers == nullptr ? Json::array() : *finalizers) {
      if (former != nullptr &&
          std::find(former->begin(), former->end(), finalizer) != former->end()) {
        continue;
      }
      return InvalidError(row, name,
                          {{"metadata.finalizers", "FieldValueForbidden",
                            absl::StrCat("Forbidden: no new finalizers can be added if the object "
                                         "is being deleted, found new finalizers []string{",
                                         Dump(finalizer), "}")}});
    }
  }
  // The status of a custom object has the metadata of the stored one, whatever is sent.
  if (scope == WriteScope::kStatus && IsCustom(row)) return {};
  const Json* const uid = At(object, {"metadata", "uid"});
  if (uid != nullptr && *uid != old["metadata"]["uid"]) {
    return ImmutableFieldError(row, name, "metadata.uid", *uid);
  }
  return {};
}

}  // namespace

ApiError PrepareForCreate(const ApiStore& store, const ResourceRow& row, WriteScope scope,
                          absl::Time now, const std::string& uid, Json& object) {
  if (!object.is_object()) return BadRequestError("the object provided is no object");
  object["apiVersion"] = std::string(row.group_version);
  object["kind"] = std::string(row.kind);
  Json& meta = MakeObject(object, {"metadata"});
  if (row.namespaced && TextAt(meta, {"namespace"}).empty()) meta["namespace"] = "default";
  if (!row.namespaced) meta.erase("namespace");
  if (scope != WriteScope::kActor) {
    if (ApiError error = CheckNamespace(store, row, object); !error.ok()) return error;
    if (ApiError error = CheckFields(row, nullptr, object); !error.ok()) return error;
  } else if (TextAt(meta, {"name"}).empty()) {
    return BadRequestError("an object needs a name");
  }
  meta["uid"] = uid;
  meta["creationTimestamp"] = TimeText(now);
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"}) {
    meta.erase(field);
  }
  if (HasGeneration(row)) {
    meta["generation"] = 1;
  } else {
    meta.erase("generation");
  }
  // Kubelets register nodes with their status.
  const bool keeps_status = scope == WriteScope::kActor || row.type == ResourceType::kNodes;
  if (row.has_status && !keeps_status) object.erase("status");
  if (row.type == ResourceType::kPods) {
    if (ApiError error = CompletePod(store, scope, object); !error.ok()) return error;
  }
  // What our CRDs default (crds/*.yaml).
  if (store.defaults_status(row.type)) MakeObject(object, {"status"});
  Normalize(row, object);
  return {};
}

ApiError PrepareForUpdate(const ResourceRow& row, WriteScope scope, const Json& old, Json& object) {
  if (!object.is_object()) return BadRequestError("the object provided is no object");
  const bool client = scope == WriteScope::kObject || scope == WriteScope::kStatus;
  if (client) {
    if (ApiError error = CheckIdentity(row, scope, old, object); !error.ok()) return error;
  }
  TakeBackMetadata(old, object);
  TakeBack(old, "apiVersion", object);
  TakeBack(old, "kind", object);
  if (scope == WriteScope::kStatus) KeepToStatus(row, old, object);
  if (scope == WriteScope::kObject && row.has_status) TakeBack(old, "status", object);
  if (IsCustom(row) && At(old, {"status"}) != nullptr) MakeObject(object, {"status"});
  Normalize(row, object);
  if (client) {
    PruneStatus(row, object);
    if (ApiError error = CheckFields(row, &old, object); !error.ok()) return error;
  }
  if (scope == WriteScope::kSubresource) return {};
  if (HasGeneration(row) && SpecChanged(old, object)) {
    object["metadata"]["generation"] = IntAt(old, {"metadata", "generation"}) + 1;
  }
  return {};
}

bool IsFinished(const Json& object) {
  return At(object, {"metadata", "deletionTimestamp"}) != nullptr &&
         IntAt(object, {"metadata", "deletionGracePeriodSeconds"}) == 0 &&
         !HasItems(object, {"metadata", "finalizers"});
}

}  // namespace fairlead::sim::world
