// What nodes could be bought for: workloads that lack nothing but capacity, as far as every limit
// above them allows, in queue order.
//
// Each step is charged to its queues as if it ran, so that later ones see what is left; the charges
// are released before Execute() returns. What fits under all limits is demand
// (Outcome::demanded); what does not has the limit as its code.
//
// Nothing is charged for demand that cannot be served: pods that no present node and no node on
// offer could take, and kinds for which the hook has said so (Engine::SetUnservable: nothing on
// offer suits them beside the pods that run, a cap is used up, all that suits is in back-off, or
// former nodes did not help). They are demanded all the same, as far as the limits allow each of
// them beside what is in use and what is charged before it; so the hook is asked again, and says
// why.
//
// Of a step that does not fit as a whole, nodes are demanded for the pods that find no room on the
// nodes that there are and those on order (present_room.h says for which steps). If it is bound to
// one domain of a topology, all is demanded, with the domain in which fewer nodes would do
// (Outcome::room).
//
// Equivalent workloads that get the same answer stay one row. If all demand of a leaf queue is
// within the limits, they are charged in sum; else in sum up to the next row of their queue, as
// many as the limits allow.
//
// Thread-safety: the owner's thread. Complexity: O(n depth) for n rows; where a limit is near, also
// O(log) for each turn of equivalents among the others of their queue, and a step for each of them
// if others come between; one by one only while queues keep guaranteed quota (lendingLimit) and for
// the extras of a gang at a limit. O(nodes) once for each class of pods that wait.
#pragma once

#include "scheduler/engine/actions/action.h"

namespace fairlead::engine {

class Demand final : public Action {
 public:
  [[nodiscard]] absl::string_view Name() const override { return "demand"; }
  void Execute(CycleContext& context) const override;
};

}  // namespace fairlead::engine
