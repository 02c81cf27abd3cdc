// Logs a state of the process when it changes, not each time that it is read: the watches of kinds,
// the history of usage, the lease, and dropped events.
//
// Ownership: the logger outlives it. Thread-safety: the owner's thread. Complexity: O(kinds).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cmd/fairlead/logs/logger.h"
#include "kube/leader/lease.h"
#include "kube/watch/reflector.h"

namespace fairlead::cmd {

class StatusLog {
 public:
  // A watch that is down for less was renewed, or recovered by itself.
  static constexpr absl::Duration kFailingAfter = absl::Seconds(10);

  // `stale_after` as in AppOptions.
  StatusLog(Logger* logger, absl::Duration stale_after)
      : logger_(logger), stale_after_(stale_after) {}

  // A kind that has become missing, or has ceased to be.
  void LogMissing(const std::vector<kube::ReflectorStats>& kinds);
  // A watch that fails, is stale, or works again; and as LogMissing.
  void LogWatches(const std::vector<kube::ReflectorStats>& kinds);
  // Fair shares begin to be divided without history (`problem` is not empty), or that ends.
  void LogHistory(const std::string& problem);
  // Reads and writes of the lease that failed since the last call.
  void LogLease(const kube::LeaseStats& stats);
  // `shed` events were dropped since the executor was created.
  void LogShedEvents(int64_t shed);
  // Source and executor are created again: their watches work until they are said to fail.
  void Restart();

 private:
  enum class Watch : uint8_t { kWorks, kFails, kStale };

  Logger* logger_;
  const absl::Duration stale_after_;
  // As last logged.
  std::map<model::Kind, Watch> watches_;
  std::set<model::Kind> missing_;
  bool has_history_ = true;
  int64_t shed_ = 0, lease_errors_ = 0;
};

}  // namespace fairlead::cmd
