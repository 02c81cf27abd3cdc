// Keeps the usage of queues (queues/usage_record.h) across a restart: one key of our ConfigMap,
// which the leader writes at most once per interval, and only if there is something new. Nothing is
// written before the stored value is known (DecisionLoop::RestoreUsage): an unread value is not
// overwritten.
//
// No answer is awaited: the next write compensates for a lost one. A process that dies loses at
// most one interval of history.
//
// Thread-safety: the owner's thread. Complexity: O(1) while nothing is due; a write O(the record).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
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
  // Why the last write could not be made; empty if it could.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const UsageStoreOptions options_;
  bool open_ = false;
  uint64_t written_version_ = 0;
  absl::Time next_ = absl::InfinitePast();
  std::string problem_;
};

}  // namespace fairlead::core
