// Situations that chance makes too seldom, in worlds for which few families of faults are named
// (--fault of fairlead-simtest): mutations ask for them. Each is a few operations that belong
// together, added to a plan that has its family of faults; a world has at most one of each line.
//
//   cloud    machines whose nodes all have own names, are too small, or have a taint that no pod
//            tolerates, while pods wait that only new machines can run; a new catalogue while
//            machines of the changed type run; gangs for which a part of the machines can be had
//   demand   more pods than the cap of nodes permits machines for; or pods of several sizes, for
//            which more machines are needed at once than the rate of all permits; or of one size,
//            for which more are needed than its rate permits
//   lease    the leader's deciding thread hangs, and nothing else is wrong; or
//            the leader's requests take seconds and its lease ends meanwhile; or the standby hears
//            of everything late, and then has to lead
//   watch    the leader hears nothing of nodes while a long queue of evictions waits for its pace,
//            or its evictions get no answer, then it hears nothing of pods, and the pod that they
//            make room for is deleted
//   search   the search for victims costs more than a cycle may spend: a pod that could preempt is
//            searched for by consolidation first, in vain
//   groups   a PodGroup that names no queue, and pods that disagree about it; one that is deleted
//            long after its pods were started in another queue than their labels name
//            a gang that is below its minimum because one of its pods has succeeded; pods that
//            get their group while they are held, and have no room in it
//   hostile  a pod that was bound by name and asks for more than a sum can hold
//            pods that name more resources than the program tells apart
//   kubelet  a pod that is deleted and does not end, while another one waits for its room
//   network  answers to bindings are lost and watches are late, while pods wait for room; pods may
//            not be read either, so that nothing tells whether a binding was done, or some may
//            never be bound; or verdicts travel for seconds; or bindings and requests for
//            nodes are done, and answered as if they may not be
//   odd      a pod that can never run asks for all that its queue may have, before another one: no
//            node has the label that it selects, or no pod runs that it has to be near to
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
