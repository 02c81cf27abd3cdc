// The actions that make others give way: consolidation, reclaim, preempt, and stale gangs.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/cycle.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;
using verdict::Code;

constexpr char kStaleAction[] = "stalegangeviction";
// After a cycle whose budget of searches was spent.
constexpr absl::Duration kPauseOfSearches = absl::Seconds(1);

}  // namespace

bool Cycle::DelaysEviction(EvictKind kind, Outcome& outcome, const state::Workload& workload) {
  const absl::Time until = workload.PreemptionDelayEnd();
  if (until <= now_) return false;
  wake_at = std::min(wake_at, until);
  if (!outcome.until.has_value() && MightGiveWay(kind, outcome, workload)) outcome.until = until;
  return true;
}

bool Cycle::MightGiveWay(EvictKind kind, const Outcome& outcome, const state::Workload& workload) {
  // Who would end up in room that is kept back makes nobody give way.
  if (kind == EvictKind::kConsolidation || !outcome.keeper.empty()) return false;
  if (kind == EvictKind::kPreempt) {
    return p_.search.AnybodyToPreempt(outcome.leaf, workload.priority);
  }
  const auto [answer, added] = might_be_reclaimed_.try_emplace(
      {outcome.leaf, workload.preemptible, KindOf(p_.state, workload, outcome.step)}, false);
  if (added) {
    const queues::ReclaimContext rights =
        ReclaimRights(p_.options, p_.tree, p_.books.ledger(), p_.shares);
    answer->second = p_.search.AnybodyToReclaimFrom(
        rights, {outcome.leaf, outcome.step_request, workload.preemptible});
  }
  return answer->second;
}

bool Cycle::MayEvict(EvictKind kind, const Outcome& outcome) {
  if (outcome.step.pods.empty() || !outcome.promises.empty() || outcome.behind) return false;
  if (outcome.code == Code::kInsufficientCapacity) {
    return kind != EvictKind::kConsolidation ||
           (outcome.keeper.empty() && p_.state.workload(outcome.workload).preemptible &&
            outcome.step_request[model::kGpu] <= FreeGpusInSum());
  }
  // A limit may be lifted by who holds the room under it.
  return outcome.code == Code::kQueueLimitReached && kind != EvictKind::kConsolidation;
}

// Consolidation creates no room: the GPUs that are free in sum must do, shares of GPUs included.
// (Other resources are left to the search, as in KAI.)
int64_t Cycle::FreeGpusInSum() {
  if (free_gpus_.has_value() && free_gpus_->first == p_.state.version()) {
    return free_gpus_->second;
  }
  int64_t free_milli = 0;
  for (const auto& [name, id] : p_.state.nodes_by_name()) {
    const state::NodeInfo& node = p_.state.node(id);
    if (!node.exists || !node.usable || node.kind != state::NodeKind::kReal) continue;
    free_milli += std::max<int64_t>(0, node.Future()[model::kGpu]) + node.other_gpus_milli;
    const int64_t memory = state::MemoryOrNominal(node.gpu_memory_mib);
    for (const state::GpuGroup& group : node.gpu_groups) {
      if (group.active == 0) continue;  // counted as a whole GPU above
      const int64_t used = group.used_mib - group.releasing_mib + group.pipelined_mib;
      free_milli += std::max<int64_t>(0, memory - used) * 1000 / memory;
    }
  }
  free_gpus_ = {p_.state.version(), free_milli};
  return free_milli;
}

// "Evicted (reclaim) for workload ns/x of queue prod: queue research holds 6 GPUs, its fair share
// is 4; queue prod holds 1 of 3". The queues are those just below the common ancestor, whose shares
// reclaim compares.
std::string Cycle::WhyEvicted(EvictKind kind, const Outcome& outcome,
                              const queues::QueueLedger& before,
                              const state::Workload& victim) const {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  const std::string whom = absl::StrCat("for workload ", model::Key(workload.ns, workload.name),
                                        " of queue ", workload.queue);
  if (kind == EvictKind::kConsolidation) {
    return absl::StrCat("Moved (consolidation) ", whom, ": it needs room in one place");
  }
  if (kind == EvictKind::kPreempt) {
    return absl::StrCat("Evicted (preempt) ", whom, ": its priority is ", workload.priority,
                        ", and that of ", model::Key(victim.ns, victim.name), " in the same queue ",
                        victim.priority);
  }
  std::string text = absl::StrCat("Evicted (reclaim) ", whom);
  const std::optional<queues::QueueId> leaf = p_.tree.Find(victim.queue);
  if (!leaf.has_value()) return text;
  const auto [giver, taker] = p_.tree.Diverging(*leaf, outcome.leaf);
  const auto amount = [this](int64_t units, model::ResourceIndex r) {
    const std::string& name = p_.tree.names().Name(r);
    return absl::StrCat(model::FormatAmount(name, units), " ", verdict::ResourceNoun(name));
  };
  // The resource of which the giver has too much, if the workload asks for it.
  model::ResourceIndex r = model::kGpu;
  for (const model::ResourceIndex one : {model::kMemory, model::kCpu, model::kGpu}) {
    const bool over = before.allocated(giver, one) > p_.shares.Of(giver)[one];
    if (outcome.step_request[one] > 0 && (over || one == model::kGpu)) r = one;
  }
  absl::StrAppend(&text, ": queue ", p_.tree.Name(giver), " holds ",
                  amount(before.allocated(giver, r), r), ", its fair share is ",
                  amount(p_.shares.Of(giver)[r], r), "; queue ", p_.tree.Name(taker), " holds ",
                  amount(before.allocated(taker, r), r), ", its fair share is ",
                  amount(p_.shares.Of(taker)[r], r));
  return text;
}

void Cycle::RecordVictims(EvictKind kind, const Outcome& outcome, const queues::QueueLedger& before,
                          const std::vector<Victim>& victims) {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  const uint64_t set = evictions.empty() ? 0 : evictions.back().set + 1;
  for (const Victim& victim : victims) {
    if (victim.from.promised) {
      ChangePromise(victim);
      continue;
    }
    if (victim.from.fresh) {
      fresh_victims_.push_back(victim);
      continue;
    }
    p_.state.ChargeBudgets(victim.pod);
    Eviction eviction;
    eviction.pod = victim.pod;
    eviction.for_workload = model::Key(workload.ns, workload.name);
    eviction.moves_to = victim.moves_to;
    eviction.set = set;
    eviction.against_budget = victim.against_budget;
    eviction.action = kind == EvictKind::kConsolidation ? "consolidation"
                      : kind == EvictKind::kReclaim     ? "reclaim"
                                                        : "preempt";
    eviction.message =
        WhyEvicted(kind, outcome, before, p_.state.workload(p_.state.pod(victim.pod).workload));
    if (victim.moves_to != state::kNoId) {
      absl::StrAppend(&eviction.message, "; there is room for it on node ",
                      p_.state.node(victim.moves_to).name());
      moved_.push_back(victim);
      moved_pods_.insert(victim.pod);
    }
    evictions.push_back(std::move(eviction));
  }
}

void Cycle::ChangePromise(const Victim& victim) {
  const state::Workload& workload = p_.state.workload(p_.state.pod(victim.pod).workload);
  Outcome& outcome = outcomes[index_.at(workload.id)];
  auto promise = std::find_if(outcome.promises.begin(), outcome.promises.end(),
                              [&](const Waiting::PodPromise& p) { return p.pod == victim.pod; });
  if (victim.moves_to != state::kNoId) {
    promise->node = victim.moves_to;
    return;
  }
  outcome.promises.erase(promise);
  promised_.erase(std::find(promised_.begin(), promised_.end(), victim.pod));
  if (!outcome.promises.empty()) return;
  outcome.code = Code::kInsufficientCapacity;
  if (outcome.step.pods.empty()) {
    outcome.step = NextStep(p_.state, workload);
    outcome.step_request = ChargeOf(outcome.step.pods);
    outcome.failed_pod = victim.pod;
  }
}

std::string Cycle::BrokenBound(const model::Resources& kept, queues::QueueId leaf,
                               const state::Workload& workload,
                               const std::vector<state::PodId>& pods) const {
  if (BreaksLending(kept)) return "the room would come out of what queues keep back";
  const auto broken = BrokenModel(leaf, workload.preemptible, pods);
  if (!broken.has_value()) return "";
  return absl::StrCat("the room found would break the bound of queue ", p_.tree.Name(broken->queue),
                      " for ", p_.tree.names().Name(broken->resource));
}

void Cycle::EvictFor(EvictKind kind, bool against_budgets, Outcome& outcome, const Lines& lines,
                     FailedSearches& failed) {
  const state::Workload& workload = p_.state.workload(outcome.workload);
  if (against_budgets && !spared_.contains({kind, workload.id})) return;
  if (DelaysEviction(kind, outcome, workload)) return;
  const auto count = static_cast<int64_t>(outcome.step.pods.size());
  // Who may be moved does not depend on the queue that asks.
  const queues::QueueId scope = kind == EvictKind::kConsolidation ? 0 : outcome.leaf;
  const auto key = std::make_pair(scope, KindOf(p_.state, workload, outcome.step));
  const auto known = failed.find(key);
  if (known != failed.end() && count >= known->second.count &&
      workload.priority <= known->second.priority) {
    const std::vector<std::string>& details = known->second.details;
    outcome.details.insert(outcome.details.end(), details.begin(), details.end());
    if (known->second.spared) spared_.insert({kind, workload.id});
    return;
  }
  if (p_.placer.work() > search_work_end_) {
    Postpone(kind, against_budgets, outcome);
    return;
  }
  const bool whole_budget = !std::exchange(searched_, true);
  if (whole_budget) {
    for (const Binding& binding : bindings) fresh_.insert(binding.pod);
  }
  const queues::QueueLedger ledger = p_.books.ledger();
  SearchContext context{p_.options, p_.tree,          ledger, p_.books.ledger(), p_.shares,
                        lines,      moved_pods_,      fresh_, p_.refusals,       against_budgets,
                        now_,       search_work_end_, nullptr};
  const bool limit_blocked = outcome.code == Code::kQueueLimitReached;
  const SearchStep step{workload, outcome.leaf, outcome.step, outcome.step_request, limit_blocked};
  if (!limit_blocked &&
      queues::CheckLimits(p_.tree, ledger, outcome.leaf, outcome.step_request, workload.preemptible)
          .has_value()) {
    return;  // others were served meanwhile; the demand pass says which limit
  }
  std::string broken;
  if (p_.books.lending() || !models_.empty()) {
    const model::Resources kept = p_.books.LendingLoad();
    context.keeps_bounds = [&, kept](queues::QueueId leaf, const state::Workload& placed,
                                     const std::vector<state::PodId>& pods) {
      std::string why = BrokenBound(kept, leaf, placed, pods);
      const bool keeps = why.empty();
      if (placed.id == workload.id) broken = std::move(why);
      return keeps;
    };
  }
  state::Transaction txn(p_.state);
  const SearchOutcome found = kind == EvictKind::kReclaim ? p_.search.Reclaim(txn, context, step)
                              : kind == EvictKind::kPreempt
                                  ? p_.search.Preempt(txn, context, step)
                                  : p_.search.Consolidate(txn, context, step);
  if (!found.found) {
    wake_at = std::min(wake_at, found.wake_at);
    // With all of it the search was not done either: it has had its turn.
    if (found.out_of_work && !whole_budget) Postpone(kind, against_budgets, outcome);
    // What the first search said of budgets stands.
    if (against_budgets) {
      failed[key] = {workload.priority, count, {}};
      return;
    }
    std::vector<std::string> details = found.details;
    if (!broken.empty()) details.push_back(absl::StrCat("nobody gives way: ", broken));
    outcome.details.insert(outcome.details.end(), details.begin(), details.end());
    failed[key] = {workload.priority, count, std::move(details), found.spared};
    if (found.spared) spared_.insert({kind, workload.id});
    return;
  }
  // Bindings alone are not taken back: what nothing has to end for would be decided again and
  // again.
  if (std::all_of(found.victims.begin(), found.victims.end(),
                  [](const Victim& victim) { return victim.from.fresh; })) {
    return;
  }
  txn.Commit();
  RecordVictims(kind, outcome, ledger, found.victims);
  RecordPromises(workload, outcome.leaf, outcome.step.pods, /*victims_chosen=*/true);
}

// Who waits for room in each leaf queue, in the order of service.
Lines Cycle::MakeLines() const {
  Lines lines;
  for (const Outcome& outcome : outcomes) {
    if (outcome.leaf == PendingIndex::kNoQueue || outcome.step.pods.empty()) continue;
    std::vector<InLine>& line = lines[outcome.leaf];
    line.push_back({MakeServiceKey(p_.state.workload(outcome.workload)), outcome.step_request});
    // Equal requests in a row weigh as one: the first of those behind stands for them.
    if (outcome.rest.count > 0) line.push_back({*outcome.rest.next, outcome.step_request});
  }
  for (auto& [leaf, line] : lines) {
    std::sort(line.begin(), line.end(),
              [](const InLine& a, const InLine& b) { return a.key < b.key; });
  }
  return lines;
}

size_t Cycle::StepForward(size_t at, const Outcome& before, Lines& lines) {
  const CrowdRest rest = std::exchange(outcomes[at].rest, {});
  outcomes.push_back(OutcomeOfNext(p_.state, before, rest));
  Outcome& next = outcomes.back();
  index_[next.workload] = outcomes.size() - 1;
  next.stepped_forward = true;
  unsorted_ = true;
  if (next.rest.count > 0) {
    std::vector<InLine>& line = lines[next.leaf];
    InLine entry{*next.rest.next, next.step_request};
    const auto place =
        std::upper_bound(line.begin(), line.end(), entry,
                         [](const InLine& a, const InLine& b) { return a.key < b.key; });
    line.insert(place, std::move(entry));
  }
  return outcomes.size() - 1;
}

void Cycle::Postpone(EvictKind kind, bool against_budgets, Outcome& outcome) {
  postponed_.emplace_back(ActionOf(kind, against_budgets), p_.state.workload(outcome.workload).uid);
  const std::string why =
      "not evaluated: the search budget of this cycle is spent; it comes first in the next cycle";
  if (outcome.details.empty() || outcome.details.back() != why) outcome.details.push_back(why);
  wake_at = std::min(wake_at, now_ + kPauseOfSearches);
}

void Cycle::Withdraw(const Victim& victim, const std::string& whom) {
  const auto decided =
      std::find_if(bindings.rbegin(), bindings.rend(),
                   [&](const Binding& binding) { return binding.pod == victim.pod; });
  bindings.erase(std::next(decided).base());
  fresh_.erase(victim.pod);
  withdrawn.push_back({victim.pod, victim.from.node});
  const state::Workload& workload = p_.state.workload(p_.state.pod(victim.pod).workload);
  const queues::QueueId leaf = p_.tree.Find(workload.queue).value_or(PendingIndex::kNoQueue);
  if (victim.moves_to != state::kNoId) {
    RecordPromises(workload, leaf, {victim.pod}, /*victims_chosen=*/true);
    return;
  }
  state::WithdrawBinding(p_.state, victim.pod);
  const bool added = !index_.contains(workload.id);
  Outcome& outcome = OutcomeOf(workload, leaf);
  if (added) unsorted_ = outcome.stepped_forward = true;
  if (outcome.code == Code::kNone) {
    outcome.code = Code::kInsufficientCapacity;
    outcome.details.push_back(absl::StrCat("its place went to workload ", whom));
  }
  outcome.step = NextStep(p_.state, workload);
  outcome.step_request = ChargeOf(outcome.step.pods);
  outcome.failed_pod = victim.pod;
  outcome.bound_to_topology = BoundToTopology(workload);
}

void Cycle::WithdrawBindings(size_t at) {
  const std::vector<Victim> victims = std::exchange(fresh_victims_, {});
  if (victims.empty()) return;
  const state::Workload& workload = p_.state.workload(outcomes[at].workload);
  const std::string whom = model::Key(workload.ns, workload.name);
  for (const Victim& victim : victims) Withdraw(victim, whom);
}

bool Cycle::EvictInTurn(EvictKind kind, bool against_budgets, size_t at, Row& row, Lines& lines,
                        FailedSearches& failed) {
  const size_t evicted = evictions.size();
  std::optional<Outcome> before;
  if (outcomes[at].rest.count > 0) before = outcomes[at];
  EvictFor(kind, against_budgets, outcomes[at], lines, failed);
  WithdrawBindings(at);
  if (evictions.size() == evicted && outcomes[at].promises.empty()) return false;
  // What stood behind it has hope too, in its turn.
  if (before.has_value()) {
    const size_t next = StepForward(at, *before, lines);
    const ServiceKey key = KeyOf(outcomes[next]);
    const auto place = std::find_if(row.begin(), row.end(),
                                    [&](size_t other) { return key < KeyOf(outcomes[other]); });
    row.insert(place, next);
  }
  return true;
}

void Cycle::EvictForBacklog(EvictKind kind, bool against_budgets,
                            std::map<queues::QueueId, Row>& waiting, Lines& lines,
                            FailedSearches& failed) {
  std::map<std::string, size_t> by_uid;
  for (const auto& [action, uid] : p_.backlog) {
    if (action == ActionOf(kind, against_budgets)) by_uid.emplace(uid, outcomes.size());
  }
  if (by_uid.empty()) return;
  for (const auto& [leaf, row] : waiting) {
    for (const size_t at : row) {
      const auto found = by_uid.find(p_.state.workload(outcomes[at].workload).uid);
      if (found != by_uid.end()) found->second = at;
    }
  }
  const size_t none = outcomes.size();
  for (const auto& [action, uid] : p_.backlog) {
    if (action != ActionOf(kind, against_budgets) || by_uid.at(uid) >= none) continue;
    const size_t at = std::exchange(by_uid.at(uid), none);
    Row& row = waiting.at(outcomes[at].leaf);
    row.erase(std::find(row.begin(), row.end(), at));
    EvictInTurn(kind, against_budgets, at, row, lines, failed);
  }
}

void Cycle::Evict(EvictKind kind, bool against_budgets) {
  SortOutcomes();
  // Equal workloads of one queue fail alike; each is searched for once a cycle.
  FailedSearches failed;
  const int64_t depth = kind == EvictKind::kReclaim   ? p_.options.reclaim_depth
                        : kind == EvictKind::kPreempt ? p_.options.preempt_depth
                                                      : p_.options.consolidation_depth;
  std::map<queues::QueueId, Row> waiting;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (outcome.leaf == PendingIndex::kNoQueue || !MayEvict(kind, outcome)) continue;
    Row& leaf = waiting[outcome.leaf];
    if (depth == model::kUnlimited || static_cast<int64_t>(leaf.size()) < depth) leaf.push_back(i);
  }
  if (waiting.empty()) return;
  Lines lines = MakeLines();
  EvictForBacklog(kind, against_budgets, waiting, lines, failed);
  auto next_job = [&](queues::QueueId leaf) -> const model::Resources* {
    const auto it = waiting.find(leaf);
    if (it == waiting.end() || it->second.empty()) return nullptr;
    return &outcomes[it->second.front()].step_request;
  };
  queues::QueueOrderIterator order(p_.tree, p_.books.ledger(), p_.shares, next_job,
                                   {.cluster_total = p_.state.total_for_queues()});
  while (const std::optional<queues::QueueId> leaf = order.Next()) {
    Row& row = waiting.at(*leaf);
    const size_t at = row.front();
    row.pop_front();
    if (EvictInTurn(kind, against_budgets, at, row, lines, failed)) {
      order.ChangedAll();  // victims change what their queues hold
    } else {
      order.Changed(*leaf);
    }
  }
}

void Cycle::EvictStaleGangs() {
  for (state::WorkloadId id : p_.maybe_stale) {
    const state::Workload& workload = p_.state.workload(id);
    if (workload.id != id) continue;
    if (!IsStale(p_.state, workload)) {
      if (workload.details->stale_since != absl::InfiniteFuture()) {
        p_.state.SetStaleSince(id, absl::InfiniteFuture());
        stale.push_back({id, std::nullopt});
      }
      continue;
    }
    if (workload.details->stale_since == absl::InfiniteFuture()) {
      p_.state.SetStaleSince(id, now_);
      stale.push_back({id, now_});
    }
    const absl::Time since = workload.details->stale_since;
    const absl::Duration grace =
        workload.details->staleness_grace.value_or(p_.options.staleness_grace);
    if (grace < absl::ZeroDuration()) continue;
    if (since + grace > now_) {
      wake_at = std::min(wake_at, since + grace);
      continue;
    }
    const uint64_t set = evictions.empty() ? 0 : evictions.back().set + 1;
    state::Transaction txn(p_.state);
    for (state::PodId pod : workload.pods) {
      const PodStatus status = p_.state.pod(pod).status;
      if (status != PodStatus::kBound && status != PodStatus::kRunning) continue;
      if (p_.refusals.Stands(p_.state, p_.state.pod(pod), now_)) {
        wake_at = std::min(wake_at, p_.refusals.NextEnd(p_.state, now_));
        continue;
      }
      txn.Evict(pod);
      evictions.push_back(
          {pod, kStaleAction, state::kNoId, model::Key(workload.ns, workload.name),
           absl::StrCat("Evicted (stalegangeviction): its gang has been below its minimum of ",
                        GangMinimum(workload), " pods for longer than ",
                        absl::FormatDuration(grace)),
           set});
    }
    txn.Commit();
    for (size_t i = evictions.size(); i-- > 0 && evictions[i].set == set;) {
      p_.state.ChargeBudgets(evictions[i].pod);
    }
  }
}

}  // namespace fairlead::engine
