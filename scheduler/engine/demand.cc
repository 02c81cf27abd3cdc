// What the hook may buy for, and the end of the cycle: promises and demand are taken back.
#include <algorithm>

#include "scheduler/engine/cycle.h"

namespace fairlead::engine {

using state::PodStatus;
using verdict::Code;

// Fills in what the hook may buy for one workload: its blocked step, then its extras one at a time,
// as long as every queue above has room for them.
void Cycle::DemandFor(Outcome& outcome) {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  const std::vector<state::PodId>& step = outcome.step.pods;
  std::vector<state::PodId> pods = step;
  model::Resources request = outcome.step_request;
  size_t next = 0;
  while (!pods.empty()) {
    const bool says_model = models_.empty() || WithAnyModel(pods, request) == request;
    request = WithAnyModel(pods, std::move(request));
    if (const auto violation = queues::CheckLimits(p_.tree, p_.books.ledger(), outcome.leaf,
                                                   request, workload.preemptible)) {
      if (outcome.demanded.empty() && outcome.promises.empty()) {
        outcome.code = CodeOf(*violation);
        outcome.violation = violation;
        if (!says_model && IsModel(violation->resource)) {
          outcome.details.push_back(
              "it does not say which GPU model it wants, and one of them must not be bought for "
              "it");
        }
      } else {
        outcome.whole_demand = false;
      }
      return;
    }
    if (BeyondLending(outcome, request)) return;
    p_.books.Charge(outcome.leaf, request, workload.preemptible);
    demanded_ += request;
    demand_charges_.push_back({outcome.leaf, request, workload.preemptible});
    outcome.demanded.insert(outcome.demanded.end(), pods.begin(), pods.end());
    pods.clear();
    for (; next < workload.pods.size(); ++next) {
      const state::PodId id = workload.pods[next];
      const state::PodRecord& pod = p_.state.pod(id);
      if (pod.status != PodStatus::kPending || !pod.invalid.empty() || pod.set < 0 ||
          std::find(step.begin(), step.end(), id) != step.end()) {
        continue;
      }
      pods = {id};
      request = p_.books.ChargeOf(pod);
      ++next;
      break;
    }
  }
}

void Cycle::Demand() {
  for (Outcome& outcome : outcomes) {
    if (outcome.step.pods.empty()) continue;
    if (outcome.code != Code::kInsufficientCapacity && outcome.code != Code::kNodesRequested &&
        outcome.code != Code::kWaitingForVictims) {
      continue;
    }
    // The step of a workload whose victims are chosen has its promise.
    if (p_.state.pod(outcome.step.pods.front()).status != PodStatus::kPending) continue;
    if (outcome.bound_to_topology) continue;
    DemandFor(outcome);
  }
}

void Cycle::TakeBack() {
  for (const DemandCharge& charge : demand_charges_) {
    p_.books.Release(charge.leaf, charge.amount, charge.preemptible);
  }
  for (state::PodId pod : promised_) state::ReleasePromise(p_.state, pod);
  // Who is moved is still where it was until it has terminated.
  for (const Victim& victim : moved_) {
    state::ReturnVictim(p_.state, victim.pod, victim.from.node, victim.from.gpus);
  }
}

}  // namespace fairlead::engine
