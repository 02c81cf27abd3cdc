// Demand that must wait, because it is gathered or beyond the rate of provisioning, is charged to
// its queues meanwhile. So one workload of each such item is planned at once, without requesting
// anything: what cannot be served is refused before it holds other demand below a limit.
//
// The answer holds until the item is planned, or the offers change. Caps are not looked at: what is
// planned before it decides what they leave. For the same reason a reservation of which any node is
// left is enough for every item. Items whose pods look at other pods are not tried: the
// pods that they look at may be gathered too.
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "autoscale-hook/hook_impl.h"

namespace fairlead::hook {

void Hook::Impl::TryHeld(const Demand& demand, Placement& placement, std::vector<Held>& held,
                         StepContext& context) {
  decltype(tried_) known;
  std::vector<size_t> items;
  for (size_t i = 0; i < demand.size(); ++i) {
    if (held[i].why.empty() || held[i].service != Service::kOpen) continue;
    if (!demand[i].charged || !DependsOnItselfAlone(demand[i])) continue;
    const auto before = tried_.find(Gathering::Key(demand[i].is_group, demand[i].workload));
    if (before == tried_.end()) {
      items.push_back(i);
      continue;
    }
    held[i].refused = before->second;
    known.insert(*before);
  }
  tried_ = std::move(known);
  if (items.empty()) return;
  PartPlan part;
  for (const size_t i : items) {
    part.copy.push_back(demand[i]);
    part.copy.back().members = 1;
    part.copy.back().charged = false;  // so that nothing is reported as requested
  }
  part.demand = part.input.demand = &part.copy;
  AddOffers(context.pools, context.now, part.input);
  part.input.caps.AddReservations(part.input.offers, UsageOf(context));
  for (auto& [name, left] : part.input.caps.nodes_by_reservation) {
    if (left > 0) left = kNoBound;
  }
  part.plan = MakePlan(part.input, *Guarded(placement, context.now));
  if (part.plan.retry_at.has_value()) context.WakeAt(*part.plan.retry_at);
  part.planned.resize(part.plan.items.size());
  for (size_t k = 0; k < items.size(); ++k) {
    std::vector<DemandOutcome>& outcomes = context.out.outcomes;
    const size_t first = outcomes.size();
    ReportItem(part.copy[k], part, placement, context);
    std::optional<DemandOutcome> found;
    if (outcomes.size() > first) found = std::move(outcomes[first]);
    outcomes.resize(first);
    // Open: the next step asks again.
    if (!found.has_value() || found->service == Service::kOpen) continue;
    if (found->service == Service::kServed) found.reset();
    const DemandItem& item = demand[items[k]];
    held[items[k]].refused = found;
    tried_.emplace(Gathering::Key(item.is_group, item.workload), std::move(found));
  }
}

}  // namespace fairlead::hook
