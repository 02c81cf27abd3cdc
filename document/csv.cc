#include "document/csv.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead {
namespace {

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view file) : text_(text), file_(file) {}

  [[nodiscard]] int64_t line() const { return line_; }
  // The next line's cells; nothing at the end of the text.
  absl::StatusOr<std::optional<std::vector<std::string>>> Next() {
    while (at_ < text_.size()) {
      line_ = next_line_;
      std::vector<std::string> cells;
      do {
        FAIRLEAD_ASSIGN_OR_RETURN(std::string cell, Cell());
        cells.push_back(std::move(cell));
      } while (Take(','));
      if (!EndsLine()) return Bad("text follows a closing quote");
      if (cells.size() > 1 || !cells.front().empty()) return cells;
    }
    return std::nullopt;
  }

 private:
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, " line ", line_, ": ", what));
  }
  [[nodiscard]] bool AtLineEnd() const {
    return at_ == text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool EndsLine() {
    if (!AtLineEnd()) return false;
    Take('\r');
    Take('\n');
    ++next_line_;
    return true;
  }

  absl::StatusOr<std::string> Cell() {
    if (Take('"')) return Quoted();
    const size_t begin = at_;
    while (!AtLineEnd() && text_[at_] != ',') {
      if (text_[at_] == '"') return Bad("a quote in the middle of a cell");
      ++at_;
    }
    return std::string(absl::StripAsciiWhitespace(text_.substr(begin, at_ - begin)));
  }

  absl::StatusOr<std::string> Quoted() {
    std::string cell;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++next_line_;
      if (c == '"' && !Take('"')) return cell;
      cell += c;
    }
    return Bad("a quote that does not end");
  }

  absl::string_view text_, file_;
  size_t at_ = 0;
  int64_t line_ = 0, next_line_ = 1;
};

}  // namespace

absl::StatusOr<Csv> Csv::Parse(absl::string_view text, std::string file) {
  Csv csv;
  csv.file_ = std::move(file);
  Reader reader(text, csv.file_);
  while (true) {
    FAIRLEAD_ASSIGN_OR_RETURN(std::optional<std::vector<std::string>> cells, reader.Next());
    if (!cells.has_value()) break;
    if (!csv.header_.empty()) {
      csv.rows_.push_back({reader.line(), *std::move(cells)});
      continue;
    }
    csv.header_ = *std::move(cells);
    for (size_t i = 0; i < csv.header_.size(); ++i) csv.columns_[csv.header_[i]] = i;
  }
  if (csv.header_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(csv.file_, ": there is no header line"));
  }
  return csv;
}

absl::StatusOr<Csv> Csv::Read(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", file));
  std::ostringstream text;
  text << stream.rdbuf();
  return Parse(text.str(), file);
}

absl::Status Csv::Bad(size_t row, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(file_, " line ", rows_[row].line, ": ", what));
}

absl::StatusOr<std::string> Csv::Text(size_t row, const std::string& column) const {
  const auto it = columns_.find(column);
  if (it == columns_.end() || it->second >= rows_[row].cells.size()) {
    return Bad(row, absl::StrCat("has no column ", column));
  }
  return rows_[row].cells[it->second];
}

absl::Status Csv::Number(size_t row, const std::string& column, int64_t& out) const {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, Text(row, column));
  // Far above any machine, far below where sums of them overflow.
  constexpr int64_t kMax = int64_t{1} << 40;
  if (absl::SimpleAtoi(text, &out) && out >= 0 && out <= kMax) return absl::OkStatus();
  return Bad(row, absl::StrCat(column, " \"", text, "\" is no amount"));
}

}  // namespace fairlead
