// nominatedNodeName of pods whose binding is slow: they have their node, and wait for a volume, a
// claim, a share of a GPU or an extender. Upstream writes it for the same reason before such a
// binding (KEP-5278): other programs see that the pod has its place, so that an autoscaler adds no
// node for it, and a process that starts places the pod on that node again.
//
//   held for some time ──Nominate──▶ written ──▶ bound: the API server clears it
//                                       └──────▶ the pod waits again: StatusUpdater clears it with
//                                                the pod's verdict (Find)
//
// A write that was refused or whose outcome is unknown is repeated while the pod is held.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(log) per write.
// Determinism: writes go in the order of Nominate, repetitions in the order of their times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/due_times.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class Nominations {
 public:
  // `send` sends an action and returns its id.
  Nominations(const state::ClusterState& state, Backoff backoff,
              std::function<uint64_t(model::Action)> send)
      : state_(state), rules_{.backoff = backoff}, send_(std::move(send)) {}

  // The binding of the pod is slow.
  void Nominate(state::PodId pod, absl::Time now);
  // The node that the pod's object may name although no verdict said so; null: none, or a verdict
  // that clears it is on its way.
  [[nodiscard]] const std::string* Find(const std::string& uid) const;
  // A verdict of the pod was sent, which has a nominatedNodeName of its own; and its answer.
  void Overwriting(const std::string& uid);
  void Overwritten(const std::string& uid, bool done);

  // The watch showed the pod.
  void PodSeen(state::PodId pod);
  // Call it before the state removes the pod.
  void PodGoing(state::PodId pod);

  // False: the id belongs to no write.
  bool Answered(uint64_t action_id, const absl::Status& status, absl::Time now);
  // Sends what is due.
  void Step(absl::Time now);
  [[nodiscard]] absl::Time wake_at() const { return repeats_.next(); }
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] size_t retries() const { return repeats_.size(); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    state::PodId pod = state::kNoId;
    std::string node;
    WriteAttempts attempts;
    bool overwriting = false;
  };
  // True if the pod is still held for that node.
  [[nodiscard]] bool IsHeld(const std::string& uid, const Row& row) const;
  void Send(const std::string& uid, Row& row, absl::Time now);

  const state::ClusterState& state_;
  const WriteAttempts::Rules rules_;
  const std::function<uint64_t(model::Action)> send_;
  absl::flat_hash_map<std::string, Row> rows_;            // by the pod's uid
  absl::flat_hash_map<uint64_t, std::string> in_flight_;  // action id -> uid
  DueTimes<std::string> repeats_;                         // uids
};

}  // namespace fairlead::core
