#include "autoscale-hook/machines/removal.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/machines/surplus.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;

constexpr char kFrozen[] = "not removed: ";
// Before the next billing period begins: the taint, its fence and the provider take some time.
constexpr absl::Duration kEndsBefore = absl::Minutes(2);

bool IsLive(Phase phase) {
  return phase == Phase::kPending || phase == Phase::kLaunched || phase == Phase::kRegistered ||
         phase == Phase::kReady;
}

// The machine is told to go once the API server has this.
void Drain(MachineView& view, StepContext& context, const char* message) {
  view.request().phase = Phase::kDraining;
  view.request().message = message;
  view.machine->emptying.reset();
  context.Withdraw(view);
}

// When a machine that was unneeded since then may go.
absl::Time DueAt(const MachineView& view, absl::Time since, StepContext& context,
                 const DisruptionBudgets& budgets) {
  const HookOptions& options = context.options;
  const model::NodeRequest& request = view.request();
  // A timestamp from the future (a clock that was set back) must not hold it for ever.
  const absl::Time from = std::min(since, context.now);
  if (request.meta.deletion.has_value()) return from;
  if (!view.registered()) return from + options.cancel_after;
  if (view.machine->emptying.has_value()) return from;
  if (view.machine->replacing == Machine::Replacing::kGivenBack) return from;
  absl::Time due = from + budgets.WaitOf(request.pool);
  if (!request.launched_at.has_value()) return due;
  const absl::Time launched = std::min(*request.launched_at, context.now);
  due = std::max(due, launched + options.minimum_lifetime);
  const absl::Duration period = options.billing_period;
  if (period > absl::ZeroDuration() && due < absl::InfiniteFuture()) {
    // What is paid for is used: shortly before the end of the period in which it is due, and not
    // in a later part of one that has just begun.
    const absl::Duration margin = std::min(kEndsBefore, period / 4);
    const absl::Time at = std::max(due, context.now);
    const int64_t begun = (at + margin - launched) / period;  // periods, by then
    const absl::Time window = launched + period * (begun + 1) - margin;
    // Whether `at` itself is in the last minutes of a period.
    const bool in_window = begun > (at - launched) / period;
    due = in_window ? at : window;
  }
  return due;
}

// True if it has been unneeded for long enough; updates unneeded_since and the taint.
bool IsDue(MachineView& view, StepContext& context, const DisruptionBudgets& budgets) {
  model::NodeRequest& request = view.request();
  if (!view.known_unneeded()) {
    request.unneeded_since.reset();
    const bool emptied = view.machine->emptying.has_value();
    if (emptied || view.tainted()) context.Taint(view, emptied);
    return false;
  }
  if (!request.unneeded_since.has_value()) request.unneeded_since = context.now;
  const absl::Time due = DueAt(view, *request.unneeded_since, context, budgets);
  if (context.now >= due) return true;
  context.WakeAt(due);
  view.removable_at = due;
  if (view.tainted()) context.Taint(view, false);
  return false;
}

class Removals {
 public:
  Removals(StepContext& context, DisruptionBudgets& budgets, const RemovalFreeze& freeze,
           RemovalPace& pace)
      : context_(context),
        budgets_(budgets),
        freeze_(freeze),
        pace_(pace),
        left_(context.options.max_removals_per_step) {}

  [[nodiscard]] int64_t& left() { return left_; }

  void Remove(MachineView& view) {
    if (!view.registered()) {
      Drain(view, context_, "cancelled: nothing needs it any more");
      --left_;
      return;
    }
    const bool told = view.request().meta.deletion.has_value();
    if (!told && IsHeld(view)) return;
    if (view.fenced()) {
      if (!told && !pace_.Take(context_)) return;
      Drain(view, context_, "removed: nothing needs it any more");
      --left_;
    } else if (context_.Taint(view, true)) {
      --left_;
    }
  }

 private:
  bool IsHeld(MachineView& view) {
    std::string& message = view.request().message;
    if (freeze_.on()) {
      message = freeze_.Text();
      return true;
    }
    if (RemovalFreeze::IsText(message)) message.clear();
    if (IsDisrupted(view)) return false;
    const std::string& pool = view.request().pool;
    if (!budgets_.Allows(pool, model::DisruptionReason::kEmpty)) return true;
    budgets_.Take(pool);
    return false;
  }

  StepContext& context_;
  DisruptionBudgets& budgets_;
  const RemovalFreeze& freeze_;
  RemovalPace& pace_;
  int64_t left_;
};

}  // namespace

bool RemovalPace::Take(StepContext& context) {
  const int64_t machines =
      static_cast<int64_t>(context.views.size()) + context.ledger.steady().size();
  const int64_t per_minute =
      std::max({int64_t{1}, context.options.removals_per_minute, machines / 10});
  const absl::Time full = context.now + absl::Minutes(1);
  if (filled_until_ + absl::Minutes(1) / per_minute > full) {
    context.WakeAt(context.now + absl::Seconds(1));
    return false;
  }
  filled_until_ = std::max(filled_until_, context.now) + absl::Minutes(1) / per_minute;
  return true;
}

RemovalFreeze::RemovalFreeze(const StepContext& context) : nodes_(context.ledger.steady().size()) {
  for (const MachineView& view : context.views) {
    if (view.request().phase != Phase::kReady || !view.registered()) continue;
    ++nodes_;
    if (!view.node()->ready) ++unready_;
  }
}

std::string RemovalFreeze::Text() const {
  return absl::StrCat(kFrozen, unready_, " of ", nodes_, " nodes are not ready");
}

bool RemovalFreeze::IsText(const std::string& message) {
  return absl::StartsWith(message, kFrozen);
}

void RemoveUnneeded(StepContext& context, DisruptionBudgets& budgets, const RemovalFreeze& freeze,
                    RemovalPace& pace) {
  std::vector<MachineView*> due;
  for (MachineView& view : context.views) {
    if (IsLive(view.request().phase) && IsDue(view, context, budgets)) due.push_back(&view);
  }
  context.WakeAt(context.ledger.steady().next_due());
  std::stable_sort(due.begin(), due.end(), [](const MachineView* a, const MachineView* b) {
    const model::NodeRequest &x = a->request(), &y = b->request();
    // What is reserved is paid for all the same.
    if (x.reservation.empty() != y.reservation.empty()) return x.reservation.empty();
    return x.price_micro_usd_per_hour > y.price_micro_usd_per_hour;
  });
  Removals removals(context, budgets, freeze, pace);
  for (MachineView& view : context.views) RemoveSurplus(view, context, removals.left());
  for (MachineView* view : due) {
    if (removals.left() <= 0) {
      context.WakeAt(context.now + absl::Seconds(1));
      break;
    }
    removals.Remove(*view);
  }
}

}  // namespace fairlead::hook
