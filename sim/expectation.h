// expect.yaml beside a scenario: conditions on its day. Every field is optional; an absent field is
// not checked.
//
//   checks: [{at: 8h30m, nodes: {type: count}, running: {queue: pods},
//             waiting: [{code, queue, pods}]}]   exact; nodes of the hook, ordered ones included
//   starts: [{first: ns/pod, then: ns/pod}]      the first is placed before the other one
//   waited: [{code, queue, pods}]                the number of pods that ever had that code
//   bought: {type: count}   evictions: n   nodesAtEnd: n
//   policyBlockedNodes: n   duplicateNodes: n   reactiveCostsMore: true
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fairlead::sim {

using WaitCounts = std::map<std::pair<std::string, std::string>, int64_t>;  // (code, queue) -> pods

struct MomentCheck {
  absl::Duration at;
  std::optional<std::map<std::string, int64_t>> nodes, running;
  std::optional<WaitCounts> waiting;
};

struct Expectation {
  std::vector<MomentCheck> checks;  // by time
  std::vector<std::pair<std::string, std::string>> starts;
  WaitCounts waited;
  std::optional<std::map<std::string, int64_t>> bought;
  std::optional<int64_t> evictions, nodes_at_end, policy_blocked_nodes, duplicate_nodes;
  bool reactive_costs_more = false;
};

absl::StatusOr<Expectation> ReadExpectation(const std::string& path);

}  // namespace fairlead::sim
