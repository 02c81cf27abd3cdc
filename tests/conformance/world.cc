#include "tests/conformance/world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"

namespace fairlead::conformance {
namespace {

std::string NamespaceOf(const Json& object) {
  const std::string ns = object.TextAt({"metadata", "namespace"});
  return ns.empty() ? "default" : ns;
}

std::string KeyOf(const Json& object) {
  return model::Key(NamespaceOf(object), object.TextAt({"metadata", "name"}));
}

bool IsKind(const Json& object, absl::string_view kind) { return object.TextAt({"kind"}) == kind; }

std::string GroupOf(const Json& pod) {
  return model::Key(NamespaceOf(pod),
                    pod.TextAt({"metadata", "annotations", model::kPodGroupAnnotation}));
}

// A group's own label has the group behind a slash.
void EraseGroupLabels(Json& metadata) {
  Json* labels = metadata.Find("labels");
  if (labels == nullptr) return;
  auto& members = labels->members;
  members.erase(std::remove_if(members.begin(), members.end(),
                               [](const auto& label) {
                                 return label.first == model::kGpuGroupLabel ||
                                        absl::StartsWith(label.first,
                                                         absl::StrCat(model::kGpuGroupLabel, "/"));
                               }),
                members.end());
}

void WriteGroupLabels(Json& metadata, const std::vector<std::string>& groups) {
  EraseGroupLabels(metadata);
  if (groups.empty()) return;
  Json& labels = metadata.Member("labels");
  if (groups.size() == 1) {
    labels.Member(model::kGpuGroupLabel) = Json::String(groups.front());
    return;
  }
  for (const std::string& group : groups) {
    labels.Member(absl::StrCat(model::kGpuGroupLabel, "/", group)) = Json::String(group);
  }
}

// In the binder's form.
void WriteReceivedType(Json& metadata) {
  Json& annotations = metadata.Member("annotations");
  const bool shared = annotations.Find(model::kGpuFractionAnnotation) != nullptr ||
                      annotations.Find(model::kGpuMemoryAnnotation) != nullptr;
  annotations.Member(model::kReceivedResourceTypeAnnotation) =
      Json::String(shared ? "Fraction" : "Regular");
}

// As KAI's binder does.
void WriteZones(Json& metadata, const std::vector<model::ZoneAmounts>& zones) {
  if (zones.empty()) return;
  metadata.Member("annotations").Member(model::kNumaPredictedAnnotation) =
      Json::String(model::FormatNumaZones(zones));
}

}  // namespace

World::World(const SchedulingCase& test)
    : now_(test.now),
      settings_(test.settings),
      start_(test.start),
      stays_releasing_(test.stays_releasing),
      objects_(test.objects) {}

absl::StatusOr<SessionInput> World::MakeInput(std::vector<std::string> actions) const {
  SessionInput input;
  input.actions = std::move(actions);
  input.now = now_;
  input.settings = settings_;
  input.start = start_;
  for (const Json& object : objects_) {
    std::string text = ToText(object);
    absl::StatusOr<kube::Manifests> decoded = kube::DecodeManifests(text);
    if (!decoded.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("object ", object.TextAt({"kind"}), " ",
                                                     object.TextAt({"metadata", "name"}), ": ",
                                                     decoded.status().message()));
    }
    for (kube::Object& one : decoded->objects) input.objects.push_back(std::move(one));
    if (!decoded->skipped.empty()) input.other_objects.push_back(std::move(text));
  }
  return input;
}

absl::StatusOr<std::string> World::KeyByName(absl::string_view kind, absl::string_view name) const {
  std::string found;
  for (const Json& object : objects_) {
    if (!IsKind(object, kind)) continue;
    const std::string key = KeyOf(object);
    if (key == name) return key;
    if (object.TextAt({"metadata", "name"}) != name) continue;
    if (!found.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("several objects ", kind, " ", name));
    }
    found = key;
  }
  if (found.empty()) return absl::InvalidArgumentError(absl::StrCat("no object ", kind, " ", name));
  return found;
}

absl::StatusOr<std::string> World::PodKey(absl::string_view name) const {
  return KeyByName("Pod", name);
}

absl::StatusOr<std::string> World::GroupKey(absl::string_view name) const {
  return KeyByName("PodGroup", name);
}

std::vector<std::string> World::PodsOf(const std::string& group_key) const {
  std::vector<std::string> keys;
  for (const Json& object : objects_) {
    if (IsKind(object, "Pod") && GroupOf(object) == group_key) keys.push_back(KeyOf(object));
  }
  return keys;
}

std::string World::GroupAnnotation(const std::string& group_key,
                                   absl::string_view annotation) const {
  for (const Json& object : objects_) {
    if (!IsKind(object, "PodGroup") || KeyOf(object) != group_key) continue;
    return object.TextAt({"metadata", "annotations", annotation});
  }
  return "";
}

void World::FoldPod(Json& object, PodOutcome& outcome, bool stays_releasing) const {
  Json& metadata = object.Member("metadata");
  if (outcome.status == "Binding") {
    outcome.status = "Running";
    object.Member("spec").Member("nodeName") = Json::String(outcome.node);
    object.Member("status").Member("phase") = Json::String("Running");
    WriteZones(metadata, outcome.numa_zones);
    WriteGroupLabels(metadata, outcome.gpu_groups);
    WriteReceivedType(metadata);
    return;
  }
  if (outcome.status != "Releasing" && outcome.status != "Pipelined") return;
  if (outcome.status == "Releasing" && stays_releasing) {
    Json& deletion = metadata.Member("deletionTimestamp");
    if (deletion.type != Json::Type::kString) {
      deletion = Json::String(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now_, absl::UTCTimeZone()));
    }
    return;
  }
  outcome.status = "Pending";
  outcome.node.clear();
  outcome.gpu_groups.clear();
  object.Member("spec").Erase("nodeName");
  const std::string qos = object.TextAt({"status", "qosClass"});
  object.Member("status") = Json::Object();
  object.Member("status").Member("phase") = Json::String("Pending");
  if (!qos.empty()) object.Member("status").Member("qosClass") = Json::String(qos);
  metadata.Erase("deletionTimestamp");
  EraseGroupLabels(metadata);
  if (Json* annotations = metadata.Find("annotations")) {
    annotations->Erase(model::kReceivedResourceTypeAnnotation);
    annotations->Erase(model::kNumaPredictedAnnotation);
    annotations->Erase(model::kNumaObservedAnnotation);
  }
}

absl::StatusOr<std::map<std::string, PodOutcome>> World::Fold(const SessionResult& result) {
  std::map<std::string, PodOutcome> pods = result.pods;
  std::set<std::string> running_groups;
  for (Json& object : objects_) {
    if (IsKind(object, "ResourceClaim")) {
      const auto changed = result.claim_status.find(KeyOf(object));
      if (changed == result.claim_status.end()) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(object.Member("status"), ParseJson(changed->second));
    }
    if (!IsKind(object, "Pod")) continue;
    const auto outcome = pods.find(KeyOf(object));
    if (outcome == pods.end()) continue;
    const std::string group =
        object.TextAt({"metadata", "annotations", model::kPodGroupAnnotation});
    FoldPod(object, outcome->second, stays_releasing_.contains(group));
    if (outcome->second.status == "Running") running_groups.insert(GroupOf(object));
  }
  const std::string start =
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now_ - absl::Minutes(1), absl::UTCTimeZone());
  for (Json& object : objects_) {
    if (!IsKind(object, "PodGroup")) continue;
    Json& annotations = object.Member("metadata").Member("annotations");
    if (annotations.type != Json::Type::kObject) annotations = Json::Object();
    if (running_groups.contains(KeyOf(object))) {
      annotations.Member(model::kLastStartAnnotation) = Json::String(start);
    } else {
      annotations.Erase(model::kLastStartAnnotation);
    }
  }
  // Pods pipelined at the start are not pipelined any more, and labels have their groups.
  for (auto& [name, begin] : start_) {
    begin.status.clear();
    begin.node.clear();
    begin.gpu_groups.clear();
  }
  return pods;
}

}  // namespace fairlead::conformance
