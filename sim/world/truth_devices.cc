#include "sim/world/truth_devices.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {

void TruthDevices::OnCommit(const ApiServer::Commit& commit) {
  if (commit.type == ResourceType::kResourceClaims) OnClaim(commit);
  if (commit.type == ResourceType::kResourceSlices) OnSlice(commit);
  if (commit.type == ResourceType::kDeviceClasses) OnClass(commit);
}

void TruthDevices::OnClaim(const ApiServer::Commit& commit) {
  const ClaimFacts facts = ReadClaim(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after == nullptr) {
    claims_.erase(facts.key());
    return;
  }
  ClaimRow& row = claims_[facts.key()];
  if (row.facts.uid != facts.uid) {
    row = ClaimRow();
    row.made = time_->now();
  }
  if (!facts.allocated) row.allocated_since = absl::InfiniteFuture();
  if (facts.allocated) row.allocated_since = std::min(row.allocated_since, time_->now());
  row.facts = facts;
}

void TruthDevices::OnSlice(const ApiServer::Commit& commit) {
  const SliceFacts facts = ReadSlice(commit.after != nullptr ? *commit.after : *commit.before);
  nodes_changed_at_[facts.node] = time_->now();
  if (commit.after == nullptr) {
    slices_.erase(facts.name);
  } else {
    slices_[facts.name] = facts;
  }
}

void TruthDevices::OnClass(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  const std::string name = TextAt(object, {"metadata", "name"});
  classes_changed_at_[name] = time_->now();
  if (commit.after == nullptr) {
    class_selectors_.erase(name);
  } else {
    class_selectors_[name] = ReadClassSelectors(object);
  }
}

const ClaimFacts* TruthDevices::Find(const std::string& ns, const std::string& name) const {
  const auto found = claims_.find(absl::StrCat(ns, "/", name));
  return found == claims_.end() ? nullptr : &found->second.facts;
}

std::string TruthDevices::HeldTwice(const ClaimFacts& claim) const {
  for (const auto& [key, other] : claims_) {
    if (key == claim.key() || !other.facts.allocated) continue;
    for (const std::string& device : other.facts.devices) {
      if (std::find(claim.devices.begin(), claim.devices.end(), device) == claim.devices.end()) {
        continue;
      }
      return absl::StrCat("device ", device, " is allocated to claim ", key, " too");
    }
  }
  return "";
}

bool TruthDevices::Suits(const DeviceAsk& ask, const std::string& driver,
                         const DeviceFacts& device) const {
  const auto of_class = class_selectors_.find(ask.device_class);
  if (of_class == class_selectors_.end()) return false;
  const auto matches = [&](const std::string& selector) {
    return SelectorMatches(selector, driver, device);
  };
  return std::all_of(of_class->second.begin(), of_class->second.end(), matches) &&
         std::all_of(ask.selectors.begin(), ask.selectors.end(), matches);
}

std::string TruthDevices::Misfit(const ClaimFacts& claim) const {
  const std::set<std::string> distinct(claim.devices.begin(), claim.devices.end());
  if (static_cast<int64_t>(distinct.size()) != claim.ask.count) {
    return absl::StrCat("it has ", distinct.size(), " devices, and asks for ", claim.ask.count);
  }
  for (const std::string& key : claim.devices) {
    bool exists = false, suits = false;
    for (const auto& [name, slice] : slices_) {
      if (slice.node != claim.node) continue;
      for (const DeviceFacts& device : slice.devices) {
        if (slice.KeyOf(device) != key) continue;
        exists = true;
        suits = suits || Suits(claim.ask, slice.driver, device);
      }
    }
    if (!exists) return absl::StrCat("node ", claim.node, " has no device ", key);
    if (!suits) {
      return absl::StrCat("device ", key, " of ", claim.node, " is not what it selects");
    }
  }
  return "";
}

absl::Time TruthDevices::ChangedAt(const std::string& node, const DeviceAsk& ask) const {
  const auto of_node = nodes_changed_at_.find(node);
  const auto of_class = classes_changed_at_.find(ask.device_class);
  return std::max(of_node == nodes_changed_at_.end() ? absl::InfinitePast() : of_node->second,
                  of_class == classes_changed_at_.end() ? absl::InfinitePast() : of_class->second);
}

int64_t TruthDevices::FreeOn(const std::string& node, const DeviceAsk& ask) const {
  std::set<std::string> held, held_here;
  for (const auto& [key, row] : claims_) {
    if (!row.facts.allocated) continue;
    held.insert(row.facts.devices.begin(), row.facts.devices.end());
    if (row.facts.node != node) continue;
    held_here.insert(row.facts.devices.begin(), row.facts.devices.end());
  }
  int64_t free = 0;
  for (const auto& [name, slice] : slices_) {
    if (slice.node != node) continue;
    for (const DeviceFacts& device : slice.devices) {
      const std::string key = slice.KeyOf(device);
      held_here.erase(key);
      if (!held.contains(key) && Suits(ask, slice.driver, device)) ++free;
    }
  }
  // Those that are left in `held_here` are no devices of the node any more.
  return std::max<int64_t>(0, free - static_cast<int64_t>(held_here.size()));
}

// ---- of Truth -----------------------------------------------------------------------------------

const ClaimFacts* Truth::OnlyClaimOf(const PodFacts& pod) const {
  if (pod.claims.size() != 1 || pod.claims[0].claim.empty()) return nullptr;
  const ClaimFacts* const claim = devices_.Find(pod.ns, pod.claims[0].claim);
  if (claim == nullptr || claim->deleting) return nullptr;
  if (pod.claims[0].generated && claim->owner != pod.uid) return nullptr;
  return claim;
}

std::optional<DeviceAsk> Truth::OnlyAskOf(const PodFacts& pod) const {
  if (const ClaimFacts* const claim = OnlyClaimOf(pod); claim != nullptr) return claim->ask;
  if (pod.claims.size() != 1 || pod.claims[0].extended == 0) return std::nullopt;
  return DeviceAsk{kExtendedClass, pod.claims[0].extended, {}};
}

bool Truth::KnowsClaims(const Workload& workload) const {
  std::optional<DeviceAsk> first;
  for (const PodRow* row : workload.waiting) {
    if (row->facts.claims.empty()) continue;
    const std::optional<DeviceAsk> ask = OnlyAskOf(row->facts);
    if (!ask.has_value()) return false;
    if (!first.has_value()) first = ask;
    if (!(*ask == *first)) return false;
  }
  return true;
}

int64_t Truth::DevicePlaces(const Workload& workload, const std::string& node) const {
  constexpr int64_t kAny = INT64_MAX;
  const PodFacts& pod = workload.waiting.front()->facts;
  if (pod.claims.empty()) return kAny;
  const std::optional<DeviceAsk> ask = OnlyAskOf(pod);
  if (!ask.has_value()) return 0;
  const int64_t free = devices_.FreeOn(node, *ask);
  if (!pod.claims[0].generated) {
    const ClaimFacts& claim = *OnlyClaimOf(pod);
    const bool has_it = claim.allocated ? claim.node == node : free >= claim.ask.count;
    return has_it ? kAny : 0;
  }
  int64_t here = 0;  // have their devices there already
  for (const PodRow* row : workload.waiting) {
    const ClaimFacts* const own = OnlyClaimOf(row->facts);
    if (own != nullptr && own->allocated && own->node == node) ++here;
  }
  return here + free / std::max<int64_t>(1, ask->count);
}

}  // namespace fairlead::sim::world
