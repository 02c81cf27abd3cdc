#include "sim/forecast.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::sim {
namespace {

// On top of the longest timer: latencies, pauses of repeated writes, graceful ends.
constexpr absl::Duration kSlack = absl::Minutes(2);
// Of the usual time from the order of a machine to its use.
constexpr absl::Duration kReadyDelay = absl::Seconds(20);

// Everything of a view that counts as a change, as text.
std::string Fingerprint(const core::View& view) {
  std::string text;
  for (const core::RunningRow& row : view.running) {
    absl::StrAppend(&text, row.pod, " ", row.node, " ", row.status, "\n");
  }
  for (const core::WaitingRow& row : view.waiting) {
    absl::StrAppend(&text, row.workload, " ", verdict::CodeName(row.verdict.code), " ",
                    row.pods.size(), "\n");
  }
  for (const core::NodeRow& row : view.nodes) {
    absl::StrAppend(&text, row.name, " ", row.status, " ", row.pods, " ", row.promised, "\n");
  }
  return text;
}

SimulatorOptions OptionsFor(ForecastInput& input) {
  SimulatorOptions options;
  options.core = input.core;
  options.core.extenders.clear();         // there are none in a simulated cluster
  options.core.grouping.enabled = false;  // owners of pods cannot be read
  options.catalog = input.catalog;
  options.present = std::move(input.present);
  return options;
}

Scenario ScenarioFor(ForecastInput& input) {
  Scenario scenario;
  scenario.start = input.now;
  scenario.end = input.now + input.bound;
  scenario.cloud.ready_delay = std::min(kReadyDelay, input.core.hook.expected_boot);
  scenario.cloud.boot_delay = input.core.hook.expected_boot - scenario.cloud.ready_delay;
  ScenarioStep& step = scenario.timeline.emplace_back();
  step.apply.push_back(std::move(input.applied));
  step.files.emplace_back("the change");
  return scenario;
}

void TakeTimeline(const Recorder& recorder, absl::Time start, Forecast& forecast) {
  for (const TimelineEvent& event : recorder.timeline()) {
    const absl::Duration after = event.time - start;
    if (event.event == "pod_evicted") {
      forecast.evictions.push_back({after, event.object, event.text});
    } else if (event.event == "node_requested") {
      forecast.orders.push_back({after, event.object, event.instance_type, event.text});
    } else if (event.event == "node_failed") {
      forecast.failures.push_back({after, event.object, event.instance_type, event.text});
    }
  }
}

}  // namespace

absl::Duration QuietTime(const core::Options& options, const std::vector<Object>& objects) {
  absl::Duration longest = std::max(options.hook.expected_boot, options.engine.bind_backoff_max);
  if (!options.hook.enabled) return longest + kSlack;
  // Infinite: never, so nothing is to be waited for.
  const auto consider = [&longest](std::optional<absl::Duration> after) {
    if (after.has_value() && *after != absl::InfiniteDuration())
      longest = std::max(longest, *after);
  };
  consider(options.hook.unneeded_after);
  consider(options.hook.disruption.consolidate_after);
  for (const Object& object : objects) {
    const auto* pool = std::get_if<model::NodePool>(&object);
    if (pool != nullptr) consider(pool->disruption.consolidate_after);
  }
  return longest + kSlack;
}

absl::StatusOr<Forecast> Foresee(ForecastInput input) {
  const absl::Duration quiet = QuietTime(input.core, input.present.objects);
  const absl::Time start = input.now, end = input.now + input.bound;
  const std::vector<std::string> drained = std::move(input.drained);
  Scenario scenario = ScenarioFor(input);
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<Simulator> simulator,
                            Simulator::Make(std::move(scenario), OptionsFor(input)));
  std::optional<Drain> drain;
  if (!drained.empty()) {
    drain.emplace(&simulator->cluster().queue(), &simulator->cluster().server(), drained);
  }
  Forecast forecast;
  std::string seen;
  absl::Time changed = start;
  while (simulator->now() < end && simulator->now() - changed < quiet) {
    FAIRLEAD_RETURN_IF_ERROR(
        simulator->RunUntil(std::min(end, simulator->now() + Forecast::kLook)));
    forecast.end = simulator->view();
    std::string now = Fingerprint(forecast.end);
    if (now == seen) continue;
    // What the first look finds stands already, or is decided at once.
    changed = simulator->now();
    seen = std::move(now);
  }
  forecast.settled = simulator->now() - changed >= quiet;
  forecast.last_change = changed - start;
  TakeTimeline(simulator->recorder(), start, forecast);
  if (drain.has_value()) forecast.drained = drain->outcomes();
  return forecast;
}

}  // namespace fairlead::sim
