// Pods that other pods of the same cycle let in: those that they must be near, or that raise the
// minimum which their spread is measured by. All other constraints only get harder by placed pods.
#include <algorithm>
#include <vector>

#include "core/decision_loop_impl.h"

namespace fairlead::core {
namespace {

bool MayFollow(const verdict::DemandClass& pods) {
  const auto& near = pods.spec->pod_affinity;
  const auto& spread = pods.spec->topology_spread;
  return std::any_of(near.begin(), near.end(), [](const auto& term) { return term.weight == 0; }) ||
         std::any_of(spread.begin(), spread.end(),
                     [](const auto& constraint) { return constraint.do_not_schedule; });
}

bool MayFollow(const engine::Waiting& entry) {
  const verdict::Code code = entry.verdict.code;
  if (code != verdict::Code::kInsufficientCapacity && code != verdict::Code::kNodesRequested) {
    return false;
  }
  const std::vector<verdict::DemandClass>& demand = entry.verdict.demand;
  return std::any_of(demand.begin(), demand.end(),
                     [](const verdict::DemandClass& pods) { return MayFollow(pods); });
}

}  // namespace

// Their turn may have come before that of the pods that let them in. The watch confirms a binding
// without a change that a decision reads, so without another cycle they would wait for whatever
// happens next.
void DecisionLoop::Impl::PlaceFollowers(size_t placed, absl::Time now) {
  constexpr int kMaxRounds = 8;  // the next step goes on with a longer chain of pods, at once
  for (int round = 0; placed > 0; ++round) {
    if (std::none_of(waiting.begin(), waiting.end(),
                     [](const engine::Waiting& entry) { return MayFollow(entry); })) {
      return;
    }
    if (round == kMaxRounds) {
      dirty = true;
      return;
    }
    placed = RunFollowUpCycle(now);
  }
}

}  // namespace fairlead::core
