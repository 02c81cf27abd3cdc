#include "core/reconcile/group_annotations.h"

#include <utility>

#include "scheduler/model/api_names.h"

namespace fairlead::core {

std::string AnnotationTime(absl::Time at) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", at, absl::UTCTimeZone());
}

void GroupAnnotations::Write(state::WorkloadId id, GroupAnnotation what) {
  const state::Workload& workload = state_.workload(id);
  Row& row = rows_[workload.uid];
  row.ns = workload.ns;
  row.name = workload.name;
  (what == GroupAnnotation::kStaleSince ? row.stale_since : row.last_eviction) = true;
  due_.push_back(workload.uid);
}

model::StringMap GroupAnnotations::Desired(const std::string& uid, const Row& row) const {
  model::StringMap desired;
  const state::WorkloadId id = state_.FindGroup(row.ns, row.name);
  if (id == state::kNoId || state_.workload(id).uid != uid) return desired;
  const state::WorkloadDetails& details = *state_.workload(id).details;
  const auto add = [&desired](const char* key, absl::Time at, absl::Time none) {
    desired.Set(key, at == none ? "" : AnnotationTime(at));
  };
  if (row.stale_since) {
    add(model::kStaleSinceAnnotation, details.stale_since, absl::InfiniteFuture());
  }
  if (row.last_eviction) {
    add(model::kLastEvictionAnnotation, details.last_eviction, absl::InfinitePast());
  }
  return desired;
}

void GroupAnnotations::Answered(const std::string& uid, const absl::Status& status,
                                absl::Time now) {
  const auto found = rows_.find(uid);
  if (found == rows_.end()) return;
  Row& row = found->second;
  const bool ends = absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
                    absl::IsInvalidArgument(status);
  if (row.attempts.Answered(status, now, rules_) != Outcome::kDone && !ends) {
    repeats_.Add(row.attempts.due(), uid);
    return;
  }
  if (ends || Desired(uid, row) == row.sent) {
    rows_.erase(found);
    return;
  }
  row.attempts.Settle();  // a value has changed meanwhile
  due_.push_back(uid);
}

void GroupAnnotations::Step(absl::Time now, std::vector<model::Action>& actions) {
  for (std::string& uid : repeats_.TakeDue(now)) due_.push_back(std::move(uid));
  for (const std::string& uid : std::exchange(due_, {})) {
    const auto found = rows_.find(uid);
    if (found == rows_.end()) continue;
    Row& row = found->second;
    if (!row.attempts.MayGo(now)) continue;  // its answer, or its repetition, is to come
    row.sent = Desired(uid, row);
    if (row.sent.empty()) {
      rows_.erase(found);
      continue;
    }
    row.attempts.Sent(now, rules_);
    const state::Workload& workload = state_.workload(state_.FindGroup(row.ns, row.name));
    actions.push_back(
        {0, model::SetPodGroupAnnotations{row.ns, row.name, uid, row.sent,
                                          workload.group != nullptr && workload.group->native}});
  }
}

}  // namespace fairlead::core
