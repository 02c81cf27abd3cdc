#include "core/verdict_book.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

constexpr char kUnschedulable[] = "Unschedulable";

std::string SoftPart(const verdict::Verdict& v) {
  std::string text = absl::StrCat(v.position, "/", v.pods_running, "/", v.pods_waiting);
  if (v.queue_block.has_value()) absl::StrAppend(&text, " used ", v.queue_block->used);
  for (const verdict::FailedPredicate& predicate : v.failed_predicates) {
    absl::StrAppend(&text, " ", predicate.nodes);
  }
  return text;
}

std::string NominatedName(const state::ClusterState& state, const engine::Waiting& waiting) {
  if (waiting.pods.size() != 1 || waiting.pods.front().node == state::kNoId) return "";
  return state.node(waiting.pods.front().node).name();
}

// What the write keeps of others.
void AddConditions(const model::PodGroup& group, model::SetPodGroupSchedulability& write) {
  write.node_pool = model::NodePoolOf(group);
  write.conditions = group.scheduling_conditions;
}

// The entry of a group with schedulingBackoff 1 says that its attempt failed, and why: whoever
// moves groups between node pools acts on it, and a restart knows of it. So there is none before.
void AddAttempt(const state::Workload& workload, model::SetPodGroupSchedulability& write) {
  if (workload.group->scheduling_backoff == model::kTryForEver) return;
  if (!workload.GaveUp()) {
    write.own_condition = model::OwnCondition::kRemove;
  } else if (model::FailedAttemptOf(*workload.group).has_value()) {
    write.own_condition = model::OwnCondition::kKeep;
  } else {
    write.reason = workload.failed_attempt->reason;
    write.message = workload.failed_attempt->message;
    write.names_pool = true;
  }
}

// Whoever scheduled it before us left a reason for waiting on it, and it runs.
bool BearsFormerReason(const state::Workload& workload) {
  if (workload.Active() == 0) return false;
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

bool VerdictBook::IsRowOf(const Row& row, const state::Workload& workload) {
  return row.is_group == workload.is_group && row.uid == workload.uid &&
         row.name == workload.name && row.ns == workload.ns;
}

VerdictBook::Row* VerdictBook::FindRow(const state::Workload& workload) const {
  if (rows_.size() <= workload.id) return nullptr;
  Row* row = rows_[workload.id].get();
  return row != nullptr && IsRowOf(*row, workload) ? row : nullptr;
}

// Of the pods that bear a gang's verdict; 0 if there are none.
uint64_t VerdictBook::PodsDigest(const engine::Waiting& entry, bool only_marked) const {
  StableHash digest;
  bool any = false;
  for (const engine::Waiting::PodPromise& promise : entry.pods) {
    const state::PodRecord& pod = state_.pod(promise.pod);
    if (only_marked && pod.condition_reason != kUnschedulable) continue;
    digest.Add(pod.uid);
    any = true;
  }
  return any ? digest.value() : 0;
}

// After a restart the API server knows what was said before.
void VerdictBook::Start(Row& row, const state::Workload& workload,
                        const engine::Waiting& entry) const {
  row = Row();
  row.is_group = workload.is_group;
  row.ns = workload.ns;
  row.name = workload.name;
  row.uid = workload.uid;
  if (!IsAsGroup(workload)) {
    if (entry.pods.empty()) return;
    const state::PodRecord& pod = state_.pod(entry.pods.front().pod);
    row.told.hash = pod.verdict_hash;
    row.told.nominated = pod.nominated_node;
    row.told.pod_reason = pod.condition_reason;
    return;
  }
  row.told.hash = workload.group->schedulability_hash;
  row.told.pods_digest = PodsDigest(entry, /*only_marked=*/true);
  if (row.told.pods_digest != 0) row.told.pod_reason = kUnschedulable;
}

VerdictBook::Row& VerdictBook::RowOf(const state::Workload& workload, const engine::Waiting& entry,
                                     bool& code_changed, absl::Time now) {
  if (rows_.size() <= workload.id) rows_.resize(workload.id + 1);
  std::unique_ptr<Row>& place = rows_[workload.id];
  if (place == nullptr) place = std::make_unique<Row>();
  Row& row = *place;
  const bool added = row.round == 0 || !IsRowOf(row, workload);
  if (added) Start(row, workload, entry);
  code_changed = added || row.verdict.code != entry.verdict.code;
  if (code_changed) row.since = now;
  if (added || !(row.verdict == entry.verdict)) {
    row.verdict = entry.verdict;
    row.hash = verdict::Hash(row.verdict);
    row.soft = SoftPart(row.verdict);
  }
  if (added) row.told.soft = row.soft;
  row.round = round_;
  return row;
}

// What the pods are to bear. A gang's pods bear nothing but what others' autoscalers have to see,
// and what takes that back. With markUnschedulable false these are to see nothing.
std::string VerdictBook::PodReason(const state::Workload& workload, const Row& row) const {
  const bool as_group = IsAsGroup(workload);
  const bool quiet = as_group && !workload.group->mark_unschedulable;
  const absl::string_view reason = verdict::ConditionReason(row.verdict.code, hook_on_ || quiet);
  const bool told = !as_group || reason == kUnschedulable || row.told.pod_reason == kUnschedulable;
  return told ? std::string(reason) : "";
}

void VerdictBook::WriteGroup(const state::Workload& workload, const Row& row,
                             std::vector<model::Action>& actions) const {
  model::SetPodGroupSchedulability write;
  write.ns = workload.ns;
  write.name = workload.name;
  write.uid = workload.uid;
  constexpr size_t kWhole = 64 << 10;  // far below what an object may hold
  write.schedulability_json = verdict::ToJson(row.verdict, kWhole);
  write.reason = std::string(verdict::ConditionReason(row.verdict.code, hook_on_));
  write.message = verdict::Message(row.verdict);
  AddConditions(*workload.group, write);
  AddAttempt(workload, write);
  actions.push_back({0, std::move(write)});
}

void VerdictBook::WritePods(const engine::Waiting& entry, const Row& row, const Told& wanted,
                            std::vector<model::Action>& actions) const {
  // The texts are the same for all of them.
  model::SetPodUnschedulable write;
  write.reason = wanted.pod_reason;
  write.message = verdict::Message(row.verdict);
  write.verdict_json = verdict::ToJson(row.verdict);
  write.nominated_node = wanted.nominated;
  for (const engine::Waiting::PodPromise& promise : entry.pods) {
    const state::PodRecord& pod = state_.pod(promise.pod);
    write.ns = pod.ns;
    write.name = pod.name;
    write.uid = pod.uid;
    write.observed_generation = pod.generation;
    actions.push_back({0, write});
  }
}

void VerdictBook::EmitChange(const state::Workload& workload, const engine::Waiting& entry,
                             const Row& row, std::vector<model::Action>& actions) const {
  model::EmitEvent event;
  const bool as_group = IsAsGroup(workload);
  const bool about_pod = !as_group && !entry.pods.empty();
  event.about = as_group ? model::Kind::kPodGroup : model::Kind::kPod;
  event.ns = workload.ns;
  event.name = about_pod ? state_.pod(entry.pods.front().pod).name : workload.name;
  event.uid = about_pod ? state_.pod(entry.pods.front().pod).uid : workload.uid;
  event.warning = true;
  event.reason = std::string(verdict::CodeName(row.verdict.code));
  event.note = verdict::Message(row.verdict);
  actions.push_back({0, std::move(event)});
}

void VerdictBook::Tell(const state::Workload& workload, const engine::Waiting& entry, Row& row,
                       const Told& wanted, std::vector<model::Action>& actions) const {
  const bool as_group = IsAsGroup(workload);
  row.told = wanted;
  if (as_group) WriteGroup(workload, row, actions);
  if (as_group && wanted.pod_reason.empty()) return;
  WritePods(entry, row, wanted, actions);
  // Taken back once is enough.
  if (as_group && wanted.pod_reason != kUnschedulable) {
    row.told.pod_reason.clear();
    row.told.pods_digest = 0;
  }
}

void VerdictBook::TellEntry(const engine::Waiting& entry, absl::Time now,
                            std::vector<model::Action>& actions) {
  const state::Workload& workload = state_.workload(entry.workload);
  const bool as_group = IsAsGroup(workload);
  bool code_changed = false;
  Row& row = RowOf(workload, entry, code_changed, now);
  unfinished_.erase(workload.id);
  Told wanted{
      row.hash, row.soft, as_group ? "" : NominatedName(state_, entry), PodReason(workload, row),
      0,        now};
  if (as_group && !wanted.pod_reason.empty()) {
    wanted.pods_digest = PodsDigest(entry, /*only_marked=*/false);
  }
  const bool news = wanted.hash != row.told.hash || wanted.nominated != row.told.nominated ||
                    wanted.pod_reason != row.told.pod_reason ||
                    wanted.pods_digest != row.told.pods_digest;
  if (!news && wanted.soft == row.told.soft) return;
  const absl::Time due_at = std::max(news ? now : row.told.at + refresh_, row.retry_at);
  if (now < due_at) {
    unfinished_.insert(workload.id);
    wake_at_ = std::min(wake_at_, due_at);
    return;
  }
  Tell(workload, entry, row, wanted, actions);
  if (emit_events_ && code_changed) EmitChange(workload, entry, row, actions);
}

void VerdictBook::TellBehind(const engine::Waiting& entry, state::WorkloadId workload,
                             int64_t place, absl::Time now, std::vector<model::Action>& actions) {
  const Row* row = FindRow(state_.workload(workload));
  if (row != nullptr && row->round == round_) return;
  engine::Waiting own = entry;
  own.workload = workload;
  own.behind = 0;
  own.verdict.position += place;
  own.pods.clear();
  for (const state::PodId pod : state_.workload(workload).pods) own.pods.push_back({pod});
  TellEntry(own, now, actions);
}

void VerdictBook::Update(const engine::Engine& engine, const std::vector<engine::Waiting>& waiting,
                         const engine::WaitingChanges& changes, absl::Time now,
                         std::vector<model::Action>& actions) {
  ++round_;
  wake_at_ = absl::InfiniteFuture();
  if (changes.all) crowds_.clear();
  const std::vector<state::WorkloadId> alone_before = std::exchange(alone_, {});
  absl::flat_hash_map<uint64_t, const engine::Waiting*> settled;  // of whom few are looked at
  for (const engine::Waiting& entry : waiting) {
    alone_.push_back(entry.workload);
    TellEntry(entry, now, actions);
    if (entry.behind == 0) continue;
    CrowdRow& crowd = crowds_[entry.crowd];
    verdict::Verdict shared = entry.verdict;
    shared.position = 0;
    const bool same = crowd.round == round_ - 1 && crowd.verdict == shared;
    crowd.round = round_;
    if (same) {
      settled.emplace(entry.crowd, &entry);
      continue;
    }
    crowd.verdict = std::move(shared);
    int64_t place = 0;
    engine.ForEachBehind(entry, [&](state::WorkloadId workload) {
      TellBehind(entry, workload, ++place, now, actions);
    });
  }
  absl::erase_if(crowds_, [&](const auto& row) { return row.second.round != round_; });
  const auto look = [&](state::WorkloadId workload) {
    const auto entry = settled.find(engine.CrowdOf(workload));
    if (entry == settled.end()) return;
    TellBehind(*entry->second, workload, entry->second->behind, now, actions);
  };
  for (const state::WorkloadId workload : changes.came) look(workload);
  for (const state::WorkloadId workload : alone_before) look(workload);
  for (const state::WorkloadId workload : std::set(unfinished_)) look(workload);
  std::vector<state::WorkloadId> gone = changes.left;
  gone.insert(gone.end(), alone_before.begin(), alone_before.end());
  if (changes.all) {
    gone.resize(rows_.size());
    std::iota(gone.begin(), gone.end(), state::WorkloadId{0});
  }
  Clear(gone, now, actions);
}

void VerdictBook::CollectUnclear(absl::Time now, std::vector<std::string>& groups) {
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

// `gone`: among them are all whose row was not looked at because they wait no longer.
void VerdictBook::Clear(const std::vector<state::WorkloadId>& gone, absl::Time now,
                        std::vector<model::Action>& actions) {
  std::vector<std::string> groups;
  if (round_ == 1) {
    // Left behind by a former process, ours or KAI's, whose group has come to run since.
    state_.ForEachWorkload([&](const state::Workload& workload) {
      if (workload.group == nullptr) return;
      if (workload.group->schedulability_hash.empty() && !BearsFormerReason(workload)) return;
      groups.push_back(model::Key(workload.ns, workload.name));
    });
  }
  for (const state::WorkloadId id : gone) {
    if (id >= rows_.size() || rows_[id] == nullptr || rows_[id]->round == round_) continue;
    const Row& row = *rows_[id];
    if (row.is_group) groups.push_back(model::Key(row.ns, row.name));
    rows_[id].reset();
    unfinished_.erase(id);
  }
  CollectUnclear(now, groups);
  std::sort(groups.begin(), groups.end());  // rows are in no order to act in
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
  }
}

void VerdictBook::WriteFailed(const std::string& ns, const std::string& name, bool group,
                              absl::Time now) {
  state::WorkloadId id = state::kNoId;
  if (group) {
    id = state_.FindGroup(ns, name);
  } else if (const state::PodId pod = state_.FindPod(ns, name); pod != state::kNoId) {
    id = state_.pod(pod).workload;
  }
  if (id == state::kNoId) return;
  const auto longer = [](absl::Duration pause) {
    return std::clamp(2 * pause, kRetryInitial, kRetryMax);
  };
  if (Row* found = FindRow(state_.workload(id)); found != nullptr) {
    Row& row = *found;
    // Answers to several writes of one workload (its pods) are one failure.
    if (row.retry_at > now) return;
    row.told.hash.clear();
    unfinished_.insert(id);
    row.retry_pause = row.told.at + 4 * kRetryMax < now ? kRetryInitial : longer(row.retry_pause);
    row.retry_at = now + row.retry_pause;
    wake_at_ = std::min(wake_at_, row.retry_at);
  } else if (group) {
    Pause& pause = unclear_[model::Key(ns, name)];
    pause.length = longer(pause.length);
    pause.until = now + pause.length;
    wake_at_ = std::min(wake_at_, pause.until);
  }
}

absl::Time VerdictBook::Since(state::WorkloadId workload) const {
  const Row* row = FindRow(state_.workload(workload));
  return row == nullptr ? absl::InfinitePast() : row->since;
}

}  // namespace fairlead::core
