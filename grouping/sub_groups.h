// The sub-groups of a group, as the rows of its kind say, and the one that a pod belongs to.
// Internal to grouping. Thread-safety: pure functions. Complexity: O(sub-groups * log sub-groups).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grouping/table.h"
#include "grouping/values.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::grouping {

// As many as the schema of PodGroups permits.
inline constexpr size_t kMostSubGroups = 1024;

struct SubGroups {
  std::vector<model::SubGroup> list;  // a parent is before its parts
  std::optional<std::string> of_pod;  // nothing: no sub-group has the pod
};

// Nothing: no level is named. InvalidArgument: there is a level, but no topology.
absl::StatusOr<std::optional<model::TopologyConstraint>> ReadTopologyOf(const TopologyRow& row,
                                                                        const Scope& scope);

// InvalidArgument "FIELD: what is wrong": names that are no DNS labels, that occur twice or are not
// there, too many sub-groups, indexes without a part.
absl::StatusOr<SubGroups> MakeSubGroups(const std::vector<SubGroupRow>& rows, const Scope& scope);

}  // namespace fairlead::grouping
