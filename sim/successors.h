// The controllers of pods that a simulated cluster took over from a real one: when such a pod is
// deleted, its controller makes it anew. Their objects are not known, only the pods' owner
// references are, so each successor is like its predecessor:
//
//   owner                                 what comes after the pod
//   none                                  nothing
//   DaemonSet, Node (a static pod)        nothing: they belong to their node
//   any other, if the pod had not ended   a pod of the same name, unbound, after `delay`
//
// Names of a real ReplicaSet or Job would differ; the same name shows whose successor it is. When a
// successor is ready, the PodDisruptionBudget that let its predecessor go allows one eviction more,
// as the disruption controller would say.
//
// Ownership: borrows the queue and the server. Thread-safety: none, one thread. Determinism: pods
// come in the order of deletion. Complexity: O(1) per change, O(budgets) per successor.
#pragma once

#include <set>
#include <string>

#include "absl/time/time.h"
#include "sim/api_server.h"
#include "sim/event_queue.h"

namespace fairlead::sim {

// Whether the pod belongs to its node: a DaemonSet's, or the mirror of a static pod.
bool BelongsToNode(const model::Pod& pod);
// Whether a controller makes the pod anew when it is deleted.
bool HasSuccessor(const model::Pod& pod);

class Successors {
 public:
  Successors(EventQueue* queue, ApiServer* server, absl::Duration delay);

  // From now on the controller that owns the pod is simulated here.
  void Adopt(const model::Pod& pod);

 private:
  void OnPod(ChangeType type, const model::Pod& pod);
  void ReturnAllowance(const std::string& ns, const std::string& pod);

  EventQueue* queue_;
  ApiServer* server_;
  absl::Duration delay_;
  std::set<std::string> owners_;   // uids of controllers
  std::set<std::string> waiting_;  // keys of successors that were not ready yet
};

}  // namespace fairlead::sim
