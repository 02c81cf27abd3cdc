#include "core/extender_health.h"

#include <algorithm>

namespace fairlead::core {

bool IsInterested(const state::ClusterState& state, const model::ExtenderConfig& extender,
                  const state::PodClass& pod_class) {
  if (extender.managed_resources.empty()) return true;
  return std::any_of(extender.managed_resources.begin(), extender.managed_resources.end(),
                     [&](const model::ExtenderConfig::ManagedResource& managed) {
                       const auto resource = state.resource_names().Find(managed.name);
                       return resource.has_value() && pod_class.requests[*resource] > 0;
                     });
}

ExtenderHealth::Choice ExtenderHealth::Choose(const std::vector<int32_t>& wanted,
                                              const std::vector<model::ExtenderConfig>& configs,
                                              absl::Time now) const {
  Choice choice;
  for (const int32_t index : wanted) {
    const CallHealth& health = health_[static_cast<size_t>(index)];
    if (!health.Pauses(now)) {
      choice.extenders.push_back(index);
    } else if (!configs[static_cast<size_t>(index)].ignorable) {
      choice.paused = health.last_failure();
    }
  }
  return choice;
}

void ExtenderHealth::Take(const std::vector<int32_t>& asked, const model::ActionResult& result,
                          absl::Time now) {
  for (const int32_t index : asked) {
    CallHealth& health = health_[static_cast<size_t>(index)];
    if (result.status.ok()) {
      health.Succeeded();
    } else if (index == result.extender) {
      health.Failed(std::string(result.status.message()), now);
    }
  }
}

}  // namespace fairlead::core
