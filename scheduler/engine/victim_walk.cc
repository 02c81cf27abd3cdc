#include "scheduler/engine/victim_walk.h"

#include <algorithm>
#include <utility>

#include "queues/min_runtime.h"
#include "scheduler/engine/gang.h"

namespace fairlead::engine {

std::vector<state::PodClassId> ClassesOf(const state::ClusterState& state,
                                         const std::vector<state::PodId>& pods) {
  std::vector<state::PodClassId> classes;
  for (const state::PodId pod : pods) {
    const state::PodClassId each = state.pod(pod).pod_class;
    if (std::find(classes.begin(), classes.end(), each) == classes.end()) classes.push_back(each);
  }
  return classes;
}

bool LeafVictims::IsProtected(const state::Workload& workload) const {
  return filter_.protection > absl::ZeroDuration() &&
         queues::IsProtected(filter_.now, state_.StartOf(workload), filter_.protection);
}

bool LeafVictims::IsRefused(const std::vector<state::PodId>& pods) {
  if (filter_.refusals == nullptr || filter_.refusals->empty()) return false;
  bool refused = false;
  for (const state::PodId id : pods) {
    const state::PodRecord& pod = state_.pod(id);
    const bool by_extender = filter_.refusals->StandsFor(pod, filter_.now, filter_.preemptors);
    if (!by_extender && !filter_.refusals->Stands(state_, pod, filter_.now)) continue;
    refused = true;
    ++refused_;
    if (by_extender) ++refused_by_extenders_;
    const std::string budgets = filter_.refusals->BudgetsThatRefused(pod.uid);
    if (!budgets.empty()) refusing_.insert(budgets);
  }
  return refused;
}

bool LeafVictims::IsTooYoung(const state::Workload& workload, absl::Time start,
                             const std::vector<state::PodId>& pods) {
  if (filter_.moves == nullptr) return false;
  // Each start by itself: one that is unknown says nothing about the others.
  absl::Time movable = filter_.moves->MovableAt(workload, start, filter_.now);
  for (const state::PodId id : pods) {
    const state::PodRecord& pod = state_.pod(id);
    // Another scheduler, or the pod's own nodeName, records no start.
    const absl::Time began = pod.started_at == absl::InfinitePast() ? pod.creation : pod.started_at;
    movable = std::max(movable, filter_.moves->MovableAt(workload, began, filter_.now));
  }
  if (movable <= filter_.now) return false;
  first_movable_ = std::min(first_movable_, movable);
  return true;
}

bool LeafVictims::IsBeingBound(const state::Workload& workload) const {
  using state::PodStatus;
  if (workload.Count(PodStatus::kBinding) != workload.Active()) return false;
  return filter_.fresh == nullptr ||
         std::none_of(workload.pods.begin(), workload.pods.end(),
                      [&](state::PodId pod) { return filter_.fresh->contains(pod); });
}

void LeafVictims::Open(const QueueOrderKey& key) {
  const state::Workload& workload = state_.workload(key.workload);
  if (workload.id == filter_.except || (filter_.movable_only && !workload.IsMovable())) return;
  if (filter_.moved != nullptr &&
      std::any_of(workload.pods.begin(), workload.pods.end(),
                  [&](state::PodId pod) { return filter_.moved->contains(pod); })) {
    return;
  }
  Opened opened;
  const bool core = !IsProtected(workload);
  std::vector<std::vector<state::PodId>> units =
      EvictionUnits(state_, workload, core, filter_.fresh);
  const absl::Time start =
      filter_.moves == nullptr ? absl::InfinitePast() : state_.StartOf(workload);
  bool keeps_core = false, any_young = false;
  for (size_t i = 0; i < units.size(); ++i) {
    VictimUnit unit;
    // The last unit is what is left of the workload, unless extras are all that may go.
    unit.core = core && i + 1 == units.size();
    // Queue policy goes before the wish of a pod to stay; to move it would only save capacity.
    if (filter_.movable_only && AnyStays(state_, units[i])) {
      keeps_core = true;
      continue;
    }
    const bool refused = IsRefused(units[i]);
    const bool young = !refused && IsTooYoung(workload, start, units[i]);
    any_young = any_young || young;
    const bool stays = refused || young;
    keeps_core = keeps_core || stays;
    if (stays || (keeps_core && unit.core)) continue;
    unit.leaf = leaf_;
    unit.workload = workload.id;
    unit.pods = std::move(units[i]);
    for (state::PodId pod : unit.pods) {
      unit.charge += tracker_.ChargeOf(state_.pod(pod));
      unit.places.push_back(PlaceOf(state_, state_.pod(pod)));
    }
    if (!state_.budgets().empty()) unit.budgets = NeedsOf(state_, unit.pods);
    opened.units.push_back(std::move(unit));
  }
  if (any_young) ++too_young_;
  if (opened.units.empty()) return;
  QueueOrderKey place = key;
  const bool only_core = opened.units.size() == 1 && opened.units.front().core;
  place.elastic_state = only_core ? key.elastic_state : 2;
  opened_.emplace(std::move(place), std::move(opened));
}

const VictimUnit* LeafVictims::Peek() {
  if (closed_) return nullptr;
  // A workload that is not opened yet may come before those that are.
  while (next_ != workloads_.end() && Concerned(*next_) &&
         (opened_.empty() || *next_ > opened_.begin()->first)) {
    if (!IsBeingBound(state_.workload(next_->workload))) {
      Open(*next_);
      if (too_young_ >= kMaxTooYoung) {
        next_ = workloads_.end();
        break;
      }
    } else if (++being_bound_ >= kMaxBeingBound) {
      next_ = workloads_.end();
      break;
    }
    ++next_;
  }
  if (opened_.empty()) return nullptr;
  const Opened& first = opened_.begin()->second;
  return &first.units[first.at];
}

VictimUnit LeafVictims::Take() {
  auto node = opened_.extract(opened_.begin());
  Opened& opened = node.mapped();
  VictimUnit unit = std::move(opened.units[opened.at++]);
  if (opened.at < opened.units.size()) {
    if (opened.units[opened.at].core) node.key().elastic_state = 1;
    opened_.insert(std::move(node));
  }
  return unit;
}

void LeafVictims::LeaveOut(state::WorkloadId workload) {
  std::erase_if(opened_, [&](const auto& row) { return row.first.workload == workload; });
}

LeafVictims::Protection LeafVictims::Protected() const {
  Protection protection;
  if (filter_.protection <= absl::ZeroDuration()) return protection;
  for (const QueueOrderKey& key : workloads_) {
    if (!Concerned(key)) break;
    const state::Workload& workload = state_.workload(key.workload);
    if (!IsProtected(workload)) continue;
    ++protection.workloads;
    protection.first_end =
        std::min(protection.first_end, state_.StartOf(workload) + filter_.protection);
  }
  return protection;
}

bool AnyStays(const state::ClusterState& state, const std::vector<state::PodId>& pods) {
  return std::any_of(pods.begin(), pods.end(),
                     [&](state::PodId pod) { return state.pod(pod).do_not_disrupt; });
}

VictimUnit::Place PlaceOf(const state::ClusterState& state, const state::PodRecord& pod) {
  return {pod.node, state::PartsOf(pod), state.PickOfPod(pod.id),
          pod.status == state::PodStatus::kPipelined, pod.status == state::PodStatus::kBinding};
}

void EvictAll(Hypothesis& what_if, const std::vector<VictimUnit>& units) {
  for (const VictimUnit& unit : units) {
    for (state::PodId pod : unit.pods) what_if.Evict(pod);
  }
}

}  // namespace fairlead::engine
