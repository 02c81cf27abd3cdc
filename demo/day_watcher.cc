#include "demo/day_watcher.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "scheduler/verdict/verdict.h"
#include "sim/api_server.h"

namespace fairlead::demo {
namespace {

constexpr size_t kEventsOnScreen = 40;

std::map<std::string, int64_t> NodesByType(const core::View& view) {
  std::map<std::string, int64_t> counts;
  for (const core::NodeRow& node : view.nodes) {
    if (!node.node_request.empty()) ++counts[node.instance_type];
  }
  return counts;
}

// True if the record includes the action; its outcome is looked up when the answer comes.
bool IsTold(const model::Action& action) {
  return std::holds_alternative<model::CreateNodeRequest>(action.what) ||
         std::holds_alternative<model::BindPod>(action.what) ||
         std::holds_alternative<model::EvictPod>(action.what) ||
         std::holds_alternative<model::LaunchNode>(action.what);
}

std::string Mismatch(const char* what, int64_t expected, int64_t found) {
  return absl::StrCat(what, ": expected ", expected, ", was ", found);
}

}  // namespace

bool Holds(const sim::MomentCheck& check, const core::View& view) {
  if (check.nodes.has_value() && NodesByType(view) != *check.nodes) return false;
  if (check.waiting.has_value()) {
    sim::WaitCounts waiting;
    for (const core::WaitingRow& row : view.waiting) {
      waiting[{std::string(verdict::CodeName(row.verdict.code)), row.queue}] +=
          static_cast<int64_t>(row.pods.size());
    }
    if (waiting != *check.waiting) return false;
  }
  if (!check.running.has_value()) return true;
  std::map<std::string, int64_t> running;
  for (const core::RunningRow& row : view.running) {
    if (row.status == "Running") ++running[row.queue];
  }
  return running == *check.running;
}

DayWatcher::DayWatcher(const sim::Scenario& scenario, const hook::Catalog* catalog,
                       absl::Duration unneeded_after, const sim::Expectation* expectation,
                       Screen* screen, std::ostream* log)
    : scenario_(scenario),
      expectation_(expectation),
      screen_(screen),
      log_(log),
      bill_(catalog, unneeded_after),
      met_(expectation == nullptr ? 0 : expectation->checks.size(), false) {}

bool DayWatcher::Decided() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_.cycles > 0;
}

void DayWatcher::Start(const DayClock& clock) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clock_ = clock;
  started_ = true;
}

void DayWatcher::OnEvent(const model::ClusterEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!started_) return;
  const absl::Time now = clock_.ToScenario(absl::Now());
  if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
    if (const auto* node = std::get_if<model::Node>(&upsert->object)) {
      nodes_[node->meta.name] = *node;
    }
    recorder_.OnChange(now, sim::ChangeType::kModified, upsert->object);
  } else if (const auto* removed = std::get_if<model::Delete>(&event)) {
    const auto node = nodes_.find(removed->name);
    if (removed->kind != model::Kind::kNode || node == nodes_.end()) return;
    recorder_.OnChange(now, sim::ChangeType::kDeleted, node->second);
    nodes_.erase(node);
  } else if (const auto* result = std::get_if<model::ActionResult>(&event)) {
    const auto action = under_way_.find(result->action_id);
    if (action == under_way_.end()) return;
    recorder_.OnCommit(now, action->second, result->status);
    under_way_.erase(action);
  }
}

void DayWatcher::OnStep(const core::DecisionLoop& loop, const core::StepResult& result,
                        absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_ = loop.stats();
  if (!started_) return;
  core::View view = clock_.ToScenario(loop.MakeView(now));
  for (const model::Action& action : result.actions) {
    if (IsTold(action)) under_way_.emplace(action.id, action);
  }
  recorder_.OnView(view);
  bill_.Observe(view, result.actions);
  Check(view);
  view_ = std::move(view);
}

void DayWatcher::OnTick(const core::DecisionLoop& loop, absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!started_) return;
  core::View view = clock_.ToScenario(loop.MakeView(now));
  bill_.AdvanceTo(view.at);
  Check(view);
  view_ = std::move(view);
  Draw(view_);
}

void DayWatcher::Check(const core::View& view) {
  if (expectation_ == nullptr) return;
  const absl::Duration tolerance = kMomentTolerance * clock_.speed;
  for (size_t i = 0; i < expectation_->checks.size(); ++i) {
    const sim::MomentCheck& check = expectation_->checks[i];
    const absl::Duration off = view.at - (scenario_.start + check.at);
    if (met_[i] || off < -tolerance || off > tolerance) continue;
    met_[i] = Holds(check, view);
  }
}

void DayWatcher::Draw(const core::View& view) {
  const std::vector<sim::TimelineEvent>& timeline = recorder_.timeline();
  if (screen_ == nullptr) {
    if (log_ == nullptr || logged_ == timeline.size()) return;
    *log_ << sim::LogText({timeline.begin() + static_cast<std::ptrdiff_t>(logged_), timeline.end()})
          << std::flush;
    logged_ = timeline.size();
    return;
  }
  const size_t begin =
      timeline.size() > kEventsOnScreen * 4 ? timeline.size() - kEventsOnScreen * 4 : 0;
  LiveFrame frame;
  frame.view = &view;
  frame.title = scenario_.name;
  frame.note = note_;
  for (const absl::string_view line : absl::StrSplit(
           sim::LogText({timeline.begin() + static_cast<std::ptrdiff_t>(begin), timeline.end()}),
           '\n', absl::SkipEmpty())) {
    frame.events.emplace_back(line);
  }
  if (frame.events.size() > kEventsOnScreen) {
    frame.events.erase(frame.events.begin(),
                       frame.events.end() - static_cast<std::ptrdiff_t>(kEventsOnScreen));
  }
  const core::BillTotals totals = bill_.Totals();
  frame.cost_micro_usd = totals.cost_micro_usd;
  frame.reactive_cost_micro_usd = totals.reactive_cost_micro_usd;
  screen_->Show(DrawLive(frame, Screen::Size(), /*color=*/true));
}

void DayWatcher::Note(absl::Time real, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  note_ = text;
  recorder_.OnNote(clock_.ToScenario(real), text);
}

void DayWatcher::Finish(absl::Time scenario_now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bill_.AdvanceTo(scenario_now);
}

sim::Report DayWatcher::MakeReport() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  sim::Report report;
  report.name = scenario_.name;
  report.description = scenario_.description;
  report.start = scenario_.start;
  report.timeline = recorder_.timeline();
  report.episodes = recorder_.Episodes();
  report.end = view_;
  report.bill = bill_.Totals();
  report.stats = stats_;
  report.nodes_bought = recorder_.nodes_bought();
  report.evictions = recorder_.evictions();
  return report;
}

std::vector<absl::Duration> DayWatcher::MomentsNotSeen() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<absl::Duration> missed;
  for (size_t i = 0; i < met_.size(); ++i) {
    if (!met_[i]) missed.push_back(expectation_->checks[i].at);
  }
  return missed;
}

std::vector<std::string> DayWatcher::Unmet() const {
  std::vector<std::string> unmet;
  if (expectation_ == nullptr) return unmet;
  const sim::Report report = MakeReport();
  const sim::Expectation& expected = *expectation_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> waited;
  for (const sim::WaitEpisode& episode : report.episodes) {
    waited[{episode.code, episode.queue}].insert(episode.pod);
  }
  for (const auto& [key, pods] : expected.waited) {
    const auto found = static_cast<int64_t>(waited[key].size());
    if (found == pods) continue;
    unmet.push_back(Mismatch(
        absl::StrCat("pods that waited with ", key.first, " in queue ", key.second).c_str(), pods,
        found));
  }
  if (expected.bought.has_value() && report.nodes_bought != *expected.bought) {
    int64_t wanted = 0, found = 0;
    for (const auto& [type, count] : *expected.bought) wanted += count;
    for (const auto& [type, count] : report.nodes_bought) found += count;
    unmet.push_back(Mismatch("nodes bought (by type)", wanted, found));
  }
  int64_t at_end = 0;
  for (const auto& [type, count] : NodesByType(report.end)) at_end += count;
  const std::tuple<const char*, std::optional<int64_t>, int64_t> numbers[] = {
      {"evictions", expected.evictions, report.evictions},
      {"nodes at the end", expected.nodes_at_end, at_end},
      {"nodes bought for pods that policy held", expected.policy_blocked_nodes,
       report.bill.policy_blocked_nodes},
      {"nodes that never ran a pod", expected.duplicate_nodes, report.bill.duplicate_nodes}};
  for (const auto& [what, wanted, found] : numbers) {
    if (wanted.has_value() && *wanted != found) unmet.push_back(Mismatch(what, *wanted, found));
  }
  if (expected.reactive_costs_more &&
      report.bill.reactive_cost_micro_usd <= report.bill.cost_micro_usd) {
    unmet.push_back("a reactive autoscaler was expected to cost more");
  }
  return unmet;
}

}  // namespace fairlead::demo
