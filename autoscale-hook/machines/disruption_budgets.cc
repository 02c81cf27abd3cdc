#include "autoscale-hook/machines/disruption_budgets.h"

#include <algorithm>

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;

}  // namespace

bool IsDisrupted(const MachineView& view) {
  if (!view.registered()) return false;
  if (view.request().phase == Phase::kDraining || view.machine->emptying.has_value()) return true;
  const auto& taints = view.machine->taints;
  return view.tainted() || std::any_of(taints.begin(), taints.end(),
                                       [](const auto& taint) { return taint.second.wanted; });
}

DisruptionBudgets::DisruptionBudgets(StepContext& context) : context_(context) {
  for (const MachineView& view : context.views) {
    if (!view.registered()) continue;
    Count& count = counts_[view.request().pool];
    ++count.nodes;
    if (IsDisrupted(view)) ++count.disrupted;
  }
  for (const auto& [kind, count] : context.ledger.steady().kinds()) {
    counts_[kind.pool].nodes += count;  // none of them is disrupted
  }
}

const model::Disruption* DisruptionBudgets::OfPool(const std::string& pool) const {
  for (const model::NodePool* known : context_.pools) {
    if (known->meta.name == pool) return &known->disruption;
  }
  return nullptr;
}

model::ConsolidationPolicy DisruptionBudgets::PolicyOf(const std::string& pool) const {
  const model::Disruption* own = OfPool(pool);
  if (own != nullptr && own->consolidation.has_value()) return *own->consolidation;
  return context_.options.disruption.consolidation.value_or(model::ConsolidationPolicy::kWhenEmpty);
}

absl::Duration DisruptionBudgets::WaitOf(const std::string& pool) const {
  const model::Disruption* own = OfPool(pool);
  if (own != nullptr && own->consolidate_after.has_value()) return *own->consolidate_after;
  return context_.options.unneeded_after;
}

bool DisruptionBudgets::Allows(const std::string& pool, model::DisruptionReason reason) {
  const model::Disruption* own = OfPool(pool);
  const auto& budgets =
      own != nullptr && !own->budgets.empty() ? own->budgets : context_.options.disruption.budgets;
  const Count& count = counts_[pool];
  for (const model::DisruptionBudget& budget : budgets) {
    if (!budget.HoldsFor(reason)) continue;
    if (budget.schedule.has_value() && !budget.schedule->IsOpen(context_.now, budget.duration)) {
      continue;
    }
    const int64_t nodes = budget.percent ? (count.nodes * budget.nodes + 99) / 100 : budget.nodes;
    if (count.disrupted < nodes) continue;
    if (budget.schedule.has_value()) {
      const int64_t minute = absl::ToUnixSeconds(context_.now) / 60 + 1;
      context_.WakeAt(absl::FromUnixSeconds(minute * 60));
    }
    return false;
  }
  return true;
}

}  // namespace fairlead::hook
