#include "core/native_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "scheduler/engine/gang.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core {
namespace {

constexpr char kTrue[] = "True";
constexpr char kFalse[] = "False";

}  // namespace

// What we wrote begins with the code. The message of another writer has none, or is no code.
NativeGroups::Condition NativeGroups::ShownBy(const model::NativePodGroup& group) {
  Condition shown{group.scheduled_status, "", group.scheduled_message};
  const size_t colon = group.scheduled_message.find(": ");
  if (shown.status == kFalse && colon != std::string::npos) {
    shown.code = group.scheduled_message.substr(0, colon);
  }
  return shown;
}

state::Change NativeGroups::Hold(const model::TopologyConstraint& constraint) {
  if (constraint.topology.empty() || topologies_[constraint.topology]++ > 0) return {};
  model::Topology topology;
  topology.meta.name = constraint.topology;
  topology.levels = {
      {std::string(absl::StripPrefix(constraint.topology, model::kTopologyOfLabel)), ""}};
  return state_.UpsertTopology(topology);
}

state::Change NativeGroups::Release(const model::TopologyConstraint& constraint) {
  const auto found = topologies_.find(constraint.topology);
  if (found == topologies_.end() || --found->second > 0) return {};
  topologies_.erase(found);
  return state_.RemoveTopology(constraint.topology);
}

state::Change NativeGroups::Upsert(const model::NativePodGroup& group) {
  const std::string key = model::Key(group.meta.ns, group.meta.name);
  // What it needs is there before it, and what its former self needed goes after it.
  state::Change change = Hold(group.topology);
  Row& row = rows_[key];
  const model::NativePodGroup former = std::exchange(row.group, group);
  if (former.meta.uid != group.meta.uid) {
    row.condition.Restart();
  }
  row.condition.Show(ShownBy(group));
  if (row.condition.shown().status == kTrue) {
    open_.erase(key);
  } else {
    open_.insert(key);
  }
  const state::WorkloadId id = state_.FindGroup(group.meta.ns, group.meta.name);
  const bool kais = id != state::kNoId && state_.workload(id).group != nullptr &&
                    !state_.workload(id).group->native;
  if (!kais) change |= state_.UpsertPodGroup(group);
  change |= Release(former.topology);
  return change;
}

state::Change NativeGroups::Remove(absl::string_view ns, absl::string_view name,
                                   absl::string_view uid) {
  const auto found = rows_.find(model::Key(ns, name));
  if (found == rows_.end() || (!uid.empty() && found->second.group.meta.uid != uid)) return {};
  const model::NativePodGroup gone = std::move(found->second.group);
  open_.erase(found->first);
  rows_.erase(found);
  state::Change change = state_.RemovePodGroup(ns, name, gone.meta.uid);
  change |= Release(gone.topology);
  return change;
}

state::Change NativeGroups::RemoveKais(absl::string_view ns, absl::string_view name,
                                       absl::string_view uid) {
  const state::WorkloadId id = state_.FindGroup(ns, name);
  if (id == state::kNoId || state_.workload(id).group == nullptr ||
      state_.workload(id).group->native) {
    return {};
  }
  state::Change change = state_.RemovePodGroup(ns, name, uid);
  const auto native = rows_.find(model::Key(ns, name));
  if (native == rows_.end()) return change;
  const state::WorkloadId left = state_.FindGroup(ns, name);
  const bool gone = left == state::kNoId || state_.workload(left).group == nullptr;
  if (gone) change |= state_.UpsertPodGroup(native->second.group);
  return change;
}

const state::Workload* NativeGroups::WorkloadOf(const Row& row) const {
  const state::WorkloadId id = state_.FindGroup(row.group.meta.ns, row.group.meta.name);
  if (id == state::kNoId) return nullptr;
  const state::Workload& workload = state_.workload(id);
  const bool is_it =
      workload.group != nullptr && workload.group->native && workload.uid == row.group.meta.uid;
  return is_it ? &workload : nullptr;
}

NativeGroups::Condition NativeGroups::Desired(const state::Workload& workload) const {
  using state::PodStatus;
  const int64_t bound = int64_t{workload.Count(PodStatus::kBound)} +
                        workload.Count(PodStatus::kRunning) + workload.Count(PodStatus::kSucceeded);
  if (bound >= std::max<int64_t>(1, engine::GangMinimum(workload))) return {kTrue, "", ""};
  const std::optional<StatusUpdater::Told> told = verdicts_.ToldOf(workload);
  if (!told.has_value()) return {};
  const std::string code(verdict::CodeName(told->code));
  return {kFalse, code, absl::StrCat(code, ": ", told->sentence)};
}

void NativeGroups::Answered(absl::string_view key, absl::string_view uid,
                            const absl::Status& status, absl::Time now) {
  const auto found = rows_.find(key);
  if (found == rows_.end() || found->second.group.meta.uid != uid) return;
  Row& row = found->second;
  row.condition.Answered(status, now, rules_);
  wake_at_ = std::min(wake_at_, row.condition.due());
}

void NativeGroups::Step(absl::Time now, std::vector<model::Action>& actions) {
  wake_at_ = absl::InfiniteFuture();
  for (const std::string& key : open_) {
    Row& row = rows_.find(key)->second;
    const state::Workload* const workload = WorkloadOf(row);
    if (workload == nullptr) continue;
    const Condition desired = Desired(*workload);
    if (desired.status.empty() || !row.condition.Take(desired, now, rules_, wake_at_)) continue;
    model::SetPodGroupScheduled write;
    write.ns = row.group.meta.ns;
    write.name = row.group.meta.name;
    write.uid = row.group.meta.uid;
    write.scheduled = desired.status == kTrue;
    write.message = desired.message;
    write.observed_generation = row.group.meta.generation;
    write.turns = desired.status != row.condition.shown().status;
    actions.push_back({0, std::move(write)});
  }
}

}  // namespace fairlead::core
