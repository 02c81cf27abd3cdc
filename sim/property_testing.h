// Shared by the property tests of this module: worlds made from a seed, their runs, and the loop
// over seeds. Header only; never part of the product.
//
// FAIRLEAD_SIM_SEEDS sets the number of worlds, FAIRLEAD_SIM_SEED runs a single one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/environment.h"
#include "gtest/gtest.h"
#include "journal/player.h"
#include "journal/recorder.h"
#include "journal/redaction_testing.h"
#include "sim/report.h"
#include "sim/simulator.h"

namespace fairlead::sim::testing {

// A scenario that a derived class fills, from the seed alone.
class RandomWorld {
 public:
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }

 protected:
  RandomWorld(uint64_t seed, absl::Duration length) : random_(seed) {
    scenario_.name = absl::StrCat("world ", seed);
    scenario_.start = absl::FromUnixSeconds(1'772'409'600);
    scenario_.end = scenario_.start + length;
    scenario_.seed = seed;
  }
  // A step of the timeline with one manifest, still empty. Valid until the next is added.
  ScenarioStep& Step(absl::Duration at) {
    ScenarioStep& step = scenario_.timeline.emplace_back();
    step.at = at;
    step.files = {"world"};
    step.apply.emplace_back();
    return step;
  }

  Random random_;
  Scenario scenario_;
};

// Checks everything after every step.
inline SimulatorOptions StrictOptions(bool with_faults) {
  SimulatorOptions options;
  options.core = core::KwokOptions();
  options.core.hook.provider = "kwok";
  options.check_invariants = true;
  options.expect_no_empty_writes = !with_faults;
  return options;
}

struct Outcome {
  uint64_t trace_hash = 0;
  std::string problem;  // "" if there is none
  std::string log;      // for debugging the problem
};

// Of every so many worlds one is recorded, and its decisions are made again from the journal.
inline constexpr uint64_t kWorldsPerReplay = 10;

class Recording {
 public:
  explicit Recording(bool on) : on_(on) {}
  [[nodiscard]] core::InputLog* inputs() { return on_ ? &recorder_ : nullptr; }

  // "" if a player decides as was decided, byte for byte.
  [[nodiscard]] std::string WhyNotTheSame() const {
    if (!on_) return "";
    journal::Player player([this](const journal::Start&) { return recorder_.options(); });
    for (const std::string& record : records_) {
      const absl::Status played = player.Play(record);
      if (!played.ok()) return absl::StrCat("replay: ", played.message());
    }
    if (player.difference().has_value()) {
      return absl::StrCat("replay: step ", player.difference()->step, ": action ",
                          player.difference()->action, " is another one");
    }
    return WhyNotRedacted();
  }

 private:
  // "" if the same is decided without the names, and none of them is left.
  [[nodiscard]] std::string WhyNotRedacted() const {
    const auto read = [this](const journal::Start&) { return recorder_.options(); };
    journal::RecordsInMemory files({&records_});
    const auto redacted = journal::Redact({read, {}}, files);
    if (!redacted.ok()) return absl::StrCat("redaction: ", redacted.status().message());
    // Of Kubernetes, the catalogue and the program; or what the simulated world writes.
    const auto is_public = [](absl::string_view text) {
      return absl::StrContains(text, "kubernetes.io/") ||
             absl::StrContains(text, "fairlead.dev/") ||
             absl::StrContains(text, "kai.scheduler/") || absl::StartsWith(text, "nvidia.com/") ||
             hook::Catalog::BuiltIn().Find(text) != nullptr || kPublic.contains(text);
    };
    return journal::testing::WhyBad(records_, files.redacted().front(), read, is_public);
  }
  inline static const std::set<std::string, std::less<>> kPublic = {
      // clang-format off
      "default", "on-demand", "spot", "amd64",
      "linux", "true", "false", "pod-group-name",
      "us-east-1a", "us-east-1b", "us-east-1c", "Fraction",
      "Regular", "NVIDIA-A10G", "preemptible", "non-preemptible",
      "kai-resource-reservation", "received-resource-type", "runai-gpu-group",
      "memory", "ephemeral-storage", "pods", "run.ai/reserve_for_gpu_index",
      // clang-format on
  };

  // Keeps the options, which no document says.
  class OptionsKeeper final : public journal::Recorder {
   public:
    using Recorder::Recorder;
    void Started(const core::Options& options, const hook::Catalog& catalog,
                 bool continues) override {
      options_ = options;
      Recorder::Started(options, catalog, continues);
    }
    [[nodiscard]] const core::Options& options() const { return options_; }

   private:
    core::Options options_;
  };

  const bool on_;
  std::vector<std::string> records_;
  OptionsKeeper recorder_{"test",
                          [this](std::string record) { records_.push_back(std::move(record)); }};
};

// `run` drives the simulator, which keeps its trace, and returns the problem, or "".
inline void RunWorld(const RandomWorld& world, const SimulatorOptions& options,
                     const std::function<std::string(Simulator&)>& run, Outcome& outcome) {
  Recording recording(world.scenario().seed % kWorldsPerReplay == 0);
  SimulatorOptions recorded = options;
  recorded.inputs = recording.inputs();
  absl::StatusOr<std::unique_ptr<Simulator>> made = Simulator::Make(world.scenario(), recorded);
  if (!made.ok()) {
    outcome.problem = std::string(made.status().message());
    return;
  }
  Simulator& simulator = **made;
  simulator.KeepTrace();
  outcome.problem = run(simulator);
  if (outcome.problem.empty()) outcome.problem = recording.WhyNotTheSame();
  outcome.trace_hash = simulator.trace_hash();
  if (outcome.problem.empty()) return;
  outcome.log = LogText(simulator.recorder().timeline());
  if (std::getenv("FAIRLEAD_SIM_SEED") != nullptr) {
    absl::StrAppend(&outcome.log, simulator.trace(), ViewText(simulator.view()));
  }
}

// 0: run the worlds of several seeds.
inline uint64_t OnlySeed() { return fairlead::testing::FromEnvironment("FAIRLEAD_SIM_SEED", 0); }

// `run` makes an outcome from a seed. Every world runs twice and must have no problem and one
// trace; `count` gets the first outcome of each. Ends with a fatal failure at the first problem.
template <typename Run, typename Count>
void RunEverySeedTwice(const Run& run, const Count& count) {
  const uint64_t only = OnlySeed();
  const uint64_t last =
      only != 0 ? only : fairlead::testing::FromEnvironment("FAIRLEAD_SIM_SEEDS", 12);
  for (uint64_t seed = only != 0 ? only : 1; seed <= last; ++seed) {
    SCOPED_TRACE(absl::StrCat("FAIRLEAD_SIM_SEED=", seed));
    const auto first = run(seed);
    ASSERT_EQ(first.problem, "") << first.log;
    count(first);
    EXPECT_EQ(run(seed).trace_hash, first.trace_hash) << "two runs, two traces";
  }
}

}  // namespace fairlead::sim::testing
