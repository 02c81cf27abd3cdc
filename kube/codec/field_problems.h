// The place of a value in an object, and what is wrong with it: the text for the `invalid` field of
// a decoded object.
//
// Thread-safety: plain values. A FieldPath is a chain of frames on the stack and costs nothing
// until it is printed; it must not outlive the frames and names from which it was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::kube {

struct FieldPath {
  enum class Form : uint8_t { kRoot, kField, kIndex, kKey };
  const FieldPath* parent = nullptr;
  absl::string_view name;
  uint64_t index = 0;
  Form form = Form::kRoot;

  // The result points to *this: bind it to a local only while *this lives.
  [[nodiscard]] FieldPath Field(absl::string_view field) const {
    return {this, field, 0, Form::kField};
  }
  [[nodiscard]] FieldPath Item(uint64_t i) const { return {this, {}, i, Form::kIndex}; }
  [[nodiscard]] FieldPath Key(absl::string_view key) const { return {this, key, 0, Form::kKey}; }
  // "spec.containers[0].resources.requests[cpu]"; a non-empty root is the first name.
  [[nodiscard]] std::string ToString() const;
};

// The problems of one object. Their text does not depend on the order in which they were found, so
// both encodings of an object give equal text.
class Problems {
 public:
  struct Entry {
    std::string path;  // FieldPath::ToString()
    std::string text;  // "path: what"
  };
  void Add(const FieldPath& path, absl::string_view what);
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  // At most three, sorted, joined by "; "; empty if there are none.
  [[nodiscard]] std::string Text() const;
  // All of them, in that order, no two equal.
  [[nodiscard]] std::vector<Entry> Sorted() const;
  void Clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

// `"value" must be a boolean`, with a long value cut.
std::string Quoted(absl::string_view value);

}  // namespace fairlead::kube
