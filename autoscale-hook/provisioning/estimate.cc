#include "autoscale-hook/provisioning/estimate.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/planner/planner.h"

namespace fairlead::hook {

std::string NodesAndPrice(const Estimate& estimate) {
  std::string text;
  for (size_t i = 0; i < estimate.nodes.size(); ++i) {
    const Estimate::Nodes& nodes = estimate.nodes[i];
    const char* joint = i == 0 ? "" : i + 1 == estimate.nodes.size() ? " and " : ", ";
    absl::StrAppend(&text, joint, nodes.count, " x ", nodes.type, nodes.spot ? " (spot)" : "");
    if (!nodes.reservation.empty()) absl::StrAppend(&text, " (reserved, ", nodes.reservation, ")");
  }
  return absl::StrCat(text, ", ", FormatDollars(estimate.price_micro_usd_per_hour), " an hour");
}

Estimate Hook::Impl::EstimateFor(const DemandItem& item, std::vector<const model::NodePool*> pools,
                                 Placement& placement, absl::Time now) const {
  if (pools.empty()) pools.push_back(&default_pool_);
  const Demand demand = {item};
  PlanInput input;
  input.demand = &demand;
  AddOffers(pools, now, input);
  input.caps.nodes_by_reservation = reserved_left_;
  const std::unique_ptr<Placement> guarded = Guarded(placement, now);
  const Plan plan = MakePlan(input, *guarded);
  Estimate estimate;
  std::map<std::tuple<std::string, bool, std::string>, int64_t> counts;
  for (const PlannedNode& node : plan.nodes) {
    const Reservation* reservation = node.offer.reservation;
    ++counts[{node.offer.type->name, node.offer.spot,
              reservation == nullptr ? "" : reservation->name}];
    for (const auto& [outcome, pods] : node.pods_of_item) estimate.pods += pods;
  }
  for (const auto& [kind, count] : counts) {
    const auto& [type, spot, reservation] = kind;
    estimate.nodes.push_back({type, spot, count, reservation});
  }
  estimate.price_micro_usd_per_hour = plan.price_micro_usd_per_hour;
  for (const ItemOutcome& outcome : plan.items) {
    estimate.details.insert(estimate.details.end(), outcome.details.begin(), outcome.details.end());
    if (!outcome.alternative.empty()) estimate.details.push_back(outcome.alternative);
  }
  return estimate;
}

Estimate Hook::EstimateFor(const DemandItem& item, const std::vector<const model::NodePool*>& pools,
                           Placement& placement, absl::Time now) const {
  return impl_->EstimateFor(item, pools, placement, now);
}

}  // namespace fairlead::hook
