// Told of all that a DecisionLoop is told, in the same order, and of what it decides: enough to
// play the same decisions again (journal/).
//
// Thread-safety: called on the owner's thread. References are valid during the call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/machines/machine_report.h"
#include "autoscale-hook/machines/node_lists.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/model/kind.h"

namespace fairlead::core {

struct Options;
struct StepResult;

class InputLog {
 public:
  virtual ~InputLog() = default;
  // A loop begins, instead of the former one. `continues`: it has taken over what the hook of that
  // had learned (DecisionLoop::Continue).
  virtual void Started(const Options& options, const hook::Catalog& catalog, bool continues) = 0;
  // The calls of the methods of those names (decision_loop.h).
  virtual void Applied(const model::ClusterEvent& event) = 0;
  virtual void BecameLeader() = 0;
  virtual void PodsListed(const std::string& node, absl::string_view version,
                          const std::vector<model::Pod>& pods) = 0;
  virtual void MachineReported(const hook::MachineReport& report) = 0;
  virtual void OffersChanged(absl::string_view provider, const hook::Catalog* offers) = 0;
  virtual void NodesListed(uint64_t number,
                           const absl::StatusOr<std::vector<hook::ListedNode>>& nodes) = 0;
  virtual void UsageRestored(absl::string_view text) = 0;
  virtual void SetStale(const std::vector<model::Kind>& kinds) = 0;
  virtual void GuestAsked(const model::Pod& pod, absl::string_view reserved_on, absl::Time now) = 0;
  // The end of a Step.
  virtual void Stepped(absl::Time now, const StepResult& result) = 0;
};

}  // namespace fairlead::core
