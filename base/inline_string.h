// A string for keys that are made, compared and dropped in great numbers: up to kInline bytes take
// no memory of their own. A Kubernetes uid has 36.
//
// Order: as std::string, by unsigned bytes. Thread-safety: as std::string. Complexity: a copy is
// O(1) up to kInline bytes.
#pragma once

#include <compare>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace fairlead {

class InlineString {
 public:
  static constexpr size_t kInline = 40;

  InlineString() = default;
  explicit InlineString(absl::string_view text) : bytes_(text.begin(), text.end()) {}
  // `text` is not a part of this string.
  InlineString& operator=(absl::string_view text) {
    bytes_.assign(text.begin(), text.end());
    return *this;
  }

  [[nodiscard]] absl::string_view view() const { return {bytes_.data(), bytes_.size()}; }

  friend bool operator==(const InlineString& a, const InlineString& b) {
    return a.view() == b.view();
  }
  friend std::strong_ordering operator<=>(const InlineString& a, const InlineString& b) {
    return a.view().compare(b.view()) <=> 0;
  }

 private:
  absl::InlinedVector<char, kInline> bytes_;
};

}  // namespace fairlead
