// The cost of the nodes, and the estimated cost with a reactive autoscaler (without verdicts). It
// is fed with the view after each decision; the simulator and a live day use it.
//
// Model:
// - A node of the hook costs its request's price from the first view in which its request exists to
//   the last one. That is longer than a provider bills (launching and terminating are counted in).
//   A request that the API server never stored costs nothing.
// - The reactive autoscaler provisions our nodes, and in addition nodes for every pod that waits
//   with a policy code, because it cannot tell those pods from pods that lack capacity. Gated pods
//   are excepted, which every autoscaler knows, and so are the hook's own caps, which it is assumed
//   to obey. For the additional nodes, pods of one queue share nodes, first fit over its additional
//   nodes so far, else the cheapest type of the catalogue (on demand; ties by name) that holds the
//   pod when empty. A node is kept while one of its pods waits, plus `unneeded_after`. The model is
//   conservative: nodes come at once, pods are packed tightly, no node is provisioned twice and the
//   blocked pods never start on them.
// - Pods with resources that the verdict does not name are not counted for it.
//
// Ownership: borrows the catalogue. Thread-safety: none, one thread. Complexity: O(rows of the
// view). Arithmetic: integers, micro-dollar-nanoseconds in 128 bits; rounded once, at the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "core/view.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

struct BillTotals {
  int64_t nodes_requested = 0;
  int64_t node_seconds = 0;
  int64_t cost_micro_usd = 0;
  // Of these, nodes for a workload that a policy of queues, gangs or gates held when they were
  // decided.
  int64_t policy_blocked_nodes = 0;
  int64_t policy_blocked_cost_micro_usd = 0;
  // Nodes that became ready and were scaled down without ever having run a pod.
  int64_t duplicate_nodes = 0;
  int64_t reactive_nodes = 0;           // in addition to ours
  int64_t reactive_cost_micro_usd = 0;  // ours included
};

// True for the codes with which no node may be provisioned: policy, except the caps of the hook (a
// cap may cut a workload's demand in the middle).
bool ForbidsNodes(verdict::Code code);

class Bill {
 public:
  Bill(const hook::Catalog* catalog, absl::Duration unneeded_after)
      : catalog_(catalog), unneeded_after_(unneeded_after) {}

  // Call it after each step, in order of time: the step's actions and the view after it.
  void Observe(const View& view, const std::vector<model::Action>& actions);
  // Time passed without a change.
  void AdvanceTo(absl::Time now);

  [[nodiscard]] BillTotals Totals() const;

 private:
  struct BoughtNode {
    int64_t price_micro_usd_per_hour = 0;
    bool policy_blocked = false, present = false, was_ready = false, ran_pods = false;
    absl::uint128 nanoseconds = 0;
  };
  struct ReactiveNode {
    const hook::InstanceType* type = nullptr;
    model::ResourceList free;
    std::map<std::string, model::ResourceList> pods;  // what each takes
    absl::Time empty_since;
  };
  struct BlockedPod {
    std::string pod, queue;
    const model::PodSpec* spec = nullptr;
  };

  void CountRequests(const View& view, const std::vector<model::Action>& actions);
  void CountNodes(const View& view);
  void UpdateReactive(const View& view);
  void BuyReactive(const BlockedPod& pod);

  const hook::Catalog* catalog_;
  absl::Duration unneeded_after_;
  absl::Time now_ = absl::InfinitePast();
  std::map<std::string, BoughtNode> nodes_;  // by request name
  std::map<std::string, bool> asked_;  // by request name, not seen yet: for a blocked workload?
  std::map<std::string, std::vector<ReactiveNode>> reactive_;  // by queue, in the order of
                                                               // provisioning
  absl::uint128 reactive_cost_ = 0;  // micro-dollars per hour times nanoseconds
  int64_t reactive_nodes_ = 0;
};

}  // namespace fairlead::core
