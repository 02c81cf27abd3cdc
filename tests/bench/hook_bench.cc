// From "nothing fits" to an order: single arrivals through the whole loop, and the planner alone.
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/planner.h"
#include "core/engine_placement.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;
using model::testing::PodBuilder;

// 100 nodes whose GPUs run 800 pods of queue "team", with the hook on.
LoopCluster FullCluster(const core::Options& options, bool groups) {
  LoopCluster cluster(options);
  cluster.Add(MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
  cluster.AddNodes(100);
  for (int64_t p = 0; p < 800; ++p) {
    cluster.AddJob(RunningOn(GpuPod("run", p, "team"), p / 8), groups);
  }
  return cluster;
}

core::Options HookOptions() {
  core::Options options = LoopCluster::QuietOptions();
  options.hook.enabled = true;
  return options;
}

void VerdictToRequestWith(Run& run, bool groups) {
  constexpr int64_t kArrivals = 1000;
  const std::string name = NameOf("verdict_to_request", groups);
  core::Options options = HookOptions();
  // What is measured is the decision: neither the wait for more demand nor the rate of orders.
  options.hook.gathering_quiet = absl::ZeroDuration();
  options.hook.guard.burst = options.hook.guard.total_burst = 2 * kArrivals;
  options.emit_events = true;
  LoopCluster cluster = FullCluster(options, groups);
  cluster.Sync();
  cluster.Confirm(cluster.Step());
  std::vector<double> latency_ms;
  int64_t verdicts = 0;
  for (int64_t i = 0; i < kArrivals; ++i) {
    // Pods of a whole node, so that each needs its own order; earlier orders stay open.
    const model::Pod pod = PodBuilder(kNamespace, Numbered("big", i)).Gpus(8).Queue("team");
    cluster.Advance(absl::Milliseconds(10));
    const Stopwatch watch;
    cluster.AddJob(pod, groups);
    const core::StepResult result = cluster.Step();
    latency_ms.push_back(watch.Seconds() * 1e3);
    Require(Count<model::CreateNodeRequest>(result) == 1,
            absl::StrCat(name, ": arrival ", i, " made no order"));
    verdicts += Count<model::SetPodUnschedulable>(result);
    cluster.Confirm(result);
  }
  const size_t types = hook::Catalog::BuiltIn().types().size();
  run.report.Add({name + "/p50",
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 50)},
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  absl::StrCat(kArrivals, " arrivals, all orders open, ", types, " types")});
  run.report.Add({name + "/p99",
                  "ms",
                  Better::kLower,
                  {Percentile(latency_ms, 99)},
                  100,
                  std::nullopt,
                  std::nullopt,
                  ""});
  run.report.Add({name + "/verdicts_per_arrival",
                  "writes",
                  Better::kLower,
                  {static_cast<double>(verdicts) / kArrivals},
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  "of all pods that wait"});
  run.report.Add({name + "/first_100_p50",
                  "ms",
                  Better::kLower,
                  {Percentile({latency_ms.begin(), latency_ms.begin() + 100}, 50)},
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  "at most 100 orders open"});
}

// Nodes would help all that waits, and the cap of the hook is reached.
void DemandCapped20kWith(Run& run, bool gathers, bool groups) {
  constexpr int64_t kWaiting = 20'000;
  constexpr int kArrivals = 20;
  std::vector<double> first_ms, arrival_ms, other_ms;
  core::Options options = HookOptions();
  if (!gathers) options.hook.gathering_quiet = absl::ZeroDuration();
  options.hook.max_nodes = 0;
  LoopCluster cluster = FullCluster(options, groups);
  for (int64_t p = 0; p < kWaiting; ++p) cluster.AddJob(GpuPod("wait", p, "team"), groups);
  cluster.Sync();
  const auto settle = [&] {
    for (int i = 0; i < 3; ++i) {
      cluster.Advance(absl::Seconds(5));
      cluster.Confirm(cluster.Step());
    }
  };
  const Stopwatch first;
  const core::StepResult told = cluster.Step();
  first_ms.push_back(first.Seconds() * 1e3);
  // The conditions of a group's pods follow its verdict, paced.
  const auto verdicts = [&](const core::StepResult& result) {
    return groups ? Count<model::SetPodGroupSchedulability>(result)
                  : Count<model::SetPodUnschedulable>(result);
  };
  Require(verdicts(told) == kWaiting, "verdicts missing");
  cluster.Confirm(told);
  settle();
  for (int i = 0; i < kArrivals; ++i) {
    cluster.Advance(absl::Milliseconds(10));
    const Stopwatch watch;
    cluster.AddJob(GpuPod("wait", kWaiting + i, "team"), groups);
    const core::StepResult result = cluster.Step();
    arrival_ms.push_back(watch.Seconds() * 1e3);
    Require(Count<model::CreateNodeRequest>(result) == 0, "a node above the cap");
    Require(verdicts(result) >= 1, "no verdict for the arriving pod");
    cluster.Confirm(result);
  }
  settle();
  for (int i = 0; i < kArrivals; ++i) {
    cluster.Advance(absl::Milliseconds(10));
    const Stopwatch watch;
    const core::StepResult result = cluster.DecideAnew();
    other_ms.push_back(watch.Seconds() * 1e3);
    cluster.Confirm(result);
  }
  const std::string name =
      NameOf(gathers ? "demand_capped_20k/gathering" : "demand_capped_20k", groups);
  const std::string note = absl::StrCat(kWaiting, " equal pods wait, hook.maxNodes 0");
  const auto add = [&](absl::string_view what, std::vector<double> samples) {
    run.report.Add({absl::StrCat(name, "/", what), "ms", Better::kLower, std::move(samples),
                    std::nullopt, std::nullopt, std::nullopt, note});
  };
  add("first_step", first_ms);
  add("arrival", arrival_ms);
  add("decided_anew", other_ms);
}

}  // namespace

void VerdictToRequest(Run& run) {
  for (const bool groups : {false, true}) VerdictToRequestWith(run, groups);
}

void DemandCapped20k(Run& run) {
  for (const bool groups : {false, true}) {
    for (const bool gathers : {false, true}) DemandCapped20kWith(run, gathers, groups);
  }
}

// The planner sees items of demand, not pods: an item is a lone pod or a group. So it has no twin
// with groups; as ten jobs the pods are ten groups.
void Plan51k(Run& run) {
  constexpr int64_t kPods = 51'000;
  EngineCluster cluster;
  core::EnginePlacement placement(cluster.state(), cluster.engine());
  model::NodePool pool;
  pool.meta.name = "default";
  pool.allow_spot = true;
  std::vector<std::shared_ptr<const model::PodSpec>> specs;
  for (int64_t c = 0; c < 10; ++c) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = kNamespace;
    model::Set(spec->requests, model::kCpuName, 1000 * (1 + c));
    model::Set(spec->requests, model::kMemoryName, (2 + 3 * c) * model::testing::kGiB);
    if (c >= 5) model::Set(spec->requests, model::kGpuName, 1000 << (c % 4));
    specs.push_back(std::move(spec));
  }
  // As single pods, each an item of its own, and as ten large jobs.
  for (const int64_t items : {kPods, int64_t{10}}) {
    hook::Demand demand;
    for (int64_t i = 0; i < items; ++i) {
      hook::DemandItem item;
      item.workload = absl::StrCat(kNamespace, "/", Numbered("job", i));
      item.queue = "team";
      const int64_t pods = kPods / items;
      item.classes.push_back({specs[static_cast<size_t>(i % 10)], pods, 1});
      demand.push_back(std::move(item));
    }
    std::vector<double> wall_ms, cpu, nodes;
    for (int i = 0; i < run.repetitions; ++i) {
      hook::PlanInput input;
      input.demand = &demand;
      input.offers = hook::MakeOffers(hook::Catalogs(&hook::Catalog::BuiltIn()), {&pool});
      const Stopwatch watch;
      const hook::Plan plan = hook::MakePlan(input, placement);
      wall_ms.push_back(watch.Seconds() * 1e3);
      cpu.push_back(watch.CpuSeconds());
      nodes.push_back(static_cast<double>(plan.nodes.size()));
      int64_t covered = 0;
      for (const hook::PlannedNode& node : plan.nodes) {
        for (const auto& [index, pods] : node.pods_of_item) covered += pods;
      }
      Require(covered == kPods, "not all pods are planned for");
    }
    run.report.Add({items == kPods ? "plan_51k" : "plan_51k/ten_jobs", "ms", Better::kLower,
                    wall_ms, 1000, std::nullopt, Median(cpu),
                    absl::StrCat(items, " items, ", Median(nodes), " nodes")});
  }
}

}  // namespace fairlead::bench
