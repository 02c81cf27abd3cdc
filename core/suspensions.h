// Suspends workloads instead of evicting their pods, where their kind has a field for that
// (`suspend` of the table of kinds): their controller ends the pods, counts none of them as failed,
// and makes no others meanwhile. When they have ended the workload is released: its controller
// makes its pods anew, and these wait in the queue as those of an eviction do, with their verdict.
//
//   victims ──▶ owners are read ──▶ suspended ──▶ its pods end ──▶ released
//                    └──────────────────┴──────────────┴──▶ evicted, one by one
//
// A workload is suspended if all of its pods that hold a node are to go at once, no
// PodDisruptionBudget selects one of them (only the eviction API counts for those), and no other
// program suspends it (Kueue). All else is evicted: a part of a gang, a workload whose owner may
// not be read or written, and what its controller has not begun to end after kStops. To the rest of
// the program an eviction under way is what this is, until the watch shows that the pod goes.
//
// Meanwhile other pods of its PodGroup are held back: they would be ended too.
//
// The object itself says that it is suspended, by whom and why, in the write that suspends it. A
// write has the version that was read as its precondition, and after an answer that says nothing
// the object is read again, so no write is done twice, and none comes late. A new leader lists what
// is suspended (ListSuspended) and releases it: what a leader suspended does not depend on its
// life. Only what has our mark is released. Who wants it to stay suspended removes the label.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. No clock. Determinism: in the
// order of the decisions. Complexity: Take O(pods of the workloads); Step O(pods that end).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/options.h"
#include "document/json.h"
#include "grouping/grouping.h"
#include "grouping/owners.h"
#include "scheduler/model/action.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class Suspensions {
 public:
  // The controller has so long to begin. A new leader waits as long before it releases.
  static constexpr absl::Duration kStops = absl::Seconds(15);
  // Pods that are still ending after so long no longer hold up the release.
  static constexpr absl::Duration kEnds = absl::Minutes(2);
  // A workload is believed to be gone when nothing else was answered for so long, and what is
  // suspended is listed once more after it: one 404 may be a mistake.
  static constexpr absl::Duration kGone = absl::Minutes(2);
  // What was decided earlier may serve nothing any more.
  static constexpr absl::Duration kFresh = absl::Seconds(2);

  // `marks`: values of kSuspendedByAnnotation that are ours; the first one is written.
  Suspensions(const state::ClusterState& state, const GroupingOptions& options,
              std::vector<std::string> marks, Backoff backoff);
  [[nodiscard]] bool enabled() const { return options_.enabled && options_.suspend; }

  // Another process has led, or none.
  void BecomeLeader();
  // Evictions of one step, those of a workload adjacent: takes the workloads that may be suspended,
  // and returns the others.
  std::vector<model::EvictPod> Take(std::vector<model::EvictPod> evictions);

  // Answers to actions of Step.
  void ObjectRead(const model::ReadObject& read, const model::ActionResult& result, absl::Time now);
  void Written(uint64_t number, const absl::Status& status, absl::Time now);
  void Listed(const std::string& group, const std::string& kind, const model::ActionResult& result,
              absl::Time now);

  struct Progress {
    std::vector<model::EvictPod> evict;  // of those taken: these are to be evicted after all
    std::vector<std::string> late;       // uids: likewise, if they still serve
    std::vector<std::string> going;      // uids of those taken: the watch shows that they go
    // Of a PodGroup: its waiting pods are held back, or no longer.
    struct Hold {
      std::string group;  // "namespace/name"
      std::string why;
      bool held = false;
    };
    std::vector<Hold> holds;
    std::vector<model::Action> actions;
  };
  // `may_suspend`: false while the watch is stale.
  Progress Step(absl::Time now, bool may_suspend);
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Why a pod that was seen is held back; empty: it is not.
  [[nodiscard]] std::string HeldBy(const model::Pod& pod) const;
  // Suspended, or perhaps, and not released.
  [[nodiscard]] size_t suspended() const;

 private:
  enum class Phase : uint8_t {
    kOwners,   // its owners are read
    kSuspend,  // it is to be suspended, or was perhaps
    kEnding,   // it is suspended, its pods end
    kRelease,
  };
  struct Row {
    Phase phase = Phase::kOwners;
    std::vector<model::EvictPod> pods;  // taken, and not seen to go
    std::vector<model::EvictPod> ends;  // not seen to be gone
    // Of the first pod, and what was read since it was taken, by Text().
    grouping::ObjectName pod;
    std::map<std::string, absl::StatusOr<Json>> objects;
    std::optional<grouping::ObjectName> needs;  // is to be read
    bool reading = false;
    int64_t failed_reads = 0;  // in a row
    absl::Time gone_since = absl::InfiniteFuture();
    absl::Time read_due = absl::InfinitePast();  // of the next one
    // What is suspended, and the PodGroup of its pods; no name: the pod is alone.
    grouping::ObjectName object;
    std::string path, reason, group;
    std::optional<Json> read;  // it, for the next write
    WriteAttempts write;
    absl::Time taken = absl::InfinitePast();       // when the pods were
    absl::Time since = absl::InfinitePast();       // of the phase
    bool hopeless = false;                         // it cannot be suspended
    bool done = false;                             // it is released, or is not ours to release
    absl::Time not_before = absl::InfinitePast();  // of the release
  };
  struct KindRow {
    std::string group, kind, path;
    WriteAttempts list;
    bool again = false;  // it was listed once
  };
  class Lookup;

  // ---- what may be suspended
  // The pod as the state has it, if it is that one; else kNoId.
  [[nodiscard]] state::PodId Find(const model::EvictPod& pod) const;
  // No other pod of the workload holds a node.
  [[nodiscard]] bool AllGo(state::WorkloadId workload,
                           const std::vector<model::EvictPod>& pods) const;
  // Of those that are there. False: none is.
  [[nodiscard]] bool MayTake(const std::vector<model::EvictPod>& pods) const;
  // The group that owners say is the workload of these pods.
  [[nodiscard]] bool IsWorkload(const grouping::Grouping& grouping, const Row& row) const;
  [[nodiscard]] bool HasOurMark(const Json& object) const;

  // ---- answers
  // False: it cannot be suspended.
  bool FindOwner(Row& row, absl::Time now);
  bool ReadBeforeSuspending(Row& row, const absl::StatusOr<Json>& object, absl::Time now);
  void Enter(Row& row, Phase phase, absl::Time now);

  // ---- parts of a step
  void Read(uint64_t number, Row& row, const grouping::ObjectName& object, absl::Time now,
            std::vector<model::Action>& actions);
  void Write(uint64_t number, Row& row, bool suspended, absl::Time now,
             std::vector<model::Action>& actions);
  // These return true if nothing is left to do for the row.
  bool StepRow(uint64_t number, Row& row, absl::Time now, bool may_suspend, Progress& progress);
  bool Suspend(uint64_t number, Row& row, absl::Time now, Progress& progress);
  bool End(Row& row, absl::Time now, Progress& progress);
  bool Release(uint64_t number, Row& row, absl::Time now, Progress& progress);
  // Its pods are evicted, but for those that go already.
  void Evict(Row& row, absl::Time now, Progress& progress) const;
  void ListKinds(absl::Time now, std::vector<model::Action>& actions);
  // Its waiting pods are held back while it is, or is being, suspended.
  void Hold(Row& row, bool held, Progress& progress);
  void WakeAt(absl::Time at) { wake_at_ = std::min(wake_at_, at); }

  const state::ClusterState& state_;
  const GroupingOptions options_;
  const std::vector<std::string> marks_;
  const WriteAttempts::Rules rules_;
  std::map<uint64_t, Row> rows_;             // by number
  std::map<std::string, std::string> held_;  // PodGroups, by key -> why
  std::vector<KindRow> kinds_;               // to be listed
  uint64_t next_ = 1;
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
