// What Fairlead's plugins say of a world of random_world.h, in the form in which
// `fairlead-control-plane scheduler-oracle` says what kube-scheduler's do, and where they differ.
//
// Errors: InvalidArgument for a world that Fairlead cannot read; it says the object.
// Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/differential/random_world.h"

namespace fairlead::differential {

// {"pods": [{NODE: {"plugin", "code", "reasons"}}]}: by the pods in the order asked; an empty
// object for a node that is admitted. `reasons` is one text, with ", " between several.
absl::StatusOr<Json> Judge(const Json& world);

struct Comparison {
  int64_t pairs = 0;
  std::vector<std::string> differences;  // a line each: the pod, the node, both answers
};
// `theirs` is a line of the oracle. A pod or a node without an answer is a difference.
Comparison Compare(const Json& world, const Json& ours, const Json& theirs);

}  // namespace fairlead::differential
