// Passes changed settings to a running Application; those that cannot be used change nothing.
//
// Ownership: application and logger outlive it; a task that it has posted refers to it, so it
// outlives the last turn of the application. Thread-safety: Check by one thread at a time; GetStats
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "cmd/fairlead/app/app.h"
#include "cmd/fairlead/logs/logger.h"
#include "cmd/fairlead/settings/settings_watch.h"

namespace fairlead::cmd {

// How often the files are checked; SIGHUP checks them at once.
inline constexpr absl::Duration kFilePoll = absl::Seconds(5);

struct ReloadStats {
  int64_t ok = 0, failed = 0;
  bool stale = false;  // the files have settings that cannot be used
};

class Reloader {
 public:
  // `watch` is loaded. `adjust`: what flags say beside the files.
  Reloader(SettingsWatch watch, Application* application, Logger* logger,
           std::function<void(core::Options&)> adjust)
      : watch_(std::move(watch)),
        application_(application),
        logger_(logger),
        adjust_(std::move(adjust)) {}

  // Reads the files if they have changed. `asked`: says so too if they have not.
  void Check(bool asked);
  [[nodiscard]] ReloadStats GetStats() const { return {ok_, failed_, stale_}; }

 private:
  void Fail(const absl::Status& why);

  SettingsWatch watch_;
  Application* const application_;
  Logger* const logger_;
  const std::function<void(core::Options&)> adjust_;
  std::atomic<int64_t> ok_{0}, failed_{0};
  std::atomic<bool> stale_{false};
};

}  // namespace fairlead::cmd
