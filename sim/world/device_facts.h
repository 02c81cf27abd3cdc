// What objects of dynamic resource allocation say: claims of pods, ResourceClaims, ResourceSlices
// and selectors. Read from the JSON by code that shares nothing with the product's.
//
// Claims of these worlds have one request for a number of devices, slices belong to one node, and
// selectors are comparisons (== and !=) of driver and attributes joined by &&.
//
// Thread-safety: pure functions. Complexity: O(size of the object).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "sim/world/json.h"

namespace fairlead::sim::world {

inline constexpr char kClaimFinalizer[] = "resource.kubernetes.io/delete-protection";
// Of a pod: the spec of the claims that it names, as a template would have it.
inline constexpr char kClaimSpec[] = "sim/claim";
// The queue that the shared claim's label is to name.
inline constexpr char kClaimQueue[] = "sim/claim-queue";

// The extended resource that a device class of these worlds gives, which no node has otherwise.
inline constexpr char kExtendedResource[] = "example.com/device";
inline constexpr char kExtendedClass[] = "sim-any";

// An entry of spec.resourceClaims, or the claim for the pod's extended resources.
struct PodClaim {
  std::string name;        // within the pod
  std::string claim;       // the ResourceClaim; empty: none is made yet
  bool generated = false;  // it is made for this pod alone, by the claim controller
  int64_t extended = 0;    // devices; the scheduler makes it
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
};
std::vector<PodClaim> ReadPodClaims(const Json& pod);

struct DeviceFacts {
  std::string name;
  std::map<std::string, std::string> attributes;  // values as a selector writes them
};

struct SliceFacts {
  std::string name, node, driver, pool;
  int64_t generation = 0;
  std::vector<DeviceFacts> devices;
  [[nodiscard]] std::string KeyOf(const DeviceFacts& device) const {
    return driver + "/" + pool + "/" + device.name;
  }
};
SliceFacts ReadSlice(const Json& slice);

// Of a claim that asks for `count` devices; of a DeviceClass the selectors alone.
struct DeviceAsk {
  std::string device_class;
  int64_t count = 0;
  std::vector<std::string> selectors;
  friend bool operator==(const DeviceAsk&, const DeviceAsk&) = default;
};

struct ClaimFacts {
  std::string ns, name, uid;
  DeviceAsk ask;
  std::string owner;  // uid of the pod that it was made for; empty: of none
  bool deleting = false, protected_by_finalizer = false;
  bool allocated = false;
  std::string node;                   // of the allocation
  std::vector<std::string> devices;   // "driver/pool/device"
  std::vector<std::string> reserved;  // uids of pods
  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  [[nodiscard]] bool IsReservedFor(const std::string& uid) const;
};
ClaimFacts ReadClaim(const Json& claim);

std::vector<std::string> ReadClassSelectors(const Json& device_class);

// False also for a selector that this reader does not understand.
bool SelectorMatches(absl::string_view selector, const std::string& driver,
                     const DeviceFacts& device);

}  // namespace fairlead::sim::world
