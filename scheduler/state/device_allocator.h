// Devices of dynamic resource allocation: which claims hold which of them (device_inventory.h), and
// what a claim that holds none yet asks for.
//
// What claims ask for counts on nodes as any other resource does (device_shape.h): demands may
// overlap in devices, and All, firstAvailable and constraints are more than numbers. That is
// settled by the exact devices (device_placement.h), which a claim takes when the pod that carries
// it is placed.
//
// A node counts every device that it can use and that may be given (model::Device::MayBeGiven). Of
// devices of no single node that is an upper bound, which says nothing of other nodes: the exact
// devices decide. A device is held once, whatever the nodes that can use it.
//
// Of a device that a claim has by admin access, the claim holds a *view*: a key of its own, which
// no other claim can want.
// Thread-safety: the state's. Complexity: a change costs the devices of the nodes that it names;
// to hold or free a device of no single node, O(nodes).
#pragma once

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
#include "scheduler/state/device_inventory.h"
#include "scheduler/state/device_selector.h"
#include "scheduler/state/device_shape.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// How texts about objects that do not exist end.
inline constexpr char kDoesNotExist[] = " does not exist";

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
  std::string node;                  // that a decision chose them for; empty: it chose none
  std::vector<std::string> last;     // what a decision gave it last: it gets the same again
};

class DeviceAllocator {
 public:
  // `moved` is told of each node that has one device less, or more, because a claim has just taken
  // it, or given it back.
  using Moved = std::function<void(ClaimId claim, absl::string_view node)>;
  explicit DeviceAllocator(Moved moved) : moved_(std::move(moved)) {}

  // ---- objects
  // Slices, taint rules and nodes go here.
  DeviceInventory& inventory() { return inventory_; }
  [[nodiscard]] const DeviceInventory& inventory() const { return inventory_; }
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
  // What a claim asks for, or holds if it is allocated; an error says why that is unknown. Of
  // allocated devices of no single node GPUs alone are named, for the queue: another scheduler may
  // have allocated devices that no node counts.
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
  // The devices that suit the demand, the first of them by name, if all of these are for several
  // claims at once; empty if some are not, or none suits. Found out once after a change of a device
  // or a class: O(devices). Valid until the next change.
  [[nodiscard]] const std::string& LeftOut(absl::string_view demand) const;
  // {demand, devices of the node that suit it, tainted ones too} and {shape, its weight times the
  // claims that the node could have if it were empty}, by name.
  [[nodiscard]] std::vector<std::pair<std::string, int64_t>> CountDevices(
      absl::string_view node) const;

  // ---- devices and claims
  // Can pods on the node use all that the claim holds? False if it holds nothing.
  [[nodiscard]] bool IsHeldOn(const ClaimRow& row, absl::string_view node) const;
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

  // What a decision gave it for the node, and gave it last, becomes exactly this.
  void Restore(const std::string& key, const std::vector<std::string>& devices,
               const std::vector<std::string>& last, absl::string_view node);

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
  [[nodiscard]] absl::Status CheckRequest(const model::DeviceRequest& request) const;
  void AddDemand(const std::string& name, const model::DeviceRequest& option);
  // Fills in what demands find of it.
  void LookAt(NodeDevice& device) const;
  // Reads the selectors again, and looks at all devices.
  void RefreshDemand(Demand& demand);
  void RefreshDemandsOf(absl::string_view device_class);
  bool ReadResourceNames();
  bool ReuseLast(const std::vector<std::string>& keys, absl::string_view node,
                 const PromisedBesides* besides);
  bool AllocateTogether(const std::vector<std::string>& keys, absl::string_view node,
                        const PromisedBesides* besides);
  // `node`: as ClaimRow::node.
  void Hold(const std::string& key, ClaimRow& row, std::vector<std::string> devices,
            absl::string_view node);
  void Free(const std::string& key, ClaimRow& row);
  void TellMoved(ClaimId claim, const std::vector<std::string>& devices) const;

  const Moved moved_;
  DeviceInventory inventory_{[this](NodeDevice& device) { LookAt(device); }};
  std::map<std::string, model::DeviceClass, std::less<>> classes_;
  std::map<std::string, std::string, std::less<>> class_of_resource_;
  std::map<std::string, ClaimRow, std::less<>> claims_;
  std::vector<const std::string*> keys_;  // of claims_, by ClaimRow::id
  std::vector<ClaimId> free_ids_;
  std::map<std::string, Demand, std::less<>> demands_;
  std::map<std::string, ClaimShape, std::less<>> shapes_;
  absl::flat_hash_map<std::string, std::string> holder_of_;  // by device key
  uint64_t demand_version_ = 0;
  mutable std::map<std::string, std::string, std::less<>> left_out_;  // by demand, as of:
  mutable uint64_t left_out_of_ = 0;                                  // DeviceInventory::version
};

}  // namespace fairlead::state
