// Decisions in memory: placements, and the cost of a cycle when much, little or nothing happens.
#include "tests/bench/benchmarks.h"
#include "tests/bench/cluster.h"

namespace fairlead::bench {
namespace {

using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

// Armada's ScheduleMany on a 2-core machine (performance facts, section 8).
constexpr double kArmadaPlacementsPerSecond = 97'000;

constexpr int64_t kSmallJobs = 64'000;

// One core and some memory; only the memory differs between classes.
model::Pod SmallJob(int64_t number, int64_t classes) {
  model::Pod pod = PodBuilder(kNamespace, Numbered("job", number)).Queue("team").Build();
  model::Set(pod.spec.requests, model::kMemoryName,
             (1 + number % classes) * (model::testing::kGiB / 16));
  return pod;
}

// The rate of whole steps: events are in, actions come out.
void PlacementSteps(Run& run, const std::string& name, int64_t nodes, int64_t classes, bool groups,
                    std::optional<double> goal) {
  std::vector<double> rate, cpu;
  for (int i = 0; i < run.repetitions; ++i) {
    LoopCluster cluster;
    cluster.Add(MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
    for (int64_t n = 0; n < nodes; ++n) cluster.Add(MakeNode(Numbered("node", n), 0, 64, 512));
    for (int64_t j = 0; j < kSmallJobs; ++j) cluster.AddJob(SmallJob(j, classes), groups);
    cluster.Sync();
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    rate.push_back(kSmallJobs / watch.Seconds());
    cpu.push_back(watch.CpuSeconds());
    Require(Count<model::BindPod>(result) == kSmallJobs, absl::StrCat(name, ": not all bound"));
  }
  run.report.Add({name, "placements/s", Better::kHigher, rate, goal, std::nullopt, Median(cpu),
                  "whole step, actions made"});
}

void Placements(Run& run, absl::string_view name, int64_t nodes) {
  constexpr double kGoal = 500'000;
  for (const int64_t classes : {int64_t{1}, int64_t{32}}) {
    const std::string variant = absl::StrCat(name, "/classes_", classes);
    std::vector<double> engine_rate, engine_cpu;
    for (int i = 0; i < run.repetitions; ++i) {
      EngineCluster cluster;
      cluster.tree().Upsert(MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
      for (int64_t n = 0; n < nodes; ++n) {
        cluster.state().UpsertNode(MakeNode(Numbered("node", n), 0, 64, 512));
      }
      for (int64_t j = 0; j < kSmallJobs; ++j) cluster.state().UpsertPod(SmallJob(j, classes));
      const Stopwatch watch;
      const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1000));
      engine_rate.push_back(kSmallJobs / watch.Seconds());
      engine_cpu.push_back(watch.CpuSeconds());
      Require(result.bindings.size() == kSmallJobs,
              absl::StrCat(variant, ": not all jobs were placed"));
    }
    const std::optional<Rival> rival =
        nodes == 1000 && classes == 1
            ? std::optional<Rival>({"Armada ScheduleMany", kArmadaPlacementsPerSecond})
            : std::nullopt;
    const std::optional<double> goal = nodes == 1000 ? std::optional<double>(kGoal) : std::nullopt;
    run.report.Add({variant, "placements/s", Better::kHigher, engine_rate, goal, rival,
                    Median(engine_cpu), "engine cycle"});
    for (const bool groups : {false, true}) {
      PlacementSteps(run, NameOf(variant + "/step", groups), nodes, classes, groups, goal);
    }
  }
}

}  // namespace

void Placements1k(Run& run) { Placements(run, "placements_1k", 1000); }
void Placements20k(Run& run) { Placements(run, "placements_20k", 20'000); }

namespace {

void Fill500x8With(Run& run, bool groups) {
  std::vector<double> wall_ms, cpu;
  for (int i = 0; i < 3 * run.repetitions; ++i) {
    core::Options options = LoopCluster::QuietOptions();
    options.emit_events = true;  // as it is shipped
    LoopCluster cluster(options);
    cluster.AddNodes(500);
    cluster.Add(MakeQueue("department", "", 4000, model::kUnlimited));
    for (int q = 0; q < 10; ++q) {
      cluster.Add(MakeQueue(absl::StrCat("team-", q), "department", 400, model::kUnlimited));
    }
    for (int64_t p = 0; p < 4000; ++p) {
      const std::string team = absl::StrCat("team-", p % 10);
      cluster.AddJob(GpuPod("fill", p, team), groups);
    }
    cluster.Sync();
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    wall_ms.push_back(watch.Seconds() * 1e3);
    cpu.push_back(watch.CpuSeconds());
    Require(Count<model::BindPod>(result) == 4000, "not all 4,000 jobs were bound");
  }
  run.report.Add({NameOf("fill_500x8", groups), "ms", Better::kLower, wall_ms, 20, std::nullopt,
                  Median(cpu), "deciding cycle of 4,000 jobs, actions and events made"});
}

// Armada's benchmark of a long queue: most jobs wait, and then something small happens.
void Queued320kWith(Run& run, bool groups) {
  constexpr int64_t kQueued = 320'000;
  constexpr int64_t kNodes = 1000;
  constexpr int64_t kFit = kNodes * 64;
  std::vector<double> first_ms, first_cpu, event_ms, event_cpu;
  for (int i = 0; i < run.repetitions; ++i) {
    EngineCluster cluster;
    cluster.tree().Upsert(MakeQueue("department", "", model::kUnlimited, model::kUnlimited));
    for (int q = 0; q < 10; ++q) {
      cluster.tree().Upsert(
          MakeQueue(absl::StrCat("team-", q), "department", 0, model::kUnlimited));
    }
    for (int64_t n = 0; n < kNodes; ++n) {
      cluster.state().UpsertNode(MakeNode(Numbered("node", n), 0, 64, 512));
    }
    for (int64_t j = 0; j < kQueued; ++j) {
      model::Pod pod = SmallJob(j, 1);
      pod.meta.labels.Set(model::kQueueLabel, absl::StrCat("team-", j % 10));
      cluster.AddJob(std::move(pod), groups);
    }
    const Stopwatch first;
    const engine::CycleResult result = cluster.engine().RunCycle(model::testing::At(1000));
    first_ms.push_back(first.Seconds() * 1e3);
    first_cpu.push_back(first.CpuSeconds());
    Require(result.bindings.size() == kFit, "not all that fit were placed");
    int64_t waiting = 0;
    for (const engine::Waiting& entry : result.waiting) waiting += 1 + entry.behind;
    Require(waiting == kQueued - kFit, "a waiting workload has no verdict");

    for (int j = 0; j < 20; ++j) {
      cluster.RemoveJob(result.bindings[static_cast<size_t>(j)].pod, groups);
      const Stopwatch event;
      const engine::CycleResult next = cluster.engine().RunCycle(model::testing::At(1001 + j));
      event_ms.push_back(event.Seconds() * 1e3);
      event_cpu.push_back(event.CpuSeconds());
      Require(next.bindings.size() == 1, "the freed place was not given away");
    }
  }
  const std::string name = NameOf("queued_320k", groups);
  run.report.Add(
      {name + "/first", "ms", Better::kLower, first_ms, 400, std::nullopt, Median(first_cpu),
       "engine cycle: 64,000 of 320,000 jobs placed on 1,000 nodes, verdicts of the rest"});
  run.report.Add({name + "/one_job_ended", "ms", Better::kLower, event_ms, 1,
                  Rival{"Armada round, at best", 9.5}, Median(event_cpu),
                  "engine cycle after one event"});
}

// A large cluster at work, as LoopCluster has it: what runs, and 5,000 pods that wait.
void AddIdle(LoopCluster& cluster, int64_t nodes, bool groups) {
  cluster.AddNodes(nodes);
  cluster.Add(MakeQueue("services", "", model::kUnlimited, model::kUnlimited));
  cluster.Add(MakeQueue("training", "", 8 * nodes, model::kUnlimited));
  cluster.Add(MakeQueue("limited", "", 0, 0));
  for (int64_t n = 0; n < nodes; ++n) {
    for (int64_t i = 0; i < 8; ++i) {
      cluster.AddJob(RunningOn(GpuPod("train", n * 8 + i, "training"), n), groups);
    }
    for (int64_t i = 0; i < 11; ++i) {
      const model::Pod pod =
          PodBuilder(kNamespace, Numbered("service", n * 11 + i)).Cpu(500).Queue("services");
      cluster.AddJob(RunningOn(pod, n), groups);
    }
  }
  for (int64_t p = 0; p < 2500; ++p) {
    cluster.AddJob(GpuPod("full", p, "training"), groups);
    cluster.AddJob(GpuPod("over-limit", p, "limited"), groups);
  }
  cluster.Sync();
}

void IdleCycleWith(Run& run, bool groups) {
  const std::string name = NameOf("idle_cycle", groups);
  LoopCluster cluster;
  AddIdle(cluster, 5000, groups);
  const Stopwatch first;
  const core::StepResult told = cluster.Step();
  run.report.Add({name + "/first",
                  "ms",
                  Better::kLower,
                  {first.Seconds() * 1e3},
                  std::nullopt,
                  std::nullopt,
                  first.CpuSeconds(),
                  absl::StrCat("5,000 nodes, 95,000 running, 5,000 pending; ", Writes(told),
                               " verdicts written")});
  cluster.Confirm(told);

  const int repetitions = 200 * run.repetitions;
  std::vector<double> unchanged_ms, echo_ms, ended_ms, ended_cpu;
  for (int i = 0; i < repetitions; ++i) {
    const Stopwatch watch;
    const core::StepResult result = cluster.Step();
    unchanged_ms.push_back(watch.Seconds() * 1e3);
    Require(result.actions.empty(), "something was written");
  }
  // KAI: 5,000 nodes, 10,000 pods, nothing pending (measured facts, section 1 table e).
  run.report.Add({name + "/unchanged", "ms", Better::kLower, unchanged_ms, 1,
                  Rival{"KAI, 10,000 pods", 428}, std::nullopt, ""});

  model::Pod echo = RunningOn(GpuPod("train", 77, "training"), 9);
  if (groups) (void)OwnGroup(echo);
  for (int i = 0; i < repetitions; ++i) {
    echo.meta.resource_version = absl::StrCat(1000 + i);
    const Stopwatch watch;
    cluster.Add(echo);
    const core::StepResult result = cluster.Step();
    echo_ms.push_back(watch.Seconds() * 1e3);
    Require(result.actions.empty(), "an echo made a write");
  }
  run.report.Add({name + "/status_echo", "ms", Better::kLower, echo_ms, 1, std::nullopt,
                  std::nullopt, "one running pod's status seen again"});

  for (int i = 0; i < 2 * run.repetitions; ++i) {
    const model::Pod ended = RunningOn(GpuPod("train", 100 + i, "training"), (100 + i) / 8);
    const Stopwatch watch;
    cluster.RemoveJob(ended, groups);
    const core::StepResult result = cluster.Step();
    ended_ms.push_back(watch.Seconds() * 1e3);
    ended_cpu.push_back(watch.CpuSeconds());
    Require(Count<model::BindPod>(result) == 1, "the freed GPU was not given away");
    cluster.Confirm(result);
  }
  run.report.Add({name + "/one_pod_ended", "ms", Better::kLower, ended_ms, std::nullopt,
                  std::nullopt, Median(ended_cpu), "a pod of 100,000 ended, its place is filled"});
}

// Many pods wait for the GPUs of a full cluster, of which none may be evicted.
struct FullClusterShape {
  int64_t waiting = 0;
  int64_t sizes = 1;  // of their memory
  int64_t allocate_depth = model::kUnlimited;
  int unchanged_steps = 0, forced_cycles = 0;
};
struct FullClusterTimes {
  std::vector<double> first_ms, first_cpu, unchanged_ms, forced_ms, forced_writes, ended_ms,
      ended_writes;
};

void MeasureFullCluster(const FullClusterShape& shape, bool groups, FullClusterTimes& out) {
  core::Options options = LoopCluster::QuietOptions();
  options.engine.allocate_depth = shape.allocate_depth;
  LoopCluster cluster(options);
  cluster.AddNodes(1000);
  cluster.Add(MakeQueue("full", "", 8000, model::kUnlimited));
  for (int64_t p = 0; p < 8000; ++p) {
    model::Pod pod = RunningOn(GpuPod("run", p, "full"), p / 8);
    pod.meta.labels.Set(model::kPreemptibilityLabel, "non-preemptible");
    cluster.AddJob(std::move(pod), groups);
  }
  for (int64_t p = 0; p < shape.waiting; ++p) {
    model::Pod pod = GpuPod("wait", p, "full");
    if (shape.sizes > 1) {
      model::Set(pod.spec.requests, model::kMemoryName, (p % shape.sizes + 1) << 20);
    }
    cluster.AddJob(std::move(pod), groups);
  }
  cluster.Sync();
  // Results are kept until the end: freeing thousands of actions must not count for the next step.
  const Stopwatch first;
  const core::StepResult told = cluster.Step();
  out.first_ms.push_back(first.Seconds() * 1e3);
  out.first_cpu.push_back(first.CpuSeconds());
  Require(Count<model::SetPodUnschedulable>(told) == shape.waiting, "verdicts missing");
  Require(Count<model::SetPodGroupSchedulability>(told) == (groups ? shape.waiting : 0),
          "verdicts of groups missing");
  cluster.Confirm(told);

  for (int i = 0; i < shape.unchanged_steps; ++i) {
    const Stopwatch unchanged;
    const core::StepResult nothing = cluster.Step();
    out.unchanged_ms.push_back(unchanged.Seconds() * 1e3);
    Require(nothing.actions.empty(), "an unchanged cycle wrote");
  }
  for (int i = 0; i < shape.forced_cycles; ++i) {
    const Stopwatch forced;
    const core::StepResult same = cluster.DecideAnew();
    out.forced_ms.push_back(forced.Seconds() * 1e3);
    out.forced_writes.push_back(static_cast<double>(same.actions.size()));
  }
  const Stopwatch ended;
  cluster.RemoveJob(GpuPod("run", 4321, "full"), groups);
  const core::StepResult result = cluster.Step();
  out.ended_ms.push_back(ended.Seconds() * 1e3);
  out.ended_writes.push_back(static_cast<double>(Writes(result)));
  Require(Count<model::BindPod>(result) == 1, "the freed GPU stayed free");
}

void PendingFull2000With(Run& run, bool groups) {
  const std::string name = NameOf("pending_full_2000", groups);
  FullClusterTimes times;
  for (int i = 0; i < run.repetitions; ++i) {
    MeasureFullCluster({.waiting = 2000, .unchanged_steps = 100, .forced_cycles = 1}, groups,
                       times);
  }
  // KAI's cycle in the same situation (measured facts, section 1 table d, "full").
  run.report.Add({name + "/first", "ms", Better::kLower, times.first_ms, std::nullopt,
                  Rival{"KAI cycle", 16'232}, Median(times.first_cpu),
                  "2,000 verdicts made and written"});
  run.report.Add({name + "/unchanged", "ms", Better::kLower, times.unchanged_ms, 1, std::nullopt,
                  std::nullopt, ""});
  run.report.Add({name + "/decided_anew", "ms", Better::kLower, times.forced_ms, std::nullopt,
                  std::nullopt, std::nullopt, "every answer found again"});
  run.report.Add({name + "/decided_anew/writes", "writes", Better::kLower, times.forced_writes, 0,
                  std::nullopt, std::nullopt, ""});
  run.report.Add({name + "/one_pod_ended", "ms", Better::kLower, times.ended_ms, std::nullopt,
                  std::nullopt, std::nullopt, ""});
  run.report.Add({name + "/one_pod_ended/writes", "writes", Better::kLower, times.ended_writes,
                  groups ? 2 : 1, std::nullopt, std::nullopt,
                  groups ? "the binding, and the group's verdict is taken back" : "the binding"});
}

// The same if no two of them are alike.
void PendingSizes2000With(Run& run, bool groups) {
  const std::string name = NameOf("pending_full_2000/sizes_2000", groups);
  FullClusterTimes times;
  for (int i = 0; i < run.repetitions; ++i) {
    MeasureFullCluster({.waiting = 2000, .sizes = 2000, .forced_cycles = 3}, groups, times);
  }
  run.report.Add({name + "/first", "ms", Better::kLower, times.first_ms, std::nullopt, std::nullopt,
                  Median(times.first_cpu), "each of the 2,000 pods of its own size"});
  run.report.Add({name + "/decided_anew", "ms", Better::kLower, times.forced_ms, std::nullopt,
                  std::nullopt, std::nullopt, "a cycle that changes nothing"});
  run.report.Add({name + "/one_pod_ended", "ms", Better::kLower, times.ended_ms, std::nullopt,
                  std::nullopt, std::nullopt, "one is placed, the others go on waiting"});
}

// As many wait as a queue depth leaves unevaluated, and more.
void PendingDepth5000With(Run& run, bool groups) {
  const std::string name = NameOf("pending_depth_5000", groups);
  FullClusterTimes times;
  for (int i = 0; i < run.repetitions; ++i) {
    MeasureFullCluster({.waiting = 5000, .allocate_depth = 500, .forced_cycles = 20}, groups,
                       times);
  }
  run.report.Add({name + "/decided_anew", "ms", Better::kLower, times.forced_ms, std::nullopt,
                  std::nullopt, std::nullopt, "5,000 wait, queueDepth.allocate 500"});
  run.report.Add({name + "/decided_anew/writes", "writes", Better::kLower, times.forced_writes, 0,
                  std::nullopt, std::nullopt, ""});
  run.report.Add({name + "/one_pod_ended", "ms", Better::kLower, times.ended_ms, std::nullopt,
                  std::nullopt, std::nullopt, ""});
}

}  // namespace

void Fill500x8(Run& run) {
  for (const bool groups : {false, true}) Fill500x8With(run, groups);
}

void Queued320k(Run& run) {
  for (const bool groups : {false, true}) Queued320kWith(run, groups);
}

void IdleCycle(Run& run) {
  for (const bool groups : {false, true}) IdleCycleWith(run, groups);
}

void PendingFull2000(Run& run) {
  for (const bool groups : {false, true}) {
    PendingFull2000With(run, groups);
    PendingSizes2000With(run, groups);
  }
}

void PendingDepth5000(Run& run) {
  for (const bool groups : {false, true}) PendingDepth5000With(run, groups);
}

}  // namespace fairlead::bench
