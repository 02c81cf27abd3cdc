// The queue of pods that name no queue, if no Queue object of its name exists. Thread-safety: pure
// functions.
#pragma once

#include "absl/strings/string_view.h"
#include "queues/tree.h"

namespace fairlead::queues {

// A top queue without limits. If it is the only queue it has no quota either: a first pod runs
// without any object, whatever its priority. With `others` (other queues exist, whose quotas must
// hold) its quota is zero and its weight one. It then uses what the others leave, its pods are
// evicted when the others reclaim, and it runs no non-preemptible pod.
model::Queue BuiltinDefaultQueue(absl::string_view name, bool others);

// Puts the built-in queue into the tree, or updates it, if no object of its name exists
// (`object_exists`). Call it after every change of Queue objects. Does nothing for an empty name.
// Returns whether the tree changed.
bool KeepDefaultQueue(QueueTree& tree, absl::string_view name, bool object_exists);

}  // namespace fairlead::queues
