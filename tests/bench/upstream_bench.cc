// Placements by kube-scheduler's default profile: its filters, and its scores normalised as it
// normalises them. Plain pods, and pods that prefer to be near to or away from their like.
#include "scheduler/framework/default_profiles.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

constexpr int64_t kNodes = 5000;
constexpr int64_t kZones = 10;
constexpr int64_t kGib = int64_t{1} << 30;
constexpr double kGoalPlain = 300'000;
constexpr double kGoal = 20'000;
constexpr char kZone[] = "topology.kubernetes.io/zone";

model::LabelSelector Like(const std::string& app) {
  return {false, {{"app", model::SelectorOperator::kIn, {app}}}};
}

model::PodAffinityTerm Prefers(const std::string& app, const char* key) {
  model::PodAffinityTerm term;
  term.selector = Like(app);
  term.topology_key = key;
  term.weight = 100;
  return term;
}

model::TopologySpreadConstraint SpreadOver(const std::string& app, const char* key) {
  model::TopologySpreadConstraint constraint;
  constraint.selector = Like(app);
  constraint.topology_key = key;
  constraint.do_not_schedule = false;
  return constraint;
}

struct Shape {
  std::string name;
  int64_t nodes = kNodes, jobs = 0;
  int64_t kinds = 1;  // of the like of a pod there are `jobs` / `kinds`
  double goal = kGoal;
};

// `constrain` adds what a pod asks of others.
template <typename Constrain>
void Place(Run& run, const Shape& shape, Constrain constrain) {
  std::vector<double> rate, cpu;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster(framework::DefaultProfile(framework::ProfileBase::kUpstream));
    cluster.tree().Upsert(MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
    for (int64_t n = 0; n < shape.nodes; ++n) {
      model::Node node = MakeNode(Numbered("node", n), 0, 64, 512);
      node.meta.labels.Set(kZone, absl::StrCat("zone-", n % kZones));
      cluster.state().UpsertNode(node);
    }
    for (int64_t j = 0; j < shape.jobs; ++j) {
      const int64_t kind = j % shape.kinds;
      const std::string app = absl::StrCat("app-", kind);
      model::Pod pod = PodBuilder(kNamespace, Numbered("job", j)).Queue("team").Label("app", app);
      pod.spec.scoring_requests = {1000 + kind, kGib};
      pod.spec.requests = {{model::kCpuName, 1000 + kind}, {model::kMemoryName, kGib}};
      constrain(pod.spec, app);
      cluster.AddJob(std::move(pod), false);
    }
    const Stopwatch watch;
    const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1000));
    rate.push_back(static_cast<double>(shape.jobs) / watch.Seconds());
    cpu.push_back(watch.CpuSeconds());
    Require(static_cast<int64_t>(result.bindings.size()) == shape.jobs,
            absl::StrCat(shape.name, ": not all jobs were placed"));
  }
  run.report.Add({shape.name, "placements/s", Better::kHigher, rate,
                  shape.goal == 0 ? std::nullopt : std::optional<double>(shape.goal), std::nullopt,
                  Median(cpu),
                  absl::StrCat("engine cycle, ", shape.jobs, " pods of ", shape.kinds, " kinds on ",
                               shape.nodes, " nodes")});
}

template <typename Constrain>
void PlaceLike(Run& run, const std::string& name, Constrain constrain) {
  for (const int64_t kinds : {int64_t{1}, int64_t{20}}) {
    Place(run,
          {absl::StrCat("upstream_5k/", name, kinds == 1 ? "" : "/apps_20"), kNodes, 20'000, kinds},
          [&](model::PodSpec& spec, const std::string& app) {
            constrain(spec, app);
            spec.labels_for_affinity = {{"app", app}};
          });
  }
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
             kNodes, jobs, kinds, kinds == 1 ? kGoalPlain : 0},
            plain);
    }
  }
  for (const int64_t nodes : {int64_t{1000}, int64_t{20'000}}) {
    Place(run, {absl::StrCat("upstream_5k/plain/nodes_", nodes), nodes, 50'000, 1, 0}, plain);
  }
  PlaceLike(run, "preferred_affinity", [](model::PodSpec& spec, const std::string& app) {
    spec.pod_affinity = {Prefers(app, kZone)};
  });
  PlaceLike(run, "preferred_anti_affinity", [](model::PodSpec& spec, const std::string& app) {
    spec.pod_anti_affinity = {Prefers(app, model::kHostnameLabel)};
  });
  PlaceLike(run, "zone_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, kZone)};
  });
  PlaceLike(run, "host_spread", [](model::PodSpec& spec, const std::string& app) {
    spec.topology_spread = {SpreadOver(app, model::kHostnameLabel)};
  });
}

}  // namespace fairlead::bench
