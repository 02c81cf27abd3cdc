// Of Checks: gangs and sub-groups run as a whole, or not at all.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"
#include "sim/world/api_json.h"

namespace fairlead::simtest {

using sim::world::ApiServer;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;

// Of the group, or of one of its sub-groups.
int64_t Checks::ActiveIn(const sim::world::GroupFacts& group, const std::string* part) const {
  return std::count_if(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
    const sim::world::PodFacts& pod = entry.second.facts;
    return pod.ns == group.ns && pod.group == group.name &&
           (part == nullptr || pod.sub_group == *part) && pod.ours && pod.active() &&
           !pod.terminating;
  });
}

// When the sub-group of the pod began to run, and whether it has been complete since.
void Checks::NotePart(const sim::world::PodFacts& pod) {
  const auto group = truth_->groups().find(pod.ns + "/" + pod.group);
  if (group == truth_->groups().end()) return;
  const auto part = group->second.facts.parts.find(pod.sub_group);
  if (part == group->second.facts.parts.end()) return;
  const std::string name = absl::StrCat(group->first, " ", part->first);
  const int64_t active = ActiveIn(group->second.facts, &part->first);
  if (active == 0) {
    running_parts_.erase(name);
    return;
  }
  RunningPart& row = running_parts_.try_emplace(name, RunningPart{time_->now()}).first->second;
  row.complete |= active >= part->second;
}

void Checks::CheckGrouped(const ApiServer::Commit& commit) {
  if (commit.type != ResourceType::kPods || commit.before == nullptr || commit.after == nullptr) {
    return;
  }
  const sim::world::PodFacts before = sim::world::ReadPod(*commit.before);
  if (!before.group.empty() || before.node.empty() || !before.ours) return;
  const PodRow& row = truth_->pods().at(before.key());
  if (time_->now() - row.created >= kGrouped || !row.BoundByFairlead()) return;
  // It counts from the creation time by its own clock.
  const Clock clock = ClockOf(row.bound_by);
  if (clock.offset != absl::ZeroDuration() || clock.changed_at > row.created) return;
  // Nothing told of a pod-grouper before its first group.
  if (row.bound_at < groups_since_ + kKnown) return;
  Fail("gang", absl::StrCat("pod ", before.key(), " was bound ",
                            absl::FormatDuration(row.bound_at - row.created),
                            " after its creation, and grouped ",
                            absl::FormatDuration(time_->now() - row.created), " after it"));
}

// The program groups pods by their owners.
void Checks::CheckKnownGroup(const sim::world::Json& pod) {
  const auto owners = pod["metadata"].find("ownerReferences");
  if (owners == pod["metadata"].end() || owners->empty()) return;
  const std::string ns = TextAt(pod, {"metadata", "namespace"});
  const sim::world::Json* owner =
      server_->Find(ResourceType::kJobs, ns, TextAt(owners->front(), {"name"}));
  if (owner == nullptr) return;
  const std::string minimum =
      TextAt(*owner, {"metadata", "annotations", "kai.scheduler/batch-min-member"});
  const std::string group = TextAt(pod, {"metadata", "annotations", "pod-group-name"});
  if (minimum == "1" || !group.empty()) return;
  Fail("gang",
       absl::StrCat("pod ", ns, "/", TextAt(pod, {"metadata", "name"}),
                    " is bound alone, and its owner says that ", minimum, " pods start together"));
}

void Checks::CheckGangEviction(const sim::world::PodFacts& pod, const std::string& why) {
  if (!absl::StrContains(why, "(stalegangeviction)")) return;
  CheckNoneSucceeded(pod, why);
  // Pods of sub-groups are told another sentence.
  if (absl::StrContains(why, "(stalegangeviction): its gang")) CheckBelowMinimum(pod);
}

// A group of which a pod has succeeded may run below its minimum. What succeeded is deleted some
// seconds later, and then it may not.
void Checks::CheckNoneSucceeded(const sim::world::PodFacts& pod, const std::string& why) {
  constexpr absl::Duration kHeard = absl::Milliseconds(500);  // by an undisturbed watch
  const absl::Time now = time_->now();
  const absl::Time known = now < disturbed_until_ + kRecovery ? KnownSince() : now - kHeard;
  for (const auto& [key, row] : truth_->pods()) {
    if (row.facts.ns != pod.ns || row.facts.group != pod.group || !row.facts.ours) continue;
    if (row.succeeded_at > known || row.moved_at > known) continue;
    Fail("gang", absl::StrCat("pod ", pod.key(), " is told \"", why, "\", and pod ", key,
                              " of its group succeeded ",
                              absl::FormatDuration(now - row.succeeded_at), " ago"));
  }
}

// A sub-group that need not run runs as a whole, or not at all. A budget may keep its rest.
void Checks::CheckParts() {
  const absl::Time now = time_->now();
  std::map<std::string, absl::Time> half;
  for (const auto& [key, group] : truth_->groups()) {
    if (group.any_succeeded) continue;
    if (server_->Find(ResourceType::kPodDisruptionBudgets, group.facts.ns, group.facts.name)) {
      continue;
    }
    for (const auto& [part, least] : group.facts.parts) {
      const int64_t active = ActiveIn(group.facts, &part);
      if (active == 0 || active >= least) continue;
      const std::string name = absl::StrCat(key, " ", part);
      const auto running = running_parts_.find(name);
      if (running != running_parts_.end() && !running->second.complete &&
          running->second.since > std::max(settled_at_, disturbed_until_ + kRecovery) &&
          now - running->second.since > kStarted && !IsAnyRefused()) {
        Fail("parts", absl::StrCat("sub-group ", part, " of group ", key, " was started ",
                                   absl::FormatDuration(now - running->second.since), " ago, and ",
                                   active, " of ", least, " pods are bound"));
      }
      const auto since = half_parts_.find(name);
      half[name] = since == half_parts_.end() ? now : since->second;
      if (now - half[name] <= caps_.gang_grace + kGangSlack) continue;
      Fail("parts", absl::StrCat("sub-group ", part, " of group ", key, ": ", active, " of ", least,
                                 " pods are bound, for ", absl::FormatDuration(now - half[name])));
    }
  }
  half_parts_ = std::move(half);
}

void Checks::CheckGangs() {
  std::map<std::string, absl::Time> half;
  const absl::Time now = time_->now();
  for (const auto& [key, group] : truth_->groups()) {
    if (group.facts.odd || group.any_succeeded || group.facts.min_member < 2) continue;
    if (server_->Find(ResourceType::kPodDisruptionBudgets, group.facts.ns, group.facts.name)) {
      continue;
    }
    const int64_t active = ActiveIn(group.facts, nullptr);
    if (active == 0 || active >= group.facts.min_member) continue;
    const auto since = half_since_.find(key);
    half[key] = since == half_since_.end() ? now : since->second;
    if (now - half[key] <= caps_.gang_grace + kGangSlack) continue;
    Fail("gang", absl::StrCat("group ", key, ": ", active, " of ", group.facts.min_member,
                              " pods are bound, for ", absl::FormatDuration(now - half[key])));
  }
  half_since_ = std::move(half);
}

// Its gang was below its minimum when that was decided.
void Checks::CheckBelowMinimum(const sim::world::PodFacts& evicted) {
  const absl::Time known = time_->now() - kServed;
  const auto group = truth_->groups().find(evicted.ns + "/" + evicted.group);
  if (group == truth_->groups().end() || group->second.facts.odd) return;
  if (!evicted.sub_group.empty()) return;  // the group may have none of that name by now
  if (group->second.changed_at > known || time_->now() <= disturbed_until_ + kRecovery) return;
  const int64_t active =
      std::count_if(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
        const sim::world::PodFacts& pod = entry.second.facts;
        return pod.ns == evicted.ns && pod.group == evicted.group && pod.ours && pod.active() &&
               entry.second.bound_at <= known && entry.second.moved_at <= known &&
               (!pod.terminating || pod.name == evicted.name);
      });
  if (active < group->second.facts.min_member) return;
  Fail("eviction", absl::StrCat("pod ", evicted.key(), " is told that its gang is too small, and ",
                                active, " pods run of ", group->second.facts.min_member));
}

// A gang is bound at once, or not begun. Pods that were bound before they came to it are no fault
// of its own.
void Checks::CheckStarted() {
  const absl::Time now = time_->now();
  for (const auto& [key, group] : truth_->groups()) {
    const int64_t active = ActiveIn(group.facts, nullptr);
    if (active == 0) {
      running_groups_.erase(key);
      continue;
    }
    RunningPart& row = running_groups_.try_emplace(key, RunningPart{now}).first->second;
    const bool odd = group.facts.odd || group.any_succeeded || group.changed_at > row.since;
    row.complete |= odd || active >= group.facts.min_member;
    if (row.complete || now - row.since <= kStarted) continue;
    if (row.since <= std::max(disturbed_until_, refused_until_) + kRecovery) continue;
    if (server_->Find(ResourceType::kPodDisruptionBudgets, group.facts.ns, group.facts.name) ||
        IsAnyRefused()) {
      continue;
    }
    const bool joined =
        std::any_of(truth_->pods().begin(), truth_->pods().end(), [&](const auto& entry) {
          const PodRow& pod = entry.second;
          return pod.facts.ns == group.facts.ns && pod.facts.group == group.facts.name &&
                 !pod.facts.node.empty() &&
                 (pod.moved_at >= pod.bound_at || !pod.BoundByFairlead());
        });
    if (joined) continue;
    Fail("gang",
         absl::StrCat("group ", key, " was started ", absl::FormatDuration(now - row.since),
                      " ago, and ", active, " of ", group.facts.min_member, " pods are bound"));
  }
  std::erase_if(running_groups_,
                [this](const auto& row) { return !truth_->groups().contains(row.first); });
}

}  // namespace fairlead::simtest
