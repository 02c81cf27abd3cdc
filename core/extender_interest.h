// Which pods are an extender's business.
#pragma once

#include "scheduler/model/extender_config.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// It manages a resource that pods of the class request, or manages none.
bool IsInterested(const state::ClusterState& state, const model::ExtenderConfig& extender,
                  const state::PodClass& pod_class);

}  // namespace fairlead::core
