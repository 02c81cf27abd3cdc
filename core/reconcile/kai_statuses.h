// The statuses that KAI's podgroup-controller and queue-controller write, so that KAI's tools go on
// without them: status.resourcesStatus of PodGroups; allocated, allocatedNonPreemptible, requested
// and childQueues of Queues. Off unless Options::kai_status, because those controllers write the
// same fields. What counts is in core/kai_counts.h.
//
// A status is written when it says something else than the object has. The counts are renewed once
// a second, and all writes together have a pace: numbers that pass are worth no more. Queues and
// groups take turns, each in the order in which they became others. A write that was refused or
// whose outcome is unknown is repeated after a pause; 404 and 422 end it until another status is
// desired.
//
// Ownership: borrows the state. Thread-safety: the owner's thread. Complexity: O(log objects) per
// event and write; a Step O(workloads that changed), once a second.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/kai_counts.h"
#include "core/reconcile/condition_write.h"
#include "core/reconcile/due_times.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::core {

class KaiStatuses {
 public:
  static constexpr absl::Duration kWriteEvery = absl::Milliseconds(200);
  static constexpr absl::Duration kCountEvery = absl::Seconds(1);

  KaiStatuses(state::ClusterState& state, Backoff backoff)
      : counter_(state), rules_{.backoff = backoff} {}

  void Seen(const model::Queue& queue);
  void Seen(const model::PodGroup& group);
  // An empty uid: whichever is there.
  void QueueGone(absl::string_view name, absl::string_view uid);
  void GroupGone(absl::string_view ns, absl::string_view name, absl::string_view uid);

  // `object`: "ns/name" of a PodGroup, the name of a Queue.
  void Answered(model::Kind kind, absl::string_view object, absl::string_view uid,
                const absl::Status& status, absl::Time now);
  // Appends the writes that are due.
  void Step(absl::Time now, std::vector<model::Action>& actions);
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // Objects whose status may have to be written.
  [[nodiscard]] size_t queued() const { return queues_.line.size() + groups_.line.size(); }

 private:
  struct Status {
    model::KaiCounts counts;            // without zeros, by name
    std::vector<std::string> children;  // by name
    [[nodiscard]] bool SaysTheSame(const Status& other) const {
      return counts == other.counts && children == other.children;
    }
  };
  struct Row {
    std::string ns, name, uid;
    ConditionWrite<Status> status;
    bool in_line = false;
  };
  struct Table {
    model::Kind kind;
    std::map<std::string, Row, std::less<>> rows;
    std::deque<std::string> line;  // keys of rows to look at; a row of it may be gone
    DueTimes<std::string> later;   // the same, after a pause
    void Enqueue(const std::string& key);
  };
  static Status Normal(model::KaiCounts counts, std::vector<std::string> children);
  static void Show(Table& table, const model::ObjectMeta& meta, const std::string& key,
                   Status status);
  static void Gone(Table& table, absl::string_view key, absl::string_view uid);
  Table& TableOf(model::Kind kind) { return kind == model::Kind::kQueue ? queues_ : groups_; }
  [[nodiscard]] Status Desired(model::Kind kind, const Row& row) const;
  // The first of the line whose status is to be written now.
  [[nodiscard]] std::optional<model::Action> Next(Table& table, absl::Time now);

  KaiCounter counter_;
  const WriteAttempts::Rules rules_;
  Table queues_{.kind = model::Kind::kQueue, .rows = {}, .line = {}, .later = {}};
  Table groups_{.kind = model::Kind::kPodGroup, .rows = {}, .line = {}, .later = {}};
  bool groups_turn_ = false;
  absl::Time count_at_ = absl::InfinitePast(), write_at_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
