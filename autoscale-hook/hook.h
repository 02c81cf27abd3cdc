// The scale hook: one Step a cycle turns demand into NodeRequests, follows every request until its
// node is usable or given up, and scales unneeded nodes down. Pure: it answers with model::Actions
// and keeps no memory that NodeRequest objects and nodes do not carry (invariant I5), except
// timers, which a restart may safely forget. All that is known of machines is in one ledger
// (machines/machine_ledger.h), which others read.
//
// Invariants (docs/autoscaling.md; property-tested):
//   I1 a policy-blocked pod is covered by no request     I2 requested for a queue <= its headroom
//   I3 a pod is covered by at most one active request    I4 same state: same requests, no write
//   I5 a restart at any instruction keeps I3             I6 total GPUs and $/h <= caps, in flight
//   counted I7 a node is removed only if nothing needs it, re-checked after its taint is seen
//
// Thread-safety: none; the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/guard_options.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "autoscale-hook/placement.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

struct HookOptions {
  bool enabled = true;
  // Who is asked for nodes. Never chosen by default: empty means that the hook is off.
  std::string provider;
  std::vector<std::string> known_providers = {"kwok"};
  int64_t max_nodes = 1000;                           // that the hook may hold; kUnlimited: no cap
  int64_t cluster_gpu_limit = model::kUnlimited;      // GPUs that the hook may hold, in devices
  std::map<std::string, int64_t> gpu_limit_by_model;  // devices
  int64_t cost_limit_micro_usd_per_hour = model::kUnlimited;
  absl::Duration unneeded_after = absl::Minutes(5);   // empty for that long: it is removed
  absl::Duration cancel_after = absl::Seconds(30);    // the same, while it has not registered
  absl::Duration launch_timeout = absl::Minutes(5);   // request written -> launched
  absl::Duration ready_timeout = absl::Minutes(15);   // launched -> usable
  absl::Duration backoff_initial = absl::Minutes(1);  // per type, zone and capacity type
  absl::Duration backoff_max = absl::Minutes(30);
  absl::Duration expected_boot = absl::Minutes(3);  // told to people as expected time
  int64_t max_new_requests_per_step = 1000;
  int64_t max_removals_per_step = 100;
  // Demand is gathered until nothing new has come for `quiet`, at most `max`; zero: not at all.
  absl::Duration gathering_quiet = absl::Milliseconds(300);
  absl::Duration gathering_max = absl::Seconds(3);
  GuardOptions guard;  // rate of provisioning, and what did not help
};

// What must hold before the hook may run with these options: no provider is a hook that is off,
// unless `required`. InvalidArgument names the field and the known providers.
absl::Status CheckProvider(const HookOptions& options, bool required);

// What the hook must know of a node, given by the core each step.
struct NodeUse {
  std::string name, uid;
  std::string node_request;      // empty: not ours, never touched
  bool registered = false;       // the Node object exists
  bool ready = false;            // Ready, startup taints gone, devices as promised
  bool usable_in_part = false;   // the same, but some of the promised devices are missing
  bool removal_tainted = false;  // our taint is visible on it
  // Every pod that was bound to it before our taint is visible too.
  bool pods_settled = true;
  // Pods on it (those of DaemonSets and static ones aside), promised to it, or held by annotation.
  // Also told of ordered nodes that have not registered: promised to, or not.
  bool needed = false;
  std::string provider_id;
  model::ResourceList allocatable;  // while it is registered
  // What its labels say of the request that it came from; read only where that object is gone.
  std::string instance_type, pool, zone;
  bool spot = false;
  friend bool operator==(const NodeUse&, const NodeUse&) = default;
};

struct StepInput {
  absl::Time now;
  const Demand* demand = nullptr;
  std::vector<const model::NodePool*> pools;  // valid ones, by name; empty: one default pool
  // Every node from a request, ordered ones too, by name. A request without an entry is taken to be
  // needed: nothing is removed on missing data.
  const std::vector<NodeUse>* nodes = nullptr;
};

struct StepOutput {
  // Requests to be written, status updates, provider calls, taints; ids are set by the caller.
  std::vector<model::Action> actions;
  // Requests created in this step with the node each will become: the caller adds them to its state
  // at once as ordered nodes. `adopted`: written again for a node that is there and whose request
  // object is gone; nothing was provisioned.
  struct NewNode {
    model::NodeRequest request;
    model::Node node;
    bool adopted = false;
  };
  std::vector<NewNode> created;
  // Requests whose node must not be promised to pods any more: cancelled, failed, or never written.
  // The caller takes their ordered nodes out of its state at once, and the promises with them,
  // before it adds `created` (a name that was never written may be used again at once).
  std::vector<std::string> withdrawn;
  std::vector<DemandOutcome> outcomes;  // one per demand item, same order
  // The earliest instant at which a Step could do something new although nothing changed
  // (time-outs, back-off, unneeded_after, gathering); infinite future if none. Except for
  // gathering, a whole second, because that is what a Step makes of its `now`: called then, it
  // finds its timer due.
  absl::Time wake_at = absl::InfiniteFuture();
};

class Hook {
 public:
  // `catalog` outlives the hook.
  Hook(HookOptions options, const Catalog* catalog);
  ~Hook();

  // ---- what the watch of NodeRequests shows. True if decisions have to be made again.
  bool Observe(const model::NodeRequest& request);
  bool ObserveGone(const std::string& name, const std::string& uid);

  StepOutput Step(const StepInput& input, Placement& placement);

  // All that is known of machines.
  [[nodiscard]] const MachineLedger& machines() const;

  // An empty node of each kind that could be provisioned from these pools, those in backoff
  // included.
  [[nodiscard]] std::vector<model::Node> NodesOnOffer(
      const std::vector<const model::NodePool*>& pools) const;

  // Which labels the nodes have that could be provisioned from these pools (offers.h), those in
  // backoff included.
  [[nodiscard]] std::vector<std::vector<std::string>> LabelsOnOffer(
      const std::vector<const model::NodePool*>& pools) const;

  // The node that a request stands for, from its fields alone; for rebuilding ordered nodes at
  // start. Usable: without startup taints. NotFound if the catalogue no longer has the type. Labels
  // and taints of its pool come from `pools`, or where that is empty from the pools of the last
  // Step. As large as promised, or as the last node of its type and pool turned out.
  [[nodiscard]] absl::StatusOr<model::Node> ExpectedNode(
      const model::NodeRequest& request,
      const std::vector<const model::NodePool*>& pools = {}) const;
  // Answer of the API server to CreateNodeRequest. Optional: without it a creation that failed is
  // given up after launch_timeout. What is refused backs off as if the provider had refused it, so
  // that a server that refuses everything is not asked in a loop.
  void OnCreateResult(const std::string& request_name, const absl::Status& status, absl::Time now);
  // Answer of the API server to UpdateNodeRequestStatus, with what was written. Without it, and
  // without its effect in the watch, the write is repeated. True if a decision waits for it.
  bool OnStatusResult(const model::NodeRequest& written, const absl::Status& status,
                      absl::Time now);
  // Answer of a provider to LaunchNode or TerminateNode (ActionResult with its request's name).
  void OnProviderResult(const std::string& request_name, bool launch, const absl::Status& status,
                        absl::Time now, const std::string& machine_id = "");

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::hook
