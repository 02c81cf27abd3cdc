// Keeps the usage of queues (queues/usage_record.h) across a restart: one key of our ConfigMap,
// which the leader writes at most once per interval, and only if there is something new. Nothing is
// written before the stored value is known (DecisionLoop::RestoreUsage): an unread value is not
// overwritten.
//
// One write is in flight at a time. A failed one is repeated with the record as it is then
// (base/write_attempts.h). A process that dies loses at most one interval of history.
//
// Thread-safety: the owner's thread. Complexity: O(1) while nothing is due; a write O(the record).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"
#include "core/options.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

class UsageStore {
 public:
  explicit UsageStore(const UsageStoreOptions& options) : options_(options) {}

  // The stored value is known: it may be replaced from now on.
  void Open() { open_ = true; }
  [[nodiscard]] bool is_open() const { return open_; }

  // Appends the write that is due, if there is one. An error of the record's encoding is in
  // problem().
  void Update(const engine::Engine& engine, absl::Time now, std::vector<model::Action>& actions);
  // The answer to the last write.
  void Answered(const absl::Status& status, absl::Time now);
  // When a failed write is due again; infinite future if none failed.
  [[nodiscard]] absl::Time wake_at() const;
  // Why the last write could not be made; empty if it could.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const UsageStoreOptions options_;
  bool open_ = false;
  uint64_t sent_version_ = 0, written_version_ = 0;
  WriteAttempts write_;
  absl::Time next_ = absl::InfinitePast();
  std::string problem_;
};

}  // namespace fairlead::core
