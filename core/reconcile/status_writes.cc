// The writes of StatusUpdater: which go when, their answers, and their repetitions.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/reconcile/status_updater.h"
#include "scheduler/model/group_kind.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

constexpr char kUnschedulable[] = "Unschedulable";
constexpr char kFailedScheduling[] = "FailedScheduling";

// Repetitions have their pace from this many failures in a row on.
constexpr int64_t kManyFailures = 3;

// Every fourth place goes to changed verdicts although first ones wait.
constexpr uint64_t kTurns = 4;

// Adds the entries of other pools, which the write keeps.
void AddConditions(const state::Workload& workload, model::SetPodGroupSchedulability& write) {
  write.node_pool = workload.group->node_pool;
  write.conditions = workload.group_status->scheduling_conditions;
}

// Adds the entry of a group with schedulingBackoff 1: its attempt failed, and why. Programs that
// move groups between node pools act on it, and a restart reads it. So it is not written before the
// attempt failed.
void AddAttempt(const state::Workload& workload, model::SetPodGroupSchedulability& write) {
  if (workload.group->scheduling_backoff == model::kTryForEver) return;
  if (!workload.GaveUp()) {
    write.own_condition = model::OwnCondition::kRemove;
  } else if (model::FailedAttemptOf(*workload.group, workload.group_status->scheduling_conditions)
                 .has_value()) {
    write.own_condition = model::OwnCondition::kKeep;
  } else {
    write.reason = workload.details->failed_attempt->reason;
    write.message = workload.details->failed_attempt->message;
    write.names_pool = true;
  }
}

// Of "namespace/name".
state::WorkloadId FindGroup(const state::ClusterState& state, absl::string_view key) {
  const size_t slash = key.find('/');
  return state.FindGroup(key.substr(0, slash), key.substr(slash + 1));
}

}  // namespace

bool StatusUpdater::Pace::Take(absl::Time now, absl::Time& wake_at) {
  if (now + slack_ < next_) {
    wake_at = std::min(wake_at, next_ - slack_);
    return false;
  }
  next_ = std::max(next_, now) + each_;
  return true;
}

// ---- writes -------------------------------------------------------------------------------------

void StatusUpdater::WriteGroup(const state::Workload& workload, const Row& row, Ticket ticket) {
  model::SetPodGroupSchedulability write;
  write.ns = workload.ns;
  write.name = workload.name;
  write.uid = workload.uid;
  write.native = workload.group->native;
  constexpr size_t kWhole = 64 << 10;  // far below the limit of an object
  write.schedulability_json = verdict::ToJson(row.verdict, kWhole);
  write.reason = std::string(verdict::ConditionReason(row.verdict.code, settings_.hook_on));
  write.message = row.condition.sentence;
  AddConditions(workload, write);
  AddAttempt(workload, write);
  Send(std::move(write), std::move(ticket));
}

void StatusUpdater::WritePod(const state::PodRecord& pod, const Row& row, bool whole,
                             Ticket ticket) {
  model::SetPodUnschedulable write;
  write.ns = pod.ns;
  write.name = pod.name;
  write.uid = pod.uid;
  write.reason = row.condition.reason;
  write.message = row.condition.sentence;
  if (whole) {
    write.message = verdict::ConditionMessage(row.verdict);
    write.verdict_json = verdict::ToJson(row.verdict);
    write.nominated_node = row.nominated;
  }
  write.observed_generation = pod.generation;
  ticket.uid = pod.uid;
  nominations_.Overwriting(pod.uid);
  Send(std::move(write), std::move(ticket));
}

StatusUpdater::PodWrite StatusUpdater::DueOf(const state::Workload& workload, Row& row,
                                             const state::PodRecord& pod) const {
  if (!IsWaiting(pod)) return PodWrite::kNone;
  const auto [known, added] = row.pods.try_emplace(pod.uid);
  Condition& written = known->second;
  if (added && pod.details->waiting_reason.has_value() && !pod.has_verdict) {
    // A former process wrote it, if it equals the new value. A verdict is from before the pod had a
    // group.
    written.reason = *pod.details->waiting_reason;
    if (written.reason == row.condition.reason) written.sentence = row.condition.sentence;
  }
  if (nominations_.Find(pod.uid) != nullptr) return PodWrite::kNow;
  if (written == row.condition) return PodWrite::kNone;
  const bool quiet = !workload.group->mark_unschedulable;
  if (quiet && written.reason != kUnschedulable) return PodWrite::kNone;
  if (written.reason == row.condition.reason) return PodWrite::kRefresh;
  // Other autoscalers act on this reason alone.
  const bool seen = written.reason == kUnschedulable || row.condition.reason == kUnschedulable;
  return seen ? PodWrite::kNow : PodWrite::kNews;
}

bool StatusUpdater::TakePace(PodWrite what, absl::Time now) {
  if (what == PodWrite::kNow) return true;
  if (what == PodWrite::kNews) return pods_pace_.Take(now, wake_at_);
  if (!refresh_pace_.Take(now, wake_at_)) return false;
  pods_were_refreshed_ = true;
  return true;
}

void StatusUpdater::WriteCondition(const state::Workload& workload, Row& row,
                                   const state::PodRecord& pod, absl::Time now) {
  row.pods[pod.uid] = row.condition;
  if (row.conditions.accepted()) row.conditions.Settle();
  if (!row.conditions.in_flight()) row.conditions.Sent(now, kRules);
  ++row.unanswered_conditions;
  WritePod(pod, row, /*whole=*/false, {Ticket::To::kCondition, workload.id, row.serial, "", ""});
}

bool StatusUpdater::WritePaced(const state::Workload& workload, Row& row, PodWrite what, size_t& at,
                               absl::Time now) {
  for (; at < workload.pods.size(); ++at) {
    const state::PodRecord& pod = state_.pod(workload.pods[at]);
    if (DueOf(workload, row, pod) != what) continue;
    if (Full() || !TakePace(what, now)) return false;
    WriteCondition(workload, row, pod, now);
  }
  return true;
}

StatusUpdater::PodsLane StatusUpdater::WritePods(const state::Workload& workload, Row& row,
                                                 absl::Time now) {
  PodsWalk& walk = row.walk;
  if (walk.version != workload.version) walk = {.version = workload.version};
  for (; walk.look < workload.pods.size(); ++walk.look) {
    const state::PodRecord& pod = state_.pod(workload.pods[walk.look]);
    const PodWrite due = DueOf(workload, row, pod);
    if (due == PodWrite::kNone) continue;
    size_t& waits = due == PodWrite::kRefresh ? walk.refresh : walk.news;
    if (due != PodWrite::kNow && waits != PodsWalk::kNone) continue;  // those before it wait
    if (Full()) return PodsLane::kLook;
    if (TakePace(due, now)) {
      WriteCondition(workload, row, pod, now);
    } else {
      waits = walk.look;
    }
  }
  if (!WritePaced(workload, row, PodWrite::kNews, walk.news, now)) return PodsLane::kNews;
  if (!WritePaced(workload, row, PodWrite::kRefresh, walk.refresh, now)) return PodsLane::kRefresh;
  return PodsLane::kNone;
}

void StatusUpdater::ForgetGonePods(const state::Workload& workload, Row& row) const {
  if (row.pods.size() <= 2 * workload.pods.size() + 4) return;
  absl::flat_hash_set<absl::string_view> present;
  for (const state::PodId id : workload.pods) present.insert(state_.pod(id).uid);
  absl::erase_if(row.pods, [&](const auto& pod) { return !present.contains(pod.first); });
}

void StatusUpdater::EmitChange(const state::Workload& workload, const Row& row) const {
  model::EmitEvent event;
  const bool as_group = IsAsGroup(workload);
  const bool about_pod = !as_group && !workload.pods.empty();
  event.about = as_group ? model::PodGroupKind(workload.group->native) : model::Kind::kPod;
  event.ns = workload.ns;
  event.name = about_pod ? state_.pod(workload.pods.front()).name : workload.name;
  event.uid = about_pod ? state_.pod(workload.pods.front()).uid : workload.uid;
  const bool expected = verdict::IsExpected(row.verdict);
  event.warning = !expected;
  event.reason = expected ? std::string(verdict::CodeName(row.verdict.code)) : kFailedScheduling;
  event.note = verdict::EventNote(row.verdict);
  event.action = model::EventAction::kScheduling;
  if (!workload.pods.empty()) {
    event.reporter = std::string(state_.SchedulerNameOf(state_.pod(workload.pods.front())));
  }
  send_({0, std::move(event)});
}

void StatusUpdater::Remember(const state::Workload& workload, Row& row) {
  row.undone = false;
  row.former = row.write.in_doubt() ? nullptr : std::make_unique<Former>();
  if (row.former == nullptr) return;
  *row.former = {.hash = row.written_hash,
                 .nominated = row.written_nominated,
                 .reason = row.written_reason,
                 .watch_tells = row.watch_tells,
                 .unshown = row.unshown,
                 .pods = {}};
  if (workload.is_group && !IsAsGroup(workload)) row.former->pods = row.pods;
}

void StatusUpdater::Undo(Row& row) {
  const std::unique_ptr<Former> former = std::move(row.former);
  row.undone = true;
  row.written_hash = std::move(former->hash);
  row.written_nominated = std::move(former->nominated);
  row.written_reason = std::move(former->reason);
  row.watch_tells = former->watch_tells;
  row.unshown = std::move(former->unshown);
  for (auto& [uid, condition] : former->pods) row.pods[uid] = std::move(condition);
}

bool StatusUpdater::HasWaitingPod(const state::Workload& workload) const {
  return std::any_of(workload.pods.begin(), workload.pods.end(),
                     [this](state::PodId pod) { return IsWaiting(state_.pod(pod)); });
}

void StatusUpdater::Write(state::WorkloadId id, Row& row, absl::Time now) {
  const state::Workload& workload = state_.workload(id);
  if (!IsAsGroup(workload) && !HasWaitingPod(workload)) {
    // Their bindings are in doubt. What is not written now is due still when they wait again.
    if (std::exchange(row.tell_event, false) && settings_.emit_events) EmitChange(workload, row);
    return;
  }
  Remember(workload, row);
  const bool same = row.written_hash == row.hash && row.written_nominated == row.nominated;
  if (!same) NoteUnshown(workload, row);
  row.written_hash = row.hash;
  row.written_nominated = row.nominated;
  row.written_reason = row.condition.reason;
  row.written_as = ++serials_;
  row.unanswered = 0;
  if (row.write.accepted()) row.write.Settle();  // another value than that is another write
  row.write.Sent(now, kRules);
  const Ticket ticket{Ticket::To::kRow, id, row.written_as, "", ""};
  if (IsAsGroup(workload)) {
    ++row.unanswered;
    WriteGroup(workload, row, ticket);
  } else {
    // A missing group has no object to write to: each of its pods gets the whole verdict.
    for (const state::PodId pod_id : workload.pods) {
      const state::PodRecord& pod = state_.pod(pod_id);
      if (!IsWaiting(pod)) continue;
      if (workload.is_group) row.pods[pod.uid] = row.condition;
      ++row.unanswered;
      WritePod(pod, row, /*whole=*/true, ticket);
    }
    ForgetGonePods(workload, row);
  }
  if (std::exchange(row.tell_event, false) && settings_.emit_events) EmitChange(workload, row);
}

// ---- answers ------------------------------------------------------------------------------------

bool StatusUpdater::Answered(uint64_t action_id, const absl::Status& status, absl::Time now) {
  const auto found = in_flight_.find(action_id);
  if (found == in_flight_.end()) return false;
  const Ticket ticket = std::move(found->second);
  in_flight_.erase(found);
  // A refusal is inconclusive: the object may have been replaced, another write was faster, or a
  // webhook was broken for a moment; an object that is gone takes its verdict with it when the
  // watch shows that.
  const Outcome outcome = OutcomeOf(status, /*in_doubt=*/false);
  if (!ticket.uid.empty()) nominations_.Overwritten(ticket.uid, outcome == Outcome::kDone);
  switch (ticket.to) {
    case Ticket::To::kRow:
      RowAnswered(ticket, outcome, now);
      break;
    case Ticket::To::kCondition:
      ConditionAnswered(ticket, outcome, now);
      break;
    case Ticket::To::kBoundPod:
      if (const auto pod = bound_.find(ticket.id);
          pod != bound_.end() && pod->second.serial == ticket.serial) {
        pod->second.attempts.Answered(outcome, now, kRules);
        wake_at_ = std::min(wake_at_, pod->second.attempts.due());
      }
      break;
    case Ticket::To::kClear:
      if (const auto group = clears_.find(ticket.key);
          group != clears_.end() && group->second.serial == ticket.serial) {
        WriteAttempts& attempts = group->second.attempts;
        if (outcome == Outcome::kRefused && !attempts.in_doubt()) {
          ClearRefused(ticket, group->second, now);
        }
        attempts.Answered(outcome, now, kRules);
        wake_at_ = std::min(wake_at_, attempts.due());
        if (attempts.accepted()) {
          if (const auto cleared = cleared_.find(ticket.key);
              cleared != cleared_.end() && cleared->second.serial == ticket.serial) {
            cleared->second.done = true;
          }
          clears_.erase(group);
        }
      }
      break;
  }
  if (was_full_) wake_at_ = absl::InfinitePast();
  return true;
}

void StatusUpdater::RowAnswered(const Ticket& ticket, Outcome outcome, absl::Time now) {
  Row* row = RowAt(ticket.id);
  if (row == nullptr || row->written_as != ticket.serial) return;  // another write followed it
  if (outcome != Outcome::kRefused) {
    row->former.reset();
    row->after_clear = 0;
  }
  const bool failed = PartAnswered(*row, row->write, row->unanswered, ticket, outcome, now);
  if (row->unanswered == 0 && row->former != nullptr) Undo(*row);
  if (failed) {
    row->queued_news = row->queued_refresh = true;  // in no lane until then
  } else if (row->write.accepted() && IsRowOf(*row, state_.workload(ticket.id))) {
    // What has changed meanwhile has waited for the answer.
    row->queued_news = row->queued_refresh = false;
    if (!row->leaving) Enqueue(ticket.id, *row, now);
    const bool queued =
        row->queued_news || row->queued_refresh || row->pods_lane == PodsLane::kLook;
    if (queued) wake_at_ = absl::InfinitePast();
  }
}

void StatusUpdater::ClearRefused(const Ticket& ticket, const Removal& removal, absl::Time now) {
  const auto cleared = cleared_.find(ticket.key);
  if (cleared == cleared_.end() || cleared->second.serial != ticket.serial) return;
  cleared->second.hash = removal.hash;
  const state::WorkloadId id = FindGroup(state_, ticket.key);
  Row* row = id == state::kNoId ? nullptr : FindRow(state_.workload(id));
  if (row == nullptr || row->after_clear != ticket.serial) return;
  row->after_clear = 0;
  (row->former != nullptr ? row->former->hash : row->written_hash) = removal.hash;
  if (!row->leaving) Enqueue(id, *row, now);
}

void StatusUpdater::ConditionAnswered(const Ticket& ticket, Outcome outcome, absl::Time now) {
  Row* row = RowAt(ticket.id);
  if (row == nullptr || row->serial != ticket.serial) return;
  if (PartAnswered(*row, row->conditions, row->unanswered_conditions, ticket, outcome, now)) {
    row->pods_lane = PodsLane::kPaused;
  }
}

bool StatusUpdater::PartAnswered(Row& row, WriteAttempts& write, size_t& unanswered,
                                 const Ticket& ticket, Outcome outcome, absl::Time now) {
  --unanswered;
  if (outcome == Outcome::kDone) {
    if (unanswered == 0) write.Answered(outcome, now, kRules);
    return false;
  }
  row.pods.erase(ticket.uid);
  // Failed answers to writes of several pods of one workload are one failure, until the row is
  // looked at again. If nothing was written then, a later answer is a failure of its own.
  if (!write.in_flight()) {
    if (!write.failed() || write.Pauses(now)) return false;
    write.Sent(now, kRules);
  }
  write.Answered(outcome, now, kRules);
  (write.failures() < kManyFailures ? retries_ : paced_retries_).Add(write.due(), ticket.id);
  wake_at_ = std::min(wake_at_, write.due());
  return true;
}

// ---- lanes --------------------------------------------------------------------------------------

void StatusUpdater::TakeRetries(absl::Time now) {
  std::vector<state::WorkloadId> due = retries_.TakeDue(now);
  while (paced_retries_.next() <= now && repeat_pace_.Take(now, wake_at_)) {
    due.push_back(paced_retries_.TakeFirst());
  }
  if (paced_retries_.next() > now) wake_at_ = std::min(wake_at_, paced_retries_.next());
  for (const state::WorkloadId id : due) {
    Row* row = RowAt(id);
    if (row == nullptr || !IsRowOf(*row, state_.workload(id))) continue;
    if (!row->write.Pauses(now)) row->queued_news = row->queued_refresh = false;
    if (!row->conditions.Pauses(now)) {
      row->pods_lane = PodsLane::kNone;
      row->look_at_pods = true;
    }
    if (!row->leaving) Enqueue(id, *row, now);
  }
}

void StatusUpdater::TakePutOff(absl::Time now) {
  for (const state::WorkloadId id : put_off_.TakeDue(now)) {
    Row* row = RowAt(id);
    if (row == nullptr || !IsRowOf(*row, state_.workload(id))) continue;
    row->put_off = false;
    if (!row->leaving) Enqueue(id, *row, now);
  }
  wake_at_ = std::min(wake_at_, put_off_.next());
}

void StatusUpdater::FlushNews(absl::Time now) {
  while (!Full() && (!firsts_.empty() || !news_.empty())) {
    const bool change = firsts_.empty() || (!news_.empty() && ++turn_ % kTurns == 0);
    std::deque<state::WorkloadId>& lane = change ? news_ : firsts_;
    const state::WorkloadId id = lane.front();
    lane.pop_front();
    Row* row = RowAt(id);
    if (row == nullptr || !row->queued_news || AwaitsAnswer(*row, now)) continue;
    row->queued_news = false;
    if (!IsRowOf(*row, state_.workload(id)) || row->leaving || !HasNews(*row)) continue;
    Write(id, *row, now);
  }
}

void StatusUpdater::FlushPods(absl::Time now) {
  // What waits for its pace comes before what has just changed.
  FlushPods(PodsLane::kNews, now);
  FlushPods(PodsLane::kRefresh, now);
  FlushPods(PodsLane::kLook, now);
}

void StatusUpdater::FlushPods(PodsLane lane, absl::Time now) {
  std::deque<state::WorkloadId>& ids = Lane(lane);
  while (!ids.empty() && !Full()) {
    const state::WorkloadId id = ids.front();
    Row* row = RowAt(id);
    PodsLane next = PodsLane::kNone;
    if (row != nullptr && row->pods_lane == lane) {
      const state::Workload& workload = state_.workload(id);
      if (IsRowOf(*row, workload) && IsAsGroup(workload)) {
        if (row->leaving) {
          row->look_at_pods = true;
        } else {
          next = WritePods(workload, *row, now);
          ForgetGonePods(workload, *row);
        }
      }
      if (next == lane) return;
      row->pods_lane = next;
    }
    ids.pop_front();
    if (row != nullptr) InLane(*row, lane) = false;
    if (next != PodsLane::kNone) EnterLane(id, *row, next);
  }
}

void StatusUpdater::EnterLane(state::WorkloadId id, Row& row, PodsLane lane) {
  row.pods_lane = lane;
  if (!std::exchange(InLane(row, lane), true)) Lane(lane).push_back(id);
}

void StatusUpdater::FlushRefreshes(absl::Time now) {
  while (!refreshes_.empty() && !Full()) {
    const state::WorkloadId id = refreshes_.front();
    Row* row = RowAt(id);
    if (row != nullptr && row->queued_refresh && !AwaitsAnswer(*row, now)) {
      if (IsRowOf(*row, state_.workload(id)) && !row->leaving && HasRefresh(*row)) {
        if (!refresh_pace_.Take(now, wake_at_)) return;
        pods_were_refreshed_ = false;
        Write(id, *row, now);
      }
      row->queued_refresh = false;
    }
    refreshes_.pop_front();
  }
}

void StatusUpdater::Compact(std::deque<state::WorkloadId>& lane,
                            absl::FunctionRef<bool(Row&)> is_queued) const {
  if (lane.size() < 1024 || lane.size() < 2 * rows_.size()) return;
  absl::flat_hash_set<state::WorkloadId> known;
  std::erase_if(lane, [&](state::WorkloadId id) {
    Row* row = RowAt(id);
    return row == nullptr || !is_queued(*row) || !known.insert(id).second;
  });
}

void StatusUpdater::PodSeen(state::PodId id) {
  const state::PodRecord& pod = state_.pod(id);
  const bool on_node =
      pod.status == state::PodStatus::kBound || pod.status == state::PodStatus::kRunning;
  if (on_node && leaving_.contains(pod.workload)) wake_at_ = absl::InfinitePast();
  if (pod.ours && on_node && (pod.has_verdict || pod.details->waiting_reason.has_value())) {
    bound_.try_emplace(id);
    wake_at_ = absl::InfinitePast();
  } else if (!bound_.empty()) {
    bound_.erase(id);
  }
}

void StatusUpdater::FlushBound(absl::Time now) {
  for (auto it = bound_.begin(); it != bound_.end() && !Full();) {
    const state::PodRecord& pod = state_.pod(it->first);
    if (pod.id != it->first) {
      it = bound_.erase(it);
      continue;
    }
    Removal& removal = (it++)->second;  // stays until the pod is seen without a verdict
    WriteAttempts& attempts = removal.attempts;
    if (!attempts.MayGo(now)) {
      wake_at_ = std::min(wake_at_, attempts.due());
      continue;
    }
    if (attempts.failures() >= kManyFailures && !repeat_pace_.Take(now, wake_at_)) continue;
    attempts.Sent(now, kRules);
    model::SetPodUnschedulable write;
    write.ns = pod.ns;
    write.name = pod.name;
    write.uid = pod.uid;
    removal.serial = ++serials_;
    Send(std::move(write), {Ticket::To::kBoundPod, pod.id, removal.serial, pod.uid, ""});
  }
}

void StatusUpdater::FlushClears(absl::Time now) {
  for (auto it = clears_.begin(); it != clears_.end() && !Full();) {
    Removal& removal = it->second;
    WriteAttempts& attempts = removal.attempts;
    if (!attempts.MayGo(now)) {
      wake_at_ = std::min(wake_at_, attempts.due());
      ++it;
      continue;
    }
    const std::string& key = it->first;
    const state::WorkloadId id = FindGroup(state_, key);
    const bool needless = id == state::kNoId || state_.workload(id).group == nullptr ||
                          FindRow(state_.workload(id)) != nullptr;
    const bool shown = !needless && attempts.failed() &&
                       state_.workload(id).group_status->schedulability_hash.empty() &&
                       !BearsFormerReason(state_.workload(id));
    if (needless || shown) {
      it = clears_.erase(it);
      continue;
    }
    if (attempts.failures() >= kManyFailures && !repeat_pace_.Take(now, wake_at_)) {
      ++it;
      continue;
    }
    const state::Workload& workload = state_.workload(id);
    model::SetPodGroupSchedulability write{workload.ns, workload.name, workload.uid, "", "", ""};
    write.native = workload.group->native;
    AddConditions(workload, write);
    attempts.Sent(now, kRules);
    std::vector<std::string>& values = removal.unshown;
    std::string value = ValueOf(workload.group_status->schedulability_hash, "");
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(std::move(value));
    }
    removal.serial = ++serials_;
    cleared_[key] = {workload.uid, removal.unshown, removal.serial};
    Send(std::move(write), {Ticket::To::kClear, id, removal.serial, "", key});
    ++it;
  }
  TrimCleared();
}

void StatusUpdater::TrimCleared() {
  if (cleared_.size() < trim_cleared_at_) return;
  absl::erase_if(cleared_, [this](const auto& entry) {
    return FindGroup(state_, entry.first) == state::kNoId;
  });
  trim_cleared_at_ = std::max<size_t>(1024, 2 * cleared_.size());
}

void StatusUpdater::Flush(absl::Time now) {
  wake_at_ = absl::InfiniteFuture();
  ClearBound(now);
  FlushClears(now);
  FlushBound(now);
  TakeRetries(now);
  TakePutOff(now);
  FlushNews(now);
  if (pods_were_refreshed_) FlushRefreshes(now);
  FlushPods(now);
  FlushRefreshes(now);
  const auto has_news = [](const Row& row) { return row.queued_news; };
  Compact(firsts_, has_news);
  Compact(news_, has_news);
  Compact(refreshes_, [](const Row& row) { return row.queued_refresh; });
  for (const PodsLane lane : {PodsLane::kLook, PodsLane::kNews, PodsLane::kRefresh}) {
    Compact(Lane(lane), [lane](Row& row) { return InLane(row, lane) = row.pods_lane == lane; });
  }
  was_full_ = Full();
  wake_at_ = std::min(wake_at_, retries_.next());
}

}  // namespace fairlead::core
