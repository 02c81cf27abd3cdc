// What Application logs and counts: decisions, answers, and the state of the watches.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/app.h"

namespace fairlead::cmd {
namespace {

constexpr absl::Duration kSyncReport = absl::Seconds(10);
constexpr absl::Duration kCheckPeriod = absl::Seconds(2);

template <typename T>
int64_t CountOf(const std::vector<model::Action>& actions) {
  return std::count_if(actions.begin(), actions.end(), [](const model::Action& action) {
    return std::holds_alternative<T>(action.what);
  });
}

}  // namespace

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
  if (audit_.has_value()) audit_->Answered(result, last_now_);
  if (observer_ != nullptr) observer_->OnAnswer(result);
  const auto found = under_way_.find(result.action_id);
  if (found == under_way_.end()) return;
  const auto& [name, what] = found->second;
  ++counters_.results[{name, std::string(absl::StatusCodeToString(result.status.code()))}];
  if (!result.status.ok()) {
    // A definite refusal means that the world changed between decision and write; other errors want
    // attention.
    const bool stale = absl::IsNotFound(result.status) || absl::IsAlreadyExists(result.status) ||
                       absl::IsFailedPrecondition(result.status) ||
                       absl::IsCancelled(result.status);
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
    status_log_.LogMissing(source_->GetStats());
    return;
  }
  if (now < next_sync_report_) return;
  if (next_sync_report_ != absl::InfinitePast()) {
    logger_->Warning("waiting for the cluster",
                     {{"problem", source_->Health(options_.stale_after).message()}});
  }
  next_sync_report_ = now + kSyncReport;
}

// Logs changes, and tells the loop what is stale.
void Application::CheckWatches() {
  const absl::Duration now = ports_.clock->Steady();
  if (!was_synced_ || now < next_check_) return;
  next_check_ = now + kCheckPeriod;
  const std::vector<kube::ReflectorStats> kinds = source_->GetStats();
  std::vector<model::Kind> stale;
  for (const kube::ReflectorStats& stats : kinds) {
    if (stats.IsStale(options_.stale_after)) stale.push_back(stats.kind);
  }
  loop_->SetStale(stale);
  status_log_.LogWatches(kinds);
  status_log_.LogShedEvents(executor_->GetStats().shed_events);
}

void Application::CheckLease(absl::Time now) {
  if (elector_ == nullptr || now < next_lease_report_) return;
  next_lease_report_ = now + kSyncReport;
  status_log_.LogLease(elector_->GetStats());
}

}  // namespace fairlead::cmd
