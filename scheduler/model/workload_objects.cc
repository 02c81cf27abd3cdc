#include "scheduler/model/workload_objects.h"

#include "absl/strings/numbers.h"

namespace fairlead::model {
namespace {

int64_t NumberOf(const SchedulingCondition& condition) {
  int64_t number = 0;
  return absl::SimpleAtoi(condition.transition_id, &number) ? number : -1;
}

}  // namespace

std::optional<FailedAttempt> FailedAttemptOf(const PodGroup& group) {
  if (group.scheduling_backoff == kTryForEver) return std::nullopt;
  const SchedulingCondition* newest = nullptr;
  for (const SchedulingCondition& condition : group.scheduling_conditions) {
    if (newest == nullptr || NumberOf(condition) > NumberOf(*newest)) newest = &condition;
  }
  if (newest == nullptr || newest->node_pool != NodePoolOf(group)) return std::nullopt;
  return FailedAttempt{newest->node_pool, newest->reason, newest->message};
}

}  // namespace fairlead::model
