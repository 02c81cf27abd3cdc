// Situations that chance makes too seldom, in worlds for which few families of faults are named
// (--fault of fairlead-simtest): mutations ask for them. Each is a few operations that belong
// together, added to a plan that has its family of faults; a world has at most one of each line.
//
//   cloud    machines whose nodes all have own names, are too small, or have a taint that no pod
//            tolerates, while pods wait that only new machines can run; a new catalogue while
//            machines of the changed type run
//   demand   more pods than the cap of nodes permits machines for
//   lease    the leader's requests take seconds and its lease ends meanwhile; or the standby hears
//            of everything late, and then has to lead
//   watch    the leader hears nothing of nodes while a long queue of evictions waits for its pace,
//            or its evictions get no answer, then it hears nothing of pods, and the pod that they
//            make room for is deleted
//   search   the search for victims costs more than a cycle may spend, and the first workload in
//            the order finds none
//   groups   a PodGroup that names no queue, and pods that disagree about it; one that is deleted
//            long after its pods were started in another queue than their labels name
//            a gang that is below its minimum because one of its pods has succeeded; pods that
//            get their group while they are held, and have no room in it
//   hostile  a pod that was bound by name and asks for more than a sum can hold
//   network  answers to bindings are lost and watches are late, while pods wait for room; pods may
//            not be read either, so that nothing tells whether a binding was done; or verdicts
//            travel for seconds
//   odd      a pod that can never run asks for all that its queue may have, before another one
//   queues   a queue is deleted for good under its pods
//
// Thread-safety: pure functions. Determinism: same seed, families and plan, same operations; what
// chance makes of the seed beside them stays the same.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Families that consist of corners alone.
const std::set<std::string, std::less<>>& CornerFamilies();

// `families`: those that the plan has.
void AddCorners(uint64_t seed, const std::set<std::string, std::less<>>& families, Plan& plan);

}  // namespace fairlead::sim::world
