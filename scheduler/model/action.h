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
#include "scheduler/model/kind.h"
#include "scheduler/model/node.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::model {

// POST pods/{name}/binding with the uid as precondition; the annotations are merged into the pod by
// the same write.
struct BindPod {
  std::string ns, name, uid, node;
  StringMap annotations;
};

// Through the eviction API; the reason and message go into condition DisruptionTarget.
struct EvictPod {
  std::string ns, name, uid;
  std::string reason, message;
};

// One patch of pods/status: condition PodScheduled=False with reason and message, the verdict
// annotation (empty: removed) and nominatedNodeName (empty: cleared).
struct SetPodUnschedulable {
  std::string ns, name, uid;
  std::string reason, message;
  std::string verdict_json;
  std::string nominated_node;
  int64_t observed_generation = 0;
};

// status.schedulability and status.schedulingConditions of a PodGroup. An empty json clears both.
struct SetPodGroupSchedulability {
  std::string ns, name, uid;
  std::string schedulability_json;  // the object under status.schedulability
  // KAI's form, for its tools.
  std::string reason, message;
};

struct SetPodGroupAnnotations {
  std::string ns, name, uid;
  StringMap annotations;  // merged; an empty value removes the key
};

struct CreateNodeRequest {
  NodeRequest request;  // meta.name set, no uid
};
struct UpdateNodeRequestStatus {
  NodeRequest request;  // only status fields are written
};
struct DeleteNodeRequest {
  std::string name, uid;
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
  NodeRequest request;
  Node node;  // as it is expected to register: name, labels, taints, allocatable
};
struct TerminateNode {
  std::string request_name;
  std::string provider, node_name, provider_id;
};

// A Kubernetes Event about an object. Best effort: may be shed.
struct EmitEvent {
  Kind about = Kind::kPod;
  std::string ns, name, uid;
  bool warning = false;
  std::string reason, note;
};

struct Action {
  uint64_t id = 0;  // unique within the process, increasing in the order of the decisions
  std::variant<BindPod, EvictPod, SetPodUnschedulable, SetPodGroupSchedulability,
               SetPodGroupAnnotations, CreateNodeRequest, UpdateNodeRequestStatus,
               DeleteNodeRequest, SetNodeTaint, LaunchNode, TerminateNode, EmitEvent>
      what;
};

}  // namespace fairlead::model
