// What the leader believes, against what is: its pods, queues and nodes (core::View), while no
// fault lasts. checks.h lists the invariants.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "core/view.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

struct Belief {
  core::View view;
  absl::Time now;
  absl::Time began;  // the leader's process
  // Of pods whose binding the leader writes: since when, as far as that is known.
  std::map<std::string, absl::Time> binding_since;
  // When a pod, or a pod of that group, came, went or changed: by "ns/name".
  const std::map<std::string, absl::Time>* touched;
  bool reloaded = false;  // the configuration has changed since the beginning
  // Of that pod or group, lately.
  [[nodiscard]] bool IsTouched(const std::string& key) const;
};

using FailBelief = std::function<void(const std::string& invariant, const std::string& text)>;

// "view": pods, and the nodes that may be used.
void CheckPods(const Belief& belief, const sim::world::Truth& truth, const FailBelief& fail);
void CheckNodes(const Belief& belief, const sim::world::Truth& truth, const FailBelief& fail);
// "charge": a running pod counts in the queue under which it was started, a waiting group waits in
// the queue that its PodGroup names, or else its first pod; queues count what their pods hold, and
// as not preemptible what PodGroups made so, also deleted ones; and what nodes have is divided.
void CheckCharges(const Belief& belief, const sim::world::Truth& truth, const FailBelief& fail);

}  // namespace fairlead::simtest
