// Which volume becomes of a claim on a node: the part of Volumes that answers filters and
// decisions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/volumes.h"

namespace fairlead::state {
namespace {

bool IsUsableOn(const model::PersistentVolume& volume, const model::Node& node) {
  if (!volume.has_node_affinity) return true;
  return std::any_of(
      volume.node_terms.begin(), volume.node_terms.end(),
      [&](const model::NodeSelectorTerm& term) { return term.MatchesLabels(node.meta.labels); });
}

// What has to agree also where the volume names the claim.
bool IsOfKind(const model::PersistentVolume& volume, const model::UnboundVolumeNeed& need) {
  return volume.capacity_bytes >= need.requested_bytes && volume.block == need.block &&
         volume.attributes_class == need.attributes_class && !volume.meta.deletion.has_value();
}

}  // namespace

model::UnboundVolumeNeed Volumes::NeedOf(const VolumeClaimRow& row, bool shared) const {
  const model::PersistentVolumeClaim& claim = row.object;
  model::UnboundVolumeNeed need;
  need.storage_class = claim.storage_class;
  need.picture = PictureOf(claim.storage_class);
  need.has_request = claim.has_request;
  need.requested_bytes = claim.requested_bytes;
  need.access_modes = claim.access_modes;
  need.block = claim.block;
  need.selector = claim.selector;
  need.attributes_class = claim.attributes_class;
  need.selected_node = claim.selected_node;
  if (shared) need.claim = row.key;
  const auto named = prebound_.find(row.key);
  if (named == prebound_.end()) return need;
  for (const std::string& name : named->second) {
    const VolumeRow& volume = volumes_.find(name)->second;
    const std::string& uid = volume.object.claim->uid;
    const bool of_it = uid.empty() || uid == claim.meta.uid;
    // Upstream looks among the volumes of the claim's storage class alone.
    const bool listed = volume.object.storage_class == claim.storage_class;
    if (!of_it || !listed || !IsOfKind(volume.object, need)) continue;
    need.prebound_volume = name;
    break;
  }
  return need;
}

void Volumes::ForEachCandidate(const model::UnboundVolumeNeed& need, const model::Node& node,
                               absl::FunctionRef<void(const VolumeRow&)> use) const {
  const auto found = free_volumes_.find(need.storage_class);
  if (found == free_volumes_.end()) return;
  const auto all = [&](const std::set<std::string>& names) {
    for (const std::string& name : names) use(volumes_.find(name)->second);
  };
  all(found->second.elsewhere);
  const std::string* host = node.meta.labels.Find(model::kHostnameLabel);
  if (host == nullptr) return;
  const auto local = found->second.by_host.find(*host);
  if (local != found->second.by_host.end()) all(local->second);
}

const VolumeRow* Volumes::Match(const model::UnboundVolumeNeed& need, const model::Node& node,
                                const std::set<std::string>& chosen) const {
  if (!need.prebound_volume.empty()) {
    const VolumeRow* volume = FindVolume(need.prebound_volume);
    return volume != nullptr && IsUsableOn(volume->object, node) ? volume : nullptr;
  }
  const VolumeRow* smallest = nullptr;
  ForEachCandidate(need, node, [&](const VolumeRow& row) {
    const model::PersistentVolume& volume = row.object;
    const bool smaller = smallest == nullptr ||
                         volume.capacity_bytes < smallest->object.capacity_bytes ||
                         (volume.capacity_bytes == smallest->object.capacity_bytes &&
                          volume.meta.name < smallest->object.meta.name);
    if (!smaller || chosen.contains(volume.meta.name) || !IsOfKind(volume, need)) return;
    if (!need.selector.none && !need.selector.Matches(volume.meta.labels)) return;
    if ((need.access_modes & ~volume.access_modes) != 0) return;
    if (IsUsableOn(volume, node)) smallest = &row;
  });
  return smallest;
}

bool Volumes::HasRoom(const model::StorageClass& storage_class,
                      const model::UnboundVolumeNeed& need, const model::Node& node) const {
  if (!need.has_request) return true;
  const auto driver = csi_drivers_.find(storage_class.provisioner);
  if (driver == csi_drivers_.end() || !driver->second.storage_capacity) return true;
  return std::any_of(capacities_.begin(), capacities_.end(), [&](const auto& entry) {
    const model::CsiStorageCapacity& capacity = entry.second;
    if (capacity.storage_class != storage_class.meta.name || !capacity.invalid.empty()) {
      return false;
    }
    const std::optional<int64_t> room =
        capacity.largest_bytes.has_value() ? capacity.largest_bytes : capacity.capacity_bytes;
    return room.has_value() && *room >= need.requested_bytes &&
           capacity.node_topology.Matches(node.meta.labels);
  });
}

VolumeChoice Volumes::Choose(const std::vector<model::UnboundVolumeNeed>& needs,
                             const model::Node& node) const {
  VolumeChoice choice;
  choice.volumes.resize(needs.size());
  std::vector<size_t> to_match;
  std::vector<size_t> to_provision;
  for (size_t i = 0; i < needs.size(); ++i) {
    if (needs[i].selected_node.empty()) {
      to_match.push_back(i);
    } else if (needs[i].selected_node == node.meta.name) {
      to_provision.push_back(i);
    } else {
      choice.found = false;
      return choice;
    }
  }
  std::stable_sort(to_match.begin(), to_match.end(), [&](size_t a, size_t b) {
    return needs[a].requested_bytes < needs[b].requested_bytes;
  });
  std::set<std::string> chosen;
  for (const size_t i : to_match) {
    const VolumeRow* volume = Match(needs[i], node, chosen);
    if (volume == nullptr) {
      to_provision.push_back(i);
      continue;
    }
    choice.volumes[i] = volume->object.meta.name;
    chosen.insert(volume->object.meta.name);
  }
  for (const size_t i : to_provision) {
    const model::StorageClass* storage_class = FindClass(needs[i].storage_class);
    const bool provisions = storage_class != nullptr && !storage_class->provisioner.empty() &&
                            storage_class->provisioner != model::kNoProvisioner;
    const auto allows = [&](const model::NodeSelectorTerm& term) {
      return term.Matches(node.meta.labels, node.meta.name);
    };
    if (!provisions || (!storage_class->allowed_topologies.empty() &&
                        !std::any_of(storage_class->allowed_topologies.begin(),
                                     storage_class->allowed_topologies.end(), allows))) {
      choice.found = false;
      return choice;
    }
    if (!HasRoom(*storage_class, needs[i], node)) {
      choice.space = false;
      return choice;
    }
  }
  return choice;
}

std::optional<int64_t> Volumes::LimitOf(absl::string_view driver, absl::string_view node) const {
  const auto found = csi_nodes_.find(node);
  if (found == csi_nodes_.end()) return std::nullopt;
  for (const model::CsiNode::Driver& each : found->second.drivers) {
    if (each.name == driver) return each.limit;
  }
  return std::nullopt;
}

bool Volumes::HasLimits(absl::string_view node) const {
  const auto found = csi_nodes_.find(node);
  return found != csi_nodes_.end() &&
         std::any_of(found->second.drivers.begin(), found->second.drivers.end(),
                     [](const model::CsiNode::Driver& each) { return each.limit.has_value(); });
}

void Volumes::ForEachAttachment(absl::string_view node, absl::string_view driver,
                                absl::FunctionRef<void(const VolumeRow&)> use) const {
  const auto on_node = attachments_on_.find(node);
  if (on_node == attachments_on_.end()) return;
  std::set<absl::string_view> handles;
  for (const std::string& name : on_node->second) {
    const model::VolumeAttachment& attachment = attachments_.find(name)->second;
    if (attachment.driver != driver || attachment.volume_name.empty()) continue;
    const VolumeRow* volume = FindVolume(attachment.volume_name);
    // Upstream counts volumes of CSI alone.
    if (volume == nullptr || volume->object.csi_driver.empty()) continue;
    if (handles.insert(volume->object.csi_handle).second) use(*volume);
  }
}

Volumes::Attached Volumes::AttachedBy(const VolumeClaimRow& row) const {
  const model::PersistentVolumeClaim& claim = row.object;
  if (!row.exists) return {};
  if (!claim.volume_name.empty()) {
    if (const VolumeRow* volume = FindVolume(claim.volume_name); volume != nullptr) {
      const model::PersistentVolume& object = volume->object;
      if (object.csi_driver.empty() || object.csi_handle.empty()) return {};
      return {object.csi_driver, absl::StrCat(object.csi_driver, "/", object.csi_handle)};
    }
  }
  const model::StorageClass* storage_class = FindClass(claim.storage_class);
  if (storage_class == nullptr || storage_class->provisioner.empty()) return {};
  return {storage_class->provisioner, absl::StrCat(storage_class->provisioner, "/of ", row.key)};
}

}  // namespace fairlead::state
