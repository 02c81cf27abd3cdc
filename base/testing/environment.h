// Settings of tests from the environment. Header only; never part of the product.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace fairlead::testing {

// The number in the environment variable, or `otherwise` if it is unset or not a number. Property
// tests run few random worlds by default; the variable asks for more, or for one.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace fairlead::testing
