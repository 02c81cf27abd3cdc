// The sub-resources of pods: binding and eviction (k8s.io/kubernetes
// pkg/registry/core/pod/storage). Thread-safety: none, one thread.
#pragma once

#include <string>

#include "sim/world/api_writes.h"

namespace fairlead::sim::world {

// Sets the node and merges annotations and labels. Conflict: a node, gates, a deletion, another
// uid.
ApiError BindPod(ApiWriter& writer, const std::string& ns, const std::string& name,
                 const Json& binding, absl::string_view actor);

// What an eviction is answered with: 201 and a Status, which may tell of a failure all the same.
struct EvictionAnswer {
  ApiError error;
  Json status;
};
EvictionAnswer EvictPod(ApiWriter& writer, const std::string& ns, const std::string& name,
                        const Json& eviction, absl::string_view actor);

// Whether a LabelSelector (null: nothing, {}: all) selects these labels.
bool SelectorMatches(const Json* selector, const Json* labels);

// Sets a condition of that type: `condition` lacks the time of its transition, which is `now` where
// the status changes.
void SetCondition(Json& object, Json condition, absl::Time now);

}  // namespace fairlead::sim::world
