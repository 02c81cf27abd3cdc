// Nodes, classes and pods of ClusterState that exist inside a Transaction alone.
//
// Rows are dropped in the reverse order in which they were added, so ids are dealt afterwards as if
// there had never been any.
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {

NodeId ClusterState::AddVirtualNode(const model::Node& object) {
  // Behind every name that the API server accepts, in the order of being added.
  std::string name = absl::StrCat("~", absl::Dec(virtual_nodes_, absl::kZeroPad8));
  while (nodes_by_name_.contains(name)) name += "~";
  const NodeId id = NewNodeRow();
  NodeInfo& node = nodes_[id];
  node.kind = NodeKind::kVirtual;
  node.name_rank = std::numeric_limits<uint64_t>::max();
  node.object = object;
  node.object.meta.name = name;
  if (!object.meta.labels.Has(model::kHostnameLabel)) {
    node.object.meta.labels.Set(model::kHostnameLabel, name);
  }
  devices_.inventory().SetPromised(name, object.devices.get());
  ReadAllocatable(node);
  // The memory of its GPUs decides nothing about what pods elsewhere count.
  node.gpu_memory_mib = GpuMemoryOf(object);
  if (SoftlyTainted(object)) ++softly_tainted_nodes_;
  nodes_by_name_.emplace(std::move(name), id);
  ++virtual_nodes_;
  RenewNuma(node);
  TouchNode(id, /*object=*/true);
  return id;
}

void ClusterState::DropVirtualNode(NodeId id) {
  NodeInfo& node = nodes_[id];
  FAIRLEAD_CHECK(node.id == id && node.kind == NodeKind::kVirtual && node.pods.empty(),
                 absl::StrCat("node ", node.name(), " is not one to drop"));
  if (SoftlyTainted(node.object)) --softly_tainted_nodes_;
  devices_.inventory().SetPromised(node.name(), nullptr);
  nodes_by_name_.erase(node.name());
  const uint64_t version = node.version;
  const uint64_t object_version = node.object_version;
  node = NodeInfo{};
  node.kind =
      NodeKind::kVirtual;  // so that subscribers that leave such nodes out leave out its end, too
  node.exists = false;
  node.version = version;
  node.object_version = object_version;
  free_nodes_.push_back(id);
  --virtual_nodes_;
  TouchNode(id, /*object=*/true);
}

PodClassId ClusterState::AddVirtualClass(const model::PodSpec& spec) {
  // Whether real pods have to be classed again does not depend on it.
  const size_t new_terms = new_terms_.size();
  const bool new_keys = new_keys_;
  const PodClassId id = InternClass(spec);
  new_terms_.resize(new_terms);
  new_keys_ = new_keys;
  return id;
}

PodId ClusterState::AddVirtualPod(PodClassId pod_class) {
  const PodId id = NewPod();
  PodRecord& record = pods_[id];
  PodClass& its_class = classes_[pod_class];
  ++its_class.users;
  record.pod_class = pod_class;
  record.ns = its_class.spec->ns;
  record.name = record.uid = absl::StrCat("~", virtual_pods_++);
  record.labels = its_class.spec->labels_for_affinity;
  ++version_;
  return id;
}

void ClusterState::DropVirtualPod(PodId id) {
  PodRecord& record = pods_[id];
  FAIRLEAD_CHECK(record.id == id && record.node == kNoId && record.workload == kNoId,
                 absl::StrCat("pod ", record.name, " is not one to drop"));
  ReleaseClass(record.pod_class);
  record = PodRecord{};
  free_pods_.push_back(id);
  --live_pods_;
  --virtual_pods_;
  ++version_;
}

}  // namespace fairlead::state
