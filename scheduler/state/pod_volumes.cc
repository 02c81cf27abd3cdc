// Volumes of ClusterState's pods: which claims they name, and what that makes of their classes.
//
// As with devices (device_claims.cc) the class is a column of the pod's row that several tables
// decide on: it is written in the change of a claim, a volume, a storage class, or the pod itself.
// A pod whose binding is decided keeps the class of the decision until it is seen on its node or
// waits again.
//
// Faults are told in the words of the plugin of kube-scheduler v1.36 that would tell them first:
// VolumeRestrictions, then VolumeBinding, then VolumeZone (their PreFilter).
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/strings.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

constexpr char kRestrictions[] = "VolumeRestrictions";
constexpr char kBinding[] = "VolumeBinding";
constexpr char kZone[] = "VolumeZone";

constexpr const char* kZoneKeys[] = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};

bool IsOwnedBy(const model::PersistentVolumeClaim& claim, const std::string& uid) {
  return std::any_of(
      claim.meta.owners.begin(), claim.meta.owners.end(),
      [&](const model::OwnerReference& owner) { return owner.controller && owner.uid == uid; });
}

void Set(const char* plugin, std::string fault, std::string missing, model::VolumeNeeds& needs) {
  if (!needs.fault.empty()) return;
  needs.fault = std::move(fault);
  needs.fault_plugin = plugin;
  needs.missing = std::move(missing);
}

bool WaitsForConsumer(const Volumes& volumes, const model::PersistentVolumeClaim& claim) {
  const model::StorageClass* storage_class = volumes.FindClass(claim.storage_class);
  return storage_class != nullptr && claim.volume_name.empty() &&
         storage_class->binding == model::StorageClass::Binding::kWaitForFirstConsumer;
}

// Of a claim that exists and is not bound, and for which no pod is waited.
void AddUnboundFault(const Volumes& volumes, const model::PersistentVolumeClaim& claim,
                     model::VolumeNeeds& needs) {
  const model::StorageClass* storage_class = volumes.FindClass(claim.storage_class);
  if (storage_class != nullptr && storage_class->binding == model::StorageClass::Binding::kNotSet) {
    Set(kBinding,
        absl::StrCat("VolumeBindingMode not set for StorageClass ", Quoted(claim.storage_class)),
        "", needs);
    return;
  }
  Set(kBinding, "pod has unbound immediate PersistentVolumeClaims",
      storage_class == nullptr && !claim.storage_class.empty()
          ? absl::StrCat("StorageClass ", claim.storage_class)
          : absl::StrCat("a PersistentVolume for PersistentVolumeClaim ", claim.meta.name),
      needs);
}

// Upstream does not look at the zones of ephemeral volumes.
void AddBoundNeed(const model::PersistentVolume& volume, bool ephemeral,
                  model::VolumeNeeds& needs) {
  model::BoundVolumeNeed need;
  need.has_node_affinity = volume.has_node_affinity;
  need.node_terms = volume.node_terms;
  for (const char* key : kZoneKeys) {
    const std::string* label = ephemeral ? nullptr : volume.meta.labels.Find(key);
    if (label == nullptr) continue;
    // Several zones are one label: "a__b". Upstream passes over one that has an empty part.
    std::vector<std::string> values = absl::StrSplit(*label, "__");
    for (std::string& value : values) absl::StripAsciiWhitespace(&value);
    if (std::find(values.begin(), values.end(), "") != values.end()) continue;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    need.zones.push_back({key, std::move(values)});
  }
  if (!need.has_node_affinity && need.zones.empty()) return;
  if (std::find(needs.bound.begin(), needs.bound.end(), need) == needs.bound.end()) {
    needs.bound.push_back(std::move(need));
  }
}

}  // namespace

bool ClusterState::ReadVolumes(const PodRecord& record, const model::Pod& pod) {
  const auto found = pod_volumes_.find(record.id);
  if (found != pod_volumes_.end()) {
    if (found->second.names == pod.spec.volume_claims) return true;
    ForgetVolumes(record.id);
  }
  if (pod.spec.volume_claims.empty()) return false;
  PodVolumes read;
  read.names = pod.spec.volume_claims;
  std::vector<VolumeClaimId> first_users;
  for (const model::VolumeClaimRef& ref : read.names) {
    VolumeClaimRow& row = volumes_.ClaimRow(
        model::Key(record.ns, ref.ephemeral ? absl::StrCat(record.name, "-", ref.name) : ref.name));
    read.claims.push_back(row.id);
    if (std::find(row.users.begin(), row.users.end(), record.id) != row.users.end()) continue;
    row.users.push_back(record.id);
    if (row.users.size() == 2) first_users.push_back(row.id);
  }
  pod_volumes_[record.id] = std::move(read);
  // The other pod has the claim no longer for itself.
  for (const VolumeClaimId claim : first_users) RefreshUsers(claim);
  return true;
}

void ClusterState::ForgetVolumes(PodId pod) {
  const auto it = pod_volumes_.find(pod);
  if (it == pod_volumes_.end()) return;
  ReleaseVolumes(pod);
  const std::vector<VolumeClaimId> claims = std::move(it->second.claims);
  pod_volumes_.erase(it);
  for (const VolumeClaimId id : claims) {
    VolumeClaimRow& row = volumes_.claim(id);
    if (row.id == kNoId) continue;  // named twice, and gone
    std::erase(row.users, pod);
    if (row.users.size() == 1) RefreshUsers(id);
    volumes_.DropIfUnused(id);
  }
}

const std::vector<VolumeClaimId>& ClusterState::VolumeClaimsOf(PodId pod) const {
  static const auto& none = *new std::vector<VolumeClaimId>();
  if (pod_volumes_.empty()) return none;
  const auto found = pod_volumes_.find(pod);
  return found == pod_volumes_.end() ? none : found->second.claims;
}

size_t ClusterState::UsersWithNode(const VolumeClaimRow& claim, bool staying) const {
  return static_cast<size_t>(std::count_if(claim.users.begin(), claim.users.end(), [&](PodId id) {
    const PodStatus status = pods_[id].status;
    return staying ? IsAllocated(status) || status == PodStatus::kStuckInReleasing
                   : HoldsNode(status) || status == PodStatus::kPipelined;
  }));
}

void ClusterState::AddFault(const PodRecord& record, const PodVolumes& volumes,
                            model::VolumeNeeds& needs) const {
  if (!volumes_.readable()) {
    return Set(kBinding,
               "Fairlead may not read PersistentVolumeClaims, PersistentVolumes or StorageClasses",
               "", needs);
  }
  const auto name_of = [&](size_t i) {
    return volumes.names[i].ephemeral ? absl::StrCat(record.name, "-", volumes.names[i].name)
                                      : volumes.names[i].name;
  };
  for (size_t i = 0; i < volumes.claims.size(); ++i) {
    if (volumes.names[i].ephemeral || volumes_.claim(volumes.claims[i]).exists) continue;
    Set(kRestrictions, absl::StrCat("persistentvolumeclaim ", Quoted(name_of(i)), " not found"),
        absl::StrCat("PersistentVolumeClaim ", name_of(i)), needs);
  }
  for (size_t i = 0; i < volumes.claims.size(); ++i) {
    const VolumeClaimRow& row = volumes_.claim(volumes.claims[i]);
    const model::PersistentVolumeClaim& claim = row.object;
    const std::string quoted = Quoted(name_of(i));
    if (!row.exists) {
      Set(kBinding,
          absl::StrCat("waiting for ephemeral volume controller to create the "
                       "persistentvolumeclaim ",
                       quoted),
          absl::StrCat("PersistentVolumeClaim ", name_of(i)), needs);
    } else if (claim.lost) {
      Set(kBinding,
          absl::StrCat("persistentvolumeclaim ", quoted, " bound to non-existent persistentvolume ",
                       Quoted(claim.volume_name)),
          absl::StrCat("PersistentVolume ", claim.volume_name), needs);
    } else if (claim.meta.deletion.has_value()) {
      Set(kBinding, absl::StrCat("persistentvolumeclaim ", quoted, " is being deleted"), "", needs);
    } else if (volumes.names[i].ephemeral && !IsOwnedBy(claim, record.uid)) {
      Set(kBinding,
          absl::StrCat("PVC ", row.key, " was not created for pod ", record.ns, "/", record.name,
                       " (pod is not owner)"),
          "", needs);
    } else if (!claim.invalid.empty()) {
      Set(kBinding, absl::StrCat("PersistentVolumeClaim ", name_of(i), ": ", claim.invalid), "",
          needs);
    }
  }
  for (const VolumeClaimId id : volumes.claims) {
    const VolumeClaimRow& row = volumes_.claim(id);
    if (!row.exists || row.object.IsBound() || WaitsForConsumer(volumes_, row.object)) continue;
    AddUnboundFault(volumes_, row.object, needs);
  }
  // Of an ephemeral volume upstream's VolumeBinding says it, as a filter.
  for (const bool ephemeral : {true, false}) {
    for (size_t i = 0; i < volumes.claims.size(); ++i) {
      const VolumeClaimRow& row = volumes_.claim(volumes.claims[i]);
      if (!row.exists || row.object.volume_name.empty() ||
          volumes.names[i].ephemeral != ephemeral ||
          volumes_.FindVolume(row.object.volume_name) != nullptr) {
        continue;
      }
      Set(ephemeral ? kBinding : kZone,
          ephemeral
              ? std::string(
                    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
              : absl::StrCat("persistentvolume ", Quoted(row.object.volume_name), " not found"),
          absl::StrCat("PersistentVolume ", row.object.volume_name), needs);
    }
  }
}

model::VolumeNeeds ClusterState::NeedsOf(const PodRecord& record) const {
  model::VolumeNeeds needs;
  const auto found = pod_volumes_.find(record.id);
  if (found == pod_volumes_.end()) return needs;
  AddFault(record, found->second, needs);
  for (size_t i = 0; i < found->second.claims.size(); ++i) {
    const VolumeClaimRow& row = volumes_.claim(found->second.claims[i]);
    if (!row.exists) continue;
    const bool shared = row.users.size() > 1;
    const bool bound = row.object.IsBound();
    if (bound) {
      const VolumeRow* volume = volumes_.FindVolume(row.object.volume_name);
      if (volume != nullptr) AddBoundNeed(volume->object, found->second.names[i].ephemeral, needs);
    } else {
      needs.unbound.push_back(volumes_.NeedOf(row, shared));
    }
    const bool once = (row.object.access_modes & model::kReadWriteOncePod) != 0;
    if (shared && (once || !bound)) needs.shared.push_back({row.key, once, !bound});
    Volumes::Attached attached = volumes_.AttachedBy(row);
    if (attached.driver.empty()) continue;
    needs.attached.push_back(
        {std::move(attached.driver), shared ? std::move(attached.volume) : std::string()});
  }
  std::sort(needs.attached.begin(), needs.attached.end());
  return needs;
}

bool ClusterState::RefreshVolumesOf(PodId id) {
  const auto found = pod_volumes_.find(id);
  if (found == pod_volumes_.end()) return false;
  PodRecord& record = pods_[id];
  found->second.behind =
      record.status == PodStatus::kBinding || record.status == PodStatus::kPipelined;
  if (found->second.behind) return false;
  model::VolumeNeeds needs = NeedsOf(record);
  const model::PodSpec& classed = *classes_[record.pod_class].spec;
  if (needs == *classed.volume_needs) return false;
  model::PodSpec spec = classed;
  spec.volume_needs.Set(std::move(needs));
  ChangeClass(record, spec);
  return true;
}

bool ClusterState::RefreshUsers(VolumeClaimId claim) {
  bool changed = false;
  const std::vector<PodId> users = volumes_.claim(claim).users;
  for (const PodId pod : users) changed |= RefreshVolumesOf(pod);
  return changed;
}

// ---- decisions

void ClusterState::Decide(VolumeClaimId claim, VolumeDecision decision) {
  std::vector<std::string> changed;
  volumes_.Decide(claim, std::move(decision), changed);
  for (const std::string& name : changed) TouchNodesOf(name);
}

// O(nodes).
void ClusterState::TouchNodesOf(const std::string& volume) {
  const VolumeRow* row = volumes_.FindVolume(volume);
  if (row == nullptr) return;
  const std::string host = Volumes::HostOf(row->object);
  for (const auto& [name, id] : nodes_by_name_) {
    if (!host.empty() && nodes_[id].object.meta.labels.Get(model::kHostnameLabel) != host) continue;
    TouchNode(id);
  }
}

void ClusterState::DecideVolumes(PodId pod) {
  const model::Node& node = nodes_[pods_[pod].node].object;
  std::vector<VolumeClaimId> open;
  std::vector<model::UnboundVolumeNeed> needs;
  for (const VolumeClaimId id : pod_volumes_.find(pod)->second.claims) {
    const VolumeClaimRow& row = volumes_.claim(id);
    if (!row.exists || row.object.IsBound() || !row.decided.node.empty()) continue;
    open.push_back(id);
    needs.push_back(volumes_.NeedOf(row, false));
  }
  if (open.empty()) return;
  const VolumeChoice choice = volumes_.Choose(needs, node);
  for (size_t i = 0; i < open.size(); ++i) Decide(open[i], {node.meta.name, choice.volumes[i]});
}

void ClusterState::ReleaseVolumes(PodId pod) {
  for (const VolumeClaimId id : pod_volumes_.find(pod)->second.claims) {
    const VolumeClaimRow& row = volumes_.claim(id);
    if (row.decided.node.empty()) continue;
    const bool needed = std::any_of(row.users.begin(), row.users.end(), [&](PodId user) {
      const NodeId node = pods_[user].node;
      return user != pod && node != kNoId && nodes_[node].name() == row.decided.node;
    });
    if (!needed) Decide(id, {});
  }
}

ClusterState::VolumeDecisions ClusterState::VolumeDecisionsOf(PodId pod) const {
  VolumeDecisions decisions;
  const auto found = pod_volumes_.find(pod);
  if (found == pod_volumes_.end()) return decisions;
  for (const VolumeClaimId id : found->second.claims) {
    decisions.push_back(volumes_.claim(id).decided);
  }
  return decisions;
}

void ClusterState::RestoreVolumes(PodId pod, const VolumeDecisions& decisions) {
  if (decisions.empty()) return;
  const std::vector<VolumeClaimId>& claims = pod_volumes_.find(pod)->second.claims;
  for (size_t i = 0; i < decisions.size(); ++i) Decide(claims[i], decisions[i]);
}

// ---- objects

Change ClusterState::TakeEffect(const Volumes::Effect& effect) {
  Change change;
  bool behind = false;
  for (const VolumeClaimId id : effect.claims) {
    if (RefreshUsers(id)) change.workloads = change.capacity = true;
    const std::vector<PodId>& users = volumes_.claim(id).users;
    behind |= std::any_of(users.begin(), users.end(),
                          [this](PodId pod) { return pod_volumes_.find(pod)->second.behind; });
    volumes_.DropIfUnused(id);
  }
  // The class of a decision stays, and the answers for it may be others: those that are remembered
  // are found out again.
  if (behind) {
    for (const auto& [name, id] : nodes_by_name_) TouchNode(id);
  }
  for (const std::string& volume : effect.volumes) {
    TouchNodesOf(volume);
    change.capacity = true;
  }
  const auto touch = [&](const std::set<std::string>& names, bool object) {
    for (const std::string& name : names) {
      const NodeId node = FindNode(name);
      if (node == kNoId) continue;
      TouchNode(node, object);
      change.capacity = true;
    }
  };
  touch(effect.nodes, false);
  touch(effect.node_objects, true);
  return change;
}

Change ClusterState::UpsertVolumeObject(const model::VolumeObject& object) {
  return TakeEffect(volumes_.Upsert(object));
}

Change ClusterState::RemoveVolumeObject(model::Kind kind, absl::string_view ns,
                                        absl::string_view name) {
  switch (kind) {
    case model::Kind::kPersistentVolumeClaim:
      return TakeEffect(volumes_.RemoveClaim(ns, name));
    case model::Kind::kPersistentVolume:
      return TakeEffect(volumes_.RemoveVolume(name));
    case model::Kind::kStorageClass:
      return TakeEffect(volumes_.RemoveClass(name));
    case model::Kind::kCsiNode:
      return TakeEffect(volumes_.RemoveCsiNode(name));
    case model::Kind::kCsiDriver:
      return TakeEffect(volumes_.RemoveCsiDriver(name));
    case model::Kind::kCsiStorageCapacity:
      return TakeEffect(volumes_.RemoveCapacity(ns, name));
    case model::Kind::kVolumeAttachment:
      return TakeEffect(volumes_.RemoveAttachment(name));
    default:
      return {};  // no object of storage
  }
}

Change ClusterState::SetVolumesReadable(bool readable) {
  if (volumes_.readable() == readable) return {};
  volumes_.SetReadable(readable);
  Change change;
  std::vector<PodId> pods;
  for (const auto& [pod, volumes] : pod_volumes_) pods.push_back(pod);
  std::sort(pods.begin(), pods.end());
  for (const PodId pod : pods) change.workloads |= RefreshVolumesOf(pod);
  return change;
}

// ---- witness

std::string ClusterState::CheckVolumes() const {
  if (std::string wrong = volumes_.Check(); !wrong.empty()) return wrong;
  for (const auto& [id, volumes] : pod_volumes_) {
    const PodRecord& pod = pods_[id];
    if (pod.id != id) return "a pod that is gone has volumes";
    for (const VolumeClaimId claim : volumes.claims) {
      const VolumeClaimRow& row = volumes_.claim(claim);
      if (row.id != claim || std::find(row.users.begin(), row.users.end(), id) == row.users.end()) {
        return absl::StrCat("a volume claim does not know pod ", pod.name);
      }
      const bool decided_for_some =
          std::any_of(row.users.begin(), row.users.end(),
                      [this](PodId user) { return pods_[user].node != kNoId; });
      if (!row.decided.node.empty() && !decided_for_some) {
        return absl::StrCat("volume claim ", row.key, " is decided for no pod");
      }
    }
    if (!volumes.behind && !(NeedsOf(pod) == *classes_[pod.pod_class].spec->volume_needs)) {
      return absl::StrCat("pod ", pod.name, ": its class is not what its volumes make of it");
    }
  }
  return "";
}

}  // namespace fairlead::state
