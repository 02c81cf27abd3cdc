// Shares of GPUs in ClusterState: groups on nodes, what API objects say about them, and what they
// count against queues. The rules of a group are in gpu_devices.h.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/unknown_gpu.h"

namespace fairlead::state {
namespace {

// Group ids that the labels name: LABEL=g for one device, LABEL/g=g for each of several.
GpuPick LabelledGroups(const model::StringMap& labels) {
  GpuPick groups;
  for (const auto& [key, value] : labels) {
    if (value.empty() || !absl::StartsWith(key, model::kGpuGroupLabel)) continue;
    const absl::string_view rest =
        absl::string_view(key).substr(absl::string_view(model::kGpuGroupLabel).size());
    if (rest.empty() || rest.front() == '/') groups.push_back(value);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

// Milli-GPU of a share that is taken on a node. If the memory of its GPUs is unknown, a share by
// memory counts as the whole GPU.
int64_t MilliOnNode(const model::GpuShare& share, int64_t gpu_memory_mib) {
  if (share.memory_mib > 0 && gpu_memory_mib == 0) {
    return model::SaturatingMultiply(1000, share.devices);
  }
  return ShareMilli(share, gpu_memory_mib);
}

int64_t WholeMilli(const PodClass& pod_class) {
  if (pod_class.reservation) return 0;
  return model::SaturatingAdd(pod_class.requests[model::kGpu],
                              model::SaturatingAdd(OtherGpusMilli(pod_class.spec->requests),
                                                   OtherGpusMilli(pod_class.spec->legacy_mig)));
}

}  // namespace

bool ClusterState::IsClosedGpu(const std::string& node, const std::string& group) const {
  return IsUnknownGpu(group) || (!closed_gpus_.empty() && closed_gpus_.contains({node, group}));
}

void ClusterState::ApplyToGroups(const PodRecord& pod, PodStatus status, NodeInfo& node, bool add) {
  const bool promised = status == PodStatus::kPipelined;
  if (!promised && !HoldsNode(status)) return;
  const PodClass& pod_class = classes_[pod.pod_class];
  const int32_t one = add ? 1 : -1;
  const int64_t mib =
      pod_class.reservation ? 0 : one * ShareMib(pod_class.spec->gpu_share, node.gpu_memory_mib);
  for (const std::string& id : pod.gpu_groups) {
    auto it =
        std::lower_bound(node.gpu_groups.begin(), node.gpu_groups.end(), id,
                         [](const GpuGroup& g, const std::string& key) { return g.id < key; });
    if (it == node.gpu_groups.end() || it->id != id) {
      FAIRLEAD_CHECK(add, absl::StrCat("pod ", pod.name, " leaves a GPU group that is not there"));
      it = node.gpu_groups.insert(it, GpuGroup{id});
      it->closed = IsClosedGpu(node.name(), id);
    }
    GpuGroup& group = *it;
    const int64_t used = group.WholeUsed();
    const int64_t releasing = group.WholeReleasing();
    const int64_t pipelined = group.WholePipelined();
    if (pod_class.reservation) {
      group.reservations += one;
      const bool stuck = status == PodStatus::kStuckInReleasing;
      if (stuck || status == PodStatus::kReleasing) group.ending += one;
      if (stuck) group.stuck += one;
    } else if (promised) {
      group.pipelined += one;
      group.pipelined_mib += mib;
    } else {
      group.used_mib += mib;
      if (status == PodStatus::kReleasing) group.releasing_mib += mib;
      (status == PodStatus::kReleasing ? group.releasing : group.active) += one;
    }
    node.used.Add(model::kGpu, group.WholeUsed() - used);
    node.releasing.Add(model::kGpu, group.WholeReleasing() - releasing);
    node.pipelined.Add(model::kGpu, group.WholePipelined() - pipelined);
    if (group.Empty()) node.gpu_groups.erase(it);
  }
}

Change ClusterState::CloseGpuGroup(const std::string& node, const std::string& group, bool closed) {
  Change change;
  const auto key = std::pair(node, group);
  if (closed ? !closed_gpus_.insert(key).second : closed_gpus_.erase(key) == 0) return change;
  const NodeId id = FindNode(node);
  if (id == kNoId) return change;
  for (GpuGroup& row : nodes_[id].gpu_groups) {
    if (row.id != group) continue;
    row.closed = IsClosedGpu(node, group);
    TouchNode(id);
    change.capacity = true;
  }
  return change;
}

GpuPick ClusterState::GroupsFromApi(const PodRecord& record, const model::Pod& pod,
                                    NodeId node) const {
  const PodClass& pod_class = classes_[record.pod_class];
  if (node == kNoId || !pod_class.SharesGpu()) return {};
  const int64_t gpus = model::Get(pod_class.spec->requests, model::kGpuName) / 1000;
  const auto wanted =
      static_cast<size_t>(pod_class.reservation ? std::clamp<int64_t>(gpus, 1, kMaxSharedDevices)
                                                : pod_class.spec->gpu_share.devices);
  GpuPick groups = LabelledGroups(pod.meta.labels);
  if (groups.empty() && record.node == node && record.gpu_groups.size() == wanted) {
    return record.gpu_groups;
  }
  if (groups.size() > wanted) groups.resize(wanted);
  for (int64_t number = 0; groups.size() < wanted; ++number) {
    std::string id = UnknownGpuId(record.uid, nodes_[node].name(), number);
    if (std::find(groups.begin(), groups.end(), id) == groups.end())
      groups.push_back(std::move(id));
  }
  return groups;
}

void ClusterState::SetCharge(PodClass& pod_class) {
  const model::PodSpec& spec = *pod_class.spec;
  pod_class.charge = pod_class.requests;
  pod_class.charge.Set(model::kPods, 0);
  const int64_t whole = WholeMilli(pod_class);
  int64_t most = whole;
  int64_t least = whole;
  if (spec.gpu_share.IsSet()) {
    const bool known = !gpu_memories_.empty();
    const int64_t smallest = known ? gpu_memories_.begin()->first : kNominalGpuMemoryMib;
    const int64_t largest = known ? gpu_memories_.rbegin()->first : kNominalGpuMemoryMib;
    most = model::SaturatingAdd(whole, ShareMilli(spec.gpu_share, smallest));
    least = model::SaturatingAdd(whole, ShareMilli(spec.gpu_share, largest));
  }
  pod_class.charge.Set(model::kGpu, most);
  pod_class.least_gpu_charge = least;
}

int64_t ClusterState::GpuChargeOf(const PodRecord& pod) const {
  const PodClass& pod_class = classes_[pod.pod_class];
  const model::GpuShare& share = pod_class.spec->gpu_share;
  if (share.memory_mib == 0 || pod.node == kNoId) return pod_class.charge[model::kGpu];
  return model::SaturatingAdd(WholeMilli(pod_class),
                              MilliOnNode(share, nodes_[pod.node].gpu_memory_mib));
}

model::Resources ClusterState::ChargeOf(const PodRecord& pod) const {
  model::Resources charge = classes_[pod.pod_class].charge;
  charge.Set(model::kGpu, GpuChargeOf(pod));
  return charge;
}

model::Resources ClusterState::ChargeToOthers(const PodRecord& pod, const NodeInfo& node) const {
  const PodClass& pod_class = classes_[pod.pod_class];
  if (pod_class.reservation) return {};
  const model::GpuShare& share = pod_class.spec->gpu_share;
  model::Resources charge = pod_class.requests;
  charge.Set(model::kGpu, share.IsSet()
                              ? model::SaturatingAdd(WholeMilli(pod_class),
                                                     MilliOnNode(share, node.gpu_memory_mib))
                              : pod_class.charge[model::kGpu]);
  return charge;
}

// Shares are counted in MiB of the node's GPUs: they leave and come again around the change.
void ClusterState::SetGpuMemory(NodeInfo& node, int64_t mib) {
  const int64_t former = node.gpu_memory_mib;
  if (former == mib) return;
  std::vector<PodId> sharing;
  for (PodId pod : node.pods) {
    if (!pods_[pod].gpu_groups.empty()) sharing.push_back(pod);
  }
  const auto charged = [&](const PodRecord& pod) {
    return pod.workload != kNoId && IsAllocated(pod.status);
  };
  for (PodId id : sharing) {
    if (charged(pods_[id])) TellReleased(pods_[id]);
    ApplyToNode(pods_[id], pods_[id].status, node.id, false);
  }
  node.gpu_memory_mib = mib;
  for (PodId id : sharing) {
    ApplyToNode(pods_[id], pods_[id].status, node.id, true);
    if (charged(pods_[id])) TellCharged(pods_[id]);
  }

  const auto ends = [this] {
    return gpu_memories_.empty()
               ? std::pair<int64_t, int64_t>(0, 0)
               : std::pair(gpu_memories_.begin()->first, gpu_memories_.rbegin()->first);
  };
  const auto former_ends = ends();
  if (former != 0 && --gpu_memories_[former] == 0) gpu_memories_.erase(former);
  if (mib != 0) ++gpu_memories_[mib];
  if (ends() != former_ends && memory_share_classes_ > 0) RenewMemoryCharges();
}

void ClusterState::RenewMemoryCharges() {
  for (PodClass& pod_class : classes_) {
    if (pod_class.users > 0 && pod_class.spec->gpu_share.memory_mib > 0) SetCharge(pod_class);
  }
  for (Workload& workload : workloads_) {
    if (workload.id == kNoId) continue;
    const bool affected =
        std::any_of(workload.pods.begin(), workload.pods.end(), [this](PodId pod) {
          return classes_[pods_[pod].pod_class].spec->gpu_share.memory_mib > 0;
        });
    if (!affected) continue;
    TouchWorkload(workload.id);
  }
}

}  // namespace fairlead::state
