// What consolidation, reclaim and preemption have in common: workloads that lack capacity get a
// turn each, in queue order; for each a search looks for victims; what it finds is carried out and
// recorded.
//
// Order of turns: first those that former cycles postponed (search_budget.h), then all others by
// the order of queues, which is renewed after each eviction. A workload that is postponed keeps
// what the last finished search for it has said (search_answers.h). Equal workloads of one queue
// fail alike, so each kind of step is searched for once a pass. A workload behind an equivalent one
// that was helped gets a turn of its own.
//
// Ownership: one object for one execution; borrows context and policy. Thread-safety: the owner's
// thread. Complexity: O(log queues) a turn and what its search costs, within the search budget.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "queues/ledger.h"
#include "scheduler/engine/buying.h"
#include "scheduler/engine/cycle_context.h"
#include "scheduler/engine/victim_search.h"

namespace fairlead::engine {

// What distinguishes the three. One object for one execution: it may cache.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // As Action::Name(), and Eviction::action.
  [[nodiscard]] virtual absl::string_view Name() const = 0;
  // Workloads of one leaf queue that get a turn; kUnlimited: all.
  [[nodiscard]] virtual int64_t Depth() const = 0;
  // Pods may be evicted for pods of the class.
  [[nodiscard]] virtual bool MayServe(const framework::Framework& framework,
                                      const state::PodClass& pod_class) const {
    return framework.Evicts(pod_class);
  }
  // Pods may be evicted for the outcome as it is. It has a step, and promises none.
  virtual bool MayHelp(const Outcome& outcome) = 0;
  // By priority and fair share alone, without a search, there may be victims. Pods that would only
  // be moved do not count.
  virtual bool MayHaveVictims(const Outcome& outcome, const state::Workload& workload) = 0;
  // Failed searches of leaf queues with one scope hold for each other.
  [[nodiscard]] virtual queues::QueueId ScopeOf(queues::QueueId leaf) const { return leaf; }
  // Bindings of this cycle may be victims.
  [[nodiscard]] virtual bool TakesFresh() const { return true; }
  virtual SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                               const SearchStep& step) = 0;
  // The victims of a search that have been bound, or run, are evicted now.
  virtual void Evicts(const std::vector<state::PodId>& /*victims*/) {}
  // "Evicted (reclaim) for workload ns/x of queue prod: ...". `before`: the ledger before anything
  // was evicted.
  [[nodiscard]] virtual std::string Reason(const Outcome& outcome,
                                           const queues::QueueLedger& before,
                                           const state::Workload& victim) const = 0;
};

class EvictionPass {
 public:
  // `against_budgets`: only for workloads whose search failed because of PodDisruptionBudgets, and
  // now without them. `name`: of the action, distinct with and without budgets.
  EvictionPass(CycleContext& context, EvictionPolicy& policy, absl::string_view name,
               bool against_budgets)
      : c_(context),
        in_(context.in),
        policy_(policy),
        name_(name),
        against_budgets_(against_budgets),
        buying_(context.in) {}

  void Run();

 private:
  using Row = std::deque<size_t>;  // outcomes of one leaf queue, in queue order
  // Searches that found no victim: so it is for this priority or lower, and this many pods or more.
  struct FailedSearch {
    int32_t priority;
    int64_t count;
    SearchAnswerPtr answer;
  };

  void CollectRows();
  // With a depth: how many workloads of each row of the leaf queue are within it.
  void CountTurns(Row& row, int64_t depth);
  // What waits for capacity in each leaf queue, in queue order: a search gives out capacity to it.
  void CollectLines();
  // The turns of workloads that the last cycle postponed.
  void TakePostponed();
  // One turn of an outcome that was taken out of its row; true if it was helped.
  bool TakeTurn(size_t position, Row& row);
  // The first workload behind the outcome, which was as `before`, gets a row of its own, and a turn
  // if it is within the depth.
  void StepForward(size_t position, const Outcome& before, Row& row);

  void Help(Outcome& outcome);
  // True if the workload is too young for others to be evicted for it (preemptionDelay), or its
  // evictions pause (eviction_backoff.h). The outcome has the end of the delay, or says that
  // evictions pause, if there may be victims.
  bool DelaysEviction(Outcome& outcome, const state::Workload& workload);
  // True, and the outcome says so: nodes are provisioned for it, and nothing is evicted (buying.h).
  bool PrefersNodes(Outcome& outcome, const state::Workload& workload);
  // The same about these victims, of which some run.
  bool PrefersNodesTo(Outcome& outcome, const std::vector<Victim>& victims);
  // True, and the outcome is written, if an equal search has failed in this pass.
  bool KnownToFail(Outcome& outcome, const state::Workload& workload);
  SearchOutcome Search(state::Transaction& txn, const queues::QueueLedger& before,
                       const Outcome& outcome, const SearchStep& step,
                       const SearchBudget::Turn& turn, const std::set<state::PodId>& fresh,
                       std::string& broken);
  static bool TakesBindings(const SearchOutcome& found);
  // What the victims leave is the workload's.
  void RecordPreemptor(const Outcome& outcome, const state::Workload& workload,
                       const std::vector<Victim>& victims);
  void RecordFailure(Outcome& outcome, const state::Workload& workload, const SearchOutcome& found,
                     const std::string& broken);
  // The search budget is spent: the workload stands in line for the next cycles, and its verdict
  // says what the last finished search has said.
  void Postpone(Outcome& outcome, const state::Workload& workload);
  // Puts the answer of a search into the outcome.
  void Tell(Outcome& outcome, const state::Workload& workload, const SearchAnswer& answer);
  // Which bound the pods break where a search has put them, or "". `load`: LendingBounds::Load()
  // before the search.
  [[nodiscard]] std::string BrokenBound(const model::Resources& load, queues::QueueId leaf,
                                        const state::Workload& workload,
                                        const std::vector<state::PodId>& pods) const;
  [[nodiscard]] std::pair<queues::QueueId, StepKind> KeyOf(const Outcome& outcome,
                                                           const state::Workload& workload) const;

  CycleContext& c_;
  const CycleInputs& in_;
  EvictionPolicy& policy_;
  const absl::string_view name_;
  const bool against_budgets_;
  Buying buying_;
  std::map<queues::QueueId, Row> rows_;
  // By outcome, with a depth: turns of it and of the workloads behind it.
  std::map<size_t, int64_t> turns_;
  PendingByQueue lines_;
  std::map<std::pair<queues::QueueId, StepKind>, FailedSearch> failed_;
};

}  // namespace fairlead::engine
