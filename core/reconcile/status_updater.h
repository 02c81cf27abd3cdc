// Verdicts on API objects: which ones are written, and which writes update them.
//
//   lone pod         condition PodScheduled=False (code, one sentence), the verdict annotation and
//                    nominatedNodeName, in one write
//   PodGroup         the whole verdict, in one write
//   pods of a group  the condition alone
//
// A write is *news* if the code (the condition's reason) differs from the last written one, else a
// *refresh*: the same code with another hash. News of lone pods and groups go at once, after the
// bindings of the step. Conditions of a group's pods go at kConditionsPerSecond, but at once if
// another autoscaler acts on them (the hook is off and the reason is, or was, Unschedulable).
// Refreshes of all kinds together go at kRefreshesPerSecond. No hash includes changing numbers
// (position, used, node counts): a change of them alone is never written.
//
// A write that was refused, or whose outcome is unknown, is repeated after a pause that doubles,
// unless the watch has shown by then that it was done. What the watch shows of a group is not
// believed when it waits again after its verdict was cleared: that may be from before the clear.
// A verdict is cleared when the group's bindings have been seen, or kBindings after they were
// decided: until then they may be refused, and the group waits for the same reason. A pod that was
// bound while its verdict was in flight loses the verdict when it is seen on its node.
//
// For the workloads behind an entry (engine::Waiting::behind), Update checks only those that came
// since, had an entry of their own in the step before, or still have to be written. It checks all
// of them when their verdict has changed.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(entries + changes)
// per step; texts and hashes are made only for verdicts that differ from those of the step before.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class StatusUpdater {
 public:
  static constexpr int64_t kRefreshesPerSecond = 4;
  static constexpr int64_t kConditionsPerSecond = 100;

  StatusUpdater(const state::ClusterState& state, bool hook_on, bool emit_events)
      : state_(state), hook_on_(hook_on), emit_events_(emit_events) {}

  // `waiting` is everything that waits now, `changes` what came and left since the last Update.
  // Appends the due writes.
  void Update(const engine::Engine& engine, const std::vector<engine::Waiting>& waiting,
              const engine::WaitingChanges& changes, absl::Time now,
              std::vector<model::Action>& actions);
  // Appends the writes that are due by time alone.
  void Flush(absl::Time now, std::vector<model::Action>& actions);
  // A write of ours failed and has to be repeated. `group`: the name is of a PodGroup, not a pod.
  void WriteFailed(const std::string& ns, const std::string& name, bool group, absl::Time now);
  // The watch showed the pod. Call it for pods on a node that have a verdict, and for all pods
  // while AwaitsBound().
  void PodSeen(state::PodId pod);
  [[nodiscard]] bool AwaitsBound() const { return !bound_.empty() || !leaving_.empty(); }

  // Writes that wait for their pace, and those to be repeated after a pause. O(times of those).
  [[nodiscard]] size_t queued() const {
    return news_.size() + refreshes_.size() + pods_.size() + bound_.size();
  }
  [[nodiscard]] size_t retries() const;

  // When Flush has something to write although nothing changed; infinite future if never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Since when the workload has waited with the code of the last Update; infinite past if it did
  // not wait then (or its row belongs to another workload by now).
  [[nodiscard]] absl::Time Since(state::WorkloadId workload) const;

 private:
  // The pause before a failed write is repeated.
  static constexpr Backoff kRetry = {absl::Seconds(1), absl::Minutes(1)};
  static constexpr absl::Duration kBindings = absl::Seconds(10);

  // At most so many per second on average, `burst` of them at once.
  class Pace {
   public:
    Pace(int64_t per_second, int64_t burst)
        : each_(absl::Seconds(1) / per_second), slack_((burst - 1) * each_) {}
    // Takes a place if one is free; else tells when one will be.
    bool Take(absl::Time now, absl::Time& wake_at);

   private:
    absl::Duration each_, slack_;
    absl::Time next_ = absl::InfinitePast();
  };
  struct Condition {
    std::string reason, sentence;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  struct Row {
    bool is_group = false;
    std::string ns, name, uid;  // ids are reused: this identifies the row's workload
    verdict::Verdict verdict;   // as of the last change of more than changing numbers
    std::string hash;           // of it
    std::string nominated;      // of a lone pod
    Condition condition;        // the condition that its pods should have; no reason: none
    // Last written, or in flight.
    std::string written_hash, written_nominated, written_reason;
    bool in_doubt = false;                             // that write failed, and may have been done
    bool watch_tells = true;                           // if the watch shows that write, it was done
    absl::flat_hash_map<std::string, Condition> pods;  // of a group, by uid
    bool queued_news = false, queued_refresh = false, queued_pods = false;
    bool look_at_pods = true;  // conditions of a group's pods may differ from the desired ones
    bool tell_event = false;
    bool cleared = false;  // an earlier verdict of it was: the watch may show what came before
    bool leaving = false;  // in leaving_: nothing is written
    uint64_t version = 0;  // of the workload, at the last check of its pods
    absl::Time since = absl::InfinitePast();
    absl::Time retry_at = absl::InfinitePast();
    int failures = 0;    // in a row
    uint64_t round = 0;  // last Update that found it waiting
  };
  struct Pause {
    absl::Time until;
    int failures = 0;
  };
  // The workloads behind an entry, as of the last Update.
  struct ClassRow {
    verdict::Verdict verdict;  // of the entry, without its position
    uint64_t round = 0;
  };

  // Updates one entry, of the workload alone.
  void Renew(const engine::Waiting& entry, absl::Time now);
  // The `place`th behind `entry`.
  void RenewBehind(const engine::Waiting& entry, state::WorkloadId workload, int64_t place,
                   absl::Time now);
  static bool IsRowOf(const Row& row, const state::Workload& workload);
  Row& RowOf(const state::Workload& workload, const engine::Waiting& entry, absl::Time now);
  void Start(Row& row, const state::Workload& workload) const;
  void SetCondition(const state::Workload& workload, Row& row) const;
  void Enqueue(state::WorkloadId id, Row& row);
  // True if the watch shows the last write.
  [[nodiscard]] bool ShowsWritten(const state::Workload& workload, const Row& row) const;
  // Something differs from the last write, or that write is in doubt.
  static bool HasNews(const Row& row) {
    return row.in_doubt || row.written_reason != row.condition.reason;
  }
  static bool HasRefresh(const Row& row) {
    return row.written_hash != row.hash || row.written_nominated != row.nominated;
  }
  [[nodiscard]] Row* FindRow(const state::Workload& workload) const;

  void Write(const state::Workload& workload, Row& row, std::vector<model::Action>& actions) const;
  void WriteGroup(const state::Workload& workload, const Row& row,
                  std::vector<model::Action>& actions) const;
  void WritePod(const state::PodRecord& pod, const Row& row, bool whole,
                std::vector<model::Action>& actions) const;
  // Writes conditions of a group's pods; false if the pace delays some of them.
  bool WritePods(const state::Workload& workload, Row& row, absl::Time now,
                 std::vector<model::Action>& actions);
  void EmitChange(const state::Workload& workload, const Row& row,
                  std::vector<model::Action>& actions) const;

  void FlushNews(absl::Time now, std::vector<model::Action>& actions);
  void FlushPods(absl::Time now, std::vector<model::Action>& actions);
  void FlushRefreshes(absl::Time now, std::vector<model::Action>& actions);
  void FlushBound(absl::Time now, std::vector<model::Action>& actions);
  // Clears verdicts of workloads that no longer wait: a pod's binding removed its verdict; a
  // group's is removed here.
  void Clear(const std::vector<state::WorkloadId>& gone, absl::Time now,
             std::vector<model::Action>& actions);
  // True if the verdict stays until the bindings of the group are known.
  bool KeepForBindings(state::WorkloadId id, absl::Time now);
  // Clears the verdicts of groups in leaving_ whose bindings are known, or overdue.
  void ClearBound(absl::Time now, std::vector<model::Action>& actions);
  void WriteClear(std::vector<std::string> groups, std::vector<model::Action>& actions);
  [[nodiscard]] bool WasCleared(const state::Workload& workload) const;
  void CollectUnclear(absl::Time now, std::vector<std::string>& groups);

  const state::ClusterState& state_;
  const bool hook_on_;
  const bool emit_events_;
  std::vector<std::unique_ptr<Row>> rows_;  // by WorkloadId; null: does not wait
  std::vector<state::WorkloadId> alone_;  // had an entry of their own in the last Update, in order
  std::deque<state::WorkloadId> news_, refreshes_, pods_;
  std::map<absl::Time, std::vector<state::WorkloadId>> retries_;
  absl::flat_hash_map<uint64_t, ClassRow> equivalence_classes_;
  // Groups that wait no longer, and whose bindings are not known -> until when they may stay so.
  std::map<state::WorkloadId, absl::Time> leaving_;
  // Groups ("namespace/name") that this process has cleared -> uid. May include some that are gone.
  absl::flat_hash_map<std::string, std::string> cleared_;
  size_t trim_cleared_at_ = 1024;
  std::map<std::string, Pause> unclear_;  // groups ("namespace/name") still to be cleared
  std::map<state::PodId, Pause> bound_;   // have a verdict although they are on a node
  Pace refresh_pace_{kRefreshesPerSecond, 1};
  Pace pods_pace_{kConditionsPerSecond, 32};
  absl::Time wake_at_ = absl::InfiniteFuture();
  uint64_t round_ = 0;
};

}  // namespace fairlead::core
