// Which pods are an extender's business, and which extenders are left alone for a while
// (base/call_health.h).
//
// Thread-safety: the owner's thread. Complexity: O(extenders).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/call_health.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/extender_config.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// It manages a resource that pods of the class request, or manages none.
bool IsInterested(const state::ClusterState& state, const model::ExtenderConfig& extender,
                  const state::PodClass& pod_class);

class ExtenderHealth {
 public:
  explicit ExtenderHealth(size_t extenders) : health_(extenders) {}

  struct Choice {
    std::vector<int32_t> extenders;  // those that are not paused
    // Why the last of those failed that are paused and not ignorable; nothing: there are none.
    std::string paused;
  };
  // Of these, by position in `configs`.
  [[nodiscard]] Choice Choose(const std::vector<int32_t>& wanted,
                              const std::vector<model::ExtenderConfig>& configs,
                              absl::Time now) const;
  // The answer to what these were asked together.
  void Take(const std::vector<int32_t>& asked, const model::ActionResult& result, absl::Time now);

 private:
  std::vector<CallHealth> health_;  // by extender
};

}  // namespace fairlead::core
