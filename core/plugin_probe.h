// Measures filters and scores: asks some of them once more, about pods that were decided on, with a
// clock in the hand. So the decisions themselves read no clock, and are not slower: they ask a
// plugin about millions of nodes a second.
//
// Plugins are pure, and what they answer here is thrown away. Which class and which nodes are asked
// about follows from the turns alone.
//
// Ownership: what is measured belongs to the caller. Thread-safety: the owner's thread, between two
// steps. Complexity: kNodes x (filters + scores) of one class.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "core/plugin_durations.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class PluginProbe {
 public:
  static constexpr int kNodes = 8;
  using Steady = std::function<absl::Duration()>;  // a clock that never goes back

  // Times each filter and each score of the class on the next nodes, in the order of their names.
  // Points are kube-scheduler's Filter and Score; a score that depends on which nodes there are to
  // choose from is asked once about all of these (NormalizeScore).
  void Measure(const state::ClusterState& state, const framework::Framework& framework,
               state::PodClassId pod_class, const Steady& steady);
  [[nodiscard]] const PluginDurations& durations() const { return durations_; }
  [[nodiscard]] uint64_t turns() const { return turns_; }

 private:
  PluginDurations durations_;
  uint64_t turns_ = 0;
  std::string last_node_;
};

}  // namespace fairlead::core
