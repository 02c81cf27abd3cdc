// The engine's demand for nodes: workloads that capacity blocks and that policy permits, in the
// order in which the engine would place them. The engine has placed everything that fits on
// existing or ordered nodes and has clipped the rest at every queue limit. So the hook may
// provision for all of it (invariants I1, I2), and nothing in it is in flight already (I3).
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/pod.h"
#include "scheduler/verdict/domains.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::hook {

struct DemandItem {
  std::string workload;  // "namespace/name"
  bool is_group = false;
  std::string queue;
  int32_t priority = 0;
  // Identical pods; together they are one all-or-nothing unit if `atomic`.
  std::vector<verdict::DemandClass> classes;
  bool atomic = false;
  // The pods by their topology constraints; empty without constraints. Their minimum is one
  // all-or-nothing unit.
  verdict::DomainDemand domains;
  // The engine has already reserved what the unit would charge to its queue.
  friend bool operator==(const DemandItem&, const DemandItem&) = default;
};

// In queue order.
using Demand = std::vector<DemandItem>;

// The result for one item, for its verdict.
struct DemandOutcome {
  std::string workload;
  // kNodesRequested, kGpuCapReached, kCostCapReached, kNoInstanceTypeFits, kInsufficientCapacity (a
  // provider cannot deliver at the moment: stock-out, quota, back-off).
  verdict::Code code = verdict::Code::kInsufficientCapacity;
  std::vector<std::string> node_requests;  // kNodesRequested
  std::optional<absl::Time> expected_at;
  std::vector<std::string> details;  // "cheapest fitting type p5.48xlarge costs $55.04 an hour,
                                     //  the cap leaves $12.00"
};

}  // namespace fairlead::hook
