#include "scheduler/plugins/resource_scores.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace fairlead::plugins {
namespace {

using framework::kMaxNodeScore;

constexpr int64_t kMaxWeight = 100;
constexpr int64_t kMaxUtilization = 100;
constexpr int64_t kMaxShapeScore = 10;

// In the order of ScoringStrategy::Type.
const std::vector<std::string>& TypeNames() {
  static const auto& names = *new std::vector<std::string>(
      {"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"});
  return names;
}

// Upstream's IsScalarResourceName: resources of a node besides CPU, memory, ephemeral storage and
// pods have such names. Whether the API server would accept the name does not matter.
bool IsExtended(absl::string_view name) {
  const bool native = !absl::StrContains(name, "/") || absl::StrContains(name, "kubernetes.io/");
  return (!native && !absl::StartsWith(name, "requests.")) ||
         absl::StrContains(name, "kubernetes.io/") || absl::StartsWith(name, "hugepages-") ||
         absl::StartsWith(name, "attachable-volumes-");
}

std::optional<model::ResourceIndex> WellKnown(absl::string_view name) {
  if (name == model::kCpuName) return model::kCpu;
  if (name == model::kMemoryName) return model::kMemory;
  if (name == model::kEphemeralStorageName) return model::kEphemeralStorage;
  if (name == model::kGpuName) return model::kGpu;
  return std::nullopt;
}

int64_t LeastAllocated(const ResourceUse& use) {
  if (use.requested > use.allocatable) return 0;
  return (use.allocatable - use.requested) * kMaxNodeScore / use.allocatable;
}

int64_t MostAllocated(const ResourceUse& use) {
  return std::min(use.requested, use.allocatable) * kMaxNodeScore / use.allocatable;
}

// Between two points of the shape on the line through both; beyond it as at its end.
int64_t ByShape(const std::vector<ScoringStrategy::Point>& shape, int64_t utilization) {
  const auto right = std::find_if(shape.begin(), shape.end(), [&](const auto& point) {
    return utilization <= point.utilization;
  });
  if (right == shape.end()) return shape.back().score;
  if (right == shape.begin()) return right->score;
  const auto left = std::prev(right);
  return left->score + (right->score - left->score) * (utilization - left->utilization) /
                           (right->utilization - left->utilization);
}

int64_t ByRatio(const std::vector<ScoringStrategy::Point>& shape, const ResourceUse& use) {
  if (use.requested > use.allocatable) return ByShape(shape, kMaxUtilization);
  return ByShape(shape, use.requested * kMaxUtilization / use.allocatable);
}

absl::Status ReadShape(absl::string_view path, const JsonElement& value,
                       std::vector<ScoringStrategy::Point>& shape) {
  shape.clear();
  return ReadItems(path, value, [&](absl::string_view at, const JsonElement& item) {
    ScoringStrategy::Point point;
    FAIRLEAD_RETURN_IF_ERROR(ReadFields(at, item,
                                        {{"utilization", &point.utilization, 0, kMaxUtilization},
                                         {"score", &point.score, 0, kMaxShapeScore}}));
    if (!shape.empty() && shape.back().utilization >= point.utilization) {
      return BadArg(absl::StrCat(at, ".utilization"), "must be above that of the point before");
    }
    point.score *= kMaxNodeScore / kMaxShapeScore;
    shape.push_back(point);
    return absl::OkStatus();
  });
}

}  // namespace

// ---- arguments

std::vector<ResourceWeight> DefaultResourceWeights() {
  return {{model::kCpuName}, {model::kMemoryName}};
}

absl::Status ReadResourceWeights(absl::string_view path, const JsonElement& value,
                                 int64_t max_weight, std::vector<ResourceWeight>& out) {
  std::vector<ResourceWeight> read;
  FAIRLEAD_RETURN_IF_ERROR(
      ReadItems(path, value, [&](absl::string_view at, const JsonElement& item) {
        ResourceWeight& resource = read.emplace_back();
        FAIRLEAD_RETURN_IF_ERROR(ReadFields(
            at, item, {{"name", &resource.name}, {"weight", &resource.weight, 0, max_weight}}));
        if (resource.name.empty()) return BadArg(absl::StrCat(at, ".name"), "must be specified");
        if (resource.weight == 0) resource.weight = 1;
        return absl::OkStatus();
      }));
  if (!read.empty()) out = std::move(read);
  return absl::OkStatus();
}

absl::Status ReadScoringStrategy(absl::string_view path, const JsonElement& value,
                                 ScoringStrategy& out) {
  std::string type;
  bool has_ratio = false;
  const ArgReader read_shape = [&](absl::string_view at, const JsonElement& shape) {
    return ReadShape(at, shape, out.shape);
  };
  const ArgReader read_ratio = [&](absl::string_view at, const JsonElement& ratio) {
    has_ratio = true;
    return ReadFields(at, ratio, {{"shape", read_shape}});
  };
  const ArgReader read_resources = [&](absl::string_view at, const JsonElement& resources) {
    return ReadResourceWeights(at, resources, kMaxWeight, out.resources);
  };
  FAIRLEAD_RETURN_IF_ERROR(ReadFields(path, value,
                                      {{"type", &type, 0, 0, TypeNames()},
                                       {"resources", read_resources},
                                       {"requestedToCapacityRatio", read_ratio}}));
  const auto found = std::find(TypeNames().begin(), TypeNames().end(), type);
  if (found == TypeNames().end()) {
    return BadArg(absl::StrCat(path, ".type"),
                  absl::StrCat("must be one of ", absl::StrJoin(TypeNames(), ", ")));
  }
  out.type = static_cast<ScoringStrategy::Type>(found - TypeNames().begin());
  const std::string ratio = absl::StrCat(path, ".requestedToCapacityRatio");
  const bool by_ratio = out.type == ScoringStrategy::Type::kRequestedToCapacityRatio;
  if (by_ratio && !has_ratio) {
    return BadArg(ratio, "must be specified if type is RequestedToCapacityRatio");
  }
  if (!by_ratio && has_ratio) {
    return BadArg(ratio, "must not be specified unless type is RequestedToCapacityRatio");
  }
  if (by_ratio && out.shape.empty()) {
    return BadArg(absl::StrCat(ratio, ".shape"), "must have at least one point");
  }
  return absl::OkStatus();
}

// ---- use

ScoredResources::ScoredResources(std::vector<ResourceWeight> resources, Count count)
    : count_(count) {
  for (ResourceWeight& each : resources) {
    const std::optional<model::ResourceIndex> index = WellKnown(each.name);
    const bool extended = IsExtended(each.name);
    // A node has nothing of the others, whatever its object says: "pods", for one.
    if (!index.has_value() && !extended) continue;
    resources_.push_back({std::move(each.name), each.weight, extended, index});
  }
}

ResourceUses ScoredResources::On(const framework::Context& context,
                                 const state::NodeInfo& node) const {
  ResourceUses uses;
  for (const Resource& resource : resources_) {
    const std::optional<model::ResourceIndex> index =
        resource.index.has_value() ? resource.index
                                   : context.state.resource_names().Find(resource.name);
    if (!index.has_value()) continue;
    const bool scoring = count_ == Count::kScoringRequests && !resource.extended &&
                         *index != model::kEphemeralStorage;
    const state::PodClass& pod_class = context.pod_class;
    const model::ScoringRequests& waiting = pod_class.spec->scoring_requests;
    const int64_t request =
        !scoring ? pod_class.requests[*index]
                 : std::max<int64_t>(
                       0, *index == model::kCpu ? waiting.WaitingCpu() : waiting.WaitingMemory());
    if (resource.extended && request == 0) continue;
    const int64_t allocatable = node.allocatable[*index];
    if (allocatable == 0) continue;
    const int64_t allocated = (scoring ? node.used_for_scores : node.used)[*index];
    uses.push_back(
        {model::SaturatingAdd(allocated, request), allocated, allocatable, resource.weight});
  }
  return uses;
}

bool ScoredResources::AllUnrequested(const model::PodSpec& spec) const {
  return std::all_of(resources_.begin(), resources_.end(), [&](const Resource& resource) {
    return model::Get(spec.requests, resource.name) == 0;
  });
}

int64_t ScoringStrategy::Score(absl::Span<const ResourceUse> uses) const {
  int64_t sum = 0;
  int64_t weights = 0;
  for (const ResourceUse& use : uses) {
    int64_t score = 0;
    switch (type) {
      case Type::kLeastAllocated:
        score = LeastAllocated(use);
        break;
      case Type::kMostAllocated:
        score = MostAllocated(use);
        break;
      case Type::kRequestedToCapacityRatio:
        score = ByRatio(shape, use);
        if (score == 0) continue;  // and then its weight does not count, as in upstream
        break;
    }
    sum += score * use.weight;
    weights += use.weight;
  }
  if (weights == 0) return 0;
  if (type != Type::kRequestedToCapacityRatio) return sum / weights;
  return static_cast<int64_t>(std::round(static_cast<double>(sum) / static_cast<double>(weights)));
}

}  // namespace fairlead::plugins
