// NUMA nodes of ClusterState: topologies of machines, and what each pod has of them.
//
// A pod that the API server shows has what its annotation says. A pod that a decision puts on a
// node gets what PickZones() chooses there; the binding writes the same as an annotation. Pods of
// which nothing is known have nothing, as for KAI: no zone is guessed.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

using model::ResourceIndex;
using model::Resources;
using model::ZoneAmounts;

// What decisions read of a topology. `available` is not among it: it lags behind the pods, which
// are counted here.
bool SameForDecisions(const model::NodeResourceTopology& a, const model::NodeResourceTopology& b) {
  return a.policy == b.policy && a.scope == b.scope && a.invalid == b.invalid &&
         std::equal(a.zones.begin(), a.zones.end(), b.zones.begin(), b.zones.end(),
                    [](const model::NumaZone& x, const model::NumaZone& y) {
                      return x.name == y.name && x.allocatable == y.allocatable;
                    });
}

Resources AmountsOf(const ZoneShare& share) {
  Resources amounts;
  for (const auto& [resource, amount] : share.amounts) amounts.Set(resource, amount);
  return amounts;
}

// Nothing if it names zones that are not there, or more than pods of the class request: an
// annotation must not empty the account of a machine.
ZonePick PickOf(const std::vector<ZoneAmounts>& recorded, const NumaNode& node,
                const Resources& requests, const model::ResourceNames& names) {
  ZonePick pick;
  Resources total;
  for (const ZoneAmounts& zone : recorded) {
    const auto found =
        std::find_if(node.zones.begin(), node.zones.end(),
                     [&](const NumaNode::Zone& known) { return known.name == zone.zone; });
    const auto index = static_cast<int32_t>(found - node.zones.begin());
    const bool twice = std::any_of(pick.begin(), pick.end(),
                                   [&](const ZoneShare& share) { return share.zone == index; });
    if (found == node.zones.end() || twice) return {};
    ZoneShare share;
    share.zone = index;
    for (const ResourceIndex resource : node.resources) {
      const int64_t amount = model::Get(zone.amounts, names.Name(resource));
      if (amount <= 0) continue;
      share.amounts.emplace_back(resource, amount);
      total.Set(resource, model::SaturatingAdd(total[resource], amount));
    }
    if (!share.amounts.empty()) pick.push_back(std::move(share));
  }
  if (!total.FitsIn(requests)) return {};
  std::sort(pick.begin(), pick.end(),
            [](const ZoneShare& a, const ZoneShare& b) { return a.zone < b.zone; });
  return pick;
}

}  // namespace

std::vector<ZoneAmounts> ClusterState::ZonesOf(PodId pod) const {
  std::vector<ZoneAmounts> zones;
  const auto found = pod_zones_.find(pod);
  if (found == pod_zones_.end() || found->second.pick.empty()) return zones;
  const NumaNode& node = *nodes_[pods_[pod].node].numa;
  for (const ZoneShare& share : found->second.pick) {
    zones.push_back(
        {node.zones[static_cast<size_t>(share.zone)].name, AmountsOf(share).ToList(names_)});
  }
  return zones;
}

void ClusterState::ApplyZones(const PodRecord& pod, PodStatus status, NodeInfo& node, bool add) {
  const auto found = pod_zones_.find(pod.id);
  if (found == pod_zones_.end() || node.numa == nullptr) return;
  const auto apply = [add](model::ResourceSum& to, const Resources& amount) {
    if (add) {
      to += amount;
    } else {
      to -= amount;
    }
  };
  for (const ZoneShare& share : found->second.pick) {
    NumaNode::Zone& zone = node.numa->zones[static_cast<size_t>(share.zone)];
    const Resources amounts = AmountsOf(share);
    if (status == PodStatus::kPipelined) apply(zone.pipelined, amounts);
    if (HoldsNode(status)) apply(zone.used, amounts);
    if (status == PodStatus::kReleasing) apply(zone.releasing, amounts);
  }
}

void ClusterState::ChooseZones(const PodRecord& pod, PodStatus status, NodeId node) {
  const auto found = pod_zones_.find(pod.id);
  const bool known = found != pod_zones_.end();
  if (node == kNoId || nodes_[node].numa == nullptr) {
    if (known) SetPick(pod.id, {});
    return;
  }
  const NumaNode& numa = *nodes_[node].numa;
  const PodClass& pod_class = classes_[pod.pod_class];
  if (node == pod.node && pod.status == PodStatus::kReleasing && status == PodStatus::kPipelined) {
    // A victim that could stay keeps what it has, if it is promised to no other pod.
    const ZonePick had = PickOfPod(pod.id);
    if (HaveRoomFor(numa, had)) return;
    SetPick(pod.id,
            pod_class.aligned == nullptr
                ? ZonePick()
                : PickZones(numa, *pod_class.aligned, ZoneCapacity::kFuture).value_or(ZonePick()));
    return;
  }
  if (known && node == pod.node && !found->second.pick.empty()) return;
  if (known && found->second.recorded_on == node) {
    SetPick(pod.id, PickOf(found->second.recorded, numa, pod_class.requests, names_));
    return;
  }
  const bool decided = status == PodStatus::kBinding || status == PodStatus::kPipelined;
  if (!decided || pod_class.aligned == nullptr) {
    if (known) SetPick(pod.id, {});
    return;
  }
  const ZoneCapacity capacity =
      status == PodStatus::kBinding ? ZoneCapacity::kNow : ZoneCapacity::kFuture;
  SetPick(pod.id, PickZones(numa, *pod_class.aligned, capacity).value_or(ZonePick()));
}

void ClusterState::SetPick(PodId pod, ZonePick pick) {
  if (!pick.empty()) {
    pod_zones_[pod].pick = std::move(pick);
    return;
  }
  const auto found = pod_zones_.find(pod);
  if (found == pod_zones_.end()) return;
  found->second.pick.clear();
  if (found->second.recorded.empty()) pod_zones_.erase(found);
}

ZonePick ClusterState::PickOfPod(PodId pod) const {
  if (pod_zones_.empty()) return {};
  const auto found = pod_zones_.find(pod);
  return found == pod_zones_.end() ? ZonePick() : found->second.pick;
}

void ClusterState::RestoreZones(PodId pod, const ZonePick& pick) {
  if (PickOfPod(pod) == pick) return;
  const PodRecord& record = pods_[pod];
  ApplyZones(record, record.status, nodes_[record.node], false);
  SetPick(pod, pick);
  ApplyZones(record, record.status, nodes_[record.node], true);
}

bool ClusterState::ReadZones(const PodRecord& record, const model::Pod& pod, NodeId node) {
  const auto found = pod_zones_.find(record.id);
  const bool known = found != pod_zones_.end();
  if (!options_.align_to_numa_nodes || (!known && pod.numa_zones.empty())) return false;
  if (known && found->second.recorded == pod.numa_zones && found->second.recorded_on == node) {
    return false;
  }
  PodZones& zones = pod_zones_[record.id];
  zones.recorded = pod.numa_zones;
  zones.recorded_on = zones.recorded.empty() ? kNoId : node;
  // Without an annotation what was decided holds.
  if (zones.recorded.empty() || node == kNoId || record.node != node ||
      nodes_[node].numa == nullptr) {
    SetPick(record.id, std::move(zones.pick));
    return false;
  }
  ZonePick pick =
      PickOf(zones.recorded, *nodes_[node].numa, classes_[record.pod_class].requests, names_);
  if (pick.empty() || pick == zones.pick) return false;
  RestoreZones(record.id, pick);
  TouchNode(node);
  return true;
}

const model::NodeResourceTopology* ClusterState::TopologyOf(const NodeInfo& node) const {
  if (node.kind == NodeKind::kReal) {
    const auto own = node_topologies_.find(node.name());
    if (own != node_topologies_.end()) return &own->second;
  }
  const bool promised = node.kind != NodeKind::kReal || !node.usable;
  const std::string* type = node.object.meta.labels.Find(model::kInstanceTypeLabel);
  if (!promised || type == nullptr) return nullptr;
  const auto learned = topologies_of_types_.find(*type);
  return learned == topologies_of_types_.end() ? nullptr : &learned->second;
}

void ClusterState::RenewNuma(NodeInfo& node) {
  if (!options_.align_to_numa_nodes) return;
  const model::NodeResourceTopology* const topology = TopologyOf(node);
  std::unique_ptr<NumaNode> numa = topology == nullptr ? nullptr : MakeNumaNode(*topology, names_);
  if (numa == nullptr && node.numa == nullptr) return;
  std::vector<std::vector<ZoneAmounts>> had;
  for (const PodId id : node.pods) {
    had.push_back(ZonesOf(id));
    ApplyZones(pods_[id], pods_[id].status, node, false);
  }
  node.numa = std::move(numa);
  for (size_t i = 0; i < node.pods.size(); ++i) {
    const PodId id = node.pods[i];
    const auto found = pod_zones_.find(id);
    const bool recorded = found != pod_zones_.end() && found->second.recorded_on == node.id;
    const std::vector<ZoneAmounts>& zones = recorded ? found->second.recorded : had[i];
    SetPick(id, node.numa == nullptr
                    ? ZonePick()
                    : PickOf(zones, *node.numa, classes_[pods_[id].pod_class].requests, names_));
    ApplyZones(pods_[id], pods_[id].status, node, true);
  }
}

void ClusterState::CountZones(const model::NodeResourceTopology& topology, bool add) {
  if (!topology.invalid.empty() || topology.zones.empty()) return;
  const size_t former = most_zones();
  size_t& machines = machines_by_zones_[topology.zones.size()];
  machines += add ? 1 : -1;
  if (machines == 0) machines_by_zones_.erase(topology.zones.size());
  if (most_zones() == former) return;
  // Machines without a topology are assumed to have as many.
  for (const auto& [name, id] : nodes_by_name_) {
    if (nodes_[id].numa == nullptr) TouchNode(id);
  }
}

Change ClusterState::UpsertNodeTopology(const model::NodeResourceTopology& topology) {
  Change change;
  if (!options_.align_to_numa_nodes) return change;
  const auto [it, added] = node_topologies_.try_emplace(topology.meta.name);
  const bool same = !added && SameForDecisions(it->second, topology);
  if (!same && !added) CountZones(it->second, /*add=*/false);
  it->second = topology;
  if (same) return change;
  CountZones(it->second, /*add=*/true);
  const NodeId id = FindNode(topology.meta.name);
  if (id == kNoId || nodes_[id].kind != NodeKind::kReal) return change;
  LearnTopology(nodes_[id]);
  RenewNuma(nodes_[id]);
  TouchNode(id, /*object=*/true);
  change.capacity = true;
  return change;
}

Change ClusterState::RemoveNodeTopology(absl::string_view name, absl::string_view uid) {
  Change change;
  const auto it = node_topologies_.find(name);
  if (it == node_topologies_.end()) return change;
  const std::string& known = it->second.meta.uid;
  if (!uid.empty() && !known.empty() && known != uid) return change;
  const model::NodeResourceTopology gone = std::move(it->second);
  node_topologies_.erase(it);
  CountZones(gone, /*add=*/false);
  const NodeId id = FindNode(name);
  if (id == kNoId || nodes_[id].kind != NodeKind::kReal) return change;
  RenewNuma(nodes_[id]);
  TouchNode(id, /*object=*/true);
  change.capacity = true;
  return change;
}

std::string ClusterState::CheckZones(const NodeInfo& node) const {
  if (node.numa == nullptr) return "";
  std::vector<NumaNode::Zone> sums(node.numa->zones.size());
  for (const PodId id : node.pods) {
    const PodStatus status = pods_[id].status;
    for (const ZoneShare& share : PickOfPod(id)) {
      NumaNode::Zone& zone = sums[static_cast<size_t>(share.zone)];
      const Resources amounts = AmountsOf(share);
      if (HoldsNode(status)) zone.used += amounts;
      if (status == PodStatus::kReleasing) zone.releasing += amounts;
      if (status == PodStatus::kPipelined) zone.pipelined += amounts;
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const NumaNode::Zone& zone = node.numa->zones[i];
    if (!(sums[i].used == zone.used) || !(sums[i].releasing == zone.releasing) ||
        !(sums[i].pipelined == zone.pipelined)) {
      return absl::StrCat("node ", node.name(), ": NUMA node ", zone.name, " differs");
    }
  }
  return "";
}

// What is ordered of the type is expected to be like it.
void ClusterState::LearnTopology(const NodeInfo& node) {
  const auto own = node_topologies_.find(node.name());
  const std::string* type = node.object.meta.labels.Find(model::kInstanceTypeLabel);
  if (own == node_topologies_.end() || type == nullptr || !own->second.invalid.empty()) return;
  topologies_of_types_[*type] = own->second;
}

}  // namespace fairlead::state
