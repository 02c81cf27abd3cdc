// Workloads that hold something, leaf queue by leaf queue, the first victim at the front:
// kept up to date by looking only at workloads that changed, so that a search for victims costs
// what it visits and not what exists.
//
// A workload is filed under the queue that it is charged to (ClusterState::QueueOf).
// In it: preemptible workloads of existing queues with a pod that is being bound, is bound, runs or
// has a promise.
// Order: the reverse of the queue order (pending.h); where priority, elastic state and age are
// equal, the pod that started last goes first (it loses the least work), and only then the uid
// decides. (KAI goes straight to the uid, which means nothing.) Where short jobs are served first
// (state::JobOrder) age is left out: its reverse would take the long jobs, which lose the most.
//
// It is built by the first CatchUp(): a cluster in which victims are never searched for pays
// nothing. Ownership: borrows state and tree. Thread-safety: the owner's thread. Complexity: O(1) a
// Touch(), O(log n) a touched workload in CatchUp(), O(workloads log n) for the first one. Memory:
// about 200 bytes a workload in it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "queues/tree.h"
#include "scheduler/engine/pending.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class VictimIndex final : public state::StateSubscriber {
 public:
  using Leaf = std::set<QueueOrderKey, std::greater<>>;

  VictimIndex(const state::ClusterState& state, const queues::QueueTree& tree)
      : state_(state), tree_(tree) {}

  // What changed, appeared or went is read again by the next CatchUp(); everything if queues
  // appeared or went.
  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // Before a search; what a search itself changes is only touched, so that its walk stays valid.
  void CatchUp();

  // Its place among the others of its leaf, as its row is now.
  [[nodiscard]] QueueOrderKey KeyOf(const state::Workload& workload) const;
  // The queue that gets back what the workload gives: that of its first pod that runs.
  [[nodiscard]] const std::string& QueueOf(const state::Workload& workload) const;
  // Leaves with at least one workload.
  [[nodiscard]] const std::map<queues::QueueId, Leaf>& leaves() const { return leaves_; }

  // The first difference to an index that is made from nothing, or empty. Of what has changed since
  // the last CatchUp() it says nothing.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  static constexpr queues::QueueId kNoQueue = PendingIndex::kNoQueue;
  struct Place {
    bool touched = false;
    queues::QueueId queue = kNoQueue;  // kNoQueue: not in the index
    Leaf::const_iterator position;     // where it is in its leaf
  };
  void Clear();
  void Touch(state::WorkloadId id);
  void Refresh(state::WorkloadId id);

  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  bool built_ = false;
  std::map<queues::QueueId, Leaf> leaves_;
  std::vector<Place> places_;  // by WorkloadId
  std::vector<state::WorkloadId> touched_;
};

}  // namespace fairlead::engine
