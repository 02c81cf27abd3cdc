// A string for keys that are made, compared and dropped in great numbers: up to kInline bytes take
// no memory of their own. A Kubernetes uid has 36.
//
// Order: as std::string, by unsigned bytes. Thread-safety: as std::string. Complexity: a copy is
// O(1) up to kInline bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"

namespace fairlead {

class InlineString {
 public:
  static constexpr size_t kInline = 44;

  InlineString() = default;
  explicit InlineString(absl::string_view text) { Fill(text); }
  InlineString(const InlineString& other) { Fill(other.view()); }
  InlineString(InlineString&& other) noexcept { Steal(other); }
  InlineString& operator=(const InlineString& other) {
    if (this != &other) *this = other.view();
    return *this;
  }
  InlineString& operator=(InlineString&& other) noexcept {
    if (this == &other) return *this;
    Drop();
    Steal(other);
    return *this;
  }
  // `text` is not a part of this string.
  InlineString& operator=(absl::string_view text) {
    Drop();
    Fill(text);
    return *this;
  }
  ~InlineString() { Drop(); }

  [[nodiscard]] absl::string_view view() const {
    return {size_ <= kInline ? bytes_ : Heap(), size_};
  }

  friend bool operator==(const InlineString& a, const InlineString& b) {
    return a.view() == b.view();
  }
  friend std::strong_ordering operator<=>(const InlineString& a, const InlineString& b) {
    return a.view().compare(b.view()) <=> 0;
  }

 private:
  [[nodiscard]] char* Heap() const {
    char* heap = nullptr;
    std::memcpy(&heap, bytes_, sizeof(heap));
    return heap;
  }
  void Fill(absl::string_view text) {
    size_ = static_cast<uint32_t>(text.size());
    if (size_ <= kInline) {
      if (size_ > 0) std::memcpy(bytes_, text.data(), size_);
      return;
    }
    char* heap = new char[size_];
    std::memcpy(heap, text.data(), size_);
    std::memcpy(bytes_, &heap, sizeof(heap));
  }
  void Steal(InlineString& other) {
    size_ = std::exchange(other.size_, 0);
    std::memcpy(bytes_, other.bytes_, sizeof(bytes_));
  }
  void Drop() {
    if (size_ > kInline) delete[] Heap();
    size_ = 0;
  }

  uint32_t size_ = 0;
  char bytes_[kInline];  // the address of the bytes if they are more
};

}  // namespace fairlead
