#include "scheduler/framework/extenders.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/json_writer.h"
#include "base/status_macros.h"
#include "scheduler/model/qualified_name.h"

namespace fairlead::framework {
namespace {

constexpr char kFitPlugin[] = "NodeResourcesFit";
constexpr char kIgnoredResources[] = "ignoredResources";

FieldReader IntoPem(std::string* out) {
  return [out](const dom::element& value, const std::string& path) -> absl::Status {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadString(value, path));
    // The text is a secret perhaps: it is not in the message.
    if (!absl::Base64Unescape(text, out)) return Bad(path, "is not base64");
    return absl::OkStatus();
  };
}

absl::Status ReadTimeout(const dom::element& value, const std::string& path, absl::Duration* out) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadString(value, path));
  absl::Duration timeout;
  if (!absl::ParseDuration(text, &timeout) || timeout < absl::ZeroDuration() ||
      timeout > absl::Hours(1)) {
    return Bad(path, "must be a duration from 0s to 1h, as in 5s");
  }
  // Upstream's default for 0.
  if (timeout > absl::ZeroDuration()) *out = timeout;
  return absl::OkStatus();
}

absl::Status ReadTls(const dom::element& value, const std::string& path,
                     model::ExtenderConfig::Tls& tls) {
  return ReadObject(value, path,
                    {{"insecure", IntoBool(&tls.insecure)},
                     {"serverName", IntoString(&tls.server_name)},
                     {"certFile", IntoString(&tls.certificate_file)},
                     {"keyFile", IntoString(&tls.key_file)},
                     {"caFile", IntoString(&tls.ca_file)},
                     {"certData", IntoPem(&tls.certificate_pem)},
                     {"keyData", IntoPem(&tls.key_pem)},
                     {"caData", IntoPem(&tls.ca_pem)}});
}

absl::Status ReadManaged(const dom::element& value, const std::string& path,
                         std::set<std::string>& known, model::ExtenderConfig& extender) {
  model::ExtenderConfig::ManagedResource resource;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"name", IntoString(&resource.name)},
                  {"ignoredByScheduler", IntoBool(&resource.ignored_by_scheduler)}}));
  const std::string name = Field(path, "name");
  if (!model::IsExtendedResourceName(resource.name)) {
    return Bad(name, absl::StrCat("\"", resource.name, "\" is an invalid extended resource name"));
  }
  if (!known.insert(resource.name).second) {
    return Bad(name, absl::StrCat("\"", resource.name, "\" is managed by two extenders"));
  }
  extender.managed_resources.push_back(std::move(resource));
  return absl::OkStatus();
}

absl::Status CheckExtender(const model::ExtenderConfig& extender, const std::string& path) {
  const absl::string_view url = extender.url_prefix;
  if (!absl::StartsWith(url, "http://") && !absl::StartsWith(url, "https://")) {
    return Bad(Field(path, "urlPrefix"), "must begin with http:// or https://");
  }
  if (url.find_first_of("@?# ") != absl::string_view::npos) {
    return Bad(Field(path, "urlPrefix"),
               "must be an address with a path at most: no user, no query");
  }
  if (!extender.prioritize_verb.empty() && extender.weight <= 0) {
    return Bad(Field(path, "weight"), "must have a positive weight applied to it");
  }
  if (extender.weight > kMaxWeight) {
    return Bad(Field(path, "weight"), absl::StrCat("must be at most ", kMaxWeight));
  }
  return absl::OkStatus();
}

absl::Status ReadExtender(const dom::element& value, const std::string& path,
                          std::set<std::string>& managed, model::ExtenderConfig& extender) {
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"urlPrefix", IntoString(&extender.url_prefix)},
       {"filterVerb", IntoString(&extender.filter_verb)},
       {"prioritizeVerb", IntoString(&extender.prioritize_verb)},
       {"preemptVerb", IntoString(&extender.preempt_verb)},
       {"bindVerb", IntoString(&extender.bind_verb)},
       {"weight", [&](const dom::element& v,
                      const std::string& at) { return ReadNumber(v, at, &extender.weight); }},
       {"enableHTTPS", IntoBool(&extender.enable_https)},
       {"tlsConfig",
        [&](const dom::element& v, const std::string& at) { return ReadTls(v, at, extender.tls); }},
       {"httpTimeout",
        [&](const dom::element& v, const std::string& at) {
          return ReadTimeout(v, at, &extender.http_timeout);
        }},
       {"nodeCacheCapable", IntoBool(&extender.node_cache_capable)},
       {"managedResources",
        [&](const dom::element& v, const std::string& at) {
          return ReadArray(v, at, [&](const dom::element& item, const std::string& item_at) {
            return ReadManaged(item, item_at, managed, extender);
          });
        }},
       {"ignorable", IntoBool(&extender.ignorable)}}));
  while (absl::EndsWith(extender.url_prefix, "/")) extender.url_prefix.pop_back();
  return CheckExtender(extender, path);
}

// The args with these resources among those that the plugin ignores.
absl::StatusOr<std::string> WithIgnored(const std::string& args,
                                        const std::vector<std::string>& names) {
  dom::parser parser;
  dom::object fields;
  const bool none = args.empty();
  if (!none && parser.parse(args).get(fields) != simdjson::SUCCESS) {
    return Bad(kFitPlugin, "args cannot be read");
  }
  JsonWriter json;
  json.BeginObject();
  std::vector<std::string> ignored;
  if (!none) {
    for (const auto& [key, value] : fields) {
      dom::array list;
      if (key == kIgnoredResources && value.get(list) == simdjson::SUCCESS) {
        for (const dom::element item : list) {
          FAIRLEAD_ASSIGN_OR_RETURN(std::string name, ReadString(item, kIgnoredResources));
          ignored.push_back(std::move(name));
        }
        continue;
      }
      json.Key(absl::string_view(key.data(), key.size())).Raw(simdjson::minify(value));
    }
  }
  for (const std::string& name : names) {
    if (std::find(ignored.begin(), ignored.end(), name) == ignored.end()) ignored.push_back(name);
  }
  json.Key(kIgnoredResources).BeginArray();
  for (const std::string& name : ignored) json.String(name);
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace

absl::Status ReadExtenders(const dom::element& value, const std::string& path,
                           std::vector<model::ExtenderConfig>& extenders) {
  std::set<std::string> managed;
  size_t binders = 0;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadArray(value, path, [&](const dom::element& item, const std::string& at) {
        model::ExtenderConfig& extender = extenders.emplace_back();
        const absl::Status status = ReadExtender(item, at, managed, extender);
        if (!extender.bind_verb.empty()) ++binders;
        return status;
      }));
  if (binders > 1) {
    return Bad(path, absl::StrCat(binders, " extenders have a bindVerb: only one can bind"));
  }
  return absl::OkStatus();
}

absl::Status LeaveToExtenders(const std::vector<model::ExtenderConfig>& extenders,
                              std::vector<Profile>& profiles) {
  std::vector<std::string> names;
  for (const model::ExtenderConfig& extender : extenders) {
    for (const auto& resource : extender.managed_resources) {
      if (resource.ignored_by_scheduler) names.push_back(resource.name);
    }
  }
  if (names.empty()) return absl::OkStatus();
  for (Profile& profile : profiles) {
    for (ProfilePlugin& plugin : profile.plugins) {
      if (plugin.name != kFitPlugin) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(plugin.args_json, WithIgnored(plugin.args_json, names));
    }
  }
  return absl::OkStatus();
}

}  // namespace fairlead::framework
