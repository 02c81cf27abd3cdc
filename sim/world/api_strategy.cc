#include "sim/world/api_strategy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"

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
      return false;
    default:
      return true;
  }
}

// Kubelets and schedulers write labels and annotations with a status; nobody else may.
bool StatusCarriesMetadata(const ResourceRow& row) {
  return row.type == ResourceType::kPods || row.type == ResourceType::kNodes;
}

// Nulls and empty lists are not there once they have gone through upstream's types; in custom
// objects nulls are dropped. Words of drivers ("parameters") are nobody's business.
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

ApiError CompletePod(const ApiStore& store, WriteScope scope, Json& pod) {
  Json& spec = MakeObject(pod, {"spec"});
  SetDefault(spec, "restartPolicy", "Always");
  SetDefault(spec, "terminationGracePeriodSeconds", 30);
  SetDefault(spec, "schedulerName", "default-scheduler");
  if (scope != WriteScope::kActor) pod.erase("status");
  SetDefault(MakeObject(pod, {"status"}), "phase", "Pending");
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

bool IsDnsName(const std::string& name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 253 || !plain(name.front()) || !plain(name.back())) {
    return false;
  }
  for (size_t i = 0; i < name.size(); ++i) {
    if (!plain(name[i]) && name[i] != '-' && name[i] != '.') return false;
    if (name[i] == '.' && (!plain(name[i - 1]) || !plain(name[i + 1]))) return false;
  }
  return true;
}

ApiError CheckName(const ResourceRow& row, const Json& object) {
  const std::string name = TextAt(object, {"metadata", "name"});
  if (name.empty()) {
    return InvalidError(row, "",
                        {{"metadata.name", "FieldValueRequired",
                          "Required value: name or generateName is required"}});
  }
  if (IsDnsName(name)) return {};
  return InvalidError(
      row, name,
      {{"metadata.name", "FieldValueInvalid",
        absl::StrCat("Invalid value: \"", name,
                     "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                     "characters, '-' or '.', and must start and end with an alphanumeric "
                     "character")}});
}

// What events.k8s.io refuses of the fields that come from names and messages.
ApiError CheckEvent(const ResourceRow& row, const Json& event) {
  const std::string name = TextAt(event, {"metadata", "name"});
  std::vector<InvalidField> wrong;
  const auto limit = [&](const char* field, size_t bytes) {
    if (TextAt(event, {field}).size() > bytes) {
      wrong.push_back(
          {field, "FieldValueInvalid", absl::StrCat("can have at most ", bytes, " characters")});
    }
  };
  limit("note", 1024);
  limit("reason", 128);
  limit("action", 128);
  limit("reportingInstance", 128);
  for (const char* field : {"reportingController", "reportingInstance", "action", "reason"}) {
    if (TextAt(event, {field}).empty()) {
      wrong.push_back({field, "FieldValueRequired", "Required value"});
    }
  }
  return wrong.empty() ? ApiError() : InvalidError(row, name, wrong);
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

// resource.k8s.io: what the status of a claim may become.
ApiError CheckClaimStatus(const ResourceRow& row, const Json& old, const Json& claim) {
  const std::string name = TextAt(claim, {"metadata", "name"});
  const Json* const reserved = At(claim, {"status", "reservedFor"});
  const Json* const allocation = At(claim, {"status", "allocation"});
  const Json* const before = At(old, {"status", "allocation"});
  std::vector<InvalidField> wrong;
  if (reserved != nullptr && reserved->size() > 256) {
    wrong.push_back(
        {"status.reservedFor", "FieldValueTooMany",
         absl::StrCat("Too many: ", reserved->size(), ": must have at most 256 items")});
  }
  if (reserved != nullptr && !reserved->empty() && allocation == nullptr) {
    wrong.push_back({"status.reservedFor", "FieldValueForbidden",
                     "Forbidden: may not be specified when `allocated` is not set"});
  }
  if (At(claim, {"metadata", "deletionTimestamp"}) != nullptr && reserved != nullptr) {
    const Json* const former = At(old, {"status", "reservedFor"});
    for (const Json& entry : *reserved) {
      if (former != nullptr && std::find(former->begin(), former->end(), entry) != former->end()) {
        continue;
      }
      wrong.push_back({"status.reservedFor", "FieldValueForbidden",
                       "Forbidden: new entries may not be added while `deallocationRequested` or "
                       "`deletionTimestamp` are set"});
      break;
    }
  }
  if (before != nullptr && allocation != nullptr && *before != *allocation) {
    wrong.push_back({"status.allocation", "FieldValueInvalid",
                     absl::StrCat("Invalid value: ", Dump(*allocation), ": field is immutable")});
  }
  return wrong.empty() ? ApiError() : InvalidError(row, name, wrong);
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
    if (ApiError error = CheckName(row, object); !error.ok()) return error;
    if (ApiError error = CheckNamespace(store, row, object); !error.ok()) return error;
    if (row.type == ResourceType::kEvents) {
      if (ApiError error = CheckEvent(row, object); !error.ok()) return error;
    }
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
  if (row.type == ResourceType::kPodGroups || row.type == ResourceType::kNodeRequests) {
    MakeObject(object, {"status"});
  }
  Normalize(row, object);
  return {};
}

ApiError PrepareForUpdate(const ResourceRow& row, WriteScope scope, const Json& old, Json& object) {
  if (!object.is_object()) return BadRequestError("the object provided is no object");
  if (scope != WriteScope::kActor) {
    if (ApiError error = CheckIdentity(row, scope, old, object); !error.ok()) return error;
  }
  TakeBackMetadata(old, object);
  TakeBack(old, "apiVersion", object);
  TakeBack(old, "kind", object);
  if (scope == WriteScope::kStatus) KeepToStatus(row, old, object);
  if (scope == WriteScope::kObject && row.has_status) TakeBack(old, "status", object);
  if (row.type == ResourceType::kPodGroups || row.type == ResourceType::kNodeRequests) {
    MakeObject(object, {"status"});
  }
  Normalize(row, object);
  if (row.type == ResourceType::kResourceClaims && scope == WriteScope::kStatus) {
    if (ApiError error = CheckClaimStatus(row, old, object); !error.ok()) return error;
  }
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
