#include "scheduler/engine/node_order.h"

namespace fairlead::engine {

void NodeOrders::Renew(Order& order, state::PodClassId pod_class, state::NodeId id,
                       uint64_t& work) {
  if (id >= order.by_node.size()) order.by_node.resize(id + 1, Entry{false, 0, 0, state::kNoId});
  Entry& entry = order.by_node[id];
  if (entry.node != state::kNoId) order.entries.erase(entry);
  entry.node = state::kNoId;
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists) return;
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class,
                                   room_};
  ++work;
  if (!framework_.Filter(context, node, nullptr)) return;
  const bool ordered = node.kind != state::NodeKind::kReal || !node.usable;
  entry = {ordered, -framework_.Score(context, node), node.name_rank, id};
  order.entries.insert(entry);
}

void NodeOrders::Build(Order& order, state::PodClassId pod_class, uint64_t& work) {
  order.spec = state_.pod_class(pod_class).spec;
  order.entries.clear();
  order.by_node.clear();
  order.rank_epoch = state_.rank_epoch();
  order.log_position = state_.node_log_end();
  for (const auto& [name, id] : state_.nodes_by_name()) Renew(order, pod_class, id, work);
}

state::NodeId NodeOrders::Best(state::PodClassId pod_class, uint64_t& work) {
  std::unique_ptr<Order>& slot = orders_[pod_class];
  if (slot == nullptr) {
    slot = std::make_unique<Order>();
    recency_.push_front(pod_class);
    slot->recency = recency_.begin();
    if (orders_.size() > kMaxClasses) {
      orders_.erase(recency_.back());
      recency_.pop_back();
    }
    // The insertion above may have moved the table's slots, not the orders.
    Order& made = *orders_.at(pod_class);
    Build(made, pod_class, work);
    return made.entries.empty() ? state::kNoId : made.entries.begin()->node;
  }
  Order& order = *slot;
  recency_.splice(recency_.begin(), recency_, order.recency);
  if (order.spec != state_.pod_class(pod_class).spec || order.rank_epoch != state_.rank_epoch() ||
      order.log_position < state_.node_log_start()) {
    Build(order, pod_class, work);
  } else {
    for (; order.log_position < state_.node_log_end(); ++order.log_position) {
      Renew(order, pod_class, state_.node_log_at(order.log_position), work);
    }
  }
  return order.entries.empty() ? state::kNoId : order.entries.begin()->node;
}

}  // namespace fairlead::engine
