// Text for terminals: columns that align in every script, and no sequence that a terminal would
// obey. Tenants write the names and messages.
//
// Thread-safety: plain values and pure functions. Complexity: linear in the text.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::cmd {

// Columns that the text takes: combining marks none, wide East Asian characters and emoji two.
size_t DisplayWidth(absl::string_view text);

// The text with control characters (escape sequences, line breaks, direction overrides) replaced by
// '?' and bytes that are not UTF-8 by U+FFFD.
std::string Printable(absl::string_view text);

// At most `width` columns; a cut text ends with an ellipsis.
std::string CutToWidth(absl::string_view text, size_t width);

// Fills words into lines of at most `width` columns; each line after the first begins with
// `indent`.
std::string Wrapped(absl::string_view text, size_t width, absl::string_view indent);

// A table: header, rows, two spaces between columns, no space at the ends of lines.
class Table {
 public:
  // A header that begins with '>' aligns its column to the right.
  explicit Table(const std::vector<std::string>& headers);
  // Makes cells printable. Missing cells are empty.
  void AddRow(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Omits columns without any content in the rows.
  [[nodiscard]] std::string Text(absl::string_view indent = "") const;

 private:
  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fairlead::cmd
