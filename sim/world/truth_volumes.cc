#include "sim/world/truth_volumes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/truth.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr int64_t kAny = INT64_MAX;

auto Decisive(const VolumeClaimFacts& claim) {
  return std::tie(claim.uid, claim.volume, claim.selected_node, claim.bound, claim.lost,
                  claim.deleting);
}

}  // namespace

void TruthVolumes::OnCommit(const ApiServer::Commit& commit) {
  if (commit.type == ResourceType::kPersistentVolumeClaims) OnClaim(commit);
  if (commit.type == ResourceType::kPersistentVolumes) OnVolume(commit);
  if (commit.type == ResourceType::kCsiNodes) OnCsiNode(commit);
  if (commit.type != ResourceType::kStorageClasses) return;
  const StorageClassFacts facts =
      ReadStorageClass(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after == nullptr) {
    classes_.erase(facts.name);
  } else {
    classes_[facts.name] = facts;
  }
}

void TruthVolumes::OnClaim(const ApiServer::Commit& commit) {
  const VolumeClaimFacts facts =
      ReadVolumeClaim(commit.after != nullptr ? *commit.after : *commit.before);
  const std::string key = facts.key();
  const auto former = claims_.find(key);
  if (former != claims_.end() && former->second.facts.bound && !former->second.facts.deleting) {
    bound_until_[key] = time_->now();
  }
  if (commit.after == nullptr) {
    claims_.erase(key);
    return;
  }
  VolumeClaimRow& row = claims_[key];
  if (Decisive(row.facts) != Decisive(facts)) row.changed_at = time_->now();
  row.facts = facts;
}

void TruthVolumes::OnVolume(const ApiServer::Commit& commit) {
  const VolumeFacts facts = ReadVolume(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after == nullptr) {
    volumes_.erase(facts.name);
    volumes_ended_[facts.name] = time_->now();
    return;
  }
  const auto [at, added] = volumes_.try_emplace(facts.name);
  if (added || at->second.facts.zone != facts.zone) at->second.changed_at = time_->now();
  at->second.facts = facts;
}

void TruthVolumes::OnCsiNode(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  const std::string node = TextAt(object, {"metadata", "name"});
  limits_.erase(node);
  if (commit.after == nullptr) return;
  for (const Json& driver : ItemsAt(object, {"spec", "drivers"})) {
    if (TextAt(driver, {"name"}) != kVolumeDriver) continue;
    limits_[node] = {IntAt(driver, {"allocatable", "count"}, kAny), time_->now()};
  }
}

const VolumeClaimRow* TruthVolumes::FindClaim(const std::string& ns,
                                              const std::string& name) const {
  const auto found = claims_.find(absl::StrCat(ns, "/", name));
  return found == claims_.end() ? nullptr : &found->second;
}

const VolumeRow* TruthVolumes::FindVolume(const std::string& name) const {
  const auto found = volumes_.find(name);
  return found == volumes_.end() ? nullptr : &found->second;
}

const StorageClassFacts* TruthVolumes::FindClass(const std::string& name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : &found->second;
}

const VolumeFacts* TruthVolumes::VolumeOf(const VolumeClaimFacts& claim) const {
  const auto found = std::find_if(volumes_.begin(), volumes_.end(), [&](const auto& entry) {
    return entry.second.facts.IsOf(claim);
  });
  return found == volumes_.end() ? nullptr : &found->second.facts;
}

bool TruthVolumes::WasBoundSince(const std::string& ns, const std::string& name,
                                 absl::Time since) const {
  const std::string key = absl::StrCat(ns, "/", name);
  const auto ended = bound_until_.find(key);
  if (ended != bound_until_.end() && ended->second >= since) return true;
  const auto claim = claims_.find(key);
  if (claim == claims_.end() || !claim->second.facts.bound) return false;
  const auto gone = volumes_ended_.find(claim->second.facts.volume);
  return volumes_.contains(claim->second.facts.volume) ||
         (gone != volumes_ended_.end() && gone->second >= since);
}

bool TruthVolumes::IsOnItsWay(const VolumeClaimFacts& claim) const {
  return !claim.bound &&
         (!claim.selected_node.empty() || !claim.volume.empty() || VolumeOf(claim) != nullptr);
}

bool TruthVolumes::IsFresh(const VolumeClaimFacts& claim) const {
  return !claim.bound && !claim.lost && !claim.deleting && !IsOnItsWay(claim);
}

int64_t TruthVolumes::PlacesOf(const VolumeClaimFacts& claim, const std::string& node,
                               const Labels& labels) const {
  if (claim.bound) {
    const VolumeRow* const volume = FindVolume(claim.volume);
    return volume != nullptr && volume->facts.IsUsableOn(labels) ? kAny : 0;
  }
  if (const VolumeFacts* const volume = VolumeOf(claim)) {
    return volume->IsUsableOn(labels) ? kAny : 0;
  }
  if (!claim.selected_node.empty() && claim.selected_node != node) return 0;
  const StorageClassFacts* const storage_class = FindClass(claim.ask.storage_class);
  if (storage_class == nullptr) return 0;
  if (storage_class->IsProvisioned()) return storage_class->IsAllowedOn(labels) ? kAny : 0;
  return std::count_if(volumes_.begin(), volumes_.end(), [&](const auto& entry) {
    const VolumeFacts& volume = entry.second.facts;
    return volume.IsFree() && volume.Satisfies(claim.ask) && volume.IsUsableOn(labels);
  });
}

bool TruthVolumes::IsAttached(const VolumeClaimFacts& claim) const {
  if (!claim.volume.empty()) {
    const VolumeRow* const volume = FindVolume(claim.volume);
    return volume != nullptr && volume->facts.driver == kVolumeDriver;
  }
  const StorageClassFacts* const storage_class = FindClass(claim.ask.storage_class);
  return storage_class != nullptr && storage_class->provisioner == kVolumeDriver;
}

std::optional<TruthVolumes::Limit> TruthVolumes::LimitOf(const std::string& node) const {
  const auto found = limits_.find(node);
  return found == limits_.end() ? std::nullopt : std::make_optional(found->second);
}

// ---- of Truth -----------------------------------------------------------------------------------

std::string Truth::VolumeUser(const PodRow& pod, const std::string& claim) const {
  for (const auto& [key, row] : pods_) {
    if (&row == &pod || row.facts.ns != pod.facts.ns || !row.facts.active()) continue;
    for (const PodVolume& volume : row.facts.volumes) {
      if (volume.claim == claim) return key;
    }
  }
  return "";
}

std::set<std::string> Truth::AttachedTo(const std::string& node) const {
  std::set<std::string> attached;
  for (const auto& [key, row] : pods_) {
    if (row.facts.node != node || !row.facts.active()) continue;
    for (const PodVolume& volume : row.facts.volumes) {
      const VolumeClaimRow* const claim = volumes_.FindClaim(row.facts.ns, volume.claim);
      if (claim != nullptr && volumes_.IsAttached(claim->facts)) {
        attached.insert(claim->facts.key());
      }
    }
  }
  return attached;
}

bool Truth::KnowsVolumes(const Workload& workload) const {
  const PodFacts& first = workload.waiting.front()->facts;
  const bool alone = workload.waiting.size() == 1;
  for (const PodRow* row : workload.waiting) {
    const PodFacts& pod = row->facts;
    if (pod.volumes.size() != first.volumes.size()) return false;
    int64_t by_hand = 0;
    for (size_t i = 0; i < pod.volumes.size(); ++i) {
      const VolumeClaimRow* const claim = volumes_.FindClaim(pod.ns, pod.volumes[i].claim);
      const VolumeClaimRow* const of_first = volumes_.FindClaim(first.ns, first.volumes[i].claim);
      if (claim == nullptr || of_first == nullptr) return false;
      const VolumeClaimFacts& facts = claim->facts;
      if (facts.lost || facts.deleting) return false;
      if (pod.volumes[i].ephemeral && facts.owner != pod.uid) return false;
      const StorageClassFacts* const of_class = volumes_.FindClass(facts.ask.storage_class);
      if (!facts.bound) {
        if (of_class == nullptr || !of_class->waits) return false;
        if (!of_class->IsProvisioned()) ++by_hand;
      }
      const bool shared = !alone && of_first == claim;
      if (shared && facts.IsForOnePod() && workload.needed() > 1) return false;
      // Of pods that have a claim each, nothing may be decided: which of them goes where is not
      // judged.
      if (!alone && pod.volumes[i].claim != first.volumes[i].claim &&
          (!volumes_.IsFresh(facts) || !volumes_.IsFresh(of_first->facts))) {
        return false;
      }
      if (!(facts.ask == of_first->facts.ask)) return false;
    }
    // Of two claims of one class each may have the other's volume.
    if (by_hand > 1) return false;
  }
  return true;
}

bool Truth::SharesUnboundVolume(const Workload& workload) const {
  const PodFacts& first = workload.waiting.front()->facts;
  if (workload.waiting.size() < 2) return false;
  const PodFacts& other = workload.waiting[1]->facts;
  return std::any_of(first.volumes.begin(), first.volumes.end(), [&](const PodVolume& volume) {
    const VolumeClaimRow* const claim = volumes_.FindClaim(first.ns, volume.claim);
    return claim != nullptr && !claim->facts.bound &&
           std::find(other.volumes.begin(), other.volumes.end(), volume) != other.volumes.end();
  });
}

int64_t Truth::VolumePlaces(const Workload& workload, const std::string& node) const {
  const PodRow& first = *workload.waiting.front();
  if (first.facts.volumes.empty()) return kAny;
  const Labels& labels = nodes_.at(node).facts.labels;
  int64_t places = kAny, more = 0;
  const std::optional<TruthVolumes::Limit> limit = volumes_.LimitOf(node);
  const std::set<std::string> attached =
      limit.has_value() ? AttachedTo(node) : std::set<std::string>();
  for (const PodVolume& volume : first.facts.volumes) {
    const VolumeClaimRow* const claim = volumes_.FindClaim(first.facts.ns, volume.claim);
    if (claim == nullptr) return 0;
    if (claim->facts.IsForOnePod() && !VolumeUser(first, volume.claim).empty()) return 0;
    places = std::min(places, volumes_.PlacesOf(claim->facts, node, labels));
    if (volumes_.IsAttached(claim->facts) && !attached.contains(claim->facts.key())) ++more;
  }
  if (!limit.has_value() || more == 0) return places;
  const int64_t free = limit->volumes - static_cast<int64_t>(attached.size());
  return std::min(places, std::max<int64_t>(0, free) / more);
}

bool Truth::AwaitsVolumes(const Workload& workload, absl::Time since) const {
  return std::any_of(workload.waiting.begin(), workload.waiting.end(), [&](const PodRow* row) {
    return std::any_of(
        row->facts.volumes.begin(), row->facts.volumes.end(), [&](const PodVolume& volume) {
          const VolumeClaimRow* const claim = volumes_.FindClaim(row->facts.ns, volume.claim);
          return claim != nullptr &&
                 (claim->changed_at >= since || volumes_.IsOnItsWay(claim->facts));
        });
  });
}

}  // namespace fairlead::sim::world
