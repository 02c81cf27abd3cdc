// A string for keys that are made, compared and dropped in great numbers: up to kInline bytes take
// no memory of their own. A Kubernetes uid has 36.
//
// Order: as std::string, by unsigned bytes. Thread-safety: as std::string. Complexity: a copy is
// O(1) up to kInline bytes.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead {

class InlineString {
 public:
  static constexpr size_t kInline = 36;

  InlineString() = default;
  explicit InlineString(absl::string_view text) { *this = text; }
  InlineString(const InlineString& other) { *this = other.view(); }
  InlineString(InlineString&&) = default;  // leaves `other` to be destroyed or assigned to
  ~InlineString() = default;
  InlineString& operator=(const InlineString& other) {
    if (this != &other) *this = other.view();
    return *this;
  }
  InlineString& operator=(InlineString&&) = default;
  // `text` is not a part of this string.
  InlineString& operator=(absl::string_view text) {
    long_ = text.size() > kInline ? std::make_unique<const std::string>(text) : nullptr;
    if (long_ != nullptr) return *this;
    size_ = static_cast<uint32_t>(text.size());
    if (!text.empty()) std::memcpy(bytes_.data(), text.data(), text.size());
    return *this;
  }

  [[nodiscard]] absl::string_view view() const {
    return long_ == nullptr ? absl::string_view(bytes_.data(), size_) : absl::string_view(*long_);
  }

  friend bool operator==(const InlineString& a, const InlineString& b) {
    return a.view() == b.view();
  }
  friend std::strong_ordering operator<=>(const InlineString& a, const InlineString& b) {
    return a.view().compare(b.view()) <=> 0;
  }

 private:
  std::array<char, kInline> bytes_ = {};
  uint32_t size_ = 0;
  std::unique_ptr<const std::string> long_;  // if it is longer than kInline
};

}  // namespace fairlead
