#include "scheduler/engine/victim_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::engine {

using state::PodStatus;

using Kind = state::StateChange::Kind;

state::ChangeKinds VictimIndex::Kinds() const {
  return {Kind::kPodCharged, Kind::kPodReleased, Kind::kWorkload, Kind::kWorkloadGone,
          Kind::kQueue};
}

void VictimIndex::OnChange(const state::StateChange& change) {
  if (change.kind != Kind::kQueue) return Touch(change.workload);
  if (change.reshaped) Clear();
}

void VictimIndex::Touch(state::WorkloadId id) {
  if (!built_) return;
  if (id >= places_.size()) places_.resize(id + 1);
  if (places_[id].touched) return;
  places_[id].touched = true;
  touched_.push_back(id);
}

void VictimIndex::Clear() {
  built_ = false;
  leaves_.clear();
  places_.clear();
  touched_.clear();
}

void VictimIndex::CatchUp() {
  if (!built_) {
    built_ = true;
    state_.ForEachWorkload([this](const state::Workload& workload) { Touch(workload.id); });
  }
  for (const state::WorkloadId id : touched_) {
    places_[id].touched = false;
    Refresh(id);
  }
  touched_.clear();
}

// The start stands before the uid, in 16 digits of which the order is that of the times.
QueueOrderKey VictimIndex::KeyOf(const state::Workload& workload) const {
  QueueOrderKey key = MakeQueueOrderKey(workload);
  key.sort_key = 0;
  if (state_.options().job_order.duration_weight > 0) key.turn_ns = 0;
  const int64_t start_ms = std::max<int64_t>(0, absl::ToUnixMillis(state_.StartOf(workload)));
  key.uid = absl::StrCat(absl::Hex(start_ms, absl::kZeroPad16), workload.uid);
  return key;
}

const std::string& VictimIndex::QueueOf(const state::Workload& workload) const {
  for (const state::PodId id : workload.pods) {
    if (state::IsAllocated(state_.pod(id).status)) return state_.QueueOf(state_.pod(id));
  }
  return workload.queue;
}

void VictimIndex::Refresh(state::WorkloadId id) {
  Place& place = places_[id];
  const state::Workload& workload = state_.workload(id);
  std::optional<queues::QueueId> queue;
  if (workload.id == id && workload.preemptible && workload.Active() > 0) {
    queue = tree_.Find(QueueOf(workload));
  }
  std::optional<QueueOrderKey> key;
  if (queue.has_value()) key = KeyOf(workload);
  if (place.queue != kNoQueue) {
    // What was only tried is as it was.
    if (place.queue == queue && *place.position == *key) return;
    auto leaf = leaves_.find(place.queue);
    leaf->second.erase(place.position);
    if (leaf->second.empty()) leaves_.erase(leaf);
    place.queue = kNoQueue;
  }
  if (!queue.has_value()) return;
  place.queue = *queue;
  place.position = leaves_[*queue].insert(*std::move(key)).first;
}

std::string VictimIndex::CheckConsistency() const {
  if (!built_) return "";
  VictimIndex fresh(state_, tree_);
  fresh.CatchUp();
  size_t filed = 0;
  for (state::WorkloadId id = 0; id < places_.size(); ++id) {
    const Place& place = places_[id];
    filed += place.queue != kNoQueue ? 1 : 0;
    if (place.touched) continue;
    const Place now = id < fresh.places_.size() ? fresh.places_[id] : Place{};
    if (place.queue != now.queue || (now.queue != kNoQueue && *place.position != *now.position)) {
      return absl::StrCat("victim index: workload ", id, " is not where it belongs");
    }
  }
  for (const auto& [queue, leaf] : leaves_) filed -= leaf.size();
  return filed == 0 ? "" : "victim index: leaves and places differ";
}

}  // namespace fairlead::engine
