// Comma-separated values with a header line (RFC 4180): cells by column name. A cell in double
// quotes may contain commas, line breaks and doubled quotes. Lines end with CR LF or LF; empty
// lines are left out.
//
// Thread-safety: plain value. Errors: InvalidArgument with file and line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead {

class Csv {
 public:
  // `file`: its name, for errors. InvalidArgument for a quote that does not end, or that stands in
  // the middle of a cell, and for text without a header.
  static absl::StatusOr<Csv> Parse(absl::string_view text, std::string file);
  // NotFound if the file cannot be read.
  static absl::StatusOr<Csv> Read(const std::string& file);

  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] bool Has(const std::string& column) const { return columns_.contains(column); }
  // InvalidArgument if there is no such column, or the row ends before it.
  [[nodiscard]] absl::StatusOr<std::string> Text(size_t row, const std::string& column) const;
  // A whole number from 0 to 2^40.
  [[nodiscard]] absl::Status Number(size_t row, const std::string& column, int64_t& out) const;
  // With file and line of the row.
  [[nodiscard]] absl::Status Bad(size_t row, absl::string_view what) const;

 private:
  struct Row {
    int64_t line = 0;  // from 1
    std::vector<std::string> cells;
  };
  std::string file_;
  std::map<std::string, size_t> columns_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

}  // namespace fairlead
