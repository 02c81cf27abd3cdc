// Runs one scheduling case and reports the differences from its expectations.
//
// Every difference is one line for people. No difference: the case passes. Thread-safety: pure
// functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/conformance/engine_session.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {

struct CaseReport {
  std::vector<std::string> differences;
  // The actions of the sessions, for people; filled whether the case passes or not.
  std::vector<std::string> log;
  std::map<std::string, PodOutcome> pods;  // at the end of the last session
};

// "single": one session, with its result compared. "rounds": the sessions until the match are
// folded into the world, which is compared once after the last of them. Later sessions must show
// the same *before* they are folded. Call limits hold for every session.
CaseReport RunSchedulingCase(const SchedulingCase& test, const SessionRunner& run_session);

// The verdict codes that mean the same as a fit-error text of KAI; empty: none is known, and
// nothing is compared. KAI's texts do not tell whether a node could ever help, ours do, so several
// codes may match.
std::vector<std::string> CodesFor(absl::string_view kai_message);

}  // namespace fairlead::conformance
