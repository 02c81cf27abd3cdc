#include "scheduler/engine/variant_bounds.h"

#include <memory>
#include <utility>

#include "queues/variant.h"

namespace fairlead::engine {

VariantBounds::VariantBounds(const state::ClusterState& state, const queues::QueueTree& tree,
                             const AllocationTracker& tracker)
    : state_(state), tree_(tree), tracker_(tracker), variants_(queues::Variants(tree)) {}

std::optional<queues::LimitViolation> VariantBounds::FindBroken(
    queues::QueueId leaf, bool preemptible, const std::vector<state::PodId>& pods) const {
  if (variants_.empty()) return std::nullopt;
  using queues::LimitKind;
  model::Resources charge;
  for (const state::PodId pod : pods) charge += tracker_.ChargeOf(state_.pod(pod));
  const queues::QueueLedger& ledger = tracker_.ledger();
  for (const model::ResourceIndex resource : variants_) {
    const int64_t asked = charge[resource];
    if (asked <= 0) continue;
    for (const queues::QueueId queue : tree_.Ancestors(leaf)) {
      const queues::Bounds& bounds = tree_.BoundsOf(queue, resource);
      const int64_t held = ledger.allocated(queue, resource);
      if (bounds.limit != model::kUnlimited && held > bounds.limit) {
        return queues::LimitViolation{queue,        resource,     LimitKind::kLimit,
                                      bounds.limit, held - asked, asked};
      }
      const int64_t firm = ledger.allocated_non_preemptible(queue, resource);
      if (!preemptible && bounds.quota != model::kUnlimited && firm > bounds.quota) {
        return queues::LimitViolation{queue,        resource,     LimitKind::kNonPreemptibleQuota,
                                      bounds.quota, firm - asked, asked};
      }
    }
  }
  return std::nullopt;
}

Placement VariantBounds::Place(Placer& placer, state::Transaction& txn, queues::QueueId leaf,
                               const state::Workload& workload, const TasksToAllocate& step,
                               Placer::Mode mode, NodeSetPtr within,
                               std::optional<queues::LimitViolation>& broken) const {
  std::vector<model::ResourceIndex> barred;
  while (true) {
    Placement placement = placer.Place(txn, workload, step, mode, within);
    if (!placement.placed) return placement;
    const auto found = FindBroken(leaf, workload.preemptible, step.pods);
    if (!found.has_value()) {
      broken.reset();
      return placement;
    }
    broken = found;
    txn.RollbackTo(0);
    barred.push_back(found->resource);
    std::vector<state::NodeId> rest;
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (within != nullptr && !within->Contains(id)) continue;
      const queues::Variant variant =
          queues::VariantOfNode(tree_, state_.node(id).object.meta.labels);
      if (variant.has_value() &&
          std::find(barred.begin(), barred.end(), *variant) != barred.end()) {
        continue;
      }
      rest.push_back(id);
    }
    within = std::make_shared<const NodeSet>(std::move(rest));
  }
}

model::Resources VariantBounds::WithAnyVariant(absl::Span<const state::PodId> pods,
                                               model::Resources request) const {
  if (variants_.empty()) return request;
  int64_t open = 0;
  for (const state::PodId pod : pods) {
    if (queues::NamesVariant(*state_.class_of(pod).spec)) continue;
    open = model::SaturatingAdd(open, queues::AmountWithVariants(state_.ChargeOf(state_.pod(pod))));
  }
  if (open == 0) return request;
  for (const model::ResourceIndex resource : variants_) {
    request.Set(resource, model::SaturatingAdd(request[resource], open));
  }
  return request;
}

}  // namespace fairlead::engine
