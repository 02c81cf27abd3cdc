#include "cmd/fairlead/terminal/table.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"

namespace fairlead::cmd {
namespace {

struct Range {
  uint32_t first, last;
};

// Without a column of their own (Unicode 15: the common Mn, Me and Cf blocks).
constexpr Range kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0900, 0x0902}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
    {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
// East Asian Width W and F (UAX #11), by block.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                           {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE4F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
// Line separators and direction controls, which reorder the displayed text.
constexpr Range kUnsafe[] = {
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};

template <size_t N>
bool In(const Range (&ranges)[N], uint32_t point) {
  return std::any_of(std::begin(ranges), std::end(ranges), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

// Removes the code point at the front. An invalid byte is U+FFFD.
uint32_t TakePoint(absl::string_view& text) {
  const size_t length = Utf8SequenceLength(text);
  if (length == 0) {
    text.remove_prefix(1);
    return 0xFFFD;
  }
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  static constexpr uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t point = byte(0) & kLeadMask[length];
  for (size_t i = 1; i < length; ++i) point = (point << 6) | (byte(i) & 0x3F);
  text.remove_prefix(length);
  return point;
}

size_t WidthOf(uint32_t point) {
  if (In(kZeroWidth, point)) return 0;
  return In(kWide, point) ? 2 : 1;
}

}  // namespace

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  while (!text.empty()) width += WidthOf(TakePoint(text));
  return width;
}

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const absl::string_view before = text;
    const uint32_t point = TakePoint(text);
    const absl::string_view bytes = before.substr(0, before.size() - text.size());
    if (In(kUnsafe, point)) {
      out += '?';
    } else if (point == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      absl::StrAppend(&out, bytes);
    }
  }
  return out;
}

std::string CutToWidth(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t used = 0;
  absl::string_view rest = text;
  size_t kept = 0;
  while (!rest.empty()) {
    const size_t point_width = WidthOf(TakePoint(rest));
    if (used + point_width > width - 1) break;
    used += point_width;
    kept = text.size() - rest.size();
  }
  return absl::StrCat(text.substr(0, kept), "\xE2\x80\xA6");
}

std::string Wrapped(absl::string_view text, size_t width, absl::string_view indent) {
  std::string out;
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const size_t length = DisplayWidth(word);
    if (column == 0) {
      column = length;
    } else if (column + 1 + length > width) {
      absl::StrAppend(&out, "\n", indent);
      column = DisplayWidth(indent) + length;
    } else {
      out += ' ';
      column += 1 + length;
    }
    absl::StrAppend(&out, word);
  }
  return out;
}

Table::Table(const std::vector<std::string>& headers) {
  for (const std::string& header : headers) {
    absl::string_view name = header;
    right_.push_back(absl::ConsumePrefix(&name, ">"));
    headers_.emplace_back(name);
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(headers_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text(absl::string_view indent) const {
  std::vector<size_t> widths;
  std::vector<bool> shown;
  for (size_t i = 0; i < headers_.size(); ++i) {
    size_t width = 0;
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    shown.push_back(width > 0 || rows_.empty());
    widths.push_back(std::max(width, DisplayWidth(headers_[i])));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(indent);
    bool first = true;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!shown[i]) continue;
      const std::string padding(widths[i] - DisplayWidth(cells[i]), ' ');
      absl::StrAppend(&text, first ? "" : "  ", right_[i] ? padding : "", cells[i],
                      right_[i] ? "" : padding);
      first = false;
    }
    absl::StripTrailingAsciiWhitespace(&text);
    absl::StrAppend(&out, text, "\n");
  };
  line(headers_);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace fairlead::cmd
