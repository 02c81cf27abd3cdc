// What a profile of a KubeSchedulerConfiguration makes of its defaults: upstream's merge
// (pkg/scheduler/apis/config/v1/default_plugins.go mergePlugins, framework/runtime/framework.go
// expandMultiPointPlugins).
//
//  - multiPoint starts from the base. `disabled` takes defaults away ("*": all); a default named in
//    `enabled` keeps its place; others follow in the order given.
//  - A point runs: what is enabled at it and at multiPoint, in the point's order; what multiPoint
//    has that runs there, unless it is disabled at the point; what is enabled at the point alone. A
//    plugin enabled at its point is not touched by `disabled` there.
//  - A weight that is absent or 0 is 1 for what is enabled by name. Others keep their default.
//
// Plugins run after Score in the order in which they filter; those that do not filter come after
// them, in the order given. What kube-scheduler's own plugins do at these points, the core does.
// The core does what SchedulingGates, PrioritySort and DefaultBinder do. SchedulingGates cannot be
// left out; another plugin at queueSort, or at bind, takes the place of the other two. Without
// DefaultPreemption at postFilter, pods are evicted for pods of the profile only where another
// plugin there says so.
//
// Thread-safety: pure function.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/default_profiles.h"
#include "scheduler/framework/framework.h"
#include "scheduler/framework/known_plugins.h"

namespace fairlead::framework {

struct PluginRef {
  std::string name;
  int64_t weight = 0;  // 0: not given
};

// As written.
struct PluginSet {
  std::vector<PluginRef> enabled;
  std::vector<std::string> disabled;
  [[nodiscard]] bool Disables(absl::string_view name) const;
  [[nodiscard]] const PluginRef* Enabled(absl::string_view name) const;
};

struct PluginSets {
  PluginSet multi_point;
  std::array<PluginSet, kPoints> points;  // by Point
  [[nodiscard]] const PluginSet& At(Point point) const {
    return points[static_cast<size_t>(point)];
  }
};

// Without its name and arguments. InvalidArgument or Unimplemented, which begin with the path below
// "plugins" ("bind: ..", "filter.enabled: .."), for what cannot run.
absl::StatusOr<Profile> MergeProfile(ProfileBase base, const PluginSets& sets);

}  // namespace fairlead::framework
