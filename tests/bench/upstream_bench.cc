// Placements by kube-scheduler's default profile: its filters, and its scores normalised as it
// normalises them. Plain pods, and pods that prefer to be near to or away from their like.
#include "scheduler/framework/default_profiles.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"
#include "tests/bench/like_pods.h"

namespace fairlead::bench {
namespace {

using model::testing::PodBuilder;

constexpr int64_t kGib = int64_t{1} << 30;
constexpr double kGoalPlain = 300'000;
constexpr double kHardGoal = 20'000;

model::PodAffinityTerm Prefers(const std::string& app, const char* key) {
  model::PodAffinityTerm term = TermTo(app, key);
  term.weight = 100;
  return term;
}

model::TopologySpreadConstraint PrefersSpread(const std::string& app, const char* key) {
  model::TopologySpreadConstraint constraint = SpreadOver(app, key);
  constraint.do_not_schedule = false;
  return constraint;
}

model::Pod PlainPod(int64_t number, int64_t kind) {
  const std::string app = absl::StrCat("app-", kind);
  model::Pod pod = PodBuilder(kNamespace, Numbered("job", number)).Queue("team").Label("app", app);
  pod.spec.scoring_requests = {1000 + kind, kGib};
  pod.spec.requests = {{model::kCpuName, 1000 + kind}, {model::kMemoryName, kGib}};
  return pod;
}

struct Shape {
  std::string name;
  int64_t nodes = kLikeNodes, jobs = 0;
  int64_t kinds = 1;  // of the like of a pod there are `jobs` / `kinds`
  double goal = kHardGoal;
};

// `constrain` adds what a pod asks of others. Returns the seconds of each repetition.
template <typename Constrain>
std::vector<double> Place(Run& run, const Shape& shape, Constrain constrain) {
  std::vector<double> rate, cpu, seconds;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster(framework::DefaultProfile(framework::ProfileBase::kUpstream));
    AddZonedNodes(cluster, shape.nodes);
    for (int64_t j = 0; j < shape.jobs; ++j) {
      const int64_t kind = j % shape.kinds;
      model::Pod pod = PlainPod(j, kind);
      constrain(pod.spec, absl::StrCat("app-", kind));
      cluster.AddJob(std::move(pod), false);
    }
    const Stopwatch watch;
    const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1000));
    seconds.push_back(watch.Seconds());
    rate.push_back(static_cast<double>(shape.jobs) / seconds.back());
    cpu.push_back(watch.CpuSeconds());
    Require(static_cast<int64_t>(result.bindings.size()) == shape.jobs,
            absl::StrCat(shape.name, ": not all jobs were placed"));
  }
  run.report.Add({shape.name, "placements/s", Better::kHigher, rate,
                  shape.goal == 0 ? std::nullopt : std::optional<double>(shape.goal), std::nullopt,
                  Median(cpu),
                  absl::StrCat("engine cycle, ", shape.jobs, " pods of ", shape.kinds, " kinds on ",
                               shape.nodes, " nodes")});
  return seconds;
}

// How many times as long a placement takes on 20,000 nodes as on 1,000.
void PlaceOnMoreNodes(Run& run) {
  std::vector<std::vector<double>> seconds;
  for (const int64_t nodes : {int64_t{1000}, int64_t{20'000}}) {
    seconds.push_back(Place(run,
                            {absl::StrCat("upstream_5k/plain/nodes_", nodes), nodes, 50'000, 1, 0},
                            [](model::PodSpec&, const std::string&) {}));
  }
  std::vector<double> times;
  for (size_t i = 0; i < seconds[0].size(); ++i) times.push_back(seconds[1][i] / seconds[0][i]);
  run.report.Add({"upstream_5k/plain/nodes_20000/times_1000", "x", Better::kLower, times, 2,
                  std::nullopt, std::nullopt, "time per placement over that on 1,000 nodes"});
}

template <typename Constrain>
void PlaceLike(Run& run, const std::string& name, Constrain constrain, int64_t jobs = 20'000) {
  for (const int64_t kinds : {int64_t{1}, int64_t{20}}) {
    Place(
        run,
        {absl::StrCat("upstream_5k/", name, kinds == 1 ? "" : "/apps_20"), kLikeNodes, jobs, kinds},
        [&](model::PodSpec& spec, const std::string& app) {
          constrain(spec, app);
          spec.labels_for_affinity = {{"app", app}};
        });
  }
}

// The same pods with 10,000 others of `sizes` sizes that fit nowhere; decided before.
void PlaceBesideHopeless(Run& run, int64_t sizes) {
  constexpr int64_t kJobs = 50'000;
  std::vector<double> part;
  for (int i = 0; i < run.repetitions; ++i) {
    double seconds[2] = {};
    for (const bool hopeless : {false, true}) {
      EngineCluster cluster(framework::DefaultProfile(framework::ProfileBase::kUpstream));
      AddZonedNodes(cluster, kLikeNodes);
      for (int64_t j = 0; hopeless && j < 10'000; ++j) {
        model::Pod pod = PodBuilder(kNamespace, Numbered("hopeless", j)).Queue("team");
        pod.spec.requests = {{model::kCpuName, 100'000 + j % sizes}};
        cluster.AddJob(std::move(pod), false);
      }
      // What a cycle did not come to follows at once.
      while (cluster.engine().RunCycle(model::testing::At(1000)).wake_at <=
             model::testing::At(1000)) {
      }
      for (int64_t j = 0; j < kJobs; ++j) cluster.AddJob(PlainPod(j, 0), false);
      const Stopwatch watch;
      const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1001));
      seconds[hopeless ? 1 : 0] = watch.Seconds();
      Require(static_cast<int64_t>(result.bindings.size()) == kJobs, "not all jobs were placed");
    }
    part.push_back(100 * (seconds[1] / seconds[0] - 1));
  }
  const std::string name = absl::StrCat("upstream_5k/plain/beside_hopeless",
                                        sizes == 100 ? "" : absl::StrCat("/sizes_", sizes));
  run.report.Add({name, "%", Better::kLower, part, 5, std::nullopt, std::nullopt,
                  absl::StrCat("more time for 50,000 pods beside 10,000 of ", sizes,
                               " sizes that fit nowhere")});
}

// 20,000 pods of low priority fill the nodes, 5,000 of a higher one come, in `kinds` sizes. Those
// that stand apart may not be on a node with another one of them.
void Preempt(Run& run, const std::string& name, int64_t kinds, bool apart) {
  constexpr int64_t kPerNode = 4, kJobs = 5000;
  std::vector<double> rate, cpu, cycles;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster(framework::DefaultProfile(framework::ProfileBase::kUpstream));
    AddZonedNodes(cluster, kLikeNodes);
    const auto pod = [](const char* prefix, int64_t number, int32_t priority, int64_t milli) {
      model::Pod made =
          PodBuilder(kNamespace, Numbered(prefix, number)).Queue("team").Priority("", priority);
      made.spec.requests = {{model::kCpuName, milli}};
      made.spec.scoring_requests = {milli, 200 << 20};
      return made;
    };
    for (int64_t p = 0; p < kPerNode * kLikeNodes; ++p) {
      model::Pod low = pod("low", p, 1000, 16'000);
      low.node_name = Numbered("node", p / kPerNode);
      low.phase = model::PodPhase::kRunning;
      low.start_time = model::testing::At(p);
      cluster.AddJob(std::move(low), false);
    }
    cluster.engine().RunCycle(model::testing::At(1000));
    for (int64_t j = 0; j < kJobs; ++j) {
      model::Pod high = pod("high", j, 1'000'000, 16'000 - j % kinds);
      if (apart) {
        high.meta.labels.Set("app", "high");
        high.spec.pod_anti_affinity = {TermTo("high", model::kHostnameLabel)};
        high.spec.labels_for_affinity = high.meta.labels;
      }
      cluster.AddJob(std::move(high), false);
    }
    int64_t evicted = 0, count = 0;
    const Stopwatch watch;
    while (evicted < kJobs) {
      Require(++count < 100, "the preemption does not end");
      const engine::CycleResult result =
          cluster.engine().RunCycle(model::testing::At(1000 + count));
      evicted += static_cast<int64_t>(result.evictions.size());
    }
    rate.push_back(static_cast<double>(kJobs) / watch.Seconds());
    cpu.push_back(watch.CpuSeconds());
    cycles.push_back(static_cast<double>(count));
  }
  run.report.Add(
      {name, "preemptions/s", Better::kHigher, rate,
       kinds > 1 || apart ? std::nullopt : std::optional<double>(5000), std::nullopt, Median(cpu),
       absl::StrCat("5,000 pods of ", kinds, " sizes, 20,000 of lower priority on 5,000 ",
                    "nodes; ", Median(cycles), " cycles")});
}

}  // namespace

void Upstream5k(Run& run) {
  const auto plain = [](model::PodSpec&, const std::string&) {};
  for (const int64_t kinds : {int64_t{1}, int64_t{32}}) {
    // Up to a sixth of the CPUs, and all of them.
    for (const int64_t jobs : {int64_t{50'000}, int64_t{300'000}}) {
      Place(run,
            {absl::StrCat("upstream_5k/plain", kinds == 1 ? "" : "/classes_32",
                          jobs == 50'000 ? "" : "/full"),
             kLikeNodes, jobs, kinds, kinds == 1 ? kGoalPlain : 0},
            plain);
    }
  }
  PlaceOnMoreNodes(run);
  for (const int64_t sizes : {int64_t{100}, int64_t{10'000}}) PlaceBesideHopeless(run, sizes);
  Preempt(run, "upstream_5k/preemption", 1, false);
  Preempt(run, "upstream_5k/preemption/sizes_32", 32, false);
  Preempt(run, "upstream_5k/preemption/apart", 1, true);
  PlaceLike(run, "preferred_affinity", [](model::PodSpec& spec, const std::string& app) {
    spec.pod_affinity = {Prefers(app, kLikeZoneLabel)};
  });
  PlaceLike(run, "preferred_anti_affinity", [](model::PodSpec& spec, const std::string& app) {
    spec.pod_anti_affinity = {Prefers(app, model::kHostnameLabel)};
  });
  PlaceLike(run, "required_affinity", [](model::PodSpec& spec, const std::string& app) {
    spec.pod_affinity = {TermTo(app, kLikeZoneLabel)};
  });
  // A node for each.
  PlaceLike(
      run, "required_anti_affinity",
      [](model::PodSpec& spec, const std::string& app) {
        spec.pod_anti_affinity = {TermTo(app, model::kHostnameLabel)};
      },
      kLikeNodes);
  PlaceLike(run, "hard_zone_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, kLikeZoneLabel)};
  });
  PlaceLike(run, "hard_host_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, model::kHostnameLabel)};
  });
  PlaceLike(run, "zone_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {PrefersSpread(app, kLikeZoneLabel)};
  });
  PlaceLike(run, "host_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {PrefersSpread(app, model::kHostnameLabel)};
  });
}

}  // namespace fairlead::bench
