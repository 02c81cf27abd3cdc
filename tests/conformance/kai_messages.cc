#include "absl/strings/match.h"
#include "tests/conformance/case_runner.h"

namespace fairlead::conformance {
namespace {

// A text with all of `parts` (the second may be empty) means one of `codes`. The first matching row
// counts: the beginning of a text is its meaning, the rest is detail.
struct Meaning {
  const char* parts[2];
  std::vector<std::string> codes;
};

const std::vector<Meaning>& Meanings() {
  static const auto* const meanings = new std::vector<Meaning>{
      {{"Non-preemptible workload is over quota", ""}, {"NonPreemptibleOverQuota"}},
      {{"NonPreemptibleOverQuota", ""}, {"NonPreemptibleOverQuota"}},
      {{"quota has reached the allowable limit", ""}, {"QueueLimitReached"}},
      {{"OverLimit", ""}, {"QueueLimitReached"}},
      {{"Queue '", "does not exist"}, {"QueueNotFound"}},
      {{"QueueDoesNotExist", ""}, {"QueueNotFound"}},
      {{"preemption delay window", ""}, {"PreemptionDelay"}},
      {{"Requested topology", "does not exist"}, {"MissingObject", "TopologyInfeasible"}},
      {{"topology ", "couldn't be satisfied"}, {"TopologyInfeasible", "InsufficientCapacity"}},
      {{"Missing required configmaps", ""}, {"MissingObject"}},
      {{"persistentvolumeclaim", "not found"}, {"MissingObject"}},
      {{"MaxNodePoolResources", ""},
       {"NoInstanceTypeFits", "ConstraintsUnsatisfiable", "InsufficientCapacity"}},
      {{"no nodes with enough resources were found", ""},
       {"InsufficientCapacity", "ConstraintsUnsatisfiable", "WaitingForVictims"}},
      {{"Resources were found for", "gang scheduling"},
       {"InsufficientCapacity", "ConstraintsUnsatisfiable", "WaitingForVictims"}},
      {{"Resources were not found", ""},
       {"InsufficientCapacity", "ConstraintsUnsatisfiable", "WaitingForVictims"}},
      {{"didn't have enough resources", ""}, {"InsufficientCapacity", "WaitingForVictims"}},
  };
  return *meanings;
}

}  // namespace

std::vector<std::string> CodesFor(absl::string_view kai_message) {
  for (const Meaning& meaning : Meanings()) {
    if (absl::StrContains(kai_message, meaning.parts[0]) &&
        absl::StrContains(kai_message, meaning.parts[1])) {
      return meaning.codes;
    }
  }
  return {};
}

}  // namespace fairlead::conformance
