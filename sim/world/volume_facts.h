// What objects of storage say: claims of pods, PersistentVolumeClaims, PersistentVolumes and
// StorageClasses. Read from the JSON by code that shares nothing with the product's.
//
// Claims of these worlds have neither selectors nor data sources, and volumes are file systems.
//
// Thread-safety: pure functions. Complexity: O(size of the object).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/world/json.h"
#include "sim/world/placement_facts.h"

namespace fairlead::sim::world {

inline constexpr char kVolumeClaimFinalizer[] = "kubernetes.io/pvc-protection";
inline constexpr char kVolumeFinalizer[] = "kubernetes.io/pv-protection";
inline constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
inline constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
// Of a pod: the specs of the claims that it names, by name. A claim of a pod that is not there is
// never made.
inline constexpr char kVolumeClaims[] = "sim/volume-claims";

// A volume of a pod that is a claim.
struct PodVolume {
  std::string claim;       // the PersistentVolumeClaim's name
  bool ephemeral = false;  // it is made for this pod alone
  friend bool operator==(const PodVolume&, const PodVolume&) = default;
};
// Each claim once.
std::vector<PodVolume> ReadPodVolumes(const Json& pod);
// It names a claim, and its annotation has no spec for it.
bool LacksVolumeClaim(const Json& pod);

// What a claim asks for.
struct VolumeAsk {
  std::string storage_class;
  int64_t bytes = 0;
  std::vector<std::string> modes;
  friend bool operator==(const VolumeAsk&, const VolumeAsk&) = default;
};

struct VolumeClaimFacts {
  std::string ns, name, uid;
  VolumeAsk ask;
  std::string volume;         // spec.volumeName
  std::string selected_node;  // annotation; empty: none
  std::string owner;          // uid of the pod that it was made for; empty: of none
  bool bound = false;         // both sides know it
  bool lost = false, deleting = false, protected_by_finalizer = false;
  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  // One pod at a time may use it.
  [[nodiscard]] bool IsForOnePod() const;
};
VolumeClaimFacts ReadVolumeClaim(const Json& claim);

struct VolumeFacts {
  std::string name, uid, phase, reclaim;
  VolumeAsk has;  // its class, capacity and modes
  // Of its claimRef; an empty name: there is none. An empty uid: any claim of that name.
  std::string claim_ns, claim_name, claim_uid;
  bool has_affinity = false;
  std::vector<std::vector<NodeExpression>> node_terms;
  std::string zone;    // label; empty: none
  std::string driver;  // of CSI; empty: of another kind
  bool deleting = false, protected_by_finalizer = false;
  // Its claimRef names the claim.
  [[nodiscard]] bool IsOf(const VolumeClaimFacts& claim) const;
  // Any claim that it satisfies may have it.
  [[nodiscard]] bool IsFree() const;
  [[nodiscard]] bool Satisfies(const VolumeAsk& ask) const;
  [[nodiscard]] bool IsUsableOn(const Labels& node) const;
};
VolumeFacts ReadVolume(const Json& volume);

struct StorageClassFacts {
  std::string name, provisioner;
  bool waits = false;              // for the first consumer
  std::string where;               // what its provisioner makes (volume_objects.h)
  std::vector<std::string> zones;  // in which it can make them; empty: in all
  // Volumes are made for claims.
  [[nodiscard]] bool IsProvisioned() const;
  [[nodiscard]] bool IsAllowedOn(const Labels& node) const;
};
StorageClassFacts ReadStorageClass(const Json& storage_class);

}  // namespace fairlead::sim::world
