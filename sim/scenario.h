// A scenario: a folder with scenario.yaml and ordinary Kubernetes manifests. It says what users do
// to a cluster and when. sim/README.md has the format.
//
// Errors: InvalidArgument "file:line:column: field: what is wrong"; NotFound for a missing file.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "sim/cluster.h"
#include "sim/manifests.h"

namespace fairlead::sim {

// The scenario's hook settings; absent: as configured.
struct HookSettings {
  std::optional<std::string> provider;        // without one the hook is off
  std::optional<int64_t> cluster_gpu_limit;   // devices
  std::map<std::string, int64_t> gpu_limits;  // devices by GPU model
  std::optional<int64_t> cost_limit_micro_usd_per_hour;
  std::optional<absl::Duration> unneeded_after, ready_timeout, launch_timeout;
  void ApplyTo(hook::HookOptions& options) const;
  [[nodiscard]] bool IsEmpty() const { return *this == HookSettings(); }
  friend bool operator==(const HookSettings&, const HookSettings&) = default;
};

struct ScriptedFault {
  enum class Kind : uint8_t {
    kStockout,      // instance_type, zone (empty: all), duration
    kNeverArrives,  // the next `count` launches
    kLateBoot,      // the next `count` launches take `factor` times as long
    kLoseNode,      // the node of pod `target` disappears; or node `target`
    kBreakWatches,  // every watch breaks for `duration` and lists again
    kSlowApi,       // for `duration` every write takes `delay` longer
    kRestart,       // the scheduler dies and starts again
  };
  Kind kind = Kind::kRestart;
  std::string instance_type, zone, target;
  absl::Duration duration, delay;
  int64_t count = 1, factor = 10;
};

struct ScenarioStep {
  absl::Duration at;               // since the start
  std::string note;                // for people
  std::vector<std::string> files;  // of `apply`, relative to the folder
  std::vector<Manifest> apply;     // what stands in them
  std::vector<ObjectRef> remove;
  std::vector<std::pair<ObjectRef, int64_t>> scale;
  std::vector<ScriptedFault> faults;
};

struct Scenario {
  std::string directory, name, description;
  absl::Time start, end;
  uint64_t seed = 0;
  double accelerate = 3600;  // virtual seconds per real second, if a user watches
  std::string configuration_file, catalog_file;  // paths; empty: the built-in ones
  HookSettings hook;
  CloudOptions cloud;
  std::vector<ScenarioStep> timeline;  // by time
};

// Reads a folder that has a scenario.yaml.
absl::StatusOr<Scenario> ReadScenario(const std::string& directory);

// Reads a whole file. NotFound with its path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace fairlead::sim
