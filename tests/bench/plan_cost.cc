#include "tests/bench/plan_cost.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine_placement.h"
#include "tests/bench/cluster.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {

PlanCost CostOfPlan(const CostDemand& demand) {
  EngineCluster cluster;
  core::EnginePlacement placement(cluster.state(), cluster.engine());
  const hook::Demand wanted = DemandOf(demand);
  hook::PlanInput input;
  input.demand = &wanted;
  input.offers = OffersOf(demand);
  const Stopwatch watch;
  const hook::Plan plan = hook::MakePlan(input, placement);
  PlanCost result;
  result.milliseconds = watch.Seconds() * 1e3;
  result.nodes = static_cast<int64_t>(plan.nodes.size());
  result.questions = plan.questions;
  std::vector<int64_t> placed(wanted.size(), 0);
  for (const hook::PlannedNode& node : plan.nodes) {
    result.cost += node.offer.price_micro_usd_per_hour;
    int64_t cpu = 0, memory = 0, pods = 0, gpu_milli = 0;
    for (const auto& [outcome, count] : node.pods_of_item) {
      const size_t item = plan.items[outcome].item;
      const model::PodSpec& spec = *wanted[item].classes[0].spec;
      placed[item] += count;
      pods += count;
      cpu += count * model::Get(spec.requests, model::kCpuName);
      memory += count * model::Get(spec.requests, model::kMemoryName);
      gpu_milli +=
          count * (model::Get(spec.requests, model::kGpuName) + spec.gpu_share.fraction_milli);
    }
    const hook::InstanceType& type = *node.offer.type;
    Require(cpu <= type.cpu_milli - type.reserved_cpu_milli &&
                memory <= type.memory_bytes - type.reserved_memory_bytes && pods <= type.max_pods &&
                gpu_milli <= type.gpu_count * 1000,
            absl::StrCat(demand.name, ": a planned node holds more than its type, ", type.name));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    Require(placed[i] == wanted[i].classes[0].count,
            absl::StrCat(demand.name, ": item ", i, " has ", placed[i], " of ",
                         wanted[i].classes[0].count, " pods in the plan"));
  }
  Require(result.cost == plan.price_micro_usd_per_hour,
          absl::StrCat(demand.name, ": the plan's price is not the sum of its nodes"));
  return result;
}

PackingBound BoundOf(const CostDemand& demand, int64_t stop_at) {
  const int64_t pods = demand.Pods();
  BoundEffort effort;
  effort.stop_at = stop_at;
  // The gap between the linear program and whole nodes shrinks with the number of nodes.
  effort.branches = pods <= 100 ? 600 : pods <= 400 ? 120 : 0;
  if (demand.pods.size() > 60) {
    effort.filling_steps = 20'000;
    effort.all_steps = 60'000'000;
    effort.tolerance = 3e-4;
  }
  return LowerBound(ProblemOf(demand), effort);
}

}  // namespace fairlead::bench
