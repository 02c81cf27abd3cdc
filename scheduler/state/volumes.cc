#include "scheduler/state/volumes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/rows.h"

namespace fairlead::state {
namespace {

template <typename Map, typename Key>
void EraseFrom(Map& map, const Key& key, const typename Map::mapped_type::value_type& value) {
  const auto found = map.find(key);
  if (found == map.end()) return;
  found->second.erase(value);
  if (found->second.empty()) map.erase(found);
}

std::string KeyOfClaim(const model::PersistentVolume& volume) {
  return model::Key(volume.claim->ns, volume.claim->name);
}

bool IsOfClaim(const model::PersistentVolume& volume, const VolumeClaimRow& claim) {
  return KeyOfClaim(volume) == claim.key &&
         (volume.claim->uid.empty() || volume.claim->uid == claim.object.meta.uid);
}

// What needs of pods are made of; the rest of a volume changes nothing.
bool SaysTheSame(const model::PersistentVolume& a, const model::PersistentVolume& b) {
  return a.meta.uid == b.meta.uid && a.meta.deletion == b.meta.deletion &&
         a.meta.labels == b.meta.labels && a.storage_class == b.storage_class &&
         a.capacity_bytes == b.capacity_bytes && a.access_modes == b.access_modes &&
         a.block == b.block && a.attributes_class == b.attributes_class && a.claim == b.claim &&
         a.has_node_affinity == b.has_node_affinity && a.node_terms == b.node_terms &&
         a.csi_driver == b.csi_driver && a.csi_handle == b.csi_handle &&
         a.available == b.available && a.invalid == b.invalid;
}

}  // namespace

const VolumeClaimRow* Volumes::FindClaim(absl::string_view key) const {
  const auto found = claim_index_.find(key);
  return found == claim_index_.end() ? nullptr : &claims_[found->second];
}

VolumeClaimRow& Volumes::ClaimRow(absl::string_view key) {
  const auto [at, added] = claim_index_.try_emplace(std::string(key), kNoId);
  if (!added) return claims_[at->second];
  at->second = TakeRow(claims_, free_claims_);
  VolumeClaimRow& row = claims_[at->second];
  row = VolumeClaimRow{};
  row.id = at->second;
  row.key = std::string(key);
  return row;
}

void Volumes::DropIfUnused(VolumeClaimId id) {
  VolumeClaimRow& row = claims_[id];
  if (row.id == kNoId || row.exists || !row.users.empty()) return;
  claim_index_.erase(row.key);
  row = VolumeClaimRow{};
  free_claims_.push_back(id);
}

const VolumeRow* Volumes::FindVolume(absl::string_view name) const {
  const auto found = volumes_.find(name);
  return found == volumes_.end() ? nullptr : &found->second;
}

const model::StorageClass* Volumes::FindClass(absl::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : &found->second;
}

// ---- indexes

bool Volumes::IsFree(const VolumeRow& row) const {
  const model::PersistentVolume& volume = row.object;
  return row.taken_by == kNoId && volume.available && !volume.claim.has_value() &&
         !volume.meta.deletion.has_value() && volume.invalid.empty();
}

std::string Volumes::HostOf(const model::PersistentVolume& volume) {
  if (!volume.has_node_affinity || volume.node_terms.size() != 1) return "";
  for (const model::SelectorRequirement& each : volume.node_terms.front().match_expressions) {
    if (each.key == model::kHostnameLabel && each.op == model::SelectorOperator::kIn &&
        each.values.size() == 1) {
      return each.values.front();
    }
  }
  return "";
}

void Volumes::Index(const VolumeRow& row) {
  if (!IsFree(row)) return;
  ClassVolumes& volumes = free_volumes_[row.object.storage_class];
  const std::string host = HostOf(row.object);
  (host.empty() ? volumes.elsewhere : volumes.by_host[host]).insert(row.object.meta.name);
}

void Volumes::Unindex(const VolumeRow& row) {
  if (!IsFree(row)) return;
  const auto found = free_volumes_.find(row.object.storage_class);
  if (found == free_volumes_.end()) return;
  ClassVolumes& volumes = found->second;
  volumes.elsewhere.erase(row.object.meta.name);
  EraseFrom(volumes.by_host, HostOf(row.object), row.object.meta.name);
  if (volumes.elsewhere.empty() && volumes.by_host.empty()) free_volumes_.erase(found);
}

void Volumes::FileClaim(const VolumeClaimRow& row, bool add) {
  if (!row.exists) return;
  if (!row.object.volume_name.empty()) {
    if (add) {
      claims_of_[row.object.volume_name].insert(row.id);
    } else {
      EraseFrom(claims_of_, row.object.volume_name, row.id);
    }
  }
  if (row.object.IsBound()) return;
  if (add) {
    unbound_[row.object.storage_class].insert(row.id);
  } else {
    EraseFrom(unbound_, row.object.storage_class, row.id);
  }
}

uint64_t Volumes::PictureOf(absl::string_view storage_class) const {
  const auto found = pictures_.find(storage_class);
  return found == pictures_.end() ? 1 : found->second;
}

void Volumes::ChangePicture(absl::string_view storage_class, Effect& effect) {
  pictures_[std::string(storage_class)] = ++last_picture_;
  const auto waiting = unbound_.find(storage_class);
  if (waiting == unbound_.end()) return;
  effect.claims.insert(waiting->second.begin(), waiting->second.end());
}

// O(claims): classes hardly change.
void Volumes::ChangeClass(absl::string_view name, Effect& effect) {
  ChangePicture(name, effect);
  // The class says what such a claim attaches, although it is bound (AttachedBy).
  for (const auto& [volume, claims] : claims_of_) {
    if (FindVolume(volume) != nullptr) continue;
    for (const VolumeClaimId id : claims) {
      if (claims_[id].object.storage_class == name) effect.claims.insert(id);
    }
  }
}

void Volumes::ClaimsOfVolume(absl::string_view volume, Effect& effect) const {
  const auto found = claims_of_.find(volume);
  if (found != claims_of_.end()) {
    effect.claims.insert(found->second.begin(), found->second.end());
  }
}

// ---- objects

Volumes::Effect Volumes::Upsert(const model::VolumeObject& object) {
  if (const auto* claim = std::get_if<model::PersistentVolumeClaim>(&object)) {
    return UpsertClaim(*claim);
  }
  if (const auto* volume = std::get_if<model::PersistentVolume>(&object)) {
    return UpsertVolume(*volume);
  }
  if (const auto* storage_class = std::get_if<model::StorageClass>(&object)) {
    return UpsertClass(*storage_class);
  }
  if (const auto* node = std::get_if<model::CsiNode>(&object)) return UpsertCsiNode(*node);
  if (const auto* driver = std::get_if<model::CsiDriver>(&object)) return UpsertCsiDriver(*driver);
  if (const auto* capacity = std::get_if<model::CsiStorageCapacity>(&object)) {
    return UpsertCapacity(*capacity);
  }
  return UpsertAttachment(std::get<model::VolumeAttachment>(object));
}

Volumes::Effect Volumes::UpsertClaim(const model::PersistentVolumeClaim& claim) {
  Effect effect;
  VolumeClaimRow& row = ClaimRow(model::Key(claim.meta));
  FileClaim(row, false);
  const bool another = row.exists && row.object.meta.uid != claim.meta.uid;
  row.exists = true;
  row.object = claim;
  FileClaim(row, true);
  if (another) {
    Withdraw(row, effect);
  } else {
    SettleDecision(row, effect);
  }
  effect.claims.insert(row.id);
  return effect;
}

Volumes::Effect Volumes::RemoveClaim(absl::string_view ns, absl::string_view name) {
  Effect effect;
  const auto found = claim_index_.find(model::Key(ns, name));
  if (found == claim_index_.end()) return effect;
  VolumeClaimRow& row = claims_[found->second];
  FileClaim(row, false);
  row.exists = false;
  row.object = model::PersistentVolumeClaim();
  Withdraw(row, effect);
  effect.claims.insert(row.id);
  return effect;
}

Volumes::Effect Volumes::UpsertVolume(const model::PersistentVolume& volume) {
  Effect effect;
  const auto [at, added] = volumes_.try_emplace(volume.meta.name);
  VolumeRow& row = at->second;
  if (!added && SaysTheSame(row.object, volume)) {
    row.object = volume;
    return effect;
  }
  const bool was_free = !added && IsFree(row);
  const std::string former_class = row.object.storage_class;
  if (!added) {
    Unindex(row);
    if (row.object.claim.has_value()) {
      const std::string key = KeyOfClaim(row.object);
      EraseFrom(prebound_, key, volume.meta.name);
      if (const VolumeClaimRow* claim = FindClaim(key)) effect.claims.insert(claim->id);
    }
  }
  row.object = volume;
  Index(row);
  if (volume.claim.has_value()) {
    const std::string key = KeyOfClaim(volume);
    prebound_[key].insert(volume.meta.name);
    if (const VolumeClaimRow* claim = FindClaim(key)) effect.claims.insert(claim->id);
  }
  if (row.taken_by != kNoId) {
    VolumeClaimRow& taker = claims_[row.taken_by];
    // Another client was faster.
    if (volume.claim.has_value() && !IsOfClaim(volume, taker)) {
      Withdraw(taker, effect);
    } else {
      SettleDecision(taker, effect);
    }
  }
  if (was_free) ChangePicture(former_class, effect);
  if (IsFree(row) && !(was_free && former_class == volume.storage_class)) {
    ChangePicture(volume.storage_class, effect);
  }
  ClaimsOfVolume(volume.meta.name, effect);
  return effect;
}

Volumes::Effect Volumes::RemoveVolume(absl::string_view name) {
  Effect effect;
  const auto at = volumes_.find(name);
  if (at == volumes_.end()) return effect;
  const VolumeRow& row = at->second;
  if (row.taken_by != kNoId) Withdraw(claims_[row.taken_by], effect);
  Unindex(row);
  if (row.object.claim.has_value()) {
    const std::string key = KeyOfClaim(row.object);
    EraseFrom(prebound_, key, row.object.meta.name);
    if (const VolumeClaimRow* claim = FindClaim(key)) effect.claims.insert(claim->id);
  }
  if (IsFree(row)) ChangePicture(row.object.storage_class, effect);
  ClaimsOfVolume(name, effect);
  volumes_.erase(at);
  return effect;
}

Volumes::Effect Volumes::UpsertClass(const model::StorageClass& storage_class) {
  Effect effect;
  const auto [at, added] = classes_.try_emplace(storage_class.meta.name);
  const bool same = !added && at->second.provisioner == storage_class.provisioner &&
                    at->second.binding == storage_class.binding &&
                    at->second.allowed_topologies == storage_class.allowed_topologies &&
                    at->second.invalid == storage_class.invalid;
  at->second = storage_class;
  if (!same) ChangeClass(storage_class.meta.name, effect);
  return effect;
}

Volumes::Effect Volumes::RemoveClass(absl::string_view name) {
  Effect effect;
  const auto at = classes_.find(name);
  if (at == classes_.end()) return effect;
  classes_.erase(at);
  ChangeClass(name, effect);
  return effect;
}

Volumes::Effect Volumes::UpsertCsiNode(const model::CsiNode& node) {
  Effect effect;
  model::CsiNode& known = csi_nodes_[node.meta.name];
  if (!(known.drivers == node.drivers)) effect.node_objects.insert(node.meta.name);
  known = node;
  return effect;
}

Volumes::Effect Volumes::RemoveCsiNode(absl::string_view name) {
  Effect effect;
  const auto at = csi_nodes_.find(name);
  if (at == csi_nodes_.end()) return effect;
  csi_nodes_.erase(at);
  effect.node_objects.insert(std::string(name));
  return effect;
}

Volumes::Effect Volumes::UpsertCsiDriver(const model::CsiDriver& driver) {
  Effect effect;
  const auto [at, added] = csi_drivers_.try_emplace(driver.meta.name);
  const bool same = at->second.storage_capacity == driver.storage_capacity;
  at->second = driver;
  if (same) return effect;
  for (const auto& [name, storage_class] : classes_) {
    if (storage_class.provisioner == driver.meta.name) ChangePicture(name, effect);
  }
  return effect;
}

Volumes::Effect Volumes::RemoveCsiDriver(absl::string_view name) {
  const auto at = csi_drivers_.find(name);
  if (at == csi_drivers_.end()) return {};
  model::CsiDriver without;
  without.meta.name = std::string(name);
  Effect effect = UpsertCsiDriver(without);
  csi_drivers_.erase(std::string(name));
  return effect;
}

Volumes::Effect Volumes::UpsertCapacity(const model::CsiStorageCapacity& capacity) {
  Effect effect;
  model::CsiStorageCapacity& known = capacities_[model::Key(capacity.meta)];
  const bool same = known.storage_class == capacity.storage_class &&
                    known.node_topology == capacity.node_topology &&
                    known.capacity_bytes == capacity.capacity_bytes &&
                    known.largest_bytes == capacity.largest_bytes &&
                    known.invalid == capacity.invalid;
  const std::string former = std::exchange(known, capacity).storage_class;
  if (same) return effect;
  if (former != capacity.storage_class) ChangePicture(former, effect);
  ChangePicture(capacity.storage_class, effect);
  return effect;
}

Volumes::Effect Volumes::RemoveCapacity(absl::string_view ns, absl::string_view name) {
  Effect effect;
  const auto at = capacities_.find(model::Key(ns, name));
  if (at == capacities_.end()) return effect;
  const std::string storage_class = at->second.storage_class;
  capacities_.erase(at);
  ChangePicture(storage_class, effect);
  return effect;
}

Volumes::Effect Volumes::UpsertAttachment(const model::VolumeAttachment& attachment) {
  Effect effect;
  const auto [at, added] = attachments_.try_emplace(attachment.meta.name);
  const bool same = !added && at->second.driver == attachment.driver &&
                    at->second.node_name == attachment.node_name &&
                    at->second.volume_name == attachment.volume_name;
  if (same) return effect;
  if (!added) {
    effect.nodes.insert(at->second.node_name);
    EraseFrom(attachments_on_, at->second.node_name, attachment.meta.name);
  }
  at->second = attachment;
  attachments_on_[attachment.node_name].insert(attachment.meta.name);
  effect.nodes.insert(attachment.node_name);
  return effect;
}

Volumes::Effect Volumes::RemoveAttachment(absl::string_view name) {
  Effect effect;
  const auto at = attachments_.find(name);
  if (at == attachments_.end()) return effect;
  effect.nodes.insert(at->second.node_name);
  EraseFrom(attachments_on_, at->second.node_name, at->second.meta.name);
  attachments_.erase(at);
  return effect;
}

// ---- decisions

void Volumes::Decide(VolumeClaimId id, VolumeDecision decision, std::vector<std::string>& changed) {
  VolumeClaimRow& row = claims_[id];
  if (row.decided == decision) return;
  const auto take = [&](const std::string& name, VolumeClaimId taker) {
    const auto at = volumes_.find(name);
    if (at == volumes_.end() || name.empty()) return;
    // Given back by another than who has it: its claim was decided anew meanwhile.
    if (taker == kNoId && at->second.taken_by != id) return;
    Unindex(at->second);
    at->second.taken_by = taker;
    Index(at->second);
    changed.push_back(name);
  };
  if (row.decided.volume != decision.volume) {
    take(row.decided.volume, kNoId);
    take(decision.volume, id);
  }
  row.decided = std::move(decision);
}

void Volumes::Withdraw(VolumeClaimRow& row, Effect& effect) {
  std::vector<std::string> changed;
  Decide(row.id, {}, changed);
  effect.volumes.insert(changed.begin(), changed.end());
}

// A volume that is bound by the word of its claim stays taken until its own object says so, too.
void Volumes::SettleDecision(VolumeClaimRow& row, Effect& effect) {
  if (row.decided.node.empty() || !row.object.IsBound()) return;
  const VolumeRow* volume = FindVolume(row.decided.volume);
  if (volume == nullptr || volume->object.claim.has_value() ||
      row.object.volume_name != row.decided.volume) {
    Withdraw(row, effect);
  }
}

// ---- witness

std::string Volumes::Check() const {
  for (const auto& [key, id] : claim_index_) {
    const VolumeClaimRow& row = claims_[id];
    if (row.id != id || row.key != key) return absl::StrCat("claim ", key, ": its row");
    if (!row.exists && row.users.empty()) return absl::StrCat("claim ", key, " is not needed");
    if (row.exists && !row.object.IsBound()) {
      const auto filed = unbound_.find(row.object.storage_class);
      if (filed == unbound_.end() || !filed->second.contains(id)) {
        return absl::StrCat("claim ", key, " is not among the unbound ones");
      }
    }
    const VolumeRow* decided = FindVolume(row.decided.volume);
    if (decided != nullptr && decided->taken_by != id) {
      return absl::StrCat("claim ", key, " does not have volume ", row.decided.volume);
    }
  }
  size_t indexed = 0;
  for (const auto& [name, volumes] : free_volumes_) {
    indexed += volumes.elsewhere.size();
    for (const auto& [host, names] : volumes.by_host) indexed += names.size();
  }
  size_t free = 0;
  for (const auto& [name, row] : volumes_) {
    if (IsFree(row)) ++free;
    if (row.taken_by == kNoId) continue;
    const VolumeClaimRow& taker = claims_[row.taken_by];
    if (taker.id == kNoId || taker.decided.volume != name) {
      return absl::StrCat("volume ", name, " is taken by no claim");
    }
  }
  return free == indexed ? "" : absl::StrCat(free, " free volumes, but ", indexed, " found");
}

std::string Volumes::Dump() const {
  std::map<std::string, std::string> lines;
  for (const auto& [key, id] : claim_index_) {
    const VolumeClaimRow& row = claims_[id];
    if (row.decided.node.empty()) continue;
    lines[key] = absl::StrCat("volume claim ", key, " decided=", row.decided.node, "/",
                              row.decided.volume, "\n");
  }
  std::string out;
  for (const auto& [key, line] : lines) out += line;
  return out;
}

}  // namespace fairlead::state
