// What a report of a fault needs, as files of an archive: what is in it, what it lacks and why.
//
// Its size is bounded: a file that does not fit is shortened, if it is a list, or left out. The
// manifest, which is the first file, tells of both.
//
// Ownership: values. Thread-safety: none. Complexity: O(bytes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "document/json.h"

namespace fairlead::cmd {

class Bundle {
 public:
  // `at`: when it is made, in every header of the archive. `bytes_max`: of all files together,
  // before they are compressed.
  Bundle(absl::Time at, int64_t bytes_max) : at_(at), left_(bytes_max - kForManifest) {}

  // `what`: for people, as "queues".
  void Add(std::string path, std::string content, absl::string_view what);
  // A JSON object with `items`, of which the last are left out if not all of them fit.
  void AddList(std::string path, const Json& items, absl::string_view what);
  // `why` has no names in it; `detail`, which may have some, is in no archive that is redacted.
  void Lack(absl::string_view what, absl::string_view why, absl::string_view detail = "");

  struct Row {
    std::string path, what, why, detail;  // the path is empty of what is not there
    int64_t bytes = 0, items = -1, left_out = 0;
  };
  // What is there and what is not, in the order of adding.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] bool redacted() const { return redacted_; }
  void SetRedacted() { redacted_ = true; }
  // `details`: with those of what is not there.
  [[nodiscard]] Json Manifest(bool details) const;
  // A tar archive, compressed by gzip.
  [[nodiscard]] absl::StatusOr<std::string> Archive() const;

 private:
  static constexpr int64_t kForManifest = 64 << 10;
  struct File {
    std::string path, content;
  };

  const absl::Time at_;
  int64_t left_;
  bool redacted_ = false;
  std::vector<File> files_;
  std::vector<Row> rows_;
};

}  // namespace fairlead::cmd
