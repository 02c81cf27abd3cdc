#include "autoscale-hook/machines/replacement.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/planner.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using Replacing = Machine::Replacing;

constexpr absl::Duration kAskAgain = absl::Seconds(10);

// A year at most: prices times that are far from the end of 128 bits.
absl::int128 Seconds(absl::Duration duration) {
  return absl::ToInt64Seconds(std::clamp(duration, absl::ZeroDuration(), absl::Hours(24 * 366)));
}

bool IsComing(const Machine& machine) {
  const Phase phase = machine.desired.phase;
  const bool lives = phase == Phase::kPending || phase == Phase::kLaunched ||
                     phase == Phase::kRegistered || phase == Phase::kReady;
  return lives && !machine.lost && !machine.desired.meta.deletion.has_value();
}

bool Stands(const Machine& machine) {
  return machine.seen() && machine.desired.phase == Phase::kReady &&
         !machine.desired.meta.deletion.has_value();
}

// Null: it is gone.
const Machine* FindReplaced(const model::ReplacedRequest& replaced, const MachineLedger& ledger) {
  const auto row = ledger.rows().find(replaced.uid);
  return row == ledger.rows().end() || row->second.lost ? nullptr : &row->second;
}

// Its last pods have left it a moment ago, so those in their stead are perhaps not placed yet.
bool IsLeaving(const Machine& machine, absl::Time now) {
  if (machine.desired.phase != Phase::kDraining) return false;
  const std::optional<absl::Time>& since = machine.desired.unneeded_since;
  return since.has_value() && now < std::min(*since, now) + NodeReplacement::kArrival;
}

// It is removed because nothing needed it, which is no failure. Found again after a restart.
bool WasGivenBack(const Machine& machine) {
  return machine.desired.phase == Phase::kDraining && machine.desired.unneeded_since.has_value();
}

}  // namespace

void ReplacementPrices::Add(int64_t price_micro_usd_per_hour, absl::Duration lost_work) {
  old_price = model::SaturatingAdd(old_price, price_micro_usd_per_hour);
  lost += Seconds(lost_work) * price_micro_usd_per_hour;
}

bool Pays(const ReplacementPrices& prices, absl::Duration horizon) {
  const absl::int128 from = prices.old_price, to = prices.new_price;
  if (to * 100 > from * (100 - NodeReplacement::kLeastSavingPercent)) return false;
  return (from - to) * Seconds(horizon) > prices.lost + to * Seconds(prices.boot);
}

void NodeReplacement::Mark(MachineLedger& ledger, absl::Time now) {
  std::vector<Machine*> machines;
  for (const auto& [name, machine] : ledger.unsteady()) {
    if (!machine->desired.replaces.empty()) machines.push_back(machine);
  }
  for (const Machine* unseen : ledger.Unseen()) {
    if (!unseen->desired.replaces.empty()) machines.push_back(&ledger.Edit(*unseen));
  }
  std::sort(machines.begin(), machines.end(),
            [](const Machine* a, const Machine* b) { return a->name() < b->name(); });
  std::set<std::string> claimed;  // uids: two leaders may each have replaced the same machine
  for (Machine* machine : machines) {
    machine->replacing = Replacing::kNo;
    if (!IsComing(*machine)) continue;
    bool stands = false, leaving = false, first = true, exists = false;
    for (const model::ReplacedRequest& one : machine->desired.replaces) {
      const Machine* replaced = FindReplaced(one, ledger);
      if (replaced == nullptr) continue;
      exists = true;
      stands = stands || Stands(*replaced);
      leaving = leaving || IsLeaving(*replaced, now);
      first = first && !claimed.contains(one.uid);
    }
    if (!exists) continue;
    machine->replacing = Replacing::kGivenBack;
    if (!stands && !leaving) continue;
    if (machine->replacement_over || !first) continue;
    machine->replacing = Replacing::kAwaitsPods;
    for (const model::ReplacedRequest& one : machine->desired.replaces) claimed.insert(one.uid);
  }
}

bool NodeReplacement::Rests(const Machine& machine, const StepContext& context) {
  const model::NodeRequest& request = machine.desired;
  if (request.replaces.empty() || !request.ready_at.has_value()) return false;
  return context.now <
         std::min(*request.ready_at, context.now) + context.options.consolidation_horizon;
}

absl::Time NodeReplacement::Note(const std::string& key, absl::Time now) {
  const auto known = former_since_.find(key);
  const absl::Time since = known == former_since_.end() ? now : std::min(known->second, now);
  since_.emplace(key, since);
  return since;
}

NodeReplacement::Replaced NodeReplacement::StandingOf(const Machine& machine,
                                                      const MachineLedger& ledger) {
  Replaced replaced;
  for (const model::ReplacedRequest& one : machine.desired.replaces) {
    const Machine* found = FindReplaced(one, ledger);
    if (found == nullptr || !Stands(*found) || found->emptying.has_value()) continue;
    replaced.push_back(found);
  }
  return replaced;
}

NodeReplacement::Replaced NodeReplacement::WithoutOther(Replaced replaced,
                                                        const StepContext& context) {
  const auto awaits = [](const Machine& machine, const Machine& old) {
    const std::vector<model::ReplacedRequest>& replaces = machine.desired.replaces;
    return machine.replacing == Replacing::kAwaitsPods &&
           std::any_of(replaces.begin(), replaces.end(), [&](const model::ReplacedRequest& one) {
             return one.uid == old.desired.meta.uid;
           });
  };
  const std::vector<const Machine*> unseen = context.ledger.Unseen();
  std::erase_if(replaced, [&](const Machine* old) {
    return std::any_of(context.views.begin(), context.views.end(),
                       [&](const MachineView& view) { return awaits(*view.machine, *old); }) ||
           std::any_of(unseen.begin(), unseen.end(),
                       [&](const Machine* machine) { return awaits(*machine, *old); });
  });
  return replaced;
}

void NodeReplacement::GiveUp(Machine& machine, const Replaced& replaced, const char* why,
                             NodeEmptying& emptying, StepContext& context) {
  machine.replacement_over = true;
  if (machine.replacing == Replacing::kAwaitsPods) machine.replacing = Replacing::kGivenBack;
  for (const Machine* one : replaced) emptying.GiveUp(context.ViewOf(*one), why, context);
}

// It is as it was when the machine was requested, and nothing else is going on.
bool NodeReplacement::MayBegin(const Machine& machine, const Replaced& replaced,
                               StepContext& context, Evacuation& evacuation) {
  return std::all_of(replaced.begin(), replaced.end(),
                     [&](const Machine* one) {
                       const MachineView& view = context.ViewOf(*one);
                       return view.ready() && view.surplus.empty() && view.nodes.size() == 1 &&
                              !IsDisrupted(view) && view.node()->needed_by_pods_alone &&
                              evacuation.OccupantsOf(view.node()->name).blocked_by.empty();
                     }) &&
         context.ViewOf(machine).ready();
}

// The pods follow, if it still pays and they have room.
void NodeReplacement::Begin(Machine& machine, const Replaced& replaced, StepContext& context,
                            DisruptionBudgets& budgets, Evacuation& evacuation,
                            NodeEmptying& emptying) {
  std::vector<std::string> names;
  const model::NodeRequest& request = machine.desired;
  ReplacementPrices prices;
  prices.new_price = request.reservation.empty() ? request.price_micro_usd_per_hour : 0;
  for (const Machine* one : replaced) {
    names.push_back(one->desired.node_name);
    prices.Add(one->desired.price_micro_usd_per_hour,
               evacuation.OccupantsOf(names.back()).lost_work);
  }
  if (!Pays(prices, context.options.consolidation_horizon)) {
    return GiveUp(machine, replaced, "not replaced: its pods would lose too much", emptying,
                  context);
  }
  if (!evacuation.FindRoom(names)) {
    return GiveUp(machine, replaced, "not replaced: its pods have no room on the new node",
                  emptying, context);
  }
  for (const Machine* one : replaced) {
    const std::string& pool = one->desired.pool;
    if (!budgets.Allows(pool, model::DisruptionReason::kUnderutilized)) return;
    budgets.Take(pool);
  }
  for (const Machine* one : replaced) {
    emptying.Start(context.ViewOf(*one), NodeEmptying::Reason::kReplaced,
                   absl::StrCat("emptied: NodeRequest ", machine.name(), " takes its place, for ",
                                FormatDollars(request.price_micro_usd_per_hour),
                                " an hour instead of ", FormatDollars(prices.old_price)),
                   context);
  }
}

void NodeReplacement::AdvanceOne(Machine& machine, StepContext& context, DisruptionBudgets& budgets,
                                 Evacuation* evacuation, NodeEmptying& emptying, bool calm) {
  Replaced replaced = StandingOf(machine, context.ledger);
  const auto give_up = [&](const char* why) { GiveUp(machine, replaced, why, emptying, context); };
  if (!IsComing(machine)) {
    if (machine.replacement_over || WasGivenBack(machine)) return;
    return GiveUp(machine, WithoutOther(replaced, context),
                  "not replaced: the machine that was to take its place is gone", emptying,
                  context);
  }
  if (machine.replacing != Replacing::kAwaitsPods) return;
  context.WakeAt(context.now + kArrival);
  if (replaced.empty()) return;
  // What is being removed, because nothing needs it, is not waited for.
  std::erase_if(replaced, [&](const Machine* one) {
    const MachineView& view = context.ViewOf(*one);
    return view.known_unneeded() && view.tainted();
  });
  const bool permitted = std::all_of(replaced.begin(), replaced.end(), [&](const Machine* one) {
    const std::string& pool = one->desired.pool;
    return budgets.PolicyOf(pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized &&
           budgets.WaitOf(pool) < absl::InfiniteDuration();
  });
  if (!permitted) return give_up("not replaced: its NodePool does not permit it any more");
  const bool vacant = std::all_of(replaced.begin(), replaced.end(), [&](const Machine* one) {
    return context.ViewOf(*one).known_unneeded();
  });
  if (vacant) return GiveUp(machine, {}, "", emptying, context);  // they go by themselves
  if (machine.desired.phase != Phase::kReady) return;
  const absl::Time end = machine.desired.ready_at.value_or(context.now) + kPatience;
  if (context.now >= end) return give_up("not replaced: its pods could not be moved in time");
  context.WakeAt(std::min(end, context.now + kAskAgain));
  if (calm && evacuation != nullptr && MayBegin(machine, replaced, context, *evacuation)) {
    Begin(machine, replaced, context, budgets, *evacuation, emptying);
  }
}

void NodeReplacement::Advance(StepContext& context, DisruptionBudgets& budgets,
                              Evacuation* evacuation, NodeEmptying& emptying, bool nodes_wanted,
                              bool frozen) {
  std::vector<Machine*> machines;
  for (const MachineView& view : context.views) {
    if (!view.request().replaces.empty()) machines.push_back(view.machine);
  }
  for (Machine* machine : machines) {
    AdvanceOne(*machine, context, budgets, evacuation, emptying, !nodes_wanted && !frozen);
  }
}

}  // namespace fairlead::hook
