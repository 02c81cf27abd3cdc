// What the world tells the core: one event per object change, the outcome of every action, and what
// queues have used if another system keeps that record. Adapters (kube, sim, usage-prometheus)
// produce events; core::DecisionLoop applies them in order on its one thread.
//
// Contract for producers:
// - The initial list of a kind is a run of Upserts followed by one Synced for that kind. The core
//   decides nothing before every kind that it reads (core::Reads) has been synced once.
// - After a gap (410) the producer compares its old store with the new list and sends Deletes for
//   objects that vanished; it never clears first.
// - A Delete names the uid, so that it does not delete a recreated object of the same name.
//
// Thread-safety: plain values, moved between threads.
#pragma once

#include <iterator>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/status/status.h"
#include "scheduler/model/action.h"
#include "scheduler/model/capacity_objects.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/disruption_budget.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/node.h"
#include "scheduler/model/node_answers.h"
#include "scheduler/model/node_topology.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/spread_sources.h"
#include "scheduler/model/usage_report.h"
#include "scheduler/model/volumes.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::model {

// Any object that decisions read; the alternatives are in the order of Kind.
using Object =
    std::variant<Pod, Node, Queue, PodGroup, PriorityClass, Topology, NodeRequest, NodePool,
                 PodDisruptionBudget, DeviceClass, ResourceSlice, ResourceClaim,
                 NodeResourceTopology, Namespace, PersistentVolumeClaim, PersistentVolume,
                 StorageClass, CsiNode, CsiDriver, CsiStorageCapacity, VolumeAttachment, Service,
                 ReplicationController, ReplicaSet, StatefulSet, NativePodGroup, PodTemplate,
                 CapacityBuffer, ProvisioningRequest, DeviceTaintRule>;
static_assert(std::variant_size_v<Object> == std::size(kKindTraits));

constexpr Kind KindOf(const Object& object) { return static_cast<Kind>(object.index()); }
// The kind of a type of objects.
template <typename T, size_t kIndex = 0>
constexpr Kind KindOf() {
  if constexpr (std::is_same_v<T, std::variant_alternative_t<kIndex, Object>>) {
    return static_cast<Kind>(kIndex);
  } else {
    return KindOf<T, kIndex + 1>();
  }
}
inline const ObjectMeta& MetaOf(const Object& object) {
  return std::visit([](const auto& typed) -> const ObjectMeta& { return typed.meta; }, object);
}

struct Upsert {
  Object object;
};

struct Delete {
  Kind kind;
  std::string ns, name, uid;
};

// An optional kind (IsOptional) may be synced a second time, if `missing` changes.
struct Synced {
  Kind kind;
  bool missing = false;  // the server does not have the kind, or does not let us read it
};

// The API server's or the provider's answer to an action, in the order the answers arrive.
struct ActionResult {
  uint64_t action_id = 0;
  // OK: done. AlreadyExists / FailedPrecondition / NotFound: a definite refusal (409, 404, 422);
  // the decision is stale and is dropped. ResourceExhausted, of an eviction: a PodDisruptionBudget
  // refuses for now (429). Unavailable, after the adapter's own retries: the outcome is unknown and
  // only the watch can tell it.
  absl::Status status;
  // After a successful ReserveClaim: the version of the claim that shows it.
  std::string resource_version = {};
  // After a successful LaunchNode, if the provider tells it: the future Node.spec.providerID.
  std::string machine_id = {};
  // After a successful AskExtenders.
  NodeAnswers node_answers = {};
  // After a failed AskExtenders: the extender that failed; -1: none, the pod or the nodes could not
  // be read.
  int32_t extender = -1;
  // After a successful CallPlugin: why the program says no; empty: it says yes.
  std::string refusal = {};
  // After a CallPlugin that evaluates nodes; null: every node is admitted, as if they were alike.
  std::shared_ptr<const NodeJudgements> judgements = {};
  // After a successful ReadObject: the object, as JSON, without status and managedFields. After a
  // ListSuspended: the objects, likewise, each with apiVersion and kind.
  std::shared_ptr<const std::string> object = {};
};

// The watch of the kind has shown everything up to this resourceVersion. Sent after a list and with
// every bookmark. Kinds are not ordered between each other. All resourceVersions of a cluster are
// one counter (scheduler/model/resource_version.h), so this also says how much of another kind's
// past has been seen.
struct Progress {
  Kind kind;
  std::string resource_version;
};

// A UsageReport replaces the previous one. It is no object: no decision waits for one.
using ClusterEvent = std::variant<Upsert, Delete, Synced, ActionResult, UsageReport, Progress>;

}  // namespace fairlead::model
