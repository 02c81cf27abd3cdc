// What the queues are charged with, kept in step with ClusterState: allocations as they happen,
// requests when a workload changes.
//
// Ownership: borrows state and tree. Thread-safety: the owner's thread. Complexity: O(depth) a
// change; Recount O(pods).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "queues/ledger.h"
#include "queues/lending.h"
#include "queues/tree.h"
#include "queues/variant.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class AllocationTracker final : public state::StateSubscriber {
 public:
  AllocationTracker(const state::ClusterState& state, const queues::QueueTree& tree);

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // Counts again what the workload asks for: its pods that run or wait without a gate.
  void RefreshRequested(const state::Workload& workload);
  // The same if that may have changed since the last time. O(1) if it has not.
  void CatchUp(const state::Workload& workload) {
    if (IsStale(workload.id)) RefreshRequested(workload);
  }
  // From nothing; after queues appeared or moved. `also` sees each workload while it is at hand: a
  // second walk over many costs as much as the first.
  void Recount(const std::function<void(const state::Workload&)>& also = nullptr);
  [[nodiscard]] bool RecountNeeded() const { return recount_needed_; }

  [[nodiscard]] const queues::QueueLedger& ledger() const { return ledger_; }
  // Pods that are charged to the leaf queue.
  [[nodiscard]] int64_t PodsOf(queues::QueueId leaf) const {
    return leaf < pods_.size() ? pods_[leaf] : 0;
  }
  // For demand that has no pod on any node; the caller takes it back.
  void Charge(queues::QueueId leaf, const model::Resources& amount, bool preemptible);
  void Release(queues::QueueId leaf, const model::Resources& amount, bool preemptible);

  // What the pod counts against its queue, also for its variant (queues/variant.h): that of the
  // node it is on, else the only one that it can run on.
  [[nodiscard]] model::Resources ChargeOf(const state::PodRecord& pod) const;
  // What fair share divides: ClusterState::total_for_queues(), and each variant that some queue
  // names. O(nodes) if one does.
  [[nodiscard]] model::Resources Total() const;
  // What the node can be given to queues.
  [[nodiscard]] model::Resources CapacityOf(const state::NodeInfo& node) const;

  // While a cycle runs and queues do not change: follows what queues keep back (queues/lending.h).
  void OpenLending();
  void CloseLending() { lending_.reset(); }
  // Some queue keeps something back.
  [[nodiscard]] bool lending() const { return lending_.has_value(); }
  [[nodiscard]] std::optional<queues::LendingRefusal> CheckLending(
      queues::QueueId leaf, const model::Resources& request, const model::Resources& total) const;
  [[nodiscard]] model::Resources LendingLoad() const;

  // The first difference to a count from nothing, or empty. What a workload asks for is compared
  // unless the workload has changed since RefreshRequested().
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  static constexpr queues::QueueId kNoQueue = ~queues::QueueId{0};
  // What a workload asks for, by queue: what runs asks where it was started, the rest where the
  // workload is now. Mostly one.
  struct Requested {
    queues::QueueId queue = kNoQueue;
    model::Resources amount;
    friend bool operator==(const Requested&, const Requested&) = default;
  };
  using Requests = absl::InlinedVector<Requested, 1>;
  // There is one for each pod: the order of the fields keeps it at 24 bytes.
  struct Charged {
    queues::QueueId queue = kNoQueue;
    queues::Variant variant;  // at that time
    // Of parts it depends on the node that the pod has left meanwhile.
    int64_t with_variants = 0;
    bool preemptible = true;
    friend bool operator==(const Charged&, const Charged&) = default;
  };

  // Of a pod that counts against its queue: also a queue that has been deleted since.
  [[nodiscard]] queues::QueueId QueueOf(const state::PodRecord& pod) const;
  [[nodiscard]] Requests RequestedBy(const state::Workload& workload) const;
  [[nodiscard]] queues::Variant VariantOf(const state::PodRecord& pod) const;
  [[nodiscard]] bool IsStale(state::WorkloadId workload) const {
    return workload >= stale_.size() || stale_[workload];
  }
  // True if a pod that waited in the queue, and has just been charged to it, asks for as much as
  // before.
  [[nodiscard]] bool AsksTheSame(const state::PodRecord& pod,
                                 const state::Workload& workload) const;
  void OnCharged(const state::PodRecord& pod);
  void OnReleased(const state::PodRecord& pod);
  void OnWorkloadGone(state::WorkloadId id);
  // The node's variant may be another one: what runs on it is charged again.
  void RefreshNode(const state::NodeInfo& node);

  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  queues::QueueLedger ledger_;
  std::optional<queues::LendingFloors> lending_;
  bool recount_needed_ = false;      // queues appeared, went or moved since the last Recount()
  std::vector<int64_t> pods_;        // charged ones, by QueueId of the leaf
  std::vector<Charged> charged_;     // by PodId
  std::vector<Requests> requested_;  // by WorkloadId
  std::vector<bool> stale_;          // by WorkloadId: changed since RefreshRequested()
  // The last pod that stopped waiting, and whether its workload was up to date before it did.
  state::PodId started_ = state::kNoId;
  bool started_up_to_date_ = false;
};

}  // namespace fairlead::engine
