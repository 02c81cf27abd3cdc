// What a claim asks for, without the names of its requests: claims of one shape are interchangeable
// for placement, as pods of one class are.
//
// A claim becomes resources that its pod requests (ShapeDemands), so that fit, victims and undo are
// those of resources:
//   - a *demand* for each request that has to be satisfied: its device class with its selectors.
//     Exact numbers count as they are, allocationMode All as one device until the pod is
//     bound (KAI's number, pkg/common/resources/dra.go), admin access not at all: it takes nothing;
//   - if numbers cannot say it all (All, firstAvailable, constraints, admin access), one *shape*,
//   whose name
//     has everything that the choice of devices depends on. Its amount is the weight of the shape:
//     as many GPUs as its firstAvailable requests could get at most, and at least one.
//
// Thread-safety: values and pure functions. Complexity: O(size of the claim).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/device_names.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/resources.h"

namespace fairlead::state {

// GPUs as queues count them, by the name of the device class or the driver.
bool IsGpuDeviceClass(absl::string_view name);
// Whether it is what claims made of a pod's requests.
bool IsDemand(absl::string_view resource_name);
bool IsShape(absl::string_view resource_name);
// Whether its amount is a number of GPUs.
bool IsGpuDemand(absl::string_view resource_name);

struct ShapeOption {
  std::string demand;
  bool all = false;
  int64_t count = 1;  // one for All
  bool admin = false;
};

struct ShapeRequest {
  bool first_available = false;      // a list of alternatives, of one at least
  std::vector<ShapeOption> options;  // best first
};

struct ShapeConstraint {
  std::string attribute;  // "domain/name"
  bool distinct = false;
  std::vector<std::pair<size_t, size_t>> members;  // (request, option)
};

struct ClaimShape {
  std::vector<ShapeRequest> requests;
  std::vector<ShapeConstraint> constraints;
  int64_t weight = 1;
};

// Names the class, the selectors, and what is tolerated.
std::string DemandName(const model::DeviceRequest& request);
ClaimShape ShapeOf(const model::ResourceClaim& claim);
// Numbers of devices say all that the claim asks for, and it has no alternatives.
bool IsPlain(const ClaimShape& shape);
// It takes nothing: a node may have any number of such claims.
bool IsOfAdmins(const ClaimShape& shape);
// Equal names, equal choices.
std::string ShapeName(const ClaimShape& shape);
// What a pod requests for a claim of that shape, without the shape itself.
model::ResourceList ShapeDemands(const ClaimShape& shape);

// As allocations name it: "request", or "request/one of firstAvailable".
std::string RequestName(const model::DeviceRequest& request, size_t option);
// One, unless there is a firstAvailable.
size_t OptionCount(const model::DeviceRequest& request);
const model::DeviceRequest& OptionOf(const model::DeviceRequest& request, size_t option);

}  // namespace fairlead::state
