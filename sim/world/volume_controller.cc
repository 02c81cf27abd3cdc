#include "sim/world/volume_controller.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/plan.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kVolumeControllerActor[] = "volume-controller";

bool Uses(const PodFacts& pod, const std::string& ns, const std::string& claim) {
  return pod.ns == ns && pod.active() &&
         std::any_of(pod.volumes.begin(), pod.volumes.end(),
                     [&](const PodVolume& volume) { return volume.claim == claim; });
}

std::string UsedByAnother(const ApiServer& server, const VolumeClaimFacts& claim,
                          const std::string& uid) {
  std::string user;
  server.ForEach(ResourceType::kPods, [&](const Json& object) {
    const PodFacts pod = ReadPod(object);
    if (pod.uid != uid && pod.running && Uses(pod, claim.ns, claim.name)) user = pod.name;
  });
  return user;
}

}  // namespace

std::string MissingVolume(const ApiServer& server, const Json& pod) {
  const PodFacts facts = ReadPod(pod);
  const Json* const node = server.Find(ResourceType::kNodes, "", facts.node);
  for (const PodVolume& named : facts.volumes) {
    const Json* const object =
        server.Find(ResourceType::kPersistentVolumeClaims, facts.ns, named.claim);
    if (object == nullptr) return absl::StrCat("claim ", named.claim, " does not exist");
    const VolumeClaimFacts claim = ReadVolumeClaim(*object);
    if (!claim.bound) return absl::StrCat("claim ", claim.name, " is not bound");
    if (claim.deleting) return absl::StrCat("claim ", claim.name, " is being deleted");
    const Json* const volume = server.Find(ResourceType::kPersistentVolumes, "", claim.volume);
    if (volume == nullptr) return absl::StrCat("volume ", claim.volume, " does not exist");
    if (!ReadVolume(*volume).IsOf(claim)) {
      return absl::StrCat("volume ", claim.volume, " is not of claim ", claim.name);
    }
    if (node != nullptr && !ReadVolume(*volume).IsUsableOn(ReadNode(*node).labels)) {
      return absl::StrCat("volume ", claim.volume, " cannot be used on ", facts.node);
    }
    if (named.ephemeral && claim.owner != facts.uid) {
      return absl::StrCat("claim ", claim.name, " was made for another pod");
    }
    const std::string user =
        claim.IsForOnePod() ? UsedByAnother(server, claim, facts.uid) : std::string();
    if (!user.empty()) return absl::StrCat("claim ", claim.name, " is in use by pod ", user);
  }
  return "";
}

VolumeController::VolumeController(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type == ResourceType::kPods) OnPod(commit);
    if (commit.type == ResourceType::kPersistentVolumeClaims) OnClaim(commit);
    if (commit.type == ResourceType::kPersistentVolumes) OnVolume(commit);
  });
}

void VolumeController::OnPod(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  if (!HasItems(object, {"spec", "volumes"})) return;
  const PodFacts pod = ReadPod(object);
  if (pod.volumes.empty()) return;
  if (commit.after == nullptr) {
    pods_.erase(pod.uid);
  } else {
    pods_[pod.uid] = {pod.ns, pod.name};
  }
  if (commit.before == nullptr) WakePod({pod.ns, pod.name}, 10, 900);
  if (commit.after != nullptr && !pod.terminal && !pod.terminating) return;
  for (const PodVolume& volume : pod.volumes) WakeClaim({pod.ns, volume.claim});
}

void VolumeController::OnClaim(const ApiServer::Commit& commit) {
  const VolumeClaimFacts claim =
      ReadVolumeClaim(commit.after != nullptr ? *commit.after : *commit.before);
  WakeClaim({claim.ns, claim.name});
  if (commit.after != nullptr && commit.before != nullptr) return;
  server_->ForEach(ResourceType::kPersistentVolumes, [&](const Json& object) {
    const VolumeFacts volume = ReadVolume(object);
    if (volume.claim_ns == claim.ns && volume.claim_name == claim.name) WakeVolume(volume.name);
  });
  if (commit.after != nullptr) return;
  for (const auto& [uid, key] : pods_) {
    if (key.first == claim.ns) WakePod(key, 100, 3000);
  }
}

void VolumeController::OnVolume(const ApiServer::Commit& commit) {
  const VolumeFacts volume = ReadVolume(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after != nullptr) WakeVolume(volume.name);
  if (!volume.claim_name.empty()) WakeClaim({volume.claim_ns, volume.claim_name});
}

void VolumeController::WakePod(const Key& key, int64_t low_ms, int64_t high_ms) {
  if (!waking_pods_.insert(key).second) return;
  time_->After(absl::Milliseconds(random_.Between(low_ms, high_ms)), [this, key] {
    waking_pods_.erase(key);
    SyncPod(key);
  });
}

void VolumeController::WakeClaim(const Key& key) {
  if (!waking_claims_.insert(key).second) return;
  time_->After(absl::Milliseconds(random_.Between(5, 600)), [this, key] {
    waking_claims_.erase(key);
    SyncClaim(key);
  });
}

void VolumeController::WakeVolume(const std::string& name) {
  if (!waking_volumes_.insert(name).second) return;
  time_->After(absl::Milliseconds(random_.Between(5, 600)), [this, name] {
    waking_volumes_.erase(name);
    SyncVolume(name);
  });
}

// ---- claims

void VolumeController::SyncPod(const Key& key) {
  const Json* const pod = server_->Find(ResourceType::kPods, key.first, key.second);
  if (pod == nullptr) return;
  const PodFacts facts = ReadPod(*pod);
  if (facts.terminal || facts.terminating) return;
  const Json specs = Parse(TextAt(*pod, {"metadata", "annotations", kVolumeClaims}));
  for (const PodVolume& volume : facts.volumes) {
    if (server_->Find(ResourceType::kPersistentVolumeClaims, key.first, volume.claim) != nullptr) {
      continue;
    }
    Json claim;
    if (volume.ephemeral) {
      for (const Json& each : ItemsAt(*pod, {"spec", "volumes"})) {
        const Json* const spec = At(each, {"ephemeral", "volumeClaimTemplate", "spec"});
        if (spec != nullptr) claim = MakeVolumeClaim(key.first, volume.claim, *spec);
      }
      claim["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                           {"kind", "Pod"},
                                                           {"name", facts.name},
                                                           {"uid", facts.uid},
                                                           {"controller", true},
                                                           {"blockOwnerDeletion", true}}});
    } else if (specs.is_object() && specs.contains(volume.claim)) {
      claim = MakeVolumeClaim(key.first, volume.claim, specs[volume.claim]);
    } else {
      continue;
    }
    server_->Create(ResourceType::kPersistentVolumeClaims, std::move(claim), kVolumeControllerActor)
        .IgnoreError();
  }
}

// A pod that has no node does not keep the claim.
bool VolumeController::IsUsed(const VolumeClaimFacts& claim) const {
  return std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Json* const pod =
        server_->Find(ResourceType::kPods, entry.second.first, entry.second.second);
    return pod != nullptr && Uses(ReadPod(*pod), claim.ns, claim.name);
  });
}

bool VolumeController::EndClaim(const VolumeClaimFacts& claim) {
  if (claim.deleting) {
    if (!claim.protected_by_finalizer || IsUsed(claim)) return true;
    const auto unprotect = [](Json& changed) {
      changed["metadata"].erase("finalizers");
      return absl::OkStatus();
    };
    server_
        ->Modify(ResourceType::kPersistentVolumeClaims, claim.ns, claim.name, unprotect,
                 kVolumeControllerActor)
        .IgnoreError();
    return true;
  }
  if (claim.owner.empty() || pods_.contains(claim.owner)) return false;
  server_->Remove(ResourceType::kPersistentVolumeClaims, claim.ns, claim.name, "gc").IgnoreError();
  return true;
}

void VolumeController::SyncClaim(const Key& key) {
  const Json* const object =
      server_->Find(ResourceType::kPersistentVolumeClaims, key.first, key.second);
  if (object == nullptr) return;
  const VolumeClaimFacts claim = ReadVolumeClaim(*object);
  if (EndClaim(claim)) return;
  if (claim.bound) {
    const Json* const volume = server_->Find(ResourceType::kPersistentVolumes, "", claim.volume);
    if (volume == nullptr || !ReadVolume(*volume).IsOf(claim)) SetLost(claim);
    return;
  }
  std::optional<VolumeFacts> found;
  server_->ForEach(ResourceType::kPersistentVolumes, [&](const Json& each) {
    VolumeFacts volume = ReadVolume(each);
    if (!found.has_value() && volume.IsOf(claim) && !volume.deleting) found = std::move(volume);
  });
  if (found.has_value()) Bind(claim, *found);
}

void VolumeController::Bind(const VolumeClaimFacts& claim, const VolumeFacts& volume) {
  if (volume.claim_uid.empty() || volume.phase != "Bound") {
    const auto bind = [&](Json& changed) {
      changed["spec"]["claimRef"]["uid"] = claim.uid;
      changed["status"]["phase"] = "Bound";
      return absl::OkStatus();
    };
    server_->Modify(ResourceType::kPersistentVolumes, "", volume.name, bind, kVolumeControllerActor)
        .IgnoreError();
    return WakeClaim({claim.ns, claim.name});
  }
  const auto bind = [&](Json& changed) {
    changed["spec"]["volumeName"] = volume.name;
    changed["metadata"]["annotations"][kBindCompleted] = "yes";
    changed["metadata"]["annotations"][kBoundByController] = "yes";
    changed["status"]["phase"] = "Bound";
    return absl::OkStatus();
  };
  server_
      ->Modify(ResourceType::kPersistentVolumeClaims, claim.ns, claim.name, bind,
               kVolumeControllerActor)
      .IgnoreError();
}

void VolumeController::SetLost(const VolumeClaimFacts& claim) {
  const auto lose = [](Json& changed) {
    changed["status"]["phase"] = "Lost";
    return absl::OkStatus();
  };
  server_
      ->Modify(ResourceType::kPersistentVolumeClaims, claim.ns, claim.name, lose,
               kVolumeControllerActor)
      .IgnoreError();
}

// ---- volumes

void VolumeController::SyncVolume(const std::string& name) {
  const Json* const object = server_->Find(ResourceType::kPersistentVolumes, "", name);
  if (object == nullptr) return;
  const VolumeFacts volume = ReadVolume(*object);
  if (volume.deleting && volume.phase != "Bound" && volume.protected_by_finalizer) {
    const auto unprotect = [](Json& changed) {
      changed["metadata"].erase("finalizers");
      return absl::OkStatus();
    };
    server_->Modify(ResourceType::kPersistentVolumes, "", name, unprotect, kVolumeControllerActor)
        .IgnoreError();
    return;
  }
  if (volume.claim_name.empty()) {
    if (volume.phase != "Available") SetPhase(volume, "Available");
    return;
  }
  const Json* const claim =
      server_->Find(ResourceType::kPersistentVolumeClaims, volume.claim_ns, volume.claim_name);
  if (claim == nullptr || !volume.IsOf(ReadVolumeClaim(*claim))) {
    if (volume.phase == "Released") return Reclaim(volume);
    return SetPhase(volume, "Released");
  }
  const VolumeClaimFacts facts = ReadVolumeClaim(*claim);
  if (facts.volume.empty()) return WakeClaim({facts.ns, facts.name});
  if (facts.volume != name) GiveBack(volume);
}

void VolumeController::SetPhase(const VolumeFacts& volume, const char* phase) {
  const auto change = [&](Json& changed) {
    changed["status"]["phase"] = phase;
    return absl::OkStatus();
  };
  server_->Modify(ResourceType::kPersistentVolumes, "", volume.name, change, kVolumeControllerActor)
      .IgnoreError();
}

// Of a volume that was provisioned, what it is made of goes with it.
void VolumeController::Reclaim(const VolumeFacts& volume) {
  if (volume.reclaim != "Delete") return;
  const Json* const object = server_->Find(ResourceType::kPersistentVolumes, "", volume.name);
  const std::string by_hand = TextAt(*object, {"metadata", "annotations", kMadeByHand});
  server_->RemoveNow(ResourceType::kPersistentVolumes, "", volume.name, kVolumeControllerActor)
      .IgnoreError();
  const auto again = ParsePlan(by_hand);
  if (!again.ok() || again->operations.size() != 1) return;
  const Operation operation = again->operations.front();
  time_->After(absl::Milliseconds(random_.Between(200, 4000)), [this, operation] {
    server_
        ->Create(ResourceType::kPersistentVolumes, MakeLocalVolume(operation),
                 kVolumeControllerActor)
        .IgnoreError();
  });
}

// Its claim has another one.
void VolumeController::GiveBack(const VolumeFacts& volume) {
  if (!volume.driver.empty()) return Reclaim(volume);
  const auto change = [](Json& changed) {
    changed["spec"].erase("claimRef");
    changed["metadata"]["annotations"].erase(kBoundByController);
    changed["status"]["phase"] = "Available";
    return absl::OkStatus();
  };
  server_->Modify(ResourceType::kPersistentVolumes, "", volume.name, change, kVolumeControllerActor)
      .IgnoreError();
}

}  // namespace fairlead::sim::world
