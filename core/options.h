// Everything that can be configured, as the core takes it. Read from files by core/configuration.h.
// Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "autoscale-hook/hook.h"
#include "core/gpu_reservations.h"
#include "core/reconcile/bindings.h"
#include "core/reconcile/evictions.h"
#include "core/reconcile/refusals.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// Where what queues have used outlives the process, if it is recorded at all (engine.usage).
struct UsageStoreOptions {
  std::string ns, name;  // of the ConfigMap; no name: nowhere
  absl::Duration interval = absl::Minutes(1);
  // Older time is coarsened until it fits; a ConfigMap may have 1 MiB.
  size_t max_bytes = 256 << 10;
};

struct Options {
  state::StateOptions state;
  engine::EngineOptions engine;
  hook::HookOptions hook;
  EvictionOptions evictions;
  GroupSettle group_settle;
  GangRefusalOptions gang_refusals;
  GpuSharingOptions gpu_sharing;  // `enabled` and `ns` are those of `state`
  framework::Profile profile = framework::DefaultProfile();
  bool emit_events = true;
  UsageStoreOptions usage_store;
  // Pods that name no queue run without any Queue object (queues/default_queue.h).
  bool builtin_default_queue = true;
};

// Scheduler names "fairlead" and "kai-scheduler", the built-in profile, the hook on with kwok: what
// simulations, benchmarks and tests run with. A configuration file begins without the hook
// (core/configuration.h).
Options DefaultOptions();

}  // namespace fairlead::core
