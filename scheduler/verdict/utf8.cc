#include "scheduler/verdict/utf8.h"

#include "absl/strings/str_cat.h"

namespace fairlead::verdict {

size_t Utf8SequenceLength(absl::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  // The second byte carries the bounds that exclude overlong forms, surrogates and what is too
  // large.
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  const bool second = byte(1) >= low && byte(1) <= high;
  if (lead >= 0xE0 && lead <= 0xEF) return second && continues(2) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4) return second && continues(2) && continues(3) ? 4 : 0;
  return 0;
}

std::string ValidUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

absl::string_view CutUtf8(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end);
}

}  // namespace fairlead::verdict
