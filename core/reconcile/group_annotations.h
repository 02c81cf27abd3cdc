// Annotations of PodGroups in which the state of a group survives a restart: since when its gang is
// below its minimum, and when it was evicted last. The desired values are the workload's
// (state::WorkloadDetails), read again before each attempt.
//
// A write that was refused or whose outcome is unknown is repeated after a pause. It ends if the
// group is gone, is another one of its name, or the server calls the write invalid.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(log) per write.
// Determinism: writes go in the order of Write, repetitions in the order of their times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/reconcile/due_times.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

// The format of timestamps in annotations: RFC 3339, whole seconds.
std::string AnnotationTime(absl::Time at);

enum class GroupAnnotation { kStaleSince, kLastEviction };

class GroupAnnotations {
 public:
  GroupAnnotations(const state::ClusterState& state, Backoff backoff)
      : state_(state), rules_{.backoff = backoff} {}

  // The workload's value has changed.
  void Write(state::WorkloadId workload, GroupAnnotation what);
  void Answered(const std::string& group_uid, const absl::Status& status, absl::Time now);
  // Appends the due writes.
  void Step(absl::Time now, std::vector<model::Action>& actions);
  [[nodiscard]] absl::Time wake_at() const {
    return due_.empty() ? repeats_.next() : absl::InfinitePast();
  }
  [[nodiscard]] size_t retries() const { return repeats_.size(); }

 private:
  struct Row {
    std::string ns, name;
    bool stale_since = false, last_eviction = false;  // to be written
    model::StringMap sent;                            // in flight
    WriteAttempts attempts;
  };
  // What is to be written now; empty if nothing is.
  [[nodiscard]] model::StringMap Desired(const std::string& uid, const Row& row) const;

  const state::ClusterState& state_;
  const WriteAttempts::Rules rules_;
  absl::flat_hash_map<std::string, Row> rows_;  // by the group's uid
  std::vector<std::string> due_;                // uids to look at
  DueTimes<std::string> repeats_;
};

}  // namespace fairlead::core
