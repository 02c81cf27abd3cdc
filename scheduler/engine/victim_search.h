// Which pods are evicted for one step of a workload (KAI's rules, facts 3.9-3.13):
//   reclaim      from queues that hold more than their share
//   preempt      from lower priorities in the same queue; for pods with kube-scheduler's priorities
//                from one node, as kube-scheduler chooses it and them
//   consolidate  from any workload, if all victims find another place and have run for some time
//                (move_history.h)
//
// Victims come in units: one pod of a workload above its minimum, otherwise everything that runs of
// it. Units are evicted one after another, in the reversed queue order, in a Hypothesis,
// until the step fits in what is idle or being released; then units that turn out not to be needed
// are let go again, and those that are get a new place where there is one (they are moved, not
// taken). Every unit is checked against the rights of its queue before it is taken. A unit that
// would get its room back, since it comes before the step, gives nothing: it is left out, and rows
// stay as short as what really gives.
//
// PodDisruptionBudgets: a search takes no more pods of a budget than it allows, all victims of the
// search together; a gang's block that would is left out whole. If that finds no victims and a
// budget spared some (`spared`), the caller may search again with `against_budgets`, when it has
// tried everything else: the eviction API has the last word on those.
//
// Thread-safety: the owner's thread. Bounded by max_victims and the placer's work; what the bound
// left undone is said in `details`. Determinism: total orders only. Complexity: O(queues) to begin,
// then what the victims tried cost; workloads that are not reached cost nothing (victim_index.h,
// node_fits.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "queues/fair_share.h"
#include "queues/job_order.h"
#include "queues/ledger.h"
#include "queues/reclaim.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/node_fits.h"
#include "scheduler/engine/node_preemption.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/victim_budgets.h"
#include "scheduler/engine/victim_index.h"
#include "scheduler/engine/victim_walk.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

// A workload that waits: in the simulation it stands before those that come after it in its queue.
struct PendingWorkload {
  QueueOrderKey key;
  model::Resources request;
};
using PendingByQueue =
    std::map<queues::QueueId, std::vector<PendingWorkload>>;  // each in queue order

struct SearchContext {
  const EngineOptions& options;
  const queues::QueueTree& tree;
  const queues::QueueLedger& ledger;  // as it was when the search began: rights are judged by it
  const queues::QueueLedger& live;    // follows the transaction: limits are judged by it
  const queues::FairShares& shares;
  const PendingByQueue& lines;
  const std::set<state::PodId>& moved;  // by this cycle already
  const std::set<state::PodId>& fresh;  // bound by it
  const EvictionRefusals& refusals;
  const MoveHistory& moves;
  bool against_budgets = false;
  absl::Time now;
  uint64_t work_end = 0;  // of the placer's work: the budget of this cycle's searches ends there
  // Whether bounds hold that only show when the pods have their places. A victim does not move to a
  // place where they do not; if the step's places break one, the search goes on. Null: always.
  std::function<bool(queues::QueueId leaf, const state::Workload& workload,
                     const std::vector<state::PodId>& pods)>
      keeps_bounds;
};

// The rules of reclaim as they are configured. Borrows all but the options.
inline queues::ReclaimContext ReclaimRights(const EngineOptions& options,
                                            const queues::QueueTree& tree,
                                            const queues::QueueLedger& ledger,
                                            const queues::FairShares& shares) {
  return {tree, ledger, shares, options.saturation_multiplier_micro, options.round_to_gang};
}

struct SearchStep {
  const state::Workload& workload;
  queues::QueueId leaf = 0;
  const TasksToAllocate& step;
  model::Resources request;  // queue charge
  // A limit holds it, so victims help wherever they run.
  bool limit_blocked = false;
};

struct Victim {
  state::PodId pod = state::kNoId;
  VictimUnit::Place from;
  state::NodeId moves_to = state::kNoId;  // kNoId: it has no place after this
  bool against_budget = false;            // a budget has nothing left for it
};

struct SearchOutcome {
  bool found = false;
  std::vector<Victim> victims;
  bool spared = false;       // nothing was found, and budgets kept pods out
  bool out_of_work = false;  // nothing was found before the budget of searches was spent
  // Why not, for the verdict; one clause each.
  std::vector<std::string> details;
  // When a pod may be taken that may not be now.
  absl::Time wake_at = absl::InfiniteFuture();
};

class VictimSearch {
 public:
  VictimSearch(state::ClusterState& state, const queues::QueueTree& tree,
               const AllocationTracker& tracker, const framework::Framework& framework,
               Placer& placer)
      : state_(state),
        tracker_(tracker),
        framework_(framework),
        feasibility_(state, framework),
        placer_(placer),
        index_(state, tree),
        fits_(state, framework, placer.node_changes()),
        on_nodes_(state, framework, placer.parts_order()) {}

  // What it derives from the state; to be subscribed by its owner, behind the placer's.
  [[nodiscard]] std::vector<state::StateSubscriber*> Subscribers() {
    return {&index_, &fits_, &on_nodes_};
  }
  // The first difference between what it derives and a look at everything, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

  // A workload of the leaf has a lower priority; another queue holds what may be reclaimed.
  // Whether that would be enough, or is protected, only a search finds out. O(1), and O(queues).
  [[nodiscard]] bool MayPreempt(queues::QueueId leaf, int32_t priority);
  [[nodiscard]] bool MayReclaim(const queues::ReclaimContext& rights,
                                const queues::Reclaimer& reclaimer);

  // On success `txn` holds the evictions, the promises of the step and the new places of victims;
  // otherwise it is as it was.
  SearchOutcome Reclaim(state::Transaction& txn, const SearchContext& context,
                        const SearchStep& step);
  SearchOutcome Preempt(state::Transaction& txn, const SearchContext& context,
                        const SearchStep& step);
  SearchOutcome Consolidate(state::Transaction& txn, const SearchContext& context,
                            const SearchStep& step);
  // What the plugins propose for the one pod of the step, in order. `plugin`: whose proposal it is.
  SearchOutcome PostFilter(state::Transaction& txn, const SearchContext& context,
                           const SearchStep& step,
                           const std::vector<const framework::PostFilterPlugin*>& plugins,
                           std::string& plugin);

 private:
  // ---- preemption as kube-scheduler's (victim_on_node.cc)
  // For a pod by itself, of a profile with kube-scheduler's priorities, unless what it waits for is
  // not room, or pods of its queue are protected for some time.
  static bool EvictsFromOneNode(const SearchContext& context, const SearchStep& step);
  SearchOutcome PreemptOnOneNode(state::Transaction& txn, const SearchContext& context,
                                 const SearchStep& step);
  // False, and nothing has changed: no choice of victims on the node does.
  bool EvictFrom(state::Transaction& txn, const SearchContext& context, const SearchStep& step,
                 const NodePreemptor& preemptor, state::NodeId node, SearchOutcome& outcome);

  // The victims, none of which may be there twice, make room for the step on the node, and may go.
  // False, and nothing has changed: they do not.
  bool EvictThere(const SearchContext& context, const SearchStep& step, Hypothesis& what_if,
                  const std::vector<Victim>& victims, state::NodeId node);
  // What goes if these pods do; nothing if one of them may not go. `spared`: a budget forbids it.
  [[nodiscard]] std::optional<std::vector<Victim>> Proposed(const SearchContext& context,
                                                            const SearchStep& step,
                                                            const std::vector<state::PodId>& pods,
                                                            bool& spared) const;

  // What one search goes by: what distinguishes the three, and what its step wants of nodes.
  struct Rules {
    absl::string_view name;
    // Why these may not be taken. `moved[i]`: unit i has a new place. Null: they always may.
    std::function<queues::ReclaimRefusal(const std::vector<VictimUnit>&,
                                         const std::vector<bool>& moved)>
        refusal;
    // The same for one unit more, as units are taken. Null together with `refusal`. Borrowed.
    const queues::ReclaimContext* rights = nullptr;
    const queues::Reclaimer* reclaimer = nullptr;
    bool all_move = false;
    // What may not be taken may still be moved.
    bool others_move = false;
    int64_t max_workloads = model::kUnlimited;
    // Filled by Search(): what the step wants of nodes, and the nodes with free devices, by name,
    // before anything is evicted (found out when they are first asked for).
    NodeFits::Wanted wanted = {};
    std::optional<std::vector<state::NodeId>> free_nodes = {};
  };
  struct Solution {
    std::vector<VictimUnit> units;
    std::vector<bool> moved;  // by unit
    NodeSetPtr within;        // where the step was placed; null: anywhere
  };

  class PotentialVictims;

  bool ReclaimFrom(state::Transaction& txn, const SearchContext& context, const SearchStep& step,
                   Rules& rules, const queues::ReclaimContext& rights,
                   const queues::Reclaimer& reclaimer, SearchOutcome& outcome);
  // Walks through the units until a solution is found.
  bool Search(state::Transaction& txn, const SearchContext& context, const SearchStep& step,
              Rules& rules, VictimWalks& walks, SearchOutcome& outcome);
  // False: by the amounts alone the step does not fit on the nodes (null: on any), as things are.
  bool MayFit(const Rules& rules, const NodeSetPtr& within);
  // Whether the walk's first unit may join those taken.
  enum class Join : uint8_t {
    kTaken,
    kMoved,    // only if it has a new place
    kNotThis,  // units of other workloads of its queue may
    kNoMore,   // nor may any other of its queue
  };
  [[nodiscard]] Join MayJoin(const Rules& rules, PotentialVictims& taken, const VictimUnit& unit);
  // Some of the units make room: the transaction holds the fewest that were found to do. If not,
  // `returned` says which of them got exactly their own place again, as they come before the step
  // in queue order: they give nothing.
  bool Solve(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
             Rules& rules, const SearchBudgets& budgets, const std::vector<VictimUnit>& units,
             std::vector<bool>& returned, SearchOutcome& outcome);
  // It has a place again, and it is the one that it had.
  [[nodiscard]] bool IsAt(state::PodId pod, const VictimUnit::Place& place) const;
  [[nodiscard]] bool IsWhereItWas(const VictimUnit& unit) const;
  // From `start`: evicts the units and gives out the room in queue order to the step (on
  // these nodes; null: on any) and to what was evicted: what the next allocate would do. So what
  // would come before the step gets its room back, and no pod is evicted in vain.
  bool Try(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
           const Rules& rules, const NodeSetPtr& within, Solution& solution);
  // Victims may be given new places.
  static bool MayMove(const SearchContext& context, const Rules& rules) {
    return rules.all_move || context.options.consolidating_reclaim;
  }
  // True if the step finds its places also while none of the evicted pods has a new one. A pod that
  // moves is created again, and perhaps elsewhere; until then nothing can be near it.
  bool NeedsNoMovedPod(Hypothesis& what_if, const SearchStep& step, const NodeSetPtr& within);
  // The same as Try() with as little as one node of the unit that was taken last: the units on that
  // node, and what was free before. Fewer victims, and the order in which KAI looks.
  bool TryOnOneNode(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                    Rules& rules, const SearchBudgets& budgets, Solution& solution);
  // Those of Rules::free_nodes. O(nodes)
  std::vector<state::NodeId> FindFreeNodes();
  // The part of Try that gives out the room. `solution.moved` says which units got some; false if
  // the step did not.
  bool ReallocateFreed(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                       const Rules& rules, Solution& solution);
  // A unit that would be moved back to where it is stays. Both are false if the solution is found
  // no more: a search may try only so many ways (Placer::kMaxPackingTriesPerCycle).
  bool ReprieveUnmoved(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                       const Rules& rules, Solution& solution);
  bool Reprieve(Hypothesis& what_if, const SearchContext& context, const SearchStep& step,
                const Rules& rules, Solution& solution);
  [[nodiscard]] bool Helps(const VictimUnit& unit, const SearchStep& step) const;
  void Report(const SearchContext& context, const Solution& solution, SearchOutcome& outcome) const;
  // Why nothing was found, as far as budgets and refused evictions are the reason.
  static void ExplainSpared(const Rules& rules, const SearchBudgets& budgets,
                            const VictimWalks& walks, SearchOutcome& outcome);

  state::ClusterState& state_;
  const AllocationTracker& tracker_;
  const framework::Framework& framework_;
  const Feasibility feasibility_;
  Placer& placer_;
  VictimIndex index_;
  NodeFits fits_;
  NodePreemption on_nodes_;
};

}  // namespace fairlead::engine
