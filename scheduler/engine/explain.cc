#include "scheduler/engine/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;
using verdict::Code;
using verdict::ResolvableBy;

std::vector<verdict::DemandClass> Classes(const state::ClusterState& state,
                                          const std::vector<state::PodId>& pods, size_t step_size) {
  std::vector<verdict::DemandClass> classes;
  for (size_t i = 0; i < pods.size(); ++i) {
    const auto& spec = state.class_of(pods[i]).spec;
    auto it = std::find_if(classes.begin(), classes.end(),
                           [&](const verdict::DemandClass& c) { return c.spec == spec; });
    if (it == classes.end()) it = classes.insert(classes.end(), {spec, 0, 0});
    ++it->count;
    if (i < step_size) ++it->min_count;
  }
  return classes;
}

// What was demanded, by the rules that its pods are under.
verdict::DomainDemand InDomains(const state::ClusterState& state, const Outcome& outcome) {
  verdict::DomainDemand demand;
  const DomainRules& rules = *outcome.domains;
  demand.rules = rules.rules();
  if (demand.rules.empty()) return demand;
  std::map<int32_t, std::pair<std::vector<state::PodId>, size_t>> by_rule;  // how many of the step
  for (size_t i = 0; i < outcome.demanded.size(); ++i) {
    const state::PodId pod = outcome.demanded[i];
    auto& [of_rule, of_step] = by_rule[rules.RuleOf(state.pod(pod).set)];
    of_rule.push_back(pod);
    if (i < outcome.demanded_of_step) ++of_step;
  }
  for (const auto& [rule, part] : by_rule) {
    demand.parts.push_back({rule, Classes(state, part.first, part.second)});
  }
  if (outcome.room.has_value()) {
    std::vector<state::PodId> rest = outcome.room->others;
    rest.insert(rest.end(),
                outcome.demanded.begin() + static_cast<ptrdiff_t>(outcome.demanded_of_step),
                outcome.demanded.end());
    demand.room = {outcome.room->values, Classes(state, rest, outcome.room->others.size())};
  }
  return demand;
}

std::string Amount(const std::string& resource, int64_t base_units) {
  return absl::StrCat(model::FormatAmount(resource, base_units), " ",
                      verdict::ResourceNoun(resource));
}

int64_t Needed(const verdict::QueueBlock& block) {
  return model::SaturatingAdd(model::SaturatingAdd(block.used, block.promised), block.requested);
}

void AddUnblockers(const Outcome& outcome, bool hook_on, verdict::Verdict& v) {
  auto add = [&](ResolvableBy by, std::string what) {
    v.unblockers.push_back({by, std::move(what)});
  };
  const std::string advice =
      outcome.domain_problem == nullptr ? "" : outcome.domain_problem->advice;
  switch (v.code) {
    case Code::kQueueLimitReached:
      if (v.queue_block->requested > v.queue_block->limit) {
        add(ResolvableBy::kUserChange, "request less");
      } else {
        add(ResolvableBy::kTime,
            absl::StrCat("wait until workloads of queue ", v.queue_block->queue, " end"));
      }
      add(ResolvableBy::kQueueChange,
          absl::StrCat("raise the limit of queue ", v.queue_block->queue, " to ",
                       Amount(v.queue_block->resource, Needed(*v.queue_block))));
      break;
    case Code::kNonPreemptibleOverQuota:
      add(ResolvableBy::kUserChange, "make the workload preemptible");
      add(ResolvableBy::kQueueChange,
          absl::StrCat("raise the quota of queue ", v.queue_block->queue, " to ",
                       Amount(v.queue_block->resource, Needed(*v.queue_block))));
      break;
    case Code::kQueueNotFound:
      add(ResolvableBy::kUserChange, absl::StrCat("create queue ", v.queue, " or name another"));
      break;
    case Code::kQueueNotLeaf:
      add(ResolvableBy::kUserChange, absl::StrCat("name a queue below ", v.queue));
      break;
    case Code::kMissingObject:
      add(ResolvableBy::kUserChange, absl::StrCat("create ", outcome.subject));
      break;
    case Code::kGangIncomplete:
      add(ResolvableBy::kUserChange,
          absl::StrCat("create the missing pods of the gang, or lower minMember from ",
                       v.min_member));
      break;
    case Code::kSchedulingBackoff:
      v.unblockers = verdict::DefaultUnblockers(v);
      break;
    case Code::kGated:
      if (verdict::PluginThatHolds(outcome.subject).empty()) {
        add(ResolvableBy::kUserChange, "remove the scheduling gates");
      } else if (const absl::string_view help = verdict::HelpIfHeld(outcome.subject);
                 !help.empty()) {
        add(ResolvableBy::kUserChange, std::string(help));
      } else {
        add(ResolvableBy::kTime, "wait until the plugin lets it in");
        v.awaited = outcome.awaits;
      }
      break;
    case Code::kInsufficientCapacity:
      if (outcome.bound_to_topology && outcome.demanded.empty()) {
        add(ResolvableBy::kTime, "wait until other workloads in one domain of the topology end");
        if (!advice.empty()) add(ResolvableBy::kUserChange, advice);
        break;
      }
      if (outcome.kept_beyond_cluster) {
        add(ResolvableBy::kQueueChange,
            absl::StrCat("raise the lendingLimit of queue ", outcome.keeper));
        add(ResolvableBy::kTime, "wait until that queue uses its share");
        break;
      }
      add(ResolvableBy::kNodeScaleUp, hook_on ? "wait for the autoscaler" : "add nodes");
      add(ResolvableBy::kTime, "wait until other workloads end");
      break;
    case Code::kTopologyInfeasible:
      if (advice.empty()) break;
      v.unblockers = verdict::DefaultUnblockers(v);
      add(ResolvableBy::kUserChange, advice);
      break;
    case Code::kNodesRequested:
    case Code::kWaitingForVictims:
      add(ResolvableBy::kTime, v.code == Code::kNodesRequested
                                   ? "wait for the requested nodes"
                                   : "wait for the evicted pods to terminate");
      break;
    default:
      break;
  }
}

// What the workload is, and how far it is.
void AddWorkload(const state::Workload& workload, verdict::Verdict& v) {
  v.queue = workload.queue;
  v.min_member = GangMinimum(workload);
  const bool gang = workload.is_group && v.min_member > 1;
  v.scope = gang ? verdict::Scope::kGang : verdict::Scope::kPod;
  v.pods_running = workload.Count(PodStatus::kBinding) + workload.Count(PodStatus::kBound) +
                   workload.Count(PodStatus::kRunning);
  if (workload.group != nullptr) v.observed_generation = workload.generation;
}

void AddPods(const state::ClusterState& state, const state::Workload& workload,
             const Outcome& outcome, Waiting& waiting) {
  verdict::Verdict& v = waiting.verdict;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state.pod(id);
    if (pod.status != PodStatus::kPending && pod.status != PodStatus::kGated) continue;
    ++v.pods_waiting;
    if (!workload.is_group) v.observed_generation = pod.generation;
    const auto promise = std::find_if(outcome.promises.begin(), outcome.promises.end(),
                                      [&](const Waiting::PodPromise& p) { return p.pod == id; });
    waiting.pods.push_back({id, promise == outcome.promises.end() ? state::kNoId : promise->node});
  }
}

void AddViolation(const queues::LimitViolation& violation, const queues::QueueTree& tree,
                  const queues::QueueLedger& ledger, verdict::Verdict& v) {
  v.queue_block =
      verdict::QueueBlock{tree.Name(violation.queue), tree.names().Name(violation.resource),
                          violation.limit, violation.used, violation.requested};
  // The cycle has ended: the ledger is what is in use. What was counted besides was promised.
  const bool quota = violation.kind != queues::LimitKind::kLimit;
  const int64_t used = quota ? ledger.allocated_non_preemptible(violation.queue, violation.resource)
                             : ledger.allocated(violation.queue, violation.resource);
  v.queue_block->used = used;
  v.queue_block->promised = std::max<int64_t>(0, violation.used - used);
  v.scope = verdict::Scope::kQueue;
}

void AddDemand(const state::ClusterState& state, bool hook_on, const Outcome& outcome,
               Waiting& waiting) {
  verdict::Verdict& v = waiting.verdict;
  if (outcome.demanded.empty()) {
    // What it would need, for people and tools; the hook does not provision it.
    std::vector<state::PodId> unplaced;
    for (const Waiting::PodPromise& pod : waiting.pods) unplaced.push_back(pod.pod);
    const int64_t missing = v.min_member - v.pods_running;
    v.demand = Classes(state, unplaced, static_cast<size_t>(std::max<int64_t>(1, missing)));
    return;
  }
  v.demand = Classes(state, outcome.demanded, outcome.demanded_of_step);
  if (outcome.domains != nullptr) waiting.domains = InDomains(state, outcome);
  waiting.wants_nodes = hook_on;
  waiting.demand_kind = outcome.demand_kind;
  waiting.uncharged = outcome.uncharged;
  if (!outcome.whole_demand) {
    v.details.push_back("further pods are held back by the limit of the queue");
  }
}

// By name, each once.
std::vector<std::string> RequestsOfPromises(const state::ClusterState& state,
                                            const Outcome& outcome) {
  std::vector<std::string> requests;
  for (const Waiting::PodPromise& promise : outcome.promises) {
    const std::string& request = state.node(promise.node).node_request;
    if (!request.empty()) requests.push_back(request);
  }
  std::sort(requests.begin(), requests.end());
  requests.erase(std::unique(requests.begin(), requests.end()), requests.end());
  return requests;
}

}  // namespace

Waiting MakeWaiting(const state::ClusterState& state, const queues::QueueTree& tree,
                    const queues::QueueLedger& ledger, Diagnoser& diagnoser, bool hook_on,
                    const Outcome& outcome) {
  const state::Workload& workload = state.workload(outcome.workload);
  Waiting waiting;
  waiting.workload = outcome.workload;
  waiting.tried = outcome.tried;
  waiting.served_first = outcome.served_first;
  verdict::Verdict& v = waiting.verdict;
  v.code = outcome.code;
  v.position = outcome.position;
  v.subject = outcome.subject;
  v.details = outcome.details;
  if (!workload.details->warning.empty()) v.details.push_back(workload.details->warning);
  v.until = outcome.until;
  if (v.until.has_value()) v.details.push_back(verdict::DelayClause(*v.until));
  AddWorkload(workload, v);
  AddPods(state, workload, outcome, waiting);
  if (outcome.violation.has_value()) AddViolation(*outcome.violation, tree, ledger, v);
  if (outcome.code == Code::kInsufficientCapacity && !outcome.step.pods.empty()) {
    const state::PodId asked =
        outcome.failed_pod != state::kNoId ? outcome.failed_pod : outcome.step.pods.front();
    const Diagnosis& diagnosis = diagnoser.For(state.pod(asked).pod_class);
    v.failed_predicates = diagnosis.predicates;
    v.nodes_asked = diagnosis.nodes;
    v.nodes_fit_empty = diagnosis.nodes_fit_empty;
    v.victims_sought = outcome.victims_sought;
    v.may_preempt = workload.may_preempt;
  }
  AddDemand(state, hook_on, outcome, waiting);
  v.node_requests = RequestsOfPromises(state, outcome);
  AddUnblockers(outcome, hook_on, v);
  return waiting;
}

}  // namespace fairlead::engine
