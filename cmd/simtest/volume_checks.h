// The invariants about volumes; checks.h lists them with the others.
//
// Ownership: borrows. Thread-safety: none, one thread. Complexity: a write O(pods + volumes).
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

class VolumeChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  VolumeChecks(const sim::world::ApiServer* server, const sim::world::Truth* truth, Fail fail);

  // Fairlead has written a claim or a volume. `known`: what was committed before this has reached
  // it.
  void OnWrite(const sim::world::ApiServer::Commit& commit, absl::Time known);
  // Fairlead has bound the pod.
  void OnBinding(const sim::world::PodRow& row, absl::Time known);
  // A webhook refuses what would have a volume provisioned for the pod.
  [[nodiscard]] bool IsRefused(const sim::world::PodFacts& pod) const;
  // Pods ("ns/name") that may have been placed, and wait for their volumes, or did since then.
  [[nodiscard]] std::set<std::string> AwaitingSince(absl::Time since) const;

 private:
  void OnClaim(const sim::world::VolumeClaimFacts& before,
               const sim::world::VolumeClaimFacts& after);
  void OnVolume(const sim::world::VolumeFacts& before, const sim::world::VolumeFacts& after,
                absl::Time known);
  // Why the pod may not be bound to its node yet, or at all; "" if it may.
  [[nodiscard]] std::string Wrong(const sim::world::PodRow& row,
                                  const sim::world::PodVolume& volume, absl::Time known) const;

  const sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  Fail fail_;
};

}  // namespace fairlead::simtest
