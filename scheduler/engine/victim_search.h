// Who gives way: victims for one step of a workload, by reclaim (from queues that hold more than
// their share) or preemption (from lower priorities in the same queue). KAI's rules
// (facts 3.9-3.11, 3.13).
//
// Victims come in units: one pod of an elastic workload above its minimum, otherwise the whole
// gang. Units are evicted one after another, in the reversed order of service, in a transaction,
// until the step fits in what is idle or being released; then units that turn out not to be needed
// are let go again. Every unit is checked against the rights of its queue before it is taken.
//
// Thread-safety: the owner's thread. Bounded by max_victims and the placer's work; what the bound
// left undone is said in `details`. Determinism: total orders only. Complexity: O(queues) to begin,
// then what the victims tried cost; workloads that are not reached cost nothing (victim_index.h,
// node_fits.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "queues/fair_share.h"
#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/engine/node_fits.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/victim_index.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

struct SearchContext {
  const queues::QueueTree& tree;
  const queues::QueueLedger& ledger;  // as it was when the search began
  const queues::FairShares& shares;
  absl::Time now;
  int64_t max_victims = 512;
  uint64_t max_work = 20'000'000;
};

struct SearchStep {
  const state::Workload* workload = nullptr;
  queues::QueueId leaf = 0;
  std::vector<state::PodId> pods;
  model::Resources request;  // queue charge
};

struct SearchOutcome {
  bool found = false;
  std::vector<state::PodId> victims;
  // Why not, for the verdict; one clause each.
  std::vector<std::string> details;
};

class VictimSearch {
 public:
  VictimSearch(state::ClusterState& state, const queues::QueueTree& tree,
               const framework::Framework& framework, Placer& placer)
      : state_(state),
        framework_(framework),
        placer_(placer),
        index_(state, tree),
        fits_(state, framework) {}

  // Told of every change of a workload's row, and of queues that appear or go.
  VictimIndex& index() { return index_; }

  // On success `txn` holds the evictions and the promises of the step; otherwise it is as it was.
  SearchOutcome Reclaim(state::Transaction& txn, const SearchContext& context,
                        const SearchStep& step);
  SearchOutcome Preempt(state::Transaction& txn, const SearchContext& context,
                        const SearchStep& step);

 private:
  struct Unit {
    queues::QueueId leaf = 0;
    std::vector<state::PodId> pods;
    model::Resources charge;
  };
  class LeafWalk;

  [[nodiscard]] bool IsProtected(const state::Workload& workload, absl::Time now,
                                 absl::Duration protection) const;
  // Units of one workload, first to go first. `core` false: only what is above the minimum.
  void AppendUnits(const state::Workload& workload, queues::QueueId leaf, bool core,
                   std::vector<Unit>& units) const;
  [[nodiscard]] bool Helps(const Unit& unit, const SearchStep& step) const;
  // Takes out units that the step can do without.
  void Minimise(state::Transaction& txn, state::Transaction::Checkpoint start,
                const SearchStep& step, std::vector<Unit>& taken,
                const std::function<bool(const std::vector<Unit>&)>& allowed);
  bool Try(state::Transaction& txn, state::Transaction::Checkpoint start, const SearchStep& step,
           const std::vector<Unit>& taken);

  state::ClusterState& state_;
  const framework::Framework& framework_;
  Placer& placer_;
  VictimIndex index_;
  NodeFits fits_;
};

}  // namespace fairlead::engine
