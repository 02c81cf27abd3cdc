// Scales down: ends machines that nothing needs.
//
// A machine that has been unneeded for its pool's consolidateAfter (NodeRequest.unneeded_since, so
// that a restart does not begin again) gets the taint to-be-removed:NoSchedule. One that was
// emptied (emptying.h) has it already, and waits no longer. The taint alone fences nothing: another
// scheduler may have bound a pod just before, and the watches of pods and nodes are not ordered
// between each other. The machine is *fenced* when the taint is seen on its node and the pod watch
// has shown everything up to the first version of the node with the taint. From then on no pod can
// have been bound there unknown to us (core::ManagedNodes decides). If the machine is still
// unneeded and due then, it is drained: phase Draining, and after that is Written(), TerminateNode
// (I7). If it is needed again before that, the taint is removed. A request whose node has not
// registered is cancelled after `cancel_after`; its fence is a list of nodes (node_lists.h). A
// request that a user deletes is due at once, but a needed one stays.
//
// What holds a due node back: the minimum lifetime, and the billing period that is paid for
// (`minimum_lifetime`, `billing_period`); the budgets of its pool (disruption_budgets.h); and for
// all nodes together a pace (RemovalPace), and a freeze while many nodes are not ready
// (RemovalFreeze), because then the picture is more likely wrong than the nodes are. Each step
// makes at most max_removals_per_step taints and drains, most expensive first, reserved ones last.
//
// Nodes without a request, and requests without an entry in StepInput::nodes, are never touched.
// Thread-safety: none.
#pragma once

#include <string>

#include "autoscale-hook/machines/disruption_budgets.h"
#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Registered nodes that go within a minute: removals_per_minute, or a tenth of all machines if that
// is more; so many at once, too.
class RemovalPace {
 public:
  // False, and the step is repeated in time, if the next one has to wait.
  bool Take(StepContext& context);

 private:
  absl::Time filled_until_ = absl::InfinitePast();
};

// On while more than kMostUnready nodes that were usable are not ready, and these are more than
// kMostUnreadyPercent of them (as cluster-autoscaler's ok-total-unready-count and
// max-total-unready-percentage).
class RemovalFreeze {
 public:
  static constexpr int64_t kMostUnready = 3, kMostUnreadyPercent = 45;
  explicit RemovalFreeze(const StepContext& context);
  [[nodiscard]] bool on() const {
    return unready_ > kMostUnready && unready_ * 100 > nodes_ * kMostUnreadyPercent;
  }
  // "not removed: 5 of 9 nodes are not ready"
  [[nodiscard]] std::string Text() const;
  // The message is one of those.
  static bool IsText(const std::string& message);

 private:
  int64_t nodes_, unready_ = 0;
};

// Call it after AdvanceLifecycle of every view, and after NodeEmptying. O(n log n).
void RemoveUnneeded(StepContext& context, DisruptionBudgets& budgets, const RemovalFreeze& freeze,
                    RemovalPace& pace);

}  // namespace fairlead::hook
