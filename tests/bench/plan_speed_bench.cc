// How long the planner takes on large demands and many types. The planner is one thread that waits
// for nothing, so the figures are its CPU time, which other load on the machine hardly changes; the
// wall time is beside it.
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/planner.h"
#include "core/engine_placement.h"
#include "scheduler/model/api_names.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"
#include "tests/bench/like_pods.h"

namespace fairlead::bench {
namespace {

constexpr int64_t kPerHourOfCpu = 35'000, kPerHourOfGib = 4'500;  // micro-dollars

hook::InstanceType SpeedType(std::string name, int64_t cpus, int64_t gib) {
  hook::InstanceType type;
  type.name = std::move(name);
  type.cpu_milli = cpus * 1000;
  type.memory_bytes = gib * model::testing::kGiB;
  type.zones = {"zone-0"};
  type.reserved_cpu_milli = 200;
  type.reserved_memory_bytes = 2 * model::testing::kGiB;
  type.on_demand_micro_usd = cpus * kPerHourOfCpu + gib * kPerHourOfGib;
  return type;
}

// So many different types: families of CPU machines in three ratios of memory, and of GPU machines
// of 1 to 8 devices. A family is dearer or cheaper than the next by up to a fifth.
hook::Catalog ManyTypes(int64_t count, bool gpus, const std::vector<std::string>& zones) {
  std::vector<hook::InstanceType> types;
  for (int64_t family = 0; static_cast<int64_t>(types.size()) < count; ++family) {
    const int64_t per_cent = 90 + family * 37 % 31;
    const bool with_gpus = gpus && family % 3 == 2;
    for (const int64_t size : {1, 2, 4, 8, 12, 16, 24, 32}) {
      if (static_cast<int64_t>(types.size()) == count) break;
      hook::InstanceType type = SpeedType(absl::StrCat("family-", family, ".", size), 4 * size,
                                          4 * size * (int64_t{2} << (family % 4)));
      if (with_gpus) {
        type.gpu_count = size < 4 ? 1 : size < 16 ? size / 4 * 2 : 8;
        type.gpu_model = absl::StrCat("model-", family % 5);
        type.gpu_memory_mib = 40'000;
        *type.on_demand_micro_usd += type.gpu_count * (400'000 + 350'000 * (family % 5));
      }
      *type.on_demand_micro_usd = *type.on_demand_micro_usd * per_cent / 100;
      type.zones = zones;
      types.push_back(std::move(type));
    }
  }
  return hook::Catalog::FromTypes(std::move(types));
}

int64_t PlannedPods(const hook::Plan& plan) {
  int64_t pods = 0;
  for (const hook::PlannedNode& node : plan.nodes) {
    for (const auto& [index, count] : node.pods_of_item) pods += count;
  }
  return pods;
}

// Plans so often, and adds the figure.
void MeasurePlan(Run& run, const std::string& name, double goal, const hook::Demand& demand,
                 const hook::Catalog& catalog, int64_t pods) {
  model::NodePool pool;
  pool.meta.name = "default";
  std::vector<double> wall_ms, cpu_ms;
  hook::Plan plan;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster;
    core::EnginePlacement placement(cluster.state(), cluster.engine());
    hook::PlanInput input;
    input.demand = &demand;
    input.offers = hook::MakeOffers(hook::Catalogs(&catalog), {&pool});
    const Stopwatch watch;
    plan = hook::MakePlan(input, placement);
    wall_ms.push_back(watch.Seconds() * 1e3);
    cpu_ms.push_back(watch.ThreadCpuSeconds() * 1e3);
  }
  run.report.Add({name, "ms", Better::kLower, cpu_ms, goal, std::nullopt, Median(cpu_ms) / 1e3,
                  absl::StrCat("CPU time; ", plan.nodes.size(), " nodes, ", plan.questions,
                               " fit questions")});
  // A plan for a part of the pods alone (plan_bonds.h bounds its questions) is no fast plan.
  run.report.Add({absl::StrCat(name, "/planned"),
                  "pods",
                  Better::kHigher,
                  {static_cast<double>(PlannedPods(plan))},
                  static_cast<double>(pods),
                  std::nullopt,
                  std::nullopt,
                  absl::StrCat("of ", pods, " in one plan")});
  run.report.Add({absl::StrCat(name, "/wall"), "ms", Better::kLower, wall_ms, std::nullopt,
                  std::nullopt, std::nullopt, ""});
}

}  // namespace

void Plan50kPods1000Types(Run& run) {
  constexpr int64_t kClasses = 100, kOfEach = 500;
  const hook::Catalog catalog = ManyTypes(1000, /*gpus=*/true, {"zone-0"});
  hook::Demand demand;
  for (int64_t c = 0; c < kClasses; ++c) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = kNamespace;
    const int64_t gpus = c % 5 < 2 ? int64_t{1} << (c / 5 % 4) : 0;
    model::Set(spec->requests, model::kCpuName, (gpus > 0 ? gpus * 2000 : 250) + c * 130);
    model::Set(spec->requests, model::kMemoryName, (1 + c * 7 % 40) * model::testing::kGiB);
    if (gpus > 0) model::Set(spec->requests, model::kGpuName, gpus * 1000);
    hook::DemandItem item;
    item.workload = absl::StrCat(kNamespace, "/", Numbered("job", c));
    item.queue = "team";
    item.members = kOfEach;
    item.classes.push_back({std::move(spec), 1, 1});
    demand.push_back(std::move(item));
  }
  MeasurePlan(run, "plan-50k-pods-1000-types-ms", 50, demand, catalog, kClasses * kOfEach);
}

// The pods of Karpenter's own benchmark (facts 3.4): a fifth plain, a fifth each with a spread over
// zones, a spread over nodes, affinity within a zone, and anti-affinity over nodes.
void Plan20kMixed400Types(Run& run) {
  constexpr int64_t kPods = 20'000, kSizes = 7;
  const hook::Catalog catalog = ManyTypes(400, /*gpus=*/false, {"zone-0", "zone-1", "zone-2"});
  hook::Demand demand;
  std::vector<std::shared_ptr<const model::PodSpec>> specs;
  for (int64_t kind = 0; kind < 5; ++kind) {
    for (int64_t size = 0; size < kSizes; ++size) {
      auto spec = std::make_shared<model::PodSpec>();
      spec->ns = kNamespace;
      model::Set(spec->requests, model::kCpuName, 100 * (1 + size * size));
      model::Set(spec->requests, model::kMemoryName, (1 + size) * model::testing::kGiB / 2);
      const std::string app = absl::StrCat("app-", kind);
      if (kind > 0) spec->labels_for_affinity.Set("app", app);
      const char* const key = kind % 2 == 1 ? model::kZoneLabel : model::kHostnameLabel;
      if (kind == 1 || kind == 2) spec->topology_spread = {SpreadOver(app, key)};
      if (kind == 3) spec->pod_affinity = {TermTo(app, key)};
      if (kind == 4) spec->pod_anti_affinity = {TermTo(app, key)};
      specs.push_back(std::move(spec));
    }
  }
  for (int64_t p = 0; p < kPods; ++p) {
    hook::DemandItem item;
    item.workload = absl::StrCat(kNamespace, "/", Numbered("pod", p));
    item.queue = "team";
    item.classes.push_back(
        {specs[static_cast<size_t>(p % static_cast<int64_t>(specs.size()))], 1, 1});
    demand.push_back(std::move(item));
  }
  MeasurePlan(run, "plan-20k-mixed-400-types-ms", 1000, demand, catalog, kPods);
}

}  // namespace fairlead::bench
