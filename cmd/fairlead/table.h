// Text for terminals: columns that line up whatever the script, and nothing in it that a terminal
// would obey. Names and messages come from other people's objects.
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

// At most `width` columns; what is cut ends with an ellipsis.
std::string CutToWidth(absl::string_view text, size_t width);

// Words filled into lines of at most `width` columns, each after the first begun with `indent`.
std::string Wrapped(absl::string_view text, size_t width, absl::string_view indent);

// A table: header, rows, two spaces between columns, no space at the ends of lines.
class Table {
 public:
  // A header that begins with '>' aligns its column to the right.
  explicit Table(const std::vector<std::string>& headers);
  // Cells are made printable. Missing ones are empty.
  void AddRow(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Columns without any content in the rows are left out.
  [[nodiscard]] std::string Text(absl::string_view indent = "") const;

 private:
  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fairlead::cmd
