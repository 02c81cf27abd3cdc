// What the hook may buy for, and the end of the cycle: promises and demand are taken back.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "scheduler/engine/cycle.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/late_rows.h"

namespace fairlead::engine {

using state::PodStatus;
using verdict::Code;

// Fills in what the hook may buy for one workload: its blocked step, then one extra unit after the
// other, as long as every queue above has capacity for them.
void Cycle::DemandFor(Outcome& outcome) {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  std::vector<state::PodId> pods = outcome.step.pods;
  model::Resources request = outcome.step_request;
  std::optional<GangSteps> steps;
  while (!pods.empty()) {
    if (HeldFromDemand(outcome, pods, request)) return;
    ChargeDemand(outcome.leaf, request, workload.preemptible);
    outcome.demanded.insert(outcome.demanded.end(), pods.begin(), pods.end());
    pods.clear();
    if (workload.plain) return;
    if (!steps.has_value()) {
      steps.emplace(p_.state, workload);
      steps->Place(outcome.step);
    }
    const auto has_problem = [&](state::PodId pod) {
      return outcome.domains != nullptr &&
             !outcome.domains->ProblemOf(p_.state.pod(pod).set).what.empty();
    };
    do {
      GangStep next = steps->Next();
      steps->Place(next);
      pods = std::move(next.pods);
    } while (std::any_of(pods.begin(), pods.end(), has_problem));
    request = ChargeOf(pods);
  }
}

bool Cycle::HeldFromDemand(Outcome& outcome, const std::vector<state::PodId>& pods,
                           model::Resources& request) {
  const bool says_model = models_.empty() || WithAnyModel(pods, request) == request;
  request = WithAnyModel(pods, std::move(request));
  const bool preemptible = p_.state.workload(outcome.workload).preemptible;
  const auto violation =
      queues::CheckLimits(p_.tree, p_.books.ledger(), outcome.leaf, request, preemptible);
  if (!violation.has_value()) return BeyondLending(outcome, request);
  if (!outcome.demanded.empty() || !outcome.promises.empty()) {
    outcome.whole_demand = false;
    return true;
  }
  outcome.code = CodeOf(*violation);
  outcome.violation = violation;
  if (!says_model && IsModel(violation->resource)) {
    outcome.details.push_back(
        "it does not say which GPU model it wants, and one of them must not be bought for it");
  }
  return true;
}

void Cycle::ReadDomains(Outcome& outcome) const {
  const bool waits =
      outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kNodesRequested ||
      outcome.code == Code::kWaitingForVictims || outcome.code == Code::kTopologyInfeasible;
  if (!outcome.bound_to_topology || !p_.options.hook_on || !waits) return;
  outcome.domains = std::make_shared<const DomainRules>(
      p_.state, p_.state.workload(outcome.workload), p_.offered);
  for (const state::PodId pod : outcome.step.pods) {
    const DomainRules::Problem& problem = outcome.domains->ProblemOf(p_.state.pod(pod).set);
    if (problem.what.empty()) continue;
    outcome.domain_problem = &problem;
    outcome.details.push_back(problem.what);
    return;
  }
  // Not with the nodes that there are; but there may be others.
  if (outcome.code == Code::kTopologyInfeasible) outcome.code = Code::kInsufficientCapacity;
}

bool Cycle::WantsRoom(const Outcome& outcome) const {
  if (outcome.step.pods.empty()) return false;
  if (outcome.bound_to_topology &&
      (outcome.domains == nullptr || outcome.domain_problem != nullptr)) {
    return false;
  }
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
    const model::Resources amount = ChargeOf(workload.pods).Times(1 + outcome.rest.count);
    all.push_back({outcome.leaf, amount, workload.preemptible});
    if (outcome.rest.count > 0) crowds.push_back(&outcome);
  }
  for (const DemandCharge& charge : all) {
    p_.books.Charge(charge.leaf, charge.amount, charge.preemptible);
  }
  std::set<queues::QueueId> roomy, tight;
  for (const Outcome* crowd : crowds) {
    const state::Workload& workload = p_.state.workload(crowd->workload);
    const model::Resources one = ChargeOf(workload.pods);
    p_.books.Release(crowd->leaf, one, workload.preemptible);
    const bool over =
        queues::CheckLimits(p_.tree, p_.books.ledger(), crowd->leaf, one, workload.preemptible)
            .has_value();
    p_.books.Charge(crowd->leaf, one, workload.preemptible);
    (over ? tight : roomy).insert(crowd->leaf);
  }
  for (const DemandCharge& charge : all) {
    p_.books.Release(charge.leaf, charge.amount, charge.preemptible);
  }
  for (const queues::QueueId leaf : tight) roomy.erase(leaf);
  return roomy;
}

Cycle::Hope Cycle::HopeOfClass(state::PodClassId id) const {
  const state::PodClass& wanted = p_.state.pod_class(id);
  const framework::Context empty{p_.state, wanted, id, framework::Room::kEmpty};
  const auto is_large_enough = [&](const state::NodeInfo& node) {
    for (size_t i = 0; i < wanted.requests.size(); ++i) {
      const auto resource = static_cast<model::ResourceIndex>(i);
      if (wanted.requests[resource] > node.allocatable[resource]) return false;
    }
    return true;
  };
  for (const auto& [name, node_id] : p_.state.nodes_by_name()) {
    const state::NodeInfo& node = p_.state.node(node_id);
    if (node.exists && is_large_enough(node) &&
        p_.framework.FilterNodeObject(empty, node, nullptr)) {
      return Hope::kSome;
    }
  }
  if (!p_.options.hook_on) return Hope::kUnknown;
  const bool some =
      p_.offered_nodes.empty() ||
      std::any_of(p_.offered_nodes.begin(), p_.offered_nodes.end(), [&](const model::Node& node) {
        Hypothesis what_if(p_.state, p_.framework, p_.placer.gpu_order());
        return what_if.Fits(id, what_if.AddNode(node), framework::Room::kEmpty);
      });
  return some ? Hope::kSome : Hope::kNone;
}

Cycle::Hope Cycle::HopeOf(const Outcome& outcome) {
  Hope worst = Hope::kSome;
  for (const state::PodId pod : outcome.step.pods) {
    const state::PodClassId id = p_.state.pod(pod).pod_class;
    const auto [known, added] = hope_.try_emplace(id, Hope::kSome);
    if (added) known->second = HopeOfClass(id);
    worst = std::max(worst, known->second);
  }
  return worst;
}

std::optional<Outcome> Cycle::DemandOfCrowd(Outcome& outcome, bool roomy) {
  if (!WantsRoom(outcome)) return std::nullopt;
  if (HopeOf(outcome) == Hope::kNone) {
    // The hook says so; nothing is charged for what cannot be.
    std::optional<Outcome> former;
    if (outcome.rest.count > 0) former = outcome;
    outcome.demanded = outcome.step.pods;
    outcome.rest = {};
    return former;
  }
  if (outcome.rest.count == 0) {
    DemandFor(outcome);
    return std::nullopt;
  }
  Outcome before = outcome;
  DemandFor(outcome);
  // A limit that holds it holds those behind it.
  if (outcome.demanded.empty()) return std::nullopt;
  if (roomy) {
    ChargeDemand(outcome.leaf, ChargeOf(outcome.demanded).Times(outcome.rest.count),
                 p_.state.workload(outcome.workload).preemptible);
    return std::nullopt;
  }
  outcome.rest = {};
  return before;
}

// In the order of service: whoever is behind somebody stands among the others of its leaf by age.
void Cycle::Demand() {
  SortOutcomes();
  for (Outcome& outcome : outcomes) {
    if (outcome.bound_to_topology) ReadDomains(outcome);
  }
  const bool crowds = std::any_of(outcomes.begin(), outcomes.end(),
                                  [](const Outcome& outcome) { return outcome.rest.count > 0; });
  // What no present node could take takes nothing away from the others: it comes after them.
  std::vector<size_t> doubtful;
  const auto is_doubtful = [&](const Outcome& outcome) {
    return WantsRoom(outcome) && HopeOf(outcome) == Hope::kUnknown;
  };
  const auto ask_doubtful = [&] {
    for (const size_t at : doubtful) (void)DemandOfCrowd(outcomes[at], /*roomy=*/true);
  };
  if (!crowds) {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (is_doubtful(outcomes[i])) {
        doubtful.push_back(i);
      } else {
        (void)DemandOfCrowd(outcomes[i], /*roomy=*/false);
      }
    }
    ask_doubtful();
    return;
  }
  // The hook is told of everybody by name, so there nobody is asked for in sum.
  const std::set<queues::QueueId> roomy =
      p_.options.hook_on ? std::set<queues::QueueId>() : RoomyLeaves();
  std::vector<Outcome> all = std::exchange(outcomes, {});
  outcomes.reserve(all.size());
  // By the first of those behind it that are to be asked one by one.
  LateRows<queues::QueueId, Outcome> behind;
  for (const Outcome& outcome : all) behind.Expect(outcome.leaf);
  const auto ask = [&](Outcome outcome) {
    if (is_doubtful(outcome)) {
      doubtful.push_back(outcomes.size());
    } else if (std::optional<Outcome> later =
                   DemandOfCrowd(outcome, roomy.contains(outcome.leaf))) {
      behind.Add(outcome.leaf, *later->rest.next, *std::move(later));
    }
    index_[outcome.workload] = outcomes.size();
    outcomes.push_back(std::move(outcome));
  };
  for (Outcome& outcome : all) {
    behind.Pass(
        outcome.leaf, [&] { return KeyOf(outcome); }, [&] { ask(std::move(outcome)); },
        [&](const Outcome& former) { ask(OutcomeOfNext(p_.state, former, former.rest)); });
  }
  ask_doubtful();
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
