// One cycle over the waiting workloads: the actions of engine.h, in order, and what came of each
// workload. One class, an action a file: allocate.cc, evict_actions.cc, demand.cc.
//
// Thread-safety: the owner's thread. Lives for one cycle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "queues/fair_share.h"
#include "queues/job_order.h"
#include "queues/limits.h"
#include "scheduler/engine/books.h"
#include "scheduler/engine/domain_rules.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/gpu_models.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/reservation.h"
#include "scheduler/engine/victim_search.h"

namespace fairlead::engine {

// What one cycle found out about one workload, before it is put into a verdict.
struct Outcome {
  state::WorkloadId workload = state::kNoId;
  queues::QueueId leaf = PendingIndex::kNoQueue;
  verdict::Code code = verdict::Code::kNone;
  std::optional<queues::LimitViolation> violation;
  std::string subject;
  std::vector<std::string> details;
  std::optional<absl::Time> until;
  // The step that did not get a place, and the pod of it for which no node was found.
  GangStep step;
  model::Resources step_request;
  state::PodId failed_pod = state::kNoId;
  // Some set of it has a topology constraint.
  bool bound_to_topology = false;
  // Of such a one that waits for room: what nodes for it would have in common, and of these rules
  // why none would help it. Null: nobody asked, or there is no problem.
  std::shared_ptr<const DomainRules> domains;
  const DomainRules::Problem* domain_problem = nullptr;
  std::vector<Waiting::PodPromise> promises;
  std::vector<state::PodId> demanded;  // pods that the hook may buy for
  bool whole_demand = true;            // false: a limit holds some pods of it back
  // The queue whose kept share (lendingLimit) it would take, and whether nodes for it alone would
  // not change that.
  std::string keeper;
  bool kept_beyond_cluster = false;
  // It waits behind a reservation of its own queue: nobody gives way for it (reservation.h).
  bool behind = false;
  int64_t position = 0;
  bool tried = true;             // false: its turn did not come
  bool stepped_forward = false;  // since the outcomes were last put in order
  // Who waits behind it for the very same reason, without an outcome of their own.
  CrowdRest rest;
};

// Until when a pod whose binding failed is left alone, by the pod's uid.
using BindBackoff = absl::flat_hash_map<std::string, std::pair<absl::Time, absl::Duration>>;

// Workloads, by action and uid, for which a cycle did not search because its budget was spent: the
// next cycle searches for them first, in this order.
using SearchBacklog = std::vector<std::pair<int, std::string>>;

struct CycleParts {
  const EngineOptions& options;
  state::ClusterState& state;
  const queues::QueueTree& tree;
  Books& books;
  const PendingIndex& pending;
  Placer& placer;
  VictimSearch& search;
  const queues::FairShares& shares;
  const BindBackoff& backoff;
  const EvictionRefusals& refusals;
  const std::set<state::WorkloadId>& maybe_stale;
  Reservations& reservations;
  const model::Resources& total;  // what fair share divides
  const OfferedLabels& offered;   // of nodes that may be bought
  const std::vector<model::Node>& offered_nodes;
  const framework::Framework& framework;
  SearchBacklog& backlog;  // of the last cycle; renewed
};

// What is true of one step is true of every step of the same kind and at least its size.
struct StepKind {
  std::string text;  // of steps with a topology, sub-groups or several classes; then exact
  state::PodClassId pod_class = state::kNoId;
  friend auto operator<=>(const StepKind&, const StepKind&) = default;
};
verdict::Code CodeOf(const queues::LimitViolation& violation);
StepKind KindOf(const state::ClusterState& state, const state::Workload& workload,
                const GangStep& step);

// The outcome of the first of `rest`, as the one before it has it; the others are behind it.
Outcome OutcomeOfNext(const state::ClusterState& state, const Outcome& former, CrowdRest rest);

class Cycle {
 public:
  Cycle(const CycleParts& parts, absl::Time now, bool may_evict);

  void Run();

  std::vector<Binding> bindings, withdrawn;
  std::vector<Eviction> evictions;
  std::vector<StaleChange> stale;
  std::vector<Outcome> outcomes;  // in the order of service
  absl::Time wake_at = absl::InfiniteFuture();

 private:
  enum class EvictKind { kConsolidation, kReclaim, kPreempt };
  // Kinds of steps that did not fit: at least this many pods at once did not.
  using Failures = std::map<StepKind, int64_t>;
  // Searches that found nobody: for this priority or lower, and this many pods or more.
  struct FailedSearch {
    int32_t priority;
    int64_t count;
    std::vector<std::string> details;
    bool spared = false;  // budgets kept somebody out
  };
  // What one action does not know of a workload: whether some node could ever take its step.
  enum class Hope : uint8_t {
    kSome,
    kUnknown,  // no present node; the hook is off, and what may be bought is not known
    kNone,     // no present node, and none that may be bought
  };
  using FailedSearches = std::map<std::pair<queues::QueueId, StepKind>, FailedSearch>;

  // allocate.cc
  void Unservable();
  void Allocate();
  // One step of a workload; true if it was placed or promised and the workload may have more.
  bool Serve(queues::QueueId leaf, const state::Workload& workload);
  // Without the action: the workload waits, and its step is what others may give way for.
  void Consider(queues::QueueId leaf, const state::Workload& workload);
  // True, and the outcome is written, if a gang of its queue that waits for room comes first.
  bool HeldByReservation(queues::QueueId leaf, const state::Workload& workload, GangStep& step,
                         model::Resources& request);
  void SettleReservations();
  void RefuseForDepth(queues::QueueId leaf, const state::Workload& workload);
  // Fills next_[leaf]. False, and the outcome is written, if a pod of the step is refused on every
  // node whatever its object and load.
  bool PrepareNext(queues::QueueId leaf, const state::Workload& workload);
  // What must hold before anything is tried; false: the outcome is written.
  bool MayStart(queues::QueueId leaf, const state::Workload& workload);
  // The outcome of a group whose one attempt has failed (schedulingBackoff).
  void LeaveOut(queues::QueueId leaf, const state::Workload& workload);
  // True, and the outcome is written, if a limit or quota holds the step.
  bool HeldByLimit(queues::QueueId leaf, const state::Workload& workload, const GangStep& step,
                   const model::Resources& request);
  void WriteViolation(queues::QueueId leaf, const state::Workload& workload, const GangStep& step,
                      const model::Resources& request, const queues::LimitViolation& violation);
  // Nothing holds the step but a lack of room: `code` and `subject` stand if it is the first of its
  // workload in this cycle.
  Outcome& RecordLack(queues::QueueId leaf, const state::Workload& workload, GangStep step,
                      model::Resources request, state::PodId failed, verdict::Code code,
                      std::string subject);
  void Take(queues::QueueId leaf, const state::Workload& workload,
            const std::vector<state::Transaction::Operation>& operations);
  [[nodiscard]] bool InBackoff(const GangStep& step) const;
  // What held the workload holds everybody of its crowd behind it.
  [[nodiscard]] bool HoldsItsCrowd(const state::Workload& workload) const;
  void RecordPromises(const state::Workload& workload, queues::QueueId leaf,
                      const std::vector<state::PodId>& pods, bool victims_chosen);
  [[nodiscard]] bool Known(const Failures& failures, const StepKind& kind, size_t pods) const;
  Outcome& OutcomeOf(const state::Workload& workload, queues::QueueId leaf);
  [[nodiscard]] model::Resources ChargeOf(const std::vector<state::PodId>& pods) const;

  // lending.cc
  // True if room that other queues keep back would be taken: the step was promised room on order
  // (`promised`), or it waits and the outcome is written.
  bool HeldByLending(queues::QueueId leaf, const state::Workload& workload, const GangStep& step,
                     const model::Resources& request, bool& promised);
  // The same for nodes that would be bought for it: true if they would not do.
  bool BeyondLending(Outcome& outcome, const model::Resources& request);
  void TellKeeper(const queues::LendingRefusal& refusal, Outcome& outcome) const;
  // More than before is kept back or held, and more than there is.
  [[nodiscard]] bool BreaksLending(const model::Resources& before) const;
  // Nodes that are ordered or not usable yet.
  struct ComingRoom {
    NodeSetPtr nodes;
    model::Resources total;
  };
  const ComingRoom& Coming();

  // model_limits.cc
  [[nodiscard]] std::optional<queues::LimitViolation> BrokenModel(
      queues::QueueId leaf, bool preemptible, const std::vector<state::PodId>& pods) const;
  Placement PlaceInModels(state::Transaction& txn, queues::QueueId leaf,
                          const state::Workload& workload, const GangStep& step, Placer::Mode mode,
                          NodeSetPtr within, std::optional<queues::LimitViolation>& broken);
  [[nodiscard]] bool IsModel(model::ResourceIndex resource) const {
    return std::find(models_.begin(), models_.end(), resource) != models_.end();
  }
  [[nodiscard]] model::Resources WithAnyModel(const std::vector<state::PodId>& pods,
                                              model::Resources request) const;

  // evict_actions.cc
  // `against_budgets`: for those alone of whom the search spared somebody, now without budgets.
  void Evict(EvictKind kind, bool against_budgets = false);
  void EvictFor(EvictKind kind, bool against_budgets, Outcome& outcome, const Lines& lines,
                FailedSearches& failed);
  using Row = std::deque<size_t>;  // outcomes of one leaf, in the order of service
  // One turn of an outcome that was taken out of its row; true if it was helped.
  bool EvictInTurn(EvictKind kind, bool against_budgets, size_t at, Row& row, Lines& lines,
                   FailedSearches& failed);
  // The turns of the workloads that the last cycle postponed.
  void EvictForBacklog(EvictKind kind, bool against_budgets,
                       std::map<queues::QueueId, Row>& waiting, Lines& lines,
                       FailedSearches& failed);
  // The budget of searches is spent: the workload comes first in the next cycle.
  void Postpone(EvictKind kind, bool against_budgets, Outcome& outcome);
  static int ActionOf(EvictKind kind, bool against_budgets) {
    return 2 * static_cast<int>(kind) + (against_budgets ? 1 : 0);
  }
  // A binding of this cycle is none any more; its pod waits again.
  void Withdraw(const Victim& victim, const std::string& whom);
  // Victims that this cycle has bound wait again, with an outcome of their own.
  void WithdrawBindings(size_t at);
  // Gives the first of who waits behind it an outcome of its own, as `before` was; its index.
  size_t StepForward(size_t at, const Outcome& before, Lines& lines);
  // Where the workload stood in its queue before this cycle promised it anything.
  [[nodiscard]] ServiceKey KeyOf(const Outcome& outcome) const;
  // Who has stepped forward takes its place by age among the others of its leaf.
  void SortOutcomes();
  [[nodiscard]] Lines MakeLines() const;
  [[nodiscard]] bool MayEvict(EvictKind kind, const Outcome& outcome);
  // GPUs that nobody uses or that are being released, shares included; kept until the state
  // changes.
  [[nodiscard]] int64_t FreeGpusInSum();
  // True if the workload is too young to make others give way (preemptionDelay); its outcome has
  // the end of that, if somebody might.
  bool DelaysEviction(EvictKind kind, Outcome& outcome, const state::Workload& workload);
  // By priority and fair share alone, without a search. Nobody is asked to move.
  [[nodiscard]] bool MightGiveWay(EvictKind kind, const Outcome& outcome,
                                  const state::Workload& workload);
  // Which bound the pods break where a search has put them, or "". `kept`: LendingLoad() before it
  // began.
  [[nodiscard]] std::string BrokenBound(const model::Resources& kept, queues::QueueId leaf,
                                        const state::Workload& workload,
                                        const std::vector<state::PodId>& pods) const;
  // `before`: as it was before they were taken.
  void RecordVictims(EvictKind kind, const Outcome& outcome, const queues::QueueLedger& before,
                     const std::vector<Victim>& victims);
  [[nodiscard]] std::string WhyEvicted(EvictKind kind, const Outcome& outcome,
                                       const queues::QueueLedger& before,
                                       const state::Workload& victim) const;
  // The promise that somebody else needs is changed or taken back.
  void ChangePromise(const Victim& victim);
  void EvictStaleGangs();

  // demand.cc
  void Demand();
  void DemandFor(Outcome& outcome);
  // True if a limit or kept capacity holds these pods of it. `request`: with any GPU model it may
  // get.
  bool HeldFromDemand(Outcome& outcome, const std::vector<state::PodId>& pods,
                      model::Resources& request);
  // Finds out what nodes for it would have in common if it is bound to a topology and waits for
  // room.
  void ReadDomains(Outcome& outcome) const;
  // It lacks nothing but room, no room was promised to its step, and new nodes could be that room.
  [[nodiscard]] bool WantsRoom(const Outcome& outcome) const;
  [[nodiscard]] Hope HopeOf(const Outcome& outcome);
  [[nodiscard]] Hope HopeOfClass(state::PodClassId pod_class) const;
  // The leaves all of whose demand is within the limits, whatever the order.
  [[nodiscard]] std::set<queues::QueueId> RoomyLeaves();
  void ChargeDemand(queues::QueueId leaf, const model::Resources& amount, bool preemptible);
  // Demand of one outcome and of who waits behind it; in a roomy leaf they are asked for in sum.
  // Returned, as the outcome was before, if they are to be asked for one by one instead.
  std::optional<Outcome> DemandOfCrowd(Outcome& outcome, bool roomy);
  void TakeBack();

  const CycleParts& p_;
  const absl::Time now_;
  const bool may_evict_;
  const std::vector<model::ResourceIndex> models_;  // of GPUs, that some queue names
  const bool fold_;                                 // who fails like the one before it is left out
  uint32_t steps_ = 0;                              // taken so far
  bool unsorted_ = false;
  absl::flat_hash_map<state::WorkloadId, size_t> index_;  // into outcomes
  std::vector<state::PodId> promised_;
  std::vector<Victim> moved_;
  std::set<state::PodId> moved_pods_;
  std::set<state::PodId> fresh_;  // bound in this cycle: nothing is sent yet
  std::vector<Victim> fresh_victims_;
  uint64_t search_work_end_ = 0;  // of the placer's work
  SearchBacklog postponed_;
  bool searched_ = false;  // some of the budget is spent
  std::map<state::PodClassId, Hope> hope_;
  absl::flat_hash_map<state::PodClassId, std::string> refused_everywhere_;
  struct DemandCharge {
    queues::QueueId leaf;
    model::Resources amount;
    bool preemptible;
  };
  std::vector<DemandCharge> demand_charges_;
  model::Resources demanded_;  // their sum
  std::optional<ComingRoom> coming_;
  std::set<std::pair<EvictKind, state::WorkloadId>> spared_;  // by budgets, in searches for these
  // Answers of MightGiveWay for equal steps of a leaf, preemptible or not.
  std::map<std::tuple<queues::QueueId, bool, StepKind>, bool> might_be_reclaimed_;
  Failures failed_;
  // The same of what failed because room is kept: for whom.
  std::map<StepKind, std::pair<int64_t, state::WorkloadId>> failed_kept_;
  // What the head of each leaf queue asks for; filled when the order of service looks at it.
  struct NextJob {
    GangStep step;
    model::Resources request;
  };
  std::map<queues::QueueId, NextJob> next_;
  std::optional<std::pair<uint64_t, int64_t>> free_gpus_;  // (state version, milli-GPU)
};

}  // namespace fairlead::engine
