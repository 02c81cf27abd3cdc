#include "autoscale-hook/planner/wished_offers.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "scheduler/model/instance_facts.h"

namespace fairlead::hook {

int WishRank(const model::InstanceWishes& wishes, const Offer& offer,
             const model::StringMap& labels) {
  if (wishes.max_micro_usd_per_hour.has_value() &&
      offer.price_micro_usd_per_hour > *wishes.max_micro_usd_per_hour) {
    return kNotWished;
  }
  if (wishes.gpu_models.empty()) return 0;
  const absl::string_view product = model::GpuProductOf(labels);
  for (size_t rank = 0; rank < wishes.gpu_models.size(); ++rank) {
    if (model::GpuModelSuits(wishes.gpu_models[rank], product)) return static_cast<int>(rank);
  }
  return kNotWished;
}

std::string WishNames(const model::InstanceWishes& wishes) {
  std::vector<const char*> names;
  if (!wishes.other_families.empty()) names.push_back("instance-family-exclusions");
  if (!wishes.families.empty()) names.push_back("instance-family-inclusions");
  if (!wishes.gpu_models.empty()) names.push_back("instance-gpu-skus");
  if (wishes.max_micro_usd_per_hour.has_value()) names.push_back("instance-max-cost");
  if (wishes.max_gpus.has_value()) names.push_back("instance-max-gpus");
  if (wishes.spot || wishes.on_demand || wishes.reserved) names.push_back("instance-offerings");
  if (wishes.type.IsSet()) names.push_back("instance-type-regexp");
  return absl::StrJoin(names, ", ");
}

}  // namespace fairlead::hook
