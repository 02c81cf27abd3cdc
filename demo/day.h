// `fairlead day`: plays a scenario against a real API server in accelerated time, with the whole
// scheduler in this process and the kwok provider for machines, shows it live and ends with the
// bill. Everything that it created is deleted again, also when it is interrupted.
//
// The day begins a little before the first thing happens in it; the empty hours before are not
// waited for.
//
// What a real cluster cannot be told to do (breakWatches, slowAPI, restart) is noted and left out.
//
// Errors: of the scenario's files and of the API server; Aborted if what expect.yaml beside
// scenario.yaml says of the whole day did not hold, or somebody interrupted it; Cancelled if the
// person said no. Its moments (`checks`) are compared within kMomentTolerance and only told of;
// `starts` names pods as the simulator does and is not looked at.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cmd/fairlead/connection.h"

namespace fairlead::demo {

// A real API server needs its milliseconds: a scenario that is to be simulated at 3600 would have
// its machines boot before its pods are there.
inline constexpr double kDefaultSpeedLimit = 600;

struct DayOptions {
  std::string scenario_directory;
  cmd::ClusterFlags cluster;
  std::string crds;      // folder; empty: the first "crds" above the scenario, if any
  bool yes = false;      // do not ask
  bool plain = false;    // no full screen
  double speed = 0;      // 0: the scenario's own, but no more than kDefaultSpeedLimit
  std::string log_file;  // of the scheduler; empty: nowhere
};

// Told by the signal watcher that the person wants to stop.
class DayStop {
 public:
  DayStop();
  ~DayStop();
  void Request();
  [[nodiscard]] bool requested() const;
  // False when the wait was broken off by Request.
  bool SleepFor(absl::Duration duration) const;
  // What else has to wake up.
  void OnRequest(std::function<void()> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

absl::Status RunDay(const DayOptions& options, DayStop& stop);

}  // namespace fairlead::demo
