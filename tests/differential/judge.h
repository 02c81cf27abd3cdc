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

// {"pods": [{NODE: {"plugin", "code", "reasons"}}], "scores": [{PLUGIN: {NODE: score}}]}: by the
// pods in the order asked. Of `pods`, an empty object for a node that is admitted; `reasons` is one
// text, with ", " between several. Of `scores`, the admitted nodes, normalised, without the weight;
// null for a pod that fewer than two nodes admit, which kube-scheduler does not score. Of a world
// that asks for it also "preemptions", a JudgePreemption() for each pod.
//
// What the framework without counters answers has to be the same, and so has the sum of the scores
// that the engine takes, but for a constant. If it is not, that is said instead of the answer.
absl::StatusOr<Json> Judge(const Json& world);

struct Comparison {
  int64_t pairs = 0;
  int64_t scores = 0;                    // of a plugin for a node, in both answers
  int64_t preemptions = 0;               // nodes on which kube-scheduler would evict for a pod
  int64_t known_faults = 0;              // differences that WithKnownFault() explains
  std::vector<std::string> differences;  // the others, a line each: the pod, the node, both answers
};
// Judges the world and compares; `theirs` is a line of the oracle. A pod, a node or a score without
// an answer is a difference.
absl::StatusOr<Comparison> Compare(const Json& world, const Json& theirs);

// The world as kube-scheduler v1.36.3 takes it by a fault: a namespaceSelector of a waiting pod
// that an absence of labels satisfies (NotIn, DoesNotExist) selects all namespaces, in required and
// in preferred terms. It replaces the selector by names in a copy of the term (interpodaffinity,
// mergeAffinityTermNamespacesIfNotEmpty), keeps the selector, and matches that against no labels.
Json WithKnownFault(Json world);

}  // namespace fairlead::differential
