// Which verdicts stand on the API server, and which writes bring it up to date: on a change of the
// hash or of the condition's reason at once, of passing numbers (position, node counts) at most
// once per refresh interval, one write a gang where a PodGroup exists, and none while nothing
// changes (design section 4).
//
// A write that failed is made again after a pause that doubles.
//
// Where the hook is off, capacity codes of gangs are written on their pods too, because an
// autoscaler of somebody else reads pods. Such pods are told again when the code changes to one for
// which no node helps, and when the hook was switched on, or markUnschedulable off, meanwhile.
//
// Of those who stand behind an entry (engine::Waiting::behind) only those are looked at who came
// since, had an entry of their own in the step before, or still have to be told; all of them when
// their verdict has changed. Their position is the one that they were told last.
//
// Thread-safety: the owner's thread. Complexity: O(entries + changes) a step; texts and hashes are
// made only for verdicts that differ from those of the step before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class VerdictBook {
 public:
  VerdictBook(const state::ClusterState& state, absl::Duration refresh, bool hook_on,
              bool emit_events)
      : state_(state), refresh_(refresh), hook_on_(hook_on), emit_events_(emit_events) {}

  // `waiting` is everything that waits now, `changes` who came and left since the last Update.
  // Appends the writes that are due.
  void Update(const engine::Engine& engine, const std::vector<engine::Waiting>& waiting,
              const engine::WaitingChanges& changes, absl::Time now,
              std::vector<model::Action>& actions);
  // A write of ours failed and has to be made again. `group`: the name is of a PodGroup, not a pod.
  void WriteFailed(const std::string& ns, const std::string& name, bool group, absl::Time now);

  // When an Update has something to write although nothing changed; infinite future if never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Since when the workload waits with the code of the last Update; infinite past if it did not
  // wait then (or its row is another workload's by now).
  [[nodiscard]] absl::Time Since(state::WorkloadId workload) const;

 private:
  // A failed write is made again after this, doubling up to the maximum.
  static constexpr absl::Duration kRetryInitial = absl::Seconds(1);
  static constexpr absl::Duration kRetryMax = absl::Minutes(1);

  // What is on the API server, or on its way to it.
  struct Told {
    std::string hash, soft, nominated;
    std::string pod_reason;    // of the condition PodScheduled of its pods; empty: none of ours
    uint64_t pods_digest = 0;  // of the pods that bear it
    absl::Time at = absl::InfinitePast();
  };
  struct Row {
    bool is_group = false;
    std::string ns, name, uid;  // ids are dealt anew: this tells whose row it is
    verdict::Verdict verdict;   // of the last Update; the two texts below are made of it
    std::string hash, soft;
    Told told;
    absl::Time since = absl::InfinitePast();
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration retry_pause = absl::ZeroDuration();
    uint64_t round = 0;  // last Update that found it waiting
  };
  struct Pause {
    absl::Time until;
    absl::Duration length;
  };
  // Those who stand behind an entry, as of the last Update.
  struct CrowdRow {
    verdict::Verdict verdict;  // of the entry, without its position
    uint64_t round = 0;
  };

  // One entry, of the workload alone.
  void TellEntry(const engine::Waiting& entry, absl::Time now, std::vector<model::Action>& actions);
  // Somebody behind `entry`, the `place`th.
  void TellBehind(const engine::Waiting& entry, state::WorkloadId workload, int64_t place,
                  absl::Time now, std::vector<model::Action>& actions);
  static bool IsRowOf(const Row& row, const state::Workload& workload);
  Row& RowOf(const state::Workload& workload, const engine::Waiting& entry, bool& code_changed,
             absl::Time now);
  void Start(Row& row, const state::Workload& workload, const engine::Waiting& entry) const;
  void Tell(const state::Workload& workload, const engine::Waiting& entry, Row& row,
            const Told& wanted, std::vector<model::Action>& actions) const;
  void WriteGroup(const state::Workload& workload, const Row& row,
                  std::vector<model::Action>& actions) const;
  void WritePods(const engine::Waiting& entry, const Row& row, const Told& wanted,
                 std::vector<model::Action>& actions) const;
  void EmitChange(const state::Workload& workload, const engine::Waiting& entry, const Row& row,
                  std::vector<model::Action>& actions) const;
  [[nodiscard]] std::string PodReason(const state::Workload& workload, const Row& row) const;
  [[nodiscard]] uint64_t PodsDigest(const engine::Waiting& entry, bool only_marked) const;
  [[nodiscard]] Row* FindRow(const state::Workload& workload) const;
  // What no longer waits: a pod's verdict was taken off by its binding; a group's is taken off
  // here.
  void Clear(const std::vector<state::WorkloadId>& gone, absl::Time now,
             std::vector<model::Action>& actions);
  void CollectUnclear(absl::Time now, std::vector<std::string>& groups);

  const state::ClusterState& state_;
  const absl::Duration refresh_;
  const bool hook_on_;
  const bool emit_events_;
  std::vector<std::unique_ptr<Row>> rows_;  // by WorkloadId; null: does not wait
  std::vector<state::WorkloadId> alone_;  // had an entry of their own in the last Update, in order
  std::set<state::WorkloadId> unfinished_;  // have a row that is still to be told
  absl::flat_hash_map<uint64_t, CrowdRow> crowds_;
  std::map<std::string, Pause> unclear_;  // groups ("namespace/name") still to be cleared
  absl::Time wake_at_ = absl::InfiniteFuture();
  uint64_t round_ = 0;
};

}  // namespace fairlead::core
