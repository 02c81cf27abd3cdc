#include "autoscale-hook/machines/launch_sets.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using Kind = LaunchSets::Turn::Kind;

bool WasOrdered(const Machine& machine) {
  const model::NodeRequest& request = machine.desired;
  return machine.launch.started() || request.launched_at.has_value() ||
         request.registered_at.has_value();
}

}  // namespace

LaunchSets::LaunchSets(const MachineLedger& ledger) {
  // One that has not been ordered is not steady.
  ledger.ForEachUnsteady([this](const Machine& machine) {
    if (machine.desired.phase != Phase::kPending) return;
    if (const auto set = LaunchSetOf(machine.desired)) sets_.try_emplace(set->id);
  });
  if (sets_.empty()) return;
  for (const auto& [key, machine] : ledger.rows()) {
    const auto place = sets_.find(std::string(machine.desired.meta.labels.Get(kLaunchSetLabel)));
    if (place == sets_.end()) continue;
    Set& set = place->second;
    set.ordered = set.ordered || WasOrdered(machine);
    set.created_here = set.created_here && machine.created_here;
    if (machine.lost || !machine.Promises()) continue;
    ++(machine.seen() ? set.seen : set.unseen);
    set.youngest = std::max(set.youngest, machine.first_seen);
    if (machine.seen()) set.oldest = std::min(set.oldest, machine.first_seen);
  }
}

LaunchSets::Turn LaunchSets::TurnOf(const Machine& machine, absl::Time now) const {
  const std::optional<LaunchSet> mine = LaunchSetOf(machine.desired);
  if (!mine.has_value()) return {};
  const auto place = sets_.find(mine->id);
  if (place == sets_.end()) return {};
  const Set& set = place->second;
  if (set.ordered || set.seen >= mine->size) return {};
  const int64_t missing = mine->size - set.seen - set.unseen;
  if (missing <= 0) {
    if (mine->atomic) return {Kind::kWait};
    const absl::Time until = set.oldest + kSetPatience;
    return now < until ? Turn{Kind::kWait, until} : Turn{};
  }
  const absl::Time known_at = set.created_here ? now : set.youngest + kDoubtLasts;
  if (now < known_at) return {Kind::kWait, known_at};
  if (!mine->atomic) return {};
  return {Kind::kGiveBack, absl::InfiniteFuture(),
          absl::StrCat("NodeRequests that could not be written, or were deleted: ", missing)};
}

void GiveBack(MachineView& view, StepContext& context, const std::string& why) {
  model::NodeRequest& request = view.request();
  request.phase = Phase::kDraining;
  request.unneeded_since.reset();
  request.message =
      ShortMessage(absl::StrCat("given back, as the machines that were ordered with it cannot all "
                                "be had: ",
                                why));
  context.Withdraw(view);
}

void GiveBackFailedSets(StepContext& context) {
  std::map<std::string, const model::NodeRequest*> failed;  // by id of the set
  for (const MachineView& view : context.views) {
    const model::NodeRequest& request = view.machine->desired;
    if (request.phase != Phase::kFailed) continue;
    const auto set = LaunchSetOf(request);
    if (set.has_value() && set->atomic) failed.try_emplace(set->id, &request);
  }
  if (failed.empty()) return;
  for (MachineView& view : context.views) {
    const Phase phase = view.request().phase;
    if ((phase != Phase::kPending && phase != Phase::kLaunched) || view.registered()) continue;
    const auto place = failed.find(std::string(view.request().meta.labels.Get(kLaunchSetLabel)));
    if (place == failed.end()) continue;
    GiveBack(view, context,
             absl::StrCat("NodeRequest ", place->second->meta.name, ": ", place->second->failure,
                          ": ", place->second->message));
  }
}

}  // namespace fairlead::hook
