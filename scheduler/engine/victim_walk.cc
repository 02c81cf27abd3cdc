#include "scheduler/engine/victim_walk.h"

#include <algorithm>
#include <utility>

#include "queues/min_runtime.h"
#include "scheduler/engine/gang.h"

namespace fairlead::engine {

bool LeafVictims::IsProtected(const state::Workload& workload) const {
  return filter_.protection > absl::ZeroDuration() &&
         queues::IsProtected(filter_.now, state_.StartOf(workload), filter_.protection);
}

void LeafVictims::Open(const ServiceKey& key) {
  const state::Workload& workload = state_.workload(key.workload);
  if (workload.id == filter_.except) return;
  if (filter_.moved != nullptr &&
      std::any_of(workload.pods.begin(), workload.pods.end(),
                  [&](state::PodId pod) { return filter_.moved->contains(pod); })) {
    return;
  }
  Opened opened;
  const bool core = !IsProtected(workload);
  std::vector<std::vector<state::PodId>> units = EvictionUnits(state_, workload, core);
  for (size_t i = 0; i < units.size(); ++i) {
    VictimUnit unit;
    unit.leaf = leaf_;
    unit.workload = workload.id;
    unit.pods = std::move(units[i]);
    for (state::PodId pod : unit.pods) {
      unit.charge += state_.ChargeOf(state_.pod(pod));
      const state::PodRecord& record = state_.pod(pod);
      unit.places.push_back(
          {record.node, record.gpu_groups, record.status == state::PodStatus::kPipelined});
    }
    opened.units.push_back(std::move(unit));
  }
  if (opened.units.empty()) return;
  // The last unit is what is left of the workload, unless extras are all that may go.
  opened.units.back().core = core;
  ServiceKey place = key;
  place.elastic_state = opened.units.size() > 1 || !core ? 2 : key.elastic_state;
  opened_.emplace(std::move(place), std::move(opened));
}

const VictimUnit* LeafVictims::Peek() {
  if (closed_) return nullptr;
  // A workload that is not opened yet may come before those that are.
  while (next_ != workloads_.end() && Concerned(*next_) &&
         (opened_.empty() || *next_ > opened_.begin()->first)) {
    Open(*next_);
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

int64_t LeafVictims::Protected() const {
  if (filter_.protection <= absl::ZeroDuration()) return 0;
  int64_t count = 0;
  for (const ServiceKey& key : workloads_) {
    if (!Concerned(key)) break;
    if (IsProtected(state_.workload(key.workload))) ++count;
  }
  return count;
}

}  // namespace fairlead::engine
