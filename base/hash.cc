#include "base/hash.h"

#include "absl/strings/str_format.h"

namespace fairlead {

void StableHash::Mix(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) {
    state_ = (state_ ^ bytes[i]) * 1099511628211ULL;
  }
}

StableHash& StableHash::Add(absl::string_view bytes) {
  Mix(bytes.data(), bytes.size());
  return Add(static_cast<int64_t>(bytes.size()));
}

StableHash& StableHash::Add(int64_t value) {
  auto bits = static_cast<uint64_t>(value);
  unsigned char little_endian[8];
  for (unsigned char& byte : little_endian) {
    byte = static_cast<unsigned char>(bits & 0xff);
    bits >>= 8;
  }
  Mix(little_endian, sizeof(little_endian));
  return *this;
}

std::string StableHash::Hex() const { return absl::StrFormat("%016x", state_); }

}  // namespace fairlead
