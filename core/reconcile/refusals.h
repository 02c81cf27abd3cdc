// Refused bindings by workload: their text in the verdict, and when a gang that cannot be completed
// gives up its pods.
//
// A gang with a refused binding is half bound. The pod is tried again, with growing pauses. The
// gang is *broken* if it is still below its minimum `grace` after the first refusal, not counting
// the refused pods. Then its bound pods are evicted, and it is not tried for a time that doubles
// with each break. From then on the refused pods are bound first, and the others wait for them
// (bindings.h, Permit), so the gang does not become half bound again.
//
// A row is removed when every refused pod of it is bound or gone.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(rows) per step;
// there are as many rows as workloads with refused bindings. Determinism: ordered maps.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

struct GangRefusalOptions {
  // How long a gang may stay half bound after the first refusal; negative: for ever.
  absl::Duration grace = absl::Seconds(60);
  // The pause after the first break, and the longest.
  Backoff pause = {absl::Seconds(60), absl::Minutes(30)};
};

class BindingRefusals {
 public:
  struct Row {
    std::string uid;                            // of the workload: ids are reused
    std::map<std::string, std::string> pods;    // name -> the last reason of a refusal
    absl::Time since = absl::InfiniteFuture();  // the first refusal since the last break
    int breaks = 0;
    bool broken = false;  // its bound pods have to go
    int attempts = 0;     // at evicting them, since the last break
    absl::Time look_at = absl::InfinitePast();
  };

  BindingRefusals(const state::ClusterState& state, GangRefusalOptions options)
      : state_(state), options_(options) {}

  // The binding, or something that it needs, was refused.
  void Refused(const state::PodRecord& pod, const std::string& reason, absl::Time now);
  // The binding was accepted.
  void Accepted(const state::PodRecord& pod);
  // Null: nothing was refused.
  [[nodiscard]] const Row* Find(const state::Workload& workload) const;
  // True if refused since its gang was broken or is about to be.
  [[nodiscard]] bool Includes(const state::PodRecord& pod) const;

  // A gang that has to give up its pods.
  struct Break {
    state::WorkloadId workload = state::kNoId;
    std::vector<state::PodId> evict;  // bound or running
    std::vector<state::PodId> hold;   // not to be tried before `until`
    absl::Time until;
    std::string message;
  };
  // `awaits_answer`: a first attempt to bind the pod is in flight.
  std::vector<Break> TakeBreaks(absl::Time now,
                                const std::function<bool(state::PodId)>& awaits_answer);
  // True if since the last call a pod has left the rows: what is told of its workload has to
  // change.
  bool TakeChanges();
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] const std::map<state::WorkloadId, Row>& rows() const { return rows_; }

 private:
  [[nodiscard]] bool IsRowOf(const Row& row, const state::Workload& workload) const;
  // Drops pods that are bound or gone; false if nothing is left.
  bool Renew(const state::Workload& workload, Row& row);
  [[nodiscard]] bool IsHalfBound(const state::Workload& workload, const Row& row) const;

  const state::ClusterState& state_;
  const GangRefusalOptions options_;
  std::map<state::WorkloadId, Row> rows_;
  absl::Time wake_at_ = absl::InfiniteFuture();
  bool changed_ = false;
};

}  // namespace fairlead::core
