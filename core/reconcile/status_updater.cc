#include "core/reconcile/status_updater.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

std::string NominatedName(const state::ClusterState& state, const engine::Waiting& waiting) {
  if (waiting.pods.size() != 1 || waiting.pods.front().node == state::kNoId) return "";
  return state.node(waiting.pods.front().node).name();
}

// The most values of a verdict that are remembered as not shown yet.
constexpr size_t kMaxUnshown = 16;

}  // namespace

bool StatusUpdater::IsWaiting(const state::PodRecord& pod) {
  return pod.status == state::PodStatus::kPending || pod.status == state::PodStatus::kGated;
}

bool StatusUpdater::BearsFormerReason(const state::Workload& workload) {
  if (workload.group_status->scheduling_conditions.empty() || workload.Active() == 0) return false;
  for (const model::SchedulingCondition& condition : workload.group_status->scheduling_conditions) {
    if (condition.node_pool == workload.group->node_pool) return true;
  }
  return false;
}

bool StatusUpdater::IsAsGroup(const state::Workload& workload) {
  return workload.is_group && workload.group != nullptr;
}

std::optional<StatusUpdater::Told> StatusUpdater::ToldOf(const state::Workload& workload) const {
  const Row* const row = FindRow(workload);
  if (row == nullptr || row->verdict.code == verdict::Code::kNone) return std::nullopt;
  return Told{row->verdict.code, row->condition.sentence};
}

std::string StatusUpdater::ValueOf(absl::string_view hash, absl::string_view nominated) {
  return absl::StrCat(hash, "\n", nominated);
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
void StatusUpdater::Start(Row& row, const state::Workload& workload) {
  row = Row();
  row.serial = ++serials_;
  row.is_group = workload.is_group;
  row.ns = workload.ns;
  row.name = workload.name;
  row.uid = workload.uid;
  if (IsAsGroup(workload)) {
    const auto cleared = cleared_.find(model::Key(workload.ns, workload.name));
    if (cleared == cleared_.end() || cleared->second.uid != workload.uid) {
      row.written_hash = workload.group_status->schedulability_hash;
    } else {
      row.written_hash = cleared->second.hash;
      row.unshown = cleared->second.unshown;
      row.watch_tells = false;
      row.after_clear = cleared->second.serial;
    }
    return;
  }
  if (workload.pods.empty()) return;
  const state::PodRecord& pod = state_.pod(workload.pods.front());
  row.written_hash = pod.details->verdict_hash;
  const std::string* nominated = nominations_.Find(pod.uid);
  row.written_nominated = nominated == nullptr ? pod.details->nominated_node : *nominated;
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
    row.hash = UsedName(settings_.derived_names.get(), verdict::Hash(row.verdict));
    row.condition.sentence = verdict::Sentence(row.verdict);
    row.look_at_pods = true;
  }
  row.round = round_;
  if (std::exchange(row.leaving, false)) row.look_at_pods = true;
  return row;
}

// With markUnschedulable false other autoscalers must see nothing of a group's pods; a reason that
// they act on is removed.
void StatusUpdater::SetCondition(const state::Workload& workload, Row& row) const {
  const bool as_group = IsAsGroup(workload);
  const bool quiet = as_group && !workload.group->mark_unschedulable;
  const absl::string_view reason =
      verdict::ConditionReason(row.verdict.code, settings_.hook_on || quiet);
  if (row.condition.reason == reason) return;
  row.condition.reason = std::string(reason);
  row.look_at_pods = true;
}

bool StatusUpdater::Shows(const state::Workload& workload, absl::string_view hash,
                          absl::string_view nominated) const {
  if (IsAsGroup(workload)) return workload.group_status->schedulability_hash == hash;
  return std::all_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId id) {
    const state::PodDetails& details = *state_.pod(id).details;
    return !IsWaiting(state_.pod(id)) ||
           (details.verdict_hash == hash && details.nominated_node == nominated);
  });
}

bool StatusUpdater::ShowsWritten(const state::Workload& workload, const Row& row) const {
  return row.watch_tells && Shows(workload, row.written_hash, row.written_nominated);
}

std::vector<std::string> StatusUpdater::Unshown(const state::Workload& workload,
                                                const Row& row) const {
  std::vector<std::string> values = {ValueOf(row.written_hash, row.written_nominated)};
  if (ShowsWritten(workload, row)) return values;  // nothing older follows
  values.insert(values.end(), row.unshown.begin(), row.unshown.end());
  if (IsAsGroup(workload)) {
    values.push_back(ValueOf(workload.group_status->schedulability_hash, ""));
  } else {
    for (const state::PodId id : workload.pods) {
      const state::PodDetails& details = *state_.pod(id).details;
      values.push_back(ValueOf(details.verdict_hash, details.nominated_node));
    }
  }
  if (values.size() > kMaxUnshown) values.resize(kMaxUnshown);
  return values;
}

void StatusUpdater::NoteUnshown(const state::Workload& workload, Row& row) const {
  if (ShowsWritten(workload, row)) {
    row.unshown.clear();
    return;
  }
  row.unshown = Unshown(workload, row);
  const std::string value = ValueOf(row.hash, row.nominated);
  row.watch_tells = row.unshown.size() < kMaxUnshown &&
                    std::find(row.unshown.begin(), row.unshown.end(), value) == row.unshown.end();
}

bool StatusUpdater::IsPutOff(state::WorkloadId id, Row& row, absl::Time now) {
  const absl::Time until = row.since + kPassesSoon;
  if (row.verdict.code != verdict::Code::kWaitingForVictims || now >= until ||
      row.write.started() || !row.written_reason.empty() || !row.written_hash.empty()) {
    return false;
  }
  if (!std::exchange(row.put_off, true)) put_off_.Add(until, id);
  return true;
}

// Puts differences from the last write into their lanes.
void StatusUpdater::Enqueue(state::WorkloadId id, Row& row, absl::Time now) {
  if (IsPutOff(id, row, now)) return;
  const state::Workload& workload = state_.workload(id);
  const bool as_group = IsAsGroup(workload);
  if (std::exchange(row.version, workload.version) != workload.version) row.look_at_pods = true;
  const bool joined =
      workload.is_group && !as_group && row.look_at_pods &&
      std::any_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId pod) {
        return IsWaiting(state_.pod(pod)) && !row.pods.contains(state_.pod(pod).uid);
      });
  if (joined) row.written_reason.clear();
  const bool refresh = HasRefresh(row);
  if (as_group && row.written_reason.empty() && !refresh && !IsUnsure(row)) {
    // A former process wrote it.
    row.written_reason = row.condition.reason;
    row.tell_event = false;
  }
  const bool done = row.undone ? !HasNews(row) && !refresh : ShowsWritten(workload, row);
  if (row.write.failed() && done) {
    row.write.Settle();
    row.undone = false;
  }
  const bool news = HasNews(row);
  if (news && !row.queued_news) {
    row.queued_news = true;
    (row.written_reason.empty() ? firsts_ : news_).push_back(id);
  } else if (!news && refresh && !row.queued_refresh) {
    row.queued_refresh = true;
    refreshes_.push_back(id);
  }
  if (!news) row.tell_event = false;
  if (as_group && row.pods_lane != PodsLane::kLook && row.pods_lane != PodsLane::kPaused &&
      std::exchange(row.look_at_pods, false)) {
    row.walk = {};
    EnterLane(id, row, PodsLane::kLook);
  }
}

// ---- waiting workloads --------------------------------------------------------------------------

void StatusUpdater::Renew(const engine::Waiting& entry, absl::Time now) {
  const state::Workload& workload = state_.workload(entry.workload);
  Row& row = RowOf(workload, entry, now);
  row.nominated = IsAsGroup(workload) ? "" : NominatedName(state_, entry);
  SetCondition(workload, row);
  Enqueue(workload.id, row, now);
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

bool StatusUpdater::StaysAsItIs(const engine::Waiting& entry,
                                const std::map<state::WorkloadId, Awaited>& before,
                                absl::Time now) {
  if (!entry.verdict.awaited) return false;
  const std::string& uid = state_.workload(entry.workload).uid;
  const auto known = before.find(entry.workload);
  const bool same = known != before.end() && known->second.uid == uid;
  const absl::Time since = same ? known->second.since : now;
  awaited_[entry.workload] = {uid, since};
  if (now >= since + kPassesSoon) return false;
  stays_until_ = std::min(stays_until_, since + kPassesSoon);
  return true;
}

void StatusUpdater::Update(const engine::Engine& engine,
                           const std::vector<engine::Waiting>& waiting,
                           const engine::WaitingChanges& changes, absl::Time now) {
  ++round_;
  if (changes.all) equivalence_classes_.clear();
  const std::vector<state::WorkloadId> alone_before = std::exchange(alone_, {});
  absl::flat_hash_map<uint64_t, const engine::Waiting*> settled;  // few of them need a check
  absl::flat_hash_set<uint64_t> kept;                             // classes that stay as they are
  const auto keep = [&](state::WorkloadId workload) {
    if (Row* const row = FindRow(state_.workload(workload)); row != nullptr) row->round = round_;
  };
  const std::map<state::WorkloadId, Awaited> awaited_before = std::exchange(awaited_, {});
  stays_until_ = absl::InfiniteFuture();
  for (const engine::Waiting& entry : waiting) {
    alone_.push_back(entry.workload);
    if (StaysAsItIs(entry, awaited_before, now)) {
      keep(entry.workload);
      if (entry.behind == 0) continue;
      kept.insert(entry.equivalence_class);
      if (changes.all) engine.ForEachBehind(entry, keep);
      const auto known = equivalence_classes_.find(entry.equivalence_class);
      if (known != equivalence_classes_.end()) known->second.round = round_;
      continue;
    }
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
  std::vector<state::WorkloadId> came = std::exchange(came_meanwhile_, {});
  came.insert(came.end(), changes.came.begin(), changes.came.end());
  std::vector<state::WorkloadId> gone = changes.left;
  const auto stays = [&](state::WorkloadId workload) {
    if (kept.empty() || !kept.contains(engine.EquivalenceClassOf(workload))) return false;
    came_meanwhile_.push_back(workload);
    return true;
  };
  for (const state::WorkloadId workload : came) {
    if (!stays(workload)) look(workload);
  }
  for (const state::WorkloadId workload : alone_before) {
    if (stays(workload)) continue;  // if it has left, it is among those
    look(workload);
    gone.push_back(workload);
  }
  if (changes.all) {
    gone.resize(rows_.size());
    std::iota(gone.begin(), gone.end(), state::WorkloadId{0});
  }
  Clear(gone, now);
  Flush(now);
}

// Clears verdicts. `gone` includes every workload that was skipped because it no longer waits.
void StatusUpdater::Clear(const std::vector<state::WorkloadId>& gone, absl::Time now) {
  if (round_ == 1) {
    // Left by a former process, ours or KAI's; the group has started to run since.
    state_.ForEachWorkload([&](const state::Workload& workload) {
      if (workload.group == nullptr) return;
      if (workload.group_status->schedulability_hash.empty() && !BearsFormerReason(workload))
        return;
      if (FindRow(workload) == nullptr) clears_[model::Key(workload.ns, workload.name)];
    });
  }
  for (const state::WorkloadId id : gone) {
    if (id >= rows_.size() || rows_[id] == nullptr || rows_[id]->round == round_) continue;
    if (KeepForBindings(id, now)) continue;
    AddClear(*rows_[id]);
    rows_[id].reset();
  }
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

void StatusUpdater::ClearBound(absl::Time now) {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const state::WorkloadId id = it->first;
    Row* row = RowAt(id);
    const bool waits = row == nullptr || !row->leaving;  // or another workload has the id
    if (!waits && KeepForBindings(id, now)) {
      wake_at_ = std::min(wake_at_, it->second);
      ++it;
      continue;
    }
    if (!waits) {
      AddClear(*row);
      rows_[id].reset();
    }
    it = leaving_.erase(it);
  }
}

bool StatusUpdater::BeganCleared(const Row& row) const {
  const auto cleared = cleared_.find(model::Key(row.ns, row.name));
  return cleared != cleared_.end() && cleared->second.serial == row.after_clear &&
         cleared->second.done;
}

void StatusUpdater::AddClear(const Row& row) {
  if (!row.is_group) return;
  const state::WorkloadId id = state_.FindGroup(row.ns, row.name);
  const bool same = id != state::kNoId && IsRowOf(row, state_.workload(id));
  if (!row.write.started() && row.written_hash.empty() &&
      (row.unshown.empty() || BeganCleared(row)) &&
      (!same || !BearsFormerReason(state_.workload(id)))) {
    return;  // it bears nothing
  }
  Removal& removal = clears_[model::Key(row.ns, row.name)];
  const bool known = !removal.attempts.open() && !row.write.in_flight() && !row.write.in_doubt();
  removal.hash = known ? row.written_hash : "";
  removal.attempts.Settle();
  if (same) removal.unshown = Unshown(state_.workload(id), row);
}

size_t StatusUpdater::conditions_known() const {
  size_t count = 0;
  for (const std::unique_ptr<Row>& row : rows_) count += row == nullptr ? 0 : row->pods.size();
  return count;
}

absl::Time StatusUpdater::Since(state::WorkloadId workload) const {
  const Row* row = FindRow(state_.workload(workload));
  if (row != nullptr) return row->since;
  const auto awaited = awaited_.find(workload);
  const bool same =
      awaited != awaited_.end() && awaited->second.uid == state_.workload(workload).uid;
  return same ? awaited->second.since : absl::InfinitePast();
}

}  // namespace fairlead::core
