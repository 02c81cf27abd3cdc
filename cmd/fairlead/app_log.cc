// What Application logs and counts: decisions, answers, and the state of the watches.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kSyncReport = absl::Seconds(10);
constexpr absl::Duration kCheckPeriod = absl::Seconds(2);
// A watch that is down for less was renewed, or recovered by itself.
constexpr absl::Duration kFailingAfter = absl::Seconds(10);

template <typename T>
int64_t CountOf(const std::vector<model::Action>& actions) {
  return std::count_if(actions.begin(), actions.end(), [](const model::Action& action) {
    return std::holds_alternative<T>(action.what);
  });
}

}  // namespace

void Application::LogHistory() {
  std::string problem = loop_->history().problem;
  // The age of a report changes each time.
  if (problem.empty() == history_problem_.empty()) return;
  history_problem_ = std::move(problem);
  if (history_problem_.empty()) {
    logger_->Info("fair shares are divided with history again");
  } else {
    logger_->Warning("fair shares are divided without history", {{"problem", history_problem_}});
  }
}

void Application::LogDecision(const core::StepResult& result, absl::Duration took) {
  const std::vector<model::Action>& actions = result.actions;
  const LogLevel level = actions.empty() ? LogLevel::kDebug : LogLevel::kInfo;
  if (!logger_->Enabled(level)) return;
  const int64_t verdicts = CountOf<model::SetPodUnschedulable>(actions) +
                           CountOf<model::SetPodGroupSchedulability>(actions);
  logger_->Log(
      level, "decision",
      {{"cycle", static_cast<int64_t>(loop_->stats().cycles)},
       {"bound", CountOf<model::BindPod>(actions)},
       {"evicted", CountOf<model::EvictPod>(actions)},
       {"verdicts", verdicts},
       {"nodes_requested", CountOf<model::CreateNodeRequest>(actions)},
       {"nodes_terminated", CountOf<model::TerminateNode>(actions)},
       {"actions", static_cast<int64_t>(actions.size())},
       {"took_us", absl::ToInt64Microseconds(took)},
       {"next_ms", result.wake_at == absl::InfiniteFuture()
                       ? Logger::Value("never")
                       : Logger::Value(absl::ToInt64Milliseconds(result.wake_at - last_now_))}});
}

void Application::LogResult(const model::ActionResult& result) {
  const auto found = under_way_.find(result.action_id);
  if (found == under_way_.end()) return;
  const auto& [name, what] = found->second;
  ++counters_.results[{name, std::string(absl::StatusCodeToString(result.status.code()))}];
  if (!result.status.ok()) {
    // A definite refusal means that the world changed between decision and write; other errors want
    // attention.
    const bool stale = absl::IsNotFound(result.status) || absl::IsAlreadyExists(result.status) ||
                       absl::IsFailedPrecondition(result.status);
    logger_->Log(stale ? LogLevel::kInfo : LogLevel::kWarning, "action failed",
                 {{"action", what},
                  {"code", absl::StatusCodeToString(result.status.code())},
                  {"error", result.status.message()}});
  }
  under_way_.erase(found);
}

void Application::LogSync() {
  if (was_synced_) return;
  const absl::Time now = last_now_;
  if (loop_->synced()) {
    was_synced_ = true;
    logger_->Info("synced", {{"events", loop_->stats().events}});
    for (const kube::ReflectorStats& stats : source_->GetStats()) TellMissing(stats);
    return;
  }
  if (now < next_sync_report_) return;
  if (next_sync_report_ != absl::InfinitePast()) {
    logger_->Warning("waiting for the cluster",
                     {{"problem", source_->Health(options_.stale_after).message()}});
  }
  next_sync_report_ = now + kSyncReport;
}

void Application::TellMissing(const kube::ReflectorStats& stats) {
  const bool told = missing_.contains(stats.kind);
  if (stats.missing == told) return;
  const char* const kind = model::KindName(stats.kind);
  if (stats.missing) {
    missing_.insert(stats.kind);
    logger_->Warning("kind is not installed, or may not be read; it counts as empty",
                     {{"kind", kind}, {"problem", stats.last_error}});
  } else {
    missing_.erase(stats.kind);
    logger_->Info("kind is installed", {{"kind", kind}});
  }
}

// Logs each change once, and tells the loop what is stale.
void Application::CheckWords() {
  const absl::Duration now = ports_.clock->Steady();
  if (!was_synced_ || now < next_check_) return;
  next_check_ = now + kCheckPeriod;
  std::vector<model::Kind> stale;
  for (const kube::ReflectorStats& stats : source_->GetStats()) {
    TellMissing(stats);
    Word word = Word::kGood;
    if (stats.IsStale(options_.stale_after)) {
      word = Word::kStale;
      stale.push_back(stats.kind);
    } else if (stats.down_for > kFailingAfter) {
      word = Word::kFailing;
    }
    Word& told = words_[stats.kind];
    if (std::exchange(told, word) == word) continue;
    const char* const kind = model::KindName(stats.kind);
    const std::string age =
        absl::FormatDuration(absl::Trunc(stats.since_last_event, absl::Seconds(1)));
    if (word == Word::kGood) {
      logger_->Info("watch works again", {{"kind", kind}});
    } else if (word == Word::kFailing) {
      logger_->Warning("watch fails; it will be retried",
                       {{"kind", kind}, {"last_word_ago", age}, {"problem", stats.last_error}});
    } else {
      logger_->Error("objects may be out of date; nothing is evicted, provisioned or removed",
                     {{"kind", kind}, {"last_word_ago", age}, {"problem", stats.last_error}});
    }
  }
  loop_->SetStale(stale);
  CheckShed();
}

void Application::CheckLease(absl::Time now) {
  if (elector_ == nullptr || now < next_lease_report_) return;
  next_lease_report_ = now + kSyncReport;
  const kube::LeaseStats stats = elector_->GetStats();
  if (stats.errors == std::exchange(lease_errors_told_, stats.errors)) return;
  logger_->Warning("the lease could not be read or written", {{"problem", stats.last_error}});
}

void Application::CheckShed() {
  const int64_t shed = executor_->GetStats().shed_events;
  if (shed == shed_told_) return;
  logger_->Warning("events dropped: too many wait to be written", {{"count", shed - shed_told_}});
  shed_told_ = shed;
}

}  // namespace fairlead::cmd
