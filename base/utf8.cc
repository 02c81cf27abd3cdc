#include "base/utf8.h"

namespace fairlead {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

size_t Utf8SequenceLength(absl::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;  // bounds of the second byte: no overlong forms, no surrogates
  unsigned char high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if (second < low || second > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  return length;
}

std::string ToValidUtf8(absl::string_view text) { return TruncateUtf8(text, std::string::npos); }

std::string TruncateUtf8(absl::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const absl::string_view piece =
        length == 0 ? absl::string_view(kReplacement) : text.substr(0, length);
    if (out.size() + piece.size() > max_bytes) break;
    out.append(piece.data(), piece.size());
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace fairlead
