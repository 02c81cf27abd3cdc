#include "scheduler/engine/victim_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
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

// For each class of the step: on how many places it could stand if every promise were kept. A necessary
// condition, cheap to keep up to date, that spares most attempts at placing.
struct VictimSearch::NodeFits {
  NodeFits(const state::ClusterState& state, const framework::Framework& framework,
           const std::vector<state::PodId>& pods)
      : state_(state), framework_(framework) {
    for (state::PodId pod : pods) ++classes_[state.pod(pod).pod_class].needed;
    for (auto& [id, row] : classes_) {
      for (const auto& [name, node] : state.nodes_by_name()) Renew(id, row, node);
    }
  }
  void NodeChanged(state::NodeId node) {
    for (auto& [id, row] : classes_) Renew(id, row, node);
  }
  [[nodiscard]] bool Possible() const {
    return std::all_of(classes_.begin(), classes_.end(),
                       [](const auto& entry) { return entry.second.total >= entry.second.needed; });
  }

 private:
  struct Row {
    int64_t needed = 0;
    int64_t total = 0;
    std::vector<int64_t> by_node;
  };
  void Renew(state::PodClassId id, Row& row, state::NodeId node_id) {
    if (node_id >= row.by_node.size()) row.by_node.resize(node_id + 1, 0);
    const state::NodeInfo& node = state_.node(node_id);
    const state::PodClass& wanted = state_.pod_class(id);
    int64_t fits = 0;
    const framework::Context context{state_, wanted, id, framework::Room::kFuture};
    if (node.exists && framework_.FilterNodeObject(context, node, nullptr)) {
      fits = row.needed;
      const model::Resources room = node.Future();
      for (size_t i = 0; i < wanted.requests.size(); ++i) {
        const auto resource = static_cast<model::ResourceIndex>(i);
        const int64_t each = wanted.requests[resource];
        if (each > 0) fits = std::min(fits, std::max<int64_t>(0, room[resource]) / each);
      }
    }
    row.total += fits - row.by_node[node_id];
    row.by_node[node_id] = fits;
  }
  const state::ClusterState& state_;
  const framework::Framework& framework_;
  std::map<state::PodClassId, Row> classes_;
};

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
  const absl::Duration protection =
      queues::PreemptMinRuntime(context.tree, step.leaf, absl::ZeroDuration());
  std::vector<std::pair<ServiceKey, const state::Workload*>> candidates;
  const std::string& queue = context.tree.Name(step.leaf);
  state_.ForEachWorkload([&](const state::Workload& workload) {
    if (workload.queue == queue && workload.preemptible &&
        workload.priority < step.workload->priority &&
        workload.Count(PodStatus::kBound) + workload.Count(PodStatus::kRunning) > 0) {
      candidates.emplace_back(MakeServiceKey(workload), &workload);
    }
  });
  if (candidates.empty()) return outcome;
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) { return b.first < a.first; });
  std::vector<Unit> units;
  int64_t protected_workloads = 0;
  for (const auto& [key, workload] : candidates) {
    const bool is_protected =
        queues::IsProtected(context.now, state_.StartOf(*workload), protection);
    if (is_protected) ++protected_workloads;
    AppendUnits(*workload, step.leaf, !is_protected, units);
  }
  const auto start = txn.Mark();
  NodeFits fits(state_, framework_, step.pods);
  std::vector<Unit> taken;
  int64_t victims = 0;
  for (Unit& unit : units) {
    if (!Helps(unit, step)) continue;
    if (victims >= context.max_victims || placer_.work() > context.max_work) {
      outcome.details.push_back(
          absl::StrCat("preemption: gave up after ", victims, " possible victims"));
      break;
    }
    for (state::PodId pod : unit.pods) {
      txn.Evict(pod);
      fits.NodeChanged(state_.pod(pod).node);
      ++victims;
    }
    taken.push_back(std::move(unit));
    if (!fits.Possible()) continue;
    if (!placer_.PromiseAll(txn, step.pods)) continue;
    Minimise(txn, start, step, taken, [](const std::vector<Unit>&) { return true; });
    outcome.found = true;
    for (const Unit& used : taken) {
      outcome.victims.insert(outcome.victims.end(), used.pods.begin(), used.pods.end());
    }
    return outcome;
  }
  txn.RollbackTo(start);
  if (protected_workloads > 0) {
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
    outcome.details.push_back(absl::StrCat("reclaim: queue ", context.tree.Name(may.queue),
                                           " would exceed its ",
                                           may.refusal == queues::ReclaimRefusal::kOverFairShare
                                               ? "fair share"
                                               : "quota"));
    return outcome;
  }

  // Candidates by leaf, who goes first at the front.
  struct LeafUnits {
    std::vector<std::pair<ServiceKey, const state::Workload*>> workloads;
    std::vector<Unit> units;
    size_t next = 0;
    bool closed = false;
  };
  std::map<queues::QueueId, LeafUnits> leaves;
  absl::flat_hash_map<std::string, queues::QueueId> eligible;
  bool anybody = false;
  state_.ForEachWorkload([&](const state::Workload& workload) {
    if (!workload.preemptible ||
        workload.Count(PodStatus::kBound) + workload.Count(PodStatus::kRunning) == 0) {
      return;
    }
    auto [it, added] = eligible.try_emplace(workload.queue, ~queues::QueueId{0});
    if (added) {
      const std::optional<queues::QueueId> leaf = context.tree.Find(workload.queue);
      if (leaf.has_value() && *leaf != step.leaf && context.tree.Usable(*leaf)) {
        anybody = true;
        if (queues::MayEverReclaimFrom(rights, reclaimer, *leaf)) it->second = *leaf;
      }
    }
    if (it->second == ~queues::QueueId{0}) return;
    leaves[it->second].workloads.emplace_back(MakeServiceKey(workload), &workload);
  });
  if (leaves.empty()) {
    if (anybody) {
      outcome.details.push_back("reclaim: no other queue holds more than its fair share");
    }
    return outcome;
  }
  int64_t protected_workloads = 0;
  for (auto& [leaf, row] : leaves) {
    std::sort(row.workloads.begin(), row.workloads.end(),
              [](const auto& a, const auto& b) { return b.first < a.first; });
    const absl::Duration protection = queues::ReclaimMinRuntime(
        context.tree, queues::ReclaimResolveMethod::kLowestCommonAncestor, step.leaf, leaf,
        absl::ZeroDuration());
    for (const auto& [key, workload] : row.workloads) {
      const bool is_protected =
          queues::IsProtected(context.now, state_.StartOf(*workload), protection);
      if (is_protected) ++protected_workloads;
      AppendUnits(*workload, leaf, !is_protected, row.units);
    }
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

  queues::QueueOrderIterator order(
      context.tree, context.ledger, context.shares,
      [&](queues::QueueId leaf) -> const model::Resources* {
        auto it = leaves.find(leaf);
        if (it == leaves.end()) return nullptr;
        const LeafUnits& row = it->second;
        if (row.closed || row.next >= row.units.size()) return nullptr;
        return &row.units[row.next].charge;
      },
      {.victims = true, .cluster_total = state_.total_for_queues()});

  const auto start = txn.Mark();
  NodeFits fits(state_, framework_, step.pods);
  std::vector<Unit> taken;
  int64_t victims = 0;
  bool refused = false;
  while (std::optional<queues::QueueId> leaf = order.Next()) {
    LeafUnits& row = leaves.at(*leaf);
    Unit unit = row.units[row.next++];
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
      fits.NodeChanged(state_.pod(pod).node);
      ++victims;
    }
    order.Picked(*leaf, unit.charge);
    if (!fits.Possible() || !placer_.PromiseAll(txn, step.pods)) continue;
    Minimise(txn, start, step, taken, allowed);
    outcome.found = true;
    for (const Unit& used : taken) {
      outcome.victims.insert(outcome.victims.end(), used.pods.begin(), used.pods.end());
    }
    return outcome;
  }
  txn.RollbackTo(start);
  if (protected_workloads > 0) {
    outcome.details.push_back(absl::StrCat(
        "reclaim: ", protected_workloads, " workloads are protected by the minimum runtime"));
  } else if (refused) {
    outcome.details.push_back(
        "reclaim: taking more would leave the other queue below its own share");
  } else if (outcome.details.empty()) {
    outcome.details.push_back("reclaim: the room of all that may be taken would not be enough");
  }
  return outcome;
}

}  // namespace fairlead::engine
