// `fairlead simulate SCENARIO [-o table|json] [--live]`: the thin layer between the command line
// and the simulator.
//
// Errors: those of the scenario's files and of the simulator; then nothing is printed to `out`
// beyond what --live had shown already.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/input_log.h"
#include "core/options.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace fairlead::sim {

struct SimulateOptions {
  std::string scenario_directory;
  bool json = false;
  // Shows the log as it grows, at the scenario's pace (`accelerate` virtual seconds per second).
  bool live = false;
  // Checks every invariant after every step; a broken one is an error.
  bool check = false;
  // Used if the scenario has no configuration of its own; that one may name `core.plugins`.
  core::Options core;
  // Gets the inputs and decisions of the loop. May be null; outlives the call.
  core::InputLog* inputs = nullptr;
  // The wait of --live; absl::SleepFor in a program.
  std::function<void(absl::Duration)> sleep;
};

// Runs the whole scenario, without printing.
absl::StatusOr<Report> Simulate(const SimulateOptions& options, std::ostream* live_out);

absl::Status RunSimulate(const SimulateOptions& options, std::ostream& out);

}  // namespace fairlead::sim
