// What the hook may buy for, and the end of the cycle: promises and demand are taken back.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

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
    ChargeDemand(outcome.leaf, request, workload.preemptible);
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

bool Cycle::WantsRoom(const Outcome& outcome) const {
  if (outcome.step.pods.empty() || outcome.bound_to_topology) return false;
  if (outcome.code != Code::kInsufficientCapacity && outcome.code != Code::kNodesRequested &&
      outcome.code != Code::kWaitingForVictims) {
    return false;
  }
  // The step of a workload whose victims are chosen has its promise.
  return p_.state.pod(outcome.step.pods.front()).status == PodStatus::kPending;
}

void Cycle::ChargeDemand(queues::QueueId leaf, const model::Resources& amount, bool preemptible) {
  p_.books.Charge(leaf, amount, preemptible);
  demanded_ += amount;
  demand_charges_.push_back({leaf, amount, preemptible});
}

// Everything is charged as if it ran; a leaf is roomy if no queue above it is over a limit even
// then.
std::set<queues::QueueId> Cycle::RoomyLeaves() {
  std::vector<const Outcome*> crowds;
  std::vector<DemandCharge> all;
  for (const Outcome& outcome : outcomes) {
    if (!WantsRoom(outcome)) continue;
    const state::Workload& workload = p_.state.workload(outcome.workload);
    const model::Resources amount = outcome.rest.count > 0
                                        ? outcome.step_request.Times(1 + outcome.rest.count)
                                        : ChargeOf(workload.pods);
    all.push_back({outcome.leaf, amount, workload.preemptible});
    if (outcome.rest.count > 0) crowds.push_back(&outcome);
  }
  std::set<queues::QueueId> roomy;
  if (crowds.empty()) return roomy;
  for (const DemandCharge& charge : all) {
    p_.books.Charge(charge.leaf, charge.amount, charge.preemptible);
  }
  std::set<queues::QueueId> tight;
  for (const Outcome* crowd : crowds) {
    const bool preemptible = p_.state.workload(crowd->workload).preemptible;
    p_.books.Release(crowd->leaf, crowd->step_request, preemptible);
    const bool over = queues::CheckLimits(p_.tree, p_.books.ledger(), crowd->leaf,
                                          crowd->step_request, preemptible)
                          .has_value();
    p_.books.Charge(crowd->leaf, crowd->step_request, preemptible);
    (over ? tight : roomy).insert(crowd->leaf);
  }
  for (const DemandCharge& charge : all) {
    p_.books.Release(charge.leaf, charge.amount, charge.preemptible);
  }
  for (const queues::QueueId leaf : tight) roomy.erase(leaf);
  return roomy;
}

void Cycle::DemandOfCrowd(Outcome& outcome, bool roomy, std::optional<Outcome>& later) {
  later.reset();
  if (!WantsRoom(outcome)) return;
  if (outcome.rest.count == 0) {
    DemandFor(outcome);
    return;
  }
  Outcome before = outcome;
  DemandFor(outcome);
  // A limit that holds it holds those behind it.
  if (outcome.demanded.empty()) return;
  if (roomy && !p_.options.hook_on) {
    ChargeDemand(outcome.leaf, outcome.step_request.Times(outcome.rest.count),
                 p_.state.workload(outcome.workload).preemptible);
    return;
  }
  outcome.rest = {};
  later = std::move(before);
}

// In the order of service: whoever is behind somebody stands among the others of its leaf by age.
void Cycle::Demand() {
  SortOutcomes();
  const bool crowds = std::any_of(outcomes.begin(), outcomes.end(),
                                  [](const Outcome& outcome) { return outcome.rest.count > 0; });
  if (!crowds) {
    for (Outcome& outcome : outcomes) {
      if (WantsRoom(outcome)) DemandFor(outcome);
    }
    return;
  }
  const std::set<queues::QueueId> roomy = RoomyLeaves();
  std::map<queues::QueueId, size_t> left;  // outcomes of the leaf that are still to come
  for (const Outcome& outcome : outcomes) ++left[outcome.leaf];
  // Of each leaf, those behind somebody that are to be asked one by one; by their first.
  struct ByNext {
    bool operator()(const Outcome& a, const Outcome& b) const {
      return *a.rest.next < *b.rest.next;
    }
  };
  std::map<queues::QueueId, std::multiset<Outcome, ByNext>> behind;
  std::vector<Outcome> asked;
  asked.reserve(outcomes.size());
  std::optional<Outcome> later;
  const auto ask = [&](Outcome outcome) {
    DemandOfCrowd(outcome, roomy.contains(outcome.leaf), later);
    if (later.has_value()) behind[outcome.leaf].insert(*std::move(later));
    asked.push_back(std::move(outcome));
  };
  const auto ask_behind = [&](queues::QueueId leaf, const ServiceKey* until) {
    const auto found = behind.find(leaf);
    if (found == behind.end()) return;
    while (!found->second.empty()) {
      const auto first = found->second.begin();
      if (until != nullptr && *until < *first->rest.next) break;
      const Outcome former = *first;
      found->second.erase(first);
      ask(OutcomeOfNext(p_.state, former, former.rest));
    }
  };
  for (Outcome& outcome : outcomes) {
    const queues::QueueId leaf = outcome.leaf;
    if (behind.contains(leaf)) {
      const ServiceKey key = KeyOf(outcome);
      ask_behind(leaf, &key);
    }
    ask(std::move(outcome));
    if (--left[leaf] == 0) ask_behind(leaf, nullptr);
  }
  outcomes = std::move(asked);
  for (size_t i = 0; i < outcomes.size(); ++i) index_[outcomes[i].workload] = i;
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
