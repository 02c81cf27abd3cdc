#include "autoscale-hook/machines/emptying.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
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

bool HasRoom(MachineView& view, Evacuation& evacuation) {
  const std::vector<std::string> names = NamesOf(view);
  const bool may_go = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return evacuation.OccupantsOf(name).blocked_by.empty();
  });
  return may_go && evacuation.FindRoom(names);
}

}  // namespace

void NodeEmptying::Start(MachineView& view, Reason reason, std::string message,
                         StepContext& context) {
  view.machine->emptying = Machine::Emptying{reason, context.now, false};
  spare_since_.erase(view.machine->key);
  view.request().message = std::move(message);
  context.out.look_again.push_back(view.machine->name());
}

void NodeEmptying::Stop(MachineView& view, const char* why, StepContext& context) {
  view.machine->emptying.reset();
  spare_since_.erase(view.machine->key);
  if (why != nullptr) view.request().message = why;
  context.out.look_again.push_back(view.machine->name());
}

void NodeEmptying::GiveUp(MachineView& view, const char* why, StepContext& context) {
  Machine& machine = *view.machine;
  machine.not_emptied_before = context.now + kPause.Pause(++machine.given_up);
  Stop(view, why, context);
}

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
  const auto pool_permits = [&](const std::string& pool) {
    return budgets.PolicyOf(pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized &&
           budgets.WaitOf(pool) < absl::InfiniteDuration();
  };
  const auto add = [&](const Machine& machine, const std::string& node) {
    if (context.now < machine.not_emptied_before) return;
    const Occupants occupants = evacuation.OccupantsOf(node);
    if (!occupants.blocked_by.empty() ||
        occupants.lost_work >= context.options.consolidation_horizon) {
      return;
    }
    candidates.push_back({&machine, &node, occupants.lost_work});
  };
  for (const MachineView& view : context.views) {
    const model::NodeRequest& request = view.request();
    const bool may_be = IsReady(view) && view.ready() && view.surplus.empty() &&
                        view.nodes.size() == 1 && !IsDisrupted(view) && view.node()->needed &&
                        HasOnlyPods(view) && request.reservation.empty() && request.price_known &&
                        request.price_micro_usd_per_hour > 0 && pool_permits(request.pool);
    if (may_be) add(*view.machine, view.node()->name);
  }
  absl::flat_hash_map<const SteadyKind*, bool> permits;
  for (const auto& [kind, count] : context.ledger.steady().kinds()) {
    permits[&kind] = kind.by_pods_alone && kind.reservation.empty() &&
                     kind.price_micro_usd_per_hour > 0 && pool_permits(kind.pool);
  }
  context.ledger.steady().ForEach([&](const SteadyKind& kind, const Machine& machine) {
    if (permits.at(&kind)) add(machine, machine.desired.node_name);
  });
  return candidates;
}

void NodeEmptying::Look(StepContext& context, DisruptionBudgets& budgets, Evacuation& evacuation) {
  std::vector<Candidate> candidates = Candidates(context, budgets, evacuation);
  const auto first = candidates.begin();
  const auto end = first + static_cast<ptrdiff_t>(std::min(kMostCandidates, candidates.size()));
  // What evicting costs for each dollar saved, then the dearest.
  std::partial_sort(first, end, candidates.end(), [](const Candidate& a, const Candidate& b) {
    const auto key = [](const Candidate& c) {
      const model::NodeRequest& request = c.machine->desired;
      return std::make_tuple(c.lost_work, -request.price_micro_usd_per_hour,
                             absl::string_view(request.meta.name));
    };
    return key(a) < key(b);
  });
  std::map<std::string, absl::Time> spare_since;
  std::vector<std::string> together;
  std::vector<const Machine*> due;
  for (auto candidate = first; candidate != end; ++candidate) {
    const Machine& machine = *candidate->machine;
    together.push_back(*candidate->node);
    if (!evacuation.FindRoom(together)) {
      together.pop_back();
      roomless_->push_back(*candidate);
      continue;
    }
    const auto known = spare_since_.find(machine.key);
    const absl::Time since = known == spare_since_.end() ? context.now : known->second;
    spare_since.emplace(machine.key, since);
    const absl::Time at = std::min(since, context.now) + budgets.WaitOf(machine.desired.pool);
    if (context.now >= at) due.push_back(&machine);
  }
  spare_since_ = std::move(spare_since);
  bool started = false;
  // The others have their turn when no node waits to be emptied, or only budgets hold those.
  if (due.size() < together.size()) roomless_->clear();
  for (const Machine* machine : due) {
    const std::string& pool = machine->desired.pool;
    if (!budgets.Allows(pool, model::DisruptionReason::kUnderutilized)) continue;
    budgets.Take(pool);
    Start(context.ViewOf(*machine), Reason::kUnderutilized,
          "emptied: its pods have room on other nodes", context);
    started = true;
  }
  if (!started) return;
  spare_since_.clear();  // the others' room is perhaps taken now
  roomless_->clear();
}

void NodeEmptying::Advance(StepContext& context, DisruptionBudgets& budgets, Evacuation* evacuation,
                           bool nodes_wanted, bool frozen) {
  roomless_.reset();
  bool calm = !nodes_wanted && !frozen && evacuation != nullptr;
  absl::Duration shortest = absl::InfiniteDuration();  // of nodes that may be emptied
  for (MachineView& view : context.views) {
    AdvanceOne(view, context, evacuation, nodes_wanted || frozen);
    const Phase phase = view.request().phase;
    const bool coming =
        phase == Phase::kPending || phase == Phase::kLaunched || phase == Phase::kRegistered;
    const std::optional<Machine::Emptying>& emptying = view.machine->emptying;
    const bool replaces = view.machine->replacing == Machine::Replacing::kAwaitsPods;
    if (coming || replaces || emptying.has_value()) calm = false;
    const std::string& pool = view.request().pool;
    if (IsReady(view) &&
        budgets.PolicyOf(pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized) {
      shortest = std::min(shortest, budgets.WaitOf(pool));
    }
  }
  for (const auto& [kind, count] : context.ledger.steady().kinds()) {
    if (budgets.PolicyOf(kind.pool) == model::ConsolidationPolicy::kWhenEmptyOrUnderutilized) {
      shortest = std::min(shortest, budgets.WaitOf(kind.pool));
    }
  }
  if (shortest == absl::InfiniteDuration()) return;
  const absl::Duration every = std::clamp(shortest / 4, kLookSoonest, kLookEvery);
  const absl::Time next = looked_at_ + every;
  if (context.now < next) return context.WakeAt(next);
  looked_at_ = context.now;
  context.WakeAt(context.now + every);
  roomless_.emplace();
  if (calm) {
    Look(context, budgets, *evacuation);
  } else {
    spare_since_.clear();
  }
}

}  // namespace fairlead::hook
