// The end of a step of DecisionLoop: attempts that have failed for good, and workloads that wait
// only for a delay.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/decision_loop_impl.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

using verdict::Code;

// Nodes would help, and no node will come: the hook could not provision any, or cannot be used.
bool NoNodeWillCome(const engine::Waiting& entry) {
  const Code code = entry.verdict.code;
  return code == Code::kNoInstanceTypeFits || code == Code::kGpuCapReached ||
         code == Code::kCostCapReached ||
         (code == Code::kInsufficientCapacity && !entry.wants_nodes);
}

}  // namespace

// An attempt lasts while part of the group runs or is pipelined, including to nodes that the hook
// has ordered. So the hook provisions for the first attempt, and never in vain: a group that is
// left out makes no demand.
bool DecisionLoop::Impl::EndAttempts() {
  bool any = false;
  for (const engine::Waiting& entry : waiting) {
    const state::Workload& workload = state.workload(entry.workload);
    if (workload.group == nullptr || workload.group->scheduling_backoff == model::kTryForEver ||
        workload.details->failed_attempt != nullptr || workload.Active() > 0 || !entry.tried ||
        !verdict::IsFailedAttempt(entry.verdict.code)) {
      continue;
    }
    const std::string message = verdict::Message(entry.verdict);
    const auto end = [&](state::WorkloadId id) {
      state.SetFailedAttempt(id, {state.workload(id).group->node_pool,
                                  std::string(verdict::CodeName(entry.verdict.code)),
                                  std::string(absl::StripSuffix(message, "."))});
    };
    engine->ForEachBehind(entry, end);
    end(workload.id);
    any = true;
  }
  return any;
}

// With the hook off, another autoscaler may bring nodes, and a delay exists to let it do so first:
// the code stays the one on which it acts.
void DecisionLoop::Impl::TellDelays() {
  if (!options.hook.enabled) return;
  for (engine::Waiting& entry : waiting) {
    verdict::Verdict& v = entry.verdict;
    if (!v.until.has_value() || !NoNodeWillCome(entry)) continue;
    std::erase(v.details, verdict::DelayClause(*v.until));
    v.details.push_back(absl::StrCat("no node will be provisioned for it meanwhile (",
                                     verdict::CodeName(v.code), ")"));
    v.code = Code::kPreemptionDelay;
    v.unblockers = verdict::DefaultUnblockers(v);
  }
}

}  // namespace fairlead::core
