#include "core/reconcile/status_updater.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

constexpr char kUnschedulable[] = "Unschedulable";

bool IsWaiting(const state::PodRecord& pod) {
  return pod.status == state::PodStatus::kPending || pod.status == state::PodStatus::kGated;
}

std::string NominatedName(const state::ClusterState& state, const engine::Waiting& waiting) {
  if (waiting.pods.size() != 1 || waiting.pods.front().node == state::kNoId) return "";
  return state.node(waiting.pods.front().node).name();
}

// Adds the entries of other pools, which the write keeps.
void AddConditions(const model::PodGroup& group, model::SetPodGroupSchedulability& write) {
  write.node_pool = model::NodePoolOf(group);
  write.conditions = group.scheduling_conditions;
}

// Adds the entry of a group with schedulingBackoff 1: its attempt failed, and why. Programs that
// move groups between node pools act on it, and a restart reads it. So it is not written before the
// attempt failed.
void AddAttempt(const state::Workload& workload, model::SetPodGroupSchedulability& write) {
  if (workload.group->scheduling_backoff == model::kTryForEver) return;
  if (!workload.GaveUp()) {
    write.own_condition = model::OwnCondition::kRemove;
  } else if (model::FailedAttemptOf(*workload.group).has_value()) {
    write.own_condition = model::OwnCondition::kKeep;
  } else {
    write.reason = workload.details->failed_attempt->reason;
    write.message = workload.details->failed_attempt->message;
    write.names_pool = true;
  }
}

// True if the former scheduler left a reason for waiting on a running workload.
bool BearsFormerReason(const state::Workload& workload) {
  if (workload.group->scheduling_conditions.empty() || workload.Active() == 0) return false;
  const std::string pool = model::NodePoolOf(*workload.group);
  for (const model::SchedulingCondition& condition : workload.group->scheduling_conditions) {
    if (condition.node_pool == pool) return true;
  }
  return false;
}

bool IsAsGroup(const state::Workload& workload) {
  return workload.is_group && workload.group != nullptr;
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

bool StatusUpdater::IsRowOf(const Row& row, const state::Workload& workload) {
  return row.is_group == workload.is_group && row.uid == workload.uid &&
         row.name == workload.name && row.ns == workload.ns;
}

StatusUpdater::Row* StatusUpdater::FindRow(const state::Workload& workload) const {
  if (rows_.size() <= workload.id) return nullptr;
  Row* row = rows_[workload.id].get();
  return row != nullptr && IsRowOf(*row, workload) ? row : nullptr;
}

// After a restart the API server has the former writes.
void StatusUpdater::Start(Row& row, const state::Workload& workload) const {
  row = Row();
  row.is_group = workload.is_group;
  row.ns = workload.ns;
  row.name = workload.name;
  row.uid = workload.uid;
  if (IsAsGroup(workload)) {
    row.cleared = WasCleared(workload);
    if (!row.cleared) row.written_hash = workload.group->schedulability_hash;
    return;
  }
  if (workload.pods.empty()) return;
  const state::PodRecord& pod = state_.pod(workload.pods.front());
  row.written_hash = pod.details->verdict_hash;
  row.written_nominated = pod.details->nominated_node;
  row.written_reason = pod.details->waiting_reason.value_or("");
}

StatusUpdater::Row& StatusUpdater::RowOf(const state::Workload& workload,
                                         const engine::Waiting& entry, absl::Time now) {
  if (rows_.size() <= workload.id) rows_.resize(workload.id + 1);
  std::unique_ptr<Row>& place = rows_[workload.id];
  if (place == nullptr) place = std::make_unique<Row>();
  Row& row = *place;
  const bool added = row.round == 0 || !IsRowOf(row, workload);
  if (added) Start(row, workload);
  const bool code_changed = added || row.verdict.code != entry.verdict.code;
  if (code_changed) {
    row.since = now;
    row.tell_event = true;
  }
  if (added || !verdict::SameButForPassingNumbers(row.verdict, entry.verdict)) {
    row.verdict = entry.verdict;
    row.hash = verdict::Hash(row.verdict);
    row.condition.sentence = verdict::Sentence(row.verdict);
    row.look_at_pods = true;
  }
  row.round = round_;
  row.leaving = false;
  return row;
}

// With markUnschedulable false other autoscalers must see nothing of a group's pods; a reason that
// they act on is removed.
void StatusUpdater::SetCondition(const state::Workload& workload, Row& row) const {
  const bool as_group = IsAsGroup(workload);
  const bool quiet = as_group && !workload.group->mark_unschedulable;
  const absl::string_view reason = verdict::ConditionReason(row.verdict.code, hook_on_ || quiet);
  if (row.condition.reason == reason) return;
  row.condition.reason = std::string(reason);
  row.look_at_pods = true;
}

bool StatusUpdater::ShowsWritten(const state::Workload& workload, const Row& row) const {
  if (IsAsGroup(workload)) return workload.group->schedulability_hash == row.written_hash;
  return std::all_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId id) {
    const state::PodDetails& details = *state_.pod(id).details;
    return !IsWaiting(state_.pod(id)) || (details.verdict_hash == row.written_hash &&
                                          details.nominated_node == row.written_nominated);
  });
}

// Puts differences from the last write into their lanes.
void StatusUpdater::Enqueue(state::WorkloadId id, Row& row) {
  const state::Workload& workload = state_.workload(id);
  const bool as_group = IsAsGroup(workload);
  if (std::exchange(row.version, workload.version) != workload.version) row.look_at_pods = true;
  const bool joined =
      workload.is_group && !as_group && row.look_at_pods &&
      std::any_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId pod) {
        return IsWaiting(state_.pod(pod)) && !row.pods.contains(state_.pod(pod).uid);
      });
  if (joined) row.written_reason.clear();
  if (row.in_doubt && row.watch_tells && ShowsWritten(workload, row)) row.in_doubt = false;
  const bool news = HasNews(row);
  const bool refresh = HasRefresh(row);
  if (as_group && news && !refresh && !row.in_doubt && row.written_reason.empty()) {
    // A former process wrote it.
    row.written_reason = row.condition.reason;
    row.tell_event = false;
  } else if (news && !row.queued_news) {
    row.queued_news = true;
    news_.push_back(id);
  } else if (!news && refresh && !row.queued_refresh) {
    row.queued_refresh = true;
    refreshes_.push_back(id);
  }
  if (!news) row.tell_event = false;
  if (as_group && !row.queued_pods && std::exchange(row.look_at_pods, false)) {
    row.queued_pods = true;
    pods_.push_back(id);
  }
}

// ---- writes -------------------------------------------------------------------------------------

void StatusUpdater::WriteGroup(const state::Workload& workload, const Row& row,
                               std::vector<model::Action>& actions) const {
  model::SetPodGroupSchedulability write;
  write.ns = workload.ns;
  write.name = workload.name;
  write.uid = workload.uid;
  constexpr size_t kWhole = 64 << 10;  // far below the limit of an object
  write.schedulability_json = verdict::ToJson(row.verdict, kWhole);
  write.reason = std::string(verdict::ConditionReason(row.verdict.code, hook_on_));
  write.message = row.condition.sentence;
  AddConditions(*workload.group, write);
  AddAttempt(workload, write);
  actions.push_back({0, std::move(write)});
}

void StatusUpdater::WritePod(const state::PodRecord& pod, const Row& row, bool whole,
                             std::vector<model::Action>& actions) const {
  model::SetPodUnschedulable write;
  write.ns = pod.ns;
  write.name = pod.name;
  write.uid = pod.uid;
  write.reason = row.condition.reason;
  write.message = row.condition.sentence;
  if (whole) {
    write.verdict_json = verdict::ToJson(row.verdict);
    write.nominated_node = row.nominated;
  }
  write.observed_generation = pod.generation;
  actions.push_back({0, std::move(write)});
}

bool StatusUpdater::WritePods(const state::Workload& workload, Row& row, absl::Time now,
                              std::vector<model::Action>& actions) {
  const bool quiet = !workload.group->mark_unschedulable;
  bool all = true;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    if (!IsWaiting(pod)) continue;
    const auto [known, added] = row.pods.try_emplace(pod.uid);
    Condition& written = known->second;
    if (added && pod.details->waiting_reason.has_value() && !pod.has_verdict) {
      // A former process wrote it, if it equals the new value. A verdict is from before the pod had
      // a group.
      written.reason = *pod.details->waiting_reason;
      if (written.reason == row.condition.reason) written.sentence = row.condition.sentence;
    }
    if (written == row.condition) continue;
    // Other autoscalers act on this reason alone.
    const bool seen = written.reason == kUnschedulable || row.condition.reason == kUnschedulable;
    if (quiet && written.reason != kUnschedulable) continue;
    const bool news = written.reason != row.condition.reason;
    const bool now_due =
        news ? seen || pods_pace_.Take(now, wake_at_) : refresh_pace_.Take(now, wake_at_);
    if (!now_due) {
      all = false;
      continue;
    }
    written = row.condition;
    WritePod(pod, row, /*whole=*/false, actions);
  }
  return all;
}

void StatusUpdater::EmitChange(const state::Workload& workload, const Row& row,
                               std::vector<model::Action>& actions) const {
  model::EmitEvent event;
  const bool as_group = IsAsGroup(workload);
  const bool about_pod = !as_group && !workload.pods.empty();
  event.about = as_group ? model::Kind::kPodGroup : model::Kind::kPod;
  event.ns = workload.ns;
  event.name = about_pod ? state_.pod(workload.pods.front()).name : workload.name;
  event.uid = about_pod ? state_.pod(workload.pods.front()).uid : workload.uid;
  event.warning = verdict::IsFault(row.verdict.code);
  event.reason = std::string(verdict::CodeName(row.verdict.code));
  event.note = verdict::Message(row.verdict);
  actions.push_back({0, std::move(event)});
}

void StatusUpdater::Write(const state::Workload& workload, Row& row,
                          std::vector<model::Action>& actions) const {
  // A verdict that was written twice, with another one in between that the watch has not shown: the
  // first of both may be what it shows later.
  const bool same = row.written_hash == row.hash && row.written_nominated == row.nominated;
  if (!same) row.watch_tells = !row.cleared && ShowsWritten(workload, row);
  row.in_doubt = false;
  row.written_hash = row.hash;
  row.written_nominated = row.nominated;
  row.written_reason = row.condition.reason;
  if (IsAsGroup(workload)) {
    WriteGroup(workload, row, actions);
  } else {
    // A missing group has no object to write to: each of its pods gets the whole verdict.
    for (const state::PodId id : workload.pods) {
      const state::PodRecord& pod = state_.pod(id);
      if (!IsWaiting(pod)) continue;
      if (workload.is_group) row.pods[pod.uid] = row.condition;
      WritePod(pod, row, /*whole=*/true, actions);
    }
  }
  if (std::exchange(row.tell_event, false) && emit_events_) EmitChange(workload, row, actions);
}

// ---- lanes --------------------------------------------------------------------------------------

void StatusUpdater::FlushNews(absl::Time now, std::vector<model::Action>& actions) {
  while (!retries_.empty() && retries_.begin()->first <= now) {
    for (const state::WorkloadId id : retries_.begin()->second) {
      Row* row = id < rows_.size() ? rows_[id].get() : nullptr;
      if (row == nullptr || !IsRowOf(*row, state_.workload(id)) || now < row->retry_at) continue;
      row->queued_news = row->queued_refresh = row->queued_pods = false;
      row->look_at_pods = true;
      if (!row->leaving) Enqueue(id, *row);
    }
    retries_.erase(retries_.begin());
  }
  for (const state::WorkloadId id : std::exchange(news_, {})) {
    Row* row = id < rows_.size() ? rows_[id].get() : nullptr;
    if (row == nullptr || !row->queued_news || now < row->retry_at) continue;
    row->queued_news = false;
    const state::Workload& workload = state_.workload(id);
    if (!IsRowOf(*row, workload) || row->leaving || !HasNews(*row)) continue;
    Write(workload, *row, actions);
  }
}

void StatusUpdater::FlushPods(absl::Time now, std::vector<model::Action>& actions) {
  for (const state::WorkloadId id : std::exchange(pods_, {})) {
    Row* row = id < rows_.size() ? rows_[id].get() : nullptr;
    if (row == nullptr || !row->queued_pods || now < row->retry_at) continue;
    row->queued_pods = false;
    const state::Workload& workload = state_.workload(id);
    if (!IsRowOf(*row, workload) || !IsAsGroup(workload)) continue;
    if (row->leaving) {
      row->look_at_pods = true;
      continue;
    }
    if (!WritePods(workload, *row, now, actions)) {
      row->queued_pods = true;
      pods_.push_back(id);
    }
  }
}

void StatusUpdater::FlushRefreshes(absl::Time now, std::vector<model::Action>& actions) {
  while (!refreshes_.empty()) {
    const state::WorkloadId id = refreshes_.front();
    Row* row = id < rows_.size() ? rows_[id].get() : nullptr;
    if (row != nullptr && row->queued_refresh && row->retry_at <= now) {
      if (IsRowOf(*row, state_.workload(id)) && !row->leaving && HasRefresh(*row)) {
        if (!refresh_pace_.Take(now, wake_at_)) return;
        Write(state_.workload(id), *row, actions);
      }
      row->queued_refresh = false;
    }
    refreshes_.pop_front();
  }
}

void StatusUpdater::PodSeen(state::PodId id) {
  const state::PodRecord& pod = state_.pod(id);
  const bool on_node =
      pod.status == state::PodStatus::kBound || pod.status == state::PodStatus::kRunning;
  if (on_node && leaving_.contains(pod.workload)) wake_at_ = absl::InfinitePast();
  if (pod.ours && on_node && (pod.has_verdict || pod.details->waiting_reason.has_value())) {
    bound_.try_emplace(id, Pause{absl::InfinitePast()});
    wake_at_ = absl::InfinitePast();
  } else if (!bound_.empty()) {
    bound_.erase(id);
  }
}

void StatusUpdater::FlushBound(absl::Time now, std::vector<model::Action>& actions) {
  for (auto it = bound_.begin(); it != bound_.end();) {
    const state::PodRecord& pod = state_.pod(it->first);
    if (pod.id != it->first) {
      it = bound_.erase(it);
      continue;
    }
    absl::Time& until = (it++)->second.until;
    if (now < until) {
      wake_at_ = std::min(wake_at_, until);
      continue;
    }
    until = absl::InfiniteFuture();  // until it is seen, or the write fails
    model::SetPodUnschedulable write;
    write.ns = pod.ns;
    write.name = pod.name;
    write.uid = pod.uid;
    actions.push_back({0, std::move(write)});
  }
}

void StatusUpdater::Flush(absl::Time now, std::vector<model::Action>& actions) {
  wake_at_ = absl::InfiniteFuture();
  FlushNews(now, actions);
  FlushPods(now, actions);
  FlushRefreshes(now, actions);
  FlushBound(now, actions);
  std::vector<std::string> groups;
  CollectUnclear(now, groups);
  WriteClear(std::move(groups), actions);
  ClearBound(now, actions);
  if (!retries_.empty()) wake_at_ = std::min(wake_at_, retries_.begin()->first);
}

// ---- waiting workloads --------------------------------------------------------------------------

void StatusUpdater::Renew(const engine::Waiting& entry, absl::Time now) {
  const state::Workload& workload = state_.workload(entry.workload);
  Row& row = RowOf(workload, entry, now);
  row.nominated = IsAsGroup(workload) ? "" : NominatedName(state_, entry);
  SetCondition(workload, row);
  Enqueue(workload.id, row);
}

void StatusUpdater::RenewBehind(const engine::Waiting& entry, state::WorkloadId workload,
                                int64_t place, absl::Time now) {
  const Row* row = FindRow(state_.workload(workload));
  if (row != nullptr && row->round == round_) return;
  engine::Waiting own = entry;
  own.workload = workload;
  own.behind = 0;
  own.verdict.position += place;
  own.pods.clear();
  for (const state::PodId pod : state_.workload(workload).pods) own.pods.push_back({pod});
  Renew(own, now);
}

void StatusUpdater::Update(const engine::Engine& engine,
                           const std::vector<engine::Waiting>& waiting,
                           const engine::WaitingChanges& changes, absl::Time now,
                           std::vector<model::Action>& actions) {
  ++round_;
  if (changes.all) equivalence_classes_.clear();
  const std::vector<state::WorkloadId> alone_before = std::exchange(alone_, {});
  absl::flat_hash_map<uint64_t, const engine::Waiting*> settled;  // few of them need a check
  for (const engine::Waiting& entry : waiting) {
    alone_.push_back(entry.workload);
    Renew(entry, now);
    if (entry.behind == 0) continue;
    ClassRow& equivalence_class = equivalence_classes_[entry.equivalence_class];
    const bool same = equivalence_class.round == round_ - 1 &&
                      verdict::SameButForPassingNumbers(equivalence_class.verdict, entry.verdict);
    equivalence_class.round = round_;
    if (same) {
      settled.emplace(entry.equivalence_class, &entry);
      continue;
    }
    equivalence_class.verdict = entry.verdict;
    int64_t place = 0;
    engine.ForEachBehind(
        entry, [&](state::WorkloadId workload) { RenewBehind(entry, workload, ++place, now); });
  }
  absl::erase_if(equivalence_classes_, [&](const auto& row) { return row.second.round != round_; });
  const auto look = [&](state::WorkloadId workload) {
    const auto entry = settled.find(engine.EquivalenceClassOf(workload));
    if (entry == settled.end()) return;
    RenewBehind(*entry->second, workload, entry->second->behind, now);
  };
  for (const state::WorkloadId workload : changes.came) look(workload);
  for (const state::WorkloadId workload : alone_before) look(workload);
  std::vector<state::WorkloadId> gone = changes.left;
  gone.insert(gone.end(), alone_before.begin(), alone_before.end());
  if (changes.all) {
    gone.resize(rows_.size());
    std::iota(gone.begin(), gone.end(), state::WorkloadId{0});
  }
  Clear(gone, now, actions);
  Flush(now, actions);
}

void StatusUpdater::CollectUnclear(absl::Time now, std::vector<std::string>& groups) {
  for (auto it = unclear_.begin(); it != unclear_.end();) {
    Pause& pause = it->second;
    const size_t slash = it->first.find('/');
    const state::WorkloadId id =
        state_.FindGroup(it->first.substr(0, slash), it->first.substr(slash + 1));
    const bool done = id == state::kNoId || FindRow(state_.workload(id)) != nullptr ||
                      state_.workload(id).group == nullptr ||
                      (state_.workload(id).group->schedulability_hash.empty() &&
                       !BearsFormerReason(state_.workload(id)));
    if (done) {
      it = unclear_.erase(it);
      continue;
    }
    if (pause.until <= now) {
      groups.push_back(it->first);
      pause.until = absl::InfiniteFuture();  // unless it fails again
    }
    wake_at_ = std::min(wake_at_, pause.until);
    ++it;
  }
}

// Clears verdicts. `gone` includes every workload that was skipped because it no longer waits.
void StatusUpdater::Clear(const std::vector<state::WorkloadId>& gone, absl::Time now,
                          std::vector<model::Action>& actions) {
  std::vector<std::string> groups;
  if (round_ == 1) {
    // Left by a former process, ours or KAI's; the group has started to run since.
    state_.ForEachWorkload([&](const state::Workload& workload) {
      if (workload.group == nullptr) return;
      if (workload.group->schedulability_hash.empty() && !BearsFormerReason(workload)) return;
      groups.push_back(model::Key(workload.ns, workload.name));
    });
  }
  for (const state::WorkloadId id : gone) {
    if (id >= rows_.size() || rows_[id] == nullptr || rows_[id]->round == round_) continue;
    if (KeepForBindings(id, now)) continue;
    const Row& row = *rows_[id];
    if (row.is_group) groups.push_back(model::Key(row.ns, row.name));
    rows_[id].reset();
  }
  CollectUnclear(now, groups);
  WriteClear(std::move(groups), actions);
}

bool StatusUpdater::KeepForBindings(state::WorkloadId id, absl::Time now) {
  Row& row = *rows_[id];
  const state::Workload& workload = state_.workload(id);
  if (!row.is_group || !IsRowOf(row, workload) || !IsAsGroup(workload) ||
      workload.Count(state::PodStatus::kBinding) == 0) {
    return false;
  }
  const auto [left, added] = leaving_.try_emplace(id, now + kBindings);
  row.leaving = added || now < left->second;
  return row.leaving;
}

void StatusUpdater::ClearBound(absl::Time now, std::vector<model::Action>& actions) {
  std::vector<std::string> groups;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const state::WorkloadId id = it->first;
    Row* row = id < rows_.size() ? rows_[id].get() : nullptr;
    const bool waits = row == nullptr || !row->leaving;  // or another workload has the id
    if (!waits && KeepForBindings(id, now)) {
      wake_at_ = std::min(wake_at_, it->second);
      ++it;
      continue;
    }
    if (!waits) {
      groups.push_back(model::Key(row->ns, row->name));
      rows_[id].reset();
    }
    it = leaving_.erase(it);
  }
  WriteClear(std::move(groups), actions);
}

bool StatusUpdater::WasCleared(const state::Workload& workload) const {
  const auto found = cleared_.find(model::Key(workload.ns, workload.name));
  return found != cleared_.end() && found->second == workload.uid;
}

void StatusUpdater::WriteClear(std::vector<std::string> groups,
                               std::vector<model::Action>& actions) {
  std::sort(groups.begin(), groups.end());  // rows have no stable order
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  for (const std::string& key : groups) {
    const size_t slash = key.find('/');
    const state::WorkloadId id = state_.FindGroup(key.substr(0, slash), key.substr(slash + 1));
    if (id == state::kNoId) continue;
    const state::Workload& workload = state_.workload(id);
    if (workload.group == nullptr || FindRow(workload) != nullptr) continue;
    model::SetPodGroupSchedulability write{workload.ns, workload.name, workload.uid, "", "", ""};
    AddConditions(*workload.group, write);
    actions.push_back({0, std::move(write)});
    cleared_[key] = workload.uid;
  }
  if (cleared_.size() < trim_cleared_at_) return;
  absl::erase_if(cleared_, [this](const auto& entry) {
    const size_t slash = entry.first.find('/');
    return state_.FindGroup(entry.first.substr(0, slash), entry.first.substr(slash + 1)) ==
           state::kNoId;
  });
  trim_cleared_at_ = std::max<size_t>(1024, 2 * cleared_.size());
}

void StatusUpdater::WriteFailed(const std::string& ns, const std::string& name, bool group,
                                absl::Time now) {
  state::WorkloadId id = state::kNoId;
  state::PodId pod = state::kNoId;
  if (group) {
    id = state_.FindGroup(ns, name);
  } else if (pod = state_.FindPod(ns, name); pod != state::kNoId) {
    id = state_.pod(pod).workload;
  }
  if (id == state::kNoId) return;
  if (const auto bound = bound_.find(pod); pod != state::kNoId && bound != bound_.end()) {
    bound->second.until = now + kRetry.Pause(++bound->second.failures);
    wake_at_ = std::min(wake_at_, bound->second.until);
    return;
  }
  if (Row* found = FindRow(state_.workload(id)); found != nullptr) {
    Row& row = *found;
    if (!group) row.pods.erase(state_.pod(pod).uid);
    if (group || !IsAsGroup(state_.workload(id))) row.in_doubt = true;
    // Failed answers to several writes of one workload (its pods) are one failure.
    if (row.retry_at > now) return;
    // A failure long after the last retry begins a new series.
    if (row.retry_at + 4 * kRetry.max < now) row.failures = 0;
    row.retry_at = now + kRetry.Pause(++row.failures);
    retries_[row.retry_at].push_back(id);
    // It is in no lane until then.
    row.queued_news = row.queued_refresh = row.queued_pods = true;
    wake_at_ = std::min(wake_at_, row.retry_at);
  } else if (group) {
    Pause& pause = unclear_[model::Key(ns, name)];
    pause.until = now + kRetry.Pause(++pause.failures);
    wake_at_ = std::min(wake_at_, pause.until);
  }
}

size_t StatusUpdater::retries() const {
  size_t count = unclear_.size();
  for (const auto& [at, rows] : retries_) count += rows.size();
  return count;
}

absl::Time StatusUpdater::Since(state::WorkloadId workload) const {
  const Row* row = FindRow(state_.workload(workload));
  return row == nullptr ? absl::InfinitePast() : row->since;
}

}  // namespace fairlead::core
