#include "core/decision_loop.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/machines/announced.h"
#include "base/status_macros.h"
#include "core/decision_loop_impl.h"
#include "core/view_maker.h"
#include "queues/usage_window.h"
#include "scheduler/framework/scheduling_points.h"
#include "scheduler/plugins/dynamic_resources.h"
#include "scheduler/plugins/extender.h"
#include "scheduler/plugins/volume_binding.h"

namespace fairlead::core {

namespace {

using verdict::Code;

// Between decisions whose evictions are taken back in the same step.
constexpr absl::Duration kVainPause = absl::Seconds(1);

// True for the engine's code for a lack of capacity, and for the codes that the hook replaces it
// with.
bool LacksNodes(Code code) {
  return code == Code::kInsufficientCapacity || code == Code::kNodesRequested ||
         code == Code::kGpuCapReached || code == Code::kCostCapReached ||
         code == Code::kNoInstanceTypeFits;
}

// With the plugin that knows what extenders answer, if there are any.
std::vector<framework::Profile> ProfilesOf(const Options& options) {
  std::vector<framework::Profile> profiles = options.profiles;
  if (options.extenders.empty()) return profiles;
  for (framework::Profile& profile : profiles) {
    const bool has = std::any_of(
        profile.plugins.begin(), profile.plugins.end(),
        [](const framework::ProfilePlugin& each) { return each.name == plugins::Extender::kName; });
    if (!has) profile.plugins.push_back({plugins::Extender::kName});
  }
  return profiles;
}

absl::Time BootBegan(const model::NodeRequest& request, absl::Time now) {
  return request.launched_at.value_or(
      request.meta.creation == absl::InfinitePast() ? now : request.meta.creation);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecisionLoop>> DecisionLoop::Make(const Options& options,
                                                                 const hook::Catalog* catalog) {
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<framework::Framework> framework,
                            framework::Framework::MakeAll(ProfilesOf(options), *options.plugins));
  Impl::BindTimeouts timeouts;
  FAIRLEAD_ASSIGN_OR_RETURN(timeouts.volumes, plugins::BindTimeoutOf(options.profiles));
  FAIRLEAD_ASSIGN_OR_RETURN(timeouts.devices, plugins::DeviceTimeoutOf(options.profiles));
  if (options.engine.usage.has_value()) {
    FAIRLEAD_RETURN_IF_ERROR(queues::UsageWindow::Create(*options.engine.usage).status());
  }
  Options settings = options;
  settings.state = StateOptionsFor(options);
  settings.state.plugin_labels = framework->PodLabels();
  if (settings.hook.provider.empty()) settings.hook.enabled = false;
  if (settings.hook.enabled) {
    FAIRLEAD_RETURN_IF_ERROR(hook::CheckProvider(settings.hook, "hook.provider"));
  }
  std::unique_ptr<DecisionLoop> loop(new DecisionLoop());
  loop->impl_ = std::make_unique<Impl>(settings, catalog, timeouts);
  Impl& impl = *loop->impl_;
  engine::EngineOptions engine_options = options.engine;
  engine_options.hook_on = settings.hook.enabled;
  impl.engine = std::make_unique<engine::Engine>(engine_options, &impl.state, &impl.tree,
                                                 std::move(framework));
  impl.held_back.Use(impl.engine->framework());
  if (const framework::QueueSortPlugin* sort = impl.engine->framework().queue_sort()) {
    impl.state.SetQueueSort([&impl, sort](const state::Workload& workload) {
      return sort->SortKey(impl.state, workload);
    });
  }
  impl.bindings.Use(impl.engine->framework());
  impl.permits.Use(impl.engine->framework());
  impl.pre_binds.Use(impl.engine->framework());
  impl.engine->SetUnservable(&impl.unservable.kinds());
  impl.engine->SetLateNodes([&impl](const state::NodeInfo& node) { return impl.IsLate(node); });
  impl.KeepDefaultQueue();
  return loop;
}

DecisionLoop::DecisionLoop() = default;
DecisionLoop::~DecisionLoop() = default;

void DecisionLoop::Continue(DecisionLoop& former) { impl_->hook.Continue(former.impl_->hook); }

bool DecisionLoop::synced() const { return impl_->unsynced.empty(); }

const DecisionLoop::Stats& DecisionLoop::stats() const { return impl_->stats; }

void DecisionLoop::Probe(PluginProbe& probe, const PluginProbe::Steady& steady) const {
  const Impl& impl = *impl_;
  state::PodClassId pod_class = impl.placed_class;
  // What waits, and what was placed, in turn.
  if (!impl.waiting.empty() && (pod_class == state::kNoId || probe.turns() % 2 == 0)) {
    const engine::Waiting& entry = impl.waiting[probe.turns() / 2 % impl.waiting.size()];
    if (!entry.pods.empty()) pod_class = impl.state.pod(entry.pods.front().pod).pod_class;
  }
  if (pod_class == state::kNoId || impl.state.pod_class(pod_class).users == 0) return;
  probe.Measure(impl.state, impl.engine->framework(), pod_class, steady);
}

QueueSizes DecisionLoop::queue_sizes() const {
  const Impl& impl = *impl_;
  return {
      .in_flight = impl.in_flight.size() + impl.bindings.in_flight() + impl.verdicts.in_flight() +
                   impl.nominations.in_flight() + impl.plugin_calls.size(),
      .provider_calls = impl.in_flight.open_calls(),
      .retries = impl.bindings.retries() + impl.evictions.retries() + impl.annotations.retries() +
                 impl.verdicts.retries() + impl.nominations.retries(),
      .verdicts_waiting = impl.verdicts.queued(),
      .evictions_waiting = impl.evictions.queued(),
      .bindings_held = impl.bindings.held(),
      .events_waiting = impl.events.size() + impl.untold_notes.size(),
      .shares_waiting = impl.shares.shares().queued(),
      .conditions_known = impl.verdicts.conditions_known()};
}

std::string DecisionLoop::CheckConsistency() const { return impl_->engine->CheckConsistency(); }

void DecisionLoop::SetInputLog(InputLog* log) { impl_->input_log = log; }

void DecisionLoop::Apply(const model::ClusterEvent& event) {
  if (impl_->input_log != nullptr) impl_->input_log->Applied(event);
  ++impl_->stats.events;
  if (!impl_->shard.has_value()) return impl_->Apply(event);
  impl_->shard->Apply(event, [this](const model::ClusterEvent& own) { impl_->Apply(own); });
  // Owners may name a group that its users have moved to another shard.
  const auto* upsert = std::get_if<model::Upsert>(&event);
  if (upsert == nullptr) return;
  if (const auto* group = std::get_if<model::PodGroup>(&upsert->object)) {
    impl_->grouper.GroupSeen(*group);
  }
}

void DecisionLoop::Impl::Apply(const model::ClusterEvent& event) {
  if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
    ApplyUpsert(*upsert);
  } else if (const auto* removed = std::get_if<model::Delete>(&event)) {
    ApplyDelete(*removed);
  } else if (const auto* synced_kind = std::get_if<model::Synced>(&event)) {
    if (unsynced.erase(synced_kind->kind) > 0) dirty = true;
    DeviceKindSynced(*synced_kind);
    VolumeKindSynced(*synced_kind);
    if (synced_kind->kind == model::Kind::kNamespace &&
        state.SetNamespacesReadable(!synced_kind->missing).Any()) {
      dirty = true;
    }
  } else if (const auto* report = std::get_if<model::UsageReport>(&event)) {
    if (engine->TakeUsage(*report)) dirty = true;
  } else if (const auto* progress = std::get_if<model::Progress>(&event)) {
    if (progress->kind == model::Kind::kPod && nodes.PodsSeen(progress->resource_version)) {
      dirty = true;
    }
  } else {
    answers.push_back(std::get<model::ActionResult>(event));
  }
}

StepResult DecisionLoop::Step(absl::Time now) {
  ++impl_->stats.steps;
  StepResult result;
  if (synced()) result = impl_->Step(now);
  if (impl_->input_log != nullptr) impl_->input_log->Stepped(now, result);
  return result;
}

void DecisionLoop::SetStale(const std::vector<model::Kind>& kinds) {
  if (impl_->input_log != nullptr) impl_->input_log->SetStale(kinds);
  std::set<model::Kind> now(kinds.begin(), kinds.end());
  if (now == impl_->stale_kinds) return;
  impl_->stale_kinds = std::move(now);
  impl_->dirty = true;
}

void DecisionLoop::BecomeLeader() {
  if (impl_->input_log != nullptr) impl_->input_log->BecameLeader();
  impl_->unsynced = impl_->KindsRead();
  impl_->suspensions.BecomeLeader();
  impl_->memo.valid = false;
  impl_->dirty = true;
}

const std::set<std::string>& DecisionLoop::AwaitedNodes() const {
  return impl_->nodes.AwaitedNodes();
}

void DecisionLoop::PodsListed(const std::string& node, absl::string_view version,
                              const std::vector<model::Pod>& pods) {
  if (impl_->input_log != nullptr) impl_->input_log->PodsListed(node, version, pods);
  if (impl_->nodes.PodsListed(node, version, pods)) impl_->dirty = true;
}

void DecisionLoop::MachineReported(const hook::MachineReport& report) {
  if (impl_->input_log != nullptr) impl_->input_log->MachineReported(report);
  impl_->reports.push_back(report);
}

void DecisionLoop::OffersChanged(absl::string_view provider,
                                 std::shared_ptr<const hook::Catalog> offers) {
  if (impl_->input_log != nullptr) impl_->input_log->OffersChanged(provider, offers.get());
  impl_->hook.OnOffers(provider, std::move(offers));
  impl_->memo.valid = false;
  impl_->dirty = true;
}

uint64_t DecisionLoop::AwaitedNodeList() const { return impl_->awaited_list; }

void DecisionLoop::NodesListed(uint64_t number,
                               absl::StatusOr<std::vector<hook::ListedNode>> nodes) {
  if (impl_->input_log != nullptr) impl_->input_log->NodesListed(number, nodes);
  impl_->node_lists.push_back({number, std::move(nodes)});
}

absl::Status DecisionLoop::RestoreUsage(absl::string_view text) {
  if (impl_->input_log != nullptr) impl_->input_log->UsageRestored(text);
  impl_->usage.Open();
  impl_->dirty = true;
  return text.empty() ? absl::OkStatus() : impl_->engine->RestoreUsage(text);
}

HistoryRow DecisionLoop::history() const { return HistoryOf(*impl_->engine); }

View DecisionLoop::MakeView(absl::Time now) const {
  const Impl& impl = *impl_;
  return ViewMaker{impl.state, impl.tree,     *impl.engine,
                   impl.hook,  impl.verdicts, impl.engine->ExpandEquivalents(impl.waiting)}
      .Make(now);
}

Totals DecisionLoop::Count() const {
  const Impl& impl = *impl_;
  Totals totals =
      ViewMaker{impl.state, impl.tree, *impl.engine, impl.hook, impl.verdicts, impl.waiting}
          .Count();
  totals.assumed_pods = static_cast<int64_t>(impl.bindings.in_flight() + impl.bindings.retries() +
                                             impl.bindings.held());
  totals.suspended_workloads = static_cast<int64_t>(impl.suspensions.suspended());
  return totals;
}

std::vector<model::NodeRequest> DecisionLoop::NodeRequests() const {
  std::vector<model::NodeRequest> requests;
  for (const auto& [key, machine] : impl_->hook.machines().rows()) {
    requests.push_back(machine.desired);
  }
  std::sort(requests.begin(), requests.end(),
            [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; });
  return requests;
}

// Once for all events since the last decision: it looks at all queues.
void DecisionLoop::Impl::TellOverQuota() {
  if (std::exchange(over_quota_told, true)) return;
  engine->SetOverQuota(queue_provisioning.OverQuotaOfLeaves(tree, options.capacity.over_quota));
}

// Not before a step: a standby tells nothing, and as the leader only what is true then.
void DecisionLoop::Impl::TellContradictions(StepResult& result) {
  for (const auto& [name, uid] : std::exchange(untold_notes, {})) {
    model::EmitEvent event{
        model::Kind::kQueue,
        "",
        name,
        uid,
        true,
        "ContradictoryQueue",
        absl::StrCat("The queue contradicts itself: ", queue_notes.at(name), ".")};
    Emit({0, std::move(event)}, result);
  }
}

void DecisionLoop::Impl::AddQueueNotes() {
  if (queue_notes.empty()) return;
  for (engine::Waiting& entry : waiting) {
    const std::optional<queues::QueueId> leaf = tree.Find(entry.verdict.queue);
    if (!leaf.has_value()) continue;
    for (const queues::QueueId id : tree.Ancestors(*leaf)) {
      const auto note = queue_notes.find(tree.Name(id));
      if (note == queue_notes.end()) continue;
      entry.verdict.details.push_back(absl::StrCat("queue ", note->first, ": ", note->second));
    }
  }
}

void DecisionLoop::Impl::Emit(model::Action action, StepResult& result) {
  action.id = next_action_id++;
  in_flight.Sent(action);
  result.actions.push_back(std::move(action));
}

StepResult DecisionLoop::Impl::Step(absl::Time now) {
  StepResult result;
  sending = &result;
  if (sending_at != now) {
    timestamp = AnnotationTime(now);
    start_annotations.clear();
    last_start_annotations = {};
  }
  sending_at = now;
  waits.Stamp(now);
  for (const model::ActionResult& answer : std::exchange(answers, {})) TakeAnswer(answer, now);
  if (shard.has_value()) shard->LetGo([this](const model::ClusterEvent& event) { Apply(event); });
  TakeNodeLists(now);
  TakeReports(now);
  GroupPods(now, result);
  EndGrants(now);
  AskAboutEvictions(now, result);
  TellContradictions(result);
  for (model::EmitEvent& event : std::exchange(events, {})) Emit({0, std::move(event)}, result);
  RepeatEvictions(now, result);
  ServeBindings(now, result);
  BreakGangs(now);
  if (refusals.TakeChanges()) dirty = true;
  if (dirty || now >= wake_at) {
    result.decided = true;
    placed_class = state::kNoId;
    TakeJudgements(now);
    Decide(now, result);
    FreeIdleClaims(now, result);
    TellWhatWaits();
    ServeBindings(now, result);
  } else {
    SendEvictions(now, result);
    if (now >= verdicts.wake_at()) verdicts.Flush(now);
  }
  StepSuspensions(now, result);
  std::vector<model::Action> writes;
  annotations.Step(now, writes);
  native_groups.Step(now, writes);
  if (kai_statuses.has_value()) kai_statuses->Step(now, writes);
  // A program without a hook does not know which providers there are.
  if (options.hook.enabled) {
    pools.Step(now, writes);
    capacity.Step(now, writes);
  }
  for (model::Action& write : writes) Emit(std::move(write), result);
  result.wake_at =
      std::min({wake_at, annotations.wake_at(), native_groups.wake_at(), grouper.wake_at(),
                suspensions.wake_at(),
                kai_statuses.has_value() ? kai_statuses->wake_at() : absl::InfiniteFuture(),
                options.hook.enabled ? std::min(pools.wake_at(), capacity.wake_at())
                                     : absl::InfiniteFuture(),
                bindings.wake_at(), nominations.wake_at(), grants.wake_at(), CallsWakeAt(),
                refusals.wake_at(), verdicts.wake_at(),
                stale() ? absl::InfiniteFuture() : evictions.wake_at()});
  if (dirty || !events.empty()) result.wake_at = now;  // a binding failed right away
  sending = nullptr;
  return result;
}

bool DecisionLoop::Impl::DecideOnce(absl::Time now, StepResult& result) {
  dirty = false;
  wake_at = absl::InfiniteFuture();
  ++stats.cycles;
  PublishOfferedLabels();
  TellOverQuota();
  evictions.Settle();
  engine::CycleResult cycle = engine->RunCycle(now, /*may_evict=*/!stale());
  step_work += cycle.work;
  const size_t actions_each = options.emit_events ? 2 : 1;
  result.actions.reserve(result.actions.size() + actions_each * cycle.bindings.size());
  if (!cycle.bindings.empty()) {
    placed_class = state.pod(cycle.bindings.back().pod).pod_class;
  }
  bindings.Add(cycle.bindings, now);
  AddEvictions(cycle);
  wake_at = std::min(wake_at, cycle.wake_at);
  waiting = std::move(cycle.waiting);
  // Victims may release more capacity than their preemptor needs: pods are pipelined to it before
  // nodes are provisioned. What withdrawn bindings release is bound at once.
  size_t placed = cycle.bindings.size();
  if (!cycle.evictions.empty() || !cycle.withdrawn.empty()) placed += RunFollowUpCycle(now);
  PlaceFollowers(placed, now);
  // Pods are pipelined to newly ordered nodes too, so that the verdict names the node.
  const bool failed = dirty;  // a binding of this step, at once
  HookAnswer answer;
  if (options.hook.enabled) answer = RunHook(waiting, now, result);
  dirty = dirty || failed;
  if (answer.ordered && !answer.other_demand) RunFollowUpCycle(now);
  return answer.other_demand;
}

void DecisionLoop::Impl::Decide(absl::Time now, StepResult& result) {
  // While the hook finds demand that it cannot serve, other workloads are demanded in its place.
  // What is left to find is found in the next step, at once.
  constexpr int kMaxRounds = 8;
  step_work = 0;
  const auto most_work = static_cast<uint64_t>(options.engine.max_walk_work);
  for (int round = 1; DecideOnce(now, result); ++round) {
    if (round < kMaxRounds && step_work < most_work) continue;
    dirty = true;
    break;
  }
  if (EndAttempts()) RunFollowUpCycle(now);
  const bool again = dirty;
  EmptyNodes(now);
  SendEvictions(now, result);
  if (dirty && !again) {
    // Evictions of this decision were taken back: at once it would be made again.
    dirty = false;
    wake_at = std::min(wake_at, now + kVainPause);
  }
  TellArrival(now);
  TellDelays();
  TellStale();
  AddRefusals();
  AddQueueNotes();
  AddEstimates(now);
  CountUnschedulable();
  NoteChanges();
  verdicts.Update(*engine, waiting, std::exchange(waiting_changes, {}), now);
  wake_at = std::min(wake_at, verdicts.stays_until());
  std::vector<model::Action> writes;
  usage.Update(*engine, now, writes);
  wake_at = std::min(wake_at, usage.wake_at());
  for (model::Action& write : writes) Emit(std::move(write), result);
}

DecisionLoop::Stats::Attempts& DecisionLoop::Impl::AttemptsOf(const state::PodRecord& pod) {
  const absl::string_view name = state.SchedulerNameOf(pod);
  const auto found = stats.attempts.find(name);
  return found != stats.attempts.end() ? found->second : stats.attempts[std::string(name)];
}

void DecisionLoop::Impl::CountUnschedulable() {
  for (const engine::Waiting& entry : waiting) {
    if (!entry.tried || !verdict::IsFailedAttempt(entry.verdict.code) || entry.pods.empty()) {
      continue;
    }
    ++AttemptsOf(state.pod(entry.pods.front().pod)).unschedulable;
  }
}

// Runs the cycle once more, on what has changed within this step, without evictions: nodes are
// provisioned for a workload that found no victims. What the searches of the former cycle have
// found is kept: the verdict of a workload that still lacks capacity, the details of one that a
// limit still holds.
size_t DecisionLoop::Impl::RunFollowUpCycle(absl::Time now) {
  evictions.Settle();
  const std::shared_ptr<const engine::FormerEntries> former = engine->Remember(waiting);
  std::vector<verdict::Verdict> found;
  for (engine::Waiting& entry : waiting) found.push_back(std::move(entry.verdict));
  engine::CycleResult again = engine->RunCycle(now, /*may_evict=*/false);
  const size_t placed = again.bindings.size();
  bindings.Add(again.bindings, now);
  wake_at = std::min(wake_at, again.wake_at);
  waiting = std::move(again.waiting);
  const std::vector<int64_t> former_of = engine->MatchFormer(*former, waiting);
  for (size_t i = 0; i < waiting.size(); ++i) {
    verdict::Verdict& v = waiting[i].verdict;
    if (former_of[i] < 0) continue;
    const verdict::Verdict& kept = found[static_cast<size_t>(former_of[i])];
    if (v.code == Code::kQueueLimitReached && kept.code == v.code) v.details = kept.details;
    if (v.code != Code::kInsufficientCapacity || !LacksNodes(kept.code)) continue;
    std::vector<verdict::DemandClass> demand = std::move(v.demand);
    const int64_t position = v.position;
    v = kept;
    v.demand = std::move(demand);
    v.position = position;
  }
  return placed;
}

absl::Time DecisionLoop::Impl::ExpectedAt(const hook::Machine& machine, absl::Time now) const {
  return BootBegan(machine.desired, now) + hook.ExpectedBoot(machine.desired);
}

// Not before the configured time: what other machines took is no promise.
bool DecisionLoop::Impl::IsLate(const state::NodeInfo& node) const {
  const hook::Machine* machine = hook.machines().Find(node.node_request);
  if (machine == nullptr) return false;
  const absl::Duration boot =
      std::max(hook.ExpectedBoot(machine->desired), options.hook.expected_boot);
  return BootBegan(machine->desired, sending_at) + boot <= sending_at;
}

bool DecisionLoop::Impl::NamesGpuModels(const engine::Waiting& entry) const {
  return std::any_of(entry.pods.begin(), entry.pods.end(), [&](const auto& pod) {
    return state.class_of(pod.pod).spec->wishes->gpu_models.size() > 1;
  });
}

// Which of the nodes for which a workload waits are paid for anyway.
void DecisionLoop::Impl::TellReserved(engine::Waiting& entry) const {
  std::map<std::string, int64_t> reserved;
  for (const std::string& name : entry.verdict.node_requests) {
    const hook::Machine* machine = hook.machines().Find(name);
    if (machine != nullptr && !machine->desired.reservation.empty()) {
      ++reserved[machine->desired.reservation];
    }
  }
  for (const auto& [reservation, nodes] : reserved) {
    entry.verdict.details.push_back(
        absl::StrCat("of reservation ", reservation, ": ", nodes, " of its nodes"));
  }
}

// Sets when the nodes for which a workload waits should be usable. A time in the past is omitted:
// then the nodes are late.
void DecisionLoop::Impl::TellArrival(absl::Time now) {
  for (engine::Waiting& entry : waiting) {
    if (entry.verdict.code != Code::kNodesRequested) continue;
    absl::Time expected = absl::InfinitePast();
    std::set<absl::string_view> alternatives;
    for (const std::string& name : entry.verdict.node_requests) {
      const hook::Machine* machine = hook.machines().Find(name);
      if (machine == nullptr) continue;
      expected = std::max(expected, ExpectedAt(*machine, now));
      alternatives.insert(machine->desired.meta.annotations.Get(hook::kAlternativeAnnotation));
    }
    TellReserved(entry);
    alternatives.erase("");
    if (!alternatives.empty() && !NamesGpuModels(entry)) alternatives.clear();
    for (const absl::string_view alternative : alternatives) {
      entry.verdict.details.emplace_back(alternative);
    }
    entry.verdict.expected_at.reset();
    if (expected > now) {
      entry.verdict.expected_at = expected;
      wake_at = std::min(wake_at, expected);
    } else if (expected != absl::InfinitePast()) {
      entry.verdict.details.push_back("the nodes are later than expected");
    }
  }
}

void DecisionLoop::Impl::TellStale() {
  if (!stale()) return;
  std::vector<absl::string_view> names;
  for (const model::Kind kind : stale_kinds) names.push_back(model::KindTitle(kind));
  const std::string detail =
      absl::StrCat("evictions and provisioning are paused until the API server answers again: ",
                   absl::StrJoin(names, ", "));
  for (engine::Waiting& entry : waiting) {
    const Code code = entry.verdict.code;
    if (LacksNodes(code) || code == Code::kWaitingForVictims) {
      entry.verdict.details.push_back(detail);
    }
  }
}

}  // namespace fairlead::core
