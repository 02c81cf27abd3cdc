// Claims of ClusterState: which pod carries which, and what that makes of the pods' classes.
//
// A claim is *carried* by one of the pods that name it: its devices are among the requests of that
// pod's class and count against its queue, once. The others have to go where the claim is held. The
// carrier is a pod that has its node, else the first in task order, so that within a gang it is
// placed before those that follow it. Devices change hands with the pod's status (MovePod).
//
// The class is a column of the pod's row that two tables decide on, as the queue of a workload is:
// the state writes it in the change of the claim or of the pod itself, and the log tells of it (the
// pod leaves its node and comes again; its workload; kClassGone). It is no subscriber, because a
// subscriber that writes rows would tell entries while another one is being told.
#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/claim_fault.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/device_placement.h"
#include "scheduler/state/extended_claims.h"
#include "scheduler/state/promised_devices.h"

namespace fairlead::state {
namespace {

// What is left of a class's spec without what claims made of it.
model::PodSpec WithoutClaims(model::PodSpec spec) {
  spec.claim_problem.clear();
  spec.missing_claim.clear();
  spec.claims_to_join.clear();
  spec.extended = {};
  auto& requests = spec.requests;
  requests.erase(std::remove_if(requests.begin(), requests.end(),
                                [](const auto& entry) { return IsDemand(entry.first); }),
                 requests.end());
  return spec;
}

}  // namespace

bool ClusterState::SameWithoutClaims(const model::PodSpec& classed, const model::PodSpec& spec) {
  model::PodSpec without = WithoutClaims(classed);
  without.volume_needs = {};
  return without == spec;
}

void ClusterState::ReadAllocatable(NodeInfo& node) {
  node.allocatable = model::Resources();
  for (const auto& [name, amount] : node.object.allocatable) {
    if (amount <= 0) continue;
    const model::ResourceIndex resource = names_.Intern(name);
    // A resource that cannot be told apart from others is on no node.
    if (resource == names_.folded()) continue;
    node.allocatable.Set(resource, std::min(amount, kMaxNodeAmount));
  }
  node.other_gpus_milli = std::min(OtherGpusMilli(node.object.allocatable), kMaxNodeAmount);
  for (const auto& [demand, count] : devices_.CountDevices(node.name())) {
    const model::ResourceIndex resource = names_.Intern(demand);
    if (resource != names_.folded()) node.allocatable.Set(resource, count);
  }
  node.other_gpus_milli = model::SaturatingAdd(node.other_gpus_milli,
                                               1000 * devices_.inventory().CountGpus(node.name()));
  ReadBackedAllocatable(node);
}

void ClusterState::RefreshDevices(NodeId id) {
  NodeInfo& node = nodes_[id];
  if (!node.exists) return;
  ReadAllocatable(node);
  CountForQueues(node);
  TouchNode(id, /*object=*/true);
}

void ClusterState::RefreshDevicesOf(const std::vector<std::string>& nodes) {
  for (const std::string& name : nodes) {
    if (const NodeId node = FindNode(name); node != kNoId) RefreshDevices(node);
  }
}

void ClusterState::RefreshAllDevices() {
  demands_on_nodes_ = devices_.demand_version();
  for (const auto& [name, id] : nodes_by_name_) {
    if (!devices_.inventory().DevicesOf(name).empty()) RefreshDevices(id);
  }
}

bool ClusterState::ReadClaims(const PodRecord& record, const model::Pod& pod) {
  PodClaims read;
  read.told = pod.extended_claim;
  read.extended = ExtendedClaimOf(record, pod.spec.requests, read.told, !pod.node_name.empty());
  if (pod.spec.resource_claims.empty() && pod.spec.claim_templates.empty() && read.told.empty() &&
      read.extended.empty()) {
    if (pod_claims_.empty() || !pod_claims_.contains(record.id)) return false;
    ForgetClaims(record.id);
    return false;
  }
  for (const std::string& name : pod.spec.resource_claims) {
    read.keys.push_back(model::Key(record.ns, name));
  }
  read.named = read.keys.size();
  for (const std::string& name : pod.generated_claims) {
    if (!name.empty()) read.keys.push_back(model::Key(record.ns, name));
  }
  if (!pod.awaited_claims.empty()) {
    read.awaited = pod.awaited_claims.front();
  } else if (pod.generated_claims.size() < pod.spec.claim_templates.size()) {
    read.awaited = "of a template";
  }
  if (!read.extended.empty()) read.keys.push_back(read.extended);
  SetClaims(record.id, std::move(read));
  ImplyExtendedClaim(record, pod_claims_.at(record.id), pod.spec.requests);
  return true;
}

void ClusterState::SetClaims(PodId id, PodClaims claims) {
  const auto found = pod_claims_.find(id);
  if (found != pod_claims_.end() && found->second == claims) return;
  if (found != pod_claims_.end()) ForgetClaims(id);
  if (claims.keys.empty() && claims.awaited.empty() && claims.told.empty()) return;
  for (const std::string& key : claims.keys) {
    std::vector<PodId>& consumers = devices_.Row(key).consumers;
    if (std::find(consumers.begin(), consumers.end(), id) == consumers.end()) {
      consumers.push_back(id);
    }
  }
  pod_claims_[id] = std::move(claims);
}

void ClusterState::ForgetClaims(PodId pod) {
  const auto it = pod_claims_.find(pod);
  if (it == pod_claims_.end()) return;
  const std::vector<std::string> keys = std::move(it->second.keys);
  const std::string extended = std::move(it->second.extended);
  pod_claims_.erase(it);
  for (const std::string& key : keys) {
    std::vector<PodId>& consumers = devices_.Row(key).consumers;
    const bool carried = !consumers.empty() && consumers.front() == pod;
    consumers.erase(std::remove(consumers.begin(), consumers.end(), pod), consumers.end());
    if (carried) devices_.Release(key);
    if (key == extended) devices_.UnimplyClaim(key);
    devices_.DropIfUnused(key);
    if (devices_.Find(key) != nullptr) RefreshClaim(key);
  }
}

void ClusterState::RefreshClaim(const std::string& key) {
  ClaimRow& row = devices_.Row(key);
  const PodId former = row.consumers.empty() ? kNoId : row.consumers.front();
  const auto rank = [this](PodId id) {
    const PodRecord& pod = pods_[id];
    const int turn = pod.node != kNoId                   ? 0
                     : pod.status == PodStatus::kPending ? 1
                     : IsFinished(pod.status)            ? 3
                                                         : 2;
    return std::make_tuple(turn, !pod.has_task_priority, -int64_t{pod.task_priority}, pod.creation,
                           pod.uid);
  };
  std::stable_sort(row.consumers.begin(), row.consumers.end(),
                   [&](PodId a, PodId b) { return rank(a) < rank(b); });
  if (former != kNoId && former != row.consumers.front()) devices_.Release(key);
  const std::vector<PodId> consumers = row.consumers;
  for (PodId pod : consumers) RefreshPodClaims(pod);
  if (!consumers.empty()) TakeDevices(consumers.front());
}

void ClusterState::RefreshPodClaims(PodId id) {
  PodRecord& record = pods_[id];
  model::PodSpec spec = WithoutClaims(*classes_[record.pod_class].spec);
  const auto ask = [this](const model::ResourceClaim& claim) {
    auto demands = devices_.DemandsOf(claim);
    if (absl::IsResourceExhausted(demands.status())) {
      if (ForgetUnusedDemands()) demands = devices_.DemandsOf(claim);
      demands_refused_ |= absl::IsResourceExhausted(demands.status());
    }
    return demands;
  };
  ResolveClaims(record, ask, spec);
  if (devices_.demand_version() != demands_on_nodes_) RefreshAllDevices();
  if (spec == *classes_[record.pod_class].spec) return;
  ChangeClass(record, spec);
}

namespace {

// The claim was made for another pod than this one, and goes with that pod.
bool IsOfAnotherPod(const model::ResourceClaim& claim, const std::string& uid) {
  return std::any_of(claim.meta.owners.begin(), claim.meta.owners.end(),
                     [&](const model::OwnerReference& owner) {
                       return owner.controller && owner.kind == "Pod" && owner.uid != uid;
                     });
}

// What the claim makes its carrier request. A pod in status kBinding keeps the
// demands of its decision: what the claim got counts when the pod is seen on its node.
template <typename Ask>
absl::StatusOr<std::vector<RequestDemand>> DemandsFor(const PodRecord& pod,
                                                      const model::ResourceClaim& claim, Ask ask) {
  if (!claim.allocated || pod.status != PodStatus::kBinding) return ask(claim);
  model::ResourceClaim decided = claim;
  decided.allocated = false;
  return ask(decided);
}

}  // namespace

// Whether a claim that the spec names may be used from the queue of the pod, as in KAI.
std::string ClusterState::QueueFault(const PodRecord& record, const std::string& key,
                                     const model::ResourceClaim& claim) const {
  if (record.workload == kNoId) return "";
  const absl::string_view label = claim.meta.labels.Get(model::kQueueLabel);
  const std::string& queue = workloads_[record.workload].queue;
  if (label.empty()) {
    return absl::StrCat("ResourceClaim ", key, " is a shared GPU claim without the queue label ",
                        model::kQueueLabel);
  }
  if (label == queue) return "";
  return absl::StrCat("ResourceClaim ", key, " is a shared GPU claim of queue ", label,
                      ", but the pod's queue is ", queue);
}

// Those before it in line may take the last places.
bool ClusterState::HasPlaceIn(const ClaimRow& row, const PodRecord& record) const {
  const auto has_place = [&](PodId pod) { return row.object.IsReservedFor(pods_[pod].uid); };
  if (has_place(record.id)) return true;
  auto places = static_cast<int64_t>(row.object.reserved_for.size());
  for (PodId pod : row.consumers) {
    if (pod == record.id) break;
    if (!has_place(pod)) ++places;
  }
  return places < model::kMaxClaimConsumers;
}

void ClusterState::ResolveClaims(const PodRecord& record, AskClaim ask,
                                 model::PodSpec& spec) const {
  const auto found = pod_claims_.find(record.id);
  if (found == pod_claims_.end()) return;
  const PodClaims& claims = found->second;
  ClaimFault fault;
  if (!claims_readable_ && !claims.keys.empty()) {
    fault.Refuse(
        "needs ResourceClaims, but the API server does not have resource.k8s.io/v1, or "
        "Fairlead may not read it");
  }
  if (!claims.awaited.empty()) fault.Lacks("", absl::StrCat("ResourceClaim ", claims.awaited));
  for (size_t i = 0; i < claims.keys.size(); ++i) {
    const std::string& key = claims.keys[i];
    if (key == claims.extended) {
      ResolveExtended(record, key, ask, fault, spec);
      continue;
    }
    const ClaimRow& row = *devices_.Find(key);
    const std::string name = absl::StrCat("ResourceClaim ", key);
    if (!row.exists || row.implied) {
      fault.Lacks("", name);
      continue;
    }
    const model::ResourceClaim& claim = row.object;
    if (claim.meta.deletion.has_value()) fault.Refuse(name, " is being deleted");
    if (i >= claims.named && IsOfAnotherPod(claim, record.uid)) {
      fault.Refuse(name, " was made for another pod");
    }
    const auto demands = DemandsFor(record, claim, ask);
    if (!demands.ok() && !claim.allocated) {
      absl::string_view why = demands.status().message();
      if (absl::IsNotFound(demands.status()) && absl::ConsumeSuffix(&why, kDoesNotExist)) {
        fault.Lacks(absl::StrCat(name, ": "), why);
      } else {
        fault.Refuse(name, ": ", why);
      }
      continue;
    }
    const bool carries = row.consumers.front() == record.id;
    bool gpus = false;
    if (demands.ok()) {
      for (const RequestDemand& demand : *demands) {
        gpus |= IsGpuDemand(demand.demand);
        if (carries) model::Add(spec.requests, demand.demand, demand.count);
      }
    }
    if (!carries || claim.allocated) spec.claims_to_join.push_back(key);
    if (i < claims.named && gpus) fault.Refuse(QueueFault(record, key, claim));
    if (!HasPlaceIn(row, record)) {
      fault.Refuse(name, " has reached its maximum number of consumers (",
                   model::kMaxClaimConsumers, ")");
    }
  }
  std::sort(spec.claims_to_join.begin(), spec.claims_to_join.end());
  // A pod that has its node is beyond all that. But if it is moved, a claim that others use too
  // keeps its devices.
  if (record.node != kNoId) {
    std::erase_if(spec.claims_to_join, [this](const std::string& key) {
      return devices_.Find(key)->consumers.size() < 2;
    });
  } else {
    spec.claim_problem = std::move(fault.problem);
    spec.missing_claim = std::move(fault.missing);
  }
}

// A look costs O(classes + claims): there is none unless a claim or a pod with claims went.
bool ClusterState::ForgetUnusedDemands() {
  if (!claims_gone_) return false;
  claims_gone_ = false;
  std::set<std::string> used;
  for (const PodClass& pod_class : classes_) {
    if (pod_class.users == 0) continue;
    for (const auto& [name, amount] : pod_class.spec->requests) {
      if (IsDemand(name)) used.insert(name);
    }
  }
  return devices_.ForgetUnused(used);
}

void ClusterState::RetryRefusedClaims() {
  claims_gone_ = true;
  if (!demands_refused_) return;
  demands_refused_ = false;
  RefreshAllClaims();
}

Change ClusterState::SetClaimsReadable(bool readable) {
  if (claims_readable_ == readable) return {};
  claims_readable_ = readable;
  RenewExtendedClaims();
  RefreshAllClaims();
  ++version_;
  return {.workloads = true};
}

std::vector<std::string> ClusterState::IdleClaims() const {
  std::vector<std::string> idle;
  for (const auto& [key, row] : devices_.claims()) {
    // Also one that is being deleted: it goes, and is made again, once it is not allocated.
    if (!row.exists || !row.object.allocated || row.consumers.empty()) continue;
    const auto waits = [this](PodId id) {
      const PodRecord& pod = pods_[id];
      return pod.ours && pod.node == kNoId &&
             (pod.status == PodStatus::kPending || pod.status == PodStatus::kGated);
    };
    if (!std::all_of(row.consumers.begin(), row.consumers.end(), waits)) continue;
    const auto is_known = [&](const std::string& uid) {
      return std::any_of(row.consumers.begin(), row.consumers.end(),
                         [&](PodId id) { return pods_[id].uid == uid; });
    };
    const std::vector<std::string>& reserved = row.object.reserved_for;
    if (std::all_of(reserved.begin(), reserved.end(), is_known)) idle.push_back(key);
  }
  return idle;
}

const std::vector<std::string>& ClusterState::ClaimKeysOf(PodId id) const {
  static const auto& none = *new std::vector<std::string>();
  if (pod_claims_.empty()) return none;
  const auto found = pod_claims_.find(id);
  return found == pod_claims_.end() ? none : found->second.keys;
}

void ClusterState::TakeDevices(PodId id) {
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end() || !HoldsNode(pods_[id].status)) return;
  const NodeInfo& node = nodes_[pods_[id].node];
  const model::ExtendedDevices& extended = *classes_[pods_[id].pod_class].spec->extended;
  std::vector<std::string> carried;
  for (const std::string& key : found->second.keys) {
    if (devices_.Row(key).consumers.front() != id) continue;
    const bool by_plugin =
        key == found->second.extended && SourceOf(node.object, extended) != DeviceSource::kClaim;
    if (!by_plugin) carried.push_back(key);
  }
  if (carried.empty()) return;
  if (pods_[id].status != PodStatus::kBinding) {  // it is there whatever was promised
    devices_.Take(carried, node.name());
    return;
  }
  const DevicePromises promises =
      PromisesOn(*this, node, classes_[pods_[id].pod_class].spec->claims_to_join);
  if (promises.demands.empty()) {
    devices_.Take(carried, node.name());
    return;
  }
  const auto can_come = [&](const NodeDevice& device) {
    return !promises.Keeps(devices_, device) && IsComing(*this, device);
  };
  const PromisedBesides besides{promises.demands, can_come};
  devices_.Take(carried, node.name(), &besides);
}

void ClusterState::ReleaseDevices(PodId id) {
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end()) return;
  for (const std::string& key : found->second.keys) {
    if (devices_.Row(key).consumers.front() == id) devices_.Release(key);
  }
}

ClusterState::HeldDevices ClusterState::DevicesHeldBy(PodId id) const {
  HeldDevices held;
  if (pod_claims_.empty()) return held;
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end()) return held;
  for (const std::string& key : found->second.keys) {
    const ClaimRow& row = *devices_.Find(key);
    held.devices.push_back(row.devices);
    held.last.push_back(row.last);
  }
  return held;
}

void ClusterState::RestoreDevices(PodId id, const HeldDevices& held) {
  if (held.devices.empty()) return;
  const std::vector<std::string>& keys = pod_claims_.find(id)->second.keys;
  const PodRecord& pod = pods_[id];
  const std::string node = HoldsNode(pod.status) ? nodes_[pod.node].name() : "";
  for (size_t i = 0; i < held.devices.size(); ++i) {
    if (devices_.Row(keys[i]).consumers.front() != id) continue;
    devices_.Restore(keys[i], held.devices[i], held.last[i], node);
  }
}

void ClusterState::RefreshClaimsOf(PodId id) {
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end()) return;
  const std::vector<std::string> keys = found->second.keys;
  for (const std::string& key : keys) RefreshClaim(key);
  if (keys.empty()) RefreshPodClaims(id);
}

void ClusterState::RefreshAllClaims() {
  std::vector<PodId> pods;
  for (const auto& [pod, claims] : pod_claims_) pods.push_back(pod);
  std::sort(pods.begin(), pods.end());
  for (PodId pod : pods) RefreshPodClaims(pod);
}

void ClusterState::TellClaim(ClaimId claim, absl::string_view node_name) {
  const NodeId node = FindNode(node_name);
  if (node == kNoId) return;
  TouchNode(node);
  Tell({.kind = StateChange::Kind::kClaimDevices, .to_node = node, .row = claim});
}

Change ClusterState::UpsertDeviceObject(const model::DeviceObject& object) {
  Change change;
  change.workloads = change.capacity = true;
  if (const auto* slice = std::get_if<model::ResourceSlice>(&object)) {
    RefreshDevicesOf(devices_.inventory().UpsertSlice(*slice));
  } else if (const auto* rule = std::get_if<model::DeviceTaintRule>(&object)) {
    const std::vector<std::string> nodes = devices_.inventory().UpsertRule(*rule);
    if (nodes.empty()) return {};
    RefreshDevicesOf(nodes);
  } else if (const auto* device_class = std::get_if<model::DeviceClass>(&object)) {
    const bool renewed = devices_.UpsertClass(*device_class);
    if (renewed) RenewExtendedClaims();
    RefreshAllDevices();
    RefreshAllClaims();
  } else {
    const auto& claim = std::get<model::ResourceClaim>(object);
    const std::string key = model::Key(claim.meta);
    if (!devices_.UpsertClaim(claim)) return {};
    Tell({.kind = StateChange::Kind::kClaim, .row = devices_.Find(key)->id});
    RefreshClaim(key);
    RetryRefusedClaims();
  }
  ++version_;
  return change;
}

Change ClusterState::RemoveDeviceClass(absl::string_view name) {
  if (devices_.RemoveClass(name)) RenewExtendedClaims();
  RefreshAllDevices();
  RefreshAllClaims();
  ++version_;
  return {.workloads = true, .capacity = true};
}

Change ClusterState::RemoveResourceSlice(absl::string_view name) {
  RefreshDevicesOf(devices_.inventory().RemoveSlice(name));
  ++version_;
  return {.workloads = true, .capacity = true};
}

Change ClusterState::RemoveDeviceTaintRule(absl::string_view name) {
  const std::vector<std::string> nodes = devices_.inventory().RemoveRule(name);
  if (nodes.empty()) return {};
  RefreshDevicesOf(nodes);
  ++version_;
  return {.workloads = true, .capacity = true};
}

Change ClusterState::RemoveResourceClaim(absl::string_view ns, absl::string_view name) {
  const std::string key = model::Key(ns, name);
  if (const ClaimRow* row = devices_.Find(key); row != nullptr) {
    Tell({.kind = StateChange::Kind::kClaim, .row = row->id});
  }
  devices_.RemoveClaim(key);
  if (const ClaimRow* row = devices_.Find(key); row != nullptr) {
    for (const PodId id : row->consumers) {
      const PodRecord& record = pods_[id];
      if (!MayImply(record)) continue;
      ImplyExtendedClaim(record, pod_claims_.at(id), classes_[record.pod_class].spec->requests);
    }
    RefreshClaim(key);
  }
  RetryRefusedClaims();
  ++version_;
  return {.workloads = true, .capacity = true};
}

std::vector<model::ResourceClaim> ClusterState::ClaimsOf(PodId id) const {
  std::vector<model::ResourceClaim> out;
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end()) return out;
  for (const std::string& key : found->second.keys) {
    const ClaimRow& row = *devices_.Find(key);
    if (!row.exists) continue;
    model::ResourceClaim claim = row.object;
    if (!claim.allocated && !row.devices.empty()) {
      claim.allocated = true;
      claim.devices = devices_.AllocationOf(key).devices;
    }
    out.push_back(std::move(claim));
  }
  return out;
}

std::string ClusterState::CheckDevices() const {
  if (std::string wrong = devices_.Check(); !wrong.empty()) return wrong;
  for (const auto& [name, id] : nodes_by_name_) {
    const NodeInfo& node = nodes_[id];
    if (!node.exists) continue;
    for (const auto& [demand, count] : devices_.CountDevices(name)) {
      const auto index = names_.Find(demand);
      if (!index.has_value() || node.allocatable[*index] != count) {
        return absl::StrCat("node ", name, ": devices of ", demand);
      }
    }
    if (std::string wrong = CheckBackedAllocatable(node); !wrong.empty()) return wrong;
  }
  for (const auto& [id, claims] : pod_claims_) {
    const PodRecord& pod = pods_[id];
    if (pod.id != id) return "a pod that is gone has claims";
    for (const std::string& key : claims.keys) {
      const ClaimRow* row = devices_.Find(key);
      if (row == nullptr ||
          std::find(row->consumers.begin(), row->consumers.end(), id) == row->consumers.end()) {
        return absl::StrCat("claim ", key, " does not know pod ", pod.name);
      }
      // What a decision gave a claim goes with the pod.
      if (row->consumers.front() == id && !row->object.allocated && !HoldsNode(pod.status) &&
          !row->devices.empty()) {
        return absl::StrCat("claim ", key, " holds devices without pod ", pod.name);
      }
    }
    // A pod keeps the class of a decision until the API server shows what became of it.
    const bool decided = pod.status == PodStatus::kBinding || pod.status == PodStatus::kPipelined ||
                         pod.status == PodStatus::kReleasing;
    if (decided || demands_refused_) continue;
    const model::PodSpec& classed = *classes_[pod.pod_class].spec;
    model::PodSpec spec = WithoutClaims(classed);
    const auto ask = [this](const model::ResourceClaim& claim) { return devices_.AskOf(claim); };
    ResolveClaims(pod, ask, spec);
    if (!(spec == classed)) {
      return absl::StrCat("pod ", pod.name, ": its class is not what its claims make of it");
    }
  }
  return "";
}

}  // namespace fairlead::state
