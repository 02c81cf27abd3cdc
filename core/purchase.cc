// The input of DecisionLoop to the scale hook, and its handling of the answer.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/decision_loop_impl.h"
#include "core/demand.h"
#include "core/engine_evacuation.h"
#include "core/engine_placement.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

using verdict::Code;

bool IsSame(const hook::DemandOutcome& a, const hook::DemandOutcome& b) {
  return a.code == b.code && a.node_requests == b.node_requests && a.expected_at == b.expected_at &&
         a.details == b.details && a.selects_none == b.selects_none;
}

void TakeOutcome(const hook::DemandOutcome& outcome, verdict::Verdict& v) {
  // Part of it may be pipelined already: then its verdict stays.
  const bool decides = v.code == Code::kInsufficientCapacity;
  if (decides && outcome.code != v.code) {
    v.code = outcome.code;
    v.node_requests = outcome.node_requests;
    if (outcome.selects_none) v.subject = "its node selector or affinity";
    v.unblockers = verdict::DefaultUnblockers(v);  // the engine's advice was for another code
  }
  v.expected_at = outcome.expected_at;
  for (const std::string& detail : outcome.details) v.details.push_back(detail);
}

}  // namespace

void DecisionLoop::Impl::PublishOfferedLabels() {
  if (!options.hook.enabled) return;
  const bool same = std::exchange(offers_version, hook.offers_version()) == hook.offers_version();
  if (std::exchange(offers_told, true) && same) return;
  engine->SetOfferedLabels(hook.LabelsOnOffer(pools.OnOffer()));
  engine->SetOfferedNodes(hook.NodesOnOffer(pools.OnOffer()));
}

void DecisionLoop::Impl::AddEstimates(absl::Time now) {
  if (stale()) {
    estimates.Repeat(waiting);
    return;
  }
  for (const Estimates::Told& told :
       estimates.Update(*engine, waiting, pools.OnOffer(), options.hook.enabled, now)) {
    if (!options.emit_events) continue;
    events.push_back(EventAbout(state.pod(told.pod), /*warning=*/false, "NodeCostEstimate",
                                told.text, model::EventAction::kScheduling));
  }
  wake_at = std::min(wake_at, estimates.wake_at());
}

void DecisionLoop::Impl::PlaceHeadroom(const EnginePlacement::Promises& promises, absl::Time now) {
  headroom.Place(*engine, promises,
                 capacity.empty() ? std::vector<CapacityAsk>() : capacity.Asks(now));
  wake_at = std::min(wake_at, capacity.decide_at());
}

void DecisionLoop::Impl::TellHeadroom(const std::vector<hook::DemandOutcome>& outcomes,
                                      size_t lacking, absl::Time now) {
  const size_t some = std::min(lacking, outcomes.size());
  headroom.Tell({outcomes.end() - static_cast<ptrdiff_t>(some), outcomes.end()}, capacity, now);
  wake_at = std::min(wake_at, capacity.decide_at());
}

bool DecisionLoop::Impl::Withdraw(const std::vector<std::string>& names,
                                  const std::vector<const model::NodePool*>& valid_pools) {
  state::Change change;
  for (const std::string& name : names) change |= nodes.RequestChanged(name, valid_pools);
  return change.Any();
}

void DecisionLoop::Impl::NoteChanges() {
  const engine::WaitingChanges changes = engine->TakeChanges();
  waiting_changes.Append(changes);
  if (options.hook.enabled) demanded.Note(changes);
}

// So that no entry stands for workloads for which demand is gathered still and for others.
void DecisionLoop::Impl::SetGatheredApart(std::vector<engine::Waiting>& entries) {
  if (gathered == nullptr || gathered->empty()) return;
  std::map<uint64_t, std::vector<state::WorkloadId>> by_range;
  std::vector<state::WorkloadId> all;
  for (const auto& [is_group, name] : *gathered) {
    const state::WorkloadId id = FindWorkload(state, is_group, name);
    if (id == state::kNoId) continue;
    all.push_back(id);
    if (const uint64_t range = engine->EquivalenceClassOf(id); range != 0) {
      by_range[range].push_back(id);
    }
  }
  const std::set<state::WorkloadId> held(all.begin(), all.end());
  std::vector<engine::Waiting> parts;
  for (engine::Waiting& entry : entries) {
    std::vector<state::WorkloadId> apart;
    if (entry.behind > 0) {
      const auto found = by_range.find(entry.equivalence_class);
      if (found != by_range.end()) apart = found->second;
      if (held.contains(entry.workload)) apart.push_back(entry.workload);
    }
    if (apart.empty()) {
      parts.push_back(std::move(entry));
      continue;
    }
    for (engine::Waiting& part : engine->SetApart(std::move(entry), apart)) {
      parts.push_back(std::move(part));
    }
  }
  entries = std::move(parts);
}

bool DecisionLoop::Impl::HookWouldSayTheSame(const hook::Demand& demand, absl::Time now) const {
  return memo.valid && now < memo.wake_at && memo.machines_version == hook.machines().version() &&
         memo.uses_version == nodes.uses_version() && memo.demand == demand &&
         std::all_of(demand.begin(), demand.end(), hook::DependsOnItselfAlone);
}

DecisionLoop::Impl::HookAnswer DecisionLoop::Impl::RunHook(std::vector<engine::Waiting>& entries,
                                                           absl::Time now, StepResult& result) {
  EnginePlacement::Promises promises = EnginePlacement::PromisesOf(entries);
  std::set<state::NodeId> promised;
  for (const auto& [pod, node] : promises) promised.insert(node);
  for (const state::NodeId node : engine->ReservedNodes()) promised.insert(node);
  NoteChanges();
  ExpandDependent(*engine, entries);
  bool same_workloads = true;
  if (!stale()) {
    const hook::DemandChanges changes = demanded.Update(state, *engine, entries);
    same_workloads = changes.empty();
    gathered = &hook.Gather(changes, now);
  }
  SetGatheredApart(entries);
  EngineDemand demand(state, *engine, entries);
  const size_t engine_items = demand.items().size();
  if (!stale()) PlaceHeadroom(promises, now);
  headroom.AppendDemand(demand.items());
  const size_t lacking = demand.items().size() - engine_items;
  if (stale()) {
    // The last answer is kept, so that verdicts do not change; its timers wait.
    if (memo.demand == demand.items()) TakeOutcomes(memo.outcomes, demand.runs(), entries);
    return {};
  }
  for (const state::NodeId node : headroom.kept_nodes()) promised.insert(node);
  const std::vector<hook::NodeUse>& uses = nodes.Uses(promised, now);
  if (same_workloads && HookWouldSayTheSame(demand.items(), now)) {
    wake_at = std::min(wake_at, memo.wake_at);
    TakeOutcomes(memo.outcomes, demand.runs(), entries);
    TellHeadroom(memo.outcomes, lacking, now);
    return {};
  }
  hook::StepInput input;
  input.now = now;
  input.demand = &demand.items();
  const DemandWithHeadroom members(demand, demand.items(), engine_items);
  input.members = &members;
  input.gathered = true;
  input.pools = pools.OnOffer();
  input.pool_problems = pools.Problems();
  input.nodes = &uses;
  input.node_versions = &nodes.use_versions();
  const std::vector<hook::QueueCap> caps_of_queues = queue_provisioning.InForce(tree);
  input.queue_caps = &caps_of_queues;
  EnginePlacement placement(state, *engine, std::move(promises));
  EngineEvacuation evacuation(state, *engine, tree, entries, headroom, now);
  input.evacuation = &evacuation;
  ++stats.hook_steps;
  hook::StepOutput output = hook.Step(input, placement);
  output.wake_at = std::min(output.wake_at, nodes.settles_at());
  const bool other_demand = UpdateUnservable(output.outcomes, demand.runs(), entries, now);
  output.wake_at = std::min(output.wake_at, unservable.wake_at());
  wake_at = std::min(wake_at, output.wake_at);
  memo = {output.created.empty(), hook.machines().version(), nodes.uses_version(), {}, {},
          output.wake_at};
  if (output.node_list != 0) awaited_list = output.node_list;
  const bool less = Withdraw(output.withdrawn, input.pools);
  for (hook::StepOutput::NewNode& created : output.created) {
    RequestChanged(created.request.meta.name);
    if (!created.adopted) ++stats.node_requests;
  }
  for (const std::string& name : output.look_again) RequestChanged(name);
  TakeEmptied(std::move(output.emptied));
  size_t end = 0;
  for (model::Action& action : output.actions) {
    const bool ends = std::holds_alternative<model::TerminateNode>(action.what);
    if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      RequestChanged(update->request->meta.name);
    }
    Emit(std::move(action), result);
    if (ends) in_flight.SetCall(result.actions.back().id, output.ends[end++]);
  }
  TakeOutcomes(output.outcomes, demand.runs(), entries);
  TellHeadroom(output.outcomes, lacking, now);
  memo.demand = demand.Release();
  memo.outcomes = std::move(output.outcomes);
  // The hook's changes are handled in this step, with two exceptions: pods that were pipelined to a
  // withdrawn node need a new decision, and perhaps a new node; and a type that is smaller than
  // announced may be no hope for pods that are charged.
  dirty = less || hook.offers_version() != offers_version;
  if (dirty) wake_at = now;
  return {!output.created.empty(), other_demand};
}

bool DecisionLoop::Impl::UpdateUnservable(const std::vector<hook::DemandOutcome>& outcomes,
                                          const std::vector<engine::EntryRun>& runs,
                                          const std::vector<engine::Waiting>& entries,
                                          absl::Time now) {
  using Service = hook::DemandOutcome::Service;
  std::vector<UnservableDemand::Answer> said;
  absl::flat_hash_map<uint64_t, size_t> place;  // in `said`
  size_t next = 0;
  for (const engine::EntryRun& run : runs) {
    const uint64_t kind = entries[run.entry].demand_kind;
    for (int64_t count = run.count; count > 0 && next < outcomes.size(); ++next) {
      count -= outcomes[next].members;
      if (kind == 0) continue;
      const auto [known, added] = place.try_emplace(kind, said.size());
      if (added) said.push_back({kind});
      UnservableDemand::Answer& answer = said[known->second];
      answer.served |= outcomes[next].service == Service::kServed;
      answer.refused |= outcomes[next].service == Service::kRefused;
    }
  }
  return unservable.Update(said, now);
}

void DecisionLoop::Impl::TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                                      const std::vector<engine::EntryRun>& runs,
                                      std::vector<engine::Waiting>& entries) {
  // Of each entry what becomes of its workloads, in order.
  using Share = std::pair<int64_t, const hook::DemandOutcome*>;
  std::map<size_t, std::vector<Share>> by_entry;
  size_t next = 0;
  int64_t left = outcomes.empty() ? 0 : outcomes.front().members;
  for (const engine::EntryRun& run : runs) {
    std::vector<Share>& of_entry = by_entry[run.entry];
    for (int64_t count = run.count; count > 0 && next < outcomes.size();) {
      const int64_t here = std::min(count, left);
      if (!of_entry.empty() && IsSame(*of_entry.back().second, outcomes[next])) {
        of_entry.back().first += here;
      } else {
        of_entry.emplace_back(here, &outcomes[next]);
      }
      count -= here;
      left -= here;
      if (left == 0 && ++next < outcomes.size()) left = outcomes[next].members;
    }
  }
  std::vector<engine::Waiting> parts;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto found = by_entry.find(i);
    if (found == by_entry.end() || found->second.empty()) {
      parts.push_back(std::move(entries[i]));
      continue;
    }
    const std::vector<Share>& of_entry = found->second;
    int64_t keep = 1 + entries[i].behind;
    const size_t first = parts.size();
    for (size_t s = of_entry.size(); s > 1; --s) {
      keep -= of_entry[s - 1].first;
      parts.push_back(engine->Divide(entries[i], keep));
    }
    parts.push_back(std::move(entries[i]));
    std::reverse(parts.begin() + static_cast<ptrdiff_t>(first), parts.end());
    for (size_t s = 0; s < of_entry.size(); ++s) {
      TakeOutcome(*of_entry[s].second, parts[first + s].verdict);
    }
  }
  entries = std::move(parts);
}

}  // namespace fairlead::core
