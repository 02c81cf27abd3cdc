// The scale hook. One Step per cycle turns demand into NodeRequests, follows every request until
// its node is usable or given up, and scales down unneeded nodes. It is pure: it returns
// model::Actions. Its only memory besides NodeRequest objects and nodes (invariant I5) are timers,
// which a restart may safely lose. One ledger (machines/machine_ledger.h) has everything known
// about machines; other parts read it.
//
// Invariants (docs/autoscaling.md; property-tested):
//   I1 no request covers a policy-blocked pod          I2 requested for a queue <= its headroom
//   I3 at most one active request covers a pod         I4 same state: same requests, no write
//   I5 a restart at any instruction keeps I3           I6 GPUs and $/h <= caps, in flight counted
//   I7 a node is removed only if nothing needs it, re-checked after its taint is seen; a machine
//      without a node is ended only after a list has shown that it has none
//
// Thread-safety: none; the owner's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/machines/evacuation.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "autoscale-hook/machines/machine_report.h"
#include "autoscale-hook/machines/node_lists.h"
#include "autoscale-hook/planner/placement.h"
#include "autoscale-hook/planner/queue_caps.h"
#include "autoscale-hook/provisioning/estimate.h"
#include "autoscale-hook/provisioning/guard_options.h"
#include "base/derived_names.h"
#include "scheduler/model/action.h"
#include "scheduler/model/node_devices.h"
#include "scheduler/model/offered_node.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

struct HookOptions {
  bool enabled = true;
  // The provider of nodes. Never chosen by default: empty means that the hook is off.
  std::string provider;
  std::vector<std::string> known_providers = {"kwok"};  // that NodePools may name
  int64_t max_nodes = 1000;                           // that the hook may hold; kUnlimited: no cap
  int64_t cluster_gpu_limit = model::kUnlimited;      // GPUs that the hook may hold, in devices
  std::map<std::string, int64_t> gpu_limit_by_model;  // devices
  int64_t cost_limit_micro_usd_per_hour = model::kUnlimited;
  absl::Duration unneeded_after = absl::Minutes(5);   // empty for that long: removed
  absl::Duration cancel_after = absl::Seconds(30);    // unneeded and unregistered: cancelled
  absl::Duration launch_timeout = absl::Minutes(5);   // request written -> launched
  absl::Duration ready_timeout = absl::Minutes(15);   // launched -> usable
  absl::Duration backoff_initial = absl::Minutes(1);  // per type, zone and capacity type
  absl::Duration backoff_max = absl::Minutes(30);
  absl::Duration expected_boot = absl::Minutes(3);  // shown to users as expected time
  // No node is removed before it has run for so long, from its launch on.
  absl::Duration minimum_lifetime = absl::ZeroDuration();
  // Providers bill begun periods: a node is removed shortly before the next one begins. Zero: they
  // bill by the second.
  absl::Duration billing_period = absl::ZeroDuration();
  // Of pools that do not say; unneeded_after is its consolidate_after.
  model::Disruption disruption;
  // A node with pods is emptied if what that saves in so long is more than what it costs.
  absl::Duration consolidation_horizon = absl::Hours(1);
  int64_t max_new_requests_per_step = 1000;
  int64_t max_removals_per_step = 100;
  // Nodes that are removed within a minute, or a tenth of all if that is more.
  int64_t removals_per_minute = 100;
  // Demand is gathered until nothing new has come for `quiet`, at most `max`; zero: no gathering.
  absl::Duration gathering_quiet = absl::Milliseconds(300);
  absl::Duration gathering_max = absl::Seconds(3);
  GuardOptions guard;  // rate of provisioning, and memory of purchases that did not help
  std::shared_ptr<DerivedNames> derived_names = nullptr;  // of requests and launch sets
  // Of the names of requests; letters, digits and dashes. Machines with other names are others'.
  std::string request_prefix = "fl-";
  // Of each request, and of the nodes of the built-in pool.
  model::StringMap node_labels = {};
};

// Checks that the provider is a known one, and that there is one if the hook is enabled.
// InvalidArgument names `field`, the place of the setting, and the known providers.
absl::Status CheckProvider(const HookOptions& options, absl::string_view field);

// What the core tells the hook about a node in each step.
struct NodeUse {
  std::string name, uid;
  std::string node_request;      // empty: not ours, never touched
  bool registered = false;       // the Node object exists
  bool ready = false;            // Ready, startup taints gone, devices as announced
  bool usable_in_part = false;   // ready, but some of the announced devices are missing
  bool removal_tainted = false;  // our taint is visible on it
  // The pods that were bound to it before our taint are visible, too.
  bool pods_settled = true;
  // True if the node has pods (except those of DaemonSets and static pods), pods are pipelined to
  // it, or an annotation holds it. Ordered nodes that have not registered have a value, too.
  bool needed = false;
  // Needed, and only because pods are on it.
  bool needed_by_pods_alone = false;
  // The cloud takes its machine back soon: spot capacity, maintenance.
  bool interrupted = false;
  std::string provider_id;
  model::ResourceList allocatable;  // while it is registered
  // What pods of DaemonSets and static pods on it request.
  model::ResourceList daemon_requests = {};
  // What DRA drivers have published for it; null: nothing, or not all of it yet. Equal ones are one
  // object.
  std::shared_ptr<const model::NodeDevices> devices = nullptr;
  // The request's fields from the node's labels; used only if the request object is gone.
  std::string instance_type, pool, zone;
  bool spot = false;
  std::string reservation = {};
  friend bool operator==(const NodeUse&, const NodeUse&) = default;
};

struct StepInput {
  absl::Time now;
  const Demand* demand = nullptr;
  const DemandMembers* members = nullptr;  // needed if an item of the demand has several members
  // Gather() was told what is demanded. Else the step finds that out: then each item has one
  // member.
  bool gathered = false;
  std::vector<const model::NodePool*> pools;  // by name; empty: one default pool
  std::vector<std::string> pool_problems;     // of NodePools that are wrong, for people
  // Every node from a request, ordered ones too, by name. A request without an entry counts as
  // needed: nothing is removed on missing data.
  const std::vector<NodeUse>* nodes = nullptr;
  // Of each of the nodes: two nodes of any steps that have one version, which is not 0, are equal
  // in all fields. Null: every step looks at all of them.
  const std::vector<uint64_t>* node_versions = nullptr;
  // Of queues that have one, by name; null: none.
  const std::vector<QueueCap>* queue_caps = nullptr;
  // Null: no node with pods is emptied.
  Evacuation* evacuation = nullptr;
};

// What a call to a provider is about: its answer is matched by the request's uid and the machine's
// id, because the name may have another object by then.
struct ProviderCall {
  std::string request_name, request_uid;
  std::string provider_id;  // of a TerminateNode
  bool launch = false;
};

struct StepOutput {
  // Writes of requests and status, provider calls, taints; the caller sets ids.
  std::vector<model::Action> actions;
  // Of each TerminateNode in `actions`, in their order.
  std::vector<ProviderCall> ends;
  // A consistent list of all nodes is needed, which is begun after this step (node_lists.h); the
  // number names it. 0: none.
  uint64_t node_list = 0;
  // Requests created in this step, each with its future node: the caller adds these nodes to its
  // state at once as ordered nodes. `adopted`: the request was written again for an existing node;
  // nothing was provisioned.
  struct NewNode {
    model::NodeRequest request;
    model::Node node;
    bool adopted = false;
  };
  std::vector<NewNode> created;
  // Requests to whose node pods must not be pipelined any more: cancelled, failed, or never
  // written. The caller removes their ordered nodes from its state at once, with the pods pipelined
  // there, before it adds `created` (a name that was never written may be used again at once).
  std::vector<std::string> withdrawn;
  // In the order of the demand; together they have its members, and none has members of two items.
  std::vector<DemandOutcome> outcomes;
  // Names of requests whose nodes are to be seen otherwise from now on: they begin or cease to be
  // emptied (Machine::emptying); or the request is gone, and a provider has reported its machine.
  std::vector<std::string> look_again;
  // Nodes whose pods are to be evicted, until the next Step says otherwise (machines/emptying.h).
  struct EmptiedNode {
    std::string name, why;
  };
  std::vector<EmptiedNode> emptied;
  // The earliest instant at which a Step could do something new although nothing changed
  // (time-outs, back-off, unneeded_after, gathering); infinite future if none. It is a whole
  // second, as a Step truncates its `now`, except for gathering. A Step at that instant finds its
  // timer due.
  absl::Time wake_at = absl::InfiniteFuture();
};

class Hook {
 public:
  // `catalog` outlives the hook.
  Hook(HookOptions options, const Catalog* catalog);
  ~Hook();
  // Takes over what another hook of this process has learned: the rate that is used up, back-offs,
  // sizes of nodes, purchases that did not help. Before the first Step.
  void Continue(Hook& former);

  // ---- events from the watch of NodeRequests. True if decisions have to be made again.
  bool Observe(const model::NodeRequest& request);
  bool ObserveGone(const std::string& name, const std::string& uid);

  // Before a Step: what the demand stands for since the last call. Returns the workloads for which
  // demand is gathered still (is_group, workload); no item of the Step may stand for some of them
  // and for others.
  const std::set<std::pair<bool, std::string>>& Gather(const DemandChanges& changes,
                                                       absl::Time now);
  StepOutput Step(const StepInput& input, Placement& placement);

  // The ledger of all machines.
  [[nodiscard]] const MachineLedger& machines() const;

  // An empty node of each kind that could be provisioned from these pools, including those in
  // back-off, as large as the last node of its kind. Without those that alone exceed a cap.
  [[nodiscard]] std::vector<model::OfferedNode> NodesOnOffer(
      const std::vector<const model::NodePool*>& pools) const;

  // Equal values mean that NodesOnOffer() of the same pools has not changed, but for boot times
  // that were learned since.
  [[nodiscard]] uint64_t offers_version() const;

  // The label sets of nodes that could be provisioned from these pools (offers.h), including those
  // in back-off.
  [[nodiscard]] std::vector<std::vector<std::string>> LabelsOnOffer(
      const std::vector<const model::NodePool*>& pools) const;

  // What would be provisioned for the item now if there were no other demand and no caps. Changes
  // nothing. Without `pools`: from the default pool.
  [[nodiscard]] Estimate EstimateFor(const DemandItem& item,
                                     const std::vector<const model::NodePool*>& pools,
                                     Placement& placement, absl::Time now) const;

  // The node that a request stands for, from its fields alone; for rebuilding ordered nodes at
  // start. It is usable: without startup taints. NotFound if the catalogue no longer has the type.
  // Labels and taints of its pool come from `pools`, or if that is empty from the pools of the last
  // Step. Its size is as announced, or that of the last node of its type and pool, with no more
  // GPUs than were ordered; less what DaemonSets will take of it, unless it has registered: then
  // their pods count as they come.
  [[nodiscard]] absl::StatusOr<model::Node> ExpectedNode(
      const model::NodeRequest& request, const std::vector<const model::NodePool*>& pools = {},
      bool registered = false) const;
  // What the catalogue and its NodePool declare of the devices of its node; null: nothing.
  [[nodiscard]] std::shared_ptr<const model::NodeDevices> DeclaredDevicesOf(
      const model::NodeRequest& request) const;
  // False if the request is of a reservation that the catalogue does not have, or not any more.
  [[nodiscard]] bool KnowsReservation(const model::NodeRequest& request) const;
  // The labels that its reservation gives the node.
  [[nodiscard]] model::StringMap ReservationLabels(const model::NodeRequest& request) const;
  // How long the machine takes from its launch until its node is usable, as others did.
  [[nodiscard]] absl::Duration ExpectedBoot(const model::NodeRequest& request) const;
  // The GPUs that the request was made for, in devices.
  [[nodiscard]] int64_t GpusOf(const model::NodeRequest& request) const;
  // The API server's answer to CreateNodeRequest. Until a creation is refused for certain, or is
  // unneeded and a fresh watch does not show its object, it counts against all caps; so a Step must
  // not be called while the watch of NodeRequests is not fresh. A rejected creation backs off as if
  // the provider had refused it, so that a server that rejects everything is not called in a loop.
  void OnCreateResult(const std::string& request_name, const absl::Status& status, absl::Time now);
  // The API server's answer to UpdateNodeRequestStatus, with the written status. Without it, and
  // without its effect in the watch, the write is repeated. True if a decision waits for it.
  bool OnStatusResult(const model::NodeRequest& written, const absl::Status& status,
                      absl::Time now);
  // The API server's answers to SetNodeTaint and DeleteNodeRequest. `uid`: of the request.
  void OnTaintResult(const std::string& node_uid, bool present, const absl::Status& status,
                     absl::Time now);
  void OnDeleteResult(const std::string& request_name, const std::string& uid,
                      const absl::Status& status, absl::Time now);
  // The answer to StepOutput::node_list, with the nodes of requests that the watch of nodes has not
  // shown, so that StepInput::nodes lacks them.
  void OnNodesListed(uint64_t number, const absl::Status& status,
                     const std::vector<ListedNode>& unseen, absl::Time now);
  // A provider's answer to LaunchNode or TerminateNode. `machine_id`: the id that it tells.
  void OnProviderResult(const ProviderCall& call, const absl::Status& status, absl::Time now,
                        const std::string& machine_id = "");
  // What a provider reports unasked (machines/machine_reports.h).
  void OnMachineReport(const MachineReport& report, absl::Time now);
  // What the provider sells from now on, in the place of the configured catalogue.
  void OnOffers(absl::string_view provider, std::shared_ptr<const Catalog> offers);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::hook
