// Tenants choose what their pods request: thousands of them wait, no two are alike, and none fits
// on any node of a full cluster that has room in sum. Each of them is compared with every node, and
// victims are sought for each. How long is a step at most, and how long until all have a verdict?
// And how long is a step in which pods of as many sizes, or gangs bound to racks, reclaim?
#include <algorithm>

#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::PodBuilder;

constexpr int64_t kNodes = 5000;
constexpr int64_t kSizes = 5000;
constexpr int64_t kRunningMilli = 120'000;  // of the 128,000 of a node
constexpr int kMostSteps = 200;
// Half of the time after which an owner that does not answer loses the lease.
constexpr double kGoalMs = 15'000;

model::Pod CpuJob(absl::string_view prefix, int64_t number, int64_t cpu_milli) {
  model::Pod pod = PodBuilder(kNamespace, Numbered(prefix, number))
                       .Queue(absl::StrCat("team-", number % 4))
                       .Preemptible(true);
  pod.spec.requests = {{model::kCpuName, cpu_milli}};
  return pod;
}

struct Times {
  std::vector<double> longest_ms, all_s, ended_ms, steps;
};

// Steps until nothing is to be decided at once. Returns how many.
int StepUntilDone(LoopCluster& cluster, double& longest_ms) {
  for (int steps = 1; steps <= kMostSteps; ++steps) {
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    longest_ms = std::max(longest_ms, watch.CpuSeconds() * 1e3);
    cluster.Confirm(result);
    if (result.wake_at > cluster.now()) return steps;
  }
  Require(false, "the steps do not end");
  return 0;
}

void Measure(bool hook, Times& times) {
  core::Options options = LoopCluster::QuietOptions();
  options.hook.enabled = hook;
  options.hook.gathering_quiet = absl::ZeroDuration();
  LoopCluster cluster(options);
  for (int64_t q = 0; q < 4; ++q) {
    cluster.Add(model::testing::MakeQueue(absl::StrCat("team-", q), "", -1, -1));
  }
  cluster.AddNodes(kNodes);
  for (int64_t n = 0; n < kNodes; ++n) {
    cluster.AddJob(RunningOn(CpuJob("run", n, kRunningMilli), n), false);
  }
  for (int64_t j = 0; j < kSizes; ++j) {
    cluster.AddJob(CpuJob("wait", j, 10'000 + j), false);
  }
  cluster.Sync();
  double longest_ms = 0;
  const Stopwatch all;
  times.steps.push_back(StepUntilDone(cluster, longest_ms));
  times.all_s.push_back(all.CpuSeconds());
  times.longest_ms.push_back(longest_ms);
  double ended_ms = 0;
  cluster.RemoveJob(CpuJob("run", 17, kRunningMilli), false);
  StepUntilDone(cluster, ended_ms);
  times.ended_ms.push_back(ended_ms);
}

void ManySizesWith(Run& run, bool hook) {
  const std::string name = hook ? "many_sizes_5k/hook" : "many_sizes_5k";
  Times times;
  for (int i = 0; i < run.repetitions; ++i) Measure(hook, times);
  run.report.Add({name + "/longest_step", "ms", Better::kLower, times.longest_ms, kGoalMs,
                  std::nullopt, std::nullopt,
                  "CPU time; 5,000 pods of 5,000 sizes wait on 5,000 full nodes"});
  run.report.Add({name + "/all_decided", "s", Better::kLower, times.all_s, std::nullopt,
                  std::nullopt, std::nullopt, "CPU time until all have a verdict"});
  run.report.Add({name + "/steps", "steps", Better::kLower, times.steps, std::nullopt, std::nullopt,
                  std::nullopt, "in which they were decided"});
  run.report.Add({name + "/one_pod_ended", "ms", Better::kLower, times.ended_ms, kGoalMs,
                  std::nullopt, std::nullopt, "CPU time of the longest step after it"});
}

constexpr int64_t kReclaimNodes = 2000;
constexpr int64_t kReclaimers = 1000;
constexpr int64_t kNodesOfRack = 32;

// 7 of the 8 GPUs of each node run preemptible pods of a queue without quota.
void FillNodes(LoopCluster& cluster) {
  model::Topology topology;
  topology.meta.name = "racks";
  topology.levels = {{"rack", ""}};
  cluster.Add(topology);
  for (int64_t n = 0; n < kReclaimNodes; ++n) {
    model::Node node = GpuNode(n);
    node.meta.labels.Set("rack", absl::StrCat("rack-", n / kNodesOfRack));
    cluster.Add(node);
    for (int64_t g = 0; g < 7; ++g) {
      const model::Pod pod = PodBuilder(kNamespace, Numbered("run", n * 8 + g))
                                 .Queue("rich")
                                 .Gpus(1)
                                 .Cpu(1000)
                                 .Preemptible(true);
      cluster.AddJob(RunningOn(pod, n), false);
    }
  }
}

// Of a size of its own.
void AddReclaimer(LoopCluster& cluster, int64_t number, bool gangs) {
  const std::string name = Numbered("wait", number);
  if (!gangs) {
    cluster.AddJob(PodBuilder(kNamespace, name)
                       .Queue("poor")
                       .Gpus(1 + number % 8)
                       .Cpu(1000 + number)
                       .Created(number),
                   false);
    return;
  }
  model::PodGroup group = model::testing::MakeGroup(kNamespace, name, "poor", 2);
  group.topology.topology = "racks";
  group.topology.required_level = "rack";
  cluster.Add(group);
  for (const char* member : {"-0", "-1"}) {
    const model::Pod pod = PodBuilder(kNamespace, absl::StrCat(name, member))
                               .Queue("poor")
                               .Group(name)
                               .Gpus(4)
                               .Cpu(1000 + number);
    cluster.Add(pod);
  }
}

void ReclaimSizes(Run& run, bool gangs) {
  std::vector<double> first_ms;
  for (int i = 0; i < run.repetitions; ++i) {
    LoopCluster cluster;
    cluster.Add(model::testing::MakeQueue("rich", "", 0, -1));
    cluster.Add(model::testing::MakeQueue("poor", "", 1'000'000, -1));
    FillNodes(cluster);
    for (int64_t j = 0; j < kReclaimers; ++j) AddReclaimer(cluster, j, gangs);
    cluster.Sync();
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    first_ms.push_back(watch.CpuSeconds() * 1e3);
    Require(Count<model::EvictPod>(result) > 0, "nothing was reclaimed");
  }
  run.report.Add({gangs ? "many_sizes_reclaim/racks" : "many_sizes_reclaim", "ms", Better::kLower,
                  first_ms, kGoalMs, std::nullopt, std::nullopt,
                  "CPU time of a step; 1,000 of 1,000 sizes reclaim on 2,000 nodes"});
}

}  // namespace

void ManySizesReclaim(Run& run) {
  for (const bool gangs : {false, true}) ReclaimSizes(run, gangs);
}

void ManySizes5k(Run& run) {
  for (const bool hook : {false, true}) ManySizesWith(run, hook);
}

}  // namespace fairlead::bench
