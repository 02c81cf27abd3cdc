#include "demo/day_manifests.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cmd/fairlead/settings/config_file.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"

namespace fairlead::demo {
namespace {

constexpr const char* kSecondsAnnotations[] = {
    "fairlead.dev/start-seconds", "fairlead.dev/run-seconds", "fairlead.dev/stop-seconds"};
constexpr const char* kQueueDurations[] = {"preemptMinRuntime", "reclaimMinRuntime"};
// API versions of kinds that a reference may name although no manifest of the day has them.
const std::map<std::string, std::string>& UsualVersions() {
  static const auto* const versions =
      new std::map<std::string, std::string>{{"Pod", "v1"},
                                             {"Node", "v1"},
                                             {"Job", "batch/v1"},
                                             {"Deployment", "apps/v1"},
                                             {"Queue", "scheduling.run.ai/v2"},
                                             {"PodGroup", "scheduling.run.ai/v2alpha2"},
                                             {"NodePool", "fairlead.dev/v1alpha1"},
                                             {"PriorityClass", "scheduling.k8s.io/v1"}};
  return *versions;
}

void ScaleAnnotations(Json* metadata, double speed) {
  Json* annotations = metadata == nullptr ? nullptr : metadata->Find("annotations");
  if (annotations == nullptr) return;
  for (const char* key : kSecondsAnnotations) {
    double seconds = 0;
    const Json* value = annotations->Find(key);
    if (value == nullptr || !absl::SimpleAtod(value->text(), &seconds)) continue;
    annotations->Set(key, absl::StrFormat("%.3f", seconds / speed));
  }
}

absl::Status AddDefinitions(const std::string& path, std::vector<Json>& out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, cmd::ReadTextFile(path));
  // Large schemas repeat themselves.
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> trees,
                            LoadYaml(text, {.file_name = path, .aliases = true}));
  for (Json& tree : trees) {
    if (tree.TextAt({"kind"}) == "CustomResourceDefinition") out.push_back(std::move(tree));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Json>> ReadManifests(const std::string& path) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, cmd::ReadTextFile(path));
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> documents, LoadYaml(text, {.file_name = path}));
  std::vector<Json> manifests;
  for (Json& manifest : documents) {
    if (manifest.is_null()) continue;
    if (const auto id = cmd::IdOf(manifest); !id.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", id.status().message()));
    }
    manifests.push_back(std::move(manifest));
  }
  return manifests;
}

void ScaleTimes(Json& manifest, double speed) {
  ScaleAnnotations(manifest.Find("metadata"), speed);
  ScaleAnnotations(manifest.At({"spec", "template", "metadata"}), speed);
  Json* spec = manifest.Find("spec");
  if (manifest.TextAt({"kind"}) != "Queue" || spec == nullptr) return;
  for (const char* key : kQueueDurations) {
    absl::Duration duration;
    const Json* value = spec->Find(key);
    if (value == nullptr || !absl::ParseDuration(value->text(), &duration)) continue;
    // Starts are recorded in whole seconds: without an extra second a pod could lose its place
    // early.
    const absl::Duration scaled = duration / speed + absl::Seconds(1);
    spec->Set(key, absl::StrCat(absl::ToInt64Milliseconds(scaled), "ms"));
  }
}

absl::StatusOr<DayPlan> PlanDay(const sim::Scenario& scenario, const std::string& crds,
                                double speed) {
  DayPlan plan;
  if (!crds.empty()) {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(crds, error)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
    }
    if (error) return absl::NotFoundError(absl::StrCat(crds, ": ", error.message()));
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      FAIRLEAD_RETURN_IF_ERROR(AddDefinitions(file, plan.definitions));
    }
  }
  std::set<std::string> namespaces, made;
  for (const sim::ScenarioStep& step : scenario.timeline) {
    std::vector<Json>& of_step = plan.manifests.emplace_back();
    for (const std::string& file : step.files) {
      FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> manifests,
                                ReadManifests(absl::StrCat(scenario.directory, "/", file)));
      for (Json& manifest : manifests) {
        ScaleTimes(manifest, speed);
        const std::string ns = manifest.TextAt({"metadata", "namespace"});
        if (!ns.empty()) namespaces.insert(ns);
        if (manifest.TextAt({"kind"}) == "Namespace") {
          made.insert(manifest.TextAt({"metadata", "name"}));
        }
        of_step.push_back(std::move(manifest));
      }
    }
  }
  namespaces.insert(made.begin(), made.end());
  plan.namespaces.assign(namespaces.begin(), namespaces.end());
  return plan;
}

std::string PlanText(const DayPlan& plan) {
  std::map<std::string, std::set<std::string>> by_kind;
  for (const auto& step : plan.manifests) {
    for (const Json& manifest : step) {
      const std::string kind = manifest.TextAt({"kind"});
      if (kind == "Namespace") continue;
      by_kind[kind].insert(absl::StrCat(manifest.TextAt({"metadata", "namespace"}), "/",
                                        manifest.TextAt({"metadata", "name"})));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [kind, names] : by_kind) parts.push_back(absl::StrCat(names.size(), " ", kind));
  if (!plan.namespaces.empty()) {
    parts.push_back(absl::StrCat("namespaces ", absl::StrJoin(plan.namespaces, ", ")));
  }
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<cmd::ObjectId> IdOfReference(const sim::ObjectRef& reference, const DayPlan& plan) {
  cmd::ObjectId id;
  id.kind = reference.kind;
  const size_t slash = reference.key.find('/');
  id.ns = slash == std::string::npos ? "" : reference.key.substr(0, slash);
  id.name = slash == std::string::npos ? reference.key : reference.key.substr(slash + 1);
  for (const auto& step : plan.manifests) {
    for (const Json& manifest : step) {
      if (manifest.TextAt({"kind"}) == id.kind) id.api_version = manifest.TextAt({"apiVersion"});
    }
  }
  if (id.api_version.empty()) {
    const auto usual = UsualVersions().find(id.kind);
    if (usual == UsualVersions().end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown kind ", id.kind));
    }
    id.api_version = usual->second;
  }
  return id;
}

}  // namespace fairlead::demo
