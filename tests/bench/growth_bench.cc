// How the cost of a cycle grows: with nodes, and with how full the cluster is. docs/performance.md
// has the plots (scripts/plot.py).
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeQueue;
using model::testing::PodBuilder;

// A cluster of whole nodes: `per_mille` of the GPUs run a job of a queue with quota 0.
void Fill(LoopCluster& cluster, int64_t nodes, int64_t per_mille, bool groups) {
  cluster.AddNodes(nodes);
  cluster.Add(MakeQueue("rich", "", 0, model::kUnlimited));
  cluster.Add(MakeQueue("poor", "", 8 * nodes, model::kUnlimited, /*weight=*/0));
  const int64_t gpus = 8 * nodes * per_mille / 1000;
  for (int64_t p = 0; p < gpus; ++p) {
    PodBuilder pod(kNamespace, Numbered("run", p));
    pod.Gpus(1).Queue("rich").Preemptible(true).On(Numbered("node", p / 8));
    cluster.AddJob(pod.Build(), groups);
  }
  cluster.Sync();
  cluster.Confirm(cluster.Step());
}

// The step that answers one new pod.
void OnePod(Run& run, const std::string& name, int64_t nodes, int64_t per_mille, int gpus,
            bool groups) {
  std::vector<double> wall_ms;
  double cpu = 0;
  LoopCluster cluster;
  Fill(cluster, nodes, per_mille, groups);
  for (int i = 0; i < 5 * run.repetitions; ++i) {
    const model::Pod pod =
        PodBuilder(kNamespace, Numbered("new", i)).Gpus(gpus).Queue("poor").Preemptible(true);
    cluster.AddJob(pod, groups);
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    wall_ms.push_back(watch.Seconds() * 1e3);
    cpu = watch.CpuSeconds();
    Require(Count<model::BindPod>(result) + Count<model::EvictPod>(result) > 0,
            absl::StrCat(name, ": nothing was decided for the pod"));
    cluster.Confirm(result);
  }
  run.report.Add({name, "ms", Better::kLower, wall_ms, std::nullopt, std::nullopt, cpu,
                  absl::StrCat("step for one new pod of ", gpus, " GPU; ", nodes, " nodes, ",
                               per_mille / 10, " % of the GPUs taken")});
}

}  // namespace

void GrowthWithNodes(Run& run) {
  for (const bool groups : {false, true}) {
    const std::string name = NameOf("growth_nodes", groups);
    for (const int64_t nodes : {500, 1000, 2000, 5000, 10'000, 20'000}) {
      OnePod(run, absl::StrCat(name, "/place/", nodes), nodes, 900, 1, groups);
      OnePod(run, absl::StrCat(name, "/reclaim/", nodes), nodes, 1000, 1, groups);
    }
  }
}

void GrowthWithFill(Run& run) {
  for (const bool groups : {false, true}) {
    const std::string name = NameOf("growth_fill", groups);
    for (const int64_t per_cent : {0, 25, 50, 75, 90, 95, 99, 100}) {
      OnePod(run, absl::StrCat(name, "/one_gpu/", per_cent), 5000, 10 * per_cent, 1, groups);
      OnePod(run, absl::StrCat(name, "/whole_node/", per_cent), 5000, 10 * per_cent, 8, groups);
    }
  }
}

}  // namespace fairlead::bench
