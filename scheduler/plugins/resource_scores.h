// How full a node would be with a pod, resource by resource, and what strategies make of it: what
// the scores of NodeResourcesFit and NodeResourcesBalancedAllocation share.
//
// Source: pkg/scheduler/framework/plugins/noderesources of Kubernetes 1.36 (resource_allocation.go,
// least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go) and helper/shape_score.go.
// The integer arithmetic is upstream's; amounts are in base units, of which ratios do not depend.
//
// Thread-safety: immutable. Complexity: O(resources) a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {

struct ResourceWeight {
  std::string name;
  int64_t weight = 1;
};

// Reads a list of {"name", "weight"} with weights of at most `max_weight`, 1 if absent or 0. An
// empty list leaves `out` as it is.
absl::Status ReadResourceWeights(absl::string_view path, const JsonElement& value,
                                 int64_t max_weight, std::vector<ResourceWeight>& out);
// CPU and memory, as they are scored by default.
std::vector<ResourceWeight> DefaultResourceWeights();

// One resource of a node.
struct ResourceUse {
  int64_t requested = 0;    // by its pods and the one that is scored
  int64_t allocated = 0;    // by its pods
  int64_t allocatable = 0;  // above 0
  int64_t weight = 1;
};
using ResourceUses = absl::InlinedVector<ResourceUse, 4>;

class ScoredResources {
 public:
  // What CPU and memory are counted by: what pods request, or what they count for scores
  // (model::ScoringRequests; needs StateOptions::sum_scoring_requests).
  enum class Count : uint8_t { kRequests, kScoringRequests };
  ScoredResources(std::vector<ResourceWeight> resources, Count count);

  // Those that count on the node: it has some, and if the resource is an extended one, the pod
  // requests some.
  [[nodiscard]] ResourceUses On(const framework::Context& context,
                                const state::NodeInfo& node) const;
  // Pods of the class request nothing of any.
  [[nodiscard]] bool AllUnrequested(const model::PodSpec& spec) const;
  // None can count on any node.
  [[nodiscard]] bool empty() const { return resources_.empty(); }

 private:
  struct Resource {
    std::string name;
    int64_t weight;
    bool extended;
    std::optional<model::ResourceIndex> index;  // of one that every table has
  };
  std::vector<Resource> resources_;
  Count count_;
};

// Upstream's scoringStrategy.
struct ScoringStrategy {
  enum class Type : uint8_t { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };
  struct Point {
    int64_t utilization = 0;  // 0..100, ascending
    int64_t score = 0;        // 0..100
  };
  Type type = Type::kLeastAllocated;
  std::vector<ResourceWeight> resources = DefaultResourceWeights();
  std::vector<Point> shape = {};  // of kRequestedToCapacityRatio, at least one

  // 0..100; 0 if nothing counts.
  [[nodiscard]] int64_t Score(absl::Span<const ResourceUse> uses) const;
};

absl::Status ReadScoringStrategy(absl::string_view path, const JsonElement& value,
                                 ScoringStrategy& out);

}  // namespace fairlead::plugins
