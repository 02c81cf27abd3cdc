// One scheduling case of the conformance data: what the world looks like, what runs, what is
// expected. The format is described in the README beside the data.
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
#include "tests/conformance/json.h"

namespace fairlead::conformance {

// How a pod starts where its object cannot say so.
struct StartState {
  std::string status, node;  // empty: as the object says
  std::vector<std::string> gpu_groups;
  bool legacy_mig = false;
};

struct ConfiguredPlugin {
  std::string name;  // KAI's name
  std::map<std::string, std::string> arguments;
};

// What a case says about how the scheduler is set up. An absent value is the harness's default.
struct SchedulerSettings {
  // With a value: exactly these plugins run, no others.
  std::optional<std::vector<ConfiguredPlugin>> plugins;
  absl::Duration staleness_grace_period = absl::ZeroDuration();
};

struct ExpectedPod {
  std::string status;
  std::optional<std::string> node;
};

// Sums over the pods of a job, and what its verdict must mean.
struct ExpectedJob {
  std::optional<int64_t> milli_gpus, accepted_milli_gpus, milli_cpus, memory_bytes;
  std::string error_message;
  std::optional<absl::Duration> last_start_older_than;
};

struct ExpectedNode {
  std::optional<int64_t> idle_milli_gpus, releasing_milli_gpus;
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
  Json observed_pods;              // what KAI did, for people
  std::vector<std::string> notes;  // fields that nothing here knows
};

absl::StatusOr<SchedulingCase> ReadSchedulingCase(const Json& json);

}  // namespace fairlead::conformance
