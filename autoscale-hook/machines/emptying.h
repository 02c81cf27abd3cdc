// Empties nodes that have pods, so that they can be removed.
//
//   Underutilized  the NodePool permits it (consolidationPolicy), its pods may be moved and find
//                  room on other nodes, and the node's price for `consolidation_horizon` is more
//                  than what evicting them costs (Occupants::lost_work at that price); a reserved
//                  machine is paid for all the same, so it is not emptied. It was so at
//                  each look for the pool's consolidateAfter. Nodes are chosen together, those that
//                  cost the least first, and the next ones only when these are gone. None is chosen
//                  while workloads wait for nodes, while machines come, or while many nodes are not
//                  ready.
//   Replaced       its pods do not find room on other nodes, but a cheaper node was provisioned for
//                  them, and is usable (replacement.h).
//   Interrupted    the cloud takes the machine back (NodeUse::interrupted): no budget and no price
//                  holds it, its pods go at once, so that they are placed, and provisioned for,
//                  before it ends.
//
// An emptied node is closed for pods at once (Machine::emptying; core::ManagedNodes), gets the
// removal taint, and its pods are evicted when it is fenced (removal.h): StepOutput::emptied. When
// none are left it is removed like any other. Before the first eviction, but of an interrupted
// node, everything is looked at again. If it is not empty after kLongest, and some pods do not even
// terminate (a PodDisruptionBudget), it is given up: the taint goes, and it is not tried again for
// a pause that doubles. A restart gives up what is not empty yet.
//
// Thread-safety: none. Complexity: a look is O(pods of our nodes) and what FindRoom costs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/machines/disruption_budgets.h"
#include "autoscale-hook/machines/evacuation.h"
#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

class NodeEmptying {
 public:
  // Every quarter of the shortest consolidateAfter, within these bounds.
  static constexpr absl::Duration kLookEvery = absl::Seconds(30), kLookSoonest = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Minutes(10);
  // More nodes are not looked at; the others have their turn when these have gone.
  static constexpr size_t kMostCandidates = 100;

  // Call it after AdvanceLifecycle and before RemoveUnneeded. `evacuation` may be null: then only
  // what is under way goes on. `nodes_wanted`: workloads wait for nodes. `frozen`: many nodes are
  // not ready.
  void Advance(StepContext& context, DisruptionBudgets& budgets, Evacuation* evacuation,
               bool nodes_wanted, bool frozen);
  void Continue(const NodeEmptying& former) { looked_at_ = former.looked_at_; }

  struct Candidate {
    const Machine* machine = nullptr;
    const std::string* node = nullptr;  // its name
    absl::Duration lost_work;
  };
  // Those of this step's look that could be emptied but for room for their pods; empty if others
  // are emptied first. None: there was no look. For one step.
  [[nodiscard]] std::optional<std::vector<Candidate>> TakeRoomless() {
    return std::exchange(roomless_, std::nullopt);
  }
  using Reason = Machine::Emptying::Reason;
  void Start(MachineView& view, Reason reason, std::string message, StepContext& context);
  // It is not tried again for a while.
  void GiveUp(MachineView& view, const char* why, StepContext& context);

 private:
  // `why`: null if the request has something else to say.
  void Stop(MachineView& view, const char* why, StepContext& context);
  void AdvanceOne(MachineView& view, StepContext& context, Evacuation* evacuation,
                  bool nodes_wanted);
  void Look(StepContext& context, DisruptionBudgets& budgets, Evacuation& evacuation);
  std::vector<Candidate> Candidates(StepContext& context, DisruptionBudgets& budgets,
                                    Evacuation& evacuation);

  absl::Time looked_at_ = absl::InfinitePast();
  std::optional<std::vector<Candidate>> roomless_;
  // Since when the pods of a machine have had room elsewhere at each look, by key of its row.
  std::map<std::string, absl::Time> spare_since_;
};

}  // namespace fairlead::hook
