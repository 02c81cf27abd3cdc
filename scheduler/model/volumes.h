// The objects of storage (v1, storage.k8s.io/v1): claims, volumes, and what says where volumes can
// be used or made. The fields that decisions read, and those that a write has to compare.
//
// Names of annotations and rules: k8s.io/component-helpers/storage/volume.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/selector.h"
#include "scheduler/model/volume_needs.h"

namespace fairlead::model {

// On a claim: the controller has bound it, and both sides know.
inline constexpr char kBindCompletedAnnotation[] = "pv.kubernetes.io/bind-completed";
// On a volume or claim: the binding was the scheduler's or the controller's, not the user's.
inline constexpr char kBoundByControllerAnnotation[] = "pv.kubernetes.io/bound-by-controller";
// On a claim: the node for whose pod the volume is to be provisioned. The provisioner removes it if
// it cannot.
inline constexpr char kSelectedNodeAnnotation[] = "volume.kubernetes.io/selected-node";
// On claims and volumes, before spec.storageClassName: it goes before the field.
inline constexpr char kStorageClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";
// StorageClass.provisioner of classes whose volumes are made by hand.
inline constexpr char kNoProvisioner[] = "kubernetes.io/no-provisioner";

// A claim that a volume of a pod names.
struct VolumeClaimRef {
  // Of the PersistentVolumeClaim; of an ephemeral volume the name of the volume: its claim is
  // "POD-NAME" and belongs to the pod.
  std::string name;
  bool ephemeral = false;
  friend bool operator==(const VolumeClaimRef&, const VolumeClaimRef&) = default;
  friend auto operator<=>(const VolumeClaimRef&, const VolumeClaimRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const VolumeClaimRef& r) {
    return H::combine(std::move(h), r.name, r.ephemeral);
  }
};

struct PersistentVolumeClaim {
  ObjectMeta meta;
  std::string storage_class;  // by the annotation or spec.storageClassName; empty: none
  std::string volume_name;    // spec.volumeName
  AccessModes access_modes = 0;
  bool block = false;      // spec.volumeMode Block
  LabelSelector selector;  // of volumes; none: absent
  std::string attributes_class;
  bool has_request = false;  // spec.resources.requests.storage
  int64_t requested_bytes = 0;
  bool bind_completed = false;  // annotation
  std::string selected_node;    // annotation
  bool lost = false;            // status.phase Lost
  std::string invalid;          // what we do not understand in it
  [[nodiscard]] bool IsBound() const { return !volume_name.empty() && bind_completed; }
};

struct PersistentVolume {
  struct ClaimRef {
    std::string ns, name, uid;  // uid empty: made for a claim that need not exist yet
    friend bool operator==(const ClaimRef&, const ClaimRef&) = default;
  };
  ObjectMeta meta;
  std::string storage_class;  // by the annotation or spec.storageClassName
  int64_t capacity_bytes = 0;
  AccessModes access_modes = 0;
  bool block = false;
  std::string attributes_class;
  std::optional<ClaimRef> claim;   // spec.claimRef
  bool has_node_affinity = false;  // spec.nodeAffinity.required
  std::vector<NodeSelectorTerm> node_terms;
  std::string csi_driver, csi_handle;  // spec.csi
  bool available = false;              // status.phase Available
  std::string invalid;
};

struct StorageClass {
  enum class Binding : uint8_t { kNotSet, kImmediate, kWaitForFirstConsumer };
  ObjectMeta meta;
  std::string provisioner;
  Binding binding = Binding::kNotSet;  // volumeBindingMode; the API server sets it
  // allowedTopologies: any of them, by labels of the node; a term without expressions matches none.
  // Empty: every node.
  std::vector<NodeSelectorTerm> allowed_topologies;
  std::string invalid;
};

// Of the node of its name.
struct CsiNode {
  struct Driver {
    std::string name;
    std::optional<int64_t> limit;  // volumes that it attaches there; absent: no limit
    friend bool operator==(const Driver&, const Driver&) = default;
  };
  ObjectMeta meta;
  std::vector<Driver> drivers;
};

struct CsiDriver {
  ObjectMeta meta;                // its name is the driver's
  bool storage_capacity = false;  // CSIStorageCapacity objects say where there is room
};

struct CsiStorageCapacity {
  ObjectMeta meta;
  std::string storage_class;
  LabelSelector node_topology;            // none: of no node
  std::optional<int64_t> capacity_bytes;  // absent: none
  std::optional<int64_t> largest_bytes;   // maximumVolumeSize; goes before capacity
  std::string invalid;
};

struct VolumeAttachment {
  ObjectMeta meta;
  std::string driver;       // spec.attacher
  std::string node_name;    // spec.nodeName
  std::string volume_name;  // spec.source.persistentVolumeName; empty: none
};

using VolumeObject = std::variant<PersistentVolumeClaim, PersistentVolume, StorageClass, CsiNode,
                                  CsiDriver, CsiStorageCapacity, VolumeAttachment>;

}  // namespace fairlead::model
