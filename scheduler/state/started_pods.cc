// What a pod keeps from its start while it has a node: the queue that it is charged to, and, once
// the object of its PodGroup is gone, whether it is preemptible.
//
// Without that, deleting a PodGroup would free quota: what ran for good would count as preemptible,
// and be evicted as such. Victims are chosen by workload, so what one pod says holds for all of a
// group whose object is gone. That pod is the oldest: a pod that is added to the group decides
// nothing.
#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

using model::Preemptibility;

const Shared<std::string>& ClusterState::InternQueue(const std::string& queue) {
  if (queue_name_last_ == nullptr || *queue_name_last_ != queue) {
    queue_name_last_ = queue_names_.Intern(queue);
  }
  return queue_name_last_;
}

// Tenants may write the annotations too. The binding overwrites what a waiting pod has. So they
// count when a pod comes to its node, and not later; and not at all for pods that this process
// would have bound itself.
void ClusterState::ReadStart(PodRecord& record, const model::Pod& pod) {
  if (deciding_ || !record.ours || HoldsNode(record.status)) return;
  const Preemptibility started_as =
      model::ParsePreemptibility(pod.meta.annotations.Get(model::kStartedAsAnnotation));
  if (started_as != Preemptibility::kByPriority) SetStartedAs(record, started_as);
  if (record.started_under == nullptr) ReadStartedUnder(record, pod);
}

void ClusterState::ReadStartedUnder(PodRecord& record, const model::Pod& pod) {
  const absl::string_view text = pod.meta.annotations.Get(model::kStartedUnderAnnotation);
  const size_t slash = text.rfind('/');
  const absl::string_view parent = slash == text.npos ? "" : text.substr(0, slash);
  const absl::string_view queue = slash == text.npos ? text : text.substr(slash + 1);
  if (queue.empty() || std::max(queue.size(), parent.size()) > model::kLongestName) return;
  SetStartedUnder(record, InternQueue(std::string(queue)));
  record.started_under_unchecked = true;
  if (parent.empty()) return;
  std::string& recorded = recorded_parents_[queue];
  if (recorded.empty() || parent < recorded) recorded = std::string(parent);
}

std::string ClusterState::RecordedParentOf(absl::string_view queue) const {
  const auto found = recorded_parents_.find(queue);
  return found == recorded_parents_.end() ? "" : found->second;
}

void ClusterState::SetStartedUnder(PodRecord& record, Shared<std::string> queue) {
  const bool charged = IsAllocated(record.status);
  if (charged) TellReleased(record);
  record.started_under = std::move(queue);
  if (charged) TellCharged(record);
}

void ClusterState::SettleStarts(WorkloadId workload_id,
                                const std::function<bool(const std::string&)>& is_queue) {
  const Workload& workload = workloads_[workload_id];
  if (workload.Active() + workload.Count(PodStatus::kReleasing) == 0) return;
  for (PodId id : workload.pods) {
    PodRecord& pod = pods_[id];
    if (std::exchange(pod.started_under_unchecked, false) && pod.started_under != nullptr &&
        !is_queue(*pod.started_under)) {
      SetStartedUnder(pod, nullptr);
      TouchWorkload(workload_id);
    }
    if (!HoldsNode(pod.status)) continue;
    NoteStart(id);
    if (pod.started_under != nullptr) continue;
    if (!workload.queue_named && pod.status != PodStatus::kBinding) continue;
    pod.started_under = InternQueue(workload.queue);
  }
}

void ClusterState::NoteStart(PodId id) {
  PodRecord& record = pods_[id];
  if (record.workload == kNoId) return;
  const Workload& workload = workloads_[record.workload];
  if (!workload.LacksGroup() || record.started_as != Preemptibility::kByPriority) return;
  SetStartedAs(record, workload.preemptibility());
}

void ClusterState::ForgetStart(PodId id) {
  PodRecord& record = pods_[id];
  record.started_under = nullptr;
  if (record.started_as != Preemptibility::kByPriority) {
    SetStartedAs(record, Preemptibility::kByPriority);
  }
}

void ClusterState::KeepPreemptibility(Workload& workload) {
  for (PodId id : workload.pods) {
    if (!HoldsNode(pods_[id].status)) continue;
    pods_[id].started_as = workload.preemptibility();
    CompareStart(workload, pods_[id]);
  }
}

void ClusterState::SetStartedAs(PodRecord& record, Preemptibility started_as) {
  Workload& workload = workloads_[record.workload];
  record.started_as = started_as;
  if (workload.oldest_start == record.id) {
    workload.oldest_start = FindOldestStart(workload);
  } else {
    CompareStart(workload, record);
  }
  if (!workload.LacksGroup()) return;
  const Preemptibility kept = KeptBy(workload);
  if (kept == Preemptibility::kByPriority || kept != workload.preemptibility())
    RenewWorkload(workload.id);
}

bool ClusterState::IsOlderStart(const PodRecord& record, PodId than) const {
  if (record.started_as == Preemptibility::kByPriority) return false;
  if (than == kNoId) return true;
  const PodRecord& other = pods_[than];
  return std::tie(record.creation, record.uid) < std::tie(other.creation, other.uid);
}

void ClusterState::CompareStart(Workload& workload, const PodRecord& record) const {
  if (IsOlderStart(record, workload.oldest_start)) workload.oldest_start = record.id;
}

PodId ClusterState::FindOldestStart(const Workload& workload) const {
  PodId oldest = kNoId;
  for (PodId id : workload.pods) {
    if (IsOlderStart(pods_[id], oldest)) oldest = id;
  }
  return oldest;
}

Preemptibility ClusterState::KeptBy(const Workload& workload) const {
  return workload.oldest_start == kNoId ? Preemptibility::kByPriority
                                        : pods_[workload.oldest_start].started_as;
}

}  // namespace fairlead::state
