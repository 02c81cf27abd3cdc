#include "scheduler/plugins/node_resources_balanced_allocation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::plugins {
namespace {

using framework::kMaxNodeScore;

// kMaxNodeScore if all resources are used to the same part, half of it if one is full and the other
// is empty. `amount`: which amount of each is in use.
int64_t Balance(const ResourceUses& uses, int64_t ResourceUse::* amount) {
  absl::InlinedVector<double, 4> fractions;
  double total = 0;
  for (const ResourceUse& use : uses) {
    double fraction = static_cast<double>(use.*amount) / static_cast<double>(use.allocatable);
    if (fraction > 1) fraction = 1;
    total += fraction;
    fractions.push_back(fraction);
  }
  double deviation = 0;
  if (fractions.size() == 2) {
    deviation = std::abs((fractions[0] - fractions[1]) / 2);
  } else if (fractions.size() > 2) {
    const double mean = total / static_cast<double>(fractions.size());
    double sum = 0;
    for (const double fraction : fractions) sum = sum + (fraction - mean) * (fraction - mean);
    deviation = std::sqrt(sum / static_cast<double>(fractions.size()));
  }
  return static_cast<int64_t>((1 - deviation) * static_cast<double>(kMaxNodeScore));
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> NodeResourcesBalancedAllocation::Make(
    absl::string_view args_json) {
  std::vector<ResourceWeight> resources = DefaultResourceWeights();
  const ArgReader read = [&](absl::string_view path, const JsonElement& value) {
    FAIRLEAD_RETURN_IF_ERROR(ReadResourceWeights(path, value, /*max_weight=*/1, resources));
    std::set<std::string> names;
    for (size_t i = 0; i < resources.size(); ++i) {
      if (names.insert(resources[i].name).second) continue;
      return BadArg(absl::StrCat(path, "[", i, "].name"), "is there twice");
    }
    return absl::OkStatus();
  };
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {{"resources", read}}));
  return std::make_unique<NodeResourcesBalancedAllocation>(std::move(resources));
}

int64_t NodeResourcesBalancedAllocation::Score(const framework::Context& context,
                                               const state::NodeInfo& node) const {
  const ResourceUses uses = resources_.On(context, node);
  const int64_t with = Balance(uses, &ResourceUse::requested);
  const int64_t without = Balance(uses, &ResourceUse::allocated);
  return kMaxNodeScore / 2 + (kMaxNodeScore / 2 + with - without) / 2;
}

}  // namespace fairlead::plugins
