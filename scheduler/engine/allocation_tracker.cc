#include "scheduler/engine/allocation_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/workloads_ahead.h"
#include "scheduler/state/parts.h"

namespace fairlead::engine {

AllocationTracker::AllocationTracker(const state::ClusterState& state,
                                     const queues::QueueTree& tree)
    : state_(state), tree_(tree), ledger_(tree) {}

state::ChangeKinds AllocationTracker::Kinds() const {
  using Kind = state::StateChange::Kind;
  return {Kind::kPodMoved,     Kind::kPodCharged, Kind::kPodReleased, Kind::kWorkload,
          Kind::kWorkloadGone, Kind::kNodeObject, Kind::kQueue};
}

// Mostly where RefreshRequested found its workload; that may have changed since, or not been read
// yet.
queues::QueueId AllocationTracker::QueueOf(const state::PodRecord& pod) const {
  const std::string& queue = state_.QueueOf(pod);
  if (pod.workload < requested_.size() && !requested_[pod.workload].empty()) {
    const queues::QueueId known = requested_[pod.workload].front().queue;
    if (tree_.Name(known) == queue) return known;
  }
  return tree_.FindEver(queue).value_or(kNoQueue);
}

void AllocationTracker::Charge(queues::QueueId leaf, const model::Resources& amount,
                               bool preemptible) {
  ledger_.Charge(leaf, amount, preemptible);
  if (lending_.has_value()) lending_->Changed(leaf);
}

void AllocationTracker::Release(queues::QueueId leaf, const model::Resources& amount,
                                bool preemptible) {
  ledger_.Release(leaf, amount, preemptible);
  if (lending_.has_value()) lending_->Changed(leaf);
}

queues::Variant AllocationTracker::VariantOf(const state::PodRecord& pod) const {
  if (!queues::MayNameVariants(tree_)) return std::nullopt;
  if (pod.node != state::kNoId) {
    return queues::VariantOfNode(tree_, state_.node(pod.node).object.meta.labels);
  }
  return queues::OnlyVariantOf(tree_, *state_.pod_class(pod.pod_class).spec);
}

model::Resources AllocationTracker::ChargeOf(const state::PodRecord& pod) const {
  return queues::WithVariant(state_.ChargeOf(pod), VariantOf(pod));
}

void AllocationTracker::OnChange(const state::StateChange& change) {
  using Kind = state::StateChange::Kind;
  switch (change.kind) {
    case Kind::kPodCharged:
      return OnCharged(state_.pod(change.pod));
    case Kind::kPodReleased:
      return OnReleased(state_.pod(change.pod));
    case Kind::kWorkloadGone:
      return OnWorkloadGone(change.workload);
    case Kind::kNodeObject:
      if (RecountNeeded() || queues::Variants(tree_).empty()) return;
      if (state_.node(change.to_node).id == change.to_node) {
        RefreshNode(state_.node(change.to_node));
      }
      return;
    case Kind::kWorkload:
      if (change.workload >= stale_.size()) stale_.resize(change.workload + 1, false);
      stale_[change.workload] = true;
      return;
    case Kind::kQueue:
      recount_needed_ |= change.reshaped;
      return;
    case Kind::kPodMoved:
      // The entries of one pod follow each other: moved, its workload, charged.
      started_ = change.from_status == state::PodStatus::kPending ? change.pod : state::kNoId;
      started_up_to_date_ = !IsStale(change.workload);
      return;
    default:
      return;  // is not told
  }
}

void AllocationTracker::OnCharged(const state::PodRecord& pod) {
  if (pod.id >= charged_.size()) charged_.resize(pod.id + 1);
  if (RecountNeeded()) return;  // the recount will see it
  const queues::QueueId queue = QueueOf(pod);
  if (queue == kNoQueue) return;
  const model::Resources charge = ChargeOf(pod);
  const bool preemptible = state_.workload(pod.workload).preemptible;
  charged_[pod.id] = {queue, VariantOf(pod), queues::AmountWithVariants(charge), preemptible};
  Charge(queue, charge, preemptible);
  if (queue >= pods_.size()) pods_.resize(queue + 1);
  ++pods_[queue];
  if (std::exchange(started_, state::kNoId) == pod.id && started_up_to_date_ &&
      AsksTheSame(pod, state_.workload(pod.workload))) {
    stale_[pod.workload] = false;
  }
}

bool AllocationTracker::AsksTheSame(const state::PodRecord& pod,
                                    const state::Workload& workload) const {
  if (!workload.plain && workload.details->failed_attempt != nullptr) return false;
  if (queues::MayNameVariants(tree_)) return false;  // a node decides on the variant
  const queues::QueueId queue = charged_[pod.id].queue;
  return pod.started_under == nullptr && tree_.Exists(queue) &&
         requested_[workload.id].size() == 1 && requested_[workload.id].front().queue == queue;
}

void AllocationTracker::OnReleased(const state::PodRecord& pod) {
  if (pod.id >= charged_.size() || charged_[pod.id].queue == kNoQueue) return;
  const Charged charged = charged_[pod.id];
  charged_[pod.id] = {};
  --pods_[charged.queue];
  const model::Resources charge = queues::WithVariant(state_.pod_class(pod.pod_class).charge,
                                                      charged.variant, charged.with_variants);
  Release(charged.queue, charge, charged.preemptible);
}

void AllocationTracker::RefreshNode(const state::NodeInfo& node) {
  const queues::Variant now = queues::VariantOfNode(tree_, node.object.meta.labels);
  for (const state::PodId id : node.pods) {
    if (id >= charged_.size() || charged_[id].queue == kNoQueue) continue;
    Charged& charged = charged_[id];
    if (charged.variant == now) continue;
    Release(charged.queue, queues::OfVariant(charged.variant, charged.with_variants),
            charged.preemptible);
    Charge(charged.queue, queues::OfVariant(now, charged.with_variants), charged.preemptible);
    charged.variant = now;
    RefreshRequested(state_.workload(state_.pod(id).workload));
  }
}

model::Resources AllocationTracker::CapacityOf(const state::NodeInfo& node) const {
  return queues::WithVariant(state::CapacityForQueues(node),
                             queues::VariantOfNode(tree_, node.object.meta.labels));
}

model::Resources AllocationTracker::Total() const {
  model::Resources total = state_.total_for_queues();
  if (queues::Variants(tree_).empty()) return total;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    const int64_t amount = queues::AmountWithVariants(node.for_queues);
    if (amount == 0) continue;
    total += queues::OfVariant(queues::VariantOfNode(tree_, node.object.meta.labels), amount);
  }
  return total;
}

void AllocationTracker::OpenLending() {
  lending_.reset();
  if (tree_.AnyKept()) lending_.emplace(tree_, ledger_);
}

std::optional<queues::LendingRefusal> AllocationTracker::CheckLending(
    queues::QueueId leaf, const model::Resources& request, const model::Resources& total) const {
  if (!lending_.has_value()) return std::nullopt;
  return lending_->Check(leaf, request, total);
}

model::Resources AllocationTracker::LendingLoad() const {
  return lending_.has_value() ? lending_->Load() : model::Resources();
}

void AllocationTracker::OnWorkloadGone(state::WorkloadId id) {
  if (id >= requested_.size()) return;
  for (const Requested& of : requested_[id]) ledger_.SubRequested(of.queue, of.amount);
  requested_[id].clear();
}

AllocationTracker::Requests AllocationTracker::RequestedBy(const state::Workload& workload) const {
  Requests requests;
  const auto of_queue = [&](queues::QueueId queue) -> model::Resources& {
    for (Requested& requested : requests) {
      if (requested.queue == queue) return requested.amount;
    }
    requests.push_back({queue, {}});
    return requests.back().amount;
  };
  const queues::QueueId now = tree_.Find(workload.queue).value_or(kNoQueue);
  for (state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    // A pod that is not tried asks for nothing.
    const bool asks = pod.status == state::PodStatus::kPending && !workload.GaveUp();
    const bool allocated = state::IsAllocated(pod.status);
    if (!allocated && !asks) continue;
    const bool elsewhere = allocated && (now == kNoQueue || pod.started_under != nullptr);
    const queues::QueueId queue =
        elsewhere ? tree_.FindEver(state_.QueueOf(pod)).value_or(kNoQueue) : now;
    if (queue == kNoQueue) continue;
    model::Resources& amount = of_queue(queue);
    const model::Resources& charge = state_.pod_class(pod.pod_class).charge;
    amount += charge;
    const queues::Variant variant = VariantOf(pod);
    if (variant.has_value()) {
      amount += queues::OfVariant(variant, queues::AmountWithVariants(charge));
    }
  }
  return requests;
}

void AllocationTracker::RefreshRequested(const state::Workload& workload) {
  if (workload.id >= requested_.size()) requested_.resize(workload.id + 1);
  if (workload.id < stale_.size()) stale_[workload.id] = false;
  Requests& requested = requested_[workload.id];
  Requests now = RequestedBy(workload);
  // A pod that starts asks for as much as when it waited.
  if (now == requested) return;
  for (const Requested& of : requested) ledger_.SubRequested(of.queue, of.amount);
  for (const Requested& of : now) ledger_.AddRequested(of.queue, of.amount);
  requested = std::move(now);
}

void AllocationTracker::Recount(const std::function<void(const state::Workload&)>& also) {
  ledger_ = queues::QueueLedger(tree_);
  recount_needed_ = false;
  lending_.reset();
  pods_.clear();
  charged_.assign(charged_.size(), {});
  requested_.assign(requested_.size(), {});
  stale_.assign(stale_.size(), false);
  requested_.resize(std::max(requested_.size(), state_.workload_count()));
  charged_.resize(std::max(charged_.size(), state_.pod_count()));
  WorkloadsAhead walk(state_, [&](state::WorkloadId id, const state::Workload& workload) {
    if (id >= requested_.size()) requested_.resize(id + 1);
    Requests& requested = requested_[id];
    requested = RequestedBy(workload);
    for (const Requested& of : requested) ledger_.AddRequested(of.queue, of.amount);
    for (const state::PodId pod : workload.pods) {
      if (state::IsAllocated(state_.pod(pod).status)) OnCharged(state_.pod(pod));
    }
    if (also) also(workload);
  });
  state_.ForEachWorkload([&](const state::Workload& workload) { walk.Add(workload.id); });
  walk.Finish();
}

std::string AllocationTracker::CheckConsistency() const {
  if (RecountNeeded()) return "";
  AllocationTracker fresh(state_, tree_);
  fresh.Recount();
  for (state::PodId id = 0; id < charged_.size(); ++id) {
    const Charged now = id < fresh.charged_.size() ? fresh.charged_[id] : Charged();
    if (charged_[id] == now) continue;
    return absl::StrCat("pod ", state_.pod(id).name, ": charged ", charged_[id].with_variants,
                        " of what has variants to queue ", charged_[id].queue, ", a recount makes ",
                        now.with_variants, " to queue ", now.queue);
  }
  queues::QueueLedger requested(tree_);
  for (state::WorkloadId id = 0; id < requested_.size(); ++id) {
    for (const Requested& of : requested_[id]) requested.AddRequested(of.queue, of.amount);
    const bool stale = id < stale_.size() && stale_[id];
    const Requests now = id < fresh.requested_.size() ? fresh.requested_[id] : Requests();
    if (!stale && requested_[id] != now) {
      return absl::StrCat("workload ", id, ": what it asks for differs from a recount");
    }
  }
  const auto differs = [&](absl::string_view what, queues::QueueId queue, const model::Resources& a,
                           const model::Resources& b) -> std::string {
    for (model::ResourceIndex r = 0; r < std::max(a.size(), b.size()); ++r) {
      if (a[r] == b[r]) continue;
      return absl::StrCat("queue ", tree_.Name(queue), ": ", what, " ", tree_.names().Name(r), " ",
                          a[r], ", a recount makes ", b[r]);
    }
    return "";
  };
  for (queues::QueueId queue = 0; queue < tree_.size(); ++queue) {
    std::string wrong =
        differs("allocated", queue, ledger_.allocated(queue), fresh.ledger_.allocated(queue));
    if (wrong.empty()) {
      wrong = differs("allocated for good", queue, ledger_.allocated_non_preemptible(queue),
                      fresh.ledger_.allocated_non_preemptible(queue));
    }
    if (wrong.empty()) {
      wrong = differs("requested", queue, ledger_.requested(queue), requested.requested(queue));
    }
    if (wrong.empty() && PodsOf(queue) != fresh.PodsOf(queue)) {
      wrong = absl::StrCat("queue ", tree_.Name(queue), ": ", PodsOf(queue),
                           " pods, a recount makes ", fresh.PodsOf(queue));
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace fairlead::engine
