#include "scheduler/engine/placer.h"

#include <tuple>

namespace fairlead::engine {

state::NodeId Placer::BestNow(state::PodClassId pod_class) {
  if (framework_.NodeLocal(state_.pod_class(pod_class))) return now_.Best(pod_class, work_);
  return Scan(pod_class, framework::Room::kNow);
}

state::NodeId Placer::BestFuture(state::PodClassId pod_class) {
  if (framework_.NodeLocal(state_.pod_class(pod_class))) return future_.Best(pod_class, work_);
  return Scan(pod_class, framework::Room::kFuture);
}

state::NodeId Placer::Scan(state::PodClassId pod_class, framework::Room room) {
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class, room};
  state::NodeId best = state::kNoId;
  std::tuple<bool, int64_t> best_rank;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    ++work_;
    if (!node.exists || !framework_.Filter(context, node, nullptr)) continue;
    const bool here = node.kind == state::NodeKind::kReal && node.usable;
    // Nodes come by name: a tie stays with the smaller one.
    const std::tuple<bool, int64_t> rank{here, framework_.Score(context, node)};
    if (best == state::kNoId || rank > best_rank) {
      best = id;
      best_rank = rank;
    }
  }
  return best;
}

bool Placer::AllocateAll(state::Transaction& txn, const std::vector<state::PodId>& pods,
                         state::PodId* failed) {
  const auto mark = txn.Mark();
  for (state::PodId pod : pods) {
    const state::NodeId node = BestNow(state_.pod(pod).pod_class);
    if (node == state::kNoId) {
      txn.RollbackTo(mark);
      if (failed != nullptr) *failed = pod;
      return false;
    }
    txn.Allocate(pod, node);
  }
  return true;
}

bool Placer::PromiseAll(state::Transaction& txn, const std::vector<state::PodId>& pods) {
  const auto mark = txn.Mark();
  for (state::PodId pod : pods) {
    const state::NodeId node = BestFuture(state_.pod(pod).pod_class);
    if (node == state::kNoId) {
      txn.RollbackTo(mark);
      return false;
    }
    txn.Pipeline(pod, node);
  }
  return true;
}

}  // namespace fairlead::engine
