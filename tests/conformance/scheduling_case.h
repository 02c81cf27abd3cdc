// One scheduling case of the conformance data: the world, the actions, the expectations. The README
// beside the data describes the format.
//
// Errors: InvalidArgument with the path of the field. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "scheduler/model/resources.h"
#include "tests/conformance/json.h"

namespace fairlead::conformance {

// The start state of a pod that its object cannot express.
struct StartState {
  std::string status, node;  // empty: as the object says
  std::vector<std::string> gpu_groups;
  bool legacy_mig = false;
};

struct ConfiguredPlugin {
  std::string name;  // KAI's name
  std::map<std::string, std::string> arguments;
};

// A case's settings of the scheduler. An absent value is the harness's default.
struct SchedulerSettings {
  // If set: exactly these plugins run.
  std::optional<std::vector<ConfiguredPlugin>> plugins;
  absl::Duration staleness_grace_period = absl::ZeroDuration();
  // A cycle with evictions is followed by one without, as in a step of the program: KAI has nothing
  // like it (schedulerConfig.followUpCycle, for scripts/compare-engines.py).
  bool follow_up_cycle = false;
};

struct ExpectedPod {
  std::string status;
  std::optional<std::string> node;
  std::optional<std::vector<int64_t>> numa_zones;  // by position
};

// Sums over the pods of a job, and the required meaning of its verdict.
struct ExpectedJob {
  std::optional<int64_t> milli_gpus, accepted_milli_gpus, milli_cpus, memory_bytes;
  std::string error_message;
  std::optional<absl::Duration> last_start_older_than;
};

struct ExpectedNode {
  std::optional<int64_t> idle_milli_gpus, releasing_milli_gpus;
  // What NUMA nodes will have free: position, resource, amount in base units.
  std::map<int64_t, model::ResourceList> numa_available;
};

// Upper bounds of one session.
struct CallLimits {
  std::optional<int64_t> binds, evictions, pipelines;
};

struct Expectations {
  std::map<std::string, ExpectedPod> pods;  // by name
  std::map<std::string, ExpectedJob> jobs;
  std::map<std::string, ExpectedNode> nodes;
  CallLimits limits;
};

struct SchedulingCase {
  std::string name, source;
  bool rounds = false;
  std::vector<std::string> actions;
  int64_t until_match = 1, after_match = 0;
  absl::Time now;
  SchedulerSettings settings;
  std::vector<Json> objects;
  std::map<std::string, StartState> start;  // by pod name
  std::set<std::string> stays_releasing;    // PodGroup names
  Expectations expect;
  Json observed_pods;              // KAI's actions, for people
  std::vector<std::string> notes;  // unknown fields
};

absl::StatusOr<SchedulingCase> ReadSchedulingCase(const Json& json);

}  // namespace fairlead::conformance
