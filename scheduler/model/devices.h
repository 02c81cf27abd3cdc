// The objects of dynamic resource allocation (resource.k8s.io): devices, their classes, the claims
// that request or have them, and the taints that admins give them.
//
// The types contain the fields that decisions read, and the fields that an allocation has to
// repeat. `invalid` of a claim names what we do not understand in it (capacity); a pod with such
// a claim is refused with that text. No claim gets a device with `unusable`, which names what is
// wrong with its pool, nor one that is `for_several` claims at once.
//
// Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/shared.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/selector.h"

namespace fairlead::model {

// No claim may be reserved for more pods (upstream's ResourceClaimReservedForMaxSize).
inline constexpr int64_t kMaxClaimConsumers = 256;
// A claim has at most so many devices (upstream's AllocationResultsMaxSize).
inline constexpr int64_t kMaxClaimDevices = 32;
// On a claim since before it was allocated: the claim is not removed while it may be in use.
inline constexpr char kClaimFinalizer[] = "resource.kubernetes.io/delete-protection";

// What a driver needs to know about the devices of some requests.
struct DeviceConfig {
  std::vector<std::string> requests;  // none: of all
  std::string opaque;                 // JSON of the field `opaque`, as it was written
  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

// Every device class gives the extended resource of this name with its own name behind it.
inline constexpr char kDeviceClassResourcePrefix[] = "deviceclass.resource.kubernetes.io/";

struct DeviceClass {
  ObjectMeta meta;
  std::vector<std::string> selectors;  // CEL; a device has to satisfy all of them
  std::string extended_resource;       // spec.extendedResourceName: what it gives besides; or empty
  std::vector<DeviceConfig> config;    // without `requests`
  std::string invalid;
};

struct DeviceVersion {
  std::string text;
  friend bool operator==(const DeviceVersion&, const DeviceVersion&) = default;
};

struct DeviceAttribute {
  std::variant<int64_t, bool, std::string, DeviceVersion> value;
  friend bool operator==(const DeviceAttribute&, const DeviceAttribute&) = default;
};

struct DeviceTaint {
  std::string key, value, effect;
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;

  // Whether requests that do not tolerate it cannot have the device. Other effects (None) inform.
  [[nodiscard]] bool KeepsAway() const { return effect == "NoSchedule" || effect == "NoExecute"; }
};

// DeviceTaintRule: the taint is on each device that the texts select, as if its driver had written
// it. An empty text selects any; a rule without a selector taints every device, as it does in
// k8s.io/dynamic-resource-allocation/resourceslice/tracker. So does what is not understood of a
// selector: better a device too many is left alone than one too few.
struct DeviceTaintRule {
  ObjectMeta meta;
  std::string driver, pool, device;
  DeviceTaint taint;
  std::string invalid;

  [[nodiscard]] bool SelectsPool(absl::string_view driver_name, absl::string_view pool_name) const {
    return (driver.empty() || driver == driver_name) && (pool.empty() || pool == pool_name);
  }
};

struct DeviceToleration {
  std::string key, value, effect;  // no key, no effect: any
  bool exists = false;             // operator Exists: any value; else this one
  friend bool operator==(const DeviceToleration&, const DeviceToleration&) = default;

  // Source: ToleratesTaint in k8s.io/dynamic-resource-allocation/resourceclaim.
  [[nodiscard]] bool Tolerates(const DeviceTaint& taint) const {
    return (effect.empty() || effect == taint.effect) && (key.empty() || key == taint.key) &&
           (exists || value == taint.value);
  }
};

// Of a partition: what it takes of a counter that its pool's devices share.
struct CounterUse {
  std::string set, counter;
  int64_t amount_milli = 0;
  friend bool operator==(const CounterUse&, const CounterUse&) = default;
};

// Which nodes can use a device: that of the name, or else all, or else those that a term suits.
struct NodeScope {
  std::string name;
  bool all = false;
  std::vector<NodeSelectorTerm> terms = {};
  friend bool operator==(const NodeScope&, const NodeScope&) = default;

  [[nodiscard]] bool Has(const StringMap& labels, const std::string& node) const {
    if (!name.empty()) return name == node;
    return all || std::any_of(terms.begin(), terms.end(), [&](const NodeSelectorTerm& term) {
             return term.Matches(labels, node);
           });
  }
};
// The term that suits the node of that name alone.
inline NodeSelectorTerm TermOfNode(absl::string_view node) {
  return {{}, {{"metadata.name", SelectorOperator::kIn, {std::string(node)}}}};
}

struct Device {
  std::string name;
  // By qualified name, "domain/name"; without a domain it is the driver's own.
  std::map<std::string, DeviceAttribute> attributes;
  std::map<std::string, int64_t> capacity;  // base units of a Quantity, rounded up to whole ones
  std::string unusable = {};                // why no claim gets it; empty: it is usable
  std::vector<DeviceTaint> taints = {};
  std::vector<CounterUse> uses = {};
  NodeScope nodes = {};        // its own, if the slice leaves it to the devices
  bool binds_to_node = false;  // once it is allocated for a pod, only the pod's node can use it
  // allowMultipleAllocations: claims share its capacity. Nothing here counts that.
  bool for_several = false;
  // As of AllocatedDevice.
  std::vector<std::string> binding_conditions = {};
  std::vector<std::string> binding_failure_conditions = {};
  friend bool operator==(const Device&, const Device&) = default;

  [[nodiscard]] bool MayBeGiven() const { return unusable.empty() && !for_several; }
};

struct ResourceSlice {
  ObjectMeta meta;
  std::string driver, pool;
  int64_t generation = 0;   // of the pool: only slices of the newest count
  int64_t slice_count = 1;  // of the pool, in this generation
  NodeScope nodes;          // of its devices
  bool per_device = false;  // each device has its own (perDeviceNodeSelection)
  std::vector<Device> devices;
  // Of the pool: by set and counter, in thousandths.
  std::map<std::string, std::map<std::string, int64_t>> counters_milli;
  std::string invalid;

  [[nodiscard]] const NodeScope& NodesOf(const Device& device) const {
    return per_device ? device.nodes : nodes;
  }
};

struct DeviceRequest {
  std::string name, device_class;
  bool all = false;   // allocationMode All: every device of a node that matches; `count` is unset
  int64_t count = 1;  // allocationMode ExactCount
  std::vector<std::string> selectors;
  std::string tolerations = {};                  // JSON array, as it was written; empty: none
  std::vector<DeviceToleration> tolerates = {};  // the same
  // The devices may be in use, and stay free: to look after them. The API server allows it in
  // namespaces that are labelled for it.
  bool admin_access = false;
  // If not empty, the first of these that can be satisfied is used, and only `name` of the fields
  // above is set. Its entries have no alternatives of their own.
  std::vector<DeviceRequest> first_available = {};
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

// A constraint between all devices of some requests of a claim.
struct DeviceConstraint {
  std::vector<std::string> requests;  // "request" or "request/one of firstAvailable"; none: all
  std::string attribute;              // "domain/name": every device has it
  bool distinct = false;              // each device with a value of its own; else all with one
  friend bool operator==(const DeviceConstraint&, const DeviceConstraint&) = default;
};

struct AllocatedDevice {
  std::string request;  // "request/one of firstAvailable" where there is a choice
  std::string driver, pool, device;
  std::string tolerations = {};  // of the request
  bool admin_access = false;     // the device is not taken by it
  // Conditions that the driver reports of the device after the allocation (DeviceReport). The pods
  // of the claim are bound once all of the first are True. If there are some of these, one of the
  // second that is True says that the device will not do.
  std::vector<std::string> binding_conditions = {};
  std::vector<std::string> binding_failure_conditions = {};
  friend bool operator==(const AllocatedDevice&, const AllocatedDevice&) = default;
};

// What a driver says of a device that a claim has (status.devices).
struct DeviceCondition {
  std::string type;
  bool is_true = false;
  std::string reason = {}, message = {};
  friend bool operator==(const DeviceCondition&, const DeviceCondition&) = default;
};
struct DeviceReport {
  std::string driver, pool, device;
  std::vector<DeviceCondition> conditions = {};
  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

// What is written to status.allocation of a claim.
struct ClaimAllocation {
  struct Config {
    bool from_class = false;
    DeviceConfig config;
    friend bool operator==(const Config&, const Config&) = default;
  };
  std::string node;  // of the pod that the devices were chosen for
  std::vector<AllocatedDevice> devices;
  std::vector<Config> config;  // of classes in the order of requests, then the claim's own
  Boxed<std::vector<NodeSelectorTerm>> node_terms = {};  // as ResourceClaim::node_terms
};

struct ResourceClaim {
  ObjectMeta meta;
  std::vector<std::string> finalizers;
  std::vector<DeviceRequest> requests;
  std::vector<DeviceConstraint> constraints;
  std::vector<DeviceConfig> config;
  bool allocated = false;  // status.allocation is there
  std::vector<AllocatedDevice> devices;
  std::optional<absl::Time> allocated_at;  // as the allocation says
  std::vector<DeviceReport> reports;       // of devices with binding conditions
  // Where the claim can be used, as status.allocation.nodeSelector: any of the terms; empty:
  // anywhere.
  std::vector<NodeSelectorTerm> node_terms;
  std::vector<std::string> reserved_for;  // uids, in the order of the object
  bool reserved_for_others = false;       // one of these is no pod
  std::string invalid;

  [[nodiscard]] bool IsReservedFor(absl::string_view uid) const {
    return std::find(reserved_for.begin(), reserved_for.end(), uid) != reserved_for.end();
  }
  // It was made for that pod, and goes with it.
  [[nodiscard]] bool IsOfPod(absl::string_view uid) const {
    return std::any_of(meta.owners.begin(), meta.owners.end(), [&](const OwnerReference& owner) {
      return owner.controller && owner.kind == "Pod" && owner.uid == uid;
    });
  }
};

using DeviceObject = std::variant<DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule>;

}  // namespace fairlead::model
