// `fairlead day`: plays a scenario against a real API server in accelerated time, with the whole
// scheduler in this process and the kwok provider for machines. It shows the day live and ends with
// the bill. Everything that it created is deleted again, also after an interruption.
//
// The day begins shortly before its first step; the empty hours before are skipped.
//
// If the configuration has guests.bindAddress, schedulers may ask there (docs/guests.md); the
// scenario's pods may name them.
//
// Faults that a real cluster cannot be told to have (breakWatches, slowAPI, restart) are noted and
// omitted.
//
// Errors: of the scenario's files and of the API server; Aborted if a condition of expect.yaml on
// the whole day did not hold, or after an interruption; Cancelled if the user said no. The moments
// of expect.yaml (`checks`) are compared within kMomentTolerance and only reported. `starts` names
// pods as the simulator does and is ignored.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/cluster/connection.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::demo {

// A real API server is slower than the simulator: at a scenario's speed of 3600, machines would
// boot before their pods exist.
inline constexpr double kDefaultSpeedLimit = 600;

struct DayOptions {
  std::string scenario_directory;
  cmd::ClusterFlags cluster;
  std::string crds;      // folder; empty: the first "crds" above the scenario, if any
  bool yes = false;      // do not ask
  bool plain = false;    // no full screen
  double speed = 0;      // 0: the scenario's own, but no more than kDefaultSpeedLimit
  std::string log_file;  // of the scheduler; empty: no log
  framework::RegistryPtr plugins = plugins::BuiltIn();  // that the scenario may name
};

// The signal watcher tells it that the user wants to stop.
class DayStop {
 public:
  DayStop();
  ~DayStop();
  void Request();
  [[nodiscard]] bool requested() const;
  // False if Request interrupted the wait.
  bool SleepFor(absl::Duration duration) const;
  // Adds a callback that Request runs.
  void OnRequest(std::function<void()> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

absl::Status RunDay(const DayOptions& options, DayStop& stop);

}  // namespace fairlead::demo
