// What a PodGroup's annotations and status say of its past. Each is kept beside what was decided
// here and is not written yet, or not seen again: what the object says counts from when it changes.
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

// An RFC 3339 time in an annotation; `absent` where there is none. What cannot be read is ignored,
// with a warning.
absl::Time ReadTime(const Workload& group, absl::string_view annotation, absl::string_view text,
                    absl::Time absent, std::string& warning) {
  absl::Time time;
  if (text.empty()) return absent;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return time;
  warning = absl::StrCat("PodGroup ", model::Key(group.ns, group.name), ": annotation ", annotation,
                         ": \"", text, "\" is no RFC 3339 time; it is ignored");
  return absent;
}

// True if that is another note than before.
bool SetNote(Workload& workload, std::string GroupNotes::* note, std::string text) {
  const bool same = workload.details->notes == nullptr
                        ? text.empty()
                        : text == workload.details->notes.get()->*note;
  if (same) return false;
  GroupNotes notes = workload.details->notes == nullptr ? GroupNotes{} : *workload.details->notes;
  notes.*note = std::move(text);
  workload.details.Own().notes = std::make_shared<const GroupNotes>(std::move(notes));
  return true;
}

}  // namespace

bool ClusterState::ReadPast(Workload& workload, const FormerGroup* old) {
  const GroupStatus& status = *workload.group_status;
  bool changed = ReadFailedAttempt(workload, old);
  if (old == nullptr || old->status.stale_since != status.stale_since) {
    changed = ReadStaleSince(workload) || changed;
  }
  if (old == nullptr || old->status.last_eviction != status.last_eviction) {
    changed = ReadLastEviction(workload) || changed;
  }
  return changed;
}

bool ClusterState::ReadStaleSince(Workload& workload) {
  std::string warning;
  const absl::Time since =
      ReadTime(workload, model::kStaleSinceAnnotation, workload.group_status->stale_since,
               absl::InfiniteFuture(), warning);
  const bool noted = SetNote(workload, &GroupNotes::stale_warning, std::move(warning));
  if (since == workload.details->stale_since) return noted;
  workload.details.Own().stale_since = since;
  return true;
}

bool ClusterState::ReadLastEviction(Workload& workload) {
  std::string warning;
  const absl::Time at =
      ReadTime(workload, model::kLastEvictionAnnotation, workload.group_status->last_eviction,
               absl::InfinitePast(), warning);
  const bool noted = SetNote(workload, &GroupNotes::eviction_warning, std::move(warning));
  if (at == workload.details->last_eviction) return noted;
  workload.details.Own().last_eviction = at;
  return true;
}

bool ClusterState::ReadFailedAttempt(Workload& workload, const FormerGroup* old) {
  const model::PodGroupSpec& group = *workload.group;
  if (old != nullptr && old->uid != workload.uid) {
    old = nullptr;
    workload.details.Own().failed_attempt = nullptr;
    workload.details.Shrink();
  }
  const std::optional<model::FailedAttempt> said =
      model::FailedAttemptOf(group, workload.group_status->scheduling_conditions);
  if (said.has_value()) {
    if (workload.details->failed_attempt != nullptr && *workload.details->failed_attempt == *said)
      return false;
    workload.details.Own().failed_attempt = std::make_shared<const model::FailedAttempt>(*said);
    return true;
  }
  if (workload.details->failed_attempt == nullptr) return false;
  // Ours may not have been written yet. What the object had and has no more was taken away.
  const bool taken_away =
      old != nullptr &&
      model::FailedAttemptOf(*old->spec, old->status.scheduling_conditions).has_value();
  if (!taken_away && group.scheduling_backoff != model::kTryForEver &&
      workload.details->failed_attempt->node_pool == group.node_pool) {
    return false;
  }
  workload.details.Own().failed_attempt = nullptr;
  return true;
}

void ClusterState::SetStaleSince(WorkloadId id, absl::Time since) {
  if (workloads_[id].details->stale_since == since) return;
  workloads_[id].details.Own().stale_since = since;
  TouchWorkload(id);
}

void ClusterState::SetLastEviction(WorkloadId id, absl::Time at) {
  if (workloads_[id].details->last_eviction == at) return;
  workloads_[id].details.Own().last_eviction = at;
  TouchWorkload(id);
}

void ClusterState::SetFailedAttempt(WorkloadId id, model::FailedAttempt attempt) {
  workloads_[id].details.Own().failed_attempt =
      std::make_shared<const model::FailedAttempt>(std::move(attempt));
  TouchWorkload(id);
}

}  // namespace fairlead::state
