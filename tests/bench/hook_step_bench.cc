// What the scale hook costs a decision in a large cluster whose nodes it has provisioned itself:
// the hook's step alone, without the engine. The hook is one thread that waits for nothing, so the
// figures are its CPU time, which other load on the machine hardly changes; the wall time is
// beside it.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/machine_world.h"

namespace fairlead::bench {
namespace {

using model::ConsolidationPolicy;

constexpr char kName[] = "hook-step-10k-nodes-ms";
constexpr double kGoalMs = 2;
constexpr int kSteps = 40;  // of a repetition

struct Times {
  std::vector<double> cpu_ms, wall_ms;
};

// One step, measured, and its consequences.
hook::StepOutput Measure(MachineWorld& world, const hook::Demand& demand, Times& times) {
  const Stopwatch watch;
  hook::StepOutput out = world.Step(demand);
  times.wall_ms.push_back(watch.Seconds() * 1e3);
  times.cpu_ms.push_back(watch.ThreadCpuSeconds() * 1e3);
  return out;
}

void Add(Run& run, const std::string& name, const Times& times, std::optional<double> goal,
         const std::string& note) {
  run.report.Add({name, "ms", Better::kLower, times.cpu_ms, goal, std::nullopt,
                  Median(times.cpu_ms) / 1e3, absl::StrCat("CPU time; ", note)});
  run.report.Add({absl::StrCat(name, "/wall"), "ms", Better::kLower, times.wall_ms, std::nullopt,
                  std::nullopt, std::nullopt, ""});
}

// Steps a second after each other.
Times MeasureSteps(Run& run, ConsolidationPolicy policy, bool changes, const hook::Demand& demand) {
  Times times;
  for (int i = 0; i < run.repetitions; ++i) {
    MachineWorld world({.policy = policy});
    for (int step = 0; step < kSteps; ++step) {
      world.Advance(absl::Seconds(1));
      if (changes) world.ChangeTen();
      const hook::StepOutput out = Measure(world, demand, times);
      Require(out.created.empty() && out.withdrawn.empty() && out.emptied.empty(),
              "the step provisioned or removed something");
      // Three nodes became unneeded, three needed, and four machines became ready.
      Require(out.actions.size() == (changes ? 10U : 0U), "not the writes of what changed");
      world.Answer(out);
    }
  }
  return times;
}

// Steps that look for nodes whose pods have room elsewhere.
Times MeasureLooks(Run& run) {
  Times times;
  for (int i = 0; i < run.repetitions; ++i) {
    MachineWorld world({.empty_per_cent = 0,
                        .coming_per_cent = 0,
                        .policy = ConsolidationPolicy::kWhenEmptyOrUnderutilized});
    for (int step = 0; step < kSteps; ++step) {
      world.Advance(absl::Minutes(1));
      world.evacuation().rooms_asked = 0;
      const hook::StepOutput out = Measure(world, {}, times);
      Require(out.actions.empty(), "a node is emptied that has no room elsewhere");
      Require(world.evacuation().rooms_asked == 100, "not looked for room");
    }
  }
  return times;
}

}  // namespace

void HookStep10kNodes(Run& run) {
  struct Variant {
    const char *suffix, *note;
    ConsolidationPolicy policy;
    bool changes;
  };
  const Variant variants[] = {
      {"", "WhenEmptyOrUnderutilized, 10 nodes change between steps",
       ConsolidationPolicy::kWhenEmptyOrUnderutilized, true},
      {"/unchanged", "WhenEmptyOrUnderutilized, nothing changes",
       ConsolidationPolicy::kWhenEmptyOrUnderutilized, false},
      {"/when_empty", "WhenEmpty, 10 nodes change between steps", ConsolidationPolicy::kWhenEmpty,
       true},
      {"/when_empty/unchanged", "WhenEmpty, nothing changes", ConsolidationPolicy::kWhenEmpty,
       false},
  };
  for (const Variant& variant : variants) {
    Add(run, absl::StrCat(kName, variant.suffix),
        MeasureSteps(run, variant.policy, variant.changes, {}), kGoalMs, variant.note);
  }
  Add(run, absl::StrCat(kName, "/waiting"),
      MeasureSteps(run, ConsolidationPolicy::kWhenEmptyOrUnderutilized, true,
                   MachineWorld::OneThatWaits()),
      kGoalMs, "10 nodes change, a pod waits at the cap of nodes: it is planned for");
  Add(run, absl::StrCat(kName, "/look"), MeasureLooks(run), std::nullopt,
      "a look for underutilized nodes, at most every 30 s; none found");
}

}  // namespace fairlead::bench
