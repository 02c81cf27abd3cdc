// Construction, small tables, and the primitive that moves a pod.
#include "scheduler/state/cluster_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::state {

const char* PodStatusName(PodStatus status) {
  switch (status) {
    case PodStatus::kPending:
      return "Pending";
    case PodStatus::kGated:
      return "Gated";
    case PodStatus::kPipelined:
      return "Pipelined";
    case PodStatus::kBinding:
      return "Binding";
    case PodStatus::kBound:
      return "Bound";
    case PodStatus::kRunning:
      return "Running";
    case PodStatus::kReleasing:
      return "Releasing";
    case PodStatus::kStuckInReleasing:
      return "StuckInReleasing";
    case PodStatus::kSucceeded:
      return "Succeeded";
    case PodStatus::kFailed:
      return "Failed";
  }
  return "Unknown";
}

ClusterState::ClusterState(StateOptions options) : options_(std::move(options)) {}
ClusterState::~ClusterState() = default;

PodId ClusterState::FindPod(absl::string_view ns, absl::string_view name) const {
  return pod_index_.Find(ns, name);
}

NodeId ClusterState::FindNode(absl::string_view name) const {
  auto it = nodes_by_name_.find(name);
  return it == nodes_by_name_.end() ? kNoId : it->second;
}

WorkloadId ClusterState::FindGroup(absl::string_view ns, absl::string_view name) const {
  return group_index_.Find(ns, name);
}

void ClusterState::Subscribe(StateSubscriber* subscriber) {
  const ChangeKinds kinds = subscriber->Kinds();
  for (size_t kind = 0; kind < subscribers_.size(); ++kind) {
    if (kinds.Has(static_cast<StateChange::Kind>(kind))) subscribers_[kind].push_back(subscriber);
  }
}

void ClusterState::Unsubscribe(StateSubscriber* subscriber) {
  for (std::vector<StateSubscriber*>& of_kind : subscribers_) std::erase(of_kind, subscriber);
}

void ClusterState::TellReleased(const PodRecord& pod) {
  Tell({.kind = StateChange::Kind::kPodReleased, .pod = pod.id, .workload = pod.workload});
}

void ClusterState::TellCharged(const PodRecord& pod) {
  Tell({.kind = StateChange::Kind::kPodCharged, .pod = pod.id, .workload = pod.workload});
}

void ClusterState::TouchNode(NodeId id, bool object) {
  ++nodes_[id].version;
  if (object) ++nodes_[id].object_version;
  Tell({.kind = object ? StateChange::Kind::kNodeObject : StateChange::Kind::kNodeUsage,
        .to_node = id});
}

void ClusterState::TouchWorkload(WorkloadId id) {
  ++workloads_[id].version;
  Tell({.kind = StateChange::Kind::kWorkload, .workload = id});
}

void ClusterState::ApplyToNode(const PodRecord& pod, PodStatus status, NodeId node_id, bool add) {
  if (node_id == kNoId) return;
  NodeInfo& node = nodes_[node_id];
  const model::Resources& requests = classes_[pod.pod_class].requests;
  const auto apply = [](model::ResourceSum& to, const model::Resources& amount, bool plus) {
    if (plus) {
      to += amount;
    } else {
      to -= amount;
    }
  };
  if (status == PodStatus::kPipelined) apply(node.pipelined, requests, add);
  if (HoldsNode(status)) {
    apply(node.used, requests, add);
    if (options_.sum_scoring_requests) {
      apply(node.used_for_scores, classes_[pod.pod_class].scoring, add);
    }
    if (status == PodStatus::kReleasing) apply(node.releasing, requests, add);
    if (!pod.ours) {
      apply(node.used_by_others, ChargeToOthers(pod, node), add);
      CountForQueues(node);
    }
  }
  if (!pod.gpu_groups.empty()) ApplyToGroups(pod, status, node, add);
  if (!pod_zones_.empty()) ApplyZones(pod, status, node, add);
}

GpuPick ClusterState::GroupsAt(const PodRecord& pod, NodeId node, const GpuPick* wanted) const {
  if (node == kNoId) return {};
  GpuPick groups;
  if (wanted != nullptr) {
    groups = *wanted;
  } else if (node == pod.node) {
    groups = pod.gpu_groups;
  }
  const PodClass& pod_class = classes_[pod.pod_class];
  if (groups.empty() && pod_class.reservation) {
    groups.push_back(GpuGroupId(pod.uid, nodes_[node].name(), 0));
  }
  return groups;
}

size_t ClusterState::TakeFromList(const PodRecord& pod) {
  if (pod.node == kNoId) return kAtEnd;
  std::vector<PodId>& list = nodes_[pod.node].pods;
  const auto it = std::find(list.rbegin(), list.rend(), pod.id);
  FAIRLEAD_CHECK(it != list.rend(), absl::StrCat("pod ", pod.name, " not on its node"));
  const size_t position = static_cast<size_t>(list.rend() - it) - 1;
  list.erase(list.begin() + static_cast<ptrdiff_t>(position));
  return position;
}

void ClusterState::PutIntoList(PodId pod, NodeId node, size_t position) {
  if (node == kNoId) return;
  std::vector<PodId>& list = nodes_[node].pods;
  const size_t at = std::min(position, list.size());
  list.insert(list.begin() + static_cast<ptrdiff_t>(at), pod);
}

void ClusterState::CountStatus(const PodRecord& pod, PodStatus former) {
  if (pod.workload == kNoId) return;
  Workload& workload = workloads_[pod.workload];
  --workload.by_status[static_cast<int>(former)];
  ++workload.by_status[static_cast<int>(pod.status)];
  if (pod.set != kNoSet && IsAllocated(former) != IsAllocated(pod.status)) {
    workload.active[static_cast<size_t>(pod.set)] += IsAllocated(pod.status) ? 1 : -1;
  }
}

void ClusterState::MovePod(PodId id, PodStatus status, NodeId node, size_t position,
                           const GpuPick* wanted_groups, PodMove* move) {
  PodRecord& pod = pods_[id];
  const bool on_node = HoldsNode(status) || status == PodStatus::kPipelined;
  FAIRLEAD_CHECK(on_node == (node != kNoId),
                 absl::StrCat("pod ", pod.ns, "/", pod.name, " ", PodStatusName(status)));
  const PodStatus former = pod.status;
  const NodeId former_node = pod.node;
  const StateChange change{.kind = StateChange::Kind::kPodMoved,
                           .from_status = former,
                           .to_status = status,
                           .pod = id,
                           .workload = pod.workload,
                           .from_node = former_node,
                           .to_node = node};
  if (move != nullptr) {
    move->change = change;
    move->from_groups = pod.gpu_groups;
    move->from_besides = BesidesOf(id);
  }
  GpuPick groups = GroupsAt(pod, node, wanted_groups);
  FAIRLEAD_CHECK((node != kNoId && classes_[pod.pod_class].SharesGpu()) == !groups.empty(),
                 absl::StrCat("pod ", pod.ns, "/", pod.name, ": GPU groups and node"));
  const bool regroup = groups != pod.gpu_groups;
  if (former == status && former_node == node && !regroup) return;

  // All rows first, the entries after them.
  // A change that holds the same capacity on the same node leaves the node untouched.
  const bool same_room = former_node == node && former_node != kNoId && HoldsNode(former) &&
                         HoldsNode(status) && former != PodStatus::kReleasing &&
                         status != PodStatus::kReleasing && !regroup;
  if (!same_room) {
    ApplyToNode(pod, former, former_node, false);
    if (regroup) pod.gpu_groups = std::move(groups);
    if (options_.align_to_numa_nodes) ChooseZones(pod, status, node);
    ApplyToNode(pod, status, node, true);
  }
  if (former_node != node) {
    const size_t former_position = TakeFromList(pod);
    if (move != nullptr) move->from_position = former_position;
    PutIntoList(id, node, position);
  }
  pod.status = status;
  pod.node = node;
  CountStatus(pod, former);
  if (!pod_claims_.empty() && pod_claims_.contains(id)) {
    if (HoldsNode(former) && (!HoldsNode(status) || node != former_node)) ReleaseDevices(id);
    if (HoldsNode(status) && (!HoldsNode(former) || node != former_node)) TakeDevices(id);
  }
  if (!pod_volumes_.empty() && pod_volumes_.contains(id)) {
    if (former_node != kNoId && node != former_node) ReleaseVolumes(id);
    const bool decides = status == PodStatus::kBinding || status == PodStatus::kPipelined;
    if (decides && node != former_node) DecideVolumes(id);
  }

  Tell(change);
  if (!same_room) {
    if (former_node != kNoId) TouchNode(former_node);
    if (node != kNoId && node != former_node) TouchNode(node);
  }
  if (pod.workload == kNoId) return;
  TouchWorkload(pod.workload);
  // What it is charged may depend on the node.
  const bool stays = IsAllocated(former) && IsAllocated(status) && former_node == node;
  if (IsAllocated(former) && !stays) TellReleased(pod);
  if (IsAllocated(status) && !stays) TellCharged(pod);
}

std::shared_ptr<const ClusterState::HeldBesides> ClusterState::BesidesOf(PodId pod) const {
  const bool none = (pod_claims_.empty() || !pod_claims_.contains(pod)) &&
                    (pod_volumes_.empty() || !pod_volumes_.contains(pod)) &&
                    (pod_zones_.empty() || !pod_zones_.contains(pod));
  if (none) return nullptr;
  return std::make_shared<const HeldBesides>(HeldBesides{
      .devices = DevicesHeldBy(pod), .zones = PickOfPod(pod), .volumes = VolumeDecisionsOf(pod)});
}

void ClusterState::ReverseMove(const PodMove& move) {
  const StateChange& change = move.change;
  MovePod(change.pod, change.from_status, change.from_node, move.from_position, &move.from_groups);
  static const HeldBesides* const kNothing = new HeldBesides();
  const HeldBesides& had = move.from_besides != nullptr ? *move.from_besides : *kNothing;
  RestoreDevices(change.pod, had.devices);
  RestoreVolumes(change.pod, had.volumes);
  if (change.from_node != kNoId && !pod_zones_.empty()) RestoreZones(change.pod, had.zones);
}

}  // namespace fairlead::state
