// The part of CEL in which drivers and users of dynamic resource allocation select devices:
//
//   device.driver == "gpu.nvidia.com"
//   device.attributes["gpu.nvidia.com"].productName == "A100"       also !=, with "..", true, 40
//   device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0    also >, ==, <, <=
//
// and such terms joined by &&. Anything else is refused when it is parsed, with the text that was
// not understood, so that nothing is ever matched by a guess. A term about an attribute that a
// device does not have is false (CEL proper has an error there, which fails the device as well).
//
// Source: CEL in ResourceClaims, kubernetes.io/docs, "Dynamic Resource Allocation".
// Thread-safety: values and pure functions. Complexity: O(length), O(terms) a device.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"

namespace fairlead::state {

class DeviceSelector {
 public:
  // InvalidArgument: "selector not understood: ...".
  static absl::StatusOr<DeviceSelector> Parse(absl::string_view expression);

  [[nodiscard]] bool Matches(absl::string_view driver, const model::Device& device) const;

 private:
  enum class Subject : uint8_t { kDriver, kAttribute, kCapacity };
  enum class Compare : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  struct Term {
    Subject subject = Subject::kDriver;
    std::string domain, name;
    Compare compare = Compare::kEqual;
    std::variant<int64_t, bool, std::string> value;
  };
  static absl::StatusOr<Term> ParseTerm(absl::string_view text);

  std::vector<Term> terms_;
};

// The attribute of that qualified name, "domain/name"; null if the device does not have it.
const model::DeviceAttribute* FindAttribute(absl::string_view driver, const model::Device& device,
                                            absl::string_view name);

}  // namespace fairlead::state
