#include "core/owned_groups.h"

#include <algorithm>
#include <utility>

#include "scheduler/model/api_names.h"

namespace fairlead::core {

void OwnedGroups::Seen(const model::PodGroup& group) {
  const std::string key = model::Key(group.meta);
  const bool followed = MayFollow(key);
  seen_[key] = {group.meta.uid,
                group.meta.resource_version,
                group.meta.owners.empty() ? "" : group.meta.owners.front().uid,
                group.meta.annotations.Get(model::kFollowsOwnerAnnotation) == "true",
                group.meta.deletion.has_value(),
                group};
  const auto found = rows_.find(key);
  if (found == rows_.end()) return;
  Row& row = found->second;
  row.was_ours = seen_[key].follows;
  // What was known while it did not follow its owner may be old.
  if (row.was_ours && !followed) row.desired.reset();
  if (!IsToBeWritten(key, row)) {
    row.write.Settle();
    row.problem = absl::OkStatus();
  }
  open_.insert(key);
}

bool OwnedGroups::Gone(const std::string& key, const std::string& uid) {
  const auto seen = seen_.find(key);
  if (seen == seen_.end() || (!uid.empty() && seen->second.uid != uid)) return false;
  seen_.erase(seen);
  // Its owner may be gone, and the group with it.
  if (const auto found = rows_.find(key); found != rows_.end()) found->second.desired.reset();
  return true;
}

void OwnedGroups::Desire(const std::string& key, model::PodGroup group) {
  Row& row = rows_[key];
  if (const auto seen = seen_.find(key); seen != seen_.end()) row.was_ours = seen->second.follows;
  row.desired = std::move(group);
  open_.insert(key);
}

bool OwnedGroups::DesireOne(const std::string& key, const std::string& owner_uid) {
  const auto seen = seen_.find(key);
  if (seen == seen_.end() || seen->second.owner_uid != owner_uid ||
      !seen->second.spec.sub_groups.empty()) {
    return false;
  }
  const size_t slash = key.find('/');
  model::PodGroup one;
  one.meta.ns = key.substr(0, slash);
  one.meta.name = key.substr(slash + 1);
  one.min_member = 1;
  Desire(key, std::move(one));
  return true;
}

const model::PodGroup* OwnedGroups::DesiredOf(const std::string& key) const {
  const auto found = rows_.find(key);
  if (found == rows_.end() || !found->second.desired.has_value()) return nullptr;
  return &*found->second.desired;
}

void OwnedGroups::Await(const std::string& key, const std::string& pod) {
  rows_[key].pods.insert(pod);
  open_.insert(key);
}

void OwnedGroups::Release(const std::string& key, const std::string& pod) {
  const auto found = rows_.find(key);
  if (found != rows_.end()) found->second.pods.erase(pod);
}

const std::set<std::string>& OwnedGroups::Awaiting(const std::string& key) const {
  static const std::set<std::string> kNone;
  const auto found = rows_.find(key);
  return found == rows_.end() ? kNone : found->second.pods;
}

bool OwnedGroups::MayFollow(const std::string& key) const {
  const auto seen = seen_.find(key);
  return seen == seen_.end() || seen->second.follows;
}

bool OwnedGroups::IsIdle(const std::string& key) const {
  if (seen_.contains(key)) return false;
  const auto found = rows_.find(key);
  if (found == rows_.end()) return true;
  const Row& row = found->second;
  return row.pods.empty() && !row.write.in_flight() && !IsMissed(key, row);
}

// What is not desired may be the API server's default.
bool OwnedGroups::Differs(const Object& object, const model::PodGroup& desired) {
  const auto same = [](const model::SubGroup& a, const model::SubGroup& b) {
    return a.name == b.name && a.parent == b.parent && a.min_member == b.min_member &&
           a.min_sub_group == b.min_sub_group;
  };
  const auto differs = [](const auto& is, const auto& wanted) {
    return wanted.has_value() && is != wanted;
  };
  const model::PodGroupSpec& spec = object.spec;
  return differs(spec.min_member, desired.min_member) ||
         differs(spec.min_sub_group, desired.min_sub_group) ||
         (!desired.priority_class_name.empty() &&
          spec.priority_class_name != desired.priority_class_name) ||
         (desired.preemptibility != model::Preemptibility::kByPriority &&
          spec.preemptibility != desired.preemptibility) ||
         differs(spec.preemption_delay, desired.preemption_delay) ||
         differs(spec.staleness_grace_period, desired.staleness_grace_period) ||
         !std::equal(spec.sub_groups.begin(), spec.sub_groups.end(), desired.sub_groups.begin(),
                     desired.sub_groups.end(), same);
}

bool OwnedGroups::IsMissed(const std::string& key, const Row& row) const {
  if (!row.was_ours) return false;
  const size_t slash = key.find('/');
  const state::WorkloadId workload = state_.FindGroup(key.substr(0, slash), key.substr(slash + 1));
  if (workload == state::kNoId) return false;
  const auto& pods = state_.workload(workload).pods;
  return std::any_of(pods.begin(), pods.end(), [this](state::PodId pod) {
    return state_.pod(pod).status == state::PodStatus::kPending;
  });
}

bool OwnedGroups::IsToBeWritten(const std::string& key, const Row& row) const {
  if (!row.desired.has_value()) return false;
  const auto seen = seen_.find(key);
  if (seen == seen_.end()) return !row.pods.empty() || IsMissed(key, row);
  return seen->second.follows && !seen->second.terminating && Differs(seen->second, *row.desired);
}

OwnedGroups::Readiness OwnedGroups::ReadinessOf(const std::string& key,
                                                absl::string_view sub_group) const {
  const auto found = rows_.find(key);
  const auto seen = seen_.find(key);
  if (found == rows_.end() || seen == seen_.end() || IsToBeWritten(key, found->second)) {
    const bool refused = found != rows_.end() && !found->second.problem.ok();
    return refused ? Readiness::kWriteRefused : Readiness::kInProgress;
  }
  if (seen->second.terminating) return Readiness::kInProgress;
  if (sub_group.empty()) return Readiness::kReady;
  const std::vector<model::SubGroup>& there = seen->second.spec.sub_groups;
  const bool has = std::any_of(there.begin(), there.end(), [sub_group](const model::SubGroup& sub) {
    return sub.name == sub_group;
  });
  return has ? Readiness::kReady : Readiness::kNoSubGroup;
}

absl::Status OwnedGroups::ProblemOf(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? absl::OkStatus() : found->second.problem;
}

bool OwnedGroups::Written(const std::string& key, const absl::Status& status, absl::Time now) {
  const auto found = rows_.find(key);
  if (found == rows_.end()) return false;
  Row& row = found->second;
  // A group of that name is there: the watch will show it.
  const absl::Status meant = absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
  row.write.Answered(meant, now, rules_);
  open_.insert(key);
  const absl::Status told = ToldProblem(meant);
  return std::exchange(row.problem, told) != told;
}

model::PodGroup OwnedGroups::WriteOf(const std::string& key, const Row& row) const {
  model::PodGroup group = *row.desired;
  group.meta.annotations.Set(model::kFollowsOwnerAnnotation, "true");
  const auto seen = seen_.find(key);
  if (seen == seen_.end()) {
    group.meta.uid.clear();
    return group;
  }
  group.meta.uid = seen->second.uid;
  group.meta.resource_version = seen->second.resource_version;
  // The list is written as a whole.
  for (model::SubGroup& sub_group : group.sub_groups) {
    for (const model::SubGroup& there : seen->second.spec.sub_groups) {
      if (there.name == sub_group.name) sub_group.topology = there.topology;
    }
  }
  return group;
}

absl::Time OwnedGroups::Step(absl::Time now, std::vector<model::Action>& actions) {
  absl::Time wake_at = absl::InfiniteFuture();
  for (auto it = open_.begin(); it != open_.end();) {
    const auto found = rows_.find(*it);
    // An answer, or the watch, opens it again.
    if (found == rows_.end() || found->second.write.in_flight() ||
        !IsToBeWritten(*it, found->second)) {
      it = open_.erase(it);
      continue;
    }
    Row& row = found->second;
    if (row.write.MayGo(now)) {
      actions.push_back({0, model::WritePodGroup{WriteOf(*it, row)}});
      row.write.Sent(now, rules_);
      it = open_.erase(it);
      continue;
    }
    wake_at = std::min(wake_at, row.write.due());
    ++it;
  }
  return wake_at;
}

}  // namespace fairlead::core
