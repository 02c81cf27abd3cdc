// Lines of this program's log and audit log without names. Messages that the program has stay, and
// so do keys, times, levels, numbers and what journal/kept_words.h keeps. Everything else is
// replaced as in the other files of a bundle: values, messages that are none of the program's, and
// lines of no known form.
//
// Thread-safety: that of the redactor. Complexity: O(bytes). Errors: none; any text has an answer.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "journal/redactor.h"

namespace fairlead::cmd {

// Both times that a Redactor works: what is returned while it collects is of no use.
std::string RedactedLog(absl::string_view lines, journal::Redactor& redactor);

// A message that a line of the log may have. Exported for tests.
bool IsLogMessage(absl::string_view message);

// The last lines of a text, of at most that many bytes; a line that was cut is left out.
absl::string_view LastLines(absl::string_view text, size_t bytes_max);

}  // namespace fairlead::cmd
