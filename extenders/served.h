// The extender protocol as Fairlead serves it: what another scheduler asks about a pod of its own,
// and the answers. A pod is admitted to every node, to one, or to none.
//
// Source: k8s.io/kube-scheduler/extender/v1/types.go (ExtenderArgs, ExtenderFilterResult,
// ExtenderPreemptionArgs, ExtenderPreemptionResult). Keys are read as Go writes them.
//
// Errors: InvalidArgument with the field. Thread-safety: pure functions. Complexity: O(bytes).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"

namespace fairlead::extenders {

struct Admission {
  bool everywhere = false;  // the pod is none of ours
  std::string node;         // else the only one; empty: none
  std::string reason;       // why not the others
};

struct FilterQuestion {
  model::Pod pod;
  // The scheduler has a cache of nodes (nodeCacheCapable): it gives names, and wants names.
  bool by_name = false;
  std::vector<std::string> names;
  std::vector<std::string> objects;  // JSON, of the same nodes, unless by_name
};
absl::StatusOr<FilterQuestion> ReadFilterQuestion(absl::string_view body);
// Nodes that are not admitted are unresolvable: no eviction by the scheduler would help.
std::string FilterAnswer(const FilterQuestion& question, const Admission& admission);
// The scheduler tries the pod again.
std::string FilterFailure(absl::string_view reason);

struct PreemptionQuestion {
  model::Pod pod;
  // Node -> the victims on it, as JSON of MetaVictims, in the order given.
  std::vector<std::pair<std::string, std::string>> victims;
};
absl::StatusOr<PreemptionQuestion> ReadPreemptionQuestion(absl::string_view body);
// All victims, or none of any node: pods of ours make room by Fairlead's evictions alone.
std::string PreemptionAnswer(const PreemptionQuestion& question, bool keep);

}  // namespace fairlead::extenders
