#include "scheduler/engine/cycle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/late_rows.h"

namespace fairlead::engine {
namespace {

void Describe(const state::ClusterState& state, const state::Workload& workload,
              const StepNode& node, std::string& text) {
  const model::TopologyConstraint& topology = workload.sets[static_cast<size_t>(node.set)].topology;
  absl::StrAppend(&text, "(", topology.topology, "|", topology.required_level, "|",
                  topology.preferred_level, "|", node.needed);
  for (state::PodId pod : node.pods) absl::StrAppend(&text, ",", state.pod(pod).pod_class);
  for (const StepNode& child : node.children) Describe(state, workload, child, text);
  text += ")";
}

}  // namespace

verdict::Code CodeOf(const queues::LimitViolation& violation) {
  return violation.kind == queues::LimitKind::kLimit ? verdict::Code::kQueueLimitReached
                                                     : verdict::Code::kNonPreemptibleOverQuota;
}

StepKind KindOf(const state::ClusterState& state, const state::Workload& workload,
                const GangStep& step) {
  StepKind kind;
  const state::PodClassId first = state.pod(step.pods.front()).pod_class;
  bool uniform = workload.plain ||
                 (workload.sets.size() <= 1 && workload.sets.front().topology.topology.empty());
  for (size_t i = 1; uniform && i < step.pods.size(); ++i) {
    uniform = state.pod(step.pods[i]).pod_class == first;
  }
  if (uniform) {
    kind.pod_class = first;
  } else {
    Describe(state, workload, step.root, kind.text);
    // A gang that runs in part is bound to where it runs.
    if (workload.Active() > 0) absl::StrAppend(&kind.text, "@", workload.id);
  }
  return kind;
}

Outcome OutcomeOfNext(const state::ClusterState& state, const Outcome& former, CrowdRest rest) {
  Outcome outcome = former;
  const state::Workload& workload = state.workload(rest.next->workload);
  outcome.workload = workload.id;
  outcome.failed_pod = workload.pods.front();
  if (!outcome.step.pods.empty()) outcome.step = NextStep(state, workload);
  ++rest.next;
  --rest.count;
  outcome.rest = rest.count > 0 ? rest : CrowdRest{};
  return outcome;
}

Cycle::Cycle(const CycleParts& parts, absl::Time now, bool may_evict)
    : p_(parts),
      now_(now),
      may_evict_(may_evict),
      models_(GpuModels(parts.tree)),
      // A depth counts workloads, what is kept back may end, and another node may be of another
      // model.
      fold_(parts.options.allocate && parts.options.allocate_depth == model::kUnlimited &&
            parts.options.consolidation_depth == model::kUnlimited &&
            parts.options.reclaim_depth == model::kUnlimited &&
            parts.options.preempt_depth == model::kUnlimited && !parts.books.lending() &&
            models_.empty()) {
  for (const auto& [uid, until] : parts.backoff) {
    if (until.first > now_) wake_at = std::min(wake_at, until.first);
  }
}

void Cycle::Run() {
  Unservable();
  Allocate();
  if (may_evict_) {
    search_work_end_ =
        p_.placer.work() + static_cast<uint64_t>(std::max<int64_t>(0, p_.options.max_search_work));
    if (p_.options.consolidation && !p_.options.spread_gpu) Evict(EvictKind::kConsolidation);
    if (p_.options.reclaim) Evict(EvictKind::kReclaim);
    if (p_.options.preempt) Evict(EvictKind::kPreempt);
    // Where no choice respects the budgets, the eviction API decides.
    if (!spared_.empty()) {
      if (p_.options.reclaim) Evict(EvictKind::kReclaim, /*against_budgets=*/true);
      if (p_.options.preempt) Evict(EvictKind::kPreempt, /*against_budgets=*/true);
    }
    if (p_.options.stale_gangs) EvictStaleGangs();
    p_.backlog = std::move(postponed_);
  }
  Demand();
  std::map<queues::QueueId, int64_t> positions;
  for (Outcome& outcome : outcomes) {
    int64_t& position = positions[outcome.leaf];
    outcome.position = position + 1;
    position += 1 + outcome.rest.count;
  }
  TakeBack();
  SettleReservations();
}

ServiceKey Cycle::KeyOf(const Outcome& outcome) const {
  ServiceKey key = MakeServiceKey(p_.state.workload(outcome.workload));
  // A promise counts as if it ran.
  if (!outcome.promises.empty() && key.elastic_state > 0) --key.elastic_state;
  return key;
}

void Cycle::SortOutcomes() {
  if (!std::exchange(unsorted_, false)) return;
  std::vector<Outcome> all = std::exchange(outcomes, {});
  outcomes.reserve(all.size());
  LateRows<queues::QueueId, Outcome*> late;
  for (Outcome& outcome : all) {
    if (outcome.stepped_forward) {
      late.Add(outcome.leaf, KeyOf(outcome), &outcome);
    } else {
      late.Expect(outcome.leaf);
    }
  }
  const auto take = [&](Outcome* outcome) {
    index_[outcome->workload] = outcomes.size();
    outcomes.push_back(std::move(*outcome));
    outcomes.back().stepped_forward = false;
  };
  for (Outcome& outcome : all) {
    if (outcome.stepped_forward) continue;  // also of those that were taken
    late.Pass(outcome.leaf, [&] { return KeyOf(outcome); }, [&] { take(&outcome); }, take);
  }
}

Outcome& Cycle::OutcomeOf(const state::Workload& workload, queues::QueueId leaf) {
  auto [it, added] = index_.try_emplace(workload.id, outcomes.size());
  if (added) {
    outcomes.emplace_back();
    outcomes.back().workload = workload.id;
    outcomes.back().leaf = leaf;
  }
  return outcomes[it->second];
}

model::Resources Cycle::ChargeOf(const std::vector<state::PodId>& pods) const {
  model::Resources charge;
  for (state::PodId pod : pods) charge += p_.books.ChargeOf(p_.state.pod(pod));
  return charge;
}

void Cycle::RecordPromises(const state::Workload& workload, queues::QueueId leaf,
                           const std::vector<state::PodId>& pods, bool victims_chosen) {
  Outcome& outcome = OutcomeOf(workload, leaf);
  bool here = victims_chosen;
  for (state::PodId pod : pods) {
    const state::NodeId node = p_.state.pod(pod).node;
    promised_.push_back(pod);
    outcome.promises.push_back({pod, node});
    const state::NodeInfo& info = p_.state.node(node);
    if (info.kind == state::NodeKind::kReal && info.usable && !info.releasing.IsZero()) here = true;
  }
  // A gang that waits for both shows the nodes: they take longer.
  bool ordered = false;
  for (const Waiting::PodPromise& promise : outcome.promises) {
    const state::NodeInfo& info = p_.state.node(promise.node);
    ordered = ordered || info.kind != state::NodeKind::kReal || !info.usable;
  }
  using verdict::Code;
  if (victims_chosen || outcome.code == Code::kNone ||
      outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kWaitingForVictims) {
    outcome.violation.reset();
    outcome.code = ordered ? Code::kNodesRequested
                   : here  ? Code::kWaitingForVictims
                           : Code::kInsufficientCapacity;
  }
}

}  // namespace fairlead::engine
