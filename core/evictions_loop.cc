// Evictions of DecisionLoop: from the engine's decisions to requests, and their answers.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/decision_loop_impl.h"
#include "queues/limits.h"
#include "scheduler/engine/gang.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_kind.h"

namespace fairlead::core {

void DecisionLoop::Impl::AddEvictions(const engine::CycleResult& cycle) {
  stats.preemption_attempts += cycle.victim_searches;
  std::vector<Evictions::Victim> set;
  for (size_t i = 0; i < cycle.evictions.size(); ++i) {
    const engine::Eviction& eviction = cycle.evictions[i];
    const state::PodRecord& pod = state.pod(eviction.pod);
    const state::Workload& own = state.workload(pod.workload);
    const bool preempted = engine::IsPreemption(eviction.action);
    set.push_back({.evict = {pod.ns, pod.name, pod.uid, kEvictionReason, eviction.message},
                   .gang = pod.workload,
                   .may_be_refused = eviction.against_budget,
                   .for_workload = eviction.for_workload,
                   .cause = eviction.for_workload == model::Key(own.ns, own.name)
                                ? Evictions::Cause::kOwnGang
                                : Evictions::Cause::kWaiting,
                   .event = preempted ? PreemptionEvent(pod, eviction)
                                      : EvictionEvent(pod, eviction.message)});
    if (i + 1 == cycle.evictions.size() || cycle.evictions[i + 1].set != eviction.set) {
      if (preempted) stats.preemption_victims.Add(static_cast<int64_t>(set.size()));
      const size_t from = i + 1 - set.size();
      std::vector<PreemptionAsks::Question> questions = QuestionsAbout(cycle, from, i + 1);
      const uint64_t added = evictions.Add(std::exchange(set, {}), /*held=*/!questions.empty());
      if (!questions.empty()) preemption_asks.Add(added, std::move(questions));
    }
  }
  // The group's annotation keeps the start of the grace period across a restart.
  for (const engine::StaleChange& change : cycle.stale) {
    const state::Workload& workload = state.workload(change.workload);
    if (workload.group == nullptr) continue;
    annotations.Write(change.workload, GroupAnnotation::kStaleSince);
  }
}

std::vector<PreemptionAsks::Question> DecisionLoop::Impl::QuestionsAbout(
    const engine::CycleResult& cycle, size_t from, size_t to) const {
  std::vector<PreemptionAsks::Question> questions;
  if (!preemption_asks.AsksAny()) return questions;
  std::map<state::NodeId, model::AskExtenders::NodeVictims> victims;
  for (size_t i = from; i < to; ++i) {
    const engine::Eviction& eviction = cycle.evictions[i];
    const state::PodRecord& pod = state.pod(eviction.pod);
    victims[pod.node].pods.push_back({pod.ns, pod.name, pod.uid});
    if (eviction.against_budget) ++victims[pod.node].budget_violations;
  }
  const state::WorkloadId heir =
      FindHeir({cycle.evictions[from].for_workload, Evictions::Cause::kWaiting});
  std::map<state::PodClassId, std::map<std::string, state::NodeId>> nodes_of;
  for (const engine::Waiting& entry : cycle.waiting) {
    if (entry.workload != heir) continue;
    for (const engine::Waiting::PodPromise& promise : entry.pods) {
      const state::PodRecord& pod = state.pod(promise.pod);
      if (!victims.contains(promise.node) || !preemption_asks.Concerns(pod.pod_class)) continue;
      if (nodes_of[pod.pod_class].empty()) {
        PreemptionAsks::Question& question = questions.emplace_back();
        question.preemptor = pod.pod_class;
        question.ns = pod.ns;
        question.name = pod.name;
        question.uid = pod.uid;
      }
      nodes_of[pod.pod_class].emplace(state.node(promise.node).name(), promise.node);
    }
  }
  for (PreemptionAsks::Question& question : questions) {
    for (const auto& [name, node] : nodes_of[question.preemptor]) {
      question.nodes.push_back(name);
      question.victims.push_back(victims[node]);
    }
  }
  return questions;
}

void DecisionLoop::Impl::AskAboutEvictions(absl::Time now, StepResult& result) {
  PreemptionAsks::Progress progress = preemption_asks.Advance(now);
  for (model::Action& action : progress.actions) Emit(std::move(action), result);
  for (const PreemptionAsks::Refusal& refusal : progress.refusals) {
    for (const model::AskExtenders::Victim& victim : refusal.victims) {
      const state::PodId pod = state.FindPod(victim.ns, victim.name);
      if (pod == state::kNoId || state.pod(pod).uid != victim.uid) continue;
      engine->OnEvictionRefusedFor(refusal.preemptor, pod, now + PreemptionAsks::kRefusalLasts);
    }
  }
  for (const PreemptionAsks::Done& done : progress.done) {
    if (!done.refused) {
      evictions.Release(done.set);
      continue;
    }
    for (const model::EvictPod& spared : evictions.Drop(done.set)) TakeBack(spared);
  }
}

model::EmitEvent DecisionLoop::Impl::EvictionEvent(const state::PodRecord& pod,
                                                   const std::string& message) const {
  if (!options.emit_events) return {};
  return EventAbout(pod, /*warning=*/false, "Evicted", message, model::EventAction::kEvicting);
}

model::EmitEvent DecisionLoop::Impl::PreemptionEvent(const state::PodRecord& pod,
                                                     const engine::Eviction& eviction) const {
  const state::WorkloadId id = FindHeir({eviction.for_workload, Evictions::Cause::kWaiting});
  if (!options.emit_events || id == state::kNoId) return EvictionEvent(pod, eviction.message);
  const state::Workload& workload = state.workload(id);
  model::ObjectRef preemptor{model::Kind::kPodGroup, workload.ns, workload.name, workload.uid};
  if (!workload.is_group) preemptor.kind = model::Kind::kPod;
  if (workload.group != nullptr) preemptor.kind = model::PodGroupKind(workload.group->native);
  const absl::string_view kind = workload.is_group ? "pod group" : "pod";
  model::EmitEvent event =
      EventAbout(pod, /*warning=*/false, "Preempted",
                 absl::StrCat("Preempted by ", kind, " ", preemptor.uid, " on node ",
                              state.node(pod.node).name(), ". ", eviction.message),
                 model::EventAction::kPreempting);
  event.related = std::move(preemptor);
  return event;
}

DecisionLoop::Impl::Served DecisionLoop::Impl::WhatIsServed() const {
  Served served;
  for (const bool first : {true, false}) {
    for (const engine::Waiting& entry : waiting) {
      if (entry.served_first != first) continue;
      const size_t number = served.waiting.size();
      served.waiting.try_emplace(entry.workload, Served::Place{number, &entry});
      for (const engine::Waiting::PodPromise& pod : entry.pods) {
        if (pod.node != state::kNoId) served.promised.try_emplace(pod.node, number);
      }
    }
  }
  return served;
}

// The workload for which the set was chosen. A lone pod that has got a group since is another one.
state::WorkloadId DecisionLoop::Impl::FindHeir(const Evictions::Purpose& purpose) const {
  const size_t slash = purpose.for_workload.find('/');
  const std::string ns = purpose.for_workload.substr(0, slash);
  const std::string name = purpose.for_workload.substr(slash + 1);
  const state::WorkloadId group = state.FindGroup(ns, name);
  if (group != state::kNoId) return group;
  const state::PodId pod = state.FindPod(ns, name);
  if (pod == state::kNoId || state.pod(pod).workload == state::kNoId) return state::kNoId;
  const state::Workload& workload = state.workload(state.pod(pod).workload);
  return workload.is_group ? state::kNoId : workload.id;
}

// Of a workload that waits: true if it still does, and it, or one that comes before it, is
// pipelined to the capacity. Queue order decides which of them gets it. A workload behind it would
// gain by the eviction, but has no right to it.
bool DecisionLoop::Impl::Serves(const Evictions::Purpose& purpose, const model::EvictPod& evict,
                                Served& served) const {
  if (purpose.cause == Evictions::Cause::kLimit) return true;
  if (purpose.cause == Evictions::Cause::kNode) return IsEmptied(purpose.for_workload, evict);
  const state::WorkloadId heir = FindHeir(purpose);
  if (heir == state::kNoId) return false;
  if (purpose.cause == Evictions::Cause::kOwnGang) {
    const auto [known, added] = served.found.try_emplace({heir, heir}, false);
    if (added) known->second = LacksMinimum(heir);
    return known->second;
  }
  const state::PodId victim = FindLeaving(evict);
  return victim != state::kNoId && LeavesFor(heir, state.pod(victim).workload, served);
}

// Pods of one gang leave together, so all of them serve if one does.
bool DecisionLoop::Impl::LeavesFor(state::WorkloadId heir, state::WorkloadId victim,
                                   Served& served) const {
  const auto place = served.waiting.find(heir);
  if (place == served.waiting.end()) return false;
  const auto [known, added] = served.found.try_emplace({heir, victim}, false);
  if (!added) return known->second;
  const state::PodIds& pods = state.workload(victim).pods;
  const bool frees = std::any_of(pods.begin(), pods.end(), [&](state::PodId id) {
    const state::PodRecord& pod = state.pod(id);
    if (pod.status != state::PodStatus::kReleasing) return false;
    const auto promise = served.promised.find(pod.node);
    return promise != served.promised.end() && promise->second <= place->second.number;
  });
  return known->second = frees || MakesHeadroomFor(*place->second.entry, victim, served);
}

// Victims that a limit makes necessary may run on other nodes than the capacity that the heir
// waits for.
bool DecisionLoop::Impl::MakesHeadroomFor(const engine::Waiting& heir, state::WorkloadId victim,
                                          Served& served) const {
  const std::optional<queues::QueueId> leaf = tree.Find(state.workload(heir.workload).queue);
  if (!leaf.has_value() || std::none_of(heir.pods.begin(), heir.pods.end(),
                                        [](const auto& pod) { return pod.node != state::kNoId; })) {
    return false;
  }
  if (!served.used.has_value()) served.used = UsedAndPromised();
  model::Resources charge;
  std::optional<queues::QueueId> victim_leaf;
  for (const state::PodId id : state.workload(victim).pods) {
    const state::PodRecord& pod = state.pod(id);
    if (pod.status != state::PodStatus::kReleasing || pod.terminating) continue;
    charge += state.ChargeOf(pod);
    victim_leaf = tree.Find(state.QueueOf(pod));
  }
  if (!victim_leaf.has_value()) return false;
  const std::optional<queues::LimitViolation> violation =
      queues::CheckLimits(tree, *served.used, *victim_leaf, charge, /*preemptible=*/true);
  if (violation.has_value()) return absl::c_linear_search(tree.Ancestors(*leaf), violation->queue);
  served.used->Charge(*victim_leaf, charge, /*preemptible=*/true);  // it runs on
  return false;
}

queues::QueueLedger DecisionLoop::Impl::UsedAndPromised() const {
  queues::QueueLedger used = UsedByQueues();
  for (const engine::Waiting& entry : waiting) {
    const std::optional<queues::QueueId> leaf = tree.Find(state.workload(entry.workload).queue);
    if (!leaf.has_value() || !tree.IsLeaf(*leaf)) continue;
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node == state::kNoId) continue;
      used.Charge(*leaf, state.ChargeOf(state.pod(pod.pod)), /*preemptible=*/true);
    }
  }
  return used;
}

bool DecisionLoop::Impl::LacksMinimum(state::WorkloadId gang) const {
  state::Workload with = state.workload(gang);
  if (with.details->staleness_grace.value_or(absl::ZeroDuration()) < absl::ZeroDuration()) {
    return false;
  }
  for (const state::PodId id : with.pods) {
    const state::PodRecord& pod = state.pod(id);
    const bool stays = pod.status == state::PodStatus::kReleasing && !pod.terminating;
    const bool doubtful = pod.status == state::PodStatus::kBinding && refusals.Includes(pod);
    const int change = (stays ? 1 : 0) - (doubtful ? 1 : 0);
    if (change == 0) continue;
    if (pod.set >= 0) with.active[static_cast<size_t>(pod.set)] += change;
    if (stays) ++with.by_status[static_cast<int>(state::PodStatus::kRunning)];
  }
  return !engine::BelowMinimum(with).empty();
}

void DecisionLoop::Impl::PruneEvictions() {
  Served served = WhatIsServed();
  const auto serves = [&](const Evictions::Purpose& purpose, const model::EvictPod& evict) {
    return Serves(purpose, evict, served);
  };
  const std::vector<Evictions::Pruned> pruned = evictions.Prune(serves);
  if (pruned.empty()) return;
  queues::QueueLedger used = UsedByQueues();
  for (const auto& [victims, purpose] : pruned) {
    const std::optional<queues::QueueId> limit = LimitUsed(victims, used);
    if (limit.has_value()) {
      EvictForLimit(victims, *purpose, *limit);
      continue;
    }
    for (const model::EvictPod& evict : victims) TakeBack(evict);
  }
  engine->OnQueuesChanged();  // their requests count again
}

queues::QueueLedger DecisionLoop::Impl::UsedByQueues() const {
  queues::QueueLedger used(tree);
  for (const engine::QueueNumbers& row : engine->Numbers()) {
    if (tree.IsLeaf(row.queue)) used.Charge(row.queue, row.allocated, /*preemptible=*/true);
  }
  return used;
}

// A workload was started in the headroom that the victims leave: the one that they were chosen for,
// or one that came before it.
std::optional<queues::QueueId> DecisionLoop::Impl::LimitUsed(
    const std::vector<model::EvictPod>& victims, queues::QueueLedger& used) const {
  std::vector<std::pair<queues::QueueId, model::Resources>> charged;
  for (const model::EvictPod& evict : victims) {
    const state::PodId id = FindLeaving(evict);
    if (id == state::kNoId) continue;
    const std::optional<queues::QueueId> leaf = tree.Find(state.QueueOf(state.pod(id)));
    if (!leaf.has_value()) continue;
    const model::Resources charge = state.ChargeOf(state.pod(id));
    const std::optional<queues::LimitViolation> violation =
        queues::CheckLimits(tree, used, *leaf, charge, /*preemptible=*/true);
    if (violation.has_value()) {
      for (const auto& [queue, amount] : charged) used.Release(queue, amount, /*preemptible=*/true);
      return violation->queue;
    }
    used.Charge(*leaf, charge, /*preemptible=*/true);
    charged.emplace_back(*leaf, charge);
  }
  return std::nullopt;
}

std::string DecisionLoop::Impl::LimitMessage(const Evictions::Purpose& purpose,
                                             queues::QueueId queue) const {
  return absl::StrCat("Evicted (limit): chosen for workload ", purpose.for_workload, "; queue ",
                      tree.Name(queue), " would be above its limit with it");
}

void DecisionLoop::Impl::EvictForLimit(const std::vector<model::EvictPod>& victims,
                                       const Evictions::Purpose& purpose, queues::QueueId queue) {
  std::vector<Evictions::Victim> set;
  for (const model::EvictPod& evict : victims) {
    const state::PodId id = FindLeaving(evict);
    if (id == state::kNoId) continue;
    Evictions::Victim& victim = set.emplace_back();
    victim.evict = evict;
    victim.evict.message = LimitMessage(purpose, queue);
    victim.gang = state.pod(id).workload;
    victim.for_workload = purpose.for_workload;
    victim.cause = Evictions::Cause::kLimit;
    victim.event = EvictionEvent(state.pod(id), victim.evict.message);
  }
  if (!set.empty()) evictions.Add(std::move(set));
}

void DecisionLoop::Impl::SendEvictions(absl::Time now, StepResult& result) {
  if (evictions.queued() == 0 || stale()) return;
  AskAboutEvictions(now, result);
  PruneEvictions();
  const auto wanted = [this](const Evictions::Victim& victim) {
    return FindLeaving(victim.evict) != state::kNoId;
  };
  std::set<state::WorkloadId> evicted;
  std::vector<model::EvictPod> due = evictions.TakeDue(now, wanted);
  for (const model::EvictPod& evict : due) {
    ++stats.evictions;
    evicted.insert(state.pod(FindLeaving(evict)).workload);
  }
  for (model::EvictPod& evict : suspensions.Take(std::move(due))) {
    Emit({0, std::move(evict)}, result);
  }
  for (const state::WorkloadId workload : evicted) RenewDelay(workload, now);
}

void DecisionLoop::Impl::StepSuspensions(absl::Time now, StepResult& result) {
  Suspensions::Progress progress = suspensions.Step(now, /*may_suspend=*/!stale());
  for (model::Action& action : progress.actions) Emit(std::move(action), result);
  for (const Suspensions::Progress::Hold& hold : progress.holds) HoldBack(hold);
  for (model::EvictPod& evict : progress.evict) Emit({0, std::move(evict)}, result);
  // In doubt an eviction is sent again if it still serves, and else taken back.
  const absl::Status late = absl::UnavailableError("it was not suspended");
  for (const std::string& uid : progress.late) EvictionAnswered(uid, late, now);
  for (const std::string& uid : progress.going) EvictionAnswered(uid, absl::OkStatus(), now);
}

void DecisionLoop::Impl::HoldBack(const Suspensions::Progress::Hold& hold) {
  const size_t slash = hold.group.find('/');
  const state::WorkloadId group =
      state.FindGroup(hold.group.substr(0, slash), hold.group.substr(slash + 1));
  if (group == state::kNoId) return;
  for (const state::PodId pod : state::PodIds(state.workload(group).pods)) {
    if (state.HoldBack(pod, hold.why, hold.held).Any()) dirty = true;
  }
}

// By each scheduler name: which one is the first may change.
std::vector<std::string> DecisionLoop::Impl::MarksOf(const Options& options) {
  std::vector<std::string> marks = options.state.scheduler_names;
  if (!options.shard.has_value()) return marks;
  for (std::string& mark : marks) absl::StrAppend(&mark, "/", options.shard->label_value);
  return marks;
}

void DecisionLoop::Impl::RenewDelay(state::WorkloadId id, absl::Time now) {
  const state::Workload& workload = state.workload(id);
  if (workload.group == nullptr || workload.details->preemption_delay == absl::ZeroDuration())
    return;
  state.SetLastEviction(id, absl::FromUnixSeconds(absl::ToUnixSeconds(now)));
  annotations.Write(id, GroupAnnotation::kLastEviction);
}

// The pod, if only our decision makes it leave.
state::PodId DecisionLoop::Impl::FindLeaving(const model::EvictPod& evict) const {
  const state::PodId id = state.FindPod(evict.ns, evict.name);
  if (id == state::kNoId) return id;
  const state::PodRecord& pod = state.pod(id);
  const bool leaving =
      pod.uid == evict.uid && pod.status == state::PodStatus::kReleasing && !pod.terminating;
  return leaving ? id : state::kNoId;
}

void DecisionLoop::Impl::TakeBack(const model::EvictPod& evict) {
  const state::PodId pod = FindLeaving(evict);
  if (pod != state::kNoId && state.ForgetEviction(pod).Any()) dirty = true;
}

void DecisionLoop::Impl::EvictionAnswered(const std::string& uid, const absl::Status& status,
                                          absl::Time now) {
  Evictions::Answer answer = evictions.Answered(uid, status, now);
  const model::EvictPod& evict = answer.evict;
  if (evict.uid.empty()) return;
  const state::PodId pod = FindLeaving(evict);
  switch (answer.outcome) {
    case Outcome::kDone:
      if (!answer.event.uid.empty()) events.push_back(std::move(answer.event));
      return;
    case Outcome::kUnknown:
      if (pod == state::kNoId) evictions.Forget(uid);
      return;
    case Outcome::kRefused:
      for (const model::EvictPod& spared : answer.spared) TakeBack(spared);
      if (pod == state::kNoId) return;
      TakeBack(evict);
      if (!emptied.empty()) spared_until[uid] = answer.until;
      engine->OnEvictionRefused(pod, answer.until,
                                /*by_budget=*/absl::IsResourceExhausted(status), now);
      return;
  }
}

// Repeats evictions of unknown outcome that the watch has not decided meanwhile, if they still
// serve.
void DecisionLoop::Impl::RepeatEvictions(absl::Time now, StepResult& result) {
  if (stale()) return;
  const std::vector<Evictions::Doubt> doubts = evictions.TakeDoubts(now);
  if (doubts.empty()) return;
  Served served = WhatIsServed();
  queues::QueueLedger used = UsedByQueues();
  for (const auto& [evict, purpose] : doubts) {
    if (FindLeaving(evict) == state::kNoId) {
      evictions.Forget(evict.uid);
      continue;
    }
    model::EvictPod again = evict;
    if (!Serves(*purpose, evict, served)) {
      const std::optional<queues::QueueId> limit = LimitUsed({evict}, used);
      if (!limit.has_value()) {
        // If the pod goes nevertheless, the watch will show it.
        evictions.Forget(evict.uid);
        TakeBack(evict);
        continue;
      }
      again.message = LimitMessage(*purpose, *limit);
    }
    evictions.SentAgain(evict.uid, now);
    Emit({0, std::move(again)}, result);
  }
}

}  // namespace fairlead::core
