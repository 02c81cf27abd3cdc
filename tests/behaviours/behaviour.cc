#include "tests/behaviours/behaviour.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "document/fields.h"
#include "document/yaml.h"
#include "sim/scenario.h"
#include "tests/behaviours/behaviour_steps.h"

namespace fairlead::behaviours {
namespace {

constexpr char kUpstreamKind[] = "KubeSchedulerConfiguration";

const Json* FindKind(const std::vector<Json>& config, absl::string_view kind) {
  for (const Json& document : config) {
    if (document.TextAt({"kind"}) == kind) return &document;
  }
  return nullptr;
}

absl::StatusOr<std::map<ObjectRef, Json>> ReadManifests(const FieldReader& reader,
                                                        const std::vector<Json>& documents) {
  std::map<ObjectRef, Json> manifests;
  for (size_t i = 1; i < documents.size(); ++i) {
    const Json& document = documents[i];
    if (document.is_null()) continue;
    absl::StatusOr<ObjectRef> ref = RefOf(document);
    if (!ref.ok()) return reader.Error(document, "", ref.status().message());
    const std::string text = ref->Text();
    if (!manifests.emplace(*std::move(ref), document).second) {
      return reader.Error(document, text, "has a manifest already");
    }
  }
  return manifests;
}

}  // namespace

std::string Behaviour::SchedulerName() const {
  const Json* const upstream = FindKind(config, kUpstreamKind);
  const Json* const profiles = upstream == nullptr ? nullptr : upstream->Find("profiles");
  if (profiles == nullptr || profiles->items().empty()) return kDefaultScheduler;
  const std::string given = profiles->items().front().TextAt({"schedulerName"});
  return given.empty() ? kDefaultScheduler : given;
}

std::vector<Json> Behaviour::CompleteConfig() const {
  std::vector<Json> complete = config;
  if (FindKind(config, kUpstreamKind) != nullptr) return complete;
  Json profile = Json::Object();
  profile.Set("schedulerName", kDefaultScheduler);
  Json upstream = Json::Object();
  upstream.Set("apiVersion", "kubescheduler.config.k8s.io/v1").Set("kind", kUpstreamKind);
  upstream.Set("profiles", Json::Array().Add(std::move(profile)));
  complete.push_back(std::move(upstream));
  return complete;
}

absl::StatusOr<Behaviour> ParseBehaviour(absl::string_view text, const std::string& file) {
  const FieldReader reader(file);
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> documents, LoadYaml(text, {.file_name = file}));
  if (documents.empty() || documents[0].is_null()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the first document is empty"));
  }
  Behaviour behaviour;
  behaviour.file = file;
  FAIRLEAD_ASSIGN_OR_RETURN(behaviour.manifests, ReadManifests(reader, documents));
  const Json& story = documents[0];
  FAIRLEAD_RETURN_IF_ERROR(reader.Map(
      story, "",
      {{"name", reader.Text(&behaviour.name)},
       {"why", reader.Text(&behaviour.why)},
       {"kubeScheduler",
        [&](const Json& value, const std::string& at) {
          if (value.type() != Json::Type::kBool)
            return reader.Error(value, at, "must be true or false");
          behaviour.for_kube_scheduler = value.text() == "true";
          return absl::OkStatus();
        }},
       {"config",
        [&](const Json& value, const std::string& at) {
          return reader.List(value, at, [&](const Json& item, const std::string& in) {
            if (!item.is_object()) return reader.Error(item, in, "must be a mapping");
            behaviour.config.push_back(item);
            return absl::OkStatus();
          });
        }},
       {"steps",
        [&](const Json& value, const std::string&) -> absl::Status {
          FAIRLEAD_ASSIGN_OR_RETURN(behaviour.steps, ReadSteps(reader, value, behaviour.manifests));
          return absl::OkStatus();
        }}},
      {"name", "why", "steps"}));
  if (behaviour.name != std::filesystem::path(file).stem()) {
    return reader.Error(*story.Find("name"), "name", "must be the file's name without its ending");
  }
  return behaviour;
}

absl::StatusOr<Behaviour> ReadBehaviour(const std::string& file) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, sim::ReadFile(file));
  return ParseBehaviour(text, file);
}

std::vector<std::string> BehaviourFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code missing;  // then there are no tests, which GoogleTest reports
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string TestNameOf(const std::string& file) {
  std::string name = std::filesystem::path(file).stem();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace fairlead::behaviours
