// Objects of storage as actors of the world create them. One CSI driver (kVolumeDriver) provisions
// volumes; local volumes are made by hand.
//
// Fields that are read of an operation:
//   storage-class  name; where: zone (volumes by node affinity to the zone) | label (to the zone,
//                  by their label alone) | host (of one node) | none (nothing provisions them);
//                  immediate: 1; zones (by commas): in which it can provision
//   volume         name class node gib modes: one that is there, of that node, and made again when
//                  it is reclaimed
//   csi-node       name count: so many volumes of the driver may be attached there
//   pod            volume: own (a claim of the pod's name, which it finds again if it is made
//                  again) | ephemeral (one that goes with the pod) | shared (one for all pods of
//                  the job) | both (own and shared)
//                  volume_class volume_gib; volume_modes: of the shared claim
//                  volume_of: the job whose shared claim it is; empty: its own
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "sim/world/json.h"
#include "sim/world/plan.h"
#include "sim/world/volume_facts.h"

namespace fairlead::sim::world {

inline constexpr char kVolumeDriver[] = "csi.example.com";
// Of a volume: made again when it is reclaimed.
inline constexpr char kMadeByHand[] = "sim/made-by-hand";

Json MakeStorageClass(const Operation& fields);
Json MakeLocalVolume(const Operation& fields);
Json MakeCsiNode(const std::string& node, int64_t volumes);
// What the provisioner makes for the claim, for a node with these labels.
Json MakeProvisionedVolume(const VolumeClaimFacts& claim, const StorageClassFacts& storage_class,
                           const Labels& node);
std::string ProvisionedVolumeName(const VolumeClaimFacts& claim);
Json MakeVolumeClaim(const std::string& ns, const std::string& name, Json spec);
// Adds what the fields say of volumes to a pod of that name.
void AddVolumes(Json& pod, const Operation& fields, const std::string& name);
// The claim that shared claims of the job are.
std::string SharedVolumeClaimName(const std::string& job);
// The pod's own.
std::string OwnVolumeClaimName(const std::string& pod);

}  // namespace fairlead::sim::world
