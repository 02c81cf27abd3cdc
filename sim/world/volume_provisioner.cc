#include "sim/world/volume_provisioner.h"

#include <vector>

#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr char kProvisionerActor[] = "provisioner";

}  // namespace

VolumeProvisioner::VolumeProvisioner(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type != ResourceType::kPersistentVolumeClaims || commit.after == nullptr) return;
    OnClaim(*commit.after);
  });
}

void VolumeProvisioner::Misbehave(absl::string_view how, absl::Time until) {
  how_ = std::string(how);
  until_ = until;
}

void VolumeProvisioner::BeHonest() {
  until_ = absl::InfinitePast();
  refuse_one_in_ = 0;
}

void VolumeProvisioner::OnClaim(const Json& object) {
  const VolumeClaimFacts claim = ReadVolumeClaim(object);
  if (!claim.volume.empty() || claim.deleting || working_.contains(claim.uid)) return;
  const Json* const found =
      server_->Find(ResourceType::kStorageClasses, "", claim.ask.storage_class);
  if (found == nullptr) return;
  const StorageClassFacts storage_class = ReadStorageClass(*found);
  if (storage_class.provisioner != kVolumeDriver) return;
  if (storage_class.waits && claim.selected_node.empty()) return;
  Wake(claim);
}

void VolumeProvisioner::Wake(const VolumeClaimFacts& claim) {
  working_.insert(claim.uid);
  const bool slow = time_->now() < until_ && how_ == "slow";
  const auto delay =
      absl::Milliseconds(slow ? random_.Between(3000, 40'000) : random_.Between(20, 1500));
  time_->After(delay, [this, ns = claim.ns, name = claim.name, uid = claim.uid] {
    Provision(ns, name, uid);
  });
}

bool VolumeProvisioner::Refuses() {
  if (time_->now() < until_ && how_ == "refuses") return true;
  return refuse_one_in_ > 0 && random_.Below(static_cast<uint64_t>(refuse_one_in_)) == 0;
}

const Json* VolumeProvisioner::NodeFor(const VolumeClaimFacts& claim) {
  if (!claim.selected_node.empty()) {
    return server_->Find(ResourceType::kNodes, "", claim.selected_node);
  }
  std::vector<const Json*> nodes;
  server_->ForEach(ResourceType::kNodes, [&](const Json& node) { nodes.push_back(&node); });
  return nodes.empty() ? nullptr : nodes[random_.Below(nodes.size())];
}

void VolumeProvisioner::Provision(const std::string& ns, const std::string& name,
                                  const std::string& uid) {
  if (time_->now() < until_ && how_ == "silent") {
    time_->At(until_, [this, ns, name, uid] { Provision(ns, name, uid); });
    return;
  }
  working_.erase(uid);
  const Json* const object = server_->Find(ResourceType::kPersistentVolumeClaims, ns, name);
  if (object == nullptr) return;
  const VolumeClaimFacts claim = ReadVolumeClaim(*object);
  const Json* const found =
      server_->Find(ResourceType::kStorageClasses, "", claim.ask.storage_class);
  if (claim.uid != uid || !claim.volume.empty() || claim.deleting || found == nullptr) return;
  const StorageClassFacts storage_class = ReadStorageClass(*found);
  if (storage_class.waits && claim.selected_node.empty()) return;
  const Json* const node = NodeFor(claim);
  if (node == nullptr || Refuses()) return Refuse(claim);
  ++made_;
  server_
      ->Create(ResourceType::kPersistentVolumes,
               MakeProvisionedVolume(claim, storage_class, ReadNode(*node).labels),
               kProvisionerActor)
      .IgnoreError();
}

void VolumeProvisioner::Refuse(const VolumeClaimFacts& claim) {
  ++refused_;
  if (claim.selected_node.empty()) {  // nothing schedules it again
    working_.insert(claim.uid);
    time_->After(absl::Seconds(2), [this, claim] { Provision(claim.ns, claim.name, claim.uid); });
    return;
  }
  const auto reschedule = [](Json& changed) {
    changed["metadata"]["annotations"].erase(kSelectedNode);
    return absl::OkStatus();
  };
  server_
      ->Modify(ResourceType::kPersistentVolumeClaims, claim.ns, claim.name, reschedule,
               kProvisionerActor)
      .IgnoreError();
}

}  // namespace fairlead::sim::world
