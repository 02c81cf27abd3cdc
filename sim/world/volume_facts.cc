#include "sim/world/volume_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"

namespace fairlead::sim::world {
namespace {

bool HasFinalizer(const Json& object, const char* finalizer) {
  const Json& all = ItemsAt(object, {"metadata", "finalizers"});
  return std::find(all.begin(), all.end(), Json(finalizer)) != all.end();
}

std::vector<std::string> Modes(const Json& spec) {
  std::vector<std::string> out;
  for (const Json& mode : ItemsAt(spec, {"accessModes"})) out.push_back(Text(&mode));
  return out;
}

int64_t Bytes(const Json* value) { return value == nullptr ? 0 : ReadAmount(*value, false); }

}  // namespace

std::vector<PodVolume> ReadPodVolumes(const Json& pod) {
  std::vector<PodVolume> out;
  for (const Json& volume : ItemsAt(pod, {"spec", "volumes"})) {
    PodVolume one{TextAt(volume, {"persistentVolumeClaim", "claimName"}), false};
    if (At(volume, {"ephemeral"}) != nullptr) {
      one = {absl::StrCat(TextAt(pod, {"metadata", "name"}), "-", TextAt(volume, {"name"})), true};
    }
    if (one.claim.empty() || std::find(out.begin(), out.end(), one) != out.end()) continue;
    out.push_back(std::move(one));
  }
  return out;
}

bool LacksVolumeClaim(const Json& pod) {
  const std::vector<PodVolume> volumes = ReadPodVolumes(pod);
  if (volumes.empty()) return false;
  // Not parsed: every commit of a pod is asked.
  const std::string specs = TextAt(pod, {"metadata", "annotations", kVolumeClaims});
  return std::any_of(volumes.begin(), volumes.end(), [&](const PodVolume& volume) {
    return !volume.ephemeral && !absl::StrContains(specs, absl::StrCat("\"", volume.claim, "\":"));
  });
}

bool VolumeClaimFacts::IsForOnePod() const {
  return std::find(ask.modes.begin(), ask.modes.end(), "ReadWriteOncePod") != ask.modes.end();
}

VolumeClaimFacts ReadVolumeClaim(const Json& claim) {
  VolumeClaimFacts out;
  out.ns = TextAt(claim, {"metadata", "namespace"});
  out.name = TextAt(claim, {"metadata", "name"});
  out.uid = TextAt(claim, {"metadata", "uid"});
  for (const Json& owner : ItemsAt(claim, {"metadata", "ownerReferences"})) {
    if (TextAt(owner, {"kind"}) == "Pod") out.owner = TextAt(owner, {"uid"});
  }
  if (const Json* const spec = At(claim, {"spec"})) {
    out.ask = {TextAt(*spec, {"storageClassName"}),
               Bytes(At(*spec, {"resources", "requests", "storage"})), Modes(*spec)};
  }
  out.volume = TextAt(claim, {"spec", "volumeName"});
  out.selected_node = TextAt(claim, {"metadata", "annotations", kSelectedNode});
  out.bound =
      !out.volume.empty() && At(claim, {"metadata", "annotations", kBindCompleted}) != nullptr;
  out.lost = TextAt(claim, {"status", "phase"}) == "Lost";
  out.deleting = At(claim, {"metadata", "deletionTimestamp"}) != nullptr;
  out.protected_by_finalizer = HasFinalizer(claim, kVolumeClaimFinalizer);
  return out;
}

bool VolumeFacts::IsOf(const VolumeClaimFacts& claim) const {
  return claim_ns == claim.ns && claim_name == claim.name &&
         (claim_uid.empty() || claim_uid == claim.uid);
}

bool VolumeFacts::IsFree() const { return claim_name.empty() && phase == "Available" && !deleting; }

bool VolumeFacts::Satisfies(const VolumeAsk& ask) const {
  return has.storage_class == ask.storage_class && has.bytes >= ask.bytes &&
         std::all_of(ask.modes.begin(), ask.modes.end(), [&](const std::string& mode) {
           return std::find(has.modes.begin(), has.modes.end(), mode) != has.modes.end();
         });
}

bool VolumeFacts::IsUsableOn(const Labels& node) const {
  if (has_affinity && !AnyTermMatches(node_terms, node)) return false;
  const auto of_node = node.find(kZoneLabel);
  // A node without a zone is not asked about it.
  return zone.empty() || of_node == node.end() || of_node->second == zone;
}

VolumeFacts ReadVolume(const Json& volume) {
  VolumeFacts out;
  out.name = TextAt(volume, {"metadata", "name"});
  out.uid = TextAt(volume, {"metadata", "uid"});
  out.phase = TextAt(volume, {"status", "phase"});
  if (const Json* const spec = At(volume, {"spec"})) {
    out.reclaim = TextAt(*spec, {"persistentVolumeReclaimPolicy"});
    out.has = {TextAt(*spec, {"storageClassName"}), Bytes(At(*spec, {"capacity", "storage"})),
               Modes(*spec)};
    out.claim_ns = TextAt(*spec, {"claimRef", "namespace"});
    out.claim_name = TextAt(*spec, {"claimRef", "name"});
    out.claim_uid = TextAt(*spec, {"claimRef", "uid"});
    out.driver = TextAt(*spec, {"csi", "driver"});
    const Json* const required = At(*spec, {"nodeAffinity", "required"});
    out.has_affinity = required != nullptr;
    bool unknown = false;
    out.node_terms = ReadNodeSelector(required, unknown);
  }
  out.zone = TextAt(volume, {"metadata", "labels", kZoneLabel});
  out.deleting = At(volume, {"metadata", "deletionTimestamp"}) != nullptr;
  out.protected_by_finalizer = HasFinalizer(volume, kVolumeFinalizer);
  return out;
}

bool StorageClassFacts::IsProvisioned() const {
  return !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner";
}

bool StorageClassFacts::IsAllowedOn(const Labels& node) const {
  if (zones.empty()) return true;
  const auto zone = node.find(kZoneLabel);
  return zone != node.end() && std::find(zones.begin(), zones.end(), zone->second) != zones.end();
}

StorageClassFacts ReadStorageClass(const Json& storage_class) {
  StorageClassFacts out;
  out.name = TextAt(storage_class, {"metadata", "name"});
  out.provisioner = TextAt(storage_class, {"provisioner"});
  out.waits = TextAt(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
  out.where = TextAt(storage_class, {"parameters", "where"});
  for (const Json& term : ItemsAt(storage_class, {"allowedTopologies"})) {
    for (const Json& expression : ItemsAt(term, {"matchLabelExpressions"})) {
      for (const Json& value : ItemsAt(expression, {"values"})) out.zones.push_back(Text(&value));
    }
  }
  return out;
}

}  // namespace fairlead::sim::world
