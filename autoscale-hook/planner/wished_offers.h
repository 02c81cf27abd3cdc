// Which offers may be bought for pods with wishes (model/instance_wishes.h), and in which order of
// their GPU models. What the labels of a node tell, the scheduler's own filter judges; here is what
// only a purchase has: the price, and that a GPU model comes before another one.
//
// Thread-safety: pure functions. Complexity: O(GPU models of the wishes).
#pragma once

#include <string>

#include "autoscale-hook/catalog/catalog.h"
#include "scheduler/model/instance_wishes.h"

namespace fairlead::hook {

inline constexpr int kNotWished = -1;

// Lower is bought first: the place of the offer's GPU model among `gpu_models`, 0 if the pod names
// none. kNotWished: the model is none of them, or the price is above the pod's maximum. `labels`:
// of the node that it would become.
int WishRank(const model::InstanceWishes& wishes, const Offer& offer,
             const model::StringMap& labels);

// WishRank may differ between offers; otherwise it is 0 for all.
inline bool MeasuresOffers(const model::InstanceWishes& wishes) {
  return !wishes.gpu_models.empty() || wishes.max_micro_usd_per_hour.has_value();
}

// The annotations that say something, for people: "instance-gpu-skus, instance-max-cost".
std::string WishNames(const model::InstanceWishes& wishes);

}  // namespace fairlead::hook
