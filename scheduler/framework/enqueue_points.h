// Upstream's extension point before a pod is considered at all (k8s.io/kube-scheduler/framework):
// PreEnqueue, and what of EnqueueExtensions it needs.
//
// A pod that is held back takes no part in decisions: nothing is charged, evicted or provisioned
// for it. It waits with `Gated` and the plugin's reason, as with spec.schedulingGates.
//
// Thread-safety: called on the thread that owns the state.
#pragma once

#include <string>
#include <vector>

#include "scheduler/framework/framework.h"
#include "scheduler/model/kind.h"

namespace fairlead::framework {

class PreEnqueuePlugin : public virtual Plugin {
 public:
  // Why the pod may not be considered yet; empty: it may. It follows from the arguments alone.
  // Asked of pods without a node, when they change and after the events below.
  [[nodiscard]] virtual std::string PreEnqueue(const state::ClusterState& state,
                                               const state::PodRecord& pod) const = 0;
  // After a change of an object of these kinds, pods that are held back are asked about again:
  // their number times the rate of those changes is what that costs.
  [[nodiscard]] virtual std::vector<model::Kind> EventsToRegister() const { return {}; }
};

}  // namespace fairlead::framework
