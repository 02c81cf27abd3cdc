#include "scheduler/model/workload_objects.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fairlead::model {
namespace {

int64_t NumberOf(const SchedulingCondition& condition) {
  int64_t number = 0;
  return absl::SimpleAtoi(condition.transition_id, &number) ? number : -1;
}

}  // namespace

std::optional<FailedAttempt> FailedAttemptOf(const PodGroup& group) {
  PodGroupSpec spec = group;
  spec.node_pool = NodePoolOf(group);
  return FailedAttemptOf(spec, group.scheduling_conditions);
}

std::optional<FailedAttempt> FailedAttemptOf(const PodGroupSpec& spec,
                                             const std::vector<SchedulingCondition>& conditions) {
  if (spec.scheduling_backoff == kTryForEver) return std::nullopt;
  const SchedulingCondition* newest = nullptr;
  for (const SchedulingCondition& condition : conditions) {
    if (newest == nullptr || NumberOf(condition) > NumberOf(*newest)) newest = &condition;
  }
  if (newest == nullptr || newest->node_pool != spec.node_pool) return std::nullopt;
  return FailedAttempt{newest->node_pool, newest->reason, newest->message};
}

Preemptibility ParsePreemptibility(absl::string_view text) {
  if (text == "preemptible") return Preemptibility::kPreemptible;
  if (text == "non-preemptible") return Preemptibility::kNonPreemptible;
  return Preemptibility::kByPriority;
}

absl::string_view PreemptibilityWord(Preemptibility preemptibility) {
  switch (preemptibility) {
    case Preemptibility::kPreemptible:
      return "preemptible";
    case Preemptibility::kNonPreemptible:
      return "non-preemptible";
    case Preemptibility::kByPriority:
      break;
  }
  return "";
}

std::optional<absl::Duration> ParseSpan(absl::string_view text) {
  absl::Duration span;
  const bool read = absl::ParseDuration(text, &span) && span != absl::InfiniteDuration() &&
                    span != -absl::InfiniteDuration();
  return read ? std::optional(span) : std::nullopt;
}

std::string QueueOfProject(absl::string_view project, absl::string_view node_pool) {
  if (project.empty() || node_pool.empty()) return std::string(project);
  return absl::StrCat(project, "-", node_pool);
}

}  // namespace fairlead::model
