// Settings of tests from the environment. Header only; never part of the product.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace fairlead::testing {

// The number in the environment variable; `otherwise` where it is not set or holds none. For
// property tests: few random worlds by default, as many as one likes, or a single one, on demand.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace fairlead::testing
