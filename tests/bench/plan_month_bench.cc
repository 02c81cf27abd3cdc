// What a month of a published trace costs with queues, limits and boot times, over what it costs at
// least; and what was bought for nothing (docs/plan-cost.md).
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/month_world.h"
#include "tests/bench/plan_demands.h"

namespace fairlead::bench {
namespace {

// Of the catalogue's p3 instances, whose GPUs cost the same on small and on large ones.
constexpr char kModel[] = "Tesla-V100-SXM2-16GB";

void Tell(Run& run, const std::string& name, const MonthResult& month, double seconds) {
  const auto add = [&](const char* what, const char* unit, double value, std::optional<double> goal,
                       const std::string& note) {
    run.report.Add({absl::StrCat(name, "-", what),
                    unit,
                    Better::kLower,
                    {value},
                    goal,
                    std::nullopt,
                    std::nullopt,
                    note});
  };
  const auto usd = [](int64_t micro_usd) { return static_cast<double>(micro_usd) / 1e6; };
  const auto over = [&](int64_t bound) { return usd(month.cost_micro_usd) / usd(bound); };
  const auto part = [&](int64_t cost) { return 100 * usd(cost) / usd(month.cost_micro_usd); };
  add("policy-blocked-usd", "$", usd(month.policy_blocked_cost_micro_usd), 0,
      absl::StrFormat("nodes for pods that policy held; %d of %d pods waited for a limit",
                      month.held_pods, month.pods));
  add("nodes-bought-twice", "nodes", static_cast<double>(month.nodes_bought_twice), 0,
      absl::StrFormat("of %d nodes", month.nodes));
  add("nodes-unused", "nodes", static_cast<double>(month.nodes_unused), std::nullopt,
      "a pod ended before they were ready, and left its place");
  add("cost-over-bound", "of the bound", over(month.bound_micro_usd), 1.10,
      absl::StrFormat("$%.0f for %d jobs; the bound has boot times", usd(month.cost_micro_usd),
                      month.jobs));
  add("cost-over-bound-without-boot", "of the bound", over(month.bound_without_boot_micro_usd),
      std::nullopt, "as if nodes were there at once");
  add("booting", "%", part(month.booting_micro_usd), std::nullopt,
      "of the cost: nodes before they were ready");
  add("empty", "%", part(month.empty_micro_usd), std::nullopt, "nodes without a pod");
  add("partly-empty", "%", part(month.partly_empty_micro_usd), std::nullopt,
      "what nodes cost more than the pods on them would at least");
  add("seconds", "s", seconds, std::nullopt,
      absl::StrFormat("to simulate it, %d cycles", month.cycles));
}

void Play(Run& run, const std::string& name, const replay::PhillyTrace& trace,
          const std::string& gpu_model) {
  const Stopwatch watch;
  const auto played = PlayMonth(trace, hook::Catalog::BuiltIn(), gpu_model);
  Require(played.ok(), played.status().message());
  Require(played->finished_pods == played->pods && played->nodes_at_end == 0,
          absl::StrFormat("%d of %d pods have ended, %d nodes are left", played->finished_pods,
                          played->pods, played->nodes_at_end));
  Require(played->bound_micro_usd > 0 && played->cost_micro_usd >= played->bound_micro_usd,
          "the month costs less than the bound");
  Tell(run, name, *played, watch.Seconds());
}

}  // namespace

void PlanMonth(Run& run) {
  const std::optional<std::string> openb = TraceFolder();
  const std::filesystem::path data = std::filesystem::path(openb.value_or("")).parent_path();
  const std::string file = (data / "philly" / "philly.csv").string();
  if (!openb.has_value() || !std::filesystem::exists(file)) {
    run.report.Skip("plan-month", "no ../shared/data/philly and no $FAIRLEAD_SHARED");
    return;
  }
  const auto all = replay::ReadPhilly(file);
  Require(all.ok(), all.status().message());
  const auto month = replay::ReadPhilly(file, "2017-10-01", "2017-11-01", all->clusters);
  Require(month.ok(), month.status().message());
  Play(run, "plan-month", *month, kModel);
  Play(run, "plan-month/any-gpu", *month, "");
}

}  // namespace fairlead::bench
