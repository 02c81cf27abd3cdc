// A forward reader of one protobuf message in wire format: one field at a time, in place, without
// copies. Source: protobuf.dev/programming-guides/encoding; Kubernetes does not use groups, so they
// are errors.
//
//   WireReader r(bytes);
//   while (r.Next()) {
//     switch (r.field()) {
//       case 1: out.name = r.String(); break;
//       case 2: r.Check(ReadChild(r.Bytes(), out.child)); break;
//     }                                    // Next() skips any other field
//   }
//   return r.ok();
//
// After an error Next() and ok() stay false. A known field with an unexpected wire type is an
// error.
//
// Thread-safety: a plain value. Ownership: views into the given bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace fairlead::kube {

class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Reads the next field with its payload; false at the end or on an error.
  bool Next() {
    // Nearly every field is a short text or message, with a tag of one byte. This much is inlined.
    if (end_ - next_ >= 2) {
      const auto tag = static_cast<unsigned char>(next_[0]);
      const auto size = static_cast<unsigned char>(next_[1]);
      if ((tag & kTagOfShortBytes) == static_cast<unsigned char>(Type::kBytes) && tag > 7 &&
          size < 0x80 && size <= end_ - next_ - 2) {
        field_ = tag >> 3;
        type_ = Type::kBytes;
        bytes_ = absl::string_view(next_ + 2, size);
        next_ += 2 + size;
        return true;
      }
    }
    return NextOfAnyForm();
  }

  [[nodiscard]] uint32_t field() const { return field_; }

  absl::string_view Bytes() {
    if (type_ == Type::kBytes) return bytes_;
    Fail();
    return {};
  }
  std::string String() {
    const absl::string_view bytes = Bytes();
    return std::string(bytes.data(), bytes.size());
  }
  int64_t Int64() {
    if (type_ == Type::kVarint) return static_cast<int64_t>(value_);
    Fail();
    return 0;
  }
  int32_t Int32() { return static_cast<int32_t>(Int64()); }
  bool Bool() { return Int64() != 0; }

  // Fails if a nested reader failed.
  void Check(bool nested_ok) {
    if (!nested_ok) Fail();
  }
  [[nodiscard]] bool ok() const { return !failed_; }

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  // The type of a tag, and the bit that says that it goes on in another byte.
  static constexpr unsigned char kTagOfShortBytes = 0x87;

  [[gnu::noinline]] bool NextOfAnyForm() {
    if (next_ == end_) return false;
    uint64_t tag = 0;
    if (!ReadVarint(tag)) return false;
    field_ = static_cast<uint32_t>(tag >> 3);
    if (field_ == 0 || tag > UINT32_MAX) return Fail();
    type_ = static_cast<Type>(tag & 7);
    switch (type_) {
      case Type::kVarint:
        return ReadVarint(value_);
      case Type::kFixed64:
        return Skip(8);
      case Type::kBytes: {
        uint64_t size = 0;
        if (!ReadVarint(size)) return false;
        if (size > static_cast<uint64_t>(end_ - next_)) return Fail();
        bytes_ = absl::string_view(next_, static_cast<size_t>(size));
        next_ += size;
        return true;
      }
      case Type::kFixed32:
        return Skip(4);
    }
    return Fail();
  }
  bool Fail() {
    failed_ = true;
    next_ = end_;
    return false;
  }
  bool Skip(ptrdiff_t size) {
    if (end_ - next_ < size) return Fail();
    next_ += size;
    return true;
  }
  bool ReadVarint(uint64_t& out) {
    // Nearly every tag and length is one byte.
    if (next_ != end_ && static_cast<unsigned char>(*next_) < 0x80) {
      out = static_cast<unsigned char>(*next_++);
      return true;
    }
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && next_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*next_++);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        out = value;
        return true;
      }
    }
    return Fail();
  }

  const char* next_;
  const char* end_;
  uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  bool failed_ = false;
  uint64_t value_ = 0;
  absl::string_view bytes_;
};

}  // namespace fairlead::kube
