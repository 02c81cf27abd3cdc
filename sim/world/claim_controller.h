// The claim controller of kube-controller-manager, the garbage collector of its claims, and what
// makes the claims that several pods share.
//
//   - A claim for a pod alone is made a moment after the pod, named in the pod's status a moment
//     after that, and made again if it is deleted. A shared claim is made while a pod names it.
//   - A pod that has ended, or was deleted before it had a node, loses its reservation; the last
//     one that goes takes the allocation along. The finalizer goes from a claim that is deleted and
//     not allocated.
//   - A claim that was made for a pod is deleted when the pod has ended or is gone. A shared claim
//     is deleted when no pod names it.
//
// Source: k8s.io/kubernetes pkg/controller/resourceclaim/controller.go (syncPod, syncClaim).
// Ownership: borrows time and server. Thread-safety: none, one thread. Determinism: delays are
// drawn from the seed in the order of commits. Complexity: a commit costs O(pods of its namespace).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"
#include "sim/world/device_facts.h"

namespace fairlead::sim::world {

// Why the pod may not start yet: the first of its claims that is not allocated on its node and
// reserved for the pod; "" if there is none.
std::string MissingClaim(const ApiServer& server, const Json& pod);

class ClaimController {
 public:
  ClaimController(EventQueue* time, ApiServer* server, uint64_t seed);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  void OnPod(const ApiServer::Commit& commit);
  void OnClaim(const ApiServer::Commit& commit);
  void WakePod(const Key& key, int64_t low_ms, int64_t high_ms);
  void WakeClaim(const Key& key);
  void SyncPod(const Key& key);
  void MakeGenerated(const Json& pod, const PodClaim& claim);
  void SyncClaim(const Key& key);
  // Whether no pod needs the claim any more: neither its owner nor, of a shared claim, any.
  [[nodiscard]] bool IsUnneeded(const ClaimFacts& claim) const;
  [[nodiscard]] std::string ClaimMadeFor(const std::string& ns, const std::string& uid) const;

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::set<Key> waking_pods_, waking_claims_;
  std::map<std::string, Key> pods_;  // that name claims, by uid
  int64_t made_ = 0;
};

}  // namespace fairlead::sim::world
