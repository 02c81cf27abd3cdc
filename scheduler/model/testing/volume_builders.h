// Short ways to write objects of storage in tests. Header only; never part of the product.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/volumes.h"

namespace fairlead::model::testing {

inline StorageClass MakeStorageClass(
    absl::string_view name, absl::string_view provisioner,
    StorageClass::Binding binding = StorageClass::Binding::kWaitForFirstConsumer) {
  StorageClass out;
  out.meta.name = std::string(name);
  out.provisioner = std::string(provisioner);
  out.binding = binding;
  return out;
}

// In namespace "ns", unbound, ReadWriteOnce.
inline PersistentVolumeClaim MakeVolumeClaim(absl::string_view name,
                                             absl::string_view storage_class, int64_t gib = 1) {
  PersistentVolumeClaim out;
  out.meta.ns = "ns";
  out.meta.name = std::string(name);
  out.meta.uid = absl::StrCat("uid-", name);
  out.meta.resource_version = "1";
  out.storage_class = std::string(storage_class);
  out.access_modes = kReadWriteOnce;
  out.has_request = true;
  out.requested_bytes = gib * kGiB;
  return out;
}

inline PersistentVolumeClaim BoundTo(PersistentVolumeClaim claim, absl::string_view volume) {
  claim.volume_name = std::string(volume);
  claim.bind_completed = true;
  return claim;
}

// Free, usable on every node.
inline PersistentVolume MakeVolume(absl::string_view name, absl::string_view storage_class,
                                   int64_t gib = 1) {
  PersistentVolume out;
  out.meta.name = std::string(name);
  out.meta.uid = absl::StrCat("uid-", name);
  out.meta.resource_version = "1";
  out.storage_class = std::string(storage_class);
  out.capacity_bytes = gib * kGiB;
  out.access_modes = kReadWriteOnce;
  out.available = true;
  return out;
}

inline NodeSelectorTerm HasLabel(absl::string_view key, std::vector<std::string> values) {
  return {{{std::string(key), SelectorOperator::kIn, std::move(values)}}, {}};
}

inline PersistentVolume Where(PersistentVolume volume, absl::string_view key,
                              std::vector<std::string> values) {
  volume.has_node_affinity = true;
  volume.node_terms = {HasLabel(key, std::move(values))};
  return volume;
}

inline PersistentVolume OfClaim(PersistentVolume volume, const PersistentVolumeClaim& claim) {
  volume.claim = PersistentVolume::ClaimRef{claim.meta.ns, claim.meta.name, claim.meta.uid};
  volume.available = false;
  return volume;
}

}  // namespace fairlead::model::testing
