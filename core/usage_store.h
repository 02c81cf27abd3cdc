// Keeps what queues have used (queues/usage_record.h) beyond a restart: one key of a ConfigMap of
// ours, written by the leader at most once an interval, and only where there is something new.
// Until somebody has said what stands there (DecisionLoop::RestoreUsage) nothing is written: what
// could not be read is not overwritten.
//
// No answer is waited for: the next write makes up for one that was lost. At most an interval of
// history goes with a process that dies.
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

  // What is stored is known: it may be replaced from now on.
  void Open() { open_ = true; }
  [[nodiscard]] bool is_open() const { return open_; }

  // Appends the write that is due, if one is. An error of the record's encoding is in problem().
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
