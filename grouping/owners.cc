#include "grouping/owners.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grouping/values.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::grouping {
namespace {

absl::Status Refuse(const ObjectName& object, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(object.Text(), ": ", what));
}

// A string field of an object, "" if it is absent.
absl::StatusOr<std::string> StringOf(const Json& node, const ObjectName& object,
                                     const std::string& at, absl::string_view field) {
  const Json* value = node.Find(field);
  if (value == nullptr || value->is_null()) return "";
  if (value->type() == Json::Type::kString) return value->text();
  return Refuse(object, absl::StrCat(at, ".", field, ": is not a string"));
}

absl::StatusOr<model::OwnerReference> ReadReference(const Json& node, const ObjectName& object,
                                                    const std::string& at) {
  if (!node.is_object()) return Refuse(object, absl::StrCat(at, ": is not an object"));
  model::OwnerReference reference;
  FAIRLEAD_ASSIGN_OR_RETURN(reference.api_version, StringOf(node, object, at, "apiVersion"));
  FAIRLEAD_ASSIGN_OR_RETURN(reference.kind, StringOf(node, object, at, "kind"));
  FAIRLEAD_ASSIGN_OR_RETURN(reference.name, StringOf(node, object, at, "name"));
  FAIRLEAD_ASSIGN_OR_RETURN(reference.uid, StringOf(node, object, at, "uid"));
  const Json* controller = node.Find("controller");
  reference.controller = controller != nullptr && controller->text() == "true";
  return reference;
}

absl::StatusOr<std::vector<model::OwnerReference>> ReferencesOf(const Json& owner,
                                                                const ObjectName& object) {
  std::vector<model::OwnerReference> references;
  const Json* list = owner.At({"metadata", "ownerReferences"});
  if (list == nullptr || list->is_null()) return references;
  const std::string field = "metadata.ownerReferences";
  if (!list->is_array()) return Refuse(object, absl::StrCat(field, ": is not a list"));
  for (size_t i = 0; i < list->items().size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(
        references.emplace_back(),
        ReadReference(list->items()[i], object, absl::StrCat(field, "[", i, "]")));
  }
  return references;
}

// Null: there is none.
const model::OwnerReference* Choose(const std::vector<model::OwnerReference>& references) {
  const auto controller =
      std::find_if(references.begin(), references.end(),
                   [](const model::OwnerReference& reference) { return reference.controller; });
  if (controller != references.end()) return &*controller;
  return references.empty() ? nullptr : &references.front();
}

// It is the object that the reference names, and not another one of that name.
absl::Status CheckIdentity(const Json& object, const ObjectName& name) {
  if (!object.is_object()) return Refuse(name, "is not an object");
  const std::string uid = object.TextAt({"metadata", "uid"});
  if (uid == name.uid) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(name.Text(), ": metadata.uid: ", Shown(uid), " is not ",
                                          Shown(name.uid), ": another object has its name"));
}

}  // namespace

std::string ObjectName::Text() const {
  return absl::StrCat(api_version, " ", kind, " ", model::Key(ns, name));
}

absl::StatusOr<model::Pod> PodFrom(const Json& object, const ObjectName& name) {
  model::Pod pod;
  pod.meta.ns = name.ns;
  pod.meta.name = name.name;
  pod.meta.uid = object.TextAt({"metadata", "uid"});
  pod.scheduler_name = object.TextAt({"spec", "schedulerName"});
  pod.priority_class_name = object.TextAt({"spec", "priorityClassName"});
  const auto copy = [&object](const char* field, model::StringMap& out) {
    const Json* map = object.At({"metadata", field});
    if (map == nullptr || !map->is_object()) return;
    for (const auto& [key, value] : map->fields()) out.Set(key, value.text());
  };
  copy("labels", pod.meta.labels);
  copy("annotations", pod.meta.annotations);
  FAIRLEAD_ASSIGN_OR_RETURN(pod.meta.owners, ReferencesOf(object, name));
  return pod;
}

absl::StatusOr<Chain> OwnersOf(const model::Pod& pod, const KindTable& table,
                               const Objects& objects) {
  Chain chain;
  std::vector<model::OwnerReference> references = pod.meta.owners;
  ObjectName child{"v1", "Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
  while (const model::OwnerReference* reference = Choose(references)) {
    const ObjectName owner{reference->api_version, reference->kind, pod.meta.ns, reference->name,
                           reference->uid};
    if (owner.kind.empty() || owner.name.empty() || owner.uid.empty()) {
      return Refuse(child, "metadata.ownerReferences: the owner has no kind, name or uid");
    }
    // The API server bounds none of them.
    for (const std::string* part : {&owner.api_version, &owner.kind, &owner.name, &owner.uid}) {
      if (part->size() <= model::kLongestName) continue;
      return Refuse(child, absl::StrCat("metadata.ownerReferences: ", Shown(*part),
                                        ": longer than ", model::kLongestName));
    }
    const bool seen =
        owner.uid == pod.meta.uid ||
        std::any_of(chain.owners.begin(), chain.owners.end(),
                    [&](const Owner& former) { return former.name.uid == owner.uid; });
    if (seen) return Refuse(child, "metadata.ownerReferences: the owners are a circle");
    if (chain.owners.size() == kMostOwners) {
      return Refuse(child, absl::StrCat("metadata.ownerReferences: the pod has more than ",
                                        kMostOwners, " owners above each other"));
    }
    if (!table.IsRead(owner.api_version, owner.kind)) {
      chain.owners.push_back({owner, nullptr});
      return chain;
    }
    FAIRLEAD_ASSIGN_OR_RETURN(const Json* object, objects.Find(owner));
    if (object == nullptr) {
      chain.needs = owner;
      return chain;
    }
    FAIRLEAD_RETURN_IF_ERROR(CheckIdentity(*object, owner));
    chain.owners.push_back({owner, object});
    FAIRLEAD_ASSIGN_OR_RETURN(references, ReferencesOf(*object, owner));
    child = owner;
  }
  return chain;
}

}  // namespace fairlead::grouping
