// How many of our pods wait or run, by class: a count over the whole state that follows its change
// log instead of being made again for each decision.
//
// A subscriber of the log: a workload that is told is marked, and its pods are counted again when
// the census is asked. What was counted for a workload is remembered with the specs of the classes,
// and exactly that is taken off. So a roll-back, which tells the reversed entries, leaves the
// counts as they were, and an id of a class that is given to another class is noticed.
//
// Ownership: borrows the state, which has to outlive it. Thread-safety: the state's. Complexity: an
// entry O(1), nothing is allocated for a workload that is known; Renew() O(pods of the workloads
// that were told since); the first one O(pods).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::plugins {

// By class, ascending: each class that has pods, once.
using PodCounts = std::vector<std::pair<state::PodClassId, int64_t>>;

// From the rows: pods of ours that have neither ended nor been deleted. O(pods).
PodCounts CountPods(const state::ClusterState& state);

class PodCensus final : public state::StateSubscriber {
 public:
  // To be subscribed by its owner, at once.
  explicit PodCensus(const state::ClusterState& state);
  [[nodiscard]] const state::ClusterState& state() const { return state_; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override {
    using Kind = state::StateChange::Kind;
    return {Kind::kWorkload, Kind::kWorkloadGone};
  }

  // Brings the counts up to date. The result grows if they, or what the classes that have pods
  // count (PodClass::charge), may be others than at the last call.
  uint64_t Renew();
  [[nodiscard]] PodCounts Counts() const;  // as of Renew()
  // Renews; the first difference from CountPods(), or empty.
  [[nodiscard]] std::string CheckConsistency();

 private:
  using Spec = std::shared_ptr<const model::PodSpec>;
  struct Part {
    Spec spec;
    state::PodClassId pod_class;
    int64_t pods;
    friend bool operator==(const Part&, const Part&) = default;
  };
  using Parts = absl::InlinedVector<Part, 1>;  // of one workload, in the order of its pods
  struct Total {
    Spec spec;  // kept alive: its address is the key
    state::PodClassId pod_class = state::kNoId;
    int64_t pods = 0;
  };

  void Mark(state::WorkloadId id);
  [[nodiscard]] Parts PartsOf(const state::Workload& workload) const;
  void Replace(state::WorkloadId id, Parts now);

  const state::ClusterState& state_;
  std::vector<Parts> parts_;  // by WorkloadId
  absl::flat_hash_map<const model::PodSpec*, Total> totals_;
  std::vector<state::WorkloadId> changed_;  // since Renew(), each once
  std::vector<bool> is_changed_;            // by WorkloadId
  uint64_t version_ = 1;
};

}  // namespace fairlead::plugins
