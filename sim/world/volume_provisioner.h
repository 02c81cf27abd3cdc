// The provisioner of a CSI driver: makes a volume for a claim of its classes, as soon as the claim
// exists (volumeBindingMode Immediate), or as soon as a node was selected for it. The volume names
// the claim; VolumeController binds the two.
//
// It may be slow, or silent for a while, or refuse: then, as with a node that is gone, the
// annotation that selects the node is removed from the claim, so that it is scheduled again.
//
// Source: sigs.k8s.io/sig-storage-lib-external-provisioner/controller.
// Ownership: borrows time and server. Thread-safety: none, one thread. Determinism: delays and
// refusals are drawn from the seed in the order of commits. Complexity: a commit O(log n).
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"
#include "sim/world/volume_facts.h"

namespace fairlead::sim::world {

class VolumeProvisioner {
 public:
  VolumeProvisioner(EventQueue* time, ApiServer* server, uint64_t seed);

  // "slow", "silent", "refuses": all that begins until then. Another one: as it should.
  void Misbehave(absl::string_view how, absl::Time until);
  // One in so many requests is refused; 0: none.
  void RefuseOneIn(int64_t n) { refuse_one_in_ = n; }
  // From now on it does as it should.
  void BeHonest();

  [[nodiscard]] int64_t made() const { return made_; }
  [[nodiscard]] int64_t refused() const { return refused_; }

 private:
  void OnClaim(const Json& object);
  void Wake(const VolumeClaimFacts& claim);
  void Provision(const std::string& ns, const std::string& name, const std::string& uid);
  void Refuse(const VolumeClaimFacts& claim);
  // Of the node that is selected for the claim; of any, for one that waits for none. Null: gone.
  [[nodiscard]] const Json* NodeFor(const VolumeClaimFacts& claim);
  [[nodiscard]] bool Refuses();

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::string how_;
  absl::Time until_ = absl::InfinitePast();
  int64_t refuse_one_in_ = 0, made_ = 0, refused_ = 0;
  std::set<std::string> working_;  // uids of claims
};

}  // namespace fairlead::sim::world
