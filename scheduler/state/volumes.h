// The tables of storage: claims, volumes, and what says where volumes can be used or made; with
// what decisions have taken that no object shows yet.
//
// A claim that waits for its first consumer (Unbound) is *decided* from the moment that one of its
// pods gets, or is promised, a node until it is bound: for it, with a volume that matches (one of
// its own: no other claim gets it) or one that is to be provisioned. What was decided goes when no
// pod of it has a node any more, but not what was written to the API server meanwhile.
//
// ClusterState makes the needs of pods' classes of these tables (pod_volumes.cc), so an answer of a
// filter about volumes depends on the class, the node object, and the usage of the node alone.
//
// Rules: k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go,
// k8s.io/component-helpers/storage/volume. Volumes in trees of Kubernetes' own
// (spec.gcePersistentDisk and the like) are not translated to CSI.
//
// Ownership: owns its rows; pointers are valid until the next change. Thread-safety: the state's.
// Complexity: look-ups O(1) or O(log n); ForEachCandidate O(volumes of the class on that host and
// on no single host).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/node.h"
#include "scheduler/model/volumes.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

using VolumeClaimId = uint32_t;

// What was decided for a claim that is not bound.
struct VolumeDecision {
  std::string node;    // its name; empty: nothing is decided
  std::string volume;  // that is to be bound to the claim; empty: one is to be provisioned
  friend bool operator==(const VolumeDecision&, const VolumeDecision&) = default;
};

struct VolumeClaimRow {
  VolumeClaimId id = kNoId;  // kNoId: a free row
  std::string key;           // "ns/name"
  bool exists = false;       // the object was seen; else some pod names it
  model::PersistentVolumeClaim object;
  std::vector<PodId> users;  // pods that name it, in the order in which they came
  VolumeDecision decided;
};

struct VolumeRow {
  model::PersistentVolume object;
  VolumeClaimId taken_by = kNoId;  // by a decision
};

// What becomes of unbound claims on a node.
struct VolumeChoice {
  bool found = true;  // volumes that match, or provisioners that may make them
  bool space = true;  // the provisioners have room that the node can use
  // By need, in the order asked: the volume; empty: to be provisioned, or decided here already.
  std::vector<std::string> volumes;
  [[nodiscard]] bool Fits() const { return found && space; }
};

class Volumes {
 public:
  // ---- tables
  [[nodiscard]] const VolumeClaimRow* FindClaim(absl::string_view key) const;
  [[nodiscard]] const VolumeClaimRow& claim(VolumeClaimId id) const { return claims_[id]; }
  [[nodiscard]] VolumeClaimRow& claim(VolumeClaimId id) { return claims_[id]; }
  // The row of that key, made if there is none.
  VolumeClaimRow& ClaimRow(absl::string_view key);
  // Frees the row if neither an object nor a pod needs it.
  void DropIfUnused(VolumeClaimId id);
  [[nodiscard]] const VolumeRow* FindVolume(absl::string_view name) const;
  [[nodiscard]] const model::StorageClass* FindClass(absl::string_view name) const;
  // True if claims, volumes and storage classes can be read.
  [[nodiscard]] bool readable() const { return readable_; }
  void SetReadable(bool readable) { readable_ = readable; }

  // ---- objects
  // What a changed object makes others of: claims whose pods are to be classed anew, and the nodes
  // on which other volumes may be attached now.
  struct Effect {
    std::set<VolumeClaimId> claims;
    std::set<std::string> nodes;         // their usage
    std::set<std::string> node_objects;  // their limits
    std::set<std::string> volumes;       // given back by decisions that ended
  };
  Effect Upsert(const model::VolumeObject& object);
  Effect RemoveClaim(absl::string_view ns, absl::string_view name);
  Effect RemoveVolume(absl::string_view name);
  Effect RemoveClass(absl::string_view name);
  Effect RemoveCsiNode(absl::string_view name);
  Effect RemoveCsiDriver(absl::string_view name);
  Effect RemoveCapacity(absl::string_view ns, absl::string_view name);
  Effect RemoveAttachment(absl::string_view name);

  // ---- decisions
  // Sets what is decided for the claim, and whose the volumes are. Appends the volumes that were
  // taken or given back.
  void Decide(VolumeClaimId id, VolumeDecision decision, std::vector<std::string>& changed);

  // ---- what answers are made of
  // The host to which its affinity binds a volume, by label; empty: none, or several.
  static std::string HostOf(const model::PersistentVolume& volume);
  // Of all that an unbound need of that storage class depends on. Never 0.
  [[nodiscard]] uint64_t PictureOf(absl::string_view storage_class) const;
  // The need of an unbound claim; `shared`: it is named by several pods.
  [[nodiscard]] model::UnboundVolumeNeed NeedOf(const VolumeClaimRow& row, bool shared) const;
  // Whether all of the needs can be satisfied for a pod on that node, and how: smaller requests
  // first, each with the smallest volume that matches (upstream's findMatchingVolumes and
  // checkVolumeProvisions).
  [[nodiscard]] VolumeChoice Choose(const std::vector<model::UnboundVolumeNeed>& needs,
                                    const model::Node& node) const;
  // Volumes that the driver may attach to the node; absent: as many as are asked for.
  [[nodiscard]] std::optional<int64_t> LimitOf(absl::string_view driver,
                                               absl::string_view node) const;
  // True if some driver has a limit on the node.
  [[nodiscard]] bool HasLimits(absl::string_view node) const;
  // Names of the volumes that VolumeAttachments show on the node, of that driver; each once.
  void ForEachAttachment(absl::string_view node, absl::string_view driver,
                         absl::FunctionRef<void(const VolumeRow&)> use) const;
  // Driver and unique name of what the claim attaches; an empty driver: nothing that counts.
  struct Attached {
    std::string driver, volume;
  };
  [[nodiscard]] Attached AttachedBy(const VolumeClaimRow& row) const;

  // The first thing that does not agree, or empty.
  [[nodiscard]] std::string Check() const;
  // For ClusterState::Dump().
  [[nodiscard]] std::string Dump() const;

 private:
  // Volumes that are free to be bound, by where they can be.
  struct ClassVolumes {
    std::map<std::string, std::set<std::string>, std::less<>>
        by_host;                      // label kubernetes.io/hostname
    std::set<std::string> elsewhere;  // bound to no single host
  };
  [[nodiscard]] bool IsFree(const VolumeRow& row) const;
  void Index(const VolumeRow& row);
  void Unindex(const VolumeRow& row);
  void ForEachCandidate(const model::UnboundVolumeNeed& need, const model::Node& node,
                        absl::FunctionRef<void(const VolumeRow&)> use) const;
  [[nodiscard]] const VolumeRow* Match(const model::UnboundVolumeNeed& need,
                                       const model::Node& node,
                                       const std::set<std::string>& chosen) const;
  [[nodiscard]] bool HasRoom(const model::StorageClass& storage_class,
                             const model::UnboundVolumeNeed& need, const model::Node& node) const;
  // The class looks different from now on; adds its unbound claims.
  void ChangePicture(absl::string_view storage_class, Effect& effect);
  // The same of the class's own object.
  void ChangeClass(absl::string_view name, Effect& effect);
  void ClaimsOfVolume(absl::string_view volume, Effect& effect) const;
  Effect UpsertClaim(const model::PersistentVolumeClaim& claim);
  Effect UpsertVolume(const model::PersistentVolume& volume);
  Effect UpsertClass(const model::StorageClass& storage_class);
  Effect UpsertCsiNode(const model::CsiNode& node);
  Effect UpsertCsiDriver(const model::CsiDriver& driver);
  Effect UpsertCapacity(const model::CsiStorageCapacity& capacity);
  Effect UpsertAttachment(const model::VolumeAttachment& attachment);
  void FileClaim(const VolumeClaimRow& row, bool add);
  // Ends what is decided for the claim.
  void Withdraw(VolumeClaimRow& row, Effect& effect);
  // The same once the objects say it.
  void SettleDecision(VolumeClaimRow& row, Effect& effect);

  bool readable_ = true;
  std::deque<VolumeClaimRow> claims_;
  std::vector<VolumeClaimId> free_claims_;
  absl::flat_hash_map<std::string, VolumeClaimId> claim_index_;  // by key
  std::map<std::string, VolumeRow, std::less<>> volumes_;
  std::map<std::string, model::StorageClass, std::less<>> classes_;
  std::map<std::string, model::CsiNode, std::less<>> csi_nodes_;
  std::map<std::string, model::CsiDriver, std::less<>> csi_drivers_;
  std::map<std::string, model::CsiStorageCapacity> capacities_;  // by key
  std::map<std::string, model::VolumeAttachment, std::less<>> attachments_;
  // Indexes.
  std::map<std::string, ClassVolumes, std::less<>> free_volumes_;        // by storage class
  std::map<std::string, std::set<VolumeClaimId>, std::less<>> unbound_;  // claims by storage class
  std::map<std::string, std::set<VolumeClaimId>, std::less<>> claims_of_;  // by spec.volumeName
  // Volumes that name a claim in their claimRef, by its key.
  std::map<std::string, std::set<std::string>, std::less<>> prebound_;
  std::map<std::string, std::set<std::string>, std::less<>> attachments_on_;  // by node
  std::map<std::string, uint64_t, std::less<>> pictures_;                     // by storage class
  uint64_t last_picture_ = 1;
};

}  // namespace fairlead::state
