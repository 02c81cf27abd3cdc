// The audit log: a line of JSON for everything that costs money or ends work, with its reason, and
// one for each answer to it. docs/operations.md has the fields.
//
//   provision   a NodeRequest is created: instance type, price, and the workloads that need it
//   phase       a NodeRequest enters another phase (Draining, Failed, ..), and why
//   launch, terminate   what a provider is asked for
//   forget      the machine has gone, and its NodeRequest goes
//   evict       a pod is evicted, and for what
//   suspend, release   a workload is suspended instead, and for what; its pods may come again
//   answer      the API server's or the provider's answer to one of these, by `id`
//
// Ownership: of the sink. Thread-safety: one thread. Complexity: O(1) per action; keeps a row per
// action under way and per NodeRequest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::cmd {

class AuditLog {
 public:
  // A whole line, with its newline.
  using Sink = std::function<void(absl::string_view line)>;
  explicit AuditLog(Sink sink) : sink_(std::move(sink)) {}

  // The action is about to be sent. `decision`: the number of the cycle that made it, as in the
  // log.
  void Sent(const model::Action& action, int64_t decision, absl::Time now);
  void Answered(const model::ActionResult& result, absl::Time now);
  // No action is under way any more, whatever became of them.
  void GiveUp() { under_way_.clear(); }

 private:
  const Sink sink_;
  std::set<uint64_t> under_way_;
  std::map<std::string, model::NodeRequestPhase> phases_;  // told last, by NodeRequest
};

}  // namespace fairlead::cmd
