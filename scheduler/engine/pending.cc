#include "scheduler/engine/pending.h"

#include <utility>

namespace fairlead::engine {

ServiceKey MakeServiceKey(const state::Workload& workload) {
  ServiceKey key;
  key.minus_priority = -static_cast<int64_t>(workload.priority);
  key.elastic_state = ElasticStateOf(workload);
  key.creation_ns = absl::ToUnixNanos(workload.creation);
  key.uid = workload.uid;
  key.workload = workload.id;
  return key;
}

void PendingIndex::Refresh(const state::Workload& workload) {
  const bool waits = workload.Count(state::PodStatus::kPending) > 0 ||
                     workload.Count(state::PodStatus::kGated) > 0;
  if (!waits) {
    Remove(workload.id);
    return;
  }
  if (workload.id >= places_.size()) places_.resize(workload.id + 1);
  Place& place = places_[workload.id];
  const queues::QueueId queue = tree_.Find(workload.queue).value_or(kNoQueue);
  ServiceKey key = MakeServiceKey(workload);
  if (place.filed && place.queue == queue && *place.position == key) return;
  Remove(workload.id);
  place.filed = true;
  place.queue = queue;
  // Workloads mostly come in the order of their age: then this is O(1).
  Leaf& leaf = leaves_[queue];
  place.position = leaf.emplace_hint(leaf.end(), std::move(key));
  ++size_;
}

void PendingIndex::Remove(state::WorkloadId workload) {
  if (workload >= places_.size() || !places_[workload].filed) return;
  Place& place = places_[workload];
  auto leaf = leaves_.find(place.queue);
  leaf->second.erase(place.position);
  if (leaf->second.empty()) leaves_.erase(leaf);
  place = {};
  --size_;
}

void PendingIndex::Clear() {
  leaves_.clear();
  places_.assign(places_.size(), {});
  size_ = 0;
}

ServiceWalk::ServiceWalk(const PendingIndex& index) {
  for (const auto& [queue, leaf] : index.leaves()) {
    cursors_.emplace(queue, Cursor{leaf.begin(), leaf.end(), {}});
  }
}

state::WorkloadId ServiceWalk::Peek(queues::QueueId leaf) const {
  auto it = cursors_.find(leaf);
  if (it == cursors_.end()) return state::kNoId;
  const Cursor& cursor = it->second;
  const bool fresh = cursor.next != cursor.end;
  if (!cursor.put_back.empty() && (!fresh || *cursor.put_back.begin() < *cursor.next)) {
    return cursor.put_back.begin()->workload;
  }
  return fresh ? cursor.next->workload : state::kNoId;
}

void ServiceWalk::Pop(queues::QueueId leaf) {
  Cursor& cursor = cursors_.at(leaf);
  const bool fresh = cursor.next != cursor.end;
  if (!cursor.put_back.empty() && (!fresh || *cursor.put_back.begin() < *cursor.next)) {
    cursor.put_back.erase(cursor.put_back.begin());
  } else {
    ++cursor.next;
  }
}

void ServiceWalk::PutBack(queues::QueueId leaf, ServiceKey key) {
  cursors_.at(leaf).put_back.insert(std::move(key));
}

}  // namespace fairlead::engine
