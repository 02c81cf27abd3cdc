#include "scheduler/state/promised_devices.h"

#include <algorithm>

#include "scheduler/state/extended_claims.h"

namespace fairlead::state {
namespace {

// Does the claim controller free the claim, which no live pod names? It takes its time after the
// last pod is gone, and until then the devices are promised as those of a terminating pod are.
bool IsBeingFreed(const model::ResourceClaim& claim) {
  if (claim.reserved_for_others) return false;
  return claim.meta.deletion.has_value() || !claim.reserved_for.empty() ||
         std::any_of(claim.meta.owners.begin(), claim.meta.owners.end(),
                     [](const auto& owner) { return owner.controller && owner.kind == "Pod"; });
}

void AddDemandsOf(const model::PodSpec& spec, const NodeInfo& node, DevicePromises& promises) {
  for (const auto& [name, amount] : spec.requests) {
    if (IsDemand(name)) model::Add(promises.demands, name, amount);
  }
  if (SourceOf(node.object, *spec.extended) == DeviceSource::kClaim) {
    for (const auto& [name, amount] : spec.extended->demands) {
      model::Add(promises.demands, name, amount);
    }
  }
  promises.kept.insert(promises.kept.end(), spec.claims_to_join.begin(), spec.claims_to_join.end());
}

}  // namespace

bool DevicePromises::Keeps(const DeviceAllocator& book, const NodeDevice& device) const {
  if (kept.empty()) return false;
  const std::string* holder = book.HolderOf(device.key);
  return holder != nullptr && std::binary_search(kept.begin(), kept.end(), *holder);
}

DevicePromises PromisesOn(const ClusterState& state, const NodeInfo& node,
                          const std::vector<std::string>& joined) {
  DevicePromises promises;
  promises.kept = joined;
  for (const PodId id : node.pods) {
    if (state.pod(id).status == PodStatus::kPipelined) {
      AddDemandsOf(*state.class_of(id).spec, node, promises);
    }
  }
  std::vector<std::string>& kept = promises.kept;
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  // What a promised pod carries of these claims is no other device than theirs.
  for (const std::string& key : kept) {
    const ClaimRow* row = state.devices().Find(key);
    if (row == nullptr || row->devices.empty() || row->consumers.empty()) continue;
    const PodRecord& carrier = state.pod(row->consumers.front());
    const auto held = state.devices().AskOf(row->object);
    if (carrier.status != PodStatus::kPipelined || carrier.node != node.id || !held.ok()) continue;
    for (const RequestDemand& demand : *held) {
      model::Set(promises.demands, demand.demand,
                 std::max<int64_t>(0, model::Get(promises.demands, demand.demand) - demand.count));
    }
  }
  return promises;
}

bool IsComing(const ClusterState& state, const NodeDevice& device) {
  const DeviceAllocator& book = state.devices();
  const std::string* holder = book.HolderOf(device.key);
  if (holder == nullptr) return true;
  // What is promised on a node is promised on that node alone: a device of several nodes could be
  // promised on each of them.
  if (!device.local) return false;
  const ClaimRow& row = *book.Find(*holder);
  bool left = false;
  for (const PodId id : row.consumers) {
    const PodRecord& pod = state.pod(id);
    if (pod.status == PodStatus::kReleasing || pod.status == PodStatus::kPipelined ||
        IsFinished(pod.status)) {
      left = true;
    } else if (pod.node != kNoId || row.object.IsReservedFor(pod.uid)) {
      return false;
    }
  }
  return left || IsBeingFreed(row.object);
}

}  // namespace fairlead::state
