// Pods that a plugin holds back at PreEnqueue (framework/enqueue_points.h). The state has them as
// gated (model::Pod::held_by); here are their objects, to be put into the state again without that
// when the plugins let them in.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Determinism: pods are asked
// about in the order of their names. Complexity: O(plugins) per pod event, O(held pods * plugins)
// per event of a registered kind.
#pragma once

#include <map>
#include <set>
#include <string>

#include "scheduler/framework/framework.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/pod.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class HeldBack {
 public:
  explicit HeldBack(state::ClusterState& state) : state_(state) {}
  // Without it no pod is held back. The framework outlives it.
  void Use(const framework::Framework& framework);

  // The state has the pod as of this event: asks the plugins, and gates it if one holds it back.
  state::Change PodSeen(const model::Pod& pod);
  void PodGone(const std::string& ns, const std::string& name);
  // An object of the kind has changed: asks again.
  state::Change Changed(model::Kind kind);
  [[nodiscard]] size_t size() const { return held_.size(); }

 private:
  // Why it is held back; empty: it is not.
  [[nodiscard]] std::string ReasonOf(const model::Pod& pod) const;

  state::ClusterState& state_;
  const framework::Framework* framework_ = nullptr;
  std::set<model::Kind> events_;
  std::map<std::string, model::Pod> held_;  // by key, as the state has them
};

}  // namespace fairlead::core
