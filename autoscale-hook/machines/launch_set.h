// The set that a NodeRequest belongs to: machines of one decision, which are ordered at once. A
// request says so itself, in a label and two annotations, so that every process finds the set again
// from the objects alone:
//
//   label       fairlead.dev/launch-set         the set's id, made of the names of its requests
//   annotation  fairlead.dev/launch-set-size    how many requests it has
//   annotation  fairlead.dev/launch-set-atomic  "true": a part of it is of no use (a gang)
//
// A machine that is bought alone has no set. launch_sets.h has the rules.
//
// Thread-safety: pure functions. Complexity: O(1); MarkLaunchSet O(requests).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/derived_names.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// Label of NodeRequests, by Fairlead: the set of requests that are ordered together.
inline constexpr char kLaunchSetLabel[] = "fairlead.dev/launch-set";
// Annotation of NodeRequests, by Fairlead: number of requests in the set.
inline constexpr char kLaunchSetSizeAnnotation[] = "fairlead.dev/launch-set-size";
// Annotation of NodeRequests, by Fairlead: "true" if a part of the set is of no use.
inline constexpr char kLaunchSetAtomicAnnotation[] = "fairlead.dev/launch-set-atomic";

struct LaunchSet {
  std::string id;
  int64_t size = 0;
  bool atomic = false;
};

// Makes one set of these requests, whose names are known. Does nothing to fewer than two.
void MarkLaunchSet(const std::vector<model::NodeRequest*>& requests, bool atomic,
                   DerivedNames* names = nullptr);
// None if the request has no set, or says it in another form.
std::optional<LaunchSet> LaunchSetOf(const model::NodeRequest& request);
// An object that is written again for a machine that is there is of no set.
void LeaveLaunchSet(model::NodeRequest& request);

}  // namespace fairlead::hook
