// How a pod is grouped: the pod by itself, or a PodGroup, as the table of kinds and the pod's
// owners say. docs/grouping.md has the rules.
//
// The topmost owner decides, unless its row delegates to the next one towards the pod. Labels and
// annotations of owners that have delegated count where the deciding one lacks them, and those of
// the pod last. What depends on the pod (the launcher of an MPIJob, the leader of a
// LeaderWorkerSet) differs between pods of a group: that of the youngest pod counts.
//
// Names, units and meanings of the group are KAI's, and so is its name, pg-OWNER-UID: two programs
// that group pods name the same object. Only the specification of an object is read: the same
// objects always give the same group.
//
// Thread-safety: as the port. Complexity: O(owners * rows + what the row reads). Errors:
// InvalidArgument, NotFound or that of the port, with the object and its field.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "grouping/owners.h"
#include "grouping/table.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::grouping {

struct Grouping {
  enum class Kind : uint8_t {
    kLone,     // no PodGroup object
    kGroup,    // `group`
    kNeeds,    // the object `needs` has to be read first
    kForeign,  // annotated so that no program makes a group (kai.scheduler/skip-podgrouper)
  };
  Kind kind = Kind::kLone;
  ObjectName needs;
  // kGroup: as it is to be created; its owner reference names the deciding object. kLone: the
  // same reference, and what the owners say of queue, priority class and preemptibility; no name.
  model::PodGroup group;
  // kGroup: the sub-group that the pod belongs to; empty: the group itself.
  std::string sub_group;
  // The object that can be suspended instead of evicting the pods of the group, or the pod that is
  // alone, and the path of the boolean that does so. No path: there is none, or other pods would
  // go.
  ObjectName suspendable;
  std::string suspend;
};

absl::StatusOr<Grouping> GroupOf(const model::Pod& pod, const KindTable& table,
                                 const Objects& objects);

}  // namespace fairlead::grouping
