// The queue of pods that name none, where nobody has made a Queue object of its name.
// Thread-safety: pure functions.
#pragma once

#include "absl/strings/string_view.h"
#include "queues/tree.h"

namespace fairlead::queues {

// A top queue without limits and, as long as it is the only one, without a quota: a first pod runs
// without any object, whatever its priority. With `others` (other queues exist, whose quotas must
// hold) its quota is zero and its weight one: it lives on what the others leave, gives way when
// they want theirs, and runs nothing non-preemptible.
model::Queue BuiltinDefaultQueue(absl::string_view name, bool others);

// Puts the built-in queue into the tree, or renews it, if no object of its name exists; call it
// after every change of Queue objects, `object_exists` saying whether there is an object of that
// name. Does nothing for an empty name. Returns whether the tree changed.
bool KeepDefaultQueue(QueueTree& tree, absl::string_view name, bool object_exists);

}  // namespace fairlead::queues
