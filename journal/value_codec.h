// Plain values to bytes and back, field by field in the order of their declaration: numbers as
// variable-length integers, texts and lists with their length in front. There are no names in it:
// a reader needs the same declarations as the writer (ShapeOf() tells).
//
// A struct needs nothing of its own as long as it is an aggregate without bases (Boost.PFR); the
// few types that are not have overloads in model_codec.h.
//
// Errors: a Reader never reads beyond its bytes. After a fault it has failed(), and what was read
// is of no use. Thread-safety: none. Complexity: O(bytes).
#pragma once

#include <bit>
#include <boost/pfr.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/shared.h"

namespace fairlead::journal {

class Writer {
 public:
  // With `texts`, texts go there instead, and the bytes have all but them.
  explicit Writer(std::string* out, std::vector<std::string>* texts = nullptr)
      : out_(out), texts_(texts) {}

  void Unsigned(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_->push_back(static_cast<char>(value | 0x80));
    out_->push_back(static_cast<char>(value));
  }
  void Signed(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    Unsigned((bits << 1) ^ (value < 0 ? ~uint64_t{0} : 0));
  }
  void Text(absl::string_view text) {
    if (texts_ != nullptr) {
      texts_->emplace_back(text);
      return;
    }
    Unsigned(text.size());
    out_->append(text.data(), text.size());
  }

 private:
  std::string* out_;
  std::vector<std::string>* texts_;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}

  uint64_t Unsigned() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  int64_t Signed() {
    const uint64_t bits = Unsigned();
    return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  absl::string_view Text() {
    const size_t size = Count();
    const absl::string_view text = left_.substr(0, size);
    left_.remove_prefix(size);
    return text;
  }
  // Of elements that take a byte at least.
  size_t Count() {
    const uint64_t count = Unsigned();
    if (count > left_.size()) Fail();
    return failed_ ? 0 : static_cast<size_t>(count);
  }
  void Fail() {
    failed_ = true;
    left_ = {};
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool AtEnd() const { return left_.empty(); }
  [[nodiscard]] absl::string_view rest() const { return left_; }

 private:
  absl::string_view left_;
  bool failed_ = false;
};

template <typename T, template <typename...> class kTemplate>
inline constexpr bool kIs = false;
template <template <typename...> class kTemplate, typename... Ts>
inline constexpr bool kIs<kTemplate<Ts...>, kTemplate> = true;

// True for types with overloads of Write() and Read().
template <typename T>
inline constexpr bool kHasOverloads = false;
template <>
inline constexpr bool kHasOverloads<std::string> = true;
template <>
inline constexpr bool kHasOverloads<absl::Duration> = true;
template <>
inline constexpr bool kHasOverloads<absl::Time> = true;
template <>
inline constexpr bool kHasOverloads<absl::Status> = true;

template <typename T>
void Write(Writer& to, const T& value);
template <typename T>
void Read(Reader& from, T& value);

inline void Write(Writer& to, const std::string& text) { to.Text(text); }
inline void Read(Reader& from, std::string& text) {
  const absl::string_view read = from.Text();
  text.assign(read.data(), read.size());
}

// Nanoseconds; the two infinities are the ends of the range.
inline void Write(Writer& to, const absl::Duration& span) {
  to.Signed(absl::ToInt64Nanoseconds(span));
}
inline void Read(Reader& from, absl::Duration& span) {
  const int64_t read = from.Signed();
  span = read == std::numeric_limits<int64_t>::max()   ? absl::InfiniteDuration()
         : read == std::numeric_limits<int64_t>::min() ? -absl::InfiniteDuration()
                                                       : absl::Nanoseconds(read);
}
inline void Write(Writer& to, const absl::Time& time) { Write(to, time - absl::UnixEpoch()); }
inline void Read(Reader& from, absl::Time& time) {
  absl::Duration since;
  Read(from, since);
  time = absl::UnixEpoch() + since;
}

inline void Write(Writer& to, const absl::Status& status) {
  to.Unsigned(static_cast<uint64_t>(status.code()));
  to.Text(status.message());
}
inline void Read(Reader& from, absl::Status& status) {
  const auto code = static_cast<absl::StatusCode>(from.Unsigned());
  const absl::string_view message = from.Text();
  status = code == absl::StatusCode::kOk ? absl::OkStatus() : absl::Status(code, message);
}

template <typename Variant, size_t kIndex = 0>
void ReadAlternative(Reader& from, uint64_t index, Variant& value) {
  if constexpr (kIndex == std::variant_size_v<Variant>) {
    from.Fail();
  } else if (index == kIndex) {
    Read(from, value.template emplace<kIndex>());
  } else {
    ReadAlternative<Variant, kIndex + 1>(from, index, value);
  }
}

template <typename T>
void Write(Writer& to, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    to.Unsigned(static_cast<uint64_t>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    to.Signed(value);
  } else if constexpr (std::is_integral_v<T>) {
    to.Unsigned(value);
  } else if constexpr (std::is_same_v<T, double>) {
    to.Unsigned(std::bit_cast<uint64_t>(value));
  } else if constexpr (kIs<T, std::vector> || kIs<T, std::map>) {
    to.Unsigned(value.size());
    for (const auto& element : value) Write(to, element);
  } else if constexpr (kIs<T, std::pair>) {
    Write(to, value.first);
    Write(to, value.second);
  } else if constexpr (kIs<T, std::optional> || kIs<T, std::shared_ptr> || kIs<T, Shared>) {
    to.Unsigned(value ? 1 : 0);
    if (value) Write(to, *value);
  } else if constexpr (kIs<T, Boxed>) {
    Write(to, *value);
  } else if constexpr (kIs<T, std::variant>) {
    to.Unsigned(value.index());
    std::visit([&to](const auto& alternative) { Write(to, alternative); }, value);
  } else {
    boost::pfr::for_each_field(value, [&to](const auto& field) { Write(to, field); });
  }
}

template <typename T>
void Read(Reader& from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(from.Unsigned());
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    value = static_cast<T>(from.Signed());
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(from.Unsigned());
  } else if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(from.Unsigned());
  } else if constexpr (kIs<T, std::vector>) {
    const size_t count = from.Count();
    value.clear();
    value.reserve(count);
    for (size_t i = 0; i < count && !from.failed(); ++i) Read(from, value.emplace_back());
  } else if constexpr (kIs<T, std::map>) {
    value.clear();
    for (size_t i = from.Count(); i > 0 && !from.failed(); --i) {
      std::pair<typename T::key_type, typename T::mapped_type> entry;
      Read(from, entry);
      value.insert(std::move(entry));
    }
  } else if constexpr (kIs<T, std::pair>) {
    Read(from, const_cast<std::remove_const_t<typename T::first_type>&>(value.first));
    Read(from, value.second);
  } else if constexpr (kIs<T, std::optional>) {
    value.reset();
    if (from.Unsigned() != 0) Read(from, value.emplace());
  } else if constexpr (kIs<T, std::shared_ptr>) {
    using Element = std::remove_const_t<typename T::element_type>;
    value = nullptr;
    if (from.Unsigned() == 0) return;
    auto element = std::make_shared<Element>();
    Read(from, *element);
    value = std::move(element);
  } else if constexpr (kIs<T, Shared>) {
    value = nullptr;
    if (from.Unsigned() != 0) Read(from, value.Own());
  } else if constexpr (kIs<T, Boxed>) {
    Read(from, value.Own());
  } else if constexpr (kIs<T, std::variant>) {
    ReadAlternative(from, from.Unsigned(), value);
  } else {
    boost::pfr::for_each_field(value, [&from](auto& field) { Read(from, field); });
  }
}

// Of equal declarations it is equal: a number that a writer leaves for its readers. What has
// overloads, and what lies deeper than kShapeDepth, counts by its size.
inline constexpr int kShapeDepth = 16;
template <typename T, int kDepth = 0>
constexpr uint64_t ShapeOf();

constexpr uint64_t MixShapes(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 1099511628211;
}
template <typename T, int kDepth, size_t... kFields>
constexpr uint64_t ShapeOfFields(std::index_sequence<kFields...>) {
  uint64_t shape = sizeof...(kFields);
  ((shape = MixShapes(shape, ShapeOf<boost::pfr::tuple_element_t<kFields, T>, kDepth>())), ...);
  return shape;
}
template <typename Variant, int kDepth, size_t... kAlternatives>
constexpr uint64_t ShapeOfAlternatives(std::index_sequence<kAlternatives...>) {
  uint64_t shape = sizeof...(kAlternatives) + 1000;
  ((shape =
        MixShapes(shape, ShapeOf<std::variant_alternative_t<kAlternatives, Variant>, kDepth>())),
   ...);
  return shape;
}

template <typename T, int kDepth>
constexpr uint64_t ShapeOf() {
  using Plain = std::remove_cv_t<T>;
  constexpr int kNext = kDepth + 1;
  if constexpr (kHasOverloads<Plain> || std::is_arithmetic_v<Plain> || std::is_enum_v<Plain> ||
                kDepth == kShapeDepth) {
    return MixShapes(kHasOverloads<Plain> ? 2 : 3, sizeof(Plain));
  } else if constexpr (kIs<Plain, std::variant>) {
    return ShapeOfAlternatives<Plain, kNext>(
        std::make_index_sequence<std::variant_size_v<Plain>>());
  } else if constexpr (kIs<Plain, std::map>) {
    return MixShapes(ShapeOf<typename Plain::key_type, kNext>(),
                     ShapeOf<typename Plain::mapped_type, kNext>());
  } else if constexpr (kIs<Plain, std::pair>) {
    return MixShapes(ShapeOf<typename Plain::first_type, kNext>(),
                     ShapeOf<typename Plain::second_type, kNext>());
  } else if constexpr (kIs<Plain, std::vector> || kIs<Plain, std::optional>) {
    return MixShapes(5, ShapeOf<typename Plain::value_type, kNext>());
  } else if constexpr (kIs<Plain, std::shared_ptr>) {
    return MixShapes(6, ShapeOf<typename Plain::element_type, kNext>());
  } else if constexpr (kIs<Plain, Shared> || kIs<Plain, Boxed>) {
    using Held = std::remove_cvref_t<decltype(*std::declval<const Plain&>())>;
    return MixShapes(7, ShapeOf<Held, kNext>());
  } else {
    return ShapeOfFields<Plain, kNext>(std::make_index_sequence<boost::pfr::tuple_size_v<Plain>>());
  }
}

}  // namespace fairlead::journal
