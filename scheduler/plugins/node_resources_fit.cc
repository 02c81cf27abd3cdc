#include "scheduler/plugins/node_resources_fit.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/state/left_out_devices.h"

namespace fairlead::plugins {

using framework::Code;

namespace {

absl::Status CheckNames(absl::string_view list, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!model::IsQualifiedName(names[i])) {
      return BadArg(absl::StrCat("args.", list, "[", i, "]"),
                    absl::StrCat("\"", names[i], "\" is no name of a resource"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIgnored(const std::vector<std::string>& names,
                          const std::vector<std::string>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!absl::StrContains(groups[i], '/')) continue;
    return BadArg(absl::StrCat("args.ignoredResourceGroups[", i, "]"),
                  "resource group name can't contain '/'");
  }
  FAIRLEAD_RETURN_IF_ERROR(CheckNames("ignoredResources", names));
  return CheckNames("ignoredResourceGroups", groups);
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeResourcesFit::Make(
    absl::string_view args_json) {
  std::vector<std::string> ignored;
  std::vector<std::string> groups;
  ScoringStrategy strategy;
  const ArgReader read_strategy = [&](absl::string_view path, const JsonElement& value) {
    return ReadScoringStrategy(path, value, strategy);
  };
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json,
                                    {{"ignoredResources", &ignored},
                                     {"ignoredResourceGroups", &groups},
                                     {"scoringStrategy", read_strategy}}));
  FAIRLEAD_RETURN_IF_ERROR(CheckIgnored(ignored, groups));
  return std::make_unique<NodeResourcesFit>(std::move(ignored), std::move(groups),
                                            std::move(strategy));
}

bool NodeResourcesFit::Ignored(absl::string_view resource) const {
  const size_t slash = resource.find('/');
  if (slash == absl::string_view::npos) return false;
  const absl::string_view group = resource.substr(0, slash);
  return std::find(ignored_.begin(), ignored_.end(), resource) != ignored_.end() ||
         std::find(ignored_groups_.begin(), ignored_groups_.end(), group) != ignored_groups_.end();
}

bool NodeResourcesFit::ChecksAmountOf(const state::ClusterState& state,
                                      model::ResourceIndex resource) const {
  const bool may_ignore = !ignored_.empty() || !ignored_groups_.empty();
  return !may_ignore || !Ignored(state.resource_names().Name(resource));
}

bool NodeResourcesFit::Filter(const framework::Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  const model::Resources& requests = context.pod_class.requests;
  const bool may_ignore = !ignored_.empty() || !ignored_groups_.empty();
  bool fits = true;
  bool pods = true;  // a pod slot is free
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t request = requests[resource];
    if (request <= 0) continue;
    const int64_t free = FreeAmount(node, context.capacity, resource);
    if (request <= free) continue;
    if (may_ignore && Ignored(context.state.resource_names().Name(resource))) continue;
    if (why == nullptr) return false;
    if (fits) {
      why->code = Code::kUnschedulable;
      why->reason.clear();
      why->missing.clear();
      why->detail.clear();
      fits = false;
    }
    if (request > node.allocatable[resource]) why->code = Code::kUnschedulableAndUnresolvable;
    why->missing.push_back({resource, model::SaturatingAdd(request, -free)});
    if (resource == model::kPods) {
      pods = false;
      continue;
    }
    const std::string& name = context.state.resource_names().Name(resource);
    absl::StrAppend(&why->reason, why->reason.empty() ? "" : ", ", "Insufficient ", name);
    if (why->detail.empty()) {
      why->detail = state::LeftOutOn(context.state.devices(), node.name(), name);
    }
  }
  if (!pods) {
    why->reason =
        why->reason.empty() ? "Too many pods" : absl::StrCat("Too many pods, ", why->reason);
  }
  return fits;
}

int64_t NodeResourcesFit::Score(const framework::Context& context,
                                const state::NodeInfo& node) const {
  return strategy_.Score(scored_.On(context, node));
}

}  // namespace fairlead::plugins
