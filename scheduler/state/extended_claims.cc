// Extended claims of ClusterState, and which class gives which resource.
#include "scheduler/state/extended_claims.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/device_names.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/state/claim_fault.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

constexpr size_t kMaxNameSize = 253;  // of an object

std::vector<std::string> NamesOf(const std::vector<ClusterState::BackedResource>& backed) {
  std::vector<std::string> names;
  names.reserve(backed.size());
  for (const ClusterState::BackedResource& one : backed) names.push_back(one.resource);
  return names;
}

}  // namespace

std::string ExtendedClaimName(absl::string_view pod, absl::string_view uid) {
  const std::string end = absl::StrCat("-extended-resources-", uid.substr(0, 36));
  std::string name(pod.substr(0, kMaxNameSize - end.size()));
  // A part of a name may end with a letter or a digit only.
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return absl::StrCat(name, end);
}

bool HasDevicePlugin(const model::Node& node, absl::string_view resource) {
  return model::Get(node.allocatable, resource) > 0;
}

DeviceSource SourceOf(const model::Node& node, const model::ExtendedDevices& extended) {
  size_t plugin = 0;
  for (const std::string& resource : extended.resources) {
    if (HasDevicePlugin(node, resource)) ++plugin;
  }
  if (plugin == extended.resources.size()) return DeviceSource::kPlugin;
  return plugin == 0 ? DeviceSource::kClaim : DeviceSource::kMixed;
}

// ---- which class gives which resource -----------------------------------------------------------

const std::string* DeviceAllocator::ClassOfResource(absl::string_view resource) const {
  const auto found = class_of_resource_.find(resource);
  return found == class_of_resource_.end() ? nullptr : &found->second;
}

bool DeviceAllocator::ReadResourceNames() {
  std::map<std::string, std::string, std::less<>> read;
  for (const auto& [name, device_class] : classes_) {
    read.insert_or_assign(absl::StrCat(model::kDeviceClassResourcePrefix, name), name);
    const std::string& resource = device_class.extended_resource;
    if (!model::IsExtendedResourceName(resource)) continue;
    const auto [at, added] = read.try_emplace(resource, name);
    if (added) continue;
    const auto other = classes_.find(at->second);
    if (other != classes_.end() && other->second.meta.creation < device_class.meta.creation) {
      at->second = name;
    }
  }
  return std::exchange(class_of_resource_, std::move(read)) != class_of_resource_;
}

void DeviceAllocator::UnimplyClaim(const std::string& key) {
  const auto at = claims_.find(key);
  if (at == claims_.end() || !at->second.implied) return;
  Free(at->first, at->second);
  at->second.exists = at->second.implied = false;
  at->second.object = {};
  at->second.last.clear();
}

void DeviceAllocator::ImplyClaim(const model::ResourceClaim& claim) {
  ClaimRow& row = Row(model::Key(claim.meta));
  if (row.exists && !row.implied) return;
  row.exists = row.implied = true;
  row.object = claim;
}

// ---- pods ---------------------------------------------------------------------------------------

std::vector<ClusterState::BackedResource> ClusterState::BackedResources(
    const model::ResourceList& requests) const {
  std::vector<BackedResource> backed;
  if (devices_.class_of_resource().empty() || !claims_readable_) return backed;
  for (const auto& [name, amount] : requests) {
    const int64_t devices = model::DevicesOfAmount(name, amount);
    if (devices <= 0) continue;
    const std::string* device_class = devices_.ClassOfResource(name);
    if (device_class != nullptr) backed.push_back({name, *device_class, devices});
  }
  std::sort(backed.begin(), backed.end(),
            [](const auto& a, const auto& b) { return a.resource < b.resource; });
  return backed;
}

std::string ClusterState::ExtendedClaimOf(const PodRecord& record,
                                          const model::ResourceList& requests,
                                          absl::string_view told, bool bound) const {
  if (bound) return told.empty() ? "" : model::Key(record.ns, told);
  if (!record.ours || IsGuest(record) || BackedResources(requests).empty()) return "";
  return model::Key(record.ns, ExtendedClaimName(record.name, record.uid));
}

model::ResourceClaim ClusterState::ImpliedClaim(const PodRecord& record,
                                                const model::ResourceList& requests) const {
  model::ResourceClaim claim;
  claim.meta.ns = record.ns;
  claim.meta.name = ExtendedClaimName(record.name, record.uid);
  model::OwnerReference& owner = claim.meta.owners.emplace_back();
  owner.kind = "Pod";
  owner.name = record.name;
  owner.uid = record.uid;
  owner.controller = true;
  for (const BackedResource& backed : BackedResources(requests)) {
    model::DeviceRequest& request = claim.requests.emplace_back();
    request.name = backed.resource;
    request.device_class = backed.device_class;
    request.count = backed.devices;
  }
  return claim;
}

void ClusterState::ImplyExtendedClaim(const PodRecord& record, const PodClaims& claims,
                                      const model::ResourceList& requests) {
  model::ResourceClaim claim = ImpliedClaim(record, requests);
  // Of a pod that is bound the API server will show the claim, if it has one.
  if (claim.requests.empty() || model::Key(claim.meta) != claims.extended) return;
  devices_.ImplyClaim(claim);
}

bool ClusterState::MayImply(const PodRecord& record) {
  return record.ours && (record.node == kNoId || record.status == PodStatus::kBinding ||
                         record.status == PodStatus::kPipelined);
}

void ClusterState::RenewExtendedClaims() {
  std::vector<PodId> pods;
  for (const PodRecord& record : pods_) {
    if (record.id != kNoId && MayImply(record) && !IsFinished(record.status)) {
      pods.push_back(record.id);
    }
  }
  for (const PodId id : pods) {
    const PodRecord& record = pods_[id];
    const model::ResourceList requests = classes_[record.pod_class].spec->requests;
    const auto found = pod_claims_.find(id);
    PodClaims claims = found == pod_claims_.end() ? PodClaims() : found->second;
    const std::string extended = ExtendedClaimOf(record, requests, claims.told, /*bound=*/false);
    if (extended.empty() && claims.extended.empty()) continue;
    std::erase(claims.keys, claims.extended);
    claims.extended = extended;
    if (!extended.empty()) claims.keys.push_back(extended);
    SetClaims(id, std::move(claims));
    if (!extended.empty()) ImplyExtendedClaim(record, pod_claims_.at(id), requests);
    RefreshClaimsOf(id);
    if (!pod_claims_.contains(id)) RefreshPodClaims(id);
  }
}

void ClusterState::ResolveExtended(const PodRecord& record, const std::string& key, AskClaim ask,
                                   ClaimFault& fault, model::PodSpec& spec) const {
  const ClaimRow& row = *devices_.Find(key);
  if (!row.exists) return;  // of a pod that runs
  const std::string name = absl::StrCat("ResourceClaim ", key);
  const model::ResourceClaim& claim = row.object;
  if (claim.meta.deletion.has_value()) fault.Refuse(name, " is being deleted");
  if (!claim.IsOfPod(record.uid)) {
    fault.Refuse(name,
                 " has the name of the claim for the pod's extended resources, but is not of "
                 "this pod; delete it");
  }
  model::ResourceClaim open = claim;
  open.allocated = false;
  const auto demands = ask(open);
  if (!demands.ok()) {
    fault.Refuse(name, ": ", demands.status().message());
    return;
  }
  model::ResourceList asked;
  for (const RequestDemand& demand : *demands) model::Add(asked, demand.demand, demand.count);
  if (!row.implied && record.node == kNoId) {
    const auto meant = ask(ImpliedClaim(record, spec.requests));
    model::ResourceList wanted;
    if (meant.ok()) {
      for (const RequestDemand& demand : *meant) model::Add(wanted, demand.demand, demand.count);
    }
    if (asked != wanted) {
      fault.Refuse(name,
                   " asks for other devices than the pod's extended resources do; delete it, "
                   "and it is made anew");
    }
    if (claim.allocated) {
      spec.claims_to_join.push_back(key);
      return;
    }
  }
  model::ExtendedDevices& extended = spec.extended.Own();
  extended.resources = NamesOf(BackedResources(spec.requests));
  extended.demands = std::move(asked);
  spec.extended.Shrink();
}

ClusterState::ExtendedClaim ClusterState::ExtendedClaimOf(PodId id) const {
  ExtendedClaim out;
  const auto found = pod_claims_.find(id);
  if (found == pod_claims_.end()) return out;
  const PodRecord& record = pods_[id];
  out.told = found->second.told;
  out.key = found->second.extended;
  if (out.key.empty()) return out;
  out.resources = BackedResources(classes_[record.pod_class].spec->requests);
  const ClaimRow* row = devices_.Find(out.key);
  out.exists = row->exists && !row->implied;
  out.by_claim =
      row->object.allocated ||
      (record.node != kNoId &&
       SourceOf(nodes_[record.node].object, {NamesOf(out.resources), {}}) == DeviceSource::kClaim);
  return out;
}

bool ClusterState::IsExtendedClaim(absl::string_view key, PodId id) const {
  const auto found = pod_claims_.find(id);
  return found != pod_claims_.end() && found->second.extended == key;
}

std::vector<std::pair<model::ResourceIndex, int64_t>> ClusterState::BackedAmounts(
    const NodeInfo& node) const {
  std::vector<std::pair<model::ResourceIndex, int64_t>> amounts;
  if (devices_.inventory().DevicesOf(node.name()).empty()) return amounts;
  for (const auto& [resource, device_class] : devices_.class_of_resource()) {
    if (HasDevicePlugin(node.object, resource)) continue;
    model::DeviceRequest request;
    request.device_class = device_class;
    const auto demand = names_.Find(DemandName(request));
    const auto index = names_.Find(resource);
    if (!demand.has_value() || !index.has_value()) continue;  // no pod asks for it
    const int64_t devices = node.allocatable[*demand];
    if (devices > 0) amounts.emplace_back(*index, model::AmountOfDevices(resource, devices));
  }
  return amounts;
}

void ClusterState::ReadBackedAllocatable(NodeInfo& node) const {
  node.gpus_by_claim = false;
  for (const auto& [resource, amount] : BackedAmounts(node)) {
    node.allocatable.Set(resource, amount);
    if (resource != model::kGpu) continue;
    node.gpus_by_claim = true;
    node.other_gpus_milli = std::max<int64_t>(0, node.other_gpus_milli - amount);
  }
}

std::string ClusterState::CheckBackedAllocatable(const NodeInfo& node) const {
  bool gpus = false;
  for (const auto& [resource, amount] : BackedAmounts(node)) {
    gpus |= resource == model::kGpu;
    if (node.allocatable[resource] != amount) {
      return absl::StrCat("node ", node.name(), ": devices of ", names_.Name(resource));
    }
  }
  if (gpus != node.gpus_by_claim) {
    return absl::StrCat("node ", node.name(), ": whether its GPUs are given by claims");
  }
  return "";
}

}  // namespace fairlead::state
