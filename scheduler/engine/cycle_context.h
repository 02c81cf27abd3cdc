// What the actions of one cycle share: what they read, and what they decide, as small objects with
// one job each.
//
// Ownership: lives for one cycle and borrows its inputs. Thread-safety: the owner's thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "queues/fair_share.h"
#include "scheduler/engine/allocation_tracker.h"
#include "scheduler/engine/bind_backoff.h"
#include "scheduler/engine/domain_rules.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/eviction_backoff.h"
#include "scheduler/engine/lending_bounds.h"
#include "scheduler/engine/move_history.h"
#include "scheduler/engine/outcome.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/preemptors.h"
#include "scheduler/engine/reservation.h"
#include "scheduler/engine/search_answers.h"
#include "scheduler/engine/search_budget.h"
#include "scheduler/engine/stale_index.h"
#include "scheduler/engine/variant_bounds.h"
#include "scheduler/engine/victim_search.h"
#include "scheduler/engine/walk_budget.h"

namespace fairlead::engine {

struct CycleInputs {
  const EngineOptions& options;
  state::ClusterState& state;
  const queues::QueueTree& tree;
  AllocationTracker& tracker;
  const PendingIndex& pending;
  Placer& placer;
  VictimSearch& search;
  Preemptors& preemptors;
  const queues::FairShares& shares;
  const BindBackoff& backoff;
  EvictionBackoff& eviction_backoff;
  const EvictionRefusals& refusals;
  MoveHistory& moves;
  StaleIndex& stale;
  Reservations& reservations;
  const model::Resources& total;  // what fair share divides
  const OfferedLabels& offered;   // of nodes that may be bought
  const std::vector<model::OfferedNode>& offered_nodes;
  const absl::flat_hash_set<uint64_t>* unservable;             // null: none
  const std::map<std::string, OverQuota>& over_quota;          // leaf queues; others: kEvict
  const std::function<bool(const state::NodeInfo&)>& is_late;  // null: no node is
  const framework::Framework& framework;
  SearchBudget& budget;
  WalkBudget& walk_budget;
  SearchAnswers& answers;
  absl::Time now;
};

// What goes out of a cycle, besides verdicts.
struct CycleDecisions {
  std::vector<Binding> bindings, withdrawn;
  std::vector<Eviction> evictions;
  std::vector<StaleChange> stale;
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t victim_searches = 0;  // as CycleResult has them

  void WakeAt(absl::Time time) { wake_at = std::min(wake_at, time); }
  // Number of the next set of victims that are chosen together.
  [[nodiscard]] uint64_t NextEvictionSet() const {
    return evictions.empty() ? 0 : evictions.back().set + 1;
  }
};

// Pods that hold a promised place until the end of the cycle.
class PipelinedPods {
 public:
  void Add(state::PodId pod) { promised_.push_back(pod); }
  // The pod has to be among them.
  void Remove(state::PodId pod) {
    promised_.erase(std::find(promised_.begin(), promised_.end(), pod));
  }
  // A victim that is promised another place, and stays where it is until it has terminated.
  void AddMoved(const Victim& victim) {
    moved_.push_back(victim);
    moved_pods_.insert(victim.pod);
  }
  [[nodiscard]] const std::set<state::PodId>& moved() const { return moved_pods_; }
  // Every promise is taken back; moved victims terminate where they are.
  void Discard(state::ClusterState& state) const;

 private:
  std::vector<state::PodId> promised_;
  std::vector<Victim> moved_;
  std::set<state::PodId> moved_pods_;
};

struct CycleContext {
  explicit CycleContext(const CycleInputs& inputs);

  // Sum of what the pods are charged, to whatever queue.
  [[nodiscard]] model::Resources ChargeOf(absl::Span<const state::PodId> pods) const;
  // A pod of the step failed to bind a short while ago.
  [[nodiscard]] bool InBackoff(const TasksToAllocate& step) const;
  // The pods have promises now: their nodes and the code go into the outcome of the workload.
  // `victims_chosen`: victims of this cycle make room for them.
  void RecordPromises(const state::Workload& workload, queues::QueueId leaf,
                      const std::vector<state::PodId>& pods, bool victims_chosen);

  const CycleInputs in;
  OutcomeTable outcomes;
  CycleDecisions decisions;
  PipelinedPods pipelined;
  LendingBounds lending;
  VariantBounds variants;
  // Pods that this cycle has bound; nothing of it is sent, so a search may take them. Filled by the
  // first search.
  std::set<state::PodId> fresh;
  // Workloads for which a search of the action (by name) found no victims because of
  // PodDisruptionBudgets.
  std::set<std::pair<std::string, state::WorkloadId>> spared;
};

}  // namespace fairlead::engine
