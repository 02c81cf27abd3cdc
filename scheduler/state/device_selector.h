// The part of CEL in which drivers and users of dynamic resource allocation select devices:
//
//   device.driver, device.allowMultipleAllocations
//   device.attributes["gpu.nvidia.com"].productName      a text, number, truth value or version
//   device.capacity["gpu.nvidia.com"].memory             a quantity
//   == != < <= > >= in   && || ! ?:   ( )   [1, 2]   "text" 'text' r"text" 40 true
//   has(device.attributes["d"].x)   "x" in device.attributes["d"]   "d" in device.attributes
//   of texts: startsWith endsWith contains matches lowerAscii upperAscii size
//   of quantity("40Gi") and semver("1.2.3"): compareTo isGreaterThan isLessThan; of versions
//   major minor patch
//
// Anything else (arithmetic, macros, other functions, lists of a device) is refused when it is
// parsed, with the text that was not understood, so that nothing is ever matched by a guess. What
// has no value, such as an attribute that the device does not have, is an error as in CEL: `&&` and
// `||` do without it if the other side decides, and a device does not match by an error. Values of
// different types are not equal.
//
// Source: CEL in ResourceClaims, kubernetes.io/docs, "Dynamic Resource Allocation"; cel.dev.
// Thread-safety: values and pure functions. Complexity: O(length) to parse and, but for patterns
// and long texts, for a device.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"
#include "scheduler/state/device_expression.h"

namespace fairlead::state {

class DeviceSelector {
 public:
  // InvalidArgument: "selector not understood: ...".
  static absl::StatusOr<DeviceSelector> Parse(absl::string_view expression);

  [[nodiscard]] bool Matches(absl::string_view driver, const model::Device& device) const;

 private:
  explicit DeviceSelector(Expression expression) : expression_(std::move(expression)) {}

  Expression expression_;
};

// The attribute of that qualified name, "domain/name"; null if the device does not have it.
const model::DeviceAttribute* FindAttribute(absl::string_view driver, const model::Device& device,
                                            absl::string_view name);

}  // namespace fairlead::state
