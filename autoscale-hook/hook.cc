#include "autoscale-hook/hook.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/machines/announced.h"
#include "autoscale-hook/machines/disruption_budgets.h"
#include "autoscale-hook/machines/lifecycle.h"
#include "autoscale-hook/machines/lost_machines.h"
#include "autoscale-hook/machines/removal.h"
#include "autoscale-hook/machines/surplus.h"
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/hash.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

absl::Time UpToWholeSecond(absl::Time time) {
  if (time == absl::InfiniteFuture() || time == absl::InfinitePast()) return time;
  const absl::Time floor = absl::FromUnixSeconds(absl::ToUnixSeconds(time));
  return floor == time ? time : floor + absl::Seconds(1);
}

std::string PoolDigest(const model::NodePool& pool) {
  StableHash hash;
  hash.Add(pool.meta.uid).Add(pool.meta.generation).Add(pool.provider).Add(pool.invalid);
  return hash.Hex();
}

// The request as it was decided, without what became of it.
model::NodeRequest DecisionOf(const model::NodeRequest& request) {
  model::NodeRequest decision;
  decision.meta.name = request.meta.name;
  decision.meta.labels = request.meta.labels;
  decision.meta.annotations = request.meta.annotations;
  decision.pool = request.pool;
  decision.provider = request.provider;
  decision.instance_type = request.instance_type;
  decision.zone = request.zone;
  decision.spot = request.spot;
  decision.price_micro_usd_per_hour = request.price_micro_usd_per_hour;
  decision.price_known = request.price_known;
  decision.queue = request.queue;
  decision.reason_workloads = request.reason_workloads;
  decision.finalizers = {model::kMachineFinalizer};
  return decision;
}

Outcome LaunchOutcome(const absl::Status& answer) {
  if (IsUnknownOutcome(answer)) return Outcome::kUnknown;
  return ClassifyFailure(answer).has_value() ? Outcome::kRefused : Outcome::kDone;
}

}  // namespace

absl::Status CheckProvider(const HookOptions& options, absl::string_view field) {
  const std::string known =
      absl::StrCat("known providers: ", absl::StrJoin(options.known_providers, ", "));
  if (options.provider.empty()) {
    if (!options.enabled) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": must be set if the hook is enabled; ", known));
  }
  const auto& list = options.known_providers;
  if (std::find(list.begin(), list.end(), options.provider) != list.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": \"", options.provider, "\" is not a known provider; ", known));
}

void SetGpuLabels(const InstanceType& type, model::NodeRequest& request) {
  if (type.gpu_count > 0) request.meta.labels.Set(kRequestGpuModelLabel, type.gpu_model);
  request.meta.labels.Set(kRequestGpusLabel, absl::StrCat(type.gpu_count));
}

NodesByRow::NodesByRow(const std::vector<NodeUse>* nodes, const MachineLedger& ledger) {
  if (nodes == nullptr) return;
  rows_.reserve(nodes->size());
  for (const NodeUse& node : *nodes) {
    if (node.node_request.empty()) continue;
    const Machine* row = node.registered ? ledger.FindByNode(node.node_request, node.provider_id)
                                         : ledger.Find(node.node_request);
    if (row != nullptr) {
      rows_.emplace_back(row->key, &node);
    } else if (node.registered) {
      orphans_.push_back(&node);
    }
  }
  const auto before = [](const auto& a, const auto& b) {
    return std::forward_as_tuple(a.first, b.second->ready, b.second->registered, a.second->name) <
           std::forward_as_tuple(b.first, a.second->ready, a.second->registered, b.second->name);
  };
  if (!std::is_sorted(rows_.begin(), rows_.end(), before)) {
    std::stable_sort(rows_.begin(), rows_.end(), before);
  }
}

std::vector<const NodeUse*> NodesByRow::Of(const Machine& machine) const {
  auto it =
      std::lower_bound(rows_.begin(), rows_.end(), machine.key,
                       [](const auto& row, const std::string& key) { return row.first < key; });
  std::vector<const NodeUse*> nodes;
  for (; it != rows_.end() && it->first == machine.key; ++it) nodes.push_back(it->second);
  return nodes;
}

Hook::Impl::Impl(HookOptions options, const Catalog* catalog, const Hook& hook)
    : options_(std::move(options)),
      catalogs_(catalog, options_.provider),
      hook_(hook),
      backoff_({options_.backoff_initial, options_.backoff_max}),
      gathering_(options_.gathering_quiet, options_.gathering_max),
      rate_(options_.guard),
      guard_(options_.guard) {
  if (options_.provider.empty()) options_.enabled = false;
}

std::vector<model::OfferedNode> Hook::Impl::NodesOnOffer(
    std::vector<const model::NodePool*> pools) const {
  if (pools.empty()) pools.push_back(&default_pool_);
  const CapsLeft all = CapsLeftBeside({}, pools);
  std::vector<model::OfferedNode> nodes;
  for (const Offer& offer : MakeOffers(catalogs_, pools)) {
    if (!Allows(all, offer)) continue;  // one node of it is more than a cap, whatever else runs
    model::OfferedNode& offered = nodes.emplace_back();
    offered.node = UsableNode(offer, "");
    shapes_.Apply(offered.node);
    offered.micro_usd_per_hour = offer.price_micro_usd_per_hour;
    offered.unused =
        boot_times_.Expect(offer.type->name, offer.pool->meta.name, options_.expected_boot) +
        offer.pool->disruption.consolidate_after.value_or(options_.unneeded_after);
  }
  return nodes;
}

CapsLeft Hook::Impl::CapsLeftBeside(const CapUsage& usage,
                                    const std::vector<const model::NodePool*>& pools) const {
  return CapsLeft::Of({options_.cluster_gpu_limit, options_.gpu_limit_by_model,
                       options_.cost_limit_micro_usd_per_hour, options_.max_nodes},
                      usage, pools);
}

std::vector<std::vector<std::string>> Hook::Impl::LabelsOnOffer(
    std::vector<const model::NodePool*> pools) const {
  if (pools.empty()) pools.push_back(&default_pool_);
  return hook::LabelsOnOffer(MakeOffers(catalogs_, pools));
}

bool Hook::Impl::IsKnownProvider(const std::string& provider) const {
  const auto& known = options_.known_providers;
  return provider.empty() || std::find(known.begin(), known.end(), provider) != known.end();
}

std::vector<const model::NodePool*> Hook::Impl::TakePools(const StepInput& input) {
  std::vector<const model::NodePool*> pools = input.pools;
  if (pools.empty()) pools.push_back(&default_pool_);
  std::map<std::string, model::NodePool> seen;
  pool_problems_ = input.pool_problems;
  for (const model::NodePool* pool : pools) {
    const std::string& name = pool->meta.name;
    auto known = pools_.find(name);
    if (known != pools_.end() && PoolDigest(known->second) != PoolDigest(*pool)) {
      backoff_.PoolChanged(name, pool->provider.empty() ? options_.provider : pool->provider);
      guard_.PoolChanged(name);
    }
    if (!IsKnownProvider(pool->provider)) {
      pool_problems_.push_back(absl::StrCat("NodePool ", name, ": spec.provider \"", pool->provider,
                                            "\" is not a known provider; known providers: ",
                                            absl::StrJoin(options_.known_providers, ", ")));
    }
    seen.emplace(name, *pool);
  }
  pools_ = std::move(seen);
  return pools;
}

// What a former process provisioned counts as if this one had.
void Hook::Impl::CountFound(const Machine& machine, absl::Time now) {
  const model::NodeRequest& request = machine.desired;
  rate_.Found(request.queue, request.meta.creation, now);
  if (request.failure == ProvisioningGuard::kUnhelpful) {
    guard_.Restore(request.queue, std::min(request.failed_at.value_or(now), now));
  }
}

void Hook::Impl::Continue(Impl& former) {
  backoff_.Continue(std::move(former.backoff_));
  shapes_ = std::move(former.shapes_);
  boot_times_ = std::move(former.boot_times_);
  rate_.Continue(std::move(former.rate_));
  guard_.Continue(std::move(former.guard_));
  pools_ = std::move(former.pools_);
  linked_ = std::move(former.linked_);
  node_lists_.Continue(former.node_lists_);
  emptying_.Continue(former.emptying_);
  removal_pace_ = former.removal_pace_;
  catalogs_.Continue(former.catalogs_);
  ledger_.TakeLost(former.ledger_);
}

NodesByRow Hook::Impl::SettleRows(const std::vector<NodeUse>* nodes) {
  NodesByRow by_row(nodes, ledger_);
  std::vector<Machine*> lost;
  for (auto& [key, machine] : ledger_.rows()) {
    if (machine.lost) lost.push_back(&machine);
  }
  bool changed = false;
  for (Machine* machine : lost) {
    MachineView view{machine, by_row.Of(*machine), {}};
    changed = TakeOverLost(view, ledger_) || changed;
  }
  return changed ? NodesByRow(nodes, ledger_) : by_row;
}

void Hook::Impl::TakeMachines(const NodesByRow& nodes, StepContext& context) {
  AdvanceLostRows(nodes, context);
  for (auto& [key, machine] : ledger_.rows()) {
    if (!machine.seen()) continue;
    if (machine.first_seen == absl::InfinitePast()) {
      machine.first_seen = context.now;
      if (!machine.created_here && !linked_.contains(machine.name())) {
        CountFound(machine, context.now);
      }
    }
    context.views.push_back({&machine, nodes.Of(machine), {}});
    MachineView& view = context.views.back();
    for (const NodeUse* node : view.nodes) {
      if (node->registered) ledger_.AddProviderId(machine, node->provider_id);
    }
    if (view.registered()) NodeLists::StopWaiting(machine);
    if (!machine.taints.empty()) {
      std::set<std::string> uids;
      for (const NodeUse* node : view.nodes) uids.insert(node->uid);
      ledger_.KeepTaints(machine, uids);
    }
    SetSurplusApart(view);
  }
  std::sort(context.views.begin(), context.views.end(),
            [](const MachineView& a, const MachineView& b) {
              return a.machine->name() < b.machine->name();
            });
  AdvanceUnseen(nodes, context);
  ordinals_.clear();
}

void Hook::Impl::AdvanceLostRows(const NodesByRow& nodes, StepContext& context) {
  std::vector<std::string> ended;
  for (auto& [key, machine] : ledger_.rows()) {
    if (!machine.lost) continue;
    MachineView view{&machine, nodes.Of(machine), {}};
    if (AdvanceLost(view, context)) {
      ended.push_back(key);
    } else {
      context.lost.push_back(std::move(view));
    }
  }
  for (const std::string& key : ended) ledger_.DropLost(key);
}

// Requests that were created, or may have been, and that the watch has not shown. The creation is
// repeated as long as the node is needed, or an answer is missing. It is forgotten only if nothing
// needs the node and a fresh watch would show the object: a Step is called with a fresh watch only.
void Hook::Impl::AdvanceUnseen(const NodesByRow& nodes, StepContext& context) {
  for (std::string& name : std::exchange(never_written_, {})) {
    context.out.withdrawn.push_back(std::move(name));
  }
  std::vector<std::string> gone;
  for (auto& [key, machine] : ledger_.rows()) {
    if (machine.seen() || machine.lost) continue;
    const WriteAttempts& creation = machine.creation;
    const bool unneeded = MachineView{&machine, nodes.Of(machine), {}}.known_unneeded();
    if (creation.in_flight() || !unneeded) {
      if (creation.MayGo(context.now)) {
        ledger_.CreationSent(machine.desired, context.now);
        context.Do(model::CreateNodeRequest{machine.desired});
      }
      context.WakeAt(creation.due());
      continue;
    }
    const absl::Time shown =
        creation.accepted() ? creation.due() : creation.unknown_at() + kDoubtLasts;
    if (context.now < shown) {
      context.WakeAt(shown);
    } else {
      gone.push_back(machine.name());
    }
  }
  for (std::string& name : gone) {
    ledger_.Forget(name);
    context.out.withdrawn.push_back(std::move(name));
  }
}

CapUsage Hook::Impl::UsageOf(const StepContext& context,
                             const std::set<std::string>* queues) const {
  CapUsage usage;
  const auto is_asked = [queues](const Machine& machine) {
    return queues == nullptr || queues->contains(machine.desired.queue);
  };
  const auto add = [&](const MachineView& view) {
    if (!is_asked(*view.machine)) return;
    // Of nodes whose GPUs are divided the request alone says how many they have.
    const auto pool = pools_.find(view.request().pool);
    const bool divided = pool != pools_.end() &&
                         pool->second.gpu_sharing.strategy != model::GpuPartition::Strategy::kNone;
    const int64_t node_gpus = view.registered() && !divided
                                  ? model::Get(view.node()->allocatable, model::kGpuName) / 1000
                                  : 0;
    for (int64_t i = view.CountMachines(); i > 0; --i) {
      usage.Add(view.request(), catalogs_.Of(view.request()), node_gpus);
    }
  };
  for (const MachineView& view : context.views) {
    // The old status counts until the new one is written: a restart would know nothing else, and
    // might launch it.
    const bool counts = CountsAgainstCaps(view.request(), view.registered()) ||
                        !view.machine->Written(view.request().phase);
    if (counts) add(view);
  }
  for (const MachineView& view : context.lost) add(view);
  for (const auto& [key, machine] : ledger_.rows()) {
    // A request that is written again for a lost machine counts with that machine.
    const bool counts = !machine.seen() && !machine.lost && !ledger_.HasLost(machine.name());
    if (counts && is_asked(machine)) usage.Add(machine.desired, catalogs_.Of(machine.desired));
  }
  return usage;
}

// Learns the real size of nodes; once per machine that became usable.
void Hook::Impl::LearnShapes(StepContext& context) {
  for (MachineView& view : context.views) {
    const model::NodeRequest& request = view.request();
    if (view.machine->shape_learned || request.allocatable.empty()) continue;
    view.machine->shape_learned = true;
    if (request.launched_at.has_value() && request.ready_at.has_value()) {
      boot_times_.Learn(request.instance_type, request.pool,
                        *request.ready_at - *request.launched_at);
    }
    const InstanceType* type = catalogs_.Of(request).Find(request.instance_type);
    if (type == nullptr) continue;
    const model::ResourceList promised = Announced(request).value_or(
        UsableNode({type, &default_pool_, request.zone, request.spot, 0}, "").allocatable);
    if (shapes_.Learn(request.instance_type, request.pool, promised, request.allocatable,
                      request.ready_at.value_or(context.now))) {
      ++offers_version_;
    }
  }
}

void Hook::Impl::LearnOverhead(const StepContext& context) {
  std::vector<ObservedShapes::NodeOverhead> nodes;
  for (const MachineView& view : context.views) {
    if (view.request().phase != model::NodeRequestPhase::kReady || !view.ready()) continue;
    nodes.push_back({view.request().instance_type, view.request().pool, GpusOf(view.request()) > 0,
                     &view.node()->daemon_requests});
  }
  if (shapes_.LearnOverhead(nodes)) ++offers_version_;
}

// The request that a node came from, as far as its labels, the catalogue and its pool tell it.
model::NodeRequest Hook::Impl::RequestOf(const NodeUse& orphan, const StepContext& context) const {
  model::NodeRequest request;
  request.meta.name = orphan.node_request;
  request.pool = orphan.pool;
  request.instance_type = orphan.instance_type;
  request.zone = orphan.zone;
  request.spot = orphan.spot;
  request.provider = options_.provider;
  request.finalizers = {model::kMachineFinalizer};
  for (const model::NodePool* pool : context.pools) {
    if (pool->meta.name == orphan.pool && !pool->provider.empty()) {
      request.provider = pool->provider;
    }
  }
  request.price_known = false;
  const InstanceType* type = catalogs_.Of(request).Find(orphan.instance_type);
  if (type == nullptr) return request;  // its price and its GPUs are unknown
  const std::optional<int64_t>& price =
      orphan.spot ? type->spot_micro_usd : type->on_demand_micro_usd;
  request.price_known = price.has_value();
  request.price_micro_usd_per_hour = price.value_or(0);
  SetGpuLabels(*type, request);
  return request;
}

// Adopts a node of ours whose request object is gone (deleted by force). Without a request it would
// not be billed and never be scaled down. The request is written again under its old name, and so
// belongs to the node again (I5).
void Hook::Impl::AdoptOrphans(const NodesByRow& nodes, StepContext& context) {
  std::map<std::string, Orphan> seen;
  for (const MachineView& view : context.lost) {
    const bool nameless = ledger_.Find(view.machine->name()) == nullptr;
    if (view.registered() && nameless) AdoptNode(*view.node(), view.machine, context, seen);
  }
  for (const NodeUse* node : nodes.orphans()) {
    // A node without the labels of our launches is an imitation and must not be touched.
    const bool ours = IsOurName(node->node_request) && !node->instance_type.empty();
    if (ours && ledger_.Find(node->node_request) == nullptr) {
      AdoptNode(*node, nullptr, context, seen);
    }
  }
  orphans_ = std::move(seen);
}

void Hook::Impl::AdoptNode(const NodeUse& node, const Machine* lost, StepContext& context,
                           std::map<std::string, Orphan>& seen) {
  const std::string name = lost != nullptr ? lost->name() : node.node_request;
  auto known = orphans_.find(name);
  Orphan orphan = known == orphans_.end() ? Orphan{context.now} : known->second;
  const absl::Time due =
      orphan.since + Backoff{kMissingGrace, kAdoptionPauseMax}.Pause(orphan.attempts + 1);
  if (context.now < due) {
    seen.emplace(name, orphan);
    context.WakeAt(due);
    return;
  }
  orphan.since = context.now;
  ++orphan.attempts;
  seen.emplace(name, orphan);
  model::NodeRequest request =
      lost != nullptr ? DecisionOf(lost->desired) : RequestOf(node, context);
  ledger_.CreationSent(request, context.now);
  context.WakeAt(ledger_.Find(name)->creation.due());
  context.Do(model::CreateNodeRequest{request});
  context.out.created.push_back({std::move(request), model::Node(), /*adopted=*/true});
}

void Hook::Impl::ScaleDown(const Demand& demand, Evacuation* evacuation, StepContext& context) {
  const bool nodes_wanted = std::any_of(demand.begin(), demand.end(),
                                        [](const DemandItem& item) { return item.charged; });
  DisruptionBudgets budgets(context);
  const RemovalFreeze freeze(context);
  emptying_.Advance(context, budgets, evacuation, nodes_wanted, freeze.on());
  RemoveUnneeded(context, budgets, freeze, removal_pace_);
}

StepOutput Hook::Impl::Step(const StepInput& input, Placement& placement) {
  static const std::vector<QueueCap> kNoCaps;
  StepOutput out;
  const std::vector<const model::NodePool*> pools = TakePools(input);
  const NodesByRow nodes =
      options_.enabled ? SettleRows(input.nodes) : NodesByRow(input.nodes, ledger_);
  StepContext context{.options = options_,
                      .hook = hook_,
                      .now = absl::FromUnixSeconds(absl::ToUnixSeconds(input.now)),
                      .pools = pools,
                      .queue_caps = input.queue_caps == nullptr ? kNoCaps : *input.queue_caps,
                      .backoff = backoff_,
                      .ledger = ledger_,
                      .views = {},
                      .lost = {},
                      .out = out,
                      .actions = {},
                      .unproved = {},
                      .witnesses = guard_.witnesses()};
  static const Demand kNone;
  const Demand& demand = input.demand == nullptr ? kNone : *input.demand;
  if (options_.enabled) {
    reports_.SettleUnclaimed(nodes.orphans(), context);
    TakeMachines(nodes, context);
    for (MachineView& view : context.views) AdvanceLifecycle(view, context);
    LearnShapes(context);
    LearnOverhead(context);
    RecallPurchases(demand, input.members, context);
    ScaleDown(demand, input.evacuation, context);
    out.node_list = node_lists_.Next(context.unproved, context.now, out.wake_at);
    JudgePurchases(demand, input.members, nodes, context);
    // Before a machine is told to go, its request must say whether it was of use.
    for (MachineView& view : context.views) {
      if (view.request().phase == model::NodeRequestPhase::kDraining) context.NoteWitness(view);
      context.WriteStatus(view);
    }
    AdoptOrphans(nodes, context);
  }
  if (options_.enabled && !input.gathered) {
    gathering_.Update(gathering_.ChangesTo(demand), input.now);
  }
  Provision(demand, input.members, placement, context);
  std::move(context.actions.begin(), context.actions.end(), std::back_inserter(out.actions));
  out.wake_at = std::min(UpToWholeSecond(out.wake_at), gathering_.closes_at());
  return out;
}

absl::StatusOr<model::Node> Hook::Impl::ExpectedNode(
    const model::NodeRequest& request, const std::vector<const model::NodePool*>& pools,
    bool registered) const {
  const InstanceType* type = catalogs_.Of(request).Find(request.instance_type);
  if (type == nullptr) {
    return absl::NotFoundError(absl::StrCat("NodeRequest ", request.meta.name,
                                            ": spec.instanceType \"", request.instance_type,
                                            "\" is not in the catalogue"));
  }
  const model::NodePool* pool = &default_pool_;
  auto known = pools_.find(request.pool);
  if (known != pools_.end()) pool = &known->second;
  for (const model::NodePool* given : pools) {
    if (given->meta.name == request.pool) pool = given;
  }
  model::Node node =
      UsableNode({type, pool, request.zone, request.spot, request.price_micro_usd_per_hour},
                 request.meta.name);
  // Another catalogue may say something else by now. What was ordered counts against the caps.
  if (auto announced = Announced(request)) node.allocatable = *std::move(announced);
  registered ? shapes_.ApplySize(node) : shapes_.Apply(node);
  if (const std::optional<int64_t> gpus = OrderedGpus(request); gpus.has_value()) {
    const int64_t has = model::Get(node.allocatable, model::kGpuName);
    const int64_t most = *gpus * 1000 * pool->gpu_sharing.CountOfEach();
    model::Set(node.allocatable, model::kGpuName, std::min(has, most));
  }
  return node;
}

void Hook::Impl::OnProviderResult(const ProviderCall& call, const absl::Status& status,
                                  absl::Time now, const std::string& machine_id) {
  Machine* machine = ledger_.FindObject(call.request_name, call.request_uid);
  if (machine == nullptr || (!machine->seen() && !machine->lost)) return;
  ledger_.Changed();
  if (call.launch) {
    machine->launch.Answered(LaunchOutcome(status), now, kLaunchRules);
    machine->launch_answer = status;
    if (status.ok() && machine->reported_gone) machine->IsThere(machine_id);
    if (status.ok()) ledger_.SetProviderId(*machine, machine_id);
    return;
  }
  const auto end = machine->ends.find(call.provider_id);
  if (end == machine->ends.end()) return;
  if (call.provider_id.empty() && !status.ok() && !machine_id.empty()) {
    // It was not ended: this is its id, and so its node can be found.
    machine->ends.erase(end);
    return ledger_.SetProviderId(*machine, machine_id);
  }
  WriteAttempts& attempts = end->second.attempts;
  const absl::Status answer = absl::IsNotFound(status) ? absl::OkStatus() : status;
  end->second.confirmed = end->second.confirmed || (answer.ok() && attempts.started());
  attempts.Answered(answer, now, kTerminateRules);
  if (!answer.ok()) {
    machine->desired.message =
        ShortMessage(absl::StrCat("TerminateNode failed, attempts: ", attempts.failures(), ": ",
                                  absl::StatusCodeToString(status.code()), ": ", status.message()));
  }
}

void Hook::Impl::OnCreateResult(const std::string& name, const absl::Status& status,
                                absl::Time now) {
  if (!ledger_.CreationAnswered(name, status, now)) return;
  const Machine* machine = ledger_.Find(name);
  backoff_.Failed(KeyOf(machine->desired), FailureClass::kOther, now,
                  ShortMessage(absl::StrCat("creation of the NodeRequest: ", status.message())));
  ledger_.Forget(name);
  never_written_.push_back(name);
}

Hook::Hook(HookOptions options, const Catalog* catalog)
    : impl_(std::make_unique<Impl>(std::move(options), catalog, *this)) {}
Hook::~Hook() = default;

void Hook::Continue(Hook& former) { impl_->Continue(*former.impl_); }

bool Hook::Observe(const model::NodeRequest& request) { return impl_->ledger().Observe(request); }
bool Hook::ObserveGone(const std::string& name, const std::string& uid) {
  return impl_->ledger().ObserveGone(name, uid, impl_->enabled());
}
const MachineLedger& Hook::machines() const { return impl_->ledger(); }

const std::set<std::pair<bool, std::string>>& Hook::Gather(const DemandChanges& changes,
                                                           absl::Time now) {
  return impl_->Gather(changes, now);
}

StepOutput Hook::Step(const StepInput& input, Placement& placement) {
  return impl_->Step(input, placement);
}

absl::StatusOr<model::Node> Hook::ExpectedNode(const model::NodeRequest& request,
                                               const std::vector<const model::NodePool*>& pools,
                                               bool registered) const {
  return impl_->ExpectedNode(request, pools, registered);
}

absl::Duration Hook::ExpectedBoot(const model::NodeRequest& request) const {
  return impl_->ExpectedBoot(request);
}

int64_t Hook::GpusOf(const model::NodeRequest& request) const { return impl_->GpusOf(request); }

uint64_t Hook::offers_version() const { return impl_->offers_version(); }

std::vector<std::vector<std::string>> Hook::LabelsOnOffer(
    const std::vector<const model::NodePool*>& pools) const {
  return impl_->LabelsOnOffer(pools);
}

std::vector<model::OfferedNode> Hook::NodesOnOffer(
    const std::vector<const model::NodePool*>& pools) const {
  return impl_->NodesOnOffer(pools);
}

void Hook::OnProviderResult(const ProviderCall& call, const absl::Status& status, absl::Time now,
                            const std::string& machine_id) {
  impl_->OnProviderResult(call, status, now, machine_id);
}

void Hook::OnMachineReport(const MachineReport& report, absl::Time now) {
  impl_->OnMachineReport(report, now);
}

void Hook::OnOffers(absl::string_view provider, std::shared_ptr<const Catalog> offers) {
  impl_->OnOffers(provider, std::move(offers));
}

void Hook::OnCreateResult(const std::string& request_name, const absl::Status& status,
                          absl::Time now) {
  impl_->OnCreateResult(request_name, status, now);
}

bool Hook::OnStatusResult(const model::NodeRequest& written, const absl::Status& status,
                          absl::Time now) {
  return impl_->ledger().StatusAnswered(written, status, now);
}

void Hook::OnTaintResult(const std::string& node_uid, bool present, const absl::Status& status,
                         absl::Time now) {
  impl_->ledger().TaintAnswered(node_uid, present, status, now);
}

void Hook::OnNodesListed(uint64_t number, const absl::Status& status,
                         const std::vector<ListedNode>& unseen, absl::Time now) {
  impl_->OnNodesListed(number, status, unseen, now);
}

void Hook::OnDeleteResult(const std::string& request_name, const std::string& uid,
                          const absl::Status& status, absl::Time now) {
  impl_->ledger().DeletionAnswered(request_name, uid, status, now);
}

}  // namespace fairlead::hook
