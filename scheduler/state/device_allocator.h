// Devices of dynamic resource allocation: which nodes have which, which claims hold them, and what
// a claim that holds none yet asks for.
//
// What claims ask for counts on nodes as any other resource does (device_shape.h): demands may
// overlap in devices, and All, firstAvailable and constraints are more than numbers. That is
// settled by the exact devices (device_placement.h), which a claim takes when the pod that carries
// it is placed.
//
// Only devices of one node are counted (ResourceSlice.spec.nodeName), of the newest generation of
// their pool, and only usable ones (model::Device::unusable). allocationMode All alone waits for
// slices of a pool that are still missing: requests by number do not need them. A partition is
// usable if its pool has the counters that it uses, and all devices on one node.
//
// Of a device that a claim has by admin access, the claim holds a *view*: a key of its own, which
// no other claim can want.
// Thread-safety: the state's. Complexity: a change costs the devices of the nodes that it names.
#pragma once

#include <bitset>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"
#include "scheduler/state/device_selector.h"
#include "scheduler/state/device_shape.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// How texts about objects that do not exist end.
inline constexpr char kDoesNotExist[] = " does not exist";

// Tenants write claims and so decide how many demands there are. Each costs a number on every node.
inline constexpr size_t kMaxDemands = 256;

struct NodeDevice {
  std::string driver, pool;
  model::Device device;
  std::string key;                       // "driver/pool/device": unique in the cluster
  std::bitset<kMaxDemands> suits = {};   // by DeviceAllocator::IndexOf: what a demand matches
  std::bitset<kMaxDemands> barred = {};  // a taint is not tolerated by the demand
  std::vector<std::pair<size_t, int64_t>> uses = {};  // counter of the node, thousandths
};

struct PromisedBesides;  // device_placement.h

// The key of a view. `claim`: "ns/name".
std::string ViewKey(absl::string_view device_key, absl::string_view claim);
// The device of a key, which may be a view's.
absl::string_view DeviceOfKey(absl::string_view key);

struct RequestDemand {
  std::string demand;  // or shape
  int64_t count = 0;
};

struct ClaimRow {
  ClaimId id = kNoId;
  bool exists = false;  // false: pods name it, the API server has not shown it
  // It is to be made when its pod is bound: `object` is what it will be, without uid and version.
  bool implied = false;
  model::ResourceClaim object;
  std::vector<PodId> consumers;      // live pods that name it; the first carries it
  std::vector<std::string> devices;  // keys: what it holds, by the API or by a decision
  std::vector<std::string> last;     // what a decision gave it last: it gets the same again
};

class DeviceAllocator {
 public:
  // `moved` is told of each node of which a claim has just taken, or given back, devices.
  using Moved = std::function<void(ClaimId claim, absl::string_view node)>;
  explicit DeviceAllocator(Moved moved) : moved_(std::move(moved)) {}

  // ---- objects; the names of the nodes whose devices changed
  std::vector<std::string> UpsertSlice(const model::ResourceSlice& slice);
  std::vector<std::string> RemoveSlice(absl::string_view name);
  // True if another class gives some extended resource from now on.
  bool UpsertClass(const model::DeviceClass& device_class);
  bool RemoveClass(absl::string_view name);
  // Takes over what the API says the claim holds. False if nothing changed that decisions read.
  bool UpsertClaim(const model::ResourceClaim& claim);
  void RemoveClaim(absl::string_view key);
  // A claim that is to be made. Nothing if the API server shows one.
  void ImplyClaim(const model::ResourceClaim& claim);
  // It is not to be made any more. Nothing if the API server shows one.
  void UnimplyClaim(const std::string& key);

  // ---- extended resources
  // The class that gives it, null if none does. If several do, the newest, then the first by name
  // (k8s.io/dynamic-resource-allocation, deviceclass/extendedresourcecache).
  [[nodiscard]] const std::string* ClassOfResource(absl::string_view resource) const;
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& class_of_resource() const {
    return class_of_resource_;
  }

  // ---- demands
  // What a claim asks for, or holds if it is allocated; an error says why that is unknown.
  [[nodiscard]] absl::StatusOr<std::vector<RequestDemand>> AskOf(
      const model::ResourceClaim& claim) const;
  // The same, and makes demands and shapes known; ResourceExhausted beyond kMaxDemands of them.
  absl::StatusOr<std::vector<RequestDemand>> DemandsOf(const model::ResourceClaim& claim);
  // Forgets the demands and shapes that no claim with consumers asks for, and that `used` does not
  // name. True if there were any. O(claims).
  bool ForgetUnused(const std::set<std::string>& used);
  // Grows when a demand or shape becomes known or is forgotten.
  [[nodiscard]] uint64_t demand_version() const { return demand_version_; }
  // Null if it is not known. Valid until the next ForgetUnused().
  [[nodiscard]] const ClaimShape* FindShape(absl::string_view name) const;
  // In NodeDevice::suits, where it says whether the class and the selectors of the demand suit the
  // device; kMaxDemands if the demand is not known. Found out once, when either becomes known.
  [[nodiscard]] size_t IndexOf(absl::string_view demand) const;
  // Whether every slice of the pools that name the node is there and understood.
  [[nodiscard]] bool KnowsAll(absl::string_view node) const;
  // {demand, devices of the node that satisfy it} and {shape, its weight times the claims that the
  // node could have if it were empty}, by name.
  [[nodiscard]] std::vector<std::pair<std::string, int64_t>> CountDevices(
      absl::string_view node) const;
  // Partitions of one device have a set of counters in common, and count as one.
  [[nodiscard]] int64_t CountGpus(absl::string_view node) const;

  // ---- devices and claims
  // By driver, pool and name.
  [[nodiscard]] const std::vector<NodeDevice>& DevicesOf(absl::string_view node) const;
  // What partitions of the node share, in thousandths: NodeDevice::uses names the places.
  [[nodiscard]] const std::vector<int64_t>& CountersOf(absl::string_view node) const;
  // The node that has a device, "" if none says so.
  [[nodiscard]] std::string NodeOf(const std::string& device_key) const;
  // The claim that holds it, null if none.
  [[nodiscard]] const std::string* HolderOf(const std::string& device_key) const;
  [[nodiscard]] const ClaimRow* Find(absl::string_view key) const;
  // Makes one if there is none.
  ClaimRow& Row(const std::string& key);
  // "ns/name" of a claim that there is.
  [[nodiscard]] const std::string& KeyOf(ClaimId id) const { return *keys_[id]; }
  [[nodiscard]] const std::map<std::string, ClaimRow, std::less<>>& claims() const {
    return claims_;
  }
  void DropIfUnused(const std::string& key);
  // What the claim holds, by the API or by a decision, as it has to be written; no devices if it
  // holds none, or if what a decision gave it is not what it asks for (any more).
  [[nodiscard]] model::ClaimAllocation AllocationOf(absl::string_view key) const;

  // False if what a decision gave the claim is not all that it asks for.
  [[nodiscard]] bool IsWhole(absl::string_view key) const;

  // Gives the unallocated ones of the claims devices of a node: what they had last, or else the
  // choice of PlaceDevices for all of them. Only if there is none, `besides` is not heeded, and at
  // last each claim is tried for itself; a claim gets all that it asks for, or nothing. `besides`:
  // null if nothing is promised.
  void Take(const std::vector<std::string>& keys, absl::string_view node,
            const PromisedBesides* besides = nullptr);
  // Takes back what a decision gave it; what the API gave it stays.
  void Release(const std::string& key);

  // What a decision gave it, and gave it last, becomes exactly this.
  void Restore(const std::string& key, const std::vector<std::string>& devices,
               const std::vector<std::string>& last);

  // Text of the first difference between rows and what is derived from them, or "".
  [[nodiscard]] std::string Check() const;
  [[nodiscard]] std::string Dump() const;

 private:
  struct Demand {
    std::string device_class;
    std::vector<std::string> texts;
    std::vector<DeviceSelector> selectors;  // of the request, and of the class as it is now
    std::vector<model::DeviceToleration> tolerates;
    bool usable = false;
    size_t index = 0;
    [[nodiscard]] bool Suits(const NodeDevice& device) const;
    [[nodiscard]] bool IsBarred(const NodeDevice& device) const;
    void Look(NodeDevice& device) const;
  };
  using PoolKey = std::pair<std::string, std::string>;  // driver, pool
  struct Pool {
    std::set<std::string> slices;  // names
    int64_t generation = 0;        // the newest
    bool complete = false;         // all slices of that generation are there
    bool of_one_node = true;       // of those that have devices
  };

  [[nodiscard]] absl::Status CheckRequest(const model::DeviceRequest& request) const;
  void AddDemand(const std::string& name, const model::DeviceRequest& option);
  // Reads the selectors again, and looks at all devices.
  void RefreshDemand(Demand& demand);
  void RefreshDemandsOf(absl::string_view device_class);
  bool ReadResourceNames();
  // Reads the devices of a pool again; the nodes of all its slices.
  std::set<std::string> RefreshPool(const PoolKey& key);
  void RebuildNode(const std::string& node);
  // Fills the counters of the node and what its devices use of them.
  void ReadCounters(const std::string& node, std::vector<NodeDevice>& devices);
  // By "driver/pool/set/counter", in thousandths.
  [[nodiscard]] std::map<std::string, int64_t> CountersOfPool(const PoolKey& key) const;
  bool ReuseLast(const std::vector<std::string>& keys, absl::string_view node,
                 const PromisedBesides* besides);
  bool AllocateTogether(const std::vector<std::string>& keys, absl::string_view node,
                        const PromisedBesides* besides);
  void Hold(const std::string& key, ClaimRow& row, std::vector<std::string> devices);
  void Free(const std::string& key, ClaimRow& row);
  void TellMoved(ClaimId claim, const std::vector<std::string>& devices) const;

  const Moved moved_;
  std::map<std::string, model::ResourceSlice, std::less<>> slices_;
  std::map<PoolKey, Pool> pools_;
  std::map<std::string, std::set<std::string>, std::less<>> slices_of_node_;  // names
  std::map<std::string, model::DeviceClass, std::less<>> classes_;
  std::map<std::string, std::string, std::less<>> class_of_resource_;
  std::map<std::string, ClaimRow, std::less<>> claims_;
  std::vector<const std::string*> keys_;  // of claims_, by ClaimRow::id
  std::vector<ClaimId> free_ids_;
  std::map<std::string, Demand, std::less<>> demands_;
  std::map<std::string, ClaimShape, std::less<>> shapes_;
  std::map<std::string, std::vector<NodeDevice>, std::less<>> inventory_;    // by node
  std::map<std::string, std::vector<int64_t>, std::less<>> counters_milli_;  // by node
  absl::flat_hash_map<std::string, std::string> node_of_, holder_of_;        // by device key
  uint64_t demand_version_ = 0;
};

}  // namespace fairlead::state
