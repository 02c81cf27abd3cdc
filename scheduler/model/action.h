// What the core asks the world to do. The core decides; an adapter (kube::Executor, sim::Cluster)
// carries out each action and answers it with one ActionResult of equal id.
//
// Thread-safety: plain values, moved between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/shared.h"
#include "scheduler/model/condition.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/node.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/remote_plugin.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::model {

// POST pods/{name}/binding with the uid as precondition; annotations and labels are merged into the
// pod by the same write.
struct BindPod {
  std::string ns, name, uid, node;
  StringMap annotations;
  StringMap labels = {};
  // The extender (by position in the configuration) that makes the binding in our stead; -1: none.
  // It is told pod and node alone.
  int32_t extender = -1;
};

// Asks extenders about nodes for a pod, in the order of the configuration: each filters what those
// before it have left, then all score what is left. The answer is ActionResult::node_answers, about
// all of these nodes. An extender that fails, and is not ignorable, fails all of it.
struct AskExtenders {
  uint64_t number = 0;  // of the core; in the order of asking
  std::string ns, name, uid;
  std::vector<int32_t> extenders;  // positions in the configuration, ascending
  std::vector<std::string> nodes;  // by name
  // Not empty: whether pods may be evicted for it is asked instead, of the extenders that have a
  // preemptVerb, one after another. Of each node the pods that would go; a node is admitted if all
  // of its pods may.
  struct Victim {
    std::string ns, name, uid;
  };
  struct NodeVictims {
    std::vector<Victim> pods;
    int64_t budget_violations = 0;  // of them, how many a PodDisruptionBudget protects
  };
  std::vector<NodeVictims> victims = {};  // by position of the node
};

// Calls a plugin in another program.
struct CallPlugin {
  std::shared_ptr<const RemoteCall> call;
};

// POST pods: the placeholder pod that holds one whole GPU of a node for the pods that share it. Its
// labels name the group; its own program writes the device into kGpuIndexAnnotation. The name is
// the identity: a repeated request makes no second pod.
struct CreateGpuReservation {
  std::string ns, name, node, group;
  std::string image, service_account, runtime_class;  // empty: the server's default
  std::vector<std::string> command;                   // empty: the image's
};

// DELETE pods/{name} with the uid as precondition and the pod's own grace period. Only for pods
// that Fairlead itself created; other pods are evicted.
struct DeletePod {
  std::string ns, name, uid;
};

// Creates or updates a config map; keys that other programs wrote stay. It is deleted with the pod
// that owns it.
struct ApplyConfigMap {
  std::string ns, name;
  StringMap data;
  std::string owner_pod, owner_uid;
};

// Uses the eviction API; the reason and message go into condition DisruptionTarget.
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

// nominatedNodeName alone: the pod has its node, and its binding is slow.
struct NominateNode {
  std::string ns, name, uid;
  std::string node;
};

// What becomes of our entry of schedulingConditions.
enum class OwnCondition : uint8_t { kWrite, kKeep, kRemove };

// status.schedulability and, in status.schedulingConditions of a PodGroup, the entry of one node
// pool; of a NativePodGroup, which has neither, annotation fairlead.dev/verdict. An empty json
// clears them. The entries of other pools stay unchanged: `conditions` is what
// the group had when this was decided, and the adapter reads the group again if it has changed.
struct SetPodGroupSchedulability {
  std::string ns, name, uid;
  std::string schedulability_json;  // the object under status.schedulability
  // KAI's form, for its tools.
  std::string reason, message;
  std::string node_pool = {};  // empty: the default one
  std::vector<SchedulingCondition> conditions = {};
  OwnCondition own_condition = OwnCondition::kWrite;
  bool names_pool = false;  // the entry's message begins with the pool, as KAI writes it for
                            // kTryOnce
  bool native = false;      // of a NativePodGroup
};

struct SetPodGroupAnnotations {
  std::string ns, name, uid;
  StringMap annotations;  // merged; an empty value removes the key
  bool native = false;    // of a NativePodGroup
};

// Condition PodGroupScheduled of a NativePodGroup, as kube-scheduler writes it: True, or False with
// reason Unschedulable. The other conditions stay.
struct SetPodGroupScheduled {
  std::string ns, name, uid;
  bool scheduled = false;
  std::string message;
  int64_t observed_generation = 0;
  bool turns = true;  // the status is another than before: so is lastTransitionTime
};

// The whole list status.conditions of an object whose conditions this program alone writes, and
// what else it says in its status.
struct SetConditions {
  Kind kind = Kind::kNodePool;
  std::string ns, name, uid;
  std::vector<Condition> conditions;
  // Of a CapacityBuffer: what it was resolved to.
  struct Buffer {
    std::string pod_template;
    int64_t pod_template_generation = 0, replicas = 0;
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };
  std::optional<Buffer> buffer = {};
};

// The status that KAI's controllers write, as they do: of a PodGroup status.resourcesStatus, of a
// Queue the three counts and the names of its child queues. The other fields of the status stay.
struct SetKaiStatus {
  Kind kind = Kind::kQueue;
  std::string ns, name, uid;
  KaiCounts counts;
  std::vector<std::string> child_queues;  // of a Queue
};

// Boxed, because most actions are bindings, and an action is as large as its largest kind.
struct CreateNodeRequest {
  Boxed<NodeRequest> request;  // meta.name set, no uid
};
struct UpdateNodeRequestStatus {
  Boxed<NodeRequest> request;  // only status fields are written
};
// Removes our finalizer and deletes the object: its machine is gone.
struct DeleteNodeRequest {
  std::string name, uid;
  std::vector<std::string> finalizers = {};  // as last seen
};

// Adds or removes one taint of ours on a node; the adapter reads the node again so that no other
// taint is lost.
struct SetNodeTaint {
  std::string node, uid;
  Taint taint;
  bool present = true;
};

// A request to a provider. Idempotent by request name.
struct LaunchNode {
  Boxed<NodeRequest> request;
  // As it is expected to register: name, labels, allocatable, and all taints, also those of
  // startup.
  Boxed<Node> node;
  std::vector<Taint> startup_taints;  // of them, those that another program removes
  NodeClassRef node_class;            // of its pool; no name: the provider's configured one
  StringMap reservation_labels;       // those of the node that its reservation gives it
};
struct TerminateNode {
  std::string request_name;
  std::string provider, node_name, provider_id;
};

// Stores what queues have used, as text, under one key of our ConfigMap, which is made if it is
// missing. Its other keys stay unchanged.
struct StoreUsage {
  std::string ns, name, text;
};

// What an event reports, in kube-scheduler's words.
enum class EventAction : uint8_t {
  kOfKind,  // what KindTraits::event_action says of the object's kind
  kScheduling,
  kBinding,
  kPreempting,
  kEvicting,
};

// An API object by identity. No name: no object.
struct ObjectRef {
  Kind kind = Kind::kPod;
  std::string ns, name, uid;
  friend bool operator==(const ObjectRef&, const ObjectRef&) = default;
};

// A Kubernetes Event about an object. Best effort: may be shed.
struct EmitEvent {
  Kind about = Kind::kPod;
  std::string ns, name, uid;
  bool warning = false;
  std::string reason, note;
  EventAction action = EventAction::kOfKind;
  std::string reporter = {};      // the reporting controller; empty: the program's own name
  Boxed<ObjectRef> related = {};  // the other object that it is about, if any
};

// Makes a ResourceClaim usable for pods that are about to be bound: writes its allocation if it has
// none (`allocate`), and adds the pods to status.reservedFor. `allocation` is what the claim has,
// or is to get. If the claim has another one, or has none and `allocate` is false, the answer is
// FailedPrecondition and nothing was changed. Reservations of other programs stay.
struct ReserveClaim {
  struct Consumer {
    std::string name, uid;
    friend bool operator==(const Consumer&, const Consumer&) = default;
  };
  std::string ns, name, uid;
  std::string resource_version;         // as last seen
  std::vector<std::string> finalizers;  // as last seen
  bool allocate = false;
  ClaimAllocation allocation;
  std::vector<Consumer> pods;
};

// Removes allocation and reservations from a claim that no pod uses, if it is still of that
// version; FailedPrecondition if not.
struct DeallocateClaim {
  std::string ns, name, uid, resource_version;
};

// Makes the claim that gives a pod its extended resources, unless it is there, and says in the
// pod's status which one it is (KEP-5004). FailedPrecondition if the name is another claim's, or
// the pod another pod. AlreadyExists does not occur.
struct SetExtendedClaim {
  std::string ns, name, uid;  // of the pod
  std::string node;           // where it is to be bound
  std::string claim;          // empty: the status is to name none, and nothing is made
  struct Resource {
    std::string name, device_class;
    friend bool operator==(const Resource&, const Resource&) = default;
  };
  std::vector<Resource> resources = {};  // by name
};

// Names the claim in spec.claimRef of a volume, if the volume is still of that version; then the
// volume controller binds the two (upstream's static binding). FailedPrecondition if it is not.
struct BindVolume {
  std::string volume, uid, resource_version;
  std::string claim_ns, claim_name, claim_uid;
  // The volume names the claim already, without its uid: that binding is its user's, and stays when
  // the claim goes.
  bool prebound = false;
};

// Says on a claim of that version for which node its volume is to be provisioned
// (kSelectedNodeAnnotation). FailedPrecondition if it is of another version.
struct SelectVolumeNode {
  std::string ns, name, uid, resource_version;
  std::string node;
};

// GET of an object of any kind in the namespace, or without one, by which pods are grouped
// (core/pod_grouper.h). The answer is ActionResult::object. NotFound: there is none;
// PermissionDenied names the rule that is missing.
struct ReadObject {
  std::string api_version, kind, ns, name;
  std::string uid;          // that its readers know; the object that is there may have another one
  uint64_t suspension = 0;  // not 0: for core/suspensions.h, by its number
};

// A workload that can be held back by a boolean of it.
struct Suspendable {
  std::string api_version, kind, ns, name, uid, resource_version;
  std::string path;  // names of fields with dots between them
  // If it is held back: kSuspendedByAnnotation, kSuspendedForAnnotation, and the pods that go.
  std::string by = {}, reason = {};
  struct Pod {
    std::string name, uid;
  };
  std::vector<Pod> pods = {};
};
// Holds back its pods, or releases them: PATCH of the version that was read. It writes the boolean,
// and with it kSuspendedLabel and the annotations, or removes these. Aborted: the object is of
// another version.
struct SetSuspended {
  uint64_t number = 0;  // of core/suspensions.h
  bool suspended = false;
  Boxed<Suspendable> object;
};

// LIST of the objects of a kind, whatever its version, that have kSuspendedLabel. The answer is
// ActionResult::object: a JSON array, empty if the kind is not served.
struct ListSuspended {
  std::string group, kind;
};

// Creates a PodGroup if it has no uid. Else changes what follows the owners of its pods (numbers of
// members, sub-groups, priority class, preemptibility, delays), if it has that uid and
// resourceVersion still. AlreadyExists: a group of the name is there.
struct WritePodGroup {
  Boxed<PodGroup> group;
};

// Names the PodGroup of a pod on it, and its sub-group if it has one.
struct SetPodGroup {
  std::string ns, name, uid;
  std::string group, sub_group;
};

struct Action {
  uint64_t id = 0;  // unique within the process, increasing in the order of the decisions
  std::variant<BindPod, EvictPod, SetPodUnschedulable, SetPodGroupSchedulability,
               SetPodGroupAnnotations, CreateNodeRequest, UpdateNodeRequestStatus,
               DeleteNodeRequest, SetNodeTaint, LaunchNode, TerminateNode, EmitEvent,
               CreateGpuReservation, DeletePod, ApplyConfigMap, StoreUsage, ReserveClaim,
               DeallocateClaim, BindVolume, SelectVolumeNode, AskExtenders, NominateNode,
               CallPlugin, SetPodGroupScheduled, SetExtendedClaim, SetConditions, ReadObject,
               WritePodGroup, SetPodGroup, SetKaiStatus, SetSuspended, ListSuspended>
      what;
};
// Tens of thousands are made in one step.
static_assert(sizeof(Action) <= 288);

}  // namespace fairlead::model
