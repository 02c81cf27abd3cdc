#include "scheduler/state/device_allocator.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "scheduler/state/device_placement.h"

namespace fairlead::state {
namespace {

// Names of claims have no spaces.
constexpr char kViewOf[] = " for ";

// All but what every write changes: the version, and finalizers.
bool ReadsTheSame(const model::ResourceClaim& a, const model::ResourceClaim& b) {
  const auto consumers = [](const model::ResourceClaim& claim) {
    return std::set<std::string>(claim.reserved_for.begin(), claim.reserved_for.end());
  };
  return a.meta.uid == b.meta.uid && a.meta.labels == b.meta.labels &&
         a.meta.owners == b.meta.owners &&
         a.meta.deletion.has_value() == b.meta.deletion.has_value() && a.requests == b.requests &&
         a.constraints == b.constraints && a.config == b.config && a.allocated == b.allocated &&
         a.devices == b.devices && a.node_terms == b.node_terms && a.invalid == b.invalid &&
         a.reserved_for_others == b.reserved_for_others && consumers(a) == consumers(b);
}

// Allocated on devices of no single node, by what the allocation says.
bool IsOfNoNode(const model::ResourceClaim& claim) {
  return claim.allocated && !claim.node_terms.empty() &&
         std::all_of(claim.node_terms.begin(), claim.node_terms.end(),
                     [](const model::NodeSelectorTerm& term) { return term.match_fields.empty(); });
}

}  // namespace

std::string ViewKey(absl::string_view device_key, absl::string_view claim) {
  return absl::StrCat(device_key, kViewOf, claim);
}

absl::string_view DeviceOfKey(absl::string_view key) { return key.substr(0, key.find(kViewOf)); }

bool DeviceAllocator::UpsertClass(const model::DeviceClass& device_class) {
  classes_[device_class.meta.name] = device_class;
  RefreshDemandsOf(device_class.meta.name);
  return ReadResourceNames();
}

bool DeviceAllocator::RemoveClass(absl::string_view name) {
  const auto it = classes_.find(name);
  if (it == classes_.end()) return false;
  classes_.erase(it);
  RefreshDemandsOf(name);
  return ReadResourceNames();
}

void DeviceAllocator::RefreshDemandsOf(absl::string_view device_class) {
  for (auto& [name, demand] : demands_) {
    if (demand.device_class == device_class) RefreshDemand(demand);
  }
}

bool DeviceAllocator::Demand::Suits(const NodeDevice& device) const {
  return usable &&
         std::all_of(selectors.begin(), selectors.end(), [&](const DeviceSelector& selector) {
           return selector.Matches(device.driver, device.device);
         });
}

bool DeviceAllocator::Demand::IsBarred(const NodeDevice& device) const {
  return std::any_of(device.device.taints.begin(), device.device.taints.end(),
                     [&](const model::DeviceTaint& taint) {
                       return std::none_of(
                           tolerates.begin(), tolerates.end(),
                           [&](const auto& toleration) { return toleration.Tolerates(taint); });
                     });
}

void DeviceAllocator::Demand::Look(NodeDevice& device) const {
  device.suits[index] = Suits(device);
  device.barred[index] = IsBarred(device);
}

void DeviceAllocator::RefreshDemand(Demand& demand) {
  const auto read = [&] {
    demand.selectors.clear();
    const auto found = classes_.find(demand.device_class);
    if (found == classes_.end() || !found->second.invalid.empty()) return false;
    for (const std::vector<std::string>* texts : {&demand.texts, &found->second.selectors}) {
      for (const std::string& text : *texts) {
        absl::StatusOr<DeviceSelector> selector = DeviceSelector::Parse(text);
        if (!selector.ok()) return false;
        demand.selectors.push_back(*std::move(selector));
      }
    }
    return true;
  };
  demand.usable = read();
  left_out_.clear();
  inventory_.ForEachDevice([&](NodeDevice& device) { demand.Look(device); });
}

void DeviceAllocator::LookAt(NodeDevice& device) const {
  for (const auto& [name, demand] : demands_) demand.Look(device);
}

void DeviceAllocator::AddDemand(const std::string& name, const model::DeviceRequest& option) {
  ++demand_version_;
  std::bitset<kMaxDemands> taken;
  for (const auto& [other, known] : demands_) taken.set(known.index);
  Demand& demand = demands_[name];
  demand.device_class = option.device_class;
  demand.texts = option.selectors;
  demand.tolerates = option.tolerates;
  while (taken[demand.index]) ++demand.index;
  RefreshDemand(demand);
}

absl::Status DeviceAllocator::CheckRequest(const model::DeviceRequest& request) const {
  const auto known = demands_.find(DemandName(request));
  if (known != demands_.end() && known->second.usable) return absl::OkStatus();
  const auto device_class = classes_.find(request.device_class);
  if (device_class == classes_.end()) {
    return absl::NotFoundError(absl::StrCat("device class ", request.device_class, kDoesNotExist));
  }
  if (!device_class->second.invalid.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device class ", request.device_class, ": ", device_class->second.invalid));
  }
  for (const std::vector<std::string>* texts :
       {&request.selectors, &device_class->second.selectors}) {
    for (const std::string& text : *texts) {
      FAIRLEAD_RETURN_IF_ERROR(DeviceSelector::Parse(text).status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RequestDemand>> DeviceAllocator::AskOf(
    const model::ResourceClaim& claim) const {
  if (!claim.invalid.empty()) return absl::InvalidArgumentError(claim.invalid);
  for (const model::DeviceRequest& request : claim.requests) {
    for (size_t i = 0; i < OptionCount(request); ++i) {
      FAIRLEAD_RETURN_IF_ERROR(CheckRequest(OptionOf(request, i)));
    }
  }
  const ClaimShape shape = ShapeOf(claim);
  std::vector<RequestDemand> out;
  if (!claim.allocated) {
    for (auto& [demand, count] : ShapeDemands(shape)) out.push_back({demand, count});
    if (!IsPlain(shape)) out.push_back({ShapeName(shape), shape.weight});
    return out;
  }
  for (size_t r = 0; r < claim.requests.size(); ++r) {
    const std::vector<ShapeOption>& options = shape.requests[r].options;
    for (size_t i = 0; i < options.size(); ++i) {
      const ShapeOption& option = options[i];
      if (option.admin || (IsOfNoNode(claim) && !IsGpuDemand(option.demand))) continue;
      const std::string name = RequestName(claim.requests[r], i);
      const int64_t got = std::count_if(claim.devices.begin(), claim.devices.end(),
                                        [&](const auto& device) { return device.request == name; });
      const int64_t count = options.size() == 1 && !option.all ? option.count : got;
      if (count > 0) out.push_back({option.demand, count});
    }
  }
  return out;
}

absl::StatusOr<std::vector<RequestDemand>> DeviceAllocator::DemandsOf(
    const model::ResourceClaim& claim) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<RequestDemand> out, AskOf(claim));
  const auto full = [] {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMaxDemands, " different device selectors in the cluster"));
  };
  for (const model::DeviceRequest& request : claim.requests) {
    for (size_t i = 0; i < OptionCount(request); ++i) {
      const model::DeviceRequest& option = OptionOf(request, i);
      const std::string name = DemandName(option);
      if (demands_.contains(name)) continue;
      if (demands_.size() + shapes_.size() >= kMaxDemands) return full();
      AddDemand(name, option);
    }
  }
  for (const RequestDemand& demand : out) {
    if (!IsShape(demand.demand) || shapes_.contains(demand.demand)) continue;
    if (demands_.size() + shapes_.size() >= kMaxDemands) return full();
    ++demand_version_;
    shapes_[demand.demand] = ShapeOf(claim);
  }
  return out;
}

bool DeviceAllocator::ForgetUnused(const std::set<std::string>& used) {
  std::set<std::string> kept = used;
  const auto keep = [&](const ClaimShape& shape) {
    for (const ShapeRequest& request : shape.requests) {
      for (const ShapeOption& option : request.options) kept.insert(option.demand);
    }
  };
  for (const auto& [key, row] : claims_) {
    if (!row.exists || row.consumers.empty()) continue;
    const ClaimShape shape = ShapeOf(row.object);
    keep(shape);
    if (!IsPlain(shape)) kept.insert(ShapeName(shape));
  }
  for (const auto& [name, shape] : shapes_) {
    if (kept.contains(name)) keep(shape);
  }
  const auto unused = [&](const auto& entry) { return !kept.contains(entry.first); };
  left_out_.clear();
  const size_t forgotten = std::erase_if(demands_, unused) + std::erase_if(shapes_, unused);
  if (forgotten > 0) ++demand_version_;
  return forgotten > 0;
}

const ClaimShape* DeviceAllocator::FindShape(absl::string_view name) const {
  const auto it = shapes_.find(name);
  return it == shapes_.end() ? nullptr : &it->second;
}

size_t DeviceAllocator::IndexOf(absl::string_view demand) const {
  const auto it = demands_.find(demand);
  return it == demands_.end() ? kMaxDemands : it->second.index;
}

const std::string& DeviceAllocator::LeftOut(absl::string_view demand) const {
  if (left_out_of_ != inventory_.version()) left_out_.clear();
  left_out_of_ = inventory_.version();
  const auto known = left_out_.find(demand);
  if (known != left_out_.end()) return known->second;
  constexpr size_t kMaxNamed = 3;
  const size_t index = IndexOf(demand);
  std::set<std::string> left_out;
  bool others = index == kMaxDemands;
  inventory_.ForEachDevice([&](const NodeDevice& device) {
    if (others || !device.suits[index]) return;
    others = !device.device.for_several;
    left_out.insert(device.key);
  });
  std::string text;
  if (!others && !left_out.empty()) {
    const size_t named = std::min(kMaxNamed, left_out.size());
    text =
        absl::StrJoin(left_out.begin(), std::next(left_out.begin(), static_cast<int>(named)), ", ");
    if (named < left_out.size()) {
      absl::StrAppend(&text, " and ", left_out.size() - named, " more");
    }
  }
  return left_out_.emplace(std::string(demand), std::move(text)).first->second;
}

std::vector<std::pair<std::string, int64_t>> DeviceAllocator::CountDevices(
    absl::string_view node) const {
  std::vector<std::pair<std::string, int64_t>> counts;
  const std::vector<const NodeDevice*>& devices = inventory_.DevicesOf(node);
  if (devices.empty()) return counts;
  for (const auto& [name, shape] : shapes_) {
    const int64_t claims = CountClaims(*this, node, shape);
    if (claims > 0) counts.emplace_back(name, shape.weight * claims);
  }
  for (const auto& [name, demand] : demands_) {
    const auto count = std::count_if(devices.begin(), devices.end(), [&](const NodeDevice* device) {
      return device->device.MayBeGiven() && device->suits[demand.index];
    });
    if (count > 0) counts.emplace_back(name, count);
  }
  return counts;
}

bool DeviceAllocator::IsHeldOn(const ClaimRow& row, absl::string_view node) const {
  if (row.devices.empty()) return false;
  return std::all_of(row.devices.begin(), row.devices.end(), [&](const std::string& key) {
    const NodeDevice* device = inventory_.Find(DeviceOfKey(key), node);
    return device != nullptr &&
           (!device->device.binds_to_node || row.node.empty() || row.node == node);
  });
}

const std::string* DeviceAllocator::HolderOf(const std::string& device_key) const {
  const auto it = holder_of_.find(device_key);
  return it == holder_of_.end() ? nullptr : &it->second;
}

const ClaimRow* DeviceAllocator::Find(absl::string_view key) const {
  const auto it = claims_.find(key);
  return it == claims_.end() ? nullptr : &it->second;
}

ClaimRow& DeviceAllocator::Row(const std::string& key) {
  const auto [it, added] = claims_.try_emplace(key);
  if (!added) return it->second;
  if (free_ids_.empty()) {
    it->second.id = static_cast<ClaimId>(keys_.size());
    keys_.push_back(&it->first);
  } else {
    it->second.id = free_ids_.back();
    free_ids_.pop_back();
    keys_[it->second.id] = &it->first;
  }
  return it->second;
}

void DeviceAllocator::TellMoved(ClaimId claim, const std::vector<std::string>& devices) const {
  std::set<std::string> nodes;
  for (const std::string& device : devices) inventory_.AddNodesOf(DeviceOfKey(device), nodes);
  for (const std::string& node : nodes) moved_(claim, node);
}

void DeviceAllocator::Hold(const std::string& key, ClaimRow& row, std::vector<std::string> devices,
                           absl::string_view node) {
  Free(key, row);
  row.devices = std::move(devices);
  if (!row.devices.empty()) row.node = std::string(node);
  std::vector<std::pair<ClaimId, std::string>> losers;
  for (const std::string& device : row.devices) {
    std::string& holder = holder_of_[device];
    // The API server's word goes: another claim that was given it by a decision has to do without.
    if (!holder.empty() && holder != key) {
      ClaimRow& other = claims_.at(holder);
      std::erase(other.devices, device);
      if (other.devices.empty()) other.node.clear();
      losers.emplace_back(other.id, device);
    }
    holder = key;
  }
  for (const auto& [loser, device] : losers) TellMoved(loser, {device});
  TellMoved(row.id, row.devices);
}

void DeviceAllocator::Free(const std::string& key, ClaimRow& row) {
  for (const std::string& device : row.devices) {
    const auto it = holder_of_.find(device);
    if (it != holder_of_.end() && it->second == key) holder_of_.erase(it);
  }
  row.node.clear();
  TellMoved(row.id, std::exchange(row.devices, {}));
}

bool DeviceAllocator::UpsertClaim(const model::ResourceClaim& claim) {
  const std::string key = model::Key(claim.meta);
  ClaimRow& row = Row(key);
  const bool was_implied = std::exchange(row.implied, false);
  if (row.exists && !was_implied && ReadsTheSame(row.object, claim)) {
    row.object = claim;
    return false;
  }
  const bool was_allocated = row.exists && row.object.allocated;
  row.exists = true;
  row.object = claim;
  if (claim.allocated) {
    std::vector<std::string> devices;
    for (const model::AllocatedDevice& device : claim.devices) {
      std::string device_key = DeviceKey(device.driver, device.pool, device.device);
      if (device.admin_access) device_key = ViewKey(device_key, key);
      if (std::find(devices.begin(), devices.end(), device_key) == devices.end()) {
        devices.push_back(std::move(device_key));
      }
    }
    Hold(key, row, std::move(devices), "");
  } else if (was_allocated) {
    Free(key, row);
  }
  return true;
}

void DeviceAllocator::RemoveClaim(absl::string_view key) {
  const auto it = claims_.find(key);
  if (it == claims_.end()) return;
  Free(it->first, it->second);
  it->second.exists = it->second.implied = false;
  it->second.object = {};
  it->second.last.clear();
  DropIfUnused(it->first);
}

void DeviceAllocator::DropIfUnused(const std::string& key) {
  const auto it = claims_.find(key);
  if (it != claims_.end() && !it->second.exists && it->second.consumers.empty()) {
    Free(it->first, it->second);
    free_ids_.push_back(it->second.id);
    claims_.erase(it);
  }
}

void DeviceAllocator::Release(const std::string& key) {
  const auto it = claims_.find(key);
  if (it != claims_.end() && !it->second.object.allocated) Free(key, it->second);
}

void DeviceAllocator::Restore(const std::string& key, const std::vector<std::string>& devices,
                              const std::vector<std::string>& last, absl::string_view node) {
  ClaimRow& row = claims_.at(key);
  row.last = last;
  if (row.object.allocated || (row.devices == devices && (devices.empty() || row.node == node)))
    return;
  Hold(key, row, devices, node);
}

std::string DeviceAllocator::Check() const {
  size_t held = 0;
  for (const auto& [key, row] : claims_) {
    for (const std::string& device : row.devices) {
      const std::string* holder = HolderOf(device);
      if (holder == nullptr || *holder != key) {
        return absl::StrCat("device ", device, " is not held by claim ", key);
      }
      ++held;
    }
    if (row.id >= keys_.size() || *keys_[row.id] != key) return absl::StrCat("id of claim ", key);
    if (std::set<PodId>(row.consumers.begin(), row.consumers.end()).size() !=
        row.consumers.size()) {
      return absl::StrCat("claim ", key, " has a consumer twice");
    }
  }
  if (held != holder_of_.size()) return "a device is held by no claim";
  std::string wrong = inventory_.Check();
  inventory_.ForEachDevice([&](const NodeDevice& device) {
    for (const auto& [name, demand] : demands_) {
      if (device.suits[demand.index] != demand.Suits(device) ||
          device.barred[demand.index] != demand.IsBarred(device)) {
        wrong = absl::StrCat("whether device ", device.key, " suits ", name);
      }
    }
  });
  return wrong;
}

std::string DeviceAllocator::Dump() const {
  std::string out;
  for (const auto& [key, row] : claims_) {
    absl::StrAppend(&out, "claim ", key, " exists=", row.exists,
                    " consumers=", absl::StrJoin(row.consumers, ","),
                    " devices=", absl::StrJoin(row.devices, ","), " for=", row.node,
                    " last=", absl::StrJoin(row.last, ","), "\n");
  }
  return out;
}

}  // namespace fairlead::state
