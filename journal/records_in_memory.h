// Journals in memory that are redacted: for those that are part of something else than a file.
//
// Ownership: the records that were given outlive it. Thread-safety: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "journal/redaction.h"

namespace fairlead::journal {

class RecordsInMemory final : public RedactionFiles {
 public:
  using Records = std::vector<std::string>;
  explicit RecordsInMemory(std::vector<const Records*> journals)
      : journals_(std::move(journals)), redacted_(journals_.size()) {}

  absl::Status ReadAll(const Take& take) override {
    for (size_t i = 0; i < journals_.size(); ++i) {
      for (const std::string& record : *journals_[i]) FAIRLEAD_RETURN_IF_ERROR(take(i, record));
    }
    return absl::OkStatus();
  }
  absl::Status Begin() override {
    redacted_.assign(journals_.size(), {});
    return absl::OkStatus();
  }
  absl::Status Write(size_t journal, std::string record) override {
    redacted_[journal].push_back(std::move(record));
    return absl::OkStatus();
  }
  // By journal; after a redaction that succeeded.
  [[nodiscard]] std::vector<Records>& redacted() { return redacted_; }

 private:
  const std::vector<const Records*> journals_;
  std::vector<Records> redacted_;
};

}  // namespace fairlead::journal
