// The parts of DecisionLoop and what they say to each other. Internal to core: decision_loop.cc has
// events and steps, answers_taken.cc what becomes of answers, purchase.cc the talk with the hook,
// gpu_shares.cc bindings of shared GPUs, claims_loop.cc those of pods with ResourceClaims,
// evictions_loop.cc evictions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/answers.h"
#include "core/claim_reservations.h"
#include "core/decision_loop.h"
#include "core/evictions.h"
#include "core/gpu_reservations.h"
#include "core/managed_nodes.h"
#include "core/usage_store.h"
#include "core/verdict_book.h"
#include "queues/tree.h"

namespace fairlead::core {

class DecisionLoop::Impl {
 public:
  Impl(const Options& loop_options, const hook::Catalog* catalog)
      : options(loop_options),
        state(loop_options.state),
        tree(state.resource_names()),
        hook(loop_options.hook, catalog),
        nodes(state, hook),
        verdicts(state, loop_options.verdict_refresh, loop_options.hook.enabled,
                 loop_options.emit_events),
        usage(loop_options.usage_store),
        asked(loop_options.engine.bind_backoff_initial, loop_options.engine.bind_backoff_max),
        evictions(loop_options.evictions),
        shares(SharingOf(loop_options), loop_options.engine.bind_backoff_initial,
               loop_options.engine.bind_backoff_max),
        claims(loop_options.engine.bind_backoff_initial, loop_options.engine.bind_backoff_max) {}

  // ---- events
  void ApplyUpsert(const model::Upsert& upsert);
  void ApplyDelete(const model::Delete& removed);
  void RequestChanged(const std::string& name);
  // After every event of a Queue object.
  void QueueObjectChanged(const std::string& name, bool exists);
  void KeepDefaultQueue();
  [[nodiscard]] std::vector<const model::NodePool*> ValidPools() const;

  // ---- answers, each at the time of the step that takes it
  void TakeAnswer(const model::ActionResult& result, absl::Time now);
  void BindingAnswered(AskedBinding binding, const absl::Status& status, absl::Time now);
  void EvictionAnswered(AskedEviction eviction, const absl::Status& status, absl::Time now);
  void CreationAnswered(AskedRequest creation, const absl::Status& status, absl::Time now);
  void ProviderAnswered(uint64_t action_id, const AskedProvider& asked_provider,
                        const model::ActionResult& result, absl::Time now);
  void AskAgain(absl::Time now, StepResult& result);
  void BindAgain(AskedBinding binding, StepResult& result);

  // ---- steps
  StepResult Step(absl::Time now);
  void Decide(absl::Time now, StepResult& result);
  void GoOn(absl::Time now, StepResult& result);
  void Emit(model::Action action, StepResult& result, int unknown = 0);
  void Bind(const engine::CycleResult& cycle, absl::Time now, StepResult& result);
  void EmitBinding(model::BindPod bind, absl::Time now, StepResult& result);
  // Its claims are in order: it goes, or waits for its shares of GPUs.
  void BindClaimed(const state::PodRecord& pod, model::BindPod bind, absl::Time now,
                   StepResult& result);
  // The pod, if this binding is what it waits for; kNoId if not.
  [[nodiscard]] state::PodId FindBinding(const std::string& ns, const std::string& name,
                                         const std::string& uid) const;
  // It cannot be bound where it was decided: says why, and it waits again.
  void FailBinding(state::PodId pod, const std::string& reason, absl::Time now, StepResult& result);
  // As annotations carry it: RFC 3339, whole seconds.
  static std::string Timestamp(absl::Time at);
  void TellArrival(absl::Time now);
  // What became of it in this step, for groups that are tried once (schedulingBackoff 1): true if
  // some failed, and are left out from now on.
  bool EndAttempts();
  // Who is left with its preemption delay as the only thing that time will mend says so.
  void TellDelays();

  // ---- evictions
  void EvictVictims(const engine::CycleResult& cycle, absl::Time now, StepResult& result);
  // What the pace allows, and events of evictions that were let through.
  void SendEvictions(absl::Time now, StepResult& result);
  // A group with a preemption delay waits for it anew when it is evicted, in an annotation that
  // outlives a restart.
  void RenewDelay(state::WorkloadId workload, absl::Time now, StepResult& result);
  [[nodiscard]] state::PodId FindLeaving(const model::EvictPod& evict) const;
  // It does not go: it runs on.
  void TakeBack(const model::EvictPod& evict);

  // ---- shares of GPUs
  static GpuSharingOptions SharingOf(const Options& options);
  void SharesChanged(const model::Pod& pod);
  void HoldShare(const state::PodRecord& pod, model::BindPod bind);
  // The pod waits again.
  void ForgetBinding(state::PodId pod);
  // What there is to do about shared GPUs and the bindings that wait for them.
  void ServeShares(absl::Time now, StepResult& result);

  // ---- ResourceClaims
  void ClaimsOfPodChanged(const model::Pod& pod);
  state::Change UpsertClaim(const model::ResourceClaim& claim);
  void DeviceKindSynced(const model::Synced& synced_kind);
  void HoldClaims(state::PodId pod, model::BindPod bind, absl::Time now, StepResult& result);
  // What there is to do about claims and the bindings that wait for them.
  void ServeClaims(absl::Time now, StepResult& result);
  // Takes back what was allocated for pods that have not used it for a while.
  void FreeIdleClaims(absl::Time now, StepResult& result);

  // ---- the hook
  // One step of the hook; true if it ordered nodes, so that the waiting pods can be promised to
  // them.
  bool RunHook(std::vector<engine::Waiting>& entries, absl::Time now, StepResult& result);
  // What the hook said last, and of what. Asked the same again before its timer is due, it would
  // say the same (I4): then it is not asked, and a step costs what changed.
  struct HookMemo {
    bool valid = false;
    uint64_t machines_version = 0, uses_version = 0;
    hook::Demand demand;
    std::vector<hook::DemandOutcome> outcomes;
    absl::Time wake_at = absl::InfinitePast();
  };
  void PoolsChanged();
  // Which labels nodes would have that may be bought: the engine asks for nodes of a topology by
  // these.
  void TellOffers();
  [[nodiscard]] bool HookWouldSayTheSame(const hook::Demand& demand, absl::Time now) const;
  [[nodiscard]] hook::Demand DemandOf(const std::vector<engine::Waiting>& entries) const;
  // True if that left less for pods to go to.
  bool Withdraw(const std::vector<std::string>& names,
                const std::vector<const model::NodePool*>& valid_pools);
  static void TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                           std::vector<engine::Waiting>& entries);

  Options options;
  state::ClusterState state;
  queues::QueueTree tree;
  hook::Hook hook;
  std::unique_ptr<engine::Engine> engine;
  ManagedNodes nodes;
  std::map<std::string, model::NodePool> pools;
  VerdictBook verdicts;
  UsageStore usage;
  HookMemo memo;
  bool offers_told = false;  // to the engine, as the pools are now

  // There is a Queue object of the default queue's name.
  bool default_queue_object = false;
  std::set<model::Kind> synced;
  bool dirty = true;
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t next_action_id = 1;
  Answers asked;
  Evictions evictions;
  std::vector<model::EmitEvent> eviction_events;  // to be told with the next step
  GpuReservations shares;
  ClaimReservations claims;
  std::map<std::string, absl::Time> idle_claims;  // by key: since when
  std::set<model::Kind> missing_device_kinds;
  // Launches that a provider has accepted, by action: it may still say that one has failed.
  std::map<uint64_t, std::string> accepted_launches;
  // They wait for the next step, which knows what time it is.
  std::vector<model::ActionResult> answers;
  std::vector<engine::Waiting> waiting;
  engine::WaitingChanges waiting_changes;  // of the last step
  Stats stats;
};

}  // namespace fairlead::core
