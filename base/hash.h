// A hash that is equal in every process and on every machine; absl::Hash is seeded per process on
// purpose. For names and digests that outlive the process; not for security. FNV-1a, 64 bits
// (Fowler, Noll, Vo).
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead {

class StableHash {
 public:
  // Every Add also mixes a length, so that ("ab","c") and ("a","bc") differ.
  StableHash& Add(absl::string_view bytes);
  StableHash& Add(int64_t value);
  [[nodiscard]] uint64_t value() const { return state_; }
  // 16 lower-case hexadecimal digits.
  [[nodiscard]] std::string Hex() const;

 private:
  void Mix(const void* data, size_t size);
  uint64_t state_ = 14695981039346656037ULL;
};

}  // namespace fairlead
