// Bounds of GPU models in the cycle. What names no product is held to them once its node is chosen:
// the placement is looked at afterwards, and tried again without the models that it breaks.
#include <algorithm>

#include "scheduler/engine/cycle.h"
#include "scheduler/engine/gpu_models.h"

namespace fairlead::engine {

// The pods are placed and charged already.
std::optional<queues::LimitViolation> Cycle::BrokenModel(
    queues::QueueId leaf, bool preemptible, const std::vector<state::PodId>& pods) const {
  if (models_.empty()) return std::nullopt;
  using queues::LimitKind;
  const model::Resources charge = ChargeOf(pods);
  const queues::QueueLedger& ledger = p_.books.ledger();
  for (const model::ResourceIndex resource : models_) {
    const int64_t asked = charge[resource];
    if (asked <= 0) continue;
    for (const queues::QueueId queue : p_.tree.Ancestors(leaf)) {
      const queues::Bounds& bounds = p_.tree.BoundsOf(queue, resource);
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

// Into an empty transaction. `broken`: what kept it from a place, if it has none.
Placement Cycle::PlaceInModels(state::Transaction& txn, queues::QueueId leaf,
                               const state::Workload& workload, const GangStep& step,
                               Placer::Mode mode, NodeSetPtr within,
                               std::optional<queues::LimitViolation>& broken) {
  std::vector<model::ResourceIndex> barred;
  while (true) {
    Placement placement = p_.placer.Place(txn, workload, step, mode, within);
    if (!placement.placed) return placement;
    const auto found = BrokenModel(leaf, workload.preemptible, step.pods);
    if (!found.has_value()) {
      broken.reset();
      return placement;
    }
    broken = found;
    txn.RollbackTo(0);
    barred.push_back(found->resource);
    std::vector<state::NodeId> rest;
    for (const auto& [name, id] : p_.state.nodes_by_name()) {
      if (within != nullptr && !within->Contains(id)) continue;
      const auto gpu_model = ModelOf(p_.tree, p_.state.node(id));
      if (gpu_model.has_value() &&
          std::find(barred.begin(), barred.end(), *gpu_model) != barred.end()) {
        continue;
      }
      rest.push_back(id);
    }
    within = std::make_shared<const NodeSet>(std::move(rest));
  }
}

// Nobody knows what will be bought for pods that may run on any model, so they are counted for
// every one.
model::Resources Cycle::WithAnyModel(const std::vector<state::PodId>& pods,
                                     model::Resources request) const {
  if (models_.empty()) return request;
  int64_t open = 0;
  for (const state::PodId pod : pods) {
    if (!OnlyProduct(*p_.state.class_of(pod).spec).empty()) continue;
    open = model::SaturatingAdd(open, p_.state.GpuChargeOf(p_.state.pod(pod)));
  }
  if (open == 0) return request;
  for (const model::ResourceIndex resource : models_) {
    request.Set(resource, model::SaturatingAdd(request[resource], open));
  }
  return request;
}

}  // namespace fairlead::engine
