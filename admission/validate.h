// May an object be stored? The rules are those by which the program reads it: the decoders of
// kube/codec, the contradictions of queues, the tree of queues, the tree of sub-groups. So what is
// admitted is what the program understands, and a refusal names the field and the rule.
//
// Never refused: deletions, writes to sub-resources, objects that are being deleted, pods of other
// schedulers, kinds that are not ours, and problems that an update leaves as they were.
//
// Thread-safety: pure functions. Complexity: linear in the object; for a Queue also in the queues.
#pragma once

#include <string>

#include "admission/cluster.h"
#include "admission/problem.h"
#include "admission/review.h"
#include "scheduler/model/kind.h"

namespace fairlead::admission {

// The request is about objects of the kind: a resource is known by its plural and its group,
// whatever the version.
bool IsOf(const Request& request, model::Kind kind);

Response Validate(const Request& request, const Cluster& cluster, const Policy& policy);

// The parts of Validate. The object must be one JSON object.
Findings CheckQueue(const Json& object, const Cluster& cluster);
Findings CheckPodGroup(const Json& object, const Cluster& cluster, const Policy& policy);
// NodePool, NodeRequest: what their decoder says.
Findings CheckByDecoder(model::Kind kind, const Json& object);
Findings CheckPod(const Json& pod, const Cluster& cluster, const Policy& policy);

// The pod is one that Fairlead schedules, or places for a guest.
bool IsOurs(const Json& pod, const Policy& policy);
// The queue that the pod's own labels name; empty if they name none.
std::string NamedQueue(const Json& pod);
// The pod group that it names, of whichever API; empty if none.
std::string NamedGroup(const Json& pod);
// Warns of a queue that does not exist, is not a leaf or runs nothing.
void WarnOfQueue(const std::string& queue, absl::string_view path, const Cluster& cluster,
                 const Policy& policy, Findings& out);

}  // namespace fairlead::admission
