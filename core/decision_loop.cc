#include "core/decision_loop.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/node_book.h"
#include "core/request_book.h"
#include "core/verdict_book.h"
#include "core/view_maker.h"
#include "queues/tree.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::core {
namespace {

using verdict::Code;

// The engine's hypothetical placement, as the hook asks for it.
class EnginePlacement final : public hook::Placement {
 public:
  explicit EnginePlacement(engine::Engine& engine) : engine_(engine) {}
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override {
    std::vector<engine::Engine::Load> loads;
    loads.reserve(already.size());
    for (const Load& load : already) loads.push_back({load.spec, load.count});
    return engine_.CountThatFit(node, loads, spec, limit);
  }

 private:
  engine::Engine& engine_;
};

// The part of an action that its answer needs: a whole one is several times as large, and thousands
// are asked for at once.
struct AskedEviction {
  std::string ns, name, uid;
};
struct AskedVerdict {
  std::string ns, name;
  bool group = false;
};
struct AskedRequest {
  std::string name;
};
struct AskedProvider {
  std::string request_name;
  bool launch = false;
};
using Asked = std::variant<model::BindPod, AskedEviction, AskedVerdict, AskedRequest, AskedProvider>;

// None if no answer would make a difference.
std::optional<Asked> WhatMatters(const model::Action& action) {
  if (const auto* bind = std::get_if<model::BindPod>(&action.what)) return *bind;
  if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    return AskedEviction{evict->ns, evict->name, evict->uid};
  }
  if (const auto* verdict = std::get_if<model::SetPodUnschedulable>(&action.what)) {
    return AskedVerdict{verdict->ns, verdict->name, false};
  }
  if (const auto* group = std::get_if<model::SetPodGroupSchedulability>(&action.what)) {
    return AskedVerdict{group->ns, group->name, true};
  }
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    return AskedRequest{create->request.meta.name};
  }
  if (const auto* launch = std::get_if<model::LaunchNode>(&action.what)) {
    return AskedProvider{launch->request.meta.name, true};
  }
  if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
    return AskedProvider{terminate->request_name, false};
  }
  return std::nullopt;
}

}  // namespace

class DecisionLoop::Impl {
 public:
  Impl(const Options& loop_options, const hook::Catalog* catalog)
      : options(loop_options),
        state(loop_options.state),
        tree(state.resource_names()),
        hook(loop_options.hook, catalog),
        nodes(state, hook),
        verdicts(state, loop_options.verdict_refresh, loop_options.hook.enabled,
                 loop_options.emit_events) {}

  void ApplyUpsert(const model::Upsert& upsert);
  void ApplyDelete(const model::Delete& removed);
  void ApplyResult(const model::ActionResult& result);
  StepResult Step(absl::Time now);
  void Decide(absl::Time now, StepResult& result);
  void Emit(model::Action action, StepResult& result);
  void Bind(const engine::CycleResult& cycle, absl::Time now, StepResult& result);
  void EvictVictims(const engine::CycleResult& cycle, StepResult& result);
  // One step of the hook; true if it ordered nodes, so that the waiting pods can be promised to them.
  bool RunHook(std::vector<engine::Waiting>& waiting, absl::Time now, StepResult& result);
  void TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                    std::vector<engine::Waiting>& waiting, absl::Time now);
  void RequestChanged(const std::string& name);
  [[nodiscard]] std::vector<const model::NodePool*> ValidPools() const;

  Options options;
  state::ClusterState state;
  queues::QueueTree tree;
  hook::Hook hook;
  std::unique_ptr<engine::Engine> engine;
  NodeBook nodes;
  RequestBook requests;
  std::map<std::string, model::NodePool> pools;
  VerdictBook verdicts;

  std::set<model::Kind> synced;
  bool dirty = true;
  absl::Time now = absl::InfinitePast();
  absl::Time wake_at = absl::InfiniteFuture();
  uint64_t next_action_id = 1;
  // What was asked for and not answered, by id: the answer decides what becomes of it.
  absl::flat_hash_map<uint64_t, Asked> in_flight;
  // Bindings whose outcome nobody knows: asked again, same node, until somebody does.
  std::map<absl::Time, std::vector<model::BindPod>> unknown_bindings;
  std::vector<engine::Waiting> waiting;
  Stats stats;
};

absl::StatusOr<std::unique_ptr<DecisionLoop>> DecisionLoop::Make(const Options& options,
                                                                 const hook::Catalog* catalog) {
  framework::Registry registry;
  FAIRLEAD_RETURN_IF_ERROR(plugins::RegisterAll(registry));
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<framework::Framework> framework,
                            framework::Framework::Make(options.profile, registry));
  std::unique_ptr<DecisionLoop> loop(new DecisionLoop());
  loop->impl_ = std::make_unique<Impl>(options, catalog);
  Impl& impl = *loop->impl_;
  engine::EngineOptions engine_options = options.engine;
  engine_options.hook_on = options.hook.enabled;
  impl.engine = std::make_unique<engine::Engine>(engine_options, &impl.state, &impl.tree,
                                                 std::move(framework));
  return loop;
}

DecisionLoop::DecisionLoop() = default;
DecisionLoop::~DecisionLoop() = default;

bool DecisionLoop::synced() const {
  return impl_->synced.size() == std::size(model::kAllKinds);
}

const DecisionLoop::Stats& DecisionLoop::stats() const { return impl_->stats; }

std::string DecisionLoop::CheckConsistency() const { return impl_->engine->CheckConsistency(); }

void DecisionLoop::Apply(const model::ClusterEvent& event) {
  ++impl_->stats.events;
  if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
    impl_->ApplyUpsert(*upsert);
  } else if (const auto* removed = std::get_if<model::Delete>(&event)) {
    impl_->ApplyDelete(*removed);
  } else if (const auto* synced_kind = std::get_if<model::Synced>(&event)) {
    if (impl_->synced.insert(synced_kind->kind).second) impl_->dirty = true;
  } else {
    impl_->ApplyResult(std::get<model::ActionResult>(event));
  }
}

StepResult DecisionLoop::Step(absl::Time now) {
  ++impl_->stats.steps;
  if (!synced()) return {};
  return impl_->Step(now);
}

View DecisionLoop::MakeView(absl::Time now) const {
  const Impl& impl = *impl_;
  return ViewMaker{impl.state, impl.tree,     *impl.engine, impl.requests,
                   impl.hook,  impl.verdicts, impl.waiting}
      .Make(now);
}

void DecisionLoop::Impl::RequestChanged(const std::string& name) {
  if (nodes.RequestChanged(name, requests.Find(name), ValidPools()).Any()) dirty = true;
}

std::vector<const model::NodePool*> DecisionLoop::Impl::ValidPools() const {
  std::vector<const model::NodePool*> valid;
  for (const auto& [name, pool] : pools) {
    if (pool.invalid.empty()) valid.push_back(&pool);
  }
  return valid;
}

void DecisionLoop::Impl::ApplyUpsert(const model::Upsert& upsert) {
  state::Change change;
  if (const auto* pod = std::get_if<model::Pod>(&upsert.object)) {
    change = state.UpsertPod(*pod);
  } else if (const auto* node = std::get_if<model::Node>(&upsert.object)) {
    change = nodes.Upsert(*node);
  } else if (const auto* queue = std::get_if<model::Queue>(&upsert.object)) {
    const uint64_t before = tree.version();
    tree.Upsert(*queue);
    change.policy = tree.version() != before;
  } else if (const auto* group = std::get_if<model::PodGroup>(&upsert.object)) {
    change = state.UpsertPodGroup(*group);
  } else if (const auto* priority_class = std::get_if<model::PriorityClass>(&upsert.object)) {
    change = state.UpsertPriorityClass(*priority_class);
  } else if (const auto* request = std::get_if<model::NodeRequest>(&upsert.object)) {
    if (requests.Upsert(*request)) {
      change.capacity = true;
      RequestChanged(request->meta.name);
    }
  } else if (const auto* pool = std::get_if<model::NodePool>(&upsert.object)) {
    pools[pool->meta.name] = *pool;
    change.policy = true;
  }
  if (change.Any()) dirty = true;
}

void DecisionLoop::Impl::ApplyDelete(const model::Delete& removed) {
  state::Change change;
  switch (removed.kind) {
    case model::Kind::kPod:
      change = state.RemovePod(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kNode:
      change = nodes.Remove(removed.name, removed.uid);
      // Its request has to learn that it is gone.
      if (requests.Find(removed.name) != nullptr) dirty = true;
      break;
    case model::Kind::kQueue:
      tree.Remove(removed.name);
      change.policy = true;
      break;
    case model::Kind::kPodGroup:
      change = state.RemovePodGroup(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kPriorityClass:
      change = state.RemovePriorityClass(removed.name);
      break;
    case model::Kind::kNodeRequest:
      if (requests.Remove(removed.name, removed.uid)) {
        change.capacity = true;
        RequestChanged(removed.name);
      }
      break;
    case model::Kind::kNodePool:
      change.policy = pools.erase(removed.name) > 0;
      break;
    case model::Kind::kTopology:
      break;
  }
  if (change.Any()) dirty = true;
}

// What became of what we asked for. "Unavailable" means that nobody knows.
void DecisionLoop::Impl::ApplyResult(const model::ActionResult& result) {
  auto it = in_flight.find(result.action_id);
  if (it == in_flight.end()) return;
  const Asked asked = std::move(it->second);
  in_flight.erase(it);
  const absl::Status& status = result.status;
  const bool unknown = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);

  if (const auto* provider = std::get_if<AskedProvider>(&asked)) {
    hook.OnProviderResult(provider->request_name, provider->launch, status, now);
    dirty = true;
    return;
  }
  if (const auto* written = std::get_if<AskedRequest>(&asked)) {
    hook.OnCreateResult(written->name, status);
    dirty = true;  // its launch comes next
  }
  if (status.ok()) return;

  if (const auto* bind = std::get_if<model::BindPod>(&asked)) {
    const state::PodId pod = state.FindPod(bind->ns, bind->name);
    if (pod == state::kNoId || state.pod(pod).uid != bind->uid ||
        state.pod(pod).status != state::PodStatus::kBinding) {
      return;
    }
    if (unknown) {
      unknown_bindings[now + options.engine.bind_backoff_initial].push_back(*bind);
      wake_at = std::min(wake_at, unknown_bindings.begin()->first);
      return;
    }
    engine->OnBindFailed(pod, now);
    state.ForgetBinding(pod);
    dirty = true;
  } else if (const auto* evict = std::get_if<AskedEviction>(&asked)) {
    const state::PodId pod = state.FindPod(evict->ns, evict->name);
    if (pod != state::kNoId && state.pod(pod).uid == evict->uid &&
        state.ForgetEviction(pod).Any()) {
      dirty = true;
    }
  } else if (const auto* verdict = std::get_if<AskedVerdict>(&asked)) {
    if (unknown) verdicts.WriteFailed(verdict->ns, verdict->name, verdict->group);
  } else if (const auto* create = std::get_if<AskedRequest>(&asked)) {
    // AlreadyExists: an earlier attempt of ours went through. Unknown: the watch will tell, and until
    // then the node counts as ordered.
    if (!absl::IsAlreadyExists(status) && !unknown) {
      requests.Forget(create->name);
      RequestChanged(create->name);
      dirty = true;
    }
  }
}

void DecisionLoop::Impl::Emit(model::Action action, StepResult& result) {
  action.id = next_action_id++;
  if (std::optional<Asked> asked = WhatMatters(action)) {
    in_flight.emplace(action.id, *std::move(asked));
  }
  result.actions.push_back(std::move(action));
}

StepResult DecisionLoop::Impl::Step(absl::Time step_time) {
  StepResult result;
  now = step_time;
  while (!unknown_bindings.empty() && unknown_bindings.begin()->first <= now) {
    for (model::BindPod& bind : unknown_bindings.begin()->second) {
      const state::PodId pod = state.FindPod(bind.ns, bind.name);
      if (pod != state::kNoId && state.pod(pod).uid == bind.uid &&
          state.pod(pod).status == state::PodStatus::kBinding) {
        Emit({0, std::move(bind)}, result);
      }
    }
    unknown_bindings.erase(unknown_bindings.begin());
  }
  if (dirty || now >= wake_at) {
    result.decided = true;
    Decide(now, result);
  }
  result.wake_at = wake_at;
  if (!unknown_bindings.empty()) {
    result.wake_at = std::min(result.wake_at, unknown_bindings.begin()->first);
  }
  return result;
}

void DecisionLoop::Impl::Decide(absl::Time decision_time, StepResult& result) {
  dirty = false;
  wake_at = absl::InfiniteFuture();
  ++stats.cycles;
  engine::CycleResult cycle = engine->RunCycle(decision_time);
  Bind(cycle, decision_time, result);
  EvictVictims(cycle, result);
  wake_at = std::min(wake_at, cycle.wake_at);
  waiting = std::move(cycle.waiting);
  if (options.hook.enabled && RunHook(waiting, decision_time, result)) {
    // New orders: the same cycle goes on and promises them, so that the verdict names the node.
    engine::CycleResult again = engine->RunCycle(decision_time);
    Bind(again, decision_time, result);
    EvictVictims(again, result);
    wake_at = std::min(wake_at, again.wake_at);
    std::map<state::WorkloadId, verdict::Verdict> found;
    for (engine::Waiting& entry : waiting) found[entry.workload] = std::move(entry.verdict);
    waiting = std::move(again.waiting);
    for (engine::Waiting& entry : waiting) {
      auto former = found.find(entry.workload);
      if (former == found.end() || entry.verdict.code != Code::kInsufficientCapacity) continue;
      // Not bought for: what the hook said of it stands.
      entry.verdict.code = former->second.code;
      entry.verdict.details = former->second.details;
      entry.verdict.expected_at = former->second.expected_at;
    }
  }
  for (engine::Waiting& entry : waiting) {
    if (entry.verdict.code != Code::kNodesRequested) continue;
    for (const std::string& name : entry.verdict.node_requests) {
      const model::NodeRequest* request = requests.Find(name);
      if (request == nullptr) continue;
      const absl::Time start = request->launched_at.value_or(
          request->meta.creation == absl::InfinitePast() ? decision_time : request->meta.creation);
      const absl::Time expected = start + options.hook.expected_boot;
      entry.verdict.expected_at = std::max(entry.verdict.expected_at.value_or(expected), expected);
    }
  }
  std::vector<model::Action> writes;
  verdicts.Update(waiting, decision_time, writes);
  stats.verdict_writes += writes.size();
  for (model::Action& write : writes) Emit(std::move(write), result);
  wake_at = std::min(wake_at, verdicts.wake_at());
}

void DecisionLoop::Impl::Bind(const engine::CycleResult& cycle, absl::Time decision_time,
                              StepResult& result) {
  const std::string stamp = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", decision_time, absl::UTCTimeZone());
  const size_t each = options.emit_events ? 2 : 1;
  result.actions.reserve(result.actions.size() + each * cycle.bindings.size());
  in_flight.reserve(in_flight.size() + cycle.bindings.size());
  for (const engine::Binding& binding : cycle.bindings) {
    const state::PodRecord& pod = state.pod(binding.pod);
    model::BindPod bind{pod.ns, pod.name, pod.uid, state.node(binding.node).name(), {}};
    bind.annotations.Set(model::kLastStartAnnotation, stamp);
    // The verdict that the pod bears is no longer true.
    if (pod.has_verdict) bind.annotations.Set(model::kVerdictAnnotation, "");
    if (options.emit_events) {
      Emit({0, model::EmitEvent{model::Kind::kPod, pod.ns, pod.name, pod.uid, false, "Scheduled",
                                absl::StrCat("Successfully assigned ", pod.ns, "/", pod.name, " to ",
                                             bind.node)}},
           result);
    }
    Emit({0, std::move(bind)}, result);
    ++stats.bindings;
  }
}

void DecisionLoop::Impl::EvictVictims(const engine::CycleResult& cycle, StepResult& result) {
  for (const engine::Eviction& eviction : cycle.evictions) {
    const state::PodRecord& pod = state.pod(eviction.pod);
    Emit({0, model::EvictPod{pod.ns, pod.name, pod.uid, "PreemptionByScheduler", eviction.message}},
         result);
    if (options.emit_events) {
      Emit({0, model::EmitEvent{model::Kind::kPod, pod.ns, pod.name, pod.uid, false, "Evicted",
                                eviction.message}},
           result);
    }
    ++stats.evictions;
  }
}

bool DecisionLoop::Impl::RunHook(std::vector<engine::Waiting>& entries, absl::Time decision_time,
                                 StepResult& result) {
  hook::Demand demand;
  std::set<state::NodeId> promised;
  for (const engine::Waiting& entry : entries) {
    for (const engine::Waiting::PodPromise& pod : entry.pods) {
      if (pod.node != state::kNoId) promised.insert(pod.node);
    }
    if (!entry.wants_nodes || entry.verdict.demand.empty()) continue;
    const state::Workload& workload = state.workload(entry.workload);
    hook::DemandItem item;
    item.workload = model::Key(workload.ns, workload.name);
    item.is_group = workload.is_group;
    item.queue = workload.queue;
    item.priority = workload.priority;
    item.classes = entry.verdict.demand;
    item.atomic = entry.verdict.min_member > 1 && entry.verdict.pods_running == 0;
    demand.push_back(std::move(item));
  }
  hook::StepInput input;
  input.now = decision_time;
  input.demand = &demand;
  input.requests = requests.All();
  input.pools = ValidPools();
  input.nodes = nodes.Uses(requests, promised);
  EnginePlacement placement(*engine);
  hook::StepOutput output = hook.Step(input, placement);
  wake_at = std::min(wake_at, output.wake_at);
  for (const std::string& name : output.withdrawn) {
    model::NodeRequest gone;
    gone.meta.name = name;
    gone.phase = model::NodeRequestPhase::kFailed;
    nodes.RequestChanged(name, &gone, input.pools);
  }
  for (hook::StepOutput::NewNode& created : output.created) {
    created.request.meta.creation = decision_time;
    requests.Created(created.request);
    RequestChanged(created.request.meta.name);
    ++stats.node_requests;
  }
  for (model::Action& action : output.actions) {
    if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
      requests.StatusWritten(update->request);
      RequestChanged(update->request.meta.name);
    }
    Emit(std::move(action), result);
  }
  TakeOutcomes(output.outcomes, entries, decision_time);
  dirty = false;  // what the hook changed is dealt with in this step
  return !output.created.empty();
}

void DecisionLoop::Impl::TakeOutcomes(const std::vector<hook::DemandOutcome>& outcomes,
                                      std::vector<engine::Waiting>& entries,
                                      absl::Time decision_time) {
  (void)decision_time;
  size_t next = 0;
  for (engine::Waiting& entry : entries) {
    if (!entry.wants_nodes || entry.verdict.demand.empty()) continue;
    if (next >= outcomes.size()) break;
    const hook::DemandOutcome& outcome = outcomes[next++];
    // Part of it may be promised already: then it goes on showing that.
    if (entry.verdict.code == Code::kInsufficientCapacity) {
      entry.verdict.code = outcome.code;
      entry.verdict.node_requests = outcome.node_requests;
    }
    entry.verdict.expected_at = outcome.expected_at;
    for (const std::string& detail : outcome.details) entry.verdict.details.push_back(detail);
    const bool constrained =
        outcome.code == Code::kNoInstanceTypeFits && !entry.verdict.demand.empty() &&
        (!entry.verdict.demand.front().spec->node_selector.empty() ||
         entry.verdict.demand.front().spec->has_required_node_affinity);
    if (constrained && entry.verdict.code == Code::kNoInstanceTypeFits) {
      entry.verdict.details.push_back("its node selector or affinity is part of the reason");
    }
  }
}

}  // namespace fairlead::core
