// Victims: reclaim between queues on a full cluster, and gangs that cannot be helped. The shapes
// are KAI's micro-benchmarks (ReclaimManySingleGPUJobsFullCycle, ReclaimLargeJobs,
// ReclaimUnschedulableDistributedJob); their figures on such a machine are the rivals.
#include <algorithm>
#include <deque>

#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeGroup;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

model::Pod Job(absl::string_view prefix, int64_t number, absl::string_view queue) {
  return PodBuilder(kNamespace, Numbered(prefix, number)).Gpus(1).Queue(queue).Preemptible(true);
}

// `nodes` nodes, every GPU used by a job of queue "rich", which has no quota; "poor" has the whole
// quota.
void FillWithRich(LoopCluster& cluster, int64_t nodes, int64_t poor_quota, int64_t fixed_from,
                  bool groups) {
  cluster.AddNodes(nodes);
  cluster.Add(MakeQueue("rich", "", 0, model::kUnlimited));
  cluster.Add(MakeQueue("poor", "", poor_quota, model::kUnlimited, /*weight=*/0));
  for (int64_t p = 0; p < 8 * nodes; ++p) {
    PodBuilder pod(kNamespace, Numbered("run", p));
    pod.Gpus(1).Queue("rich").Preemptible(p < fixed_from).On(Numbered("node", p / 8));
    cluster.AddJob(pod.Build(), groups);
  }
}

// A gang of whole nodes.
std::vector<model::Pod> AddGang(LoopCluster& cluster, const std::string& name, int64_t pods) {
  cluster.Add(MakeGroup(kNamespace, name, "poor", static_cast<int32_t>(pods)));
  std::vector<model::Pod> made;
  for (int64_t i = 0; i < pods; ++i) {
    made.push_back(PodBuilder(kNamespace, Numbered(name, i)).Gpus(8).Queue("poor").Group(name));
    cluster.Add(made.back());
  }
  return made;
}

void ReclaimCycle500With(Run& run, bool groups) {
  std::vector<double> wall_ms, cpu, evicted;
  for (int i = 0; i < run.repetitions; ++i) {
    LoopCluster cluster;
    FillWithRich(cluster, 500, 4000, 4000, groups);
    for (int64_t p = 0; p < 4000; ++p) cluster.AddJob(Job("wait", p, "poor"), groups);
    cluster.Sync();
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    wall_ms.push_back(watch.Seconds() * 1e3);
    cpu.push_back(watch.CpuSeconds());
    evicted.push_back(static_cast<double>(Count<model::EvictPod>(result)));
    if (watch.Seconds() > 5) break;  // far from the goal: one run is sufficient
  }
  run.report.Add({NameOf("reclaim_cycle_500", groups), "ms", Better::kLower, wall_ms, 500,
                  Rival{"KAI full cycle", 158'000}, Median(cpu),
                  absl::StrCat("4,000 running, 4,000 pending; ", Median(evicted), " evicted")});
}

// Reclaim of 1,000 GPUs of 8,000 as in a live cluster: evictions go out a few at a time, victims
// end one after another, and each end is a decision of its own.
void ReclaimPaced1000With(Run& run, bool groups) {
  constexpr int64_t kAsked = 1000;
  std::vector<double> total_ms, longest_ms, steps;
  for (int i = 0; i < run.repetitions; ++i) {
    core::Options options = LoopCluster::QuietOptions();
    options.evictions.max_in_flight = 100;
    LoopCluster cluster(options);
    FillWithRich(cluster, 1000, kAsked, 8000, groups);
    for (int64_t p = 0; p < kAsked; ++p) cluster.AddJob(Job("wait", p, "poor"), groups);
    cluster.Sync();
    double total = 0, longest = 0, count = 0;
    int64_t bound = 0;
    std::deque<model::Pod> ending;
    while (bound < kAsked) {
      Require(count < 10'000, "the reclaim does not end");
      const Stopwatch watch;
      const core::StepResult result = cluster.Step();
      total += watch.Seconds() * 1e3;
      longest = std::max(longest, watch.Seconds() * 1e3);
      ++count;
      cluster.Confirm(result);
      for (const model::Action& action : result.actions) {
        if (std::holds_alternative<model::BindPod>(action.what)) ++bound;
        const auto* evict = std::get_if<model::EvictPod>(&action.what);
        if (evict == nullptr) continue;
        model::Pod& pod = ending.emplace_back();
        pod.meta.ns = evict->ns;
        pod.meta.name = evict->name;
        pod.meta.uid = evict->uid;
      }
      for (int end = 0; end < 4 && !ending.empty(); ++end) {
        cluster.Remove(ending.front());
        ending.pop_front();
      }
      cluster.Advance(absl::Milliseconds(20));
    }
    total_ms.push_back(total);
    longest_ms.push_back(longest);
    steps.push_back(count);
  }
  const std::string name = NameOf("reclaim_paced_1000", groups);
  run.report.Add({name, "ms", Better::kLower, total_ms, 1000, std::nullopt, std::nullopt,
                  absl::StrCat("all decisions together: ", Median(steps), " of them")});
  run.report.Add({name + "/longest", "ms", Better::kLower, longest_ms, std::nullopt, std::nullopt,
                  std::nullopt, "the longest decision"});
}

void ReclaimGang100NodesWith(Run& run, bool groups) {
  std::vector<double> wall_ms, cpu, evicted;
  for (int i = 0; i < run.repetitions; ++i) {
    LoopCluster cluster;
    FillWithRich(cluster, 1000, 8000, 8000, groups);
    AddGang(cluster, "gang", 100);
    cluster.Sync();
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    wall_ms.push_back(watch.Seconds() * 1e3);
    cpu.push_back(watch.CpuSeconds());
    evicted.push_back(static_cast<double>(Count<model::EvictPod>(result)));
  }
  run.report.Add({NameOf("reclaim_gang_100_nodes", groups), "ms", Better::kLower, wall_ms, 50,
                  Rival{"KAI ReclaimLargeJobs", 31'400}, Median(cpu),
                  absl::StrCat("1,000 nodes; ", Median(evicted), " evicted")});
}

void HopelessGangWith(Run& run, bool groups) {
  // First victims for all of its pods but one; then no pod may be evicted at all.
  for (const bool almost : {true, false}) {
    LoopCluster cluster;
    FillWithRich(cluster, 500, 4000, almost ? 79 : 0, groups);
    cluster.Sync();
    cluster.Confirm(cluster.Step());
    std::vector<double> wall_ms, cpu;
    for (int i = 0; i < 4 * run.repetitions; ++i) {
      const std::string name = absl::StrCat("hopeless-", i);
      const Stopwatch watch;
      const std::vector<model::Pod> gang = AddGang(cluster, name, 10);
      const core::StepResult result = cluster.Step();
      wall_ms.push_back(watch.Seconds() * 1e3);
      cpu.push_back(watch.CpuSeconds());
      Require(Count<model::SetPodGroupSchedulability>(result) == 1, "no verdict");
      Require(Count<model::EvictPod>(result) == 0, "a pod was evicted for it");
      for (const model::Pod& pod : gang) cluster.Remove(pod);
      cluster.loop().Apply(
          model::Delete{model::Kind::kPodGroup, kNamespace, name, "uid-group-bench-" + name});
      cluster.Confirm(cluster.Step());
    }
    run.report.Add({NameOf(almost ? "hopeless_gang" : "hopeless_gang/no_victims", groups), "ms",
                    Better::kLower, wall_ms, 1,
                    almost ? std::optional<Rival>({"KAI, 500 nodes", 123'500}) : std::nullopt,
                    Median(cpu),
                    almost ? "all of its pods but the last could be helped"
                           : "no pod on the nodes may be evicted"});
  }
}

}  // namespace

void ReclaimCycle500(Run& run) {
  for (const bool groups : {false, true}) ReclaimCycle500With(run, groups);
}

void ReclaimPaced1000(Run& run) {
  for (const bool groups : {false, true}) ReclaimPaced1000With(run, groups);
}

void ReclaimGang100Nodes(Run& run) {
  for (const bool groups : {false, true}) ReclaimGang100NodesWith(run, groups);
}

void HopelessGang(Run& run) {
  for (const bool groups : {false, true}) HopelessGangWith(run, groups);
}

}  // namespace fairlead::bench
