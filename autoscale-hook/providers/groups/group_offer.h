// A group as an instance type, and the checks of what the port says. Prices are in millionths of a
// dollar per hour.
//
// Errors: InvalidArgument with the field, for the message "group g: FIELD: ...". Thread-safety:
// pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"

namespace fairlead::hook {

// More instances of one group are an error: Kubernetes ends at far fewer nodes.
inline constexpr size_t kMostInstances = 50'000;
inline constexpr double kHighestPriceUsd = 100'000;

using InstanceMap = std::map<std::string, CloudInstance>;

absl::Status CheckGroup(const CloudGroup& group);
absl::Status CheckTargetSize(int64_t target);
// Each id is there and occurs once.
absl::StatusOr<InstanceMap> CheckInstances(std::vector<CloudInstance> instances);
absl::Status CheckTemplate(const model::Node& node);
// Absent for 0: servers without prices say so, too.
absl::StatusOr<std::optional<int64_t>> CheckPrice(double dollars_per_hour);

struct OfferParts {
  std::string group;
  const model::Node* node = nullptr;    // a checked template
  std::optional<int64_t> price;         // as the port tells it
  std::string gpu_label;                // whose value is the model of GPUs; empty: none
  const InstanceType* known = nullptr;  // the configured type of the template's instance type
};
// The type that the group sells: amounts, labels and taints are the template's. Taints of the node
// controllers and labels of single nodes are left out. A group is sold as spot if its labels say so
// in the words of AWS, Google, Azure, Karpenter or Fairlead. The model of GPUs is the label
// nvidia.com/gpu.product, else the configured type's, else the value of the GPU label. The price is
// the port's, else the configured type's; without one the type has none and is not offered.
InstanceType MakeInstanceType(const OfferParts& parts);
bool HasPrice(const InstanceType& type);
bool SameTypes(const std::vector<InstanceType>& a, const std::vector<InstanceType>& b);

}  // namespace fairlead::hook
