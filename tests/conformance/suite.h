// All cases of some folders: found, run one by one, counted and reported.
//
// A case is known by its id: `source` for scheduling cases, `source name` for the tables about
// queues, with " [k]" behind the k-th of equal ones.
//
// Thread-safety: one thread (cases run in forked processes unless told otherwise).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/conformance/deviations.h"
#include "tests/conformance/engine_session.h"
#include "tests/conformance/json.h"

namespace fairlead::conformance {

enum class Outcome : uint8_t {
  kPassed,
  kFailed,
  kDeviates,  // does what its line in the list of deviations says
  kKaiFault,  // differs, KAI's decision shows a known fault, and ours is right (kai_faults.h)
};

struct CaseResult {
  std::string id, name, file;  // file: without its folder
  Outcome outcome = Outcome::kFailed;
  std::vector<std::string> differences;
  std::vector<std::string> log;
  std::string deviation;  // the reason, if it is listed; or KAI's fault
};

struct SuiteOptions {
  std::string filter;  // only cases with this in their id, name or file
  Deviations deviations;
  absl::Duration case_limit = absl::Seconds(60);
  bool isolate = true;
  SessionRunner run_session;
};

struct SuiteResult {
  std::vector<CaseResult> cases;     // in the order of folders, files, cases
  std::vector<std::string> skipped;  // folders that are absent
  // Listed cases that pass with KAI's expectation.
  std::vector<std::string> needless_deviations;
  [[nodiscard]] int64_t Count(Outcome outcome) const;
};

// Folders, or single files. A malformed file is a failed case with a text that names the place.
SuiteResult RunSuite(const std::vector<std::string>& paths, const SuiteOptions& options);

// {"passed":N,"failed":N,"deviating":N,"cases":{id:{"result":..,"name":..,"file":..,
//  "differences":[..],"deviation":".."}}}
std::string ToJson(const SuiteResult& result);
// For people: failures with their differences (and logs), the deviations, a count for each file,
// and "N passed, N failed" as the last line.
std::string ToText(const SuiteResult& result, bool verbose);

}  // namespace fairlead::conformance
