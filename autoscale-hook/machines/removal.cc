#include "autoscale-hook/machines/removal.h"

#include <algorithm>

#include "autoscale-hook/machines/surplus.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;

bool IsLive(Phase phase) {
  return phase == Phase::kPending || phase == Phase::kLaunched || phase == Phase::kRegistered ||
         phase == Phase::kReady;
}

// The machine is told to go once the API server has this.
void Drain(MachineView& view, StepContext& context, const char* message) {
  view.request().phase = Phase::kDraining;
  view.request().message = message;
  context.Withdraw(view);
}

// True if it has been unneeded for long enough; updates unneeded_since and the taint.
bool IsDue(MachineView& view, StepContext& context) {
  model::NodeRequest& request = view.request();
  if (!view.known_unneeded()) {
    request.unneeded_since.reset();
    if (view.tainted()) context.Taint(view, false);
    return false;
  }
  if (!request.unneeded_since.has_value()) request.unneeded_since = context.now;
  absl::Duration wait =
      view.registered() ? context.options.unneeded_after : context.options.cancel_after;
  if (request.meta.deletion.has_value()) wait = absl::ZeroDuration();
  // A timestamp from the future (a clock that was set back) must not hold it for ever.
  const absl::Time due = std::min(*request.unneeded_since, context.now) + wait;
  if (context.now >= due) return true;
  context.WakeAt(due);
  if (view.tainted()) context.Taint(view, false);
  return false;
}

}  // namespace

void RemoveUnneeded(StepContext& context) {
  std::vector<MachineView*> due;
  for (MachineView& view : context.views) {
    if (IsLive(view.request().phase) && IsDue(view, context)) due.push_back(&view);
  }
  std::stable_sort(due.begin(), due.end(), [](const MachineView* a, const MachineView* b) {
    return a->request().price_micro_usd_per_hour > b->request().price_micro_usd_per_hour;
  });
  int64_t left = context.options.max_removals_per_step;
  for (MachineView& view : context.views) RemoveSurplus(view, context, left);
  for (MachineView* view : due) {
    if (left <= 0) {
      context.WakeAt(context.now + absl::Seconds(1));
      break;
    }
    if (!view->registered()) {
      Drain(*view, context, "cancelled: nothing needs it any more");
      --left;
    } else if (view->fenced()) {
      Drain(*view, context, "removed: nothing needs it any more");
      --left;
    } else if (context.Taint(*view, true)) {
      --left;
    }
  }
}

}  // namespace fairlead::hook
