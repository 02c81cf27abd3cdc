// The one default that is written into pods: the queue of their namespace.
// Thread-safety: pure. Complexity: O(log namespaces).
#pragma once

#include "admission/cluster.h"
#include "admission/review.h"

namespace fairlead::admission {

// Patches the queue label into a pod that is created with one of our scheduler names and names
// neither a queue (KAI's label, or `project`) nor a pod group, if its namespace has the label
// fairlead.dev/default-queue. Nothing else of an object is ever changed.
Response Default(const Request& request, const Cluster& cluster, const Policy& policy);

}  // namespace fairlead::admission
