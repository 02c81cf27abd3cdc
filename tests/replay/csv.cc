#include "tests/replay/csv.h"

#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace fairlead::replay {

absl::StatusOr<Csv> Csv::Read(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", file));
  Csv csv;
  csv.file_ = file;
  std::string line;
  while (std::getline(stream, line)) {
    absl::StripTrailingAsciiWhitespace(&line);
    if (line.empty() && !csv.rows_.empty()) continue;
    std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (csv.columns_.empty()) {
      for (size_t i = 0; i < cells.size(); ++i) csv.columns_[cells[i]] = i;
      csv.header_ = std::move(cells);
    } else {
      csv.rows_.push_back(std::move(cells));
    }
  }
  return csv;
}

absl::Status Csv::Bad(size_t row, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(file_, " line ", row + 2, ": ", what));
}

absl::StatusOr<std::string> Csv::Text(size_t row, const std::string& column) const {
  const auto it = columns_.find(column);
  if (it == columns_.end() || it->second >= rows_[row].size()) {
    return Bad(row, absl::StrCat("has no column ", column));
  }
  return rows_[row][it->second];
}

absl::Status Csv::Number(size_t row, const std::string& column, int64_t& out) const {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, Text(row, column));
  // Far above any machine, far below where sums of them overflow.
  constexpr int64_t kMax = int64_t{1} << 40;
  if (absl::SimpleAtoi(text, &out) && out >= 0 && out <= kMax) return absl::OkStatus();
  return Bad(row, absl::StrCat(column, " \"", text, "\" is no amount"));
}

}  // namespace fairlead::replay
