#include "cmd/fairlead/logs/status_log.h"

#include <utility>

namespace fairlead::cmd {

void StatusLog::LogMissing(const std::vector<kube::ReflectorStats>& kinds) {
  for (const kube::ReflectorStats& stats : kinds) {
    if (stats.missing == missing_.contains(stats.kind)) continue;
    const char* const kind = model::KindTitle(stats.kind);
    if (stats.missing) {
      missing_.insert(stats.kind);
      logger_->Warning("kind is not installed, or may not be read; it counts as empty",
                       {{"kind", kind}, {"problem", stats.last_error}});
    } else {
      missing_.erase(stats.kind);
      logger_->Info("kind is installed", {{"kind", kind}});
    }
  }
}

void StatusLog::LogWatches(const std::vector<kube::ReflectorStats>& kinds) {
  LogMissing(kinds);
  for (const kube::ReflectorStats& stats : kinds) {
    const Watch watch = stats.IsStale(stale_after_)      ? Watch::kStale
                        : stats.down_for > kFailingAfter ? Watch::kFails
                                                         : Watch::kWorks;
    if (std::exchange(watches_[stats.kind], watch) == watch) continue;
    const char* const kind = model::KindTitle(stats.kind);
    const std::string age =
        absl::FormatDuration(absl::Trunc(stats.since_last_event, absl::Seconds(1)));
    if (watch == Watch::kWorks) {
      logger_->Info("watch works again", {{"kind", kind}});
    } else if (watch == Watch::kFails) {
      logger_->Warning("watch fails; it will be retried",
                       {{"kind", kind}, {"last_word_ago", age}, {"problem", stats.last_error}});
    } else {
      logger_->Error("objects may be out of date; nothing is evicted, provisioned or removed",
                     {{"kind", kind}, {"last_word_ago", age}, {"problem", stats.last_error}});
    }
  }
}

void StatusLog::LogHistory(const std::string& problem) {
  // Only whether there is one: the age of a report, which it names, changes each time.
  if (std::exchange(has_history_, problem.empty()) == problem.empty()) return;
  if (has_history_) {
    logger_->Info("fair shares are divided with history again");
  } else {
    logger_->Warning("fair shares are divided without history", {{"problem", problem}});
  }
}

void StatusLog::LogLease(const kube::LeaseStats& stats) {
  if (stats.errors == std::exchange(lease_errors_, stats.errors)) return;
  logger_->Warning("the lease could not be read or written", {{"problem", stats.last_error}});
}

void StatusLog::LogShedEvents(int64_t shed) {
  const int64_t former = std::exchange(shed_, shed);
  if (shed == former) return;
  logger_->Warning("events dropped: too many wait to be written", {{"count", shed - former}});
}

void StatusLog::Restart() {
  watches_.clear();
  missing_.clear();
  shed_ = 0;
}

}  // namespace fairlead::cmd
