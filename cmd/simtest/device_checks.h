// The invariants about devices and claims; checks.h lists them with the others.
//
// Ownership: borrows. Thread-safety: none, one thread. Complexity: a write O(claims).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

// For how long a claim may be allocated while no pod that names it runs. Fairlead deallocates after
// 10 s, or is trying to bind one of the pods meanwhile.
inline constexpr absl::Duration kClaimKept = absl::Seconds(120);

class DeviceChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  DeviceChecks(const sim::EventQueue* time, const sim::world::ApiServer* server,
               const sim::world::Truth* truth, Fail fail);

  // Fairlead has written a claim. `known`: what was committed before this has reached it.
  void OnClaim(const sim::world::ApiServer::Commit& commit, absl::Time known);
  // Fairlead has bound the pod.
  void OnBinding(const sim::world::PodRow& row);
  // `calm_since`: nothing has been wrong since then.
  void WhileCalm(absl::Time calm_since);
  // A webhook refuses what would allocate a claim of the pod.
  [[nodiscard]] bool IsRefused(const sim::world::PodFacts& pod) const;

 private:
  void CheckAllocation(const sim::world::ClaimFacts& claim, absl::Time known);
  void CheckDeallocation(const sim::world::ClaimFacts& before);
  [[nodiscard]] bool IsUsed(const sim::world::ClaimFacts& claim) const;

  const sim::EventQueue* time_;
  const sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  Fail fail_;
  std::map<std::string, absl::Time> unused_since_;  // claims that are allocated
};

}  // namespace fairlead::simtest
