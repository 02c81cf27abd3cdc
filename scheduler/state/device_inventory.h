// Which devices there are, which nodes can use each, and what keeps requests away from them: what
// ResourceSlices publish, with the taints of DeviceTaintRules.
//
// A device is *local* if its allocation changes nothing on other nodes: one node alone can use it,
// and it shares no counters with devices of other nodes. All others are allocated once over all
// nodes. A node that the API server does not show has devices by name only (NodeScope::name).
//
// Source: k8s.io/dynamic-resource-allocation/structured, GatherPools. Slices count that are of the
// newest generation of their pool. A pool gives nothing if it is
//   - invalid: all of its slices are there, and a device uses a counter that there is not, or a
//     set of counters is there twice; or, for a node, two devices of the node have one name;
//   - incomplete (slices are missing), if it has devices of no single node, or counters for several
//     nodes. Other pools give what there is of them, as in KAI; allocationMode All alone waits
//     (KnowsAll).
// *Promised* devices are what drivers are expected to publish for a node that is not there, or not
// usable yet (model::Node::devices). Such a node has these and no others: what is published for it
// already counts once the promise is taken back. They are slices like others, under names that the
// API server has for nothing.
//
// A device for several claims at once (model::Device::for_several) is there, and is given to none.
//
// Thread-safety: the owner's. Complexity: a change costs the devices and the nodes of the pools
// that it names, and a node's change costs the devices of no single node.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/node_devices.h"

namespace fairlead::state {

// Tenants write claims and so decide how many demands there are. Each costs a number on every node.
inline constexpr size_t kMaxDemands = 256;

struct DevicePool;

struct NodeDevice {
  std::string driver, pool;
  model::Device device;                  // with the taints of rules
  std::string key;                       // "driver/pool/device": unique in the cluster
  model::NodeScope nodes = {};           // that can use it
  bool local = true;                     // see above
  const DevicePool* of = nullptr;        // the pool
  std::bitset<kMaxDemands> suits = {};   // by DeviceAllocator::IndexOf: what a demand matches
  std::bitset<kMaxDemands> barred = {};  // a taint is not tolerated by the demand
  std::vector<std::pair<size_t, int64_t>> uses = {};  // counter of the pool, thousandths
};

struct DevicePool {
  std::set<std::string> slices;  // names; of all generations
  int64_t generation = 0;        // the newest
  bool complete = false;         // all slices of that generation are there
  bool understood = true;        // all of these
  bool of_one_node = true;       // all of these are of one and the same node
  bool of_single_nodes = true;   // each of these is of one node
  bool has_twins = false;        // a name is there twice; which nodes that concerns is not said
  bool has_conditions = false;   // one of the devices has binding conditions
  std::string invalid;           // why it gives nothing
  std::vector<int64_t> counters_milli;
  std::vector<std::unique_ptr<NodeDevice>> devices;
  std::vector<const NodeDevice*> partitions;  // of these, those that use counters
  std::map<std::string, std::vector<const NodeDevice*>, std::less<>> by_node;  // of one node
  std::vector<const NodeDevice*> of_many;                                      // nodes
};

std::string DeviceKey(absl::string_view driver, absl::string_view pool, absl::string_view device);

class DeviceInventory {
 public:
  // `look` is told of each device that is new.
  using Look = std::function<void(NodeDevice&)>;
  explicit DeviceInventory(Look look) : look_(std::move(look)) {}

  // ---- objects; the names of the nodes whose devices may have changed
  std::vector<std::string> UpsertSlice(const model::ResourceSlice& slice);
  std::vector<std::string> RemoveSlice(absl::string_view name);
  std::vector<std::string> UpsertRule(const model::DeviceTaintRule& rule);
  std::vector<std::string> RemoveRule(absl::string_view name);
  // A node that the API server shows. True if its devices changed.
  bool UpsertNode(const std::string& name, const model::StringMap& labels);
  void RemoveNode(const std::string& name);
  // What is promised for the node instead of what was; null: nothing.
  void SetPromised(const std::string& node, const model::NodeDevices* devices);

  // ---- of a node
  // By driver, pool and name. Pools in which a device has binding conditions are behind the others,
  // and in them these devices: what is ready at once is taken first, as in upstream. Valid until
  // the next change.
  [[nodiscard]] const std::vector<const NodeDevice*>& DevicesOf(absl::string_view node) const;
  // Whether every slice of the pools that the node could use is there and understood.
  [[nodiscard]] bool KnowsAll(absl::string_view node) const;
  // Partitions of one device have a set of counters in common, and count as one. Devices of no
  // single node count on none.
  [[nodiscard]] int64_t CountGpus(absl::string_view node) const;

  // What its drivers have published of it, whatever is promised. Null while slices of its pools are
  // missing or wrong, or if there are none.
  [[nodiscard]] std::shared_ptr<const model::NodeDevices> Published(const std::string& node) const;
  // The one node that the slice is of; empty if there is none, or no slice of that name.
  [[nodiscard]] std::string NodeOfSlice(absl::string_view slice) const;

  // ---- of a device, by its key
  [[nodiscard]] bool IsOn(absl::string_view device_key, absl::string_view node) const;
  // As the node can use it; null if it cannot.
  [[nodiscard]] const NodeDevice* Find(absl::string_view device_key, absl::string_view node) const;
  // The nodes whose choices depend on whether the device is allocated. O(nodes), unless it is
  // local.
  void AddNodesOf(absl::string_view device_key, std::set<std::string>& nodes) const;

  template <typename F>
  void ForEachDevice(F apply) {
    for (auto& [key, pool] : pools_) {
      for (const std::unique_ptr<NodeDevice>& device : pool.devices) apply(*device);
    }
  }
  template <typename F>
  void ForEachDevice(F apply) const {
    for (const auto& [key, pool] : pools_) {
      for (const std::unique_ptr<NodeDevice>& device : pool.devices) {
        apply(static_cast<const NodeDevice&>(*device));
      }
    }
  }

  // Grows with each change of a device.
  [[nodiscard]] uint64_t version() const { return version_; }
  // How many are for several claims at once.
  [[nodiscard]] size_t for_several() const { return for_several_; }

  // Text of the first difference between what is remembered of nodes and the slices, or "".
  [[nodiscard]] std::string Check() const;

 private:
  using PoolKey = std::pair<std::string, std::string>;  // driver, pool
  struct NodeRow {
    std::vector<const NodeDevice*> devices;
    bool knows_all = true;
    friend bool operator==(const NodeRow&, const NodeRow&) = default;
  };

  // The names of nodes that the slice says.
  static std::set<std::string> NamesIn(const model::ResourceSlice& slice);
  void Link(const model::ResourceSlice& slice);
  void Unlink(const model::ResourceSlice& slice);
  // Reads the pool again, and the nodes that it concerned before or does now.
  std::vector<std::string> RefreshPool(const PoolKey& key, std::set<std::string> before);
  // Of the pools with devices that one of the rules taints.
  std::vector<std::string> RefreshPoolsOf(const std::vector<model::DeviceTaintRule>& rules);
  void ReadPool(const PoolKey& key, DevicePool& pool);
  void ReadCompleteness(DevicePool& pool) const;
  // By "set/counter", their places.
  std::map<std::string, size_t> ReadCounters(DevicePool& pool) const;
  void AddDevice(const PoolKey& key, DevicePool& pool, const model::ResourceSlice& slice,
                 const model::Device& device, const std::map<std::string, size_t>& counters);
  static void ReadUses(DevicePool& pool, NodeDevice& device,
                       const std::map<std::string, size_t>& counters);
  void Forget(DevicePool& pool);
  // Could the node use one of the devices of the slice?
  static bool Concerns(const model::ResourceSlice& slice, const std::string& node,
                       const model::StringMap& labels);
  // Has the pool two devices of one name in the slices that concern the node?
  [[nodiscard]] bool HasTwins(const DevicePool& pool, const std::string& node) const;
  // Could the node use one of the slices that are of no single node?
  [[nodiscard]] bool Concerns(const DevicePool& pool, const std::string& node,
                              const model::StringMap& labels) const;
  void AddNodesOfPool(const PoolKey& key, std::set<std::string>& nodes) const;
  [[nodiscard]] NodeRow ReadNode(const std::string& node) const;
  // True if it is another one than before.
  bool RebuildNode(const std::string& node);
  [[nodiscard]] bool CanUse(const NodeDevice& device, absl::string_view node) const;

  const Look look_;
  uint64_t version_ = 0;
  size_t for_several_ = 0;
  std::map<std::string, model::ResourceSlice, std::less<>> slices_;
  std::map<std::string, model::DeviceTaintRule, std::less<>> rules_;
  std::map<std::string, model::StringMap, std::less<>> nodes_;  // labels, by name
  std::map<PoolKey, DevicePool> pools_;
  std::set<PoolKey> pools_of_many_;  // with slices of no single node
  std::map<std::string, std::set<std::string>, std::less<>> slices_of_node_;  // that name it
  std::map<std::string, NodeRow, std::less<>> rows_;                          // by node
  // Names of slices, by the node that they are promised for.
  std::map<std::string, std::vector<std::string>, std::less<>> promised_;
  absl::flat_hash_map<std::string, std::vector<const NodeDevice*>> by_key_;
};

}  // namespace fairlead::state
