#include "demo/day_clock.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/verdict/text.h"

namespace fairlead::demo {
namespace {

constexpr absl::Duration kSettleFloor = absl::Milliseconds(300);
constexpr absl::Duration kLaunchFloor = absl::Seconds(5);

}  // namespace

core::View DayClock::ToScenario(core::View view) const {
  const auto move = [this](std::optional<absl::Time>& time) {
    if (time.has_value() && *time < absl::InfiniteFuture()) time = ToScenario(*time);
  };
  view.at = ToScenario(view.at);
  move(view.history.as_of);
  for (core::NodeRow& node : view.nodes) move(node.unneeded_since);
  for (core::WaitingRow& row : view.waiting) {
    row.since = ToScenario(row.since);
    move(row.verdict.expected_at);
    move(row.verdict.until);
    row.message = verdict::Message(row.verdict);
  }
  return view;
}

hook::HookOptions Accelerated(hook::HookOptions options, double speed) {
  const auto scale = [speed](absl::Duration& duration, absl::Duration floor) {
    duration = std::max(duration / speed, floor);
  };
  scale(options.unneeded_after, kSettleFloor);
  scale(options.cancel_after, kSettleFloor);
  scale(options.launch_timeout, kLaunchFloor);
  scale(options.ready_timeout, kLaunchFloor);
  scale(options.backoff_initial, kSettleFloor);
  scale(options.backoff_max, kSettleFloor);
  scale(options.expected_boot, absl::ZeroDuration());
  return options;
}

}  // namespace fairlead::demo
