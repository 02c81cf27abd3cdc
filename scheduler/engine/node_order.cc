#include "scheduler/engine/node_order.h"

namespace fairlead::engine {

void NodeOrders::Put(Order& order, const Entry& entry) {
  if (order.best.node == state::kNoId) {
    order.best = entry;
  } else if (entry < order.best) {
    order.others.insert(order.best);
    order.best = entry;
  } else {
    order.others.insert(entry);
  }
}

void NodeOrders::Take(Order& order, const Entry& entry) {
  if (order.best.node != entry.node) {
    order.others.erase(entry);
  } else if (order.others.empty()) {
    order.best.node = state::kNoId;
  } else {
    order.best = *order.others.begin();
    order.others.erase(order.others.begin());
  }
}

bool NodeOrders::FitsIdle(const framework::Framework& framework, const framework::Context& future,
                          const state::NodeInfo& node) {
  if (node.kind != state::NodeKind::kReal || !node.usable) return false;
  const state::PodClass& wanted = future.pod_class;
  const bool claims = !wanted.spec->resource_claims.empty() || !wanted.spec->claims_to_join.empty();
  if (wanted.SharesGpu() || claims) {
    framework::Context now = future;
    now.room = framework::Room::kNow;
    return framework.Filter(now, node, nullptr);
  }
  for (size_t i = 0; i < wanted.requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t idle = model::SaturatingAdd(node.allocatable[resource], -node.used[resource]);
    if (wanted.requests[resource] > 0 && wanted.requests[resource] > idle) return false;
  }
  return true;
}

void NodeOrders::Renew(Order& order, state::PodClassId pod_class, state::NodeId id,
                       uint64_t& work) {
  if (id >= order.slots.size()) order.slots.resize(id + 1);
  Slot& slot = order.slots[id];
  const state::NodeInfo& node = state_.node(id);
  // A node that changed several times is in the log as often.
  if (slot.version == node.version) return;
  slot.version = node.version;
  const Slot former = slot;
  slot.fits = node.id == id && node.exists;
  if (slot.fits) {
    const framework::Context context{state_, state_.pod_class(pod_class), pod_class, room_};
    ++work;
    if (slot.object_version != node.object_version) {
      slot.object_version = node.object_version;
      slot.object_fits = framework_.FilterNodeObject(context, node, nullptr);
    }
    slot.fits = slot.object_fits && framework_.FilterUsage(context, node, nullptr) &&
                (holds_ == Holds::kAllThatFit || FitsIdle(framework_, context, node));
    if (slot.fits) {
      slot.ordered = node.kind != state::NodeKind::kReal || !node.usable;
      slot.minus_score = -framework_.Score(context, node);
      slot.name_rank = node.name_rank;
    }
  }
  const Entry now = slot.AsEntry(id);
  if (former.fits && slot.fits && order.best.node == id &&
      (order.others.empty() || now < *order.others.begin())) {
    order.best = now;
    return;
  }
  if (former.fits) Take(order, former.AsEntry(id));
  if (slot.fits) Put(order, now);
}

void NodeOrders::Build(Order& order, state::PodClassId pod_class, uint64_t& work) {
  order.spec = state_.pod_class(pod_class).spec;
  order.best.node = state::kNoId;
  order.others.clear();
  order.slots.clear();
  order.rank_epoch = state_.rank_epoch();
  order.log_position = state_.node_log_end();
  for (const auto& [name, id] : state_.nodes_by_name()) {
    // The log does not say when such a node goes.
    if (state_.node(id).kind != state::NodeKind::kVirtual) Renew(order, pod_class, id, work);
  }
}

NodeOrders::Best NodeOrders::BestFor(state::PodClassId pod_class, uint64_t& work) {
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
    return {made.best.node, made.best.ordered, -made.best.minus_score};
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
  return {order.best.node, order.best.ordered, -order.best.minus_score};
}

NodeOrders::Best NodeOrders::BestFor(state::PodClassId pod_class, uint64_t& work,
                                     absl::FunctionRef<bool(state::NodeId)> passed_over) {
  const Best best = BestFor(pod_class, work);
  if (best.node == state::kNoId || !passed_over(best.node)) return best;
  for (const Entry& entry : orders_.at(pod_class)->others) {
    if (!passed_over(entry.node)) return {entry.node, entry.ordered, -entry.minus_score};
  }
  return {};
}

}  // namespace fairlead::engine
