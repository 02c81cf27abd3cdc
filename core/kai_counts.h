// What KAI's podgroup-controller and queue-controller count, from the state: of a PodGroup the
// requests of its pods, of a Queue those of its PodGroups and of its child queues. Only with
// Options::kai_status.
//
// As in KAI v0.17 (facts: KAI's own code, pkg/podgroupcontroller and pkg/queuecontroller):
//   requested                 pods that have not ended, gated and terminating ones too
//   allocated                 of these, those that the API server shows on a node
//   allocatedNonPreemptible   allocated, if the group is not preemptible
//   nvidia.com/gpu            whole GPUs; of a gpu-fraction in `requested` for each of its devices,
//                             in `allocated` once, however many devices it has; of gpu-memory in
//                             `allocated` its part of one GPU of its node, rounded up to 1/1000
//   run.ai/gpu.memory         in `requested`, MiB of gpu-memory for each device
//   the name of a DeviceClass devices that ResourceClaims ask for, if the name contains "gpu"
// Where we differ: a pod without a PodGroup counts for its queue (KAI's pod-grouper makes a group
// of one); init containers and overhead count (model::PodSpec::requests); a group that became
// preemptible has no non-preemptible part (KAI keeps the last one); a cycle of queues counts once.
//
// Ownership: borrows the state, and is subscribed to it. Thread-safety: the owner's thread.
// Complexity: OnChange O(1); Count() O(pods of the workloads that changed * depth of their queue),
// and O(workloads) after a parent link has changed. Determinism: sums are exact integers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/workload_objects.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// Of one workload; of one that is gone, nothing.
model::KaiCounts CountOfWorkload(const state::ClusterState& state, const state::Workload& workload);

class KaiCounter final : public state::StateSubscriber {
 public:
  explicit KaiCounter(state::ClusterState& state);
  ~KaiCounter() override;
  KaiCounter(const KaiCounter&) = delete;
  KaiCounter& operator=(const KaiCounter&) = delete;

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // The Queue object; an empty parent: top of the tree.
  void QueueSeen(const std::string& name, const std::string& parent);
  void QueueGone(const std::string& name);

  // Something has changed since Count().
  [[nodiscard]] bool Due() const { return !line_.empty() || reshaped_ || !changed_.IsEmpty(); }
  // Names of PodGroups ("ns/name") and queues whose counts may be others than at the last call.
  struct Changed {
    std::set<std::string> groups, queues;
    [[nodiscard]] bool IsEmpty() const { return groups.empty() && queues.empty(); }
  };
  Changed Count();

  // As of the last Count(); without zeros, by name.
  [[nodiscard]] model::KaiCounts OfGroup(absl::string_view ns, absl::string_view name) const;
  [[nodiscard]] model::KaiCounts OfQueue(const std::string& name) const;
  // By name.
  [[nodiscard]] std::vector<std::string> ChildrenOf(const std::string& queue) const;

 private:
  __extension__ typedef __int128 Wide;
  // A sum from which terms are taken off again.
  struct Sum {
    std::map<std::string, Wide> amounts;
    void Add(const model::ResourceList& list, int sign);
    [[nodiscard]] model::ResourceList ToList() const;
  };
  struct Sums {
    Sum allocated, allocated_non_preemptible, requested;
  };
  struct Counted {
    std::string queue;
    std::string group;  // "ns/name"; empty: a pod without a PodGroup
    model::KaiCounts counts;
  };
  void Mark(state::WorkloadId id);
  void Forget(state::WorkloadId id);
  // Adds the counts to the queue and all above it, or takes them off.
  void Charge(const Counted& counted, int sign);
  void Recharge();

  state::ClusterState& state_;
  absl::flat_hash_map<state::WorkloadId, Counted> counted_;
  std::map<std::string, state::WorkloadId, std::less<>> groups_;  // by "ns/name"
  std::map<std::string, std::string> parents_;                    // of Queue objects
  std::map<std::string, std::set<std::string>> children_;
  std::map<std::string, Sums> totals_;   // by queue, its children's included
  std::vector<state::WorkloadId> line_;  // marked
  std::vector<bool> marked_;             // by id
  bool reshaped_ = false;
  Changed changed_;
};

}  // namespace fairlead::core
