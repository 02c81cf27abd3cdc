// A tar archive of plain files in memory, as any tar reads it (POSIX ustar).
//
// Thread-safety: none. Complexity: O(bytes). Errors: InvalidArgument for a name that the format
// cannot hold, or a file beyond 8 GiB.
// Source: POSIX.1-2017, pax, "ustar Interchange Format".
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::cmd {

class TarWriter {
 public:
  // Of all files.
  explicit TarWriter(absl::Time modified) : modified_(modified) {}

  // `path`: relative, of at most 100 bytes.
  absl::Status Add(absl::string_view path, absl::string_view content);
  // The archive, with its end. Nothing is added after it.
  std::string Finish();

 private:
  const absl::Time modified_;
  std::string bytes_;
};

// gzip of the text, the same for the same text on every machine with the same zlib.
absl::StatusOr<std::string> Gzip(absl::string_view text);

}  // namespace fairlead::cmd
