// What a pod's volumes ask of its node, as its class has it: without the names of claims, so that
// pods with claims of their own that ask for the same are one class. ClusterState makes it of
// claims, volumes and storage classes (scheduler/state/volumes.h); decoders do not.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/model/selector.h"

namespace fairlead::model {

// spec.accessModes as bits.
enum AccessMode : uint8_t {
  kReadWriteOnce = 1,
  kReadOnlyMany = 2,
  kReadWriteMany = 4,
  kReadWriteOncePod = 8,
};
using AccessModes = uint8_t;

// A label of a PersistentVolume that says where it is, as plugin VolumeZone reads it.
struct VolumeZoneLabel {
  std::string key;                  // of the four keys of zones and regions
  std::vector<std::string> values;  // sorted; any of them
  friend bool operator==(const VolumeZoneLabel&, const VolumeZoneLabel&) = default;
  friend auto operator<=>(const VolumeZoneLabel&, const VolumeZoneLabel&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const VolumeZoneLabel& l) {
    return H::combine(std::move(h), l.key, l.values);
  }
};

// A claim that is bound: where its volume can be used.
struct BoundVolumeNeed {
  bool has_node_affinity = false;
  std::vector<NodeSelectorTerm> node_terms;  // any of them; labels only
  std::vector<VolumeZoneLabel> zones;        // all of them
  friend bool operator==(const BoundVolumeNeed&, const BoundVolumeNeed&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const BoundVolumeNeed& n) {
    return H::combine(std::move(h), n.has_node_affinity, n.node_terms, n.zones);
  }
};

// A claim that waits for its first consumer (volumeBindingMode WaitForFirstConsumer): a volume that
// is there and matches it is bound to it, or one is provisioned.
struct UnboundVolumeNeed {
  std::string storage_class;
  // Of all that the storage class, its volumes and its capacities say: the class of a pod is
  // another one when any of it changes. state::Volumes::PictureOf().
  uint64_t picture = 0;
  bool has_request = false;
  int64_t requested_bytes = 0;
  AccessModes access_modes = 0;
  bool block = false;
  LabelSelector selector;        // none: the claim has no selector
  std::string attributes_class;  // spec.volumeAttributesClassName
  // A volume names this claim in its claimRef: only that one matches, if it can be used at all.
  std::string prebound_volume;
  std::string selected_node;  // by the annotation; empty: none yet
  std::string claim;          // "ns/name" if other pods name it, too; empty: one of its own
  friend bool operator==(const UnboundVolumeNeed&, const UnboundVolumeNeed&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const UnboundVolumeNeed& n) {
    return H::combine(std::move(h), n.storage_class, n.picture, n.has_request, n.requested_bytes,
                      n.access_modes, n.block, n.selector, n.attributes_class, n.prebound_volume,
                      n.selected_node, n.claim);
  }
};

// A claim that other pods name, too.
struct SharedVolumeNeed {
  std::string claim;     // "ns/name"
  bool once = false;     // ReadWriteOncePod: no other pod may use it at the same time
  bool unbound = false;  // until it is bound, the node that is decided for one pod is that of all
  friend bool operator==(const SharedVolumeNeed&, const SharedVolumeNeed&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SharedVolumeNeed& n) {
    return H::combine(std::move(h), n.claim, n.once, n.unbound);
  }
};

// A volume that a CSI driver attaches to the node, which counts against the driver's limit there.
struct AttachedVolumeNeed {
  std::string driver;
  std::string volume;  // its unique name if other pods use it, too; empty: one of its own
  friend bool operator==(const AttachedVolumeNeed&, const AttachedVolumeNeed&) = default;
  friend auto operator<=>(const AttachedVolumeNeed&, const AttachedVolumeNeed&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AttachedVolumeNeed& n) {
    return H::combine(std::move(h), n.driver, n.volume);
  }
};

// A disk that a pod names itself (gcePersistentDisk, awsElasticBlockStore, iscsi, rbd), which pods
// on one node may have in common only under conditions (plugin VolumeRestrictions).
struct InlineDisk {
  enum class Kind : uint8_t { kGcePersistentDisk, kAwsElasticBlockStore, kIscsi, kRbd };
  Kind kind = Kind::kGcePersistentDisk;
  std::string id;                     // pdName, volumeID, iqn, or pool/image
  std::vector<std::string> monitors;  // of kRbd
  bool read_only = false;
  friend bool operator==(const InlineDisk&, const InlineDisk&) = default;
  friend auto operator<=>(const InlineDisk&, const InlineDisk&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const InlineDisk& d) {
    return H::combine(std::move(h), d.kind, d.id, d.monitors, d.read_only);
  }
};

struct VolumeNeeds {
  // Why the volumes keep the pod from every node; empty: nothing does. In the words of the plugin
  // of kube-scheduler that says it first, whose name is `fault_plugin`.
  std::string fault;
  std::string fault_plugin;
  std::string
      missing;  // the object that does not exist ("PersistentVolumeClaim data"), if that is it
  // In the order of the pod's volumes, but for `attached`, which is sorted: a driver as often as it
  // attaches volumes.
  std::vector<BoundVolumeNeed> bound;  // without those that any node satisfies
  std::vector<UnboundVolumeNeed> unbound;
  std::vector<SharedVolumeNeed> shared;  // those that are `once` or `unbound`
  std::vector<AttachedVolumeNeed> attached;
  friend bool operator==(const VolumeNeeds&, const VolumeNeeds&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const VolumeNeeds& n) {
    return H::combine(std::move(h), n.fault, n.fault_plugin, n.missing, n.bound, n.unbound,
                      n.shared, n.attached);
  }
};

}  // namespace fairlead::model
