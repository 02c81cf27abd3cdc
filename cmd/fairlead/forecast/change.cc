#include "cmd/fairlead/forecast/change.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/manifest_fields.h"
#include "document/yaml.h"

namespace fairlead::cmd {
namespace {

// Controllers whose pods a change may add and take away; they are no objects of the state.
constexpr char kJob[] = "Job", kDeployment[] = "Deployment";
constexpr const char* kControllers[] = {kDeployment, kJob};

constexpr int kMaxListDepth = 4;  // of kind List within kind List

std::string NameOf(const model::Object& object) {
  return absl::StrCat(model::TraitsOf(model::KindOf(object)).name, " ",
                      model::Key(model::MetaOf(object)));
}

const char* KindOf(const sim::ControllerSpec& spec) {
  return spec.kind == sim::ControllerKind::kJob ? kJob : kDeployment;
}

std::string NameOf(const sim::ControllerSpec& spec) {
  return absl::StrCat(KindOf(spec), " ", model::Key(spec.ns, spec.name));
}

// Kind and name as the document says them.
std::string NameOf(const Json& document) {
  const std::string kind = document.TextAt({"kind"}), name = document.TextAt({"metadata", "name"});
  return absl::StrCat(kind.empty() ? "document" : kind, name.empty() ? "" : " ", name);
}

absl::Status Fault(const std::string& file, TextPlace place, absl::string_view object,
                   absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", place.line, ":", place.column, ": ", object, ": ", what));
}

// Reads files one document after the other.
class ChangeReader {
 public:
  absl::Status ReadFileText(const std::string& file, const std::string& text) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<Json> documents,
                              LoadYaml(text, {.file_name = file}));
    const size_t before = seen_.size();
    for (const Json& document : documents) {
      if (!document.is_null()) FAIRLEAD_RETURN_IF_ERROR(ReadDocument(file, document, 0));
    }
    if (seen_.size() > before) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(file, ": has no object"));
  }

  absl::Status Remove(const std::string& text) {
    FAIRLEAD_ASSIGN_OR_RETURN(sim::ObjectRef ref, ParseRemoved(text));
    if (!seen_.emplace(absl::StrCat(ref.kind, " ", ref.key), "--delete").second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--delete ", text, ": is also applied, or deleted twice"));
    }
    change_.removed.push_back(std::move(ref));
    return absl::OkStatus();
  }

  Change Take() { return std::move(change_); }

 private:
  absl::Status ReadDocument(const std::string& file, const Json& document, int depth) {
    const TextPlace place = document.place();
    if (!document.is_object()) return Fault(file, place, "document", "must be an object");
    if (const Json* items = document.Find("items");
        items != nullptr && absl::EndsWith(document.TextAt({"kind"}), "List")) {
      if (depth >= kMaxListDepth) return Fault(file, place, "List", "is nested too deeply");
      for (const Json& item : items->items()) {
        FAIRLEAD_RETURN_IF_ERROR(ReadDocument(file, item, depth + 1));
      }
      return absl::OkStatus();
    }
    const std::string name = NameOf(document);
    for (const char* field : {"apiVersion", "kind"}) {
      if (document.TextAt({field}).empty()) {
        return Fault(file, place, name, absl::StrCat(field, " is missing"));
      }
    }
    if (document.TextAt({"metadata", "name"}).empty()) {
      return Fault(file, place, name, "metadata.name is missing");
    }
    if (const std::vector<UnknownField> unknown = UnknownFields(document); !unknown.empty()) {
      const UnknownField& first = unknown.front();
      return Fault(
          file, first.place.line > 0 ? first.place : place, name,
          absl::StrCat(
              first.path, ": unknown field",
              first.nearest.empty() ? "" : absl::StrCat("; did you mean ", first.nearest, "?")));
    }
    return Add(file, place, name, document);
  }

  absl::Status Add(const std::string& file, TextPlace place, const std::string& name,
                   const Json& document) {
    const std::string origin = absl::StrCat(file, ":", place.line, ":", place.column);
    FAIRLEAD_ASSIGN_OR_RETURN(sim::Manifest manifest,
                              sim::ReadManifest(document.Compact(), origin));
    if (manifest.objects.empty() && manifest.controllers.empty()) {
      // The simulator passes over it.
      return Fault(file, place, name, "a what-if has no use for this kind");
    }
    for (model::Object& object : manifest.objects) {
      FAIRLEAD_RETURN_IF_ERROR(Once(NameOf(object), origin));
      change_.applied.objects.push_back(std::move(object));
      change_.origins.push_back(origin);
    }
    for (sim::ControllerSpec& spec : manifest.controllers) {
      FAIRLEAD_RETURN_IF_ERROR(Once(NameOf(spec), origin));
      change_.applied.controllers.push_back(std::move(spec));
    }
    return absl::OkStatus();
  }

  absl::Status Once(const std::string& name, const std::string& origin) {
    const auto [it, added] = seen_.emplace(name, origin);
    if (added) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", name, ": is in the change already, at ", it->second));
  }

  static absl::StatusOr<sim::ObjectRef> ParseRemoved(const std::string& text) {
    std::vector<std::string> parts = absl::StrSplit(text, '/');
    for (const char* kind : kControllers) {
      if (absl::EqualsIgnoreCase(parts[0], kind)) parts[0] = kind;
    }
    for (const model::KindTraits& traits : model::kKindTraits) {
      if (absl::EqualsIgnoreCase(parts[0], traits.name)) parts[0] = traits.name;
    }
    absl::StatusOr<sim::ObjectRef> ref = sim::ParseObjectRef(absl::StrJoin(parts, "/"));
    if (ref.ok() && !ref->key.empty() && !absl::StartsWith(ref->key, "/") &&
        !absl::EndsWith(ref->key, "/")) {
      return ref;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--delete ", text, ": ", ref.ok() ? "a name is empty" : ref.status().message()));
  }

  Change change_;
  std::map<std::string, std::string> seen_;  // "Kind name" -> origin
};

bool IsOwnedBy(const model::Pod& pod, const std::string& kind, const std::string& ns,
               const std::string& name) {
  if (pod.meta.ns != ns) return false;
  return std::any_of(pod.meta.owners.begin(), pod.meta.owners.end(),
                     [&](const model::OwnerReference& owner) {
                       if (!owner.controller) return false;
                       if (kind == kJob) return owner.kind == kJob && owner.name == name;
                       // A ReplicaSet of a Deployment is named after it, with a hash.
                       const size_t dash = owner.name.rfind('-');
                       return owner.kind == "ReplicaSet" && dash != std::string::npos &&
                              owner.name.substr(0, dash) == name;
                     });
}

absl::Status TakeAway(const sim::ObjectRef& ref, std::vector<model::Object>& objects) {
  const std::vector<std::string> parts = absl::StrSplit(ref.key, '/');
  const bool controller = std::find(std::begin(kControllers), std::end(kControllers), ref.kind) !=
                          std::end(kControllers);
  const size_t before = objects.size();
  std::erase_if(objects, [&](const model::Object& object) {
    if (!controller) return NameOf(object) == absl::StrCat(ref.kind, " ", ref.key);
    const auto* pod = std::get_if<model::Pod>(&object);
    return pod != nullptr && IsOwnedBy(*pod, ref.kind, parts[0], parts[1]);
  });
  if (objects.size() < before) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("--delete ", ref.kind, "/", ref.key,
                                          ": the cluster has no such object",
                                          controller ? " with pods" : ""));
}

// What is wrong with the place of each queue in the tree, by name.
std::map<std::string, std::string> TreeProblems(const std::map<std::string, std::string>& parents) {
  std::map<std::string, std::string> problems;
  for (const auto& [name, first_parent] : parents) {
    std::set<std::string> passed = {name};
    for (std::string parent = first_parent; !parent.empty();) {
      const auto found = parents.find(parent);
      if (found == parents.end()) {
        if (parent == first_parent) {
          problems[name] = absl::StrCat("spec.parentQueue: there would be no queue ", parent);
        }
        break;
      }
      if (!passed.insert(parent).second) {
        problems[name] = absl::StrCat("spec.parentQueue: ", first_parent, " would make a cycle");
        break;
      }
      parent = found->second;
    }
  }
  return problems;
}

std::map<std::string, std::string> ParentsIn(const std::vector<model::Object>& objects) {
  std::map<std::string, std::string> parents;
  for (const model::Object& object : objects) {
    const auto* queue = std::get_if<model::Queue>(&object);
    if (queue != nullptr) parents[queue->meta.name] = queue->parent;
  }
  return parents;
}

absl::Status CheckTree(const Change& change, const std::vector<model::Object>& before,
                       const std::vector<model::Object>& kept) {
  std::map<std::string, std::string> after = ParentsIn(kept), origins;
  for (const auto& [name, parent] : ParentsIn(change.applied.objects)) after[name] = parent;
  for (size_t i = 0; i < change.applied.objects.size(); ++i) {
    const auto* queue = std::get_if<model::Queue>(&change.applied.objects[i]);
    if (queue != nullptr) origins[queue->meta.name] = absl::StrCat(change.origins[i], ": ");
  }
  const std::map<std::string, std::string> old = TreeProblems(ParentsIn(before));
  for (const auto& [name, problem] : TreeProblems(after)) {
    if (old.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(origins[name], "Queue ", name, ": ", problem));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Change> ReadChange(const std::vector<std::string>& files,
                                  const std::vector<std::string>& removed, const ReadFile& read) {
  ChangeReader reader;
  for (const std::string& file : files) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, read(file));
    FAIRLEAD_RETURN_IF_ERROR(reader.ReadFileText(file, text));
  }
  for (const std::string& text : removed) FAIRLEAD_RETURN_IF_ERROR(reader.Remove(text));
  return reader.Take();
}

absl::StatusOr<PlannedChange> PlanChange(const Change& change, const sim::Present& present) {
  PlannedChange planned{.present = present, .applied = {}, .done = {}};
  std::vector<model::Object>& objects = planned.present.objects;
  for (const sim::ObjectRef& ref : change.removed) {
    FAIRLEAD_RETURN_IF_ERROR(TakeAway(ref, objects));
    planned.done.push_back(absl::StrCat("deletes ", ref.kind, " ", ref.key));
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckTree(change, present.objects, objects));
  std::map<std::string, size_t> there;
  for (size_t i = 0; i < objects.size(); ++i) there.emplace(NameOf(objects[i]), i);
  std::set<std::string> replaced_pods;
  for (const model::Object& object : change.applied.objects) {
    const std::string name = NameOf(object);
    const auto found = there.find(name);
    planned.done.push_back(absl::StrCat(found == there.end() ? "adds " : "replaces ", name));
    if (found != there.end() && std::holds_alternative<model::Node>(object)) {
      const model::ObjectMeta before = model::MetaOf(objects[found->second]);
      model::Node& node = std::get<model::Node>(objects[found->second]);
      node = std::get<model::Node>(object);
      node.meta.uid = before.uid;
      node.meta.creation = before.creation;
      node.meta.resource_version = before.resource_version;
      continue;
    }
    if (found != there.end() && std::holds_alternative<model::Pod>(object)) {
      replaced_pods.insert(name);
    }
    planned.applied.objects.push_back(object);
  }
  for (const sim::ControllerSpec& spec : change.applied.controllers) {
    for (const model::Object& object : objects) {
      const auto* pod = std::get_if<model::Pod>(&object);
      if (pod == nullptr || !IsOwnedBy(*pod, KindOf(spec), spec.ns, spec.name)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(spec), ": has pods already (", model::Key(pod->meta),
                       "), which would be counted twice; give it another name"));
    }
    planned.done.push_back(absl::StrCat("adds ", NameOf(spec)));
    planned.applied.controllers.push_back(spec);
  }
  std::erase_if(
      objects, [&](const model::Object& object) { return replaced_pods.contains(NameOf(object)); });
  return planned;
}

}  // namespace fairlead::cmd
