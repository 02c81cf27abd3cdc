// What must hold in every world, checked against the cluster's own state and never against the
// core's:
//
//   no node holds more than it has; no queue holds more than its limit; no GPU is shared out twice
//   I1  no node is requested for a workload that policy holds
//   I2  what is requested for a queue fits under every limit above it
//   I3  a step requests no more nodes than pods wait for them
//   I6  GPUs and dollars of all live requests, and of all existing machines, are within the caps
//   I7  a machine is terminated only when no pods but those of DaemonSets are on it
//   every pending pod of ours has exactly one verdict once all has settled
//
// Ownership: borrows. Thread-safety: none. Complexity: O(everything) per check.
#pragma once

#include <string>
#include <vector>

#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/hook.h"
#include "core/view.h"
#include "scheduler/model/action.h"
#include "sim/cluster.h"

namespace fairlead::sim {

class Invariants {
 public:
  Invariants(const Cluster* cluster, const hook::Catalog* catalog, hook::HookOptions hook,
             std::vector<std::string> scheduler_names)
      : cluster_(cluster),
        catalog_(catalog),
        hook_(std::move(hook)),
        scheduler_names_(std::move(scheduler_names)) {}

  // Each returns the first violation, or "".
  [[nodiscard]] std::string AllocationTracker() const;
  [[nodiscard]] std::string AfterStep(const core::View& view,
                                      const std::vector<model::Action>& actions) const;
  // Called before the provider is told.
  [[nodiscard]] std::string BeforeTermination(const model::TerminateNode& action) const;
  // Called when nothing is in flight and nothing was decided.
  [[nodiscard]] std::string Settled(const core::View& view) const;

 private:
  [[nodiscard]] bool IsOurs(const model::Pod& pod) const;
  [[nodiscard]] std::string NodeBooks() const;
  [[nodiscard]] std::string ShareBooks() const;
  [[nodiscard]] std::string QueueBooks(const std::vector<const model::Pod*>& pods,
                                       const char* what) const;
  [[nodiscard]] std::string QueueOf(const model::Pod& pod) const;
  [[nodiscard]] std::string CapBooks() const;
  [[nodiscard]] std::string WhyNotReplaced(const model::NodeRequest& request) const;
  [[nodiscard]] std::string Requested(const core::View& view,
                                      const std::vector<model::Action>& actions) const;

  const Cluster* cluster_;
  const hook::Catalog* catalog_;
  hook::HookOptions hook_;
  std::vector<std::string> scheduler_names_;
};

}  // namespace fairlead::sim
