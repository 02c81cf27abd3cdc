#include "scheduler/engine/engine.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "scheduler/engine/allocation_tracker.h"
#include "scheduler/engine/cycle.h"
#include "scheduler/engine/diagnosis.h"
#include "scheduler/engine/entry_ranges.h"
#include "scheduler/engine/eviction_backoff.h"
#include "scheduler/engine/expand_equivalents.h"
#include "scheduler/engine/explain.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/history.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/preemptors.h"
#include "scheduler/engine/victim_search.h"
#include "scheduler/engine/workloads_ahead.h"

namespace fairlead::engine {
namespace {

// Until diagnoses that a cycle could not bring up to date are looked at again.
constexpr absl::Duration kPauseOfDiagnosis = absl::Seconds(1);

}  // namespace

class Engine::Impl final : public state::StateSubscriber, public queues::QueueObserver {
 public:
  Impl(const EngineOptions& engine_options, state::ClusterState* cluster,
       queues::QueueTree* queue_tree, std::unique_ptr<framework::Framework> profile)
      : options(engine_options),
        state(*cluster),
        tree(*queue_tree),
        framework(std::move(profile)),
        counters(state),
        tracker(state, tree),
        pending(state, tree, engine_options.reservations.on),
        placer(state, *framework,
               engine_options.spread_parts ? state::PartsOrder::kSpread : state::PartsOrder::kPack),
        reservations(engine_options.reservations, state, tree, *framework),
        promises(state),
        preemptors(state),
        search(state, tree, tracker, *framework, placer),
        diagnoser(state, *framework, placer.node_changes()),
        history(options.usage),
        actions(MakeActions(options, framework->HasPostFilters())) {
    framework->Attach(&counters);
    placer.SetReservations(&reservations);
    placer.SetPromises(&promises);
    fair_share.k_micro = options.k_micro;
    // The order in which a change reaches what is derived from the state.
    for (state::StateSubscriber* subscriber : Subscribers()) state.Subscribe(subscriber);
    tree.AddObserver(this);
  }
  ~Impl() override {
    tree.RemoveObserver(this);
    for (state::StateSubscriber* subscriber : Subscribers()) state.Unsubscribe(subscriber);
    framework->Attach(nullptr);
  }
  std::vector<state::StateSubscriber*> Subscribers() {
    std::vector<state::StateSubscriber*> all{&counters};
    for (state::StateSubscriber* subscriber : framework->Subscribers()) all.push_back(subscriber);
    all.push_back(&tracker);
    for (state::StateSubscriber* subscriber : placer.Subscribers()) all.push_back(subscriber);
    for (state::StateSubscriber* subscriber : search.Subscribers()) all.push_back(subscriber);
    all.push_back(&diagnoser);
    all.push_back(this);
    return all;
  }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override {
    using Kind = state::StateChange::Kind;
    return {Kind::kWorkload, Kind::kWorkloadGone, Kind::kQueue};
  }
  void OnQueueChange(queues::QueueId queue, bool reshaped) override {
    state.TellQueue(queue, reshaped);
  }
  // Files what changed since the last time. `settle`: what runs by now was started under the queue
  // that its objects name.
  void CatchUp(bool settle);
  void FileChanges(bool settle);
  void File(const state::Workload& workload, bool settle);
  void Settle(const state::Workload& workload);

  // What is served before others, and what no pod is evicted for, waits for something else than
  // its equals.
  void SetApart(const std::vector<state::WorkloadId>& workloads);
  // Brings up to date what a cycle decides by. Returns what the queues share.
  model::Resources BeginCycle(absl::Time now);
  // `total` outlives them.
  CycleInputs Inputs(const model::Resources& total, absl::Time now);

  EngineOptions options;
  state::ClusterState& state;
  queues::QueueTree& tree;
  std::unique_ptr<framework::Framework> framework;
  framework::DomainCounters counters;  // for its plugins
  AllocationTracker tracker;
  PendingIndex pending;
  Placer placer;
  Reservations reservations;
  NominatedNodes promises;
  Preemptors preemptors;
  VictimSearch search;
  Diagnoser diagnoser;
  queues::FairShareDivider divider{tree};
  queues::FairShares shares;
  queues::FairShareOptions fair_share;
  History history;
  BindBackoff backoff{options.bind_backoff_initial, options.bind_backoff_max};
  EvictionBackoff eviction_backoff{state};
  EvictionRefusals refusals;
  MoveHistory moves{state, options.consolidation_min_runtime};
  StaleIndex stale;
  // Nothing has been read yet, or a queue that appeared, went or moved changes where workloads are
  // filed.
  bool read_all = true;
  std::vector<state::WorkloadId> changed;    // since CatchUp(), each once
  std::vector<bool> is_changed;              // by WorkloadId
  std::vector<state::WorkloadId> unsettled;  // filed without; perhaps gone since
  std::set<std::string> unknown_queues;      // pods run in them, and the tree has no such name
  OfferedLabels offered;
  std::vector<model::OfferedNode> offered_nodes;
  const absl::flat_hash_set<uint64_t>* unservable = nullptr;
  std::map<std::string, OverQuota> over_quota;
  std::function<bool(const state::NodeInfo&)> is_late;
  SearchBudget search_budget;
  WalkBudget walk_budget;
  SearchAnswers search_answers{pending};
  const Actions actions;
  uint64_t cycles = 0;
  EntryRanges ranges{state, pending};  // of the last cycle's entries
};

void Engine::Impl::OnChange(const state::StateChange& change) {
  const state::WorkloadId id = change.workload;
  if (change.kind == state::StateChange::Kind::kQueue) {
    read_all |= change.reshaped;
    divider.QueuesChanged();
    history.QueuesChanged();
    return;
  }
  if (change.kind == state::StateChange::Kind::kWorkloadGone) {
    stale.Remove(id);
    pending.Remove(id);
    return;
  }
  if (id >= is_changed.size()) is_changed.resize(id + 1, false);
  if (is_changed[id]) return;
  is_changed[id] = true;
  changed.push_back(id);
}

void Engine::Impl::File(const state::Workload& workload, bool settle) {
  stale.Refresh(workload);
  pending.Refresh(workload);
  if (settle) {
    Settle(workload);
  } else {
    unsettled.push_back(workload.id);
  }
}

void Engine::Impl::Settle(const state::Workload& workload) {
  state.SettleStarts(workload.id,
                     [this](const std::string& queue) { return tree.FindEver(queue).has_value(); });
  tracker.CatchUp(workload);
  if (workload.Active() == 0 || tree.FindEver(workload.queue).has_value()) return;
  // Users write names onto what runs elsewhere: only those that something is charged to count.
  const bool charged =
      std::any_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId id) {
        const state::PodRecord& pod = state.pod(id);
        return state::IsAllocated(pod.status) && state.QueueOf(pod) == workload.queue;
      });
  if (charged) unknown_queues.insert(workload.queue);
}

void Engine::Impl::CatchUp(bool settle) {
  FileChanges(settle);
  bool any = false;
  for (const std::string& queue : std::exchange(unknown_queues, {})) {
    any |= tree.Remember(queue, state.RecordedParentOf(queue));
  }
  if (any) FileChanges(settle);
}

void Engine::Impl::FileChanges(bool settle) {
  std::vector<state::WorkloadId> to_file;
  to_file.swap(changed);
  for (const state::WorkloadId id : to_file) is_changed[id] = false;
  if (std::exchange(read_all, false)) {
    pending.Clear();
    tracker.Recount([&](const state::Workload& workload) { File(workload, settle); });
    to_file.clear();
  }
  if (!std::is_sorted(to_file.begin(), to_file.end())) std::sort(to_file.begin(), to_file.end());
  WorkloadsAhead walk(state, [&](state::WorkloadId id, const state::Workload& workload) {
    if (workload.id == id) {
      tracker.CatchUp(workload);
      File(workload, settle);
    } else {
      pending.Remove(id);
      stale.Remove(id);
    }
  });
  for (const state::WorkloadId id : to_file) walk.Add(id);
  walk.Finish();
  if (!settle) return;
  for (const state::WorkloadId id : std::exchange(unsettled, {})) {
    if (state.workload(id).id == id) Settle(state.workload(id));
  }
}

bool IsPreemption(absl::string_view action) { return action == "reclaim" || action == "preempt"; }

Engine::Engine(const EngineOptions& options, state::ClusterState* state, queues::QueueTree* tree,
               std::unique_ptr<framework::Framework> framework)
    : impl_(std::make_unique<Impl>(options, state, tree, std::move(framework))) {}

Engine::~Engine() = default;

void Engine::Impl::SetApart(const std::vector<state::WorkloadId>& workloads) {
  for (const state::WorkloadId id : workloads) {
    pending.SetAlone(id, preemptors.Contains(id) || eviction_backoff.Holds(state.workload(id)));
  }
}

model::Resources Engine::Impl::BeginCycle(absl::Time now) {
  state.MarkStuck(now - options.stuck_in_releasing_threshold);
  state.SetDeciding();
  CatchUp(/*settle=*/true);
  pending.EndDelays(now);
  moves.Begin(now);
  SetApart(preemptors.Begin(now));
  SetApart(eviction_backoff.Begin(now));
  const model::Resources total = tracker.Total();
  history.Renew(now, tree, tracker.ledger(), total, fair_share.usage);
  shares = divider.Divide(tracker.ledger(), total, fair_share);
  tracker.OpenLending();
  reservations.Begin(now, tracker.ledger(), shares);
  placer.ResetWork();
  promises.Begin();
  return total;
}

CycleInputs Engine::Impl::Inputs(const model::Resources& total, absl::Time now) {
  return {.options = options,
          .state = state,
          .tree = tree,
          .tracker = tracker,
          .pending = pending,
          .placer = placer,
          .search = search,
          .preemptors = preemptors,
          .shares = shares,
          .backoff = backoff,
          .eviction_backoff = eviction_backoff,
          .refusals = refusals,
          .moves = moves,
          .stale = stale,
          .reservations = reservations,
          .total = total,
          .offered = offered,
          .offered_nodes = offered_nodes,
          .unservable = unservable,
          .over_quota = over_quota,
          .is_late = is_late,
          .framework = *framework,
          .budget = search_budget,
          .walk_budget = walk_budget,
          .answers = search_answers,
          .now = now};
}

const framework::Framework& Engine::framework() const { return *impl_->framework; }

CycleResult Engine::RunCycle(absl::Time now, bool may_evict) {
  Impl& impl = *impl_;
  ScopedDecisionId decision(absl::StrCat("cycle ", ++impl.cycles));
  const model::Resources total = impl.BeginCycle(now);
  CycleContext cycle(impl.Inputs(total, now));
  ::fairlead::engine::RunCycle(impl.actions, may_evict, cycle);
  impl.tracker.CloseLending();
  // The cycle's own moves are not news to the next one, but they change what is filed.
  impl.CatchUp(/*settle=*/true);

  impl.ranges.Clear();
  impl.promises.Forget();
  CycleResult result;
  CycleDecisions& decided = cycle.decisions;
  result.bindings = std::move(decided.bindings);
  result.withdrawn = std::move(decided.withdrawn);
  result.evictions = std::move(decided.evictions);
  result.stale = std::move(decided.stale);
  result.victim_searches = decided.victim_searches;
  result.wake_at =
      std::min({decided.wake_at, impl.preemptors.wake_at(), impl.eviction_backoff.wake_at(),
                impl.reservations.wake_at(), impl.history.wake_at()});
  result.waiting.reserve(cycle.outcomes.size());
  impl.diagnoser.Begin();
  for (const Outcome& outcome : cycle.outcomes.rows()) {
    for (const Waiting::PodPromise& promise : outcome.promises) {
      impl.promises.Remember(promise.pod, promise.node);
    }
    if (outcome.code == verdict::Code::kNone) continue;
    result.waiting.push_back(MakeWaiting(impl.state, impl.tree, impl.tracker.ledger(),
                                         impl.diagnoser, impl.options.hook_on, outcome));
    if (outcome.rest.count > 0) impl.ranges.Add(outcome.rest, result.waiting.back());
  }
  if (impl.diagnoser.lagging()) result.wake_at = std::min(result.wake_at, now + kPauseOfDiagnosis);
  if (!result.waiting.empty()) {
    result.wake_at = std::min(
        result.wake_at, impl.state.NextGraceEnd() + impl.options.stuck_in_releasing_threshold);
  }
  if (!impl.refusals.empty()) {
    impl.refusals.Trim(impl.state, now);
    if (!result.waiting.empty()) {
      result.wake_at = std::min(result.wake_at, impl.refusals.NextEnd(impl.state, now));
    }
  }
  result.work = impl.placer.work();
  impl.backoff.Trim(now);
  return result;
}

std::vector<Waiting> Engine::ExpandEquivalents(std::vector<Waiting> waiting) const {
  return ::fairlead::engine::ExpandEquivalents(
      impl_->state, [this](const Waiting& entry) { return impl_->ranges.Behind(entry); },
      std::move(waiting));
}

void Engine::ForEachBehind(const Waiting& waiting,
                           const std::function<void(state::WorkloadId)>& use) const {
  const MemberRange rest = impl_->ranges.Behind(waiting);
  if (rest.empty()) return;
  for (auto it = rest.next; it != rest.end; ++it) use(it->workload);
}

void Engine::ForEachOf(const Waiting& waiting, int64_t first, int64_t count,
                       const std::function<void(state::WorkloadId)>& use) const {
  if (first == 0 && count > 0) {
    use(waiting.workload);
    ++first;
    --count;
  }
  const MemberRange rest = impl_->ranges.Behind(waiting);
  if (rest.empty()) return;
  auto it = rest.next;
  for (int64_t passed = 1; passed < first && it != rest.end; ++passed) ++it;
  for (; count > 0 && it != rest.end; --count, ++it) use(it->workload);
}

std::vector<EntryRun> Engine::RunsInOrder(
    const std::vector<Waiting>& waiting,
    const std::function<bool(const Waiting&)>& included) const {
  return ::fairlead::engine::RunsInOrder(
      impl_->state, [this](const Waiting& entry) { return impl_->ranges.Behind(entry); }, waiting,
      included);
}

Waiting Engine::Divide(Waiting& entry, int64_t keep) { return impl_->ranges.Divide(entry, keep); }

std::vector<Waiting> Engine::SetApart(Waiting entry,
                                      const std::vector<state::WorkloadId>& workloads) {
  return impl_->ranges.SetApart(std::move(entry), workloads);
}

std::shared_ptr<const FormerEntries> Engine::Remember(const std::vector<Waiting>& waiting) const {
  return std::make_shared<FormerEntries>(impl_->ranges, waiting);
}

std::vector<int64_t> Engine::MatchFormer(const FormerEntries& former,
                                         std::vector<Waiting>& waiting) {
  return impl_->ranges.MatchFormer(former, waiting);
}

WaitingChanges Engine::TakeChanges() {
  impl_->ranges.MarkMoves();
  return impl_->pending.TakeChanges();
}

uint64_t Engine::EquivalenceClassOf(state::WorkloadId workload) const {
  return impl_->ranges.Of(workload);
}

void Engine::OnBindFailed(state::PodId pod, absl::Time now) {
  const state::PodRecord& record = impl_->state.pod(pod);
  impl_->backoff.OnFailed(record.uid, now);
  if (record.workload == state::kNoId) return;
  impl_->eviction_backoff.OnPlaceLost(impl_->state.workload(record.workload), now);
}

void Engine::HoldPod(state::PodId pod, absl::Time until) {
  impl_->backoff.Hold(impl_->state.pod(pod).uid, until);
}

void Engine::OnEvictionRefused(state::PodId pod, absl::Time until, bool by_budget, absl::Time now) {
  const state::PodRecord& record = impl_->state.pod(pod);
  impl_->refusals.Add(impl_->state, record, until, by_budget);
  impl_->eviction_backoff.OnEvictionRefused(record, now);
}

void Engine::OnEvictionRefusedFor(state::PodClassId preemptor, state::PodId pod, absl::Time until) {
  impl_->refusals.AddFor(preemptor, impl_->state.pod(pod), until);
}

void Engine::SetOfferedLabels(std::vector<std::vector<std::string>> labels) {
  impl_->offered = std::move(labels);
}

void Engine::SetOfferedNodes(std::vector<model::OfferedNode> nodes) {
  impl_->offered_nodes = std::move(nodes);
}

void Engine::SetUnservable(const absl::flat_hash_set<uint64_t>* kinds) {
  impl_->unservable = kinds;
}

void Engine::SetOverQuota(std::map<std::string, OverQuota> leaf_queues) {
  impl_->over_quota = std::move(leaf_queues);
}

void Engine::SetLateNodes(std::function<bool(const state::NodeInfo&)> is_late) {
  impl_->is_late = std::move(is_late);
}

void Engine::OnQueuesChanged() { impl_->CatchUp(/*settle=*/false); }

absl::StatusOr<std::string> Engine::EncodeUsage(size_t max_bytes) const {
  return impl_->history.Encode(max_bytes);
}

absl::Status Engine::RestoreUsage(absl::string_view text) { return impl_->history.Restore(text); }

uint64_t Engine::usage_version() const { return impl_->history.version(); }

bool Engine::TakeUsage(const model::UsageReport& report) { return impl_->history.Take(report); }

const HistoryState& Engine::history() const { return impl_->history.state(); }

std::vector<QueueNumbers> Engine::Numbers() const {
  std::vector<QueueNumbers> numbers;
  for (queues::QueueId queue = 0; queue < impl_->tree.size(); ++queue) {
    // A deleted queue is shown while something runs that was started under it.
    const bool held =
        !impl_->tracker.RecountNeeded() && !impl_->tracker.ledger().allocated(queue).IsZero();
    if (!impl_->tree.Exists(queue) && !held) continue;
    QueueNumbers row;
    row.queue = queue;
    if (!impl_->tracker.RecountNeeded()) {
      row.allocated = impl_->tracker.ledger().allocated(queue);
      row.allocated_non_preemptible = impl_->tracker.ledger().allocated_non_preemptible(queue);
      row.requested = impl_->tracker.ledger().requested(queue);
      row.running_pods = impl_->tracker.PodsOf(queue);
    }
    row.fair_share = impl_->shares.Of(queue);
    auto leaf = impl_->pending.leaves().find(queue);
    if (leaf != impl_->pending.leaves().end()) {
      row.waiting_workloads = static_cast<int64_t>(leaf->second.size());
    }
    numbers.push_back(std::move(row));
  }
  return numbers;
}

int64_t Engine::CountThatFit(const model::Node& node, const std::vector<Load>& already,
                             const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) {
  const std::unique_ptr<Hypothesis> what_if = WhatIf();
  const state::NodeId id = what_if->AddNode(node);
  for (const Load& load : already) {
    if (what_if->Place(what_if->ClassOf(load.spec), id, load.count) < load.count) return 0;
  }
  return what_if->Place(what_if->ClassOf(spec), id, limit);
}

std::unique_ptr<Hypothesis> Engine::WhatIf() {
  return std::make_unique<Hypothesis>(impl_->state, *impl_->framework, impl_->placer.parts_order());
}

std::vector<std::string> Engine::NodesThatFit(state::PodId id) {
  const state::PodRecord& pod = impl_->state.pod(id);
  const std::unique_ptr<Hypothesis> what_if = WhatIf();
  if (pod.node != state::kNoId) what_if->Remove(id);
  state::PodClassId pod_class = pod.pod_class;
  const std::shared_ptr<const model::PodSpec> spec = impl_->state.pod_class(pod_class).spec;
  if (!spec->node_answers.IsEmpty()) {
    model::PodSpec unanswered = *spec;
    unanswered.node_answers = {};
    pod_class = what_if->ClassOf(std::make_shared<const model::PodSpec>(std::move(unanswered)));
  }
  std::vector<std::string> names;
  for (const auto& [name, node] : impl_->state.nodes_by_name()) {
    if (!impl_->state.node(node).TakesBindings()) continue;
    if (what_if->Fits(pod_class, node, framework::Capacity::kNow)) names.emplace_back(name);
  }
  return names;
}

std::vector<state::NodeId> Engine::ReservedNodes() const { return impl_->reservations.Nodes(); }

std::string Engine::CheckConsistency() const {
  std::string wrong = impl_->state.CheckConsistency();
  if (wrong.empty()) wrong = impl_->counters.CheckConsistency();
  if (wrong.empty()) wrong = impl_->framework->CheckConsistency();
  if (wrong.empty()) wrong = impl_->divider.CheckConsistency();
  if (wrong.empty()) wrong = impl_->tracker.CheckConsistency();
  if (wrong.empty()) wrong = impl_->placer.CheckConsistency();
  if (wrong.empty()) wrong = impl_->search.CheckConsistency();
  if (wrong.empty()) wrong = impl_->diagnoser.CheckConsistency();
  if (wrong.empty() && !impl_->read_all && !impl_->tracker.RecountNeeded()) {
    wrong = impl_->pending.CheckConsistency([this](state::WorkloadId id) {
      return id < impl_->is_changed.size() && impl_->is_changed[id];
    });
  }
  return wrong;
}

}  // namespace fairlead::engine
