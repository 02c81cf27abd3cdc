#include "core/config_remote_plugins.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/config_fields.h"
#include "scheduler/framework/known_plugins.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/plugins/remote_plugin.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

absl::Status ReadLabels(const dom::element& value, const std::string& path,
                        std::vector<std::string>& out) {
  FAIRLEAD_RETURN_IF_ERROR(ReadNames(value, path, out));
  for (const std::string& key : out) {
    if (!model::IsQualifiedName(key)) {
      return Bad(path, absl::StrCat("\"", key, "\" is no key of a label"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadPlugin(const dom::element& value, const std::string& path,
                        framework::Registry& registry,
                        std::vector<model::RemotePluginConfig>& plugins) {
  model::RemotePluginConfig plugin;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"name", Text(&plugin.name)},
                  {"address", Text(&plugin.address)},
                  {"caFile", Text(&plugin.ca_file)},
                  {"timeout", Span(&plugin.timeout)},
                  {"permitTimeout", Span(&plugin.permit_timeout)},
                  {"ignorable", Flag(&plugin.ignorable)},
                  {"nodeUsage", Flag(&plugin.node_usage)},
                  {"maxAge", Span(&plugin.max_age)},
                  {"podLabels", [&plugin](const dom::element& v, const std::string& at) {
                     return ReadLabels(v, at, plugin.pod_labels);
                   }}}));
  if (plugin.name.empty()) return Bad(path, "name is missing");
  if (plugin.address.empty()) return Bad(path, "address is missing");
  for (const auto& [field, span] :
       {std::pair{"timeout", plugin.timeout}, std::pair{"permitTimeout", plugin.permit_timeout},
        std::pair{"maxAge", plugin.max_age}}) {
    if (span > absl::ZeroDuration()) continue;
    return Bad(absl::StrCat(path, ".", field), "must be more than zero");
  }
  const std::string at = absl::StrCat(path, ".name");
  if (framework::FindKnownPlugin(plugin.name) != nullptr) {
    return Bad(at, absl::StrCat("\"", plugin.name, "\" is a plugin of kube-scheduler"));
  }
  framework::NamedPlugin named = plugins::RemotePlugin::For(plugin);
  const absl::Status registered = registry.Register(named.name, std::move(named.make));
  if (!registered.ok()) return Bad(at, registered.message());
  plugins.push_back(std::move(plugin));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadRemotePlugins(const dom::element& value, const std::string& path,
                               Options& options) {
  auto registry = std::make_shared<framework::Registry>(*options.plugins);
  FAIRLEAD_RETURN_IF_ERROR(
      framework::ReadArray(value, path, [&](const dom::element& item, const std::string& at) {
        return ReadPlugin(item, at, *registry, options.remote_plugins);
      }));
  options.plugins = std::move(registry);
  return absl::OkStatus();
}

}  // namespace fairlead::core
