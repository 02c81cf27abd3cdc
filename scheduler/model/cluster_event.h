// What the world tells the core: one event per object change, the outcome of every action that the
// core asked for, and what queues have used where somebody else keeps the record. Adapters (kube,
// sim, usage-prometheus) produce them; core::DecisionLoop applies them in order on its one thread.
//
// Contract for producers:
//  - The initial list of a kind is a run of Upserts followed by one Synced for that kind. No
//  decision
//    is made before every kind of AllKinds() has been synced once.
//  - After a gap (410) the producer diffs its old store with the new list and sends Deletes for
//  what
//    vanished; it never clears first.
//  - A Delete names the uid, so that a recreated object of the same name is not deleted by it.
//
// Thread-safety: plain values, moved between threads.
#pragma once

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "scheduler/model/action.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/disruption_budget.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/usage_report.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::model {

struct Upsert {
  std::variant<Pod, Node, Queue, PodGroup, PriorityClass, Topology, NodeRequest, NodePool,
               PodDisruptionBudget, DeviceClass, ResourceSlice, ResourceClaim>
      object;
};

struct Delete {
  Kind kind;
  std::string ns, name, uid;
};

// Of an optional kind (IsOptional) there may be a second one, when `missing` is another.
struct Synced {
  Kind kind;
  bool missing = false;  // the server does not have the kind, or does not let us read it
};

// The API server's or the provider's answer to an action, in the order the answers arrive.
struct ActionResult {
  uint64_t action_id = 0;
  // OK: done. AlreadyExists / FailedPrecondition / NotFound: a definite no (409, 404, 422): the
  // decision is stale and is dropped. ResourceExhausted, of an eviction: a PodDisruptionBudget says
  // no for now (429). Unavailable, after the adapter's own retries: nobody knows
  // whether it happened; only the watch can tell.
  absl::Status status;
  // After a ReserveClaim that is done: the version of the claim that shows it.
  std::string resource_version = {};
  // After a LaunchNode that is done, where the provider tells: what Node.spec.providerID will be.
  std::string machine_id = {};
};

// The watch of the kind has shown everything up to this resourceVersion: after a list, and with
// every bookmark. Kinds are not ordered between each other; all resourceVersions of a cluster are
// one counter (scheduler/model/resource_version.h), so this says what of the past of another kind
// has been seen too.
struct Progress {
  Kind kind;
  std::string resource_version;
};

// A UsageReport takes the place of the one before. It is no object: no decision waits for one.
using ClusterEvent = std::variant<Upsert, Delete, Synced, ActionResult, UsageReport, Progress>;

}  // namespace fairlead::model
