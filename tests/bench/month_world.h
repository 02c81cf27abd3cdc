// A month of a published trace as a cluster sees it: the virtual clusters are queues with a limit,
// the jobs come when they came, and all nodes are bought. The real decision loop with the hook runs
// it in virtual time, in the simulated cluster of sim/cluster.h.
//
// A job of up to 8 GPUs is one pod, a larger one a gang of pods of 8 and one of the rest, with a
// PodGroup of its own. For each GPU a pod has two CPUs and 8 GiB. It runs for as long as it ran.
//
// A queue may hold 1.25 times the GPUs that its jobs would use on average, in whole nodes of 8, and
// at least what its largest job needs; all of it is its quota, so that no pod is evicted for
// another queue.
//
// Thread-safety: none. Errors: those of the loop and of the cluster.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "tests/replay/philly.h"

namespace fairlead::bench {

struct MonthResult {
  int64_t nodes = 0;
  // Of the nodes, from the request's creation to its end. Parts of it: until they were ready; ready
  // and without a pod; beside the pods on them (what these cost at least, by month_bound.h, is the
  // rest).
  int64_t cost_micro_usd = 0;
  int64_t booting_micro_usd = 0, empty_micro_usd = 0, partly_empty_micro_usd = 0;
  // Of nodes for pods that a policy of queues or gangs held when they were bought.
  int64_t policy_blocked_cost_micro_usd = 0;
  // Bought while as many nodes of as many GPUs were on their way as pods wait that may have nodes.
  int64_t nodes_bought_twice = 0;
  int64_t nodes_unused = 0;     // that never had a pod: another pod ended before they were ready
  int64_t bound_micro_usd = 0;  // month_bound.h
  int64_t bound_without_boot_micro_usd = 0;  // of an autoscaler whose nodes are there at once
  int64_t jobs = 0;
  int64_t finished_pods = 0, pods = 0;
  int64_t held_pods = 0;  // that waited for the limit of their queue at some time
  int64_t nodes_at_end = 0;
  uint64_t cycles = 0;
};

// Until all jobs have ended and all nodes are given back, at most 90 days after the last one came.
// `gpu_model`: that all pods ask for by node label; empty: any GPU will do.
absl::StatusOr<MonthResult> PlayMonth(const replay::PhillyTrace& trace,
                                      const hook::Catalog& catalog, const std::string& gpu_model);

}  // namespace fairlead::bench
