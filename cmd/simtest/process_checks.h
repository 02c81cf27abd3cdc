// The invariants about the program as a process: how it ends, reloads its files, obeys the server's
// pace, and bounds what it holds in memory. checks.h lists them with the others.
//
// Ownership: borrows. Thread-safety: none, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "cmd/fairlead/app/app_stats.h"
#include "cmd/simtest/replica.h"
#include "cmd/simtest/settings_files.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"

namespace fairlead::simtest {

// AppOptions::drain_timeout and release_timeout, and what their rounds take.
inline constexpr absl::Duration kStopWithin = absl::Seconds(27);
// cmd::kFilePoll, and a turn of the loop.
inline constexpr absl::Duration kReadWithin = absl::Seconds(8);
// Changes of objects in this time may be queued twice, where the owner stood still.
inline constexpr absl::Duration kQueueMemory = absl::Seconds(200);
// Without a change for so long, no write waits.
inline constexpr absl::Duration kQuiet = absl::Seconds(60);

class ProcessChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  ProcessChecks(const sim::EventQueue* time, sim::world::ApiServer* server,
                const SettingsFiles* files, Fail fail);

  // The files have changed.
  void FilesWritten() { files_written_at_ = time_->now(); }
  // It was told to stop. `undisturbed`: nothing else is wrong.
  void Stopping(size_t replica, const std::string& identity, bool undisturbed);
  void EverySecond(size_t index, const Replica& replica);
  // `quiet_for`: how long nothing has changed or failed.
  void WhileCalm(const Replica& replica, absl::Duration quiet_for);

 private:
  struct Stop {
    std::string identity;  // empty: none
    absl::Time since;
    bool undisturbed = false;
  };

  void OnCommit(const sim::world::ApiServer::Commit& commit);
  void CheckStop(size_t index, const Replica& replica);
  void CheckFiles(const Replica& replica);
  void CheckQueues(const Replica& replica);
  void CheckLoop(const Replica& replica, int64_t objects);
  // How many objects there are, and were lately.
  int64_t Objects();

  const sim::EventQueue* time_;
  sim::world::ApiServer* server_;
  const SettingsFiles* files_;
  Fail fail_;
  absl::Time files_written_at_ = absl::InfinitePast();
  std::array<Stop, 2> stops_;
  std::set<std::string> released_;  // lives that have given their lease back
  std::string holder_;
  std::map<std::string, absl::Time> busy_since_;  // by identity: while quiet, something waits
  int64_t live_ = 0;
  std::deque<absl::Time> removed_;
};

}  // namespace fairlead::simtest
