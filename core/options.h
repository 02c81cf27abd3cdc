// Everything that can be configured, as the core takes it. Read from files by core/configuration.h.
// Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "autoscale-hook/hook.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

struct Options {
  state::StateOptions state;
  engine::EngineOptions engine;
  hook::HookOptions hook;
  framework::Profile profile = framework::DefaultProfile();
  // Numbers in a verdict that change while its reason stays (position, node counts) are written
  // again at most this often for one workload.
  absl::Duration verdict_refresh = absl::Minutes(1);
  bool emit_events = true;
  // Pods that name no queue run without any Queue object (queues/default_queue.h).
  bool builtin_default_queue = true;
};

// scheduler names "fairlead" and "kai-scheduler", the built-in profile, the hook on.
Options DefaultOptions();

}  // namespace fairlead::core
