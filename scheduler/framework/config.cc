#include "scheduler/framework/config.h"

#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "scheduler/framework/config_json.h"
#include "scheduler/framework/extenders.h"
#include "scheduler/framework/profile_merge.h"
#include "scheduler/model/api_names.h"

namespace fairlead::framework {
namespace {

constexpr char kApiVersion[] = "kubescheduler.config.k8s.io/v1";
constexpr char kKind[] = "KubeSchedulerConfiguration";

class Reader {
 public:
  Reader(const Registry& registry, const ProfileBases& bases)
      : registry_(registry), names_(registry.Names()), bases_(bases) {}

  absl::StatusOr<SchedulerConfiguration> Read(const dom::element& root) {
    SchedulerConfiguration config;
    std::string api_version;
    std::string kind;
    int64_t parallelism = 16, percentage = 0, initial_backoff = 1, max_backoff = 10;
    const auto pause = [](int64_t* seconds, std::optional<absl::Duration>* out) -> FieldReader {
      return [seconds, out](const dom::element& value, const std::string& path) {
        FAIRLEAD_RETURN_IF_ERROR(ReadNumber(value, path, seconds));
        *out = absl::Seconds(*seconds);
        return absl::OkStatus();
      };
    };
    const auto number = [&](int64_t* out) -> FieldReader {
      return [&config, out](const dom::element& value, const std::string& path) {
        config.ignored.push_back(path);
        return ReadNumber(value, path, out);
      };
    };
    const FieldReader flag = [&](const dom::element& value, const std::string& path) {
      config.ignored.push_back(path);
      return value.is_bool() ? absl::OkStatus() : Bad(path, "must be true or false");
    };
    const auto raw = [](std::string* out) -> FieldReader {
      return [out](const dom::element& value, const std::string& path) -> absl::Status {
        if (!value.is_object()) return Bad(path, "must be an object");
        *out = simdjson::minify(value);
        return absl::OkStatus();
      };
    };
    FAIRLEAD_RETURN_IF_ERROR(ReadObject(
        root, "",
        {{"apiVersion", IntoString(&api_version)},
         {"kind", IntoString(&kind)},
         {"profiles",
          [&](const dom::element& value, const std::string& path) {
            return ReadArray(value, path, [&](const dom::element& item, const std::string& at) {
              return ReadProfile(item, at, config);
            });
          }},
         {"extenders",
          [&config](const dom::element& value, const std::string& path) {
            return ReadExtenders(value, path, config.extenders);
          }},
         {"leaderElection", raw(&config.leader_election_json)},
         {"clientConnection", raw(&config.client_connection_json)},
         {"parallelism", number(&parallelism)},
         {"percentageOfNodesToScore", number(&percentage)},
         {"podInitialBackoffSeconds", pause(&initial_backoff, &config.pod_backoff_initial)},
         {"podMaxBackoffSeconds", pause(&max_backoff, &config.pod_backoff_max)},
         {"delayCacheUntilActive", flag},
         {"enableProfiling", flag},
         {"enableContentionProfiling", flag}}));
    // As upstream validates them; the first two have no effect here.
    if (parallelism <= 0) return Bad("parallelism", "must be a whole number greater than zero");
    FAIRLEAD_RETURN_IF_ERROR(CheckPercentage("percentageOfNodesToScore", percentage));
    if (initial_backoff <= 0) return Bad("podInitialBackoffSeconds", "must be greater than 0");
    if (max_backoff < initial_backoff) {
      return Bad("podMaxBackoffSeconds", "must not be less than podInitialBackoffSeconds");
    }
    if (api_version != kApiVersion) return Bad("apiVersion", absl::StrCat("must be ", kApiVersion));
    if (kind != kKind) return Bad("kind", absl::StrCat("must be ", kKind));
    if (config.profiles.empty()) {
      FAIRLEAD_ASSIGN_OR_RETURN(Profile profile, MergeProfile(ProfileBase::kFairlead, {}));
      config.profiles.push_back(std::move(profile));
    }
    FAIRLEAD_RETURN_IF_ERROR(LeaveToExtenders(config.extenders, config.profiles));
    return config;
  }

 private:
  absl::Status ReadProfile(const dom::element& value, const std::string& path,
                           SchedulerConfiguration& config) {
    std::string scheduler_name = model::kDefaultSchedulerName;
    PluginSets sets;
    std::map<std::string, std::string> args;
    FAIRLEAD_RETURN_IF_ERROR(ReadObject(
        value, path,
        {{"schedulerName", IntoString(&scheduler_name)},
         {"percentageOfNodesToScore",
          [&](const dom::element& v, const std::string& at) -> absl::Status {
            config.ignored.push_back(at);
            int64_t percentage = 0;
            FAIRLEAD_RETURN_IF_ERROR(ReadNumber(v, at, &percentage));
            return CheckPercentage(at, percentage);
          }},
         {"plugins",
          [&](const dom::element& v, const std::string& at) { return ReadPlugins(v, at, sets); }},
         {"pluginConfig", [&](const dom::element& v, const std::string& at) {
            return ReadArray(v, at, [&](const dom::element& item, const std::string& item_path) {
              return ReadPluginConfig(item, item_path, args);
            });
          }}}));
    if (scheduler_name.empty()) return Bad(Field(path, "schedulerName"), "must not be empty");
    for (const Profile& other : config.profiles) {
      if (other.scheduler_name == scheduler_name) {
        return Bad(Field(path, "schedulerName"),
                   absl::StrCat("\"", scheduler_name, "\" is the name of another profile"));
      }
    }
    const auto base = bases_.find(scheduler_name);
    absl::StatusOr<Profile> merged =
        MergeProfile(base == bases_.end() ? BaseOf(scheduler_name) : base->second, sets);
    if (!merged.ok()) {
      return absl::Status(merged.status().code(),
                          absl::StrCat(Field(path, "plugins"), ".", merged.status().message()));
    }
    Profile profile = *std::move(merged);
    profile.scheduler_name = scheduler_name;
    for (ProfilePlugin& plugin : profile.plugins) {
      auto it = args.find(plugin.name);
      if (it != args.end()) plugin.args_json = it->second;
    }
    FAIRLEAD_RETURN_IF_ERROR(CheckNamed(sets, args, Field(path, "plugins")));
    config.profiles.push_back(std::move(profile));
    return absl::OkStatus();
  }

  // What kube-scheduler does not have runs at a point only if it implements it, which its object
  // tells. A wrong argument is Framework::Make's to tell.
  absl::Status CheckNamed(const PluginSets& sets, const std::map<std::string, std::string>& args,
                          const std::string& path) const {
    for (size_t i = 0; i < kPoints; ++i) {
      for (const PluginRef& ref : sets.points[i].enabled) {
        if (FindKnownPlugin(ref.name) != nullptr) continue;
        const auto it = args.find(ref.name);
        const auto plugin = registry_.Make(ref.name, it == args.end() ? "" : it->second);
        if (!plugin.ok() || *plugin == nullptr) continue;
        if (Implements(**plugin, static_cast<Point>(i))) continue;
        return Bad(absl::StrCat(path, ".", kPointNames[i], ".enabled"),
                   absl::StrCat("plugin \"", ref.name, "\" does not extend ", kPointNames[i]));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadPlugins(const dom::element& value, const std::string& path, PluginSets& sets) {
    const auto into = [this](PluginSet* set) -> FieldReader {
      return [this, set](const dom::element& v, const std::string& at) {
        return ReadPluginSet(v, at, *set);
      };
    };
    std::map<std::string, FieldReader> readers = {{"multiPoint", into(&sets.multi_point)}};
    for (size_t i = 0; i < kPoints; ++i) readers[kPointNames[i]] = into(&sets.points[i]);
    // Alpha in 1.36, for groups of pods.
    for (const char* point : {"placementGenerate", "placementScore"}) {
      readers[point] = [this](const dom::element& v, const std::string& at) -> absl::Status {
        PluginSet set;
        FAIRLEAD_RETURN_IF_ERROR(ReadPluginSet(v, at, set));
        if (set.enabled.empty()) return absl::OkStatus();
        return absl::UnimplementedError(
            absl::StrCat(at, ": Fairlead has no plugins of this point"));
      };
    }
    return ReadObject(value, path, readers);
  }

  absl::Status ReadPluginSet(const dom::element& value, const std::string& path, PluginSet& set) {
    return ReadObject(
        value, path,
        {{"enabled",
          [&](const dom::element& list, const std::string& list_path) {
            return ReadArray(list, list_path, [&](const dom::element& item, const std::string& at) {
              return ReadEnabled(item, at, set);
            });
          }},
         {"disabled", [&](const dom::element& list, const std::string& list_path) {
            return ReadArray(list, list_path, [&](const dom::element& item, const std::string& at) {
              return ReadDisabled(item, at, set);
            });
          }}});
  }

  absl::Status ReadEnabled(const dom::element& value, const std::string& path, PluginSet& set) {
    FAIRLEAD_ASSIGN_OR_RETURN(PluginRef ref, ReadRef(value, path));
    if (!Known(ref.name)) return Unknown(Field(path, "name"), ref.name);
    if (set.Enabled(ref.name) != nullptr) {
      return Bad(Field(path, "name"), absl::StrCat("\"", ref.name, "\" is enabled twice"));
    }
    set.enabled.push_back(std::move(ref));
    return absl::OkStatus();
  }

  absl::Status ReadDisabled(const dom::element& value, const std::string& path, PluginSet& set) {
    FAIRLEAD_ASSIGN_OR_RETURN(PluginRef ref, ReadRef(value, path));
    if (ref.name != "*" && !Known(ref.name)) {
      return Unknown(Field(path, "name"), ref.name);
    }
    set.disabled.push_back(std::move(ref.name));
    return absl::OkStatus();
  }

  static absl::StatusOr<PluginRef> ReadRef(const dom::element& value, const std::string& path) {
    PluginRef ref;
    FAIRLEAD_RETURN_IF_ERROR(ReadObject(
        value, path,
        {{"name", IntoString(&ref.name)},
         {"weight", [&](const dom::element& v, const std::string& at) -> absl::Status {
            if (v.get(ref.weight) != simdjson::SUCCESS || ref.weight < 0 ||
                ref.weight > kMaxWeight) {
              return Bad(at, absl::StrCat("must be a whole number from 0 to ", kMaxWeight));
            }
            return absl::OkStatus();
          }}}));
    if (ref.name.empty()) return Bad(Field(path, "name"), "must not be empty");
    return ref;
  }

  absl::Status ReadPluginConfig(const dom::element& value, const std::string& path,
                                std::map<std::string, std::string>& args) {
    std::string name;
    std::string text;
    FAIRLEAD_RETURN_IF_ERROR(
        ReadObject(value, path,
                   {{"name", IntoString(&name)},
                    {"args", [&](const dom::element& v, const std::string& at) -> absl::Status {
                       if (!v.is_object()) return Bad(at, "must be an object");
                       text = simdjson::minify(v);
                       return absl::OkStatus();
                     }}}));
    if (!Known(name)) return Unknown(Field(path, "name"), name);
    FAIRLEAD_RETURN_IF_ERROR(CheckArgs(name, text, Field(path, "args")));
    if (!args.emplace(name, text).second) {
      return Bad(Field(path, "name"), absl::StrCat("\"", name, "\" is configured twice"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckArgs(const std::string& name, const std::string& text,
                         const std::string& path) const {
    if (text.empty()) return absl::OkStatus();
    if (const KnownPlugin* const known = FindKnownPlugin(name); known != nullptr) {
      dom::parser parser;
      dom::element value;
      if (parser.parse(text).get(value) != simdjson::SUCCESS) return Bad(path, "cannot be read");
      // The args are a type of upstream's API group.
      FAIRLEAD_RETURN_IF_ERROR(CheckText(value, path, "apiVersion", kApiVersion));
      FAIRLEAD_RETURN_IF_ERROR(CheckText(value, path, "kind", absl::StrCat(name, "Args")));
      if (known->support != Support::kPlugin) return CheckBuiltInArgs(name, value, path);
    }
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) return absl::OkStatus();
    // The plugin reads them: one is made to hear what it says, here where the place is known.
    const absl::Status made = registry_.Make(name, text).status();
    if (!absl::IsInvalidArgument(made)) return absl::OkStatus();  // any other failure is not theirs
    absl::string_view what = made.message();
    return absl::Status(made.code(), absl::ConsumePrefix(&what, "args")
                                         ? absl::StrCat(path, what)
                                         : absl::StrCat(path, ": ", what));
  }

  // The field may be left out.
  static absl::Status CheckText(const dom::element& value, const std::string& path,
                                const char* field, absl::string_view want) {
    dom::element given;
    if (value[field].get(given) != simdjson::SUCCESS) return absl::OkStatus();
    std::string_view have;
    if (given.get(have) == simdjson::SUCCESS && ToAbsl(have) == want) return absl::OkStatus();
    return Bad(Field(path, field), absl::StrCat("must be ", want));
  }

  // Of plugins that nothing makes; the others read their own.
  static absl::Status CheckBuiltInArgs(const std::string& name, const dom::element& value,
                                       const std::string& path) {
    std::string ignored;
    std::map<std::string, FieldReader> readers = {{"apiVersion", IntoString(&ignored)},
                                                  {"kind", IntoString(&ignored)}};
    int64_t percentage = 10, absolute = 100;
    if (name == "DefaultPreemption") {
      readers["minCandidateNodesPercentage"] = [&](const dom::element& v, const std::string& at) {
        return ReadNumber(v, at, &percentage);
      };
      readers["minCandidateNodesAbsolute"] = [&](const dom::element& v, const std::string& at) {
        return ReadNumber(v, at, &absolute);
      };
    }
    FAIRLEAD_RETURN_IF_ERROR(ReadObject(value, path, readers));
    FAIRLEAD_RETURN_IF_ERROR(
        CheckPercentage(Field(path, "minCandidateNodesPercentage"), percentage));
    if (absolute < 0 || (absolute == 0 && percentage == 0)) {
      return Bad(Field(path, "minCandidateNodesAbsolute"),
                 absolute < 0 ? "must not be negative"
                              : "cannot be zero at the same time as minCandidateNodesPercentage");
    }
    return absl::OkStatus();
  }

  [[nodiscard]] bool Known(absl::string_view name) const {
    return FindKnownPlugin(name) != nullptr ||
           std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  [[nodiscard]] absl::Status Unknown(const std::string& path, absl::string_view name) const {
    std::vector<std::string> known = BuiltInPluginNames();
    known.insert(known.end(), names_.begin(), names_.end());
    std::sort(known.begin(), known.end());
    return Bad(path, absl::StrCat("\"", name, "\" is not a plugin of Fairlead; known: ",
                                  absl::StrJoin(known, ", ")));
  }

  const Registry& registry_;
  std::vector<std::string> names_;
  const ProfileBases& bases_;
};

}  // namespace

absl::StatusOr<SchedulerConfiguration> ReadSchedulerConfiguration(absl::string_view json,
                                                                  const Registry& registry,
                                                                  const ProfileBases& bases) {
  dom::parser parser;
  dom::element root;
  const simdjson::error_code error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat(kKind, " is not valid JSON: ", simdjson::error_message(error)));
  }
  return Reader(registry, bases).Read(root);
}

}  // namespace fairlead::framework
