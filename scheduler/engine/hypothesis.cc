#include "scheduler/engine/hypothesis.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/engine/node_order.h"
#include "scheduler/model/api_names.h"

namespace fairlead::engine {
using framework::Capacity;

bool Feasibility::Fits(state::PodClassId pod_class, state::NodeId id, Capacity capacity,
                       framework::Status* why) const {
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists) return false;
  return framework_.Filter({state_, state_.pod_class(pod_class), pod_class, capacity}, node, why);
}

bool Feasibility::Suits(state::PodClassId pod_class, state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists) return false;
  return framework_.FilterNodeObject(
      {state_, state_.pod_class(pod_class), pod_class, Capacity::kFuture}, node, nullptr);
}

bool Feasibility::OthersRefuse(state::PodClassId pod_class, state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  if (node.id != id || !node.exists) return false;
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class,
                                   Capacity::kFuture};
  return framework_.FilterNodeObject(context, node, nullptr) &&
         framework_.FilterNodeUsage(context, node, nullptr) &&
         !framework_.Filter(context, node, nullptr);
}

std::optional<std::vector<std::string>> Feasibility::DomainLabels(
    state::PodClassId pod_class) const {
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class,
                                   Capacity::kFuture};
  std::vector<std::string> labels;
  if (framework_.FiltersNodeLocal(context.pod_class)) return labels;
  if (!framework_.ByDomain(context.pod_class)) return std::nullopt;
  for (const framework::TopologyKey* key : framework_.DependenceOf(context).filter) {
    if (key->name() != model::kHostnameLabel) labels.push_back(key->name());
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

std::vector<int64_t> Feasibility::ScoresOf(state::PodClassId pod_class,
                                           absl::Span<const state::NodeId> nodes) const {
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class,
                                   Capacity::kFuture};
  std::vector<framework::Kind> kinds;
  kinds.reserve(nodes.size());
  for (const state::NodeId id : nodes) kinds.push_back({&state_.node(id), 1});
  std::vector<int64_t> scores = framework_.ScoreKinds(context, kinds);
  for (size_t i = 0; i < nodes.size(); ++i) {
    scores[i] = model::SaturatingAdd(scores[i], framework_.Score(context, *kinds[i].node));
  }
  return scores;
}

int64_t Feasibility::MostThatFit(state::PodClassId pod_class, state::NodeId id,
                                 int64_t limit) const {
  return Suits(pod_class, id) ? MostByAmounts(pod_class, id, limit) : 0;
}

int64_t Feasibility::MostByAmounts(state::PodClassId pod_class, state::NodeId id,
                                   int64_t limit) const {
  const state::NodeInfo& node = state_.node(id);
  const state::PodClass& wanted = state_.pod_class(pod_class);
  int64_t fits = limit;
  for (size_t i = 0; i < wanted.requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t each = wanted.requests[resource];
    if (each <= 0) continue;
    const int64_t free = std::max<int64_t>(0, node.Future(resource));
    if (free / each < fits && framework_.ChecksAmountOf(state_, resource)) fits = free / each;
  }
  return std::min(fits, state::PlacesByParts(node, wanted));
}

bool Feasibility::MayHold(const framework::Framework& framework,
                          const framework::ClassPlugins& plugins, const framework::Context& context,
                          const state::NodeInfo& node) {
  // What a node has of these is in its object alone.
  for (model::ResourceIndex each = 0; each < model::kWellKnownResources; ++each) {
    const int64_t request = context.pod_class.requests[each];
    if (request > 0 && request > node.allocatable[each] &&
        framework.ChecksAmountOf(context.state, each)) {
      return false;
    }
  }
  return plugins.FilterNodeObject(context, node);
}

// Follows all nodes as long as it lives.
struct Hypothesis::Orders {
  Orders(state::ClusterState& followed, const framework::Framework& framework)
      : state(followed),
        changes(followed, NodeChanges::Of::kAllNodes),
        orders(followed, framework, changes, kPromised, {}, NodeOrders::Holds::kWhatIf) {
    state.Subscribe(&changes);
    state.Subscribe(&orders);
  }
  ~Orders() {
    state.Unsubscribe(&orders);
    state.Unsubscribe(&changes);
  }
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  state::ClusterState& state;
  NodeChanges changes;
  NodeOrders orders;
};

Hypothesis::Hypothesis(state::ClusterState& state, const framework::Framework& framework,
                       state::PartsOrder order)
    : Feasibility(state, framework),
      state_(state),
      order_(order),
      own_(std::in_place, state),
      txn_(*own_),
      start_(0) {}

Hypothesis::Hypothesis(state::Transaction& txn, state::ClusterState& state,
                       const framework::Framework& framework, state::PartsOrder order)
    : Feasibility(state, framework), state_(state), order_(order), txn_(txn), start_(txn.Mark()) {}

Hypothesis::~Hypothesis() {
  orders_.reset();  // it need not follow what is undone
  txn_.RollbackTo(start_);
}

state::NodeId Hypothesis::AddNode(const model::Node& node) { return txn_.AddNode(node); }

state::PodClassId Hypothesis::ClassOf(const std::shared_ptr<const model::PodSpec>& spec) {
  const auto known = classes_.find(spec.get());
  if (known != classes_.end()) return known->second;
  known_.push_back({spec, txn_.Mark()});
  return classes_[spec.get()] = txn_.AddClass(*spec);
}

int64_t Hypothesis::Place(state::PodClassId pod_class, state::NodeId node, int64_t count) {
  int64_t placed = 0;
  while (placed < count && Fits(pod_class, node, kPromised)) {
    const Checkpoint mark = txn_.Mark();
    const state::PodId pod = txn_.AddPod(pod_class);
    std::optional<state::Parts> parts = state::PickParts(state_, pod, node, order_);
    if (!parts.has_value()) {
      txn_.RollbackTo(mark);
      break;
    }
    txn_.Pipeline(pod, node, *std::move(parts));
    ++placed;
  }
  return placed;
}

bool Hypothesis::Promise(state::PodId pod, state::NodeId node) {
  if (!Fits(state_.pod(pod).pod_class, node, kPromised)) return false;
  std::optional<state::Parts> parts = state::PickParts(state_, pod, node, order_);
  if (!parts.has_value()) return false;
  txn_.Pipeline(pod, node, *std::move(parts));
  return true;
}

void Hypothesis::RollbackTo(Checkpoint mark) {
  txn_.RollbackTo(mark);
  while (!known_.empty() && known_.back().mark >= mark) {
    classes_.erase(known_.back().spec.get());
    known_.pop_back();
  }
}

std::optional<state::NodeId> Hypothesis::BestNode(
    state::PodClassId pod_class, uint64_t& work,
    absl::FunctionRef<bool(state::NodeId)> passed_over) {
  const state::PodClass& wanted = state_.pod_class(pod_class);
  if (!framework().NodeLocal(wanted) && !framework().ByDomain(wanted)) return std::nullopt;
  if (orders_ == nullptr) orders_ = std::make_unique<Orders>(state_, framework());
  const auto best = orders_->orders.BestFor(pod_class, work, nullptr, passed_over);
  if (!best.has_value()) return std::nullopt;
  return best->node;
}

std::string Hypothesis::CheckConsistency() const {
  return orders_ == nullptr ? "" : orders_->orders.CheckConsistency();
}

int64_t Hypothesis::HowManyFit(state::PodClassId pod_class, state::NodeId node, int64_t limit) {
  const Checkpoint mark = txn_.Mark();
  const int64_t fits = Place(pod_class, node, limit);
  txn_.RollbackTo(mark);
  return fits;
}

}  // namespace fairlead::engine
