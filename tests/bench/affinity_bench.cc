// Placements of pods that look at other nodes: required pod affinity, anti-affinity and topology
// spread. Each constraint is of the pod to its like, as a Deployment's is.
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"
#include "tests/bench/like_pods.h"

namespace fairlead::bench {
namespace {

using model::testing::PodBuilder;

constexpr double kAffinityGoal = 20'000;

// Of the like of it there are `jobs` / `apps`; `constrain` adds what it asks of the others.
template <typename Constrain>
void Place(Run& run, const std::string& name, int64_t jobs, int64_t apps, bool groups,
           const std::string& note, Constrain constrain) {
  std::vector<double> rate, cpu;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster;
    AddZonedNodes(cluster, kLikeNodes);
    for (int64_t j = 0; j < jobs; ++j) {
      const std::string app = absl::StrCat("app-", j % apps);
      model::Pod pod = PodBuilder(kNamespace, Numbered("job", j)).Queue("team").Label("app", app);
      constrain(pod.spec, app);
      pod.spec.labels_for_affinity = pod.meta.labels;
      cluster.AddJob(std::move(pod), groups);
    }
    const Stopwatch watch;
    const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1000));
    rate.push_back(static_cast<double>(jobs) / watch.Seconds());
    cpu.push_back(watch.CpuSeconds());
    Require(static_cast<int64_t>(result.bindings.size()) == jobs,
            absl::StrCat(name, ": not all jobs were placed"));
  }
  run.report.Add({name, "placements/s", Better::kHigher, rate, kAffinityGoal, std::nullopt,
                  Median(cpu), note});
}

template <typename Constrain>
void PlaceAll(Run& run, const std::string& name, int64_t jobs, Constrain constrain) {
  for (const int64_t apps : {int64_t{1}, int64_t{20}}) {
    for (const bool groups : {false, true}) {
      Place(run, NameOf(absl::StrCat(name, apps == 1 ? "" : "/apps_20"), groups), jobs, apps,
            groups, absl::StrCat("engine cycle, ", jobs, " pods on 5,000 nodes"), constrain);
    }
  }
}

}  // namespace

void Affinity5k(Run& run) {
  PlaceAll(run, "affinity_5k", 20'000, [](model::PodSpec& spec, const std::string& app) {
    spec.pod_affinity = {TermTo(app, kLikeZoneLabel)};
  });
}

void AntiAffinity5k(Run& run) {
  // One pod of an app on each node.
  PlaceAll(run, "anti_affinity_5k", 5000, [](model::PodSpec& spec, const std::string& app) {
    spec.pod_anti_affinity = {TermTo(app, model::kHostnameLabel)};
  });
}

void ZoneSpread5k(Run& run) {
  PlaceAll(run, "zone_spread_5k", 20'000, [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, kLikeZoneLabel)};
  });
}

void HostSpread5k(Run& run) {
  PlaceAll(run, "host_spread_5k", 20'000, [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, model::kHostnameLabel)};
  });
}

}  // namespace fairlead::bench
