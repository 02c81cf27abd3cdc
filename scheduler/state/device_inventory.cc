#include "scheduler/state/device_inventory.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/device_shape.h"

namespace fairlead::state {

std::string DeviceKey(absl::string_view driver, absl::string_view pool, absl::string_view device) {
  return absl::StrCat(driver, "/", pool, "/", device);
}

namespace {

// No object, and no pool of a driver, has such a name.
constexpr char kPromised[] = "~";
bool IsPromised(absl::string_view slice) { return absl::StartsWith(slice, kPromised); }

bool TaintsTheSame(const model::DeviceTaintRule& a, const model::DeviceTaintRule& b) {
  return std::tie(a.driver, a.pool, a.device, a.taint) ==
         std::tie(b.driver, b.pool, b.device, b.taint);
}

}  // namespace

// ---- objects ------------------------------------------------------------------------------------

std::set<std::string> DeviceInventory::NamesIn(const model::ResourceSlice& slice) {
  std::set<std::string> names;
  if (!slice.per_device) names.insert(slice.nodes.name);
  for (const model::Device& device : slice.devices) {
    if (slice.per_device) names.insert(device.nodes.name);
  }
  names.erase("");
  return names;
}

void DeviceInventory::Link(const model::ResourceSlice& slice) {
  for (const std::string& node : NamesIn(slice)) slices_of_node_[node].insert(slice.meta.name);
  pools_[{slice.driver, slice.pool}].slices.insert(slice.meta.name);
}

void DeviceInventory::Unlink(const model::ResourceSlice& slice) {
  for (const std::string& node : NamesIn(slice)) {
    const auto of_node = slices_of_node_.find(node);
    of_node->second.erase(slice.meta.name);
    if (of_node->second.empty()) slices_of_node_.erase(of_node);
  }
  pools_.at({slice.driver, slice.pool}).slices.erase(slice.meta.name);
}

std::vector<std::string> DeviceInventory::UpsertSlice(const model::ResourceSlice& slice) {
  const PoolKey pool{slice.driver, slice.pool};
  std::set<std::string> before;
  const auto known = slices_.find(slice.meta.name);
  if (known != slices_.end()) {
    const PoolKey former{known->second.driver, known->second.pool};
    if (former != pool) {
      const std::vector<std::string> left = RemoveSlice(slice.meta.name);
      before.insert(left.begin(), left.end());
    } else {
      AddNodesOfPool(pool, before);
      Unlink(known->second);
    }
  }
  AddNodesOfPool(pool, before);
  slices_[slice.meta.name] = slice;
  Link(slice);
  return RefreshPool(pool, std::move(before));
}

std::vector<std::string> DeviceInventory::RemoveSlice(absl::string_view name) {
  const auto it = slices_.find(name);
  if (it == slices_.end()) return {};
  const PoolKey pool{it->second.driver, it->second.pool};
  std::set<std::string> before;
  AddNodesOfPool(pool, before);
  Unlink(it->second);
  slices_.erase(it);
  return RefreshPool(pool, std::move(before));
}

std::vector<std::string> DeviceInventory::UpsertRule(const model::DeviceTaintRule& rule) {
  std::vector<model::DeviceTaintRule> changed = {rule};
  const auto [known, added] = rules_.try_emplace(rule.meta.name, rule);
  if (!added) {
    const model::DeviceTaintRule before = std::exchange(known->second, rule);
    // Its status changes often while the pods of its devices are evicted.
    if (TaintsTheSame(before, rule)) return {};
    changed.push_back(before);
  }
  return RefreshPoolsOf(changed);
}

std::vector<std::string> DeviceInventory::RemoveRule(absl::string_view name) {
  const auto it = rules_.find(name);
  if (it == rules_.end()) return {};
  const model::DeviceTaintRule gone = std::move(it->second);
  rules_.erase(it);
  return RefreshPoolsOf({gone});
}

std::vector<std::string> DeviceInventory::RefreshPoolsOf(
    const std::vector<model::DeviceTaintRule>& rules) {
  std::vector<PoolKey> pools;
  for (const auto& [key, pool] : pools_) {
    const auto taints = [&, of = key](const model::DeviceTaintRule& rule) {
      return rule.taint.KeepsAway() && rule.SelectsPool(of.first, of.second) &&
             (rule.device.empty() || by_key_.contains(DeviceKey(of.first, of.second, rule.device)));
    };
    if (std::any_of(rules.begin(), rules.end(), taints)) pools.push_back(key);
  }
  std::set<std::string> nodes;
  for (const PoolKey& key : pools) {
    std::set<std::string> before;
    AddNodesOfPool(key, before);
    for (std::string& node : RefreshPool(key, std::move(before))) nodes.insert(std::move(node));
  }
  return {nodes.begin(), nodes.end()};
}

bool DeviceInventory::UpsertNode(const std::string& name, const model::StringMap& labels) {
  const auto [it, added] = nodes_.try_emplace(name, labels);
  if (!added && it->second == labels) return false;
  it->second = labels;
  return !pools_of_many_.empty() && RebuildNode(name);
}

void DeviceInventory::RemoveNode(const std::string& name) {
  if (nodes_.erase(name) > 0 && !pools_of_many_.empty()) RebuildNode(name);
}

void DeviceInventory::SetPromised(const std::string& node, const model::NodeDevices* devices) {
  const auto known = promised_.find(node);
  if (known == promised_.end() && devices == nullptr) return;
  if (known != promised_.end()) {
    const std::vector<std::string> former = std::exchange(known->second, {});
    for (const std::string& slice : former) RemoveSlice(slice);
    if (devices == nullptr) promised_.erase(known);
  }
  if (devices != nullptr) {
    std::vector<std::string>& names = promised_[node];
    for (const model::ResourceSlice& like : devices->slices) {
      model::ResourceSlice slice = like;
      slice.meta.name = absl::StrCat(kPromised, node, "/", names.size());
      slice.pool = absl::StrCat(kPromised, node, "/", like.pool);
      slice.nodes.name = node;
      names.push_back(slice.meta.name);
      UpsertSlice(slice);
    }
  }
  RebuildNode(node);
}

std::string DeviceInventory::NodeOfSlice(absl::string_view slice) const {
  const auto found = slices_.find(slice);
  return found == slices_.end() ? "" : found->second.nodes.name;
}

std::shared_ptr<const model::NodeDevices> DeviceInventory::Published(
    const std::string& node) const {
  auto devices = std::make_shared<model::NodeDevices>();
  std::set<PoolKey> seen;
  const auto of_node = slices_of_node_.find(node);
  for (const std::string& name :
       of_node == slices_of_node_.end() ? std::set<std::string>() : of_node->second) {
    if (IsPromised(name)) continue;
    const model::ResourceSlice& slice = slices_.at(name);
    if (!seen.insert({slice.driver, slice.pool}).second) continue;
    const DevicePool& pool = pools_.at({slice.driver, slice.pool});
    const bool gives = pool.complete && pool.understood && pool.invalid.empty() && !pool.has_twins;
    if (!gives) return nullptr;
    if (!pool.of_one_node) {
      devices->shared_pools.push_back(absl::StrCat(slice.driver, "/", slice.pool));
    }
  }
  const auto labels = nodes_.find(node);
  for (const PoolKey& key : labels == nodes_.end() ? std::set<PoolKey>() : pools_of_many_) {
    if (seen.contains(key) || !Concerns(pools_.at(key), node, labels->second)) continue;
    devices->shared_pools.push_back(absl::StrCat(key.first, "/", key.second));
  }
  for (const PoolKey& key : seen) {
    const DevicePool& pool = pools_.at(key);
    if (!pool.of_one_node) continue;
    std::vector<const model::ResourceSlice*> slices;
    for (const std::string& name : pool.slices) {
      if (slices_.at(name).generation == pool.generation) slices.push_back(&slices_.at(name));
    }
    model::AddPool(slices, *devices);
  }
  std::sort(devices->shared_pools.begin(), devices->shared_pools.end());
  return devices->empty() ? nullptr : std::move(devices);
}

// ---- pools --------------------------------------------------------------------------------------

std::vector<std::string> DeviceInventory::RefreshPool(const PoolKey& key,
                                                      std::set<std::string> before) {
  ++version_;
  std::set<std::string> nodes = std::move(before);
  DevicePool& pool = pools_.at(key);
  Forget(pool);
  pools_of_many_.erase(key);
  if (pool.slices.empty()) {
    pools_.erase(key);
  } else {
    ReadPool(key, pool);
    if (!pool.of_single_nodes) pools_of_many_.insert(key);
    AddNodesOfPool(key, nodes);
  }
  for (const std::string& node : nodes) RebuildNode(node);
  return {nodes.begin(), nodes.end()};
}

void DeviceInventory::Forget(DevicePool& pool) {
  for (const std::unique_ptr<NodeDevice>& device : pool.devices) {
    const auto found = by_key_.find(device->key);
    std::erase(found->second, device.get());
    if (found->second.empty()) by_key_.erase(found);
    if (device->device.for_several) --for_several_;
  }
}

void DeviceInventory::ReadPool(const PoolKey& key, DevicePool& pool) {
  DevicePool read;
  read.slices = std::move(pool.slices);
  // The devices of nodes that are rebuilt later point to former ones until then: they are only
  // compared.
  pool = std::move(read);
  ReadCompleteness(pool);
  const std::map<std::string, size_t> counters = ReadCounters(pool);
  for (const std::string& name : pool.slices) {
    const model::ResourceSlice& slice = slices_.at(name);
    if (slice.generation != pool.generation || !slice.invalid.empty()) continue;
    for (const model::Device& device : slice.devices) {
      AddDevice(key, pool, slice, device, counters);
    }
  }
  const bool strict = !pool.of_single_nodes || (!pool.of_one_node && !pool.counters_milli.empty());
  if (!pool.complete && strict) pool.invalid = "slices of its pool are missing";
  for (const std::unique_ptr<NodeDevice>& device : pool.devices) {
    if (!pool.invalid.empty()) device->device.unusable = pool.invalid;
    look_(*device);
  }
}

void DeviceInventory::ReadCompleteness(DevicePool& pool) const {
  pool.generation = slices_.at(*pool.slices.begin()).generation;
  for (const std::string& name : pool.slices) {
    pool.generation = std::max(pool.generation, slices_.at(name).generation);
  }
  int64_t newest = 0, announced = 0;
  std::set<std::string> names;
  for (const std::string& name : pool.slices) {
    const model::ResourceSlice& slice = slices_.at(name);
    if (slice.generation != pool.generation) continue;
    ++newest;
    announced = std::max(announced, slice.slice_count);
    if (!slice.invalid.empty()) pool.understood = false;
    const bool of_one = !slice.per_device && !slice.nodes.name.empty();
    if (!of_one) pool.of_single_nodes = false;
    if (!slice.devices.empty()) names.insert(slice.nodes.name);
  }
  pool.complete = newest == announced;
  pool.of_one_node = pool.of_single_nodes && names.size() < 2;
}

std::map<std::string, size_t> DeviceInventory::ReadCounters(DevicePool& pool) const {
  std::map<std::string, size_t> places;
  std::set<std::string> sets;
  for (const std::string& name : pool.slices) {
    const model::ResourceSlice& slice = slices_.at(name);
    if (slice.generation != pool.generation || !slice.invalid.empty()) continue;
    for (const auto& [set, counters] : slice.counters_milli) {
      if (!sets.insert(set).second && pool.complete) {
        pool.invalid = absl::StrCat("its pool has the counters ", set, " twice");
      }
      for (const auto& [counter, amount_milli] : counters) {
        const auto [at, added] =
            places.try_emplace(absl::StrCat(set, "/", counter), pool.counters_milli.size());
        if (added) pool.counters_milli.push_back(amount_milli);
      }
    }
  }
  return places;
}

void DeviceInventory::AddDevice(const PoolKey& key, DevicePool& pool,
                                const model::ResourceSlice& slice, const model::Device& device,
                                const std::map<std::string, size_t>& counters) {
  auto added = std::make_unique<NodeDevice>(
      NodeDevice{key.first, key.second, device, DeviceKey(key.first, key.second, device.name)});
  added->nodes = slice.NodesOf(device);
  added->of = &pool;
  for (const auto& [name, rule] : rules_) {
    if (rule.taint.KeepsAway() && rule.SelectsPool(key.first, key.second) &&
        (rule.device.empty() || rule.device == device.name)) {
      added->device.taints.push_back(rule.taint);
    }
  }
  ReadUses(pool, *added, counters);
  added->local = !added->nodes.name.empty() && (device.uses.empty() || pool.of_one_node);
  if (!device.uses.empty()) pool.partitions.push_back(added.get());
  if (!device.binding_conditions.empty()) pool.has_conditions = true;
  if (device.for_several) ++for_several_;
  if (added->nodes.name.empty()) {
    pool.of_many.push_back(added.get());
  } else {
    pool.by_node[added->nodes.name].push_back(added.get());
  }
  std::vector<const NodeDevice*>& twins = by_key_[added->key];
  if (!twins.empty()) pool.has_twins = true;
  twins.push_back(added.get());
  pool.devices.push_back(std::move(added));
}

void DeviceInventory::ReadUses(DevicePool& pool, NodeDevice& device,
                               const std::map<std::string, size_t>& counters) {
  std::map<size_t, int64_t> uses;
  for (const model::CounterUse& use : device.device.uses) {
    const auto place = counters.find(absl::StrCat(use.set, "/", use.counter));
    if (place == counters.end()) {
      device.device.unusable = absl::StrCat("its pool has no counter ", use.set, "/", use.counter);
      if (pool.complete) pool.invalid = device.device.unusable;
      continue;
    }
    int64_t& amount = uses[place->second];
    amount = model::SaturatingAdd(amount, use.amount_milli);
  }
  std::erase_if(uses, [](const auto& use) { return use.second == 0; });
  device.uses.assign(uses.begin(), uses.end());
}

// ---- nodes --------------------------------------------------------------------------------------

bool DeviceInventory::Concerns(const model::ResourceSlice& slice, const std::string& node,
                               const model::StringMap& labels) {
  if (!slice.per_device) return slice.nodes.Has(labels, node);
  return std::any_of(slice.devices.begin(), slice.devices.end(),
                     [&](const model::Device& device) { return device.nodes.Has(labels, node); });
}

bool DeviceInventory::HasTwins(const DevicePool& pool, const std::string& node) const {
  if (!pool.has_twins) return false;
  const auto known = nodes_.find(node);
  const model::StringMap labels = known == nodes_.end() ? model::StringMap() : known->second;
  std::set<absl::string_view> names;
  for (const std::string& name : pool.slices) {
    const model::ResourceSlice& slice = slices_.at(name);
    if (slice.generation != pool.generation || !Concerns(slice, node, labels)) continue;
    for (const model::Device& device : slice.devices) {
      if (!names.insert(device.name).second) return true;
    }
  }
  return false;
}

bool DeviceInventory::Concerns(const DevicePool& pool, const std::string& node,
                               const model::StringMap& labels) const {
  return std::any_of(pool.slices.begin(), pool.slices.end(), [&](const std::string& name) {
    const model::ResourceSlice& slice = slices_.at(name);
    if (slice.generation != pool.generation) return false;
    // As upstream: counters may be those of devices anywhere.
    if (!slice.counters_milli.empty()) return true;
    return (slice.per_device || slice.nodes.name.empty()) && Concerns(slice, node, labels);
  });
}

void DeviceInventory::AddNodesOfPool(const PoolKey& key, std::set<std::string>& nodes) const {
  const auto found = pools_.find(key);
  if (found == pools_.end()) return;
  for (const std::string& name : found->second.slices) {
    nodes.merge(NamesIn(slices_.at(name)));
  }
  if (!pools_of_many_.contains(key)) return;
  for (const auto& [node, labels] : nodes_) {
    if (Concerns(found->second, node, labels)) nodes.insert(node);
  }
}

DeviceInventory::NodeRow DeviceInventory::ReadNode(const std::string& node) const {
  NodeRow row;
  const bool promised = promised_.contains(node);
  std::set<PoolKey> named;
  const auto of_node = slices_of_node_.find(node);
  if (of_node != slices_of_node_.end()) {
    for (const std::string& name : of_node->second) {
      if (IsPromised(name) != promised) continue;
      const model::ResourceSlice& slice = slices_.at(name);
      const DevicePool& pool = pools_.at({slice.driver, slice.pool});
      if (!pool.complete || !pool.invalid.empty()) row.knows_all = false;
      if (!slice.invalid.empty() && slice.generation == pool.generation) row.knows_all = false;
      if (!named.insert({slice.driver, slice.pool}).second) continue;
      const auto devices = pool.by_node.find(node);
      if (devices == pool.by_node.end()) continue;
      row.devices.insert(row.devices.end(), devices->second.begin(), devices->second.end());
    }
  }
  const auto labels = nodes_.find(node);
  const bool alone = promised || labels == nodes_.end();
  for (const PoolKey& key : alone ? std::set<PoolKey>() : pools_of_many_) {
    const DevicePool& pool = pools_.at(key);
    if (!Concerns(pool, node, labels->second)) continue;
    if (!pool.complete || !pool.understood || !pool.invalid.empty()) row.knows_all = false;
    for (const NodeDevice* device : pool.of_many) {
      if (device->nodes.Has(labels->second, node)) row.devices.push_back(device);
    }
  }
  std::sort(row.devices.begin(), row.devices.end(), [](const NodeDevice* a, const NodeDevice* b) {
    const bool a_waits = !a->device.binding_conditions.empty();
    const bool b_waits = !b->device.binding_conditions.empty();
    return std::tie(a->of->has_conditions, a->driver, a->pool, a_waits, a->device.name) <
           std::tie(b->of->has_conditions, b->driver, b->pool, b_waits, b->device.name);
  });
  std::set<const DevicePool*> ambiguous;
  for (const NodeDevice* device : row.devices) {
    if (HasTwins(*device->of, node)) ambiguous.insert(device->of);
  }
  if (ambiguous.empty()) return row;
  row.knows_all = false;
  std::erase_if(row.devices, [&](const auto* device) { return ambiguous.contains(device->of); });
  return row;
}

bool DeviceInventory::RebuildNode(const std::string& node) {
  NodeRow row = ReadNode(node);
  const auto known = rows_.find(node);
  if (row.devices.empty() && row.knows_all) {
    if (known == rows_.end()) return false;
    rows_.erase(known);
    return true;
  }
  if (known == rows_.end()) {
    rows_.emplace(node, std::move(row));
    return true;
  }
  if (known->second == row) return false;
  known->second = std::move(row);
  return true;
}

const std::vector<const NodeDevice*>& DeviceInventory::DevicesOf(absl::string_view node) const {
  static const auto& none = *new std::vector<const NodeDevice*>();
  const auto it = rows_.find(node);
  return it == rows_.end() ? none : it->second.devices;
}

bool DeviceInventory::KnowsAll(absl::string_view node) const {
  const auto it = rows_.find(node);
  return it == rows_.end() || it->second.knows_all;
}

int64_t DeviceInventory::CountGpus(absl::string_view node) const {
  int64_t whole = 0;
  std::set<std::string> sets;
  for (const NodeDevice* device : DevicesOf(node)) {
    if (!IsGpuDeviceClass(device->driver) || !device->device.MayBeGiven() ||
        device->nodes.name.empty()) {
      continue;
    }
    if (device->device.uses.empty()) ++whole;
    for (const model::CounterUse& use : device->device.uses) {
      sets.insert(absl::StrCat(device->driver, "/", device->pool, "/", use.set));
    }
  }
  return whole + static_cast<int64_t>(sets.size());
}

// ---- devices ------------------------------------------------------------------------------------

bool DeviceInventory::CanUse(const NodeDevice& device, absl::string_view node) const {
  if (!device.nodes.name.empty()) return device.nodes.name == node;
  const auto labels = nodes_.find(node);
  return labels != nodes_.end() && device.nodes.Has(labels->second, labels->first);
}

const NodeDevice* DeviceInventory::Find(absl::string_view device_key,
                                        absl::string_view node) const {
  const auto found = by_key_.find(device_key);
  if (found == by_key_.end()) return nullptr;
  const auto at = std::find_if(found->second.begin(), found->second.end(),
                               [&](const NodeDevice* device) { return CanUse(*device, node); });
  return at == found->second.end() ? nullptr : *at;
}

bool DeviceInventory::IsOn(absl::string_view device_key, absl::string_view node) const {
  return Find(device_key, node) != nullptr;
}

void DeviceInventory::AddNodesOf(absl::string_view device_key, std::set<std::string>& nodes) const {
  const auto found = by_key_.find(device_key);
  if (found == by_key_.end()) return;
  for (const NodeDevice* device : found->second) {
    if (device->local) {
      nodes.insert(device->nodes.name);
    } else if (!device->device.uses.empty()) {
      AddNodesOfPool({device->driver, device->pool}, nodes);
    } else {
      for (const auto& [node, labels] : nodes_) {
        if (device->nodes.Has(labels, node)) nodes.insert(node);
      }
    }
  }
}

std::string DeviceInventory::Check() const {
  for (const auto& [node, row] : rows_) {
    if (!(ReadNode(node) == row)) return absl::StrCat("devices of node ", node);
  }
  for (const auto& [node, labels] : nodes_) {
    if (!rows_.contains(node) && !(ReadNode(node) == NodeRow())) {
      return absl::StrCat("devices that node ", node, " should have");
    }
  }
  return "";
}

}  // namespace fairlead::state
