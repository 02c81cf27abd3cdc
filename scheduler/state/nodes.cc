// Nodes of ClusterState: real ones, ordered ones, and names that pods know before the API shows
// them.
#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/node_devices.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/parts.h"
#include "scheduler/state/rows.h"

namespace fairlead::state {
namespace {

// The annotations of nodes that a decision reads: those that keep a node from being removed. All
// others, such as heartbeats of agents, change without a word.
constexpr const char* kAnnotationsRead[] = {model::kDoNotRemoveAnnotation,
                                            "cluster-autoscaler.kubernetes.io/scale-down-disabled"};

bool SameAnnotations(const model::StringMap& a, const model::StringMap& b) {
  return std::all_of(std::begin(kAnnotationsRead), std::end(kAnnotationsRead),
                     [&](const char* key) { return a.Get(key) == b.Get(key); });
}

bool SameForDecisions(const model::Node& a, const model::Node& b, bool images) {
  return a.meta.labels == b.meta.labels &&
         SameAnnotations(a.meta.annotations, b.meta.annotations) &&
         a.allocatable == b.allocatable && a.taints == b.taints &&
         a.unschedulable == b.unschedulable && a.ready == b.ready &&
         a.bad_conditions == b.bad_conditions && a.invalid == b.invalid &&
         a.declared_features == b.declared_features && a.provider_id == b.provider_id &&
         model::SameDevices(a.devices, b.devices) && (!images || a.images == b.images);
}

}  // namespace

bool ClusterState::SoftlyTainted(const model::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [](const model::Taint& taint) {
    return taint.effect == model::TaintEffect::kPreferNoSchedule;
  });
}

bool ClusterState::CountsForQueues(const NodeInfo& node) {
  return node.exists && node.TakesBindings() && node.object.ready && !node.object.unschedulable &&
         node.object.bad_conditions.empty() && node.object.invalid.empty();
}

// What others ask for beyond a node's own takes nothing away on other nodes.
model::Resources ClusterState::ShareOfQueues(const NodeInfo& node) const {
  model::Resources share;
  if (!CountsForQueues(node)) return share;
  share = CapacityForQueues(node);
  const model::Resources& others = node.used_by_others;
  for (size_t i = 0; i < std::min(share.size(), others.size()); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    share.Set(resource, std::max<int64_t>(0, share[resource] - others[resource]));
  }
  return share;
}

void ClusterState::CountForQueues(NodeInfo& node) {
  model::Resources share = ShareOfQueues(node);
  if (share == node.for_queues) return;
  total_for_queues_ -= node.for_queues;
  total_for_queues_ += share;
  node.for_queues = std::move(share);
}

// Names in order get numbers in order, with gaps, so that a new name rarely renumbers the others.
void ClusterState::AssignNameRank(NodeId id) {
  auto it = nodes_by_name_.find(nodes_[id].name());
  const uint64_t below = it == nodes_by_name_.begin() ? 0 : nodes_[std::prev(it)->second].name_rank;
  const uint64_t above = std::next(it) == nodes_by_name_.end()
                             ? std::numeric_limits<uint64_t>::max()
                             : nodes_[std::next(it)->second].name_rank;
  // At either end step by a fixed gap: halving the rest would run out after 63 names in order.
  constexpr uint64_t kGap = uint64_t{1} << 32;
  uint64_t rank = below + (above - below) / 2;
  if (std::next(it) == nodes_by_name_.end() && above - below > 2 * kGap) rank = below + kGap;
  if (it == nodes_by_name_.begin() && nodes_by_name_.size() == 1) rank = uint64_t{1} << 63;
  if (rank != below && rank != above) {
    nodes_[id].name_rank = rank;
    return;
  }
  const uint64_t step = std::numeric_limits<uint64_t>::max() / (nodes_by_name_.size() + 1);
  uint64_t next = 0;
  for (auto& [name, node] : nodes_by_name_) nodes_[node].name_rank = next += step;
  Tell({.kind = StateChange::Kind::kNodesRanked});
}

NodeId ClusterState::NewNodeRow() {
  const NodeId id = TakeRow(nodes_, free_nodes_);
  NodeInfo& node = nodes_[id];
  // Versions go on counting when an id is used again, so that nothing remembered about it survives.
  const uint64_t version = node.version + 1;
  const uint64_t object_version = node.object_version + 1;
  node = NodeInfo{};
  node.version = version;
  node.object_version = object_version;
  node.id = id;
  return id;
}

NodeId ClusterState::NewNode(absl::string_view name, NodeKind kind) {
  const NodeId id = NewNodeRow();
  NodeInfo& node = nodes_[id];
  node.kind = kind;
  node.object.meta.name = std::string(name);
  nodes_by_name_.emplace(std::string(name), id);
  AssignNameRank(id);
  TouchNode(id);
  return id;
}

NodeId ClusterState::NodeForPod(absl::string_view name) {
  const NodeId known = FindNode(name);
  if (known != kNoId) return known;
  // A pod can be seen on a node before the node itself: it is parked there.
  const NodeId id = NewNode(name, NodeKind::kReal);
  nodes_[id].exists = false;
  return id;
}

void ClusterState::DropNodeIfUnused(NodeId id) {
  NodeInfo& node = nodes_[id];
  if (node.exists || !node.pods.empty()) return;
  nodes_by_name_.erase(node.name());
  const uint64_t version = node.version;
  const uint64_t object_version = node.object_version;
  node = NodeInfo{};
  node.exists = false;
  node.version = version;
  node.object_version = object_version;
  free_nodes_.push_back(id);
  TouchNode(id, /*object=*/true);
}

void ClusterState::ReplaceNodeObject(NodeInfo& node, model::Node object) {
  if (SoftlyTainted(node.object)) --softly_tainted_nodes_;
  node.object = std::move(object);
  if (!options_.keep_images) node.object.images = {};
  node.object.meta.labels.Intern(texts_);
  if (SoftlyTainted(node.object)) ++softly_tainted_nodes_;
  // Nodes that are only ordered have the devices that are promised for them alone.
  if (node.kind == NodeKind::kReal) {
    devices_.inventory().UpsertNode(node.name(), node.object.meta.labels);
  }
  devices_.inventory().SetPromised(node.name(), node.object.devices.get());
  ReadAllocatable(node);
  CountForQueues(node);
  SetGpuMemory(node, GpuMemoryOf(node.object));
  LearnTopology(node);
  RenewNuma(node);
  TouchNode(node.id, /*object=*/true);
}

void ClusterState::EmptyNode(NodeId id) {
  NodeInfo& node = nodes_[id];
  if (SoftlyTainted(node.object)) --softly_tainted_nodes_;
  node.exists = false;
  node.kind = NodeKind::kReal;
  node.usable = true;
  node.registered = nullptr;
  node.node_request.clear();
  node.ordered_for.clear();
  model::Node empty;
  empty.meta.name = node.name();
  node.object = std::move(empty);
  devices_.inventory().RemoveNode(node.name());
  devices_.inventory().SetPromised(node.name(), nullptr);
  node.allocatable = model::Resources{};
  node.other_gpus_milli = 0;
  CountForQueues(node);
  SetGpuMemory(node, 0);
  TouchNode(id, /*object=*/true);
  DropNodeIfUnused(id);
}

Change ClusterState::UpsertNode(const model::Node& object) {
  Change change;
  NodeId id = FindNode(object.meta.name);
  if (id == kNoId) id = NewNode(object.meta.name, NodeKind::kReal);
  NodeInfo& node = nodes_[id];
  const std::string request(object.meta.labels.Get(model::kNodeRequestLabel));
  const bool is_new =
      !node.exists || node.kind != NodeKind::kReal || node.object.meta.uid != object.meta.uid;
  if (node.exists && node.kind == NodeKind::kOrdered) {
    // It registers. Decisions go on seeing what was promised until it is usable.
    node.kind = NodeKind::kReal;
    node.usable = false;
    node.object.meta.uid = object.meta.uid;
    node.registered = std::make_unique<model::Node>(object);
    TouchNode(id, /*object=*/true);
    change.capacity = true;
    return change;
  }
  if (node.exists && !node.usable) {
    // It may have become ready: the caller has to look.
    change.capacity = is_new || node.registered == nullptr ||
                      !SameForDecisions(*node.registered, object, options_.keep_images);
    node.registered = std::make_unique<model::Node>(object);
    node.object.meta.uid = object.meta.uid;
    return change;
  }
  if (!is_new && SameForDecisions(node.object, object, options_.keep_images)) {
    model::ObjectMeta meta = object.meta;
    meta.labels = node.object.meta.labels;  // equal, and interned
    node.object.meta = std::move(meta);
    return change;
  }
  node.kind = NodeKind::kReal;
  node.exists = true;
  node.node_request = request;
  if (is_new) {
    node.usable = request.empty();
  }
  if (!node.usable) node.registered = std::make_unique<model::Node>(object);
  ReplaceNodeObject(node, object);
  change.capacity = true;
  return change;
}

Change ClusterState::RemoveNode(absl::string_view name, absl::string_view uid) {
  Change change;
  const NodeId id = FindNode(name);
  if (id == kNoId) return change;
  NodeInfo& node = nodes_[id];
  if (!node.exists || node.kind != NodeKind::kReal) return change;
  if (!uid.empty() && !node.object.meta.uid.empty() && node.object.meta.uid != uid) return change;
  EmptyNode(id);
  change.capacity = true;
  return change;
}

Change ClusterState::UpsertOrderedNode(const model::Node& expected, absl::string_view node_request,
                                       const std::vector<std::string>& ordered_for) {
  Change change;
  NodeId id = FindNode(expected.meta.name);
  const bool is_new = id == kNoId;
  if (is_new) id = NewNode(expected.meta.name, NodeKind::kOrdered);
  NodeInfo& node = nodes_[id];
  node.ordered_for = ordered_for;
  if (!is_new && node.exists && node.kind == NodeKind::kReal) {
    // Already registered. Until it is usable decisions see what was promised.
    node.node_request = std::string(node_request);
    model::Node promised = expected;
    promised.meta.uid = node.object.meta.uid;
    if (!node.usable && !SameForDecisions(node.object, promised, options_.keep_images)) {
      ReplaceNodeObject(node, std::move(promised));
      change.capacity = true;
    }
    return change;
  }
  if (!is_new && node.kind == NodeKind::kOrdered && node.node_request == node_request &&
      SameForDecisions(node.object, expected, options_.keep_images)) {
    return change;
  }
  node.exists = true;
  node.kind = NodeKind::kOrdered;
  node.usable = true;
  node.node_request = std::string(node_request);
  ReplaceNodeObject(node, expected);
  change.capacity = true;
  return change;
}

Change ClusterState::RemoveOrderedNode(absl::string_view name) {
  Change change;
  const NodeId id = FindNode(name);
  if (id == kNoId || nodes_[id].kind != NodeKind::kOrdered) return change;
  NodeInfo& node = nodes_[id];
  for (PodId pod : std::vector<PodId>(node.pods)) {
    if (pods_[pod].status == PodStatus::kPipelined) MovePod(pod, PodStatus::kPending, kNoId);
  }
  EmptyNode(id);
  change.capacity = true;
  return change;
}

Change ClusterState::SetNodeUsable(NodeId id, bool usable) {
  Change change;
  NodeInfo& node = nodes_[id];
  if (node.usable == usable) return change;
  FAIRLEAD_CHECK(node.kind == NodeKind::kReal && node.exists,
                 absl::StrCat("node ", node.name(), " has not registered"));
  node.usable = usable;
  CountForQueues(node);
  if (usable && node.registered != nullptr) {
    ReplaceNodeObject(node, std::move(*node.registered));
    node.registered = nullptr;
  } else {
    TouchNode(id, /*object=*/true);
  }
  change.capacity = true;
  return change;
}

}  // namespace fairlead::state
