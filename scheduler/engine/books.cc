#include "scheduler/engine/books.h"

#include "absl/strings/str_cat.h"

namespace fairlead::engine {

Books::Books(const state::ClusterState& state, const queues::QueueTree& tree)
    : state_(state), tree_(tree), ledger_(tree), shape_version_(tree.shape_version()) {}

void Books::OnAllocated(const state::Workload& workload, const state::PodRecord& pod) {
  if (pod.id >= charged_.size()) charged_.resize(pod.id + 1);
  if (RecountNeeded()) return;  // the recount will see it
  const std::optional<queues::QueueId> queue = tree_.Find(workload.queue);
  if (!queue.has_value()) return;
  const model::Resources charge = state_.ChargeOf(pod);
  charged_[pod.id] = {*queue, workload.preemptible, charge[model::kGpu]};
  ledger_.Charge(*queue, charge, workload.preemptible);
}

void Books::OnReleased(const state::Workload&, const state::PodRecord& pod) {
  if (pod.id >= charged_.size() || charged_[pod.id].queue == kNoQueue) return;
  const Charged charged = charged_[pod.id];
  charged_[pod.id] = {};
  model::Resources charge = state_.pod_class(pod.pod_class).charge;
  charge.Set(model::kGpu, charged.gpu_milli);
  ledger_.Release(charged.queue, charge, charged.preemptible);
}

void Books::OnWorkloadRemoved(const state::Workload& workload) {
  if (workload.id >= requested_.size()) return;
  Requested& requested = requested_[workload.id];
  if (requested.queue != kNoQueue) ledger_.SubRequested(requested.queue, requested.amount);
  requested = {};
}

void Books::RefreshRequested(const state::Workload& workload) {
  if (workload.id >= requested_.size()) requested_.resize(workload.id + 1);
  Requested& requested = requested_[workload.id];
  if (requested.queue != kNoQueue) ledger_.SubRequested(requested.queue, requested.amount);
  requested = {};
  const std::optional<queues::QueueId> queue = tree_.Find(workload.queue);
  if (!queue.has_value()) return;
  requested.queue = *queue;
  for (state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    if (state::IsAllocated(pod.status) || pod.status == state::PodStatus::kPending) {
      requested.amount += state_.pod_class(pod.pod_class).charge;
    }
  }
  ledger_.AddRequested(requested.queue, requested.amount);
}

void Books::Recount() {
  ledger_ = queues::QueueLedger(tree_);
  shape_version_ = tree_.shape_version();
  charged_.assign(charged_.size(), {});
  requested_.assign(requested_.size(), {});
  state_.ForEachWorkload([this](const state::Workload& workload) {
    RefreshRequested(workload);
    for (state::PodId id : workload.pods) {
      const state::PodRecord& pod = state_.pod(id);
      if (state::IsAllocated(pod.status)) OnAllocated(workload, pod);
    }
  });
}

std::string Books::CheckConsistency() const {
  if (RecountNeeded()) return "";
  Books fresh(state_, tree_);
  fresh.Recount();
  for (queues::QueueId queue = 0; queue < tree_.size(); ++queue) {
    if (!(ledger_.allocated(queue) == fresh.ledger_.allocated(queue)) ||
        !(ledger_.allocated_non_preemptible(queue) ==
          fresh.ledger_.allocated_non_preemptible(queue)) ||
        !(ledger_.requested(queue) == fresh.ledger_.requested(queue))) {
      return absl::StrCat("queue ", tree_.Name(queue), ": ledger differs from a recount");
    }
  }
  return "";
}

}  // namespace fairlead::engine
