// The volume controllers of kube-controller-manager, and what makes the claims that pods name.
//
//   - A claim that a pod names, and whose spec the pod's annotation has, is made a moment after the
//     pod, and made again while a pod names it. An ephemeral one goes with its pod.
//   - A claim and a volume whose claimRef names it are bound: first the volume, then, a moment
//     later, the claim.
//   - A claim whose volume goes is lost. A volume whose claim goes is released and deleted; one
//   that
//     is made by hand is made again. A volume whose claim is bound to another one is given back.
//   - The finalizer goes from a claim that is deleted when no pod uses it on a node, and from a
//     volume when it is bound to no claim.
//
// Source: k8s.io/kubernetes pkg/controller/volume/{persistentvolume,pvcprotection,pvprotection,
// ephemeral}.
// Ownership: borrows time and server. Thread-safety: none, one thread. Determinism: delays are
// drawn from the seed in the order of commits. Complexity: a commit costs O(pods with volumes +
// volumes).
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
#include "sim/world/volume_facts.h"

namespace fairlead::sim::world {

// Why the pod may not start yet: the first of its claims that is not bound, whose volume cannot be
// used on its node, or that another pod has for itself; "" if there is none.
std::string MissingVolume(const ApiServer& server, const Json& pod);

class VolumeController {
 public:
  VolumeController(EventQueue* time, ApiServer* server, uint64_t seed);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  void OnPod(const ApiServer::Commit& commit);
  void OnClaim(const ApiServer::Commit& commit);
  void OnVolume(const ApiServer::Commit& commit);
  void WakePod(const Key& key, int64_t low_ms, int64_t high_ms);
  void WakeClaim(const Key& key);
  void WakeVolume(const std::string& name);
  void SyncPod(const Key& key);
  void SyncClaim(const Key& key);
  void SyncVolume(const std::string& name);
  // It is deleted, or nothing needs it any more. True if there is nothing else to do.
  bool EndClaim(const VolumeClaimFacts& claim);
  void Bind(const VolumeClaimFacts& claim, const VolumeFacts& volume);
  void SetLost(const VolumeClaimFacts& claim);
  void Reclaim(const VolumeFacts& volume);
  void GiveBack(const VolumeFacts& volume);
  void SetPhase(const VolumeFacts& volume, const char* phase);
  [[nodiscard]] bool IsUsed(const VolumeClaimFacts& claim) const;

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::set<Key> waking_pods_, waking_claims_;
  std::set<std::string> waking_volumes_;
  std::map<std::string, Key> pods_;  // that name claims, by uid
};

}  // namespace fairlead::sim::world
