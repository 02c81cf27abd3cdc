// What the core asks the world to do. Values only: the core decides, an adapter (kube::Executor,
// sim::Cluster) carries out, and answers each with one ActionResult of the same id.
//
// Thread-safety: plain values, moved between threads.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/shared.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/node.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::model {

// POST pods/{name}/binding with the uid as precondition; annotations and labels are merged into the
// pod by the same write.
struct BindPod {
  std::string ns, name, uid, node;
  StringMap annotations;
  StringMap labels = {};
};

// POST pods: the placeholder that holds one whole GPU of a node for those who share it. Its labels
// say the group, its annotation kGpuIndexAnnotation (which its own program writes) the device. The
// name is the identity: whoever asks twice makes one.
struct CreateGpuReservation {
  std::string ns, name, node, group;
  std::string image, service_account, runtime_class;  // empty: the server's default
  std::vector<std::string> command;                   // empty: the image's
};

// DELETE pods/{name} with the uid as precondition and the pod's own grace period. Only for pods
// that Fairlead answers for: everybody else's are evicted.
struct DeletePod {
  std::string ns, name, uid;
};

// A config map as it is to be: made if it is not there; keys of others in it stay. It goes with the
// pod that owns it.
struct ApplyConfigMap {
  std::string ns, name;
  StringMap data;
  std::string owner_pod, owner_uid;
};

// Through the eviction API; the reason and message go into condition DisruptionTarget.
struct EvictPod {
  std::string ns, name, uid;
  std::string reason, message;
};

// One patch of pods/status: PodScheduled=False with reason and message (no reason: True, it is
// bound), the verdict annotation (empty: removed) and nominatedNodeName (empty: cleared).
struct SetPodUnschedulable {
  std::string ns, name, uid;
  std::string reason, message;
  std::string verdict_json;
  std::string nominated_node;
  int64_t observed_generation = 0;
};

// What becomes of our entry of schedulingConditions.
enum class OwnCondition : uint8_t { kWrite, kKeep, kRemove };

// status.schedulability and, in status.schedulingConditions of a PodGroup, the entry of one node
// pool. An empty json clears both. The entries of other pools stay as they are: `conditions` is
// what the group had when this was decided, and the adapter reads it again if that is no longer so.
struct SetPodGroupSchedulability {
  std::string ns, name, uid;
  std::string schedulability_json;  // the object under status.schedulability
  // KAI's form, for its tools.
  std::string reason, message;
  std::string node_pool = {};  // empty: the default one
  std::vector<SchedulingCondition> conditions = {};
  OwnCondition own_condition = OwnCondition::kWrite;
  bool names_pool = false;  // the entry's message begins with the pool, as KAI's for kTryOnce
};

struct SetPodGroupAnnotations {
  std::string ns, name, uid;
  StringMap annotations;  // merged; an empty value removes the key
};

// Boxed, because most actions are bindings, and an action is as large as its largest kind.
struct CreateNodeRequest {
  Boxed<NodeRequest> request;  // meta.name set, no uid
};
struct UpdateNodeRequestStatus {
  Boxed<NodeRequest> request;  // only status fields are written
};
// Takes our finalizer off and deletes the object: its machine is gone.
struct DeleteNodeRequest {
  std::string name, uid;
  std::vector<std::string> finalizers = {};  // as they were seen last
};

// Adds or removes one taint of ours on a node; the adapter re-reads the node so that nobody else's
// taints are lost.
struct SetNodeTaint {
  std::string node, uid;
  Taint taint;
  bool present = true;
};

// What a provider is asked for. Idempotent by request name.
struct LaunchNode {
  Boxed<NodeRequest> request;
  Boxed<Node> node;  // as it is expected to register: name, labels, taints, allocatable
};
struct TerminateNode {
  std::string request_name;
  std::string provider, node_name, provider_id;
};

// What queues have used, as text, under one key of a ConfigMap of ours, which is made if it is not
// there. Its other keys stay as they are.
struct StoreUsage {
  std::string ns, name, text;
};

// A Kubernetes Event about an object. Best effort: may be shed.
struct EmitEvent {
  Kind about = Kind::kPod;
  std::string ns, name, uid;
  bool warning = false;
  std::string reason, note;
};

// Makes a ResourceClaim usable for pods that are about to be bound: its allocation, where it has
// none (`allocate`), and the pods in status.reservedFor. `allocation` is what the claim has, or is
// to get: if it turns out to have another one, or to have none although it is not to be allocated,
// the answer is FailedPrecondition and nothing was changed. What others reserve stays.
struct ReserveClaim {
  struct Consumer {
    std::string name, uid;
    friend bool operator==(const Consumer&, const Consumer&) = default;
  };
  std::string ns, name, uid;
  std::string resource_version;         // as it was seen last
  std::vector<std::string> finalizers;  // the same
  bool allocate = false;
  ClaimAllocation allocation;
  std::vector<Consumer> pods;
};

// Takes allocation and reservations away from a claim that nobody uses, if it is still of that
// version; FailedPrecondition if not.
struct DeallocateClaim {
  std::string ns, name, uid, resource_version;
};

struct Action {
  uint64_t id = 0;  // unique within the process, increasing in the order of the decisions
  std::variant<BindPod, EvictPod, SetPodUnschedulable, SetPodGroupSchedulability,
               SetPodGroupAnnotations, CreateNodeRequest, UpdateNodeRequestStatus,
               DeleteNodeRequest, SetNodeTaint, LaunchNode, TerminateNode, EmitEvent,
               CreateGpuReservation, DeletePod, ApplyConfigMap, StoreUsage, ReserveClaim,
               DeallocateClaim>
      what;
};
// Tens of thousands are made in one step.
static_assert(sizeof(Action) <= 288);

}  // namespace fairlead::model
