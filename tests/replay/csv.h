// A CSV file with a header line: cells by column name, no quoting.
//
// Thread-safety: plain value. Errors: NotFound for a file that cannot be read; InvalidArgument
// names file and line (the header is line 1).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::replay {

class Csv {
 public:
  static absl::StatusOr<Csv> Read(const std::string& file);

  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] bool Has(const std::string& column) const { return columns_.count(column) > 0; }
  [[nodiscard]] absl::StatusOr<std::string> Text(size_t row, const std::string& column) const;
  // A whole number from 0 to 2^40.
  [[nodiscard]] absl::Status Number(size_t row, const std::string& column, int64_t& out) const;
  [[nodiscard]] absl::Status Bad(size_t row, absl::string_view what) const;

 private:
  std::string file_;
  std::map<std::string, size_t> columns_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fairlead::replay
