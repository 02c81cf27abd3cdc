// The only part of the conformance runner that uses the engine: one session, on a state made from
// objects as the API server has them, through ClusterState, QueueTree, Framework and Engine as in
// the program.
//
// Ownership: nothing outlives the call. Thread-safety: calls are independent of each other. Errors:
// InvalidArgument for impossible objects or settings; the engine judges an object with invalid
// content, which is named in `notes`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/codec/codec.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {

struct SessionInput {
  std::vector<kube::Object> objects;       // in the order of the case
  std::vector<std::string> other_objects;  // JSON of kinds that the product does not decode
  std::vector<std::string> actions;        // in this order; none: only the state is read
  absl::Time now;
  SchedulerSettings settings;
  std::map<std::string, StartState> start;  // by pod name
};

struct PodOutcome {
  std::string status;  // KAI's word for it
  std::string node;    // its current, former or pipelined node; empty for none
  std::vector<std::string> gpu_groups;
  std::vector<model::ZoneAmounts> numa_zones = {};  // on its node, by position below
  std::vector<int64_t> numa_positions = {};
  // The amounts charged to its queue.
  int64_t milli_gpus = 0, milli_cpus = 0, memory_bytes = 0;
};

struct NodeOutcome {
  int64_t idle_milli_gpus = 0, releasing_milli_gpus = 0;
  std::vector<model::ResourceList> numa_available =
      {};  // by NUMA node; with what is being released
};

struct SessionEvent {
  enum class Op : uint8_t { kBind, kEvict, kPipeline };
  Op op = Op::kBind;
  std::string pod;  // "namespace/name"
  std::string node;
};

struct SessionResult {
  std::map<std::string, PodOutcome> pods;  // by "namespace/name"
  std::map<std::string, NodeOutcome> nodes;
  // Code of the verdict of each workload that waits, by "namespace/name" of the pod group or pod.
  std::map<std::string, std::string> verdicts;
  std::vector<SessionEvent> events;
  // ResourceClaims whose status changed: its JSON, by "namespace/name".
  std::map<std::string, std::string> claim_status;
  std::vector<std::string> notes;
};

using SessionRunner = std::function<absl::StatusOr<SessionResult>(const SessionInput&)>;

absl::StatusOr<SessionResult> RunEngineSession(const SessionInput& input);

}  // namespace fairlead::conformance
