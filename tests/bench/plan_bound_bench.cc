// What plans cost over the lower bound, and what other ways to choose nodes cost on the same
// demands (docs/plan-cost.md). With FAIRLEAD_BENCH_CASES set, a line for each demand.
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/plan_cost.h"
#include "tests/bench/plan_rivals.h"

namespace fairlead::bench {
namespace {

constexpr uint64_t kFirstSeed = 1;
constexpr uint64_t kGenerated = 120;
constexpr int64_t kTracePiece = 2000;

struct Ratios {
  std::vector<double> plan, alone, group, karpenter;
};

// All costs over the bound.
void Compare(const CostDemand& demand, Ratios& ratios, std::vector<double>& plan_ms) {
  const PlanCost plan = CostOfPlan(demand);
  const Stopwatch watch;
  const PackingBound bound = BoundOf(demand, plan.cost);
  const double bound_s = watch.Seconds();
  Require(bound.cost > 0 && bound.cost <= plan.cost,
          absl::StrCat(demand.name, ": the bound is ", bound.cost, ", the plan costs ", plan.cost));
  const auto over = [&](int64_t cost) {
    return static_cast<double>(cost) / static_cast<double>(bound.cost);
  };
  ratios.plan.push_back(over(plan.cost));
  ratios.alone.push_back(over(OneInstancePerPod(demand)));
  ratios.group.push_back(over(OneNodeGroupAtATime(demand)));
  ratios.karpenter.push_back(over(KarpenterPacking(demand)));
  plan_ms.push_back(plan.milliseconds);
  if (std::getenv("FAIRLEAD_BENCH_CASES") == nullptr) return;
  Report::Say(absl::StrFormat(
      "  %-28s %-10s pods %5d classes %3d left out %4d nodes %4d plan $%.4f bound $%.4f (linear "
      "$%.4f, %d branches, %.1f s) ratio %.4f alone %.3f group %.3f karpenter %.3f, %.1f ms, %d "
      "questions",
      demand.name, demand.mix, demand.Pods(), demand.pods.size(), demand.left_out, plan.nodes,
      static_cast<double>(plan.cost) / 1e6, static_cast<double>(bound.cost) / 1e6,
      static_cast<double>(bound.linear) / 1e6, bound.branches, bound_s, ratios.plan.back(),
      ratios.alone.back(), ratios.group.back(), ratios.karpenter.back(), plan.milliseconds,
      plan.questions));
}

void Add(Run& run, const std::string& name, const std::string& what,
         const std::vector<double>& ratios, bool goals, const std::string& note) {
  const auto goal = [&](double value) {
    return goals ? std::optional<double>(value) : std::nullopt;
  };
  const std::string prefix = what.empty() ? name : absl::StrCat(name, "/", what);
  run.report.Add({absl::StrCat(prefix, "-median"),
                  "of the bound",
                  Better::kLower,
                  {Median(ratios)},
                  goal(1.02),
                  std::nullopt,
                  std::nullopt,
                  note});
  run.report.Add({absl::StrCat(prefix, "-worst"),
                  "of the bound",
                  Better::kLower,
                  {Percentile(ratios, 100)},
                  goal(1.10),
                  std::nullopt,
                  std::nullopt,
                  note});
}

void AddAll(Run& run, const std::string& name, const Ratios& ratios, const std::string& note) {
  Add(run, name, "", ratios.plan, true, note);
  Add(run, name, "one-instance-per-pod", ratios.alone, false, "");
  Add(run, name, "one-node-group-at-a-time", ratios.group, false, "");
  Add(run, name, "karpenters-packing", ratios.karpenter, false, "re-implemented");
}

}  // namespace

void PlanCostOverBound(Run& run) {
  Ratios all;
  std::map<std::string, Ratios> by_mix;
  std::vector<double> plan_ms;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kGenerated; ++seed) {
    const CostDemand demand = GeneratedDemand(seed);
    if (demand.pods.empty()) continue;
    Compare(demand, by_mix[demand.mix], plan_ms);
  }
  const auto join = [&](Ratios& into, const Ratios& from) {
    into.plan.insert(into.plan.end(), from.plan.begin(), from.plan.end());
    into.alone.insert(into.alone.end(), from.alone.begin(), from.alone.end());
    into.group.insert(into.group.end(), from.group.begin(), from.group.end());
    into.karpenter.insert(into.karpenter.end(), from.karpenter.begin(), from.karpenter.end());
  };
  for (const auto& [mix, ratios] : by_mix) join(all, ratios);
  Require(all.plan.size() >= 100, "fewer than 100 demands");
  AddAll(run, "plan-cost-over-bound", all,
         absl::StrCat(all.plan.size(), " generated demands, seeds ", kFirstSeed, " to ",
                      kFirstSeed + kGenerated - 1));
  for (const auto& [mix, ratios] : by_mix) {
    Add(run, absl::StrCat("plan-cost-over-bound/", mix), "", ratios.plan, false,
        absl::StrCat(ratios.plan.size(), " demands"));
  }
  run.report.Add({"plan-cost-over-bound/plan-ms", "ms", Better::kLower, plan_ms, std::nullopt,
                  std::nullopt, std::nullopt, "of one plan"});
}

void PlanCostOverBoundOfTraces(Run& run) {
  const std::optional<std::string> folder = TraceFolder();
  if (!folder.has_value()) {
    run.report.Skip("plan-cost-over-bound-openb",
                    "no ../shared/data/openb and no $FAIRLEAD_SHARED");
    return;
  }
  Ratios traces;
  std::vector<double> trace_ms;
  // Whole, and the first one in pieces too. The bound of those with models (gpuspec) takes minutes:
  // they have three times as many kinds of pods.
  for (const char* variant : {"default", "gpushare40", "multigpu50"}) {
    const std::string file = absl::StrCat(*folder, "/openb_pod_list_", variant, ".csv");
    const std::string name = absl::StrCat("openb-", variant);
    const bool pieces = std::string(variant) == "default";
    for (const CostDemand& demand : TraceDemands(file, name, pieces ? kTracePiece : 0)) {
      Compare(demand, traces, trace_ms);
    }
  }
  Require(!traces.plan.empty(), "no trace could be read");
  AddAll(run, "plan-cost-over-bound-openb", traces, absl::StrCat(traces.plan.size(), " demands"));
  run.report.Add({"plan-cost-over-bound-openb/plan-ms", "ms", Better::kLower, trace_ms,
                  std::nullopt, std::nullopt, std::nullopt, "of one plan"});
}

}  // namespace fairlead::bench
