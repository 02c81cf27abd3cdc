// NodePool objects, as they count for the hook. An object that is wrong changes nothing: what was
// in force before stays in force, until the object is right or gone. Its fault is told in an event,
// and in the verdicts of pods for which no instance type fits.
//
// Whether the present spec is in force is also told by the condition Ready of the object, with its
// fault. It is written when it is another than the object has; a refused or unanswered write is
// repeated after a pause.
//
// Wrong is what the API server's schema would refuse (model::NodePool::invalid), and a provider
// that this process does not have. Not kept over a restart: then a wrong object offers nothing.
//
// Thread-safety: the owner's thread. Complexity: O(log pools) per object, O(pools) per list.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/condition_write.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::core {

class NodePools {
 public:
  // `providers`: those that pools may name; empty: the hook is off, and any is right.
  NodePools(std::vector<std::string> providers, Backoff backoff);

  // True if other pools are in force, or there is something to tell.
  bool Upsert(const model::NodePool& object);
  bool Remove(const std::string& name);

  // By name.
  [[nodiscard]] std::vector<const model::NodePool*> InForce() const;
  // The same; if there are objects and none is in force, a pool that offers nothing: without any
  // pool the whole catalogue would be on offer. Empty: there is no object.
  [[nodiscard]] std::vector<const model::NodePool*> OnOffer() const;
  // "NodePool p: spec.maxNodes: ..", by name.
  [[nodiscard]] std::vector<std::string> Problems() const;
  // Once for each fault of an object.
  std::vector<model::EmitEvent> TakeEvents() { return std::exchange(events_, {}); }

  // Appends the conditions that are due.
  void Step(absl::Time now, std::vector<model::Action>& actions);
  void Answered(const std::string& name, const std::string& uid, const absl::Status& status,
                absl::Time now);
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }

 private:
  struct Row {
    std::string uid, fault;  // of the object as it was seen last; no fault: it is in force
    std::optional<model::NodePool> in_force;
    int64_t generation = 0;
    ConditionWrite<model::Condition> condition;
  };
  [[nodiscard]] static model::Condition Desired(const Row& row);
  [[nodiscard]] std::string FaultOf(const model::NodePool& object) const;

  const std::vector<std::string> providers_;
  std::map<std::string, Row> rows_;
  const WriteAttempts::Rules rules_;
  model::NodePool none_;
  absl::Time wake_at_ = absl::InfiniteFuture();
  std::vector<model::EmitEvent> events_;
};

}  // namespace fairlead::core
