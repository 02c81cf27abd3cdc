#include "scheduler/engine/node_victims.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/victim_budgets.h"

namespace fairlead::engine {
namespace {

using state::PodId;
using state::PodRecord;
using state::PodStatus;

constexpr int64_t kPriorityOffset = int64_t{std::numeric_limits<int32_t>::max()} + 1;

// Pods that go together: one, or a gang.
struct Unit {
  absl::InlinedVector<PodId, 1> pods;
  int64_t priority = 0;
  uint32_t start_s = PodRecord::kNoStart;  // of the pod that runs longest
  bool violating = false;
};

// Its priority and its queue make it one; whether it can be evicted is asked by status.
bool IsLower(const state::ClusterState& state, const NodePreemptor& preemptor,
             const PodRecord& pod) {
  if (pod.workload == state::kNoId || pod.terminating) return false;
  const state::Workload& workload = state.workload(pod.workload);
  return workload.preemptible && workload.priority < preemptor.priority &&
         state.QueueOf(pod) == preemptor.queue;
}

// The pods of the gang that go if that one does; none: nothing of it may go.
std::vector<PodId> PartOfGang(const state::ClusterState& state, const state::Workload& workload,
                              PodId pod) {
  const std::vector<std::vector<PodId>> parts =
      EvictionUnits(state, workload, /*core=*/true, nullptr);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!absl::c_linear_search(parts[i], pod)) continue;
    std::vector<PodId> pods = parts[i];
    // What is left of the gang goes last, so its extra pods go with it.
    for (size_t extra = 0; extra < i && i + 1 == parts.size(); ++extra) {
      pods.insert(pods.end(), parts[extra].begin(), parts[extra].end());
    }
    return pods;
  }
  return {};
}

bool IsRunning(const PodRecord& pod) {
  return pod.status == PodStatus::kBound || pod.status == PodStatus::kRunning;
}

class DryRun {
 public:
  DryRun(const state::ClusterState& state, Hypothesis& what_if, const NodePreemptor& preemptor,
         state::NodeId node, IsSpared is_spared, uint64_t& tried)
      : state_(state),
        what_if_(what_if),
        preemptor_(preemptor),
        node_(node),
        is_spared_(is_spared),
        tried_(tried) {}

  std::optional<NodeVictims> Run() {
    Collect();
    if (units_.empty() || !MayHaveRoom()) return std::nullopt;
    const Hypothesis::Checkpoint start = what_if_.Mark();
    const std::vector<const Unit*> victims = Reprieve();
    what_if_.RollbackTo(start);
    if (victims.empty()) return std::nullopt;
    NodeVictims found = Describe(victims);
    TakePromises(found);
    what_if_.RollbackTo(start);
    return found;
  }

 private:
  void Collect() {
    for (const PodId id : state_.node(node_).pods) {
      const PodRecord& pod = state_.pod(id);
      if (!IsLower(state_, preemptor_, pod) || is_spared_(pod)) continue;
      if (pod.status == PodStatus::kPipelined) promised_.push_back(id);
      if (IsRunning(pod)) AddUnitOf(pod);
    }
    // Those that go with their gang are given up with it.
    std::erase_if(promised_, [&](PodId pod) {
      return absl::c_any_of(units_, [&](const Unit& unit) {
        return unit.pods.size() > 1 && absl::c_linear_search(unit.pods, pod);
      });
    });
    absl::c_sort(units_, [&](const Unit& a, const Unit& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      if (a.start_s != b.start_s) return a.start_s < b.start_s;
      return state_.pod(a.pods.front()).uid < state_.pod(b.pods.front()).uid;
    });
    MarkViolating();
  }

  void AddUnitOf(const PodRecord& pod) {
    const state::Workload& workload = state_.workload(pod.workload);
    Unit unit;
    unit.priority = workload.priority;
    if (!workload.is_group) {
      unit.pods.push_back(pod.id);
    } else if (!AddPartOfGang(workload, pod.id, unit)) {
      return;
    }
    for (const PodId id : unit.pods) {
      const PodRecord& each = state_.pod(id);
      if (is_spared_(each) || state_.BudgetsOf(each).size() > 1) return;
      unit.start_s = std::min(unit.start_s, each.start_s);
    }
    units_.push_back(std::move(unit));
  }

  // False: a pod of the gang that goes with it stands for it already, or nothing of it may go.
  bool AddPartOfGang(const state::Workload& workload, PodId pod, Unit& unit) const {
    const std::vector<PodId> part = PartOfGang(state_, workload, pod);
    unit.pods.assign(part.begin(), part.end());
    return !part.empty() && absl::c_none_of(units_, [&](const Unit& other) {
      return absl::c_any_of(other.pods,
                            [&](PodId each) { return absl::c_linear_search(unit.pods, each); });
    });
  }

  // Of the pods of a budget, the most important ones are those that it lets go, as upstream counts.
  void MarkViolating() {
    if (state_.budgets().empty()) return;
    BudgetSpending spending(state_);
    for (Unit& unit : units_) {
      for (const PodId pod : unit.pods) {
        if (spending.Exceeds(state_.pod(pod))) unit.violating = true;
      }
    }
  }

  // Spares a try: by amounts there would be room without them all.
  [[nodiscard]] bool MayHaveRoom() const {
    const state::NodeInfo& node = state_.node(node_);
    const model::Resources& wanted = state_.pod_class(preemptor_.pod_class).requests;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto resource = static_cast<model::ResourceIndex>(i);
      int64_t lacking = wanted[resource] - node.Future(resource);
      if (wanted[resource] <= 0 || lacking <= 0) continue;
      for (const Unit& unit : units_) {
        for (const PodId pod : unit.pods) {
          if (state_.pod(pod).node == node_) lacking -= state_.class_of(pod).requests[resource];
        }
      }
      for (const PodId pod : promised_) lacking -= state_.class_of(pod).requests[resource];
      if (lacking > 0 && what_if_.ChecksAmountOf(resource)) return false;
    }
    return true;
  }

  void Evict(const Unit& unit) {
    for (const PodId pod : unit.pods) what_if_.Evict(pod);
    tried_ += unit.pods.size();
  }
  [[nodiscard]] bool Fits() const {
    return what_if_.Fits(preemptor_.pod_class, node_, Hypothesis::kPromised);
  }

  // Those that cannot be given back.
  std::vector<const Unit*> Reprieve() {
    std::vector<const Unit*> order;
    for (const bool violating : {true, false}) {
      for (const Unit& unit : units_) {
        if (unit.violating == violating) order.push_back(&unit);
      }
    }
    for (const PodId pod : promised_) what_if_.Evict(pod);
    // The first to be given back is evicted last, so that a roll-back gives back it alone.
    std::vector<Hypothesis::Checkpoint> before(order.size());
    for (size_t i = order.size(); i-- > 0;) {
      before[i] = what_if_.Mark();
      Evict(*order[i]);
    }
    std::vector<const Unit*> victims;
    if (!Fits()) return victims;
    for (size_t i = 0; i < order.size(); ++i) {
      what_if_.RollbackTo(before[i]);
      for (const Unit* victim : victims) Evict(*victim);
      if (!Fits()) victims.push_back(order[i]);
    }
    return victims;
  }

  [[nodiscard]] NodeVictims Describe(const std::vector<const Unit*>& victims) const {
    NodeVictims found;
    EvictionCost& cost = found.cost;
    cost.highest_priority = std::numeric_limits<int64_t>::min();
    uint32_t earliest_s = PodRecord::kNoStart;
    for (const Unit* unit : victims) {
      const auto pods = static_cast<int64_t>(unit->pods.size());
      cost.violations += unit->violating ? 1 : 0;
      cost.priorities += pods * (unit->priority + kPriorityOffset);
      cost.victims += pods;
      if (unit->priority > cost.highest_priority) {
        cost.highest_priority = unit->priority;
        earliest_s = PodRecord::kNoStart;
      }
      if (unit->priority == cost.highest_priority) {
        earliest_s = std::min(earliest_s, unit->start_s);
      }
    }
    cost.minus_start_s = -int64_t{earliest_s};
    for (const Unit& unit : units_) {
      if (absl::c_linear_search(victims, &unit)) {
        found.pods.insert(found.pods.end(), unit.pods.begin(), unit.pods.end());
      }
    }
    return found;
  }

  // Promises that have to go with the victims.
  void TakePromises(NodeVictims& found) {
    for (const PodId pod : found.pods) what_if_.Evict(pod);
    for (const PodId pod : promised_) {
      if (Fits()) return;
      what_if_.Evict(pod);
      found.promised.push_back(pod);
    }
  }

  const state::ClusterState& state_;
  Hypothesis& what_if_;
  const NodePreemptor& preemptor_;
  const state::NodeId node_;
  const IsSpared is_spared_;
  uint64_t& tried_;
  std::vector<Unit> units_;  // the most important first
  std::vector<PodId> promised_;
};

}  // namespace

std::vector<PodId> PodsThatGoWith(const state::ClusterState& state, PodId pod) {
  const state::Workload& workload = state.workload(state.pod(pod).workload);
  return workload.is_group ? PartOfGang(state, workload, pod) : std::vector<PodId>{pod};
}

std::optional<NodeVictims> FindNodeVictims(const state::ClusterState& state, Hypothesis& what_if,
                                           const NodePreemptor& preemptor, state::NodeId node,
                                           IsSpared is_spared, uint64_t& tried) {
  return DryRun(state, what_if, preemptor, node, is_spared, tried).Run();
}

state::BudgetIds BudgetsAmongVictims(const state::ClusterState& state,
                                     const NodePreemptor& preemptor, state::NodeId node) {
  state::BudgetIds budgets;
  if (state.budgets().empty()) return budgets;
  for (const PodId id : state.node(node).pods) {
    const PodRecord& pod = state.pod(id);
    if (!IsRunning(pod) || !IsLower(state, preemptor, pod)) continue;
    for (const state::BudgetId budget : state.BudgetsOf(pod)) {
      if (!absl::c_linear_search(budgets, budget)) budgets.push_back(budget);
    }
  }
  return budgets;
}

}  // namespace fairlead::engine
