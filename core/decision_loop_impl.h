// The parts of DecisionLoop and their interfaces. Internal to core: decision_loop.cc has steps,
// events_applied.cc what events change, bindings_loop.cc bindings and gangs that cannot be
// completed, answers_taken.cc other answers, evictions_loop.cc evictions, purchase.cc the exchange
// with the hook.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/capacity_objects.h"
#include "core/claim_plugin.h"
#include "core/decision_loop.h"
#include "core/demand.h"
#include "core/estimates.h"
#include "core/extender_plugin.h"
#include "core/framework_stage.h"
#include "core/guest_grants.h"
#include "core/headroom.h"
#include "core/held_back.h"
#include "core/managed_nodes.h"
#include "core/native_groups.h"
#include "core/node_pools.h"
#include "core/pod_grouper.h"
#include "core/pod_waits.h"
#include "core/preemption_asks.h"
#include "core/queue_provisioning.h"
#include "core/reconcile/bindings.h"
#include "core/reconcile/evictions.h"
#include "core/reconcile/group_annotations.h"
#include "core/reconcile/in_flight.h"
#include "core/reconcile/kai_statuses.h"
#include "core/reconcile/nominations.h"
#include "core/reconcile/refusals.h"
#include "core/reconcile/status_updater.h"
#include "core/shard.h"
#include "core/share_plugin.h"
#include "core/suspensions.h"
#include "core/unservable_demand.h"
#include "core/usage_store.h"
#include "core/volume_plugin.h"
#include "queues/tree.h"
#include "scheduler/framework/calling_plugin.h"
#include "scheduler/framework/judging_plugin.h"

namespace fairlead::core {

// Of the condition DisruptionTarget of evicted pods.
inline constexpr char kEvictionReason[] = "PreemptionByScheduler";

class DecisionLoop::Impl final : public BindingPipeline::Host {
 public:
  // How long a pod that has a node waits for its volumes to be bound, and its devices to be ready.
  struct BindTimeouts {
    absl::Duration volumes, devices;
  };
  Impl(const Options& loop_options, const hook::Catalog* catalog, const BindTimeouts& timeouts)
      : options(loop_options),
        state(loop_options.state),
        tree(state.resource_names()),
        hook(loop_options.hook, catalog),
        nodes(state, hook),
        nominations(state, BackoffOf(loop_options),
                    [this](model::Action action) { return Send(std::move(action)); }),
        verdicts(state, nominations,
                 {.hook_on = loop_options.hook.enabled,
                  .emit_events = loop_options.emit_events,
                  .max_in_flight = loop_options.verdicts_in_flight,
                  .derived_names = loop_options.engine.derived_names},
                 [this](model::Action action) {
                   ++stats.verdict_writes;
                   return Send(std::move(action));
                 }),
        usage(loop_options.usage_store),
        evictions(loop_options.evictions),
        annotations(state, BackoffOf(loop_options)),
        native_groups(state, verdicts, BackoffOf(loop_options)),
        preemption_asks(state, loop_options.extenders),
        extenders(state, loop_options.extenders,
                  [this](state::PodId pod) { return engine->NodesThatFit(pod); }),
        shares(state, SharingOf(loop_options), BackoffOf(loop_options), loop_options.emit_events),
        claims(state, {.backoff = BackoffOf(loop_options),
                       .binding_timeout = timeouts.devices,
                       .emit_events = loop_options.emit_events}),
        volumes(state, BackoffOf(loop_options), timeouts.volumes),
        permits(state, FrameworkStage::Points::kPermit),
        pre_binds(state, FrameworkStage::Points::kPreBind),
        bindings(state, BackoffOf(loop_options), loop_options.group_settle, *this),
        grants(loop_options.guest_bind_timeout),
        refusals(state, loop_options.gang_refusals) {
    // What they answer decides where the pod goes, and so what else has to be reserved.
    if (!loop_options.extenders.empty()) bindings.Register(&extenders);
    bindings.Register(&permits);
    bindings.Register(&claims);
    bindings.Register(&shares);
    bindings.Register(&volumes);
    bindings.Register(&pre_binds);
    if (loop_options.kai_status) kai_statuses.emplace(state, BackoffOf(loop_options));
    if (loop_options.shard.has_value()) {
      shard.emplace(*loop_options.shard, loop_options.state.scheduler_names,
                    loop_options.state.reservation_namespace, loop_options.grouping.enabled,
                    [this](const model::Pod& pod) { return MayBeBound(pod); });
    }
  }

  // ---- events
  // Of objects of the shard alone.
  void Apply(const model::ClusterEvent& event);
  void ApplyUpsert(const model::Upsert& upsert);
  void ApplyDelete(const model::Delete& removed);
  void RequestChanged(const std::string& name);
  // Call it after every event of a Queue object.
  void QueueObjectChanged(const std::string& name, bool exists);
  void KeepDefaultQueue();
  // Reports a contradictory queue spec, in an event and in the verdicts below the queue.
  void NoteContradiction(const model::Queue& queue);
  void ForgetContradiction(const std::string& queue);
  void AddQueueNotes();
  void TellContradictions(StepResult& result);

  // ---- answers, each with the time of the step that takes it
  void TakeAnswer(const model::ActionResult& result, absl::Time now);
  void TakeNodeLists(absl::Time now);
  void EvictionAnswered(const std::string& uid, const absl::Status& status, absl::Time now);
  void CreationAnswered(const std::string& name, const absl::Status& status, absl::Time now);
  void TakeReports(absl::Time now);
  void ProviderAnswered(const InFlightProvider& provider, const model::ActionResult& result,
                        absl::Time now);

  // ---- steps
  StepResult Step(absl::Time now);
  void Decide(absl::Time now, StepResult& result);
  // A cycle, and the hook's answer to its demand. True if other demand is charged after it.
  bool DecideOnce(absl::Time now, StepResult& result);
  // Returns the number of pods that it has placed.
  size_t RunFollowUpCycle(absl::Time now);
  // Repeats the cycle while pods are placed and others wait that these may let in.
  void PlaceFollowers(size_t placed, absl::Time now);
  void Emit(model::Action action, StepResult& result);
  void TellArrival(absl::Time now);
  void TellReserved(engine::Waiting& entry) const;
  // Some pod of it names several GPU models in order.
  [[nodiscard]] bool NamesGpuModels(const engine::Waiting& entry) const;
  // When the machine should be usable.
  [[nodiscard]] absl::Time ExpectedAt(const hook::Machine& machine, absl::Time now) const;
  // In this step.
  [[nodiscard]] bool IsLate(const state::NodeInfo& node) const;
  // Ends the attempts of groups that are tried once (schedulingBackoff 1): true if some failed, and
  // are left out from now on.
  bool EndAttempts();
  // Tells the preemption delay to each workload for which it is the only thing that time will
  // change.
  void TellDelays();

  // ---- bindings (BindingPipeline::Host)
  uint64_t Send(model::Action action) override;
  void SendBinding(state::PodId pod, model::BindPod&& bind, uint64_t& id) override;
  // Begins it if a plugin at Bind takes it, or nothing else would.
  bool BindByPlugin(state::PodId pod, uint64_t action);
  void AskBinders(absl::Time now);
  // What a binding of this step writes onto its pod about its start.
  const model::StringMap& StartAnnotations(const state::PodRecord& pod);
  void BindingFailed(state::PodId pod, const std::string& reason, bool sent,
                     const BindingPipeline::Taken& taken) override;
  void BindingInDoubt(state::PodId pod, const std::string& reason, int64_t attempts) override;
  void BindingIsSlow(state::PodId pod) override { nominations.Nominate(pod, sending_at); }
  void BindingDone(state::PodId pod, const BindingPipeline::Taken& taken) override;
  void BindingPrepared(state::PodId pod, absl::Duration took) override;
  void PermitWaited(bool granted, absl::Duration waited) override;
  void PluginRan(const BindingPlugin::Ran& ran) override;

  // ---- guests (guest_grants.h), whom the pipeline's bindings are granted
  void Grant(state::PodId pod, uint64_t id);
  // The watch showed the pod.
  void GuestSeen(const state::PodRecord& pod);
  // Whatever has become of the pod.
  void EndGrant(const std::string& uid);
  void EndGrants(absl::Time now);
  GuestAnswer AskGuest(const model::Pod& pod, absl::string_view reserved_on, absl::Time now);
  // On their nodes, as the watch shows.
  [[nodiscard]] int64_t BoundPodsOf(const state::Workload& workload) const;
  // A grant has ended without a binding: so do those of its gang, unless that has its minimum.
  void WithdrawGangOf(const GuestGrant& ended);
  // Of a pod with a grant, for which its scheduler has reserved the node: its gang is reserved too.
  [[nodiscard]] bool GangIsReserved(const state::PodRecord& pod, absl::Time now) const;

  // Tells plugins that judge nodes elsewhere which pods wait.
  void TellWhatWaits();
  // What they say otherwise about nodes than before.
  void TakeJudgements(absl::Time now);
  // Sends what plugins ask other programs.
  void CallPlugins(absl::Time now);
  [[nodiscard]] absl::Time CallsWakeAt() const;
  // False: the id belongs to no such call.
  bool PluginAnswered(const model::ActionResult& result, absl::Time now);
  [[nodiscard]] bool PodsAreFresh() const override {
    return !stale_kinds.contains(model::Kind::kPod);
  }
  [[nodiscard]] bool GoesFirst(const state::PodRecord& pod) const override;
  void PodChanged(const model::Pod& pod);
  // Call it before the state removes the pod.
  void PodGoing(state::PodId pod) {
    bindings.PodGoing(pod);
    nominations.PodGoing(pod);
    permits.PodGoing(pod);
    EndGrant(state.pod(pod).uid);
  }
  void PodSucceeded(const model::Pod& pod);
  // Sends due bindings, and evicts gangs that cannot be completed.
  void ServeBindings(absl::Time now, StepResult& result);
  void BreakGangs(absl::Time now);
  [[nodiscard]] bool IsProtected(const state::PodRecord& pod) const;
  // Adds refused bindings to the verdicts; a workload that waits for nothing else gets its own.
  void AddRefusals();
  void SetRefusedApart();
  [[nodiscard]] engine::Waiting RefusedWaiting(const state::Workload& workload) const;
  // What extenders have answered about pods that are still there becomes part of their classes.
  void SetNodeAnswers();
  // Deallocates claims that their pods have not used for a while.
  void FreeIdleClaims(absl::Time now, StepResult& result);

  // ---- evictions
  void AddEvictions(const engine::CycleResult& cycle);
  // What extenders are to be asked about evictions `from` to before `to` of the cycle, one set.
  [[nodiscard]] std::vector<PreemptionAsks::Question> QuestionsAbout(
      const engine::CycleResult& cycle, size_t from, size_t to) const;
  // Sends what is to be asked, and takes back what was refused.
  void AskAboutEvictions(absl::Time now, StepResult& result);
  // What is told of the pod once it has been evicted; nothing if events are off. The second names
  // the workload that the pod makes way for.
  [[nodiscard]] model::EmitEvent EvictionEvent(const state::PodRecord& pod,
                                               const std::string& message) const;
  [[nodiscard]] model::EmitEvent PreemptionEvent(const state::PodRecord& pod,
                                                 const engine::Eviction& eviction) const;
  // ---- of nodes that are emptied (emptied_nodes.cc)
  void TakeEmptied(std::vector<hook::StepOutput::EmptiedNode> nodes_to_empty);
  void EmptyNodes(absl::Time now);
  // The pod leaves because that node is emptied, and it is still.
  [[nodiscard]] bool IsEmptied(const std::string& node, const model::EvictPod& evict) const;
  // What the pace allows.
  void SendEvictions(absl::Time now, StepResult& result);
  void RepeatEvictions(absl::Time now, StepResult& result);
  // Suspends workloads whose evictions are due, and releases those whose pods have ended.
  void StepSuspensions(absl::Time now, StepResult& result);
  void HoldBack(const Suspensions::Progress::Hold& hold);
  // An evicted group with a preemption delay waits for it again; an annotation keeps that across a
  // restart.
  void RenewDelay(state::WorkloadId workload, absl::Time now);
  [[nodiscard]] state::PodId FindLeaving(const model::EvictPod& evict) const;
  // The victim is not evicted: it continues to run.
  void TakeBack(const model::EvictPod& evict);
  // Cancels evictions that no longer serve their purpose, unless a limit needs them.
  void PruneEvictions();
  [[nodiscard]] state::WorkloadId FindHeir(const Evictions::Purpose& purpose) const;
  // What pods hold that are not leaving. O(queues).
  [[nodiscard]] queues::QueueLedger UsedByQueues() const;
  // The queue that would be above its limit if the victims ran on; else they are charged to `used`.
  [[nodiscard]] std::optional<queues::QueueId> LimitUsed(
      const std::vector<model::EvictPod>& victims, queues::QueueLedger& used) const;
  [[nodiscard]] std::string LimitMessage(const Evictions::Purpose& purpose,
                                         queues::QueueId queue) const;
  void EvictForLimit(const std::vector<model::EvictPod>& victims, const Evictions::Purpose& purpose,
                     queues::QueueId queue);
  // The workloads that wait, and the nodes to which they are pipelined.
  struct Served {
    struct Place {
      size_t number = 0;  // in the order of serving
      const engine::Waiting* entry = nullptr;
    };
    absl::flat_hash_map<state::WorkloadId, Place> waiting;
    absl::flat_hash_map<state::NodeId, size_t> promised;  // -> the first number among those
    // What was found about an heir and its victims' workload.
    std::map<std::pair<state::WorkloadId, state::WorkloadId>, bool> found;
    // What queues hold with all that is pipelined; made when it is needed.
    std::optional<queues::QueueLedger> used;
  };
  [[nodiscard]] Served WhatIsServed() const;
  [[nodiscard]] bool Serves(const Evictions::Purpose& purpose, const model::EvictPod& evict,
                            Served& served) const;
  // True if the heir, or a workload before it, is pipelined to a node that the victim's workload
  // leaves; or the heir is pipelined, and only below a limit if the victim's workload leaves.
  [[nodiscard]] bool LeavesFor(state::WorkloadId heir, state::WorkloadId victim,
                               Served& served) const;
  [[nodiscard]] bool MakesHeadroomFor(const engine::Waiting& heir, state::WorkloadId victim,
                                      Served& served) const;
  [[nodiscard]] queues::QueueLedger UsedAndPromised() const;
  // True if the gang would be below its minimum also with the pods that are not evicted yet.
  [[nodiscard]] bool LacksMinimum(state::WorkloadId gang) const;

  // An event about a pod of ours.
  [[nodiscard]] model::EmitEvent EventAbout(const state::PodRecord& pod, bool warning,
                                            std::string reason, std::string note,
                                            model::EventAction action) const;
  // Counts what the decision leaves waiting.
  Stats::Attempts& AttemptsOf(const state::PodRecord& pod);
  void CountUnschedulable();

  static GpuSharingOptions SharingOf(const Options& options);
  static std::vector<std::string> MarksOf(const Options& options);  // core/suspensions.h
  static Backoff BackoffOf(const Options& options) {
    return {options.engine.bind_backoff_initial, options.engine.bind_backoff_max};
  }
  state::Change UpsertPod(const model::Pod& pod);
  // The state has the pod afterwards, as it is or held back, unless it is withheld.
  state::Change FilePod(const model::Pod& pod, const PodGrouper::Answer& answer);
  state::Change FileGrouped(const model::Pod& pod);
  // The pod, as it was seen, has no node, and a binding that was sent may give it one.
  [[nodiscard]] bool MayBeBound(const model::Pod& pod) const;
  // A pod of which its owners say that another shard has it. One that may be bound stays until it
  // is seen again.
  state::Change FileForOther(const model::Pod& pod);
  // Reads and writes by which pods are grouped. Pods for which that ends are filed.
  void GroupPods(absl::Time now, StepResult& result);
  state::Change UpsertClaim(const model::ResourceClaim& claim);
  state::Change UpsertVolumeObject(const model::VolumeObject& object);
  state::Change RemoveVolumeObject(const model::Delete& removed);
  [[nodiscard]] std::set<model::Kind> KindsRead() const;
  void DeviceKindSynced(const model::Synced& synced_kind);
  void VolumeKindSynced(const model::Synced& synced_kind);

  // ---- stale kinds (SetStale)
  [[nodiscard]] bool stale() const { return !stale_kinds.empty(); }
  void TellStale();

  // ---- the hook
  // What nodes for gated workloads would cost, in their verdicts and events.
  void AddEstimates(absl::Time now);
  // One step of the hook.
  struct HookAnswer {
    bool ordered = false;       // nodes, so that waiting pods can be pipelined to them
    bool other_demand = false;  // what is charged as demand has changed
  };
  HookAnswer RunHook(std::vector<engine::Waiting>& entries, absl::Time now, StepResult& result);
  // Looks for room for what CapacityBuffers and ProvisioningRequests ask for.
  void PlaceHeadroom(const EnginePlacement::Promises& promises, absl::Time now);
  // What the hook said of all demand, `lacking` items of which lack that room.
  void TellHeadroom(const std::vector<hook::DemandOutcome>& outcomes, size_t lacking,
                    absl::Time now);
  // The hook's last answer, and its input. With equal input before its timer is due the hook would
  // answer the same (I4), so it is not run, and a step costs what changed.
  struct HookMemo {
    bool valid = false;
    uint64_t machines_version = 0, uses_version = 0;
    hook::Demand demand;
    std::vector<hook::DemandOutcome> outcomes;
    absl::Time wake_at = absl::InfinitePast();
  };
  void PoolsChanged();
  void QueueProvisioningChanged();
  // Tells the engine what queues do above their quota.
  void TellOverQuota();
  // Tells the engine the label sets of nodes that may be provisioned: it requests nodes of a
  // topology by these.
  void PublishOfferedLabels();
  [[nodiscard]] bool HookWouldSayTheSame(const hook::Demand& demand, absl::Time now) const;
  // True if that reduced the capacity for pods.
  bool Withdraw(const std::vector<std::string>& names,
                const std::vector<const model::NodePool*>& valid_pools);
  // Notes for which kinds of demand nothing can be provisioned; the engine reads it. True if that
  // has changed for this demand.
  bool UpdateUnservable(const std::vector<hook::DemandOutcome>& outcomes,
                        const std::vector<engine::EntryRun>& runs,
                        const std::vector<engine::Waiting>& entries, absl::Time now);
  // `runs`: of the entries, by item of the demand. Entries of which some workloads have another
  // outcome than others are divided.
  void TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                    const std::vector<engine::EntryRun>& runs,
                    std::vector<engine::Waiting>& entries);
  // Call it whenever a list of entries was made and before it is used.
  void NoteChanges();
  void SetGatheredApart(std::vector<engine::Waiting>& entries);

  Options options;
  state::ClusterState state;
  queues::QueueTree tree;
  hook::Hook hook;
  std::unique_ptr<engine::Engine> engine;
  ManagedNodes nodes;
  NodePools pools{options.hook.enabled ? options.hook.known_providers : std::vector<std::string>(),
                  BackoffOf(options)};
  QueueProvisioning queue_provisioning;
  CapacityObjects capacity{state, options.capacity, BackoffOf(options)};
  Headroom headroom{state};
  Estimates estimates{state, hook};
  Nominations nominations;
  StatusUpdater verdicts;
  UsageStore usage;
  HookMemo memo;
  UnservableDemand unservable;
  bool over_quota_told = false;
  bool offers_told = false;  // the engine has what the current pools offer, as of:
  uint64_t offers_version = 0;

  // True if a Queue object of the default queue's name exists.
  bool default_queue_object = false;
  std::map<std::string, std::string> queue_notes;   // by name: the contradiction
  std::map<std::string, std::string> untold_notes;  // those without an event: name -> uid
  std::set<model::Kind> unsynced = KindsRead();
  std::set<model::Kind> stale_kinds;
  bool dirty = true;
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t step_work = 0;  // of this step's rounds (DecideOnce), without follow-up cycles
  uint64_t next_action_id = 1;
  InFlightActions in_flight;
  Evictions evictions;
  std::map<std::string, std::string> emptied;      // nodes, by name -> why
  std::map<std::string, absl::Time> spared_until;  // by uid: an eviction for that was refused
  GroupAnnotations annotations;
  NativeGroups native_groups;
  std::optional<KaiStatuses> kai_statuses;  // if they are written
  std::optional<ShardFilter> shard;         // if there are others
  PodGrouper grouper{state, options.grouping, options.shard, BackoffOf(options)};
  Suspensions suspensions{state, options.grouping, MarksOf(options), BackoffOf(options)};
  PreemptionAsks preemption_asks;
  ExtenderPlugin extenders;
  SharePlugin shares;
  ClaimPlugin claims;
  VolumePlugin volumes;
  FrameworkStage permits, pre_binds;
  HeldBack held_back{state};
  BindingPipeline bindings;
  GuestGrants grants;
  std::set<std::string, std::less<>> reserving_guests;  // schedulers that ask before they bind
  uint64_t grants_checked_at = 0;                       // version of the state
  BindingRefusals refusals;
  // Of the current step: where the pipeline sends.
  StepResult* sending = nullptr;
  absl::Time sending_at = absl::InfinitePast();
  std::string timestamp;  // of sending_at (AnnotationTime)
  // StartAnnotations by queue and preemptibility; and those asked for last.
  using StartKey = std::pair<std::string, model::Preemptibility>;
  absl::flat_hash_map<StartKey, model::StringMap> start_annotations;
  std::pair<StartKey, model::StringMap> last_start_annotations;
  std::vector<model::EmitEvent> events;  // to be sent with the next step
  struct PluginCall {
    framework::CallingPlugin* plugin;
    uint64_t number;
  };
  absl::flat_hash_map<uint64_t, PluginCall> plugin_calls;  // unanswered, by action id
  // A pod that a Bind plugin binds.
  struct PluginBinding {
    framework::BindPlugin* plugin = nullptr;  // null: none took it
    state::PodId pod = state::kNoId;
    std::string uid;
    absl::Time since;
    framework::Progress answer;
  };
  std::map<uint64_t, PluginBinding> plugin_bindings;  // by action id
  PodWaits waits;
  // Of a pod that the last step has placed; kNoId: it has placed none.
  state::PodClassId placed_class = state::kNoId;
  std::set<model::Kind> missing_device_kinds, missing_volume_kinds;
  // They wait for the next step, which knows the time.
  std::vector<model::ActionResult> answers;
  uint64_t awaited_list = 0;  // of nodes; 0: none
  struct NodeListAnswer {
    uint64_t number = 0;
    absl::StatusOr<std::vector<hook::ListedNode>> nodes;
  };
  std::vector<NodeListAnswer> node_lists;  // answers
  std::vector<hook::MachineReport> reports;
  std::vector<engine::Waiting> waiting;
  engine::WaitingChanges waiting_changes;  // since the last update of verdicts
  DemandTracker demanded;
  InputLog* input_log = nullptr;
  // Of the hook: the workloads for which demand is gathered still; null before its first step.
  const std::set<std::pair<bool, std::string>>* gathered = nullptr;
  Stats stats;
};

}  // namespace fairlead::core
