#include "scheduler/engine/victim_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "queues/job_order.h"
#include "queues/min_runtime.h"
#include "queues/reclaim.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;

bool IsVictimStatus(PodStatus status) {
  return status == PodStatus::kBound || status == PodStatus::kRunning;
}

}  // namespace

// The units of one leaf's workloads, first to go first, made as they are reached.
class VictimSearch::LeafWalk {
 public:
  // `below`: only workloads of lower priority than this; none: all. The index must not change while
  // the walk lives.
  LeafWalk(const VictimSearch& search, const VictimIndex::Leaf& workloads, queues::QueueId leaf,
           absl::Time now, absl::Duration protection, std::optional<int64_t> below)
      : search_(search),
        workloads_(workloads),
        leaf_(leaf),
        now_(now),
        protection_(protection),
        below_(below),
        next_(workloads.begin()) {}

  // The unit whose turn it is; null if there are no more.
  [[nodiscard]] const Unit* Peek() {
    while (at_ == units_.size()) {
      if (next_ == workloads_.end() || !Concerned(*next_)) return nullptr;
      const state::Workload& workload = search_.state_.workload(next_->workload);
      ++next_;
      units_.clear();
      at_ = 0;
      search_.AppendUnits(workload, leaf_, !search_.IsProtected(workload, now_, protection_),
                          units_);
    }
    return &units_[at_];
  }
  // After Peek() gave one.
  Unit Take() { return std::move(units_[at_++]); }

  // How many of all its workloads their minimum runtime protects. O(all of them), if any can be.
  [[nodiscard]] int64_t Protected() const {
    if (protection_ <= absl::ZeroDuration()) return 0;
    int64_t count = 0;
    for (const ServiceKey& key : workloads_) {
      if (!Concerned(key)) break;
      const state::Workload& workload = search_.state_.workload(key.workload);
      if (search_.IsProtected(workload, now_, protection_)) ++count;
    }
    return count;
  }

 private:
  // Lower priorities come first, so the first that is not ends the walk.
  [[nodiscard]] bool Concerned(const ServiceKey& key) const {
    return !below_.has_value() || -key.minus_priority < *below_;
  }

  const VictimSearch& search_;
  const VictimIndex::Leaf& workloads_;
  const queues::QueueId leaf_;
  const absl::Time now_;
  const absl::Duration protection_;
  const std::optional<int64_t> below_;
  VictimIndex::Leaf::const_iterator next_;
  std::vector<Unit> units_;
  size_t at_ = 0;
};

bool VictimSearch::IsProtected(const state::Workload& workload, absl::Time now,
                               absl::Duration protection) const {
  return protection > absl::ZeroDuration() &&
         queues::IsProtected(now, state_.StartOf(workload), protection);
}

void VictimSearch::AppendUnits(const state::Workload& workload, queues::QueueId leaf, bool core,
                               std::vector<Unit>& units) const {
  std::vector<state::PodId> running;
  for (state::PodId pod : workload.pods) {
    if (IsVictimStatus(state_.pod(pod).status)) running.push_back(pod);
  }
  const auto minimum = static_cast<size_t>(std::max<int64_t>(0, GangMinimum(workload)));
  while (running.size() > minimum) {
    units.push_back({leaf, {running.back()}, state_.class_of(running.back()).charge});
    running.pop_back();
  }
  if (!core || running.empty()) return;
  Unit unit{leaf, running, {}};
  for (state::PodId pod : running) unit.charge += state_.class_of(pod).charge;
  units.push_back(std::move(unit));
}

bool VictimSearch::Helps(const Unit& unit, const SearchStep& step) const {
  state::PodClassId last = state::kNoId;
  for (state::PodId wanted_pod : step.pods) {
    const state::PodClassId id = state_.pod(wanted_pod).pod_class;
    if (id == last) continue;
    last = id;
    const state::PodClass& wanted = state_.pod_class(id);
    const framework::Context context{state_, wanted, id, framework::Room::kFuture};
    for (state::PodId victim : unit.pods) {
      const state::NodeInfo& node = state_.node(state_.pod(victim).node);
      if (node.exists && framework_.FilterNodeObject(context, node, nullptr)) return true;
    }
  }
  return false;
}

bool VictimSearch::Try(state::Transaction& txn, state::Transaction::Checkpoint start,
                       const SearchStep& step, const std::vector<Unit>& taken) {
  txn.RollbackTo(start);
  for (const Unit& unit : taken) {
    for (state::PodId pod : unit.pods) txn.Evict(pod);
  }
  return placer_.PromiseAll(txn, step.pods);
}

void VictimSearch::Minimise(state::Transaction& txn, state::Transaction::Checkpoint start,
                            const SearchStep& step, std::vector<Unit>& taken,
                            const std::function<bool(const std::vector<Unit>&)>& allowed) {
  constexpr size_t kMostUnits = 32;  // beyond it the search for spared victims costs too much
  if (taken.size() < 2 || taken.size() > kMostUnits) return;
  for (size_t i = taken.size() - 1; i-- > 0;) {
    std::vector<Unit> fewer = taken;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (allowed(fewer) && Try(txn, start, step, fewer)) taken = std::move(fewer);
  }
  const bool again = Try(txn, start, step, taken);
  FAIRLEAD_CHECK(again, "a placement that was found before is gone");
}

SearchOutcome VictimSearch::Preempt(state::Transaction& txn, const SearchContext& context,
                                    const SearchStep& step) {
  SearchOutcome outcome;
  index_.CatchUp();
  const auto leaf = index_.leaves().find(step.leaf);
  if (leaf == index_.leaves().end()) return outcome;
  const absl::Duration protection =
      queues::PreemptMinRuntime(context.tree, step.leaf, absl::ZeroDuration());
  LeafWalk walk(*this, leaf->second, step.leaf, context.now, protection, step.workload->priority);
  // Nobody of lower priority, protected or not: there is nothing to say.
  if (-leaf->second.begin()->minus_priority >= step.workload->priority) return outcome;
  const auto start = txn.Mark();
  const NodeFits::Wanted wanted = fits_.WantedBy(step.pods);
  std::vector<Unit> taken;
  int64_t victims = 0;
  while (walk.Peek() != nullptr) {
    Unit unit = walk.Take();
    if (!Helps(unit, step)) continue;
    if (victims >= context.max_victims || placer_.work() > context.max_work) {
      outcome.details.push_back(
          absl::StrCat("preemption: gave up after ", victims, " possible victims"));
      break;
    }
    for (state::PodId pod : unit.pods) {
      txn.Evict(pod);
      ++victims;
    }
    taken.push_back(std::move(unit));
    if (!fits_.Possible(wanted)) continue;
    if (!placer_.PromiseAll(txn, step.pods)) continue;
    Minimise(txn, start, step, taken, [](const std::vector<Unit>&) { return true; });
    outcome.found = true;
    for (const Unit& used : taken) {
      outcome.victims.insert(outcome.victims.end(), used.pods.begin(), used.pods.end());
    }
    return outcome;
  }
  txn.RollbackTo(start);
  if (const int64_t protected_workloads = walk.Protected(); protected_workloads > 0) {
    outcome.details.push_back(absl::StrCat("preemption: ", protected_workloads,
                                           " workloads of lower priority are protected by the "
                                           "minimum runtime"));
  }
  if (outcome.details.empty()) {
    outcome.details.push_back(
        "preemption: the room of all workloads of lower priority would not be enough");
  }
  return outcome;
}

SearchOutcome VictimSearch::Reclaim(state::Transaction& txn, const SearchContext& context,
                                    const SearchStep& step) {
  SearchOutcome outcome;
  const queues::ReclaimContext rights{context.tree, context.ledger, context.shares};
  const queues::Reclaimer reclaimer{step.leaf, step.request, step.workload->preemptible};
  const queues::ReclaimAnswer may = queues::CanReclaim(rights, reclaimer);
  if (!may.allowed()) {
    outcome.details.push_back(absl::StrCat(
        "reclaim: queue ", context.tree.Name(may.queue), " would exceed its ",
        may.refusal == queues::ReclaimRefusal::kOverFairShare ? "fair share" : "quota"));
    return outcome;
  }

  // Leaves that may be taken from; who goes first is at the front of each.
  index_.CatchUp();
  struct Row {
    LeafWalk walk;
    bool closed = false;
  };
  std::map<queues::QueueId, Row> leaves;
  bool anybody = false;
  for (const auto& [leaf, workloads] : index_.leaves()) {
    if (leaf == step.leaf || !context.tree.Usable(leaf)) continue;
    anybody = true;
    if (!queues::MayEverReclaimFrom(rights, reclaimer, leaf)) continue;
    const absl::Duration protection =
        queues::ReclaimMinRuntime(context.tree, queues::ReclaimResolveMethod::kLowestCommonAncestor,
                                  step.leaf, leaf, absl::ZeroDuration());
    leaves.emplace(leaf,
                   Row{LeafWalk(*this, workloads, leaf, context.now, protection, std::nullopt)});
  }
  if (leaves.empty()) {
    if (anybody) {
      outcome.details.push_back("reclaim: no other queue holds more than its fair share");
    }
    return outcome;
  }

  auto as_victims = [](const std::vector<Unit>& taken) {
    std::vector<queues::VictimQueue> victims;
    for (const Unit& unit : taken) {
      auto it = std::find_if(victims.begin(), victims.end(),
                             [&](const queues::VictimQueue& v) { return v.leaf == unit.leaf; });
      if (it == victims.end()) it = victims.insert(victims.end(), {unit.leaf, {}});
      it->pieces.push_back(unit.charge);
    }
    return victims;
  };
  auto allowed = [&](const std::vector<Unit>& taken) {
    return queues::Reclaimable(rights, reclaimer, as_victims(taken)).allowed();
  };

  queues::QueueOrderIterator order(context.tree, context.ledger, context.shares,
                                   [&](queues::QueueId leaf) -> const model::Resources* {
                                     auto it = leaves.find(leaf);
                                     if (it == leaves.end()) return nullptr;
                                     const Unit* unit =
                                         it->second.closed ? nullptr : it->second.walk.Peek();
                                     return unit == nullptr ? nullptr : &unit->charge;
                                   },
                                   {.victims = true, .cluster_total = state_.total_for_queues()});

  const auto start = txn.Mark();
  const NodeFits::Wanted wanted = fits_.WantedBy(step.pods);
  std::vector<Unit> taken;
  int64_t victims = 0;
  bool refused = false;
  while (std::optional<queues::QueueId> leaf = order.Next()) {
    Row& row = leaves.at(*leaf);
    Unit unit = row.walk.Take();
    if (!Helps(unit, step)) {
      order.Changed(*leaf);
      continue;
    }
    if (victims >= context.max_victims || placer_.work() > context.max_work) {
      outcome.details.push_back(
          absl::StrCat("reclaim: gave up after ", victims, " possible victims"));
      break;
    }
    taken.push_back(unit);
    if (!allowed(taken)) {
      taken.pop_back();
      refused = true;
      row.closed = true;
      order.Changed(*leaf);
      continue;
    }
    for (state::PodId pod : unit.pods) {
      txn.Evict(pod);
      ++victims;
    }
    order.Picked(*leaf, unit.charge);
    if (!fits_.Possible(wanted) || !placer_.PromiseAll(txn, step.pods)) continue;
    Minimise(txn, start, step, taken, allowed);
    outcome.found = true;
    for (const Unit& used : taken) {
      outcome.victims.insert(outcome.victims.end(), used.pods.begin(), used.pods.end());
    }
    return outcome;
  }
  txn.RollbackTo(start);
  int64_t protected_workloads = 0;
  for (const auto& [leaf, row] : leaves) protected_workloads += row.walk.Protected();
  if (protected_workloads > 0) {
    outcome.details.push_back(absl::StrCat("reclaim: ", protected_workloads,
                                           " workloads are protected by the minimum runtime"));
  } else if (refused) {
    outcome.details.push_back(
        "reclaim: taking more would leave the other queue below its own share");
  } else if (outcome.details.empty()) {
    outcome.details.push_back("reclaim: the room of all that may be taken would not be enough");
  }
  return outcome;
}

}  // namespace fairlead::engine
