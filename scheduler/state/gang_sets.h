// The tree of sets that a PodGroup describes, and the set that a pod's label names.
//
// Minimums (facts 2.2, 3.5; KAI v0.17, with v0.13's objects meaning what they meant there):
//   leaf, also a group without sub-groups    minMember, 1 if absent
//   sub-group with children                  minMember pods of its own, 0 if absent, and
//                                            minSubGroup children, all of them if absent
//   group with sub-groups                    its minMember is not read: v0.13 has the sum of the
//                                            leaves there, which the leaves demand already
// minMember and minSubGroup on one set exclude each other; v0.17 only warns, and so do we: with
// children minSubGroup counts, without them minMember.
// A minSubGroup that no number of pods could meet, and a tree that is none, are problems.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/records.h"

namespace fairlead::state {

// A decision asks each set about each set above it: beyond these bounds one object of a tenant
// would hold up all others. Such a tree is a problem.
inline constexpr size_t kMaxSubGroups = 1024;
inline constexpr int kMaxSubGroupLevels = 32;

struct GangSets {
  // The root, then the sub-groups in the order of the object. With a problem: the root alone, as if
  // there were no sub-groups.
  std::vector<GangSet> sets;
  std::string problem, warning;  // name object and field; empty: none
};

// `key`: "namespace/name" of the PodGroup, for messages. O(sub-groups * log sub-groups).
GangSets ReadGangSets(const model::PodGroupSpec& group, absl::string_view key);
inline GangSets ReadGangSets(const model::PodGroup& group) {
  return ReadGangSets(group, model::Key(group.meta));
}

// The only set of a single pod, or of a group whose PodGroup does not exist (yet).
std::vector<GangSet> SingleSet();

// Where a pod of the workload with this value of kai.scheduler/subgroup-name belongs: the root
// without one, kNoSet if no set has the name. O(sets). While the tree is unknown (no PodGroup, or a
// problem in it) every pod belongs to the root: the group is refused then, not its pods.
int32_t SetOfLabel(const Workload& workload, absl::string_view label);

}  // namespace fairlead::state
