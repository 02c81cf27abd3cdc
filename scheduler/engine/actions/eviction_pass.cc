#include "scheduler/engine/actions/eviction_pass.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "queues/job_order.h"
#include "queues/limits.h"
#include "scheduler/engine/actions/eviction_effects.h"
#include "scheduler/model/quantity.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using verdict::Code;

// After a cycle whose search budget was spent.
constexpr absl::Duration kPauseOfSearches = absl::Seconds(1);

constexpr absl::string_view kNotEvaluated =
    "victims not evaluated yet: the search budget of each cycle goes to earlier requests first";
constexpr absl::string_view kPrefersNodes =
    "no pod is evicted for it while nodes can be had: so its queue prefers above its quota";
// Those that are evicted: others were bound or promised a place in this cycle.
std::vector<state::PodId> RunningOf(const std::vector<Victim>& victims) {
  std::vector<state::PodId> running;
  for (const Victim& victim : victims) {
    if (!victim.from.fresh && !victim.from.promised) running.push_back(victim.pod);
  }
  return running;
}

constexpr absl::string_view kEvictionsPause =
    "no eviction for now: pods were evicted for it before, and it lost its place";

void AddDetail(Outcome& outcome, absl::string_view detail) {
  if (!absl::c_linear_search(outcome.details, detail)) outcome.details.emplace_back(detail);
}

bool ByKey(const PendingWorkload& a, const PendingWorkload& b) { return a.key < b.key; }

}  // namespace

void EvictionPass::Run() {
  c_.outcomes.Sort();
  CollectRows();
  if (rows_.empty()) return;
  CollectLines();
  TakePostponed();
  const auto next_job = [this](queues::QueueId leaf) -> const model::Resources* {
    const auto it = rows_.find(leaf);
    if (it == rows_.end() || it->second.empty()) return nullptr;
    return &c_.outcomes[it->second.front()].step_request;
  };
  queues::QueueOrderIterator order(in_.tree, in_.tracker.ledger(), in_.shares, next_job,
                                   {.cluster_total = in_.state.total_for_queues()});
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    Row& row = rows_.at(*leaf);
    const size_t position = row.front();
    row.pop_front();
    if (TakeTurn(position, row)) {
      order.ChangedAll();  // victims change what their queues hold
    } else {
      order.Changed(*leaf);
    }
  }
}

void EvictionPass::CollectRows() {
  const int64_t depth = policy_.Depth();
  for (size_t i = 0; i < c_.outcomes.size(); ++i) {
    const Outcome& outcome = c_.outcomes[i];
    if (outcome.leaf == PendingIndex::kNoQueue || outcome.step.pods.empty() ||
        !outcome.promises.empty() || outcome.behind || !policy_.MayHelp(outcome) ||
        !in_.state.workload(outcome.workload).may_preempt ||
        !policy_.MayServe(in_.framework, in_.state.class_of(outcome.step.pods.front())) ||
        in_.placer.NeverFits(in_.state.pod(outcome.step.pods.front()).pod_class)) {
      continue;
    }
    rows_[outcome.leaf].push_back(i);
  }
  if (depth == model::kUnlimited) return;
  for (auto& [leaf, row] : rows_) CountTurns(row, depth);
}

void EvictionPass::CountTurns(Row& row, int64_t depth) {
  std::map<QueueOrderKey, std::pair<size_t, MemberRange>> behind;  // by the next member
  const auto count = [&](size_t position, const MemberRange& rest) {
    --depth;
    ++turns_[position];
    if (!rest.empty()) behind.emplace(*rest.next, std::make_pair(position, rest));
  };
  const auto count_behind = [&] {
    const auto [position, range] = behind.extract(behind.begin()).mapped();
    count(position, range.Behind());
  };
  size_t kept = 0;
  for (; kept < row.size() && depth > 0; ++kept) {
    const Outcome& outcome = c_.outcomes[row[kept]];
    const QueueOrderKey key = c_.outcomes.KeyOf(outcome);
    while (depth > 0 && !behind.empty() && behind.begin()->first < key) count_behind();
    if (depth == 0) break;
    count(row[kept], outcome.rest);
  }
  row.resize(kept);
  while (depth > 0 && !behind.empty()) count_behind();
}

void EvictionPass::CollectLines() {
  for (const Outcome& outcome : c_.outcomes.rows()) {
    if (outcome.leaf == PendingIndex::kNoQueue || outcome.step.pods.empty()) continue;
    std::vector<PendingWorkload>& line = lines_[outcome.leaf];
    line.push_back({MakeQueueOrderKey(in_.state.workload(outcome.workload)), outcome.step_request});
    // Equal requests in a row weigh as one: the first of those behind stands for them.
    if (outcome.rest.count > 0) line.push_back({*outcome.rest.next, outcome.step_request});
  }
  for (auto& [leaf, line] : lines_) std::sort(line.begin(), line.end(), ByKey);
}

void EvictionPass::TakePostponed() {
  const std::vector<std::string> first = in_.budget.FirstInLine(name_);
  if (first.empty()) return;
  std::map<std::string, size_t> by_uid;
  const size_t none = c_.outcomes.size();
  for (const std::string& uid : first) by_uid.emplace(uid, none);
  for (const auto& [leaf, row] : rows_) {
    for (const size_t position : row) {
      const auto found = by_uid.find(in_.state.workload(c_.outcomes[position].workload).uid);
      if (found != by_uid.end()) found->second = position;
    }
  }
  for (const std::string& uid : first) {
    const size_t position = std::exchange(by_uid.at(uid), none);
    if (position >= none) continue;
    Row& row = rows_.at(c_.outcomes[position].leaf);
    row.erase(std::find(row.begin(), row.end(), position));
    TakeTurn(position, row);
  }
}

bool EvictionPass::TakeTurn(size_t position, Row& row) {
  const size_t evicted = c_.decisions.evictions.size();
  std::optional<Outcome> before;
  if (c_.outcomes[position].rest.count > 0) before = c_.outcomes[position];
  Help(c_.outcomes[position]);
  if (c_.decisions.evictions.size() == evicted && c_.outcomes[position].promises.empty()) {
    return false;
  }
  // What is behind it may be helped too, in its turn.
  if (before.has_value()) StepForward(position, *before, row);
  return true;
}

void EvictionPass::StepForward(size_t position, const Outcome& before, Row& row) {
  const size_t next = c_.outcomes.StepForward(position, before);
  const Outcome& outcome = c_.outcomes[next];
  if (policy_.Depth() != model::kUnlimited) {
    const int64_t turns = turns_[position] - 1;
    if (turns == 0) return;
    turns_[next] = turns;
  }
  if (outcome.rest.count > 0) {
    std::vector<PendingWorkload>& line = lines_[outcome.leaf];
    PendingWorkload entry{*outcome.rest.next, outcome.step_request};
    const auto place = std::upper_bound(line.begin(), line.end(), entry, ByKey);
    line.insert(place, std::move(entry));
  }
  const QueueOrderKey key = c_.outcomes.KeyOf(outcome);
  const auto place = std::find_if(row.begin(), row.end(), [&](size_t other) {
    return key < c_.outcomes.KeyOf(c_.outcomes[other]);
  });
  row.insert(place, next);
}

std::pair<queues::QueueId, StepKind> EvictionPass::KeyOf(const Outcome& outcome,
                                                         const state::Workload& workload) const {
  return {policy_.ScopeOf(outcome.leaf), KindOf(in_.state, workload, outcome.step)};
}

// Some pod that runs, or was bound in this cycle, ends or moves for it.
bool EvictionPass::TakesBindings(const SearchOutcome& found) {
  return found.found && std::any_of(found.victims.begin(), found.victims.end(),
                                    [](const Victim& victim) { return !victim.from.promised; });
}

void EvictionPass::Help(Outcome& outcome) {
  const state::Workload& workload = in_.state.workload(outcome.workload);
  const std::string action(policy_.Name());
  if (against_budgets_ && !c_.spared.contains({action, workload.id})) return;
  if (PrefersNodes(outcome, workload)) return;
  if (DelaysEviction(outcome, workload) || KnownToFail(outcome, workload)) return;
  const bool limit_blocked = outcome.code == Code::kQueueLimitReached;
  if (!limit_blocked && queues::CheckLimits(in_.tree, in_.tracker.ledger(), outcome.leaf,
                                            outcome.step_request, workload.preemptible)
                            .has_value()) {
    return;  // other workloads were helped meanwhile; the demand action says which limit holds it
  }
  const std::optional<SearchBudget::Turn> turn =
      in_.budget.TakeTurn(name_, workload.uid, in_.placer.work());
  if (!turn.has_value()) {
    Postpone(outcome, workload);
    return;
  }
  if (c_.fresh.empty()) {
    for (const Binding& binding : c_.decisions.bindings) c_.fresh.insert(binding.pod);
  }
  const bool weighs = buying_.Weighs(outcome);
  const queues::QueueLedger before = in_.tracker.ledger();
  const SearchStep step{workload, outcome.leaf, outcome.step, outcome.step_request, limit_blocked};
  std::string broken;
  state::Transaction txn(in_.state);
  const std::set<state::PodId> none;
  const std::set<state::PodId>& fresh_victims = policy_.TakesFresh() ? c_.fresh : none;
  SearchOutcome found = Search(txn, before, outcome, step, *turn, fresh_victims, broken);
  if (!TakesBindings(found) && !found.out_of_work && !fresh_victims.empty()) {
    // Bindings of this cycle come first among the victims, as in KAI. Where they do not help, they
    // must not keep the search from pods that run.
    txn.RollbackTo(0);
    found = Search(txn, before, outcome, step, *turn, none, broken);
  }
  if (!found.out_of_work && IsPreemption(policy_.Name())) ++c_.decisions.victim_searches;
  if (!found.found) {
    c_.decisions.WakeAt(found.wake_at);
    // With a whole budget the workload has had its turn, completed or not.
    if (found.out_of_work && !turn->whole) {
      Postpone(outcome, workload);
    } else {
      RecordFailure(outcome, workload, found, broken);
    }
    return;
  }
  // Promises alone are not changed: capacity that no pod holds is allocate's to give out.
  if (!TakesBindings(found) || (weighs && PrefersNodesTo(outcome, found.victims))) return;
  txn.Commit();
  RecordPreemptor(outcome, workload, found.victims);
  const std::vector<Victim> fresh = RecordVictims(c_, policy_, outcome, before, found.victims);
  c_.RecordPromises(workload, outcome.leaf, outcome.step.pods, /*victims_chosen=*/true);
  WithdrawBindings(c_, fresh, workload.id);
}

void EvictionPass::RecordPreemptor(const Outcome& outcome, const state::Workload& workload,
                                   const std::vector<Victim>& victims) {
  const std::vector<state::PodId> evicted = RunningOf(victims);
  policy_.Evicts(evicted);
  if (!evicted.empty()) in_.eviction_backoff.OnEvicted(workload, evicted);
  in_.preemptors.Add({workload.id, workload.uid, outcome.leaf, outcome.step_request}, evicted,
                     in_.now);
}

bool EvictionPass::DelaysEviction(Outcome& outcome, const state::Workload& workload) {
  if (in_.eviction_backoff.Holds(workload)) {
    if (policy_.MayHaveVictims(outcome, workload)) AddDetail(outcome, kEvictionsPause);
    return true;
  }
  if (!in_.pending.IsDelayed(workload)) return false;
  const absl::Time until = workload.PreemptionDelayEnd();
  c_.decisions.WakeAt(until);
  if (!outcome.until.has_value() && policy_.MayHaveVictims(outcome, workload)) {
    outcome.until = until;
  }
  return true;
}

bool EvictionPass::PrefersNodes(Outcome& outcome, const state::Workload& workload) {
  if (!buying_.Prefers(outcome)) return false;
  if (policy_.MayHaveVictims(outcome, workload)) AddDetail(outcome, kPrefersNodes);
  return true;
}

bool EvictionPass::PrefersNodesTo(Outcome& outcome, const std::vector<Victim>& victims) {
  const std::optional<int64_t> waste = buying_.PrefersTo(outcome, RunningOf(victims));
  if (!waste.has_value()) return false;
  // Without what the work is worth, which grows all the time.
  AddDetail(outcome, absl::StrCat("no pod is evicted for it while nodes can be had: the work that "
                                  "would be lost is worth more than the ",
                                  model::FormatDollars(*waste),
                                  " that new nodes cost while they do no work"));
  return true;
}

bool EvictionPass::KnownToFail(Outcome& outcome, const state::Workload& workload) {
  const auto known = failed_.find(KeyOf(outcome, workload));
  if (known == failed_.end() ||
      static_cast<int64_t>(outcome.step.pods.size()) < known->second.count ||
      workload.priority > known->second.priority) {
    return false;
  }
  in_.answers.Record(name_, workload, known->second.answer);
  Tell(outcome, workload, *known->second.answer);
  return true;
}

SearchOutcome EvictionPass::Search(state::Transaction& txn, const queues::QueueLedger& before,
                                   const Outcome& outcome, const SearchStep& step,
                                   const SearchBudget::Turn& turn,
                                   const std::set<state::PodId>& fresh, std::string& broken) {
  SearchContext context{.options = in_.options,
                        .tree = in_.tree,
                        .ledger = before,
                        .live = in_.tracker.ledger(),
                        .shares = in_.shares,
                        .lines = lines_,
                        .moved = c_.pipelined.moved(),
                        .fresh = fresh,
                        .refusals = in_.refusals,
                        .moves = in_.moves,
                        .against_budgets = against_budgets_,
                        .now = in_.now,
                        .work_end = turn.end_of_work,
                        .keeps_bounds = nullptr};
  if (c_.lending.any() || c_.variants.any()) {
    context.keeps_bounds = [&, load = c_.lending.Load()](queues::QueueId leaf,
                                                         const state::Workload& placed,
                                                         const std::vector<state::PodId>& pods) {
      std::string why = BrokenBound(load, leaf, placed, pods);
      const bool keeps = why.empty();
      if (placed.id == outcome.workload) broken = std::move(why);
      return keeps;
    };
  }
  return policy_.Search(txn, context, step);
}

void EvictionPass::RecordFailure(Outcome& outcome, const state::Workload& workload,
                                 const SearchOutcome& found, const std::string& broken) {
  auto answer = std::make_shared<SearchAnswer>();
  // Without budgets: what the search with them has said stands.
  if (!against_budgets_) {
    answer->details = found.details;
    if (!broken.empty()) answer->details.push_back(absl::StrCat("no eviction: ", broken));
    answer->spared = found.spared;
  }
  failed_[KeyOf(outcome, workload)] = {workload.priority,
                                       static_cast<int64_t>(outcome.step.pods.size()), answer};
  in_.answers.Record(name_, workload, answer);
  Tell(outcome, workload, *answer);
}

void EvictionPass::Tell(Outcome& outcome, const state::Workload& workload,
                        const SearchAnswer& answer) {
  outcome.details.insert(outcome.details.end(), answer.details.begin(), answer.details.end());
  if (IsPreemption(policy_.Name())) outcome.victims_sought = true;
  if (answer.spared) c_.spared.insert({std::string(policy_.Name()), workload.id});
}

void EvictionPass::Postpone(Outcome& outcome, const state::Workload& workload) {
  in_.budget.Postpone(name_, workload.uid);
  c_.decisions.WakeAt(in_.now + kPauseOfSearches);
  if (const SearchAnswerPtr known = in_.answers.Recall(name_, workload); known != nullptr) {
    Tell(outcome, workload, *known);
    return;
  }
  if (!against_budgets_) AddDetail(outcome, kNotEvaluated);
}

std::string EvictionPass::BrokenBound(const model::Resources& load, queues::QueueId leaf,
                                      const state::Workload& workload,
                                      const std::vector<state::PodId>& pods) const {
  if (c_.lending.Breaks(load))
    return "the capacity would come out of guaranteed quota of other queues";
  const auto broken = c_.variants.FindBroken(leaf, workload.preemptible, pods);
  if (!broken.has_value()) return "";
  return absl::StrCat("the capacity found would break the bound of queue ",
                      in_.tree.Name(broken->queue), " for ",
                      in_.tree.names().Name(broken->resource));
}

}  // namespace fairlead::engine
