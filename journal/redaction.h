// Journals without the names in them, which replay all the same.
//
// Names are replaced in the order that they have (renaming.h); texts that mean something to the
// program stay (kept_words.h). Hashes of names are other ones then, and some of them are names
// again, or decide what comes first. So the journals are played twice:
//
//   1. The original alone. Its decisions have to be the recorded ones. All words are collected,
//      also those of the decisions and of what was derived by a hash.
//   2. The original and, beside it, a loop that is told the redacted inputs. What the second loop
//      derives by a hash is replaced by the redacted form of what the first has derived at that
//      place (base/derived_names.h); records `Derived` say so to the player of the result. The
//      actions of both have to be the same but for names and sentences; the hashes of the second
//      are recorded.
//
// Sentences and words that the second loop has made itself come back in later inputs, as objects
// show them. They are learned from the pairs of actions; if they were redacted otherwise before,
// the second pass begins again. If the decisions are not the same, nothing is made. After
// redaction each record is searched for texts that were not replaced.
//
// What stays visible: the number, times and sizes of everything, the order of names, and texts that
// differ in words from a public list alone.
//
// Thread-safety: none. Complexity: that of the decisions, three times or more; memory for each word
// and text once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "journal/loop_driver.h"

namespace fairlead::journal {

class Redactor;

struct RedactionOptions {
  ReadOptions read;
  std::vector<std::string> kept = {};  // names of plugins
  // Other texts with the same names in them (redactor.h): called before and after the names are
  // replaced.
  std::function<void(Redactor&)> collect = nullptr, replace = nullptr;
};

// The journals, and what becomes of them.
class RedactionFiles {
 public:
  using Take = std::function<absl::Status(size_t journal, absl::string_view record)>;
  virtual ~RedactionFiles() = default;
  // Gives the records of all journals in their order, until an error.
  virtual absl::Status ReadAll(const Take& take) = 0;
  // What was written is void: a pass begins.
  virtual absl::Status Begin() = 0;
  virtual absl::Status Write(size_t journal, std::string record) = 0;
};

struct RedactionTotals {
  int64_t records = 0, steps = 0, actions = 0, passes = 0;
  size_t words = 0;  // that were replaced
};

// FailedPrecondition: the journals do not replay here, or not without their names; which step
// says so. Internal: a text was not redacted.
absl::StatusOr<RedactionTotals> Redact(const RedactionOptions& options, RedactionFiles& files);

}  // namespace fairlead::journal
