// expect.yaml beside a scenario: what has to be true of its day. Every field may be left out; what
// is not there is not checked.
//
//   checks: [{at: 8h30m, nodes: {type: count}, running: {queue: pods},
//             waiting: [{code, queue, pods}]}]      nodes of the hook, ordered ones included; exact
//   starts: [{first: ns/pod, then: ns/pod}]         the first is placed before the other one
//   waited: [{code, queue, pods}]                   so many different pods ever waited with that
//   code bought: {type: count}   evictions: n   nodesAtEnd: n policyBlockedNodes: n duplicateNodes:
//   n   reactiveCostsMore: true
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
