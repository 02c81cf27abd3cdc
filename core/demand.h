// The engine's waiting workloads as the hook's demand: entries that want nodes, in queue order, as
// runs of workloads that one entry stands for.
//
// Thread-safety: the owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autoscale-hook/demand.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// Nodes may be provisioned for the entry.
[[nodiscard]] bool WantsNodes(const engine::Waiting& entry);

// kNoId if there is none. `workload`: "namespace/name"; of a lone pod if it is no group.
[[nodiscard]] state::WorkloadId FindWorkload(const state::ClusterState& state, bool is_group,
                                             const std::string& workload);

// Gives each workload an entry of its own if what is demanded for one depends on other pods: then
// pods that are alike for the scheduler need different nodes.
void ExpandDependent(const engine::Engine& engine, std::vector<engine::Waiting>& entries);

// The demand of entries. If some pods have required terms that may select others by labels, the
// specs of those others have the labels that are read (model::PodSpec::labels_for_affinity), and
// pods that differ in them are classes of their own.
//
// Borrows its arguments; the entries must not change while it is used, except for their verdicts.
class EngineDemand final : public hook::DemandMembers {
 public:
  EngineDemand(const state::ClusterState& state, const engine::Engine& engine,
               const std::vector<engine::Waiting>& entries);

  [[nodiscard]] const hook::Demand& items() const { return items_; }
  // To append others, which have no runs.
  [[nodiscard]] hook::Demand& items() { return items_; }
  hook::Demand Release() { return std::move(items_); }
  // By item.
  [[nodiscard]] const std::vector<engine::EntryRun>& runs() const { return runs_; }

  [[nodiscard]] std::vector<std::string> Names(size_t item, int64_t count) const override;
  [[nodiscard]] std::optional<size_t> Find(bool is_group,
                                           const std::string& workload) const override;

 private:
  const state::ClusterState& state_;
  const engine::Engine& engine_;
  const std::vector<engine::Waiting>& entries_;
  std::vector<engine::EntryRun> runs_;
  hook::Demand items_;
  // For Find(), made by its first call: the first item of an entry, by its workload or by what is
  // behind it. Never iterated.
  mutable absl::flat_hash_map<state::WorkloadId, size_t> own_;
  mutable absl::flat_hash_map<uint64_t, size_t> behind_;
};

// Which workloads are demanded, from one step of the hook to the next. A step costs what has
// changed.
class DemandTracker {
 public:
  // Every change of what waits, in order.
  void Note(const engine::WaitingChanges& changes) { changes_.Append(changes); }
  // What `entries`, of the last cycle, demand now and did not at the last call, and the reverse.
  hook::DemandChanges Update(const state::ClusterState& state, const engine::Engine& engine,
                             const std::vector<engine::Waiting>& entries);

 private:
  struct Known {
    bool is_group = false;
    std::string workload;
    int64_t pods = 0;
    uint64_t range = 0;  // Waiting::equivalence_class of the entry that it is behind; or 0
  };
  engine::WaitingChanges changes_;                       // since the last Update()
  absl::flat_hash_map<state::WorkloadId, Known> known_;  // never iterated where order is seen
  // Waiting::equivalence_class -> pods of each workload, if they were demanded.
  static constexpr int64_t kNotDemanded = -1;
  absl::flat_hash_map<uint64_t, int64_t> ranges_;
  std::vector<state::WorkloadId> own_;  // had an entry of their own
};

}  // namespace fairlead::core
