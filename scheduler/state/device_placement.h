// Which devices of a node go to a pod that brings claims along: the question of device_choice.h
// about the devices of a DeviceAllocator.
//
// The filter and the placing ask the same question in the same order (claims with alternatives by
// the name of their shape, then the other claims, then plain demands by name), so a pod that passed
// the filter gets its devices. Those with alternatives come first, so that no device that another
// claim could do without takes a better alternative away.
//
// allocationMode All means every device of the node that matches: it cannot be satisfied while one
// of them is held or not given out, or while slices of the node's pools are missing. While they are
// missing, a request with an option for All gets none of its other options, either: upstream checks
// all options before it tries the first (validateDeviceRequest).
//
// Partitions have what is left of their pool's counters by the devices that the pod cannot have, on
// any node.
// Admin access reaches devices that others hold, and uses no counters (upstream: it does).
//
// Pods may have been promised devices of the node (promised_devices.h): then the choice leaves what
// they ask for possible. Numbers cannot say that: of devices A and B, which both suit a pod, a
// promised pod may need B.
//
// Thread-safety: pure functions. Complexity: O(devices x demands) and kMaxChoiceWork.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/device_allocator.h"
#include "scheduler/state/device_choice.h"

namespace fairlead::state {

using CanHave = absl::FunctionRef<bool(const NodeDevice&)>;

// For what a pod requests by claims.
struct PlacedDevices {
  ChoiceOutcome outcome = ChoiceOutcome::kNone;
  // Of devices, in the order of the node. A view's is without its claim (DeviceOfKey knows it).
  using Keys = std::vector<std::string>;
  struct Claim {
    std::string shape;
    Keys devices = {};
    std::vector<size_t> options = {};  // by request
  };
  std::vector<Claim> claims;
  std::vector<std::pair<std::string, Keys>> demands;  // of claims without shape, all together
};

// What has to stay possible beside a choice.
struct PromisedBesides {
  const model::ResourceList& demands;  // of all promised pods of the node
  CanHave can_have;                    // of what they wait for, too
};

// `requests`: of a pod; only what claims made of it is read. `besides`: null if nothing is
// promised. What the pod gets can be had at once, counters included, if `can_have` says so; what is
// promised may come later.
PlacedDevices PlaceDevices(const DeviceAllocator& book, absl::string_view node,
                           const model::ResourceList& requests, CanHave can_have,
                           const PromisedBesides* besides = nullptr);
// How many claims of the shape the node could have at most if it were empty, and its devices had no
// taints: a device that is tainted while it is in use counts in what is used, and would otherwise
// take the place of another. If that is too much to find out, as many as it has devices. Of those
// that take nothing, kManyClaims.
inline constexpr int64_t kManyClaims = 1'000'000;
int64_t CountClaims(const DeviceAllocator& book, absl::string_view node, const ClaimShape& shape);

// Which of exactly these devices of a node, or views of them, goes to which request of the claim;
// none if they are not what it asks for.
struct DealtRequest {
  size_t option = 0;
  std::vector<const NodeDevice*> devices;
};
std::optional<std::vector<DealtRequest>> DealDevices(const DeviceAllocator& book,
                                                     absl::string_view node,
                                                     const model::ResourceClaim& claim,
                                                     const std::vector<std::string>& devices);

}  // namespace fairlead::state
