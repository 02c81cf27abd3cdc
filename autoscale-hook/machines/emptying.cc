#include "autoscale-hook/machines/emptying.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/write_attempts.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using Reason = Machine::Emptying::Reason;

constexpr Backoff kPause = {absl::Minutes(30), absl::Hours(8)};

bool IsReady(const MachineView& view) {
  return view.request().phase == Phase::kReady && view.registered() &&
         !view.request().meta.deletion.has_value();
}

// All of its nodes: a request has one, but for a provider that launched twice.
std::vector<std::string> NamesOf(const MachineView& view) {
  std::vector<std::string> names;
  for (const NodeUse* node : view.nodes) {
    if (node->registered) names.push_back(node->name);
  }
  return names;
}

bool IsInterrupted(const MachineView& view) {
  return std::any_of(view.nodes.begin(), view.nodes.end(),
                     [](const NodeUse* node) { return node->registered && node->interrupted; });
}

// Nothing but pods keeps it.
bool HasOnlyPods(const MachineView& view) {
  return std::all_of(view.nodes.begin(), view.nodes.end(), [](const NodeUse* node) {
    return !node->needed || node->needed_by_pods_alone;
  });
}

void Start(MachineView& view, Reason reason, std::string message, StepContext& context) {
  view.machine->emptying = Machine::Emptying{reason, context.now, false};
  view.machine->spare_since.reset();
  view.request().message = std::move(message);
  context.out.look_again.push_back(view.machine->name());
}

// `why`: null if the request has something else to say.
void Stop(MachineView& view, const char* why, StepContext& context) {
  view.machine->emptying.reset();
  view.machine->spare_since.reset();
  if (why != nullptr) view.request().message = why;
  context.out.look_again.push_back(view.machine->name());
}

// It is not tried again for a while.
void GiveUp(MachineView& view, const char* why, StepContext& context) {
  Machine& machine = *view.machine;
  machine.not_emptied_before = context.now + kPause.Pause(++machine.given_up);
  Stop(view, why, context);
}

bool HasRoom(MachineView& view, Evacuation& evacuation) {
  const std::vector<std::string> names = NamesOf(view);
  const bool may_go = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return evacuation.OccupantsOf(name).blocked_by.empty();
  });
  return may_go && evacuation.FindRoom(names);
}

}  // namespace

void NodeEmptying::AdvanceOne(MachineView& view, StepContext& context, Evacuation* evacuation,
                              bool nodes_wanted) {
  Machine& machine = *view.machine;
  if (!machine.emptying.has_value()) {
    if (IsReady(view) && IsInterrupted(view) && context.now >= machine.not_emptied_before) {
      Start(view, Reason::kInterrupted, "emptied: the cloud takes the machine back", context);
    } else {
      return;
    }
  }
  if (!IsReady(view)) return Stop(view, nullptr, context);
  if (view.known_unneeded()) return;  // removal.h ends it
  Machine::Emptying& emptying = *machine.emptying;
  const bool interrupted = emptying.reason == Reason::kInterrupted;
  if (interrupted && !IsInterrupted(view)) {
    return Stop(view, "not emptied: the cloud keeps the machine", context);
  }
  if (!interrupted && !emptying.evicting && (nodes_wanted || !HasOnlyPods(view))) {
    return Stop(view, "not emptied: it is needed", context);
  }
  if (context.now >= emptying.since + kLongest && evacuation != nullptr) {
    int64_t staying = 0;
    for (const std::string& name : NamesOf(view)) staying += evacuation->OccupantsOf(name).staying;
    if (staying > 0) {
      return GiveUp(view, "not emptied: some of its pods could not be evicted", context);
    }
  }
  context.WakeAt(emptying.since + kLongest);
  if (!view.fenced()) return;
  if (!emptying.evicting && !interrupted) {
    if (evacuation == nullptr) return;
    if (!HasRoom(view, *evacuation)) {
      return GiveUp(view, "not emptied: its pods have no room elsewhere now", context);
    }
  }
  emptying.evicting = true;
  for (const NodeUse* node : view.nodes) {
    if (node->registered) {
      context.out.emptied.push_back({node->name, view.request().message});
    }
  }
}

std::vector<NodeEmptying::Candidate> NodeEmptying::Candidates(StepContext& context,
                                                              DisruptionBudgets& budgets,
                                                              Evacuation& evacuation) {
  std::vector<Candidate> candidates;
  for (MachineView& view : context.views) {
    const model::NodeRequest& request = view.request();
    const bool may_be =
        IsReady(view) && view.ready() && view.surplus.empty() && view.nodes.size() == 1 &&
        !IsDisrupted(view) && view.node()->needed && HasOnlyPods(view) && request.price_known &&
        request.price_micro_usd_per_hour > 0 && context.now >= view.machine->not_emptied_before &&
        budgets.PolicyOf(request.pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized &&
        budgets.WaitOf(request.pool) < absl::InfiniteDuration();
    Candidate candidate{&view, {}};
    if (may_be) {
      candidate.occupants = evacuation.OccupantsOf(view.node()->name);
    }
    if (may_be && candidate.occupants.blocked_by.empty() &&
        candidate.occupants.lost_work < context.options.consolidation_horizon) {
      candidates.push_back(std::move(candidate));
    } else {
      view.machine->spare_since.reset();
    }
  }
  // What evicting costs for each dollar saved, then the dearest.
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    if (a.occupants.lost_work != b.occupants.lost_work) {
      return a.occupants.lost_work < b.occupants.lost_work;
    }
    return a.view->request().price_micro_usd_per_hour > b.view->request().price_micro_usd_per_hour;
  });
  return candidates;
}

void NodeEmptying::Look(StepContext& context, DisruptionBudgets& budgets, Evacuation& evacuation) {
  std::vector<std::string> together;
  std::vector<MachineView*> due;
  size_t looked = 0;
  for (const Candidate& candidate : Candidates(context, budgets, evacuation)) {
    MachineView& view = *candidate.view;
    together.push_back(view.node()->name);
    if (++looked > kMostCandidates || !evacuation.FindRoom(together)) {
      together.pop_back();
      view.machine->spare_since.reset();
      continue;
    }
    if (!view.machine->spare_since.has_value()) view.machine->spare_since = context.now;
    const absl::Time at =
        std::min(*view.machine->spare_since, context.now) + budgets.WaitOf(view.request().pool);
    if (context.now >= at) due.push_back(&view);
  }
  bool started = false;
  for (MachineView* view : due) {
    if (!budgets.Allows(view->request().pool, model::DisruptionReason::kUnderutilized)) continue;
    budgets.Take(view->request().pool);
    Start(*view, Reason::kUnderutilized, "emptied: its pods have room on other nodes", context);
    started = true;
  }
  if (!started) return;
  // The others' room is perhaps taken now.
  for (MachineView& view : context.views) view.machine->spare_since.reset();
}

void NodeEmptying::Advance(StepContext& context, DisruptionBudgets& budgets, Evacuation* evacuation,
                           bool nodes_wanted, bool frozen) {
  bool calm = !nodes_wanted && !frozen && evacuation != nullptr;
  absl::Duration shortest = absl::InfiniteDuration();  // of nodes that may be emptied
  for (MachineView& view : context.views) {
    AdvanceOne(view, context, evacuation, nodes_wanted || frozen);
    const Phase phase = view.request().phase;
    const bool coming =
        phase == Phase::kPending || phase == Phase::kLaunched || phase == Phase::kRegistered;
    const std::optional<Machine::Emptying>& emptying = view.machine->emptying;
    if (coming || emptying.has_value()) calm = false;
    const std::string& pool = view.request().pool;
    if (IsReady(view) &&
        budgets.PolicyOf(pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized) {
      shortest = std::min(shortest, budgets.WaitOf(pool));
    }
  }
  if (shortest == absl::InfiniteDuration()) return;
  const absl::Duration every = std::clamp(shortest / 4, kLookSoonest, kLookEvery);
  const absl::Time next = looked_at_ + every;
  if (context.now < next) return context.WakeAt(next);
  looked_at_ = context.now;
  context.WakeAt(context.now + every);
  if (calm) {
    Look(context, budgets, *evacuation);
  } else {
    for (MachineView& view : context.views) view.machine->spare_since.reset();
  }
}

}  // namespace fairlead::hook
