// The largest cluster that Fairlead is made for: 100,000 nodes and 1,000,000 pods.
#include <cstdio>

#include "tests/bench/benchmarks.h"
#include "tests/bench/big_load.h"
#include "tests/bench/big_pods.h"

namespace fairlead::bench {
namespace {

constexpr int64_t kScaleNodes = 100'000;
constexpr int64_t kScalePods = 1'000'000;
constexpr int kEvents = 20;

}  // namespace

void Scale100kChild(bool groups) {
  LoopCluster cluster;
  cluster.Add(model::testing::MakeQueue("research", "", model::kUnlimited, model::kUnlimited));
  for (int q = 0; q < 20; ++q) {
    cluster.Add(
        model::testing::MakeQueue(absl::StrCat("team-", q), "research", 2000, model::kUnlimited));
  }
  double seconds = LoadBig(cluster, model::Kind::kNode, kScaleNodes);
  if (groups) seconds += LoadBig(cluster, model::Kind::kPodGroup, kScalePods);
  seconds += LoadBig(cluster, model::Kind::kPod, kScalePods, groups);
  cluster.Sync();
  const Stopwatch first;
  const core::StepResult result = cluster.Step();
  const double decided = first.Seconds();
  Require(Count<model::BindPod>(result) > 0, "nothing was bound");
  cluster.Confirm(result);
  const double resident = MemoryMib("VmRSS");
  // One pod comes, and is bound.
  std::vector<double> event_ms;
  for (int i = 0; i < kEvents; ++i) {
    const model::Pod pod = GpuPod("late", i, "team-1");
    const Stopwatch event;
    cluster.AddJob(pod, groups);
    const core::StepResult step = cluster.Step();
    event_ms.push_back(event.Seconds() * 1e3);
    Require(Count<model::BindPod>(step) == 1, "the pod that came was not bound");
    cluster.Confirm(step);
  }
  std::printf("load=%f first=%f event=%f resident=%f peak=%f\n", seconds, decided, Median(event_ms),
              resident, MemoryMib("VmHWM"));
}

namespace {

void Scale100kWith(Run& run, bool groups) {
  const std::string name = NameOf("scale_100k", groups);
  const ChildFigures figures = RunChildren(name, run.repetitions < 3 ? 1 : 3);
  const auto add = [&](const char* what, const char* unit, const char* figure,
                       std::optional<double> goal, const char* note) {
    run.report.Add({name + what, unit, Better::kLower, figures.at(figure), goal, std::nullopt,
                    std::nullopt, note});
  };
  add("/first_decision", "s", "first", 8, "50,000 of 1,000,000 pods waiting");
  add("/one_event", "ms", "event", 5, "a pod comes and is bound");
  add("", "MiB", "resident", 1.6e9 / 1048576, "resident after the first decision");
  add("/peak", "MiB", "peak", std::nullopt, "pages of 500 in flight included");
  add("/load", "s", "load", std::nullopt, "decode and apply, without the network");
}

}  // namespace

void Scale100k(Run& run) {
  for (const bool groups : {false, true}) Scale100kWith(run, groups);
}

}  // namespace fairlead::bench
