// All options of the core. core/configuration.h reads them from files. Thread-safety: plain values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autoscale-hook/hook.h"
#include "core/gpu_reservations.h"
#include "core/reconcile/bindings.h"
#include "core/reconcile/evictions.h"
#include "core/reconcile/refusals.h"
#include "core/shard.h"
#include "grouping/table.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/extender_config.h"
#include "scheduler/model/remote_plugin.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// Where the usage of queues is stored across restarts, if it is recorded at all (engine.usage).
struct UsageStoreOptions {
  std::string ns, name;  // of the ConfigMap; no name: not stored
  absl::Duration interval = absl::Minutes(1);
  // Older time is coarsened until it fits; a ConfigMap may have 1 MiB.
  size_t max_bytes = 256 << 10;
};

// What nodes are provisioned for besides pods that lack room (core/capacity_objects.h), and instead
// of evictions.
struct CapacityOptions {
  bool buffers = true, provisioning_requests = true;
  absl::Duration booking = absl::Minutes(10);  // how long the room of a request is kept
  // Of queues that do not say (core/queue_provisioning.h).
  engine::OverQuota over_quota = engine::OverQuota::kEvict;
};

// Whether pods are grouped by their owners (core/pod_grouper.h).
struct GroupingOptions {
  bool enabled = false;
  // Not null if it is enabled.
  std::shared_ptr<const grouping::KindTable> table;
  int64_t reads_per_second = 200;  // of owners that pods wait for (core/owner_cache.h)
  bool suspend = true;  // instead of evicting pods, where their kind can be (core/suspensions.h)
};

struct Options {
  // The texts that ReadConfiguration() made this of; empty: none.
  std::vector<std::string> documents;
  std::optional<Shard> shard;  // absent: the whole cluster
  state::StateOptions state;
  engine::EngineOptions engine;
  hook::HookOptions hook;
  CapacityOptions capacity;
  EvictionOptions evictions;
  GroupSettle group_settle;
  GroupingOptions grouping;
  GangRefusalOptions gang_refusals;
  GpuSharingOptions gpu_sharing;  // `enabled` and `ns` are those of `state`
  // At least one. A pod is placed by the profile of its scheduler name; by the first one if there
  // is none of that name.
  std::vector<framework::Profile> profiles = {framework::DefaultProfile()};
  // Asked before a pod is bound (core/extender_plugin.h).
  std::vector<model::ExtenderConfig> extenders;
  // Plugins in other programs; `plugins` has them by name.
  std::vector<model::RemotePluginConfig> remote_plugins;
  // Has all that the profiles name; not null.
  framework::RegistryPtr plugins = plugins::BuiltIn();
  // How long a scheduler that is a guest has to bind a pod to the node that it was granted.
  absl::Duration guest_bind_timeout = absl::Minutes(1);
  bool emit_events = true;
  // The statuses that KAI's controllers write are written (reconcile/kai_statuses.h).
  bool kai_status = false;
  // Writes of verdicts that may be unanswered at once (reconcile/status_updater.h);
  // model::kUnlimited: any number.
  int64_t verdicts_in_flight = 1000;
  UsageStoreOptions usage_store;
  // Pods that name no queue run without any Queue object (queues/default_queue.h).
  bool builtin_default_queue = true;
};

// What the state has to keep for these profiles, and which of them places whose pods: StateOptions
// as they are to be used.
state::StateOptions StateOptionsFor(const Options& options);

// Whether decisions with these options read objects of the kind. Of the others they expect nothing.
bool Reads(const Options& options, model::Kind kind);

// Scheduler names "fairlead" and "kai-scheduler", the built-in profile, the hook on with kwok: the
// options of simulations, benchmarks and tests. A configuration file begins without the hook
// (core/configuration.h).
Options KwokOptions();

}  // namespace fairlead::core
