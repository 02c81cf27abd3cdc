// What Hook::Impl knows of its machines: their rows and nodes in a step, what is learned from them,
// what they count against the caps, and nodes whose request is gone.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/machines/announced.h"
#include "autoscale-hook/machines/disruption_budgets.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/machines/lost_machines.h"
#include "autoscale-hook/machines/removal.h"
#include "autoscale-hook/machines/surplus.h"
#include "autoscale-hook/planner/offers.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

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
  decision.reservation = request.reservation;
  decision.price_micro_usd_per_hour = request.price_micro_usd_per_hour;
  decision.price_known = request.price_known;
  decision.queue = request.queue;
  decision.reason_workloads = request.reason_workloads;
  decision.replaces = request.replaces;
  decision.finalizers = {model::kMachineFinalizer};
  LeaveLaunchSet(decision);
  return decision;
}

// As far as CapUsage reads it.
model::NodeRequest RequestLike(const SteadyKind& kind) {
  model::NodeRequest request;
  request.pool = kind.pool;
  request.provider = kind.provider;
  request.instance_type = kind.instance_type;
  request.reservation = kind.reservation;
  request.price_micro_usd_per_hour = kind.price_micro_usd_per_hour;
  request.meta.labels.Set(kRequestGpusLabel, absl::StrCat(kind.ordered_gpus));
  request.meta.labels.Set(kRequestGpuModelLabel, kind.gpu_model);
  return request;
}

// Adds what one machine of known price counts, so often.
void AddTimes(const CapUsage& one, int64_t count, CapUsage& usage) {
  const auto add = [count](int64_t amount, int64_t& sum) {
    sum = model::SaturatingAdd(sum, model::SaturatingMultiply(amount, count));
  };
  add(one.nodes, usage.nodes);
  add(one.gpus, usage.gpus);
  add(one.micro_usd_per_hour, usage.micro_usd_per_hour);
  for (const auto& [name, amount] : one.gpus_by_model) add(amount, usage.gpus_by_model[name]);
  for (const auto& [name, amount] : one.nodes_by_pool) add(amount, usage.nodes_by_pool[name]);
  for (const auto& [name, amount] : one.nodes_by_reservation) {
    add(amount, usage.nodes_by_reservation[name]);
  }
}

}  // namespace

// What a former process provisioned counts as if this one had.
void Hook::Impl::CountFound(const Machine& machine, absl::Time now) {
  const model::NodeRequest& request = machine.desired;
  rate_.Found(request.queue, request.meta.creation, now);
  if (request.failure == ProvisioningGuard::kUnhelpful) {
    guard_.Restore(request.queue, std::min(request.failed_at.value_or(now), now));
  }
}

NodesByRow Hook::Impl::SettleRows(const StepInput& input) {
  NodesByRow by_row(input.nodes, input.node_versions, ledger_);
  bool changed = false;
  for (const Machine* lost : ledger_.Lost()) {
    MachineView view{&ledger_.Edit(*lost), by_row.Of(*lost), {}};
    changed = TakeOverLost(view, ledger_) || changed;
  }
  return changed ? NodesByRow(input.nodes, input.node_versions, ledger_) : std::move(by_row);
}

void Hook::Impl::TakeMachines(StepContext& context) {
  AdvanceLostRows(context);
  std::vector<Machine*> first_seen;
  std::vector<std::pair<Machine*, const std::string*>> told_ids;
  context.views.reserve(ledger_.unsteady().size());
  for (const auto& [name, machine] : ledger_.unsteady()) {
    if (machine->first_seen == absl::InfinitePast()) first_seen.push_back(machine);
    MachineView& view = context.views.emplace_back(MachineView{machine, {}, {}});
    view.nodes = context.nodes.Of(*machine);
    for (const NodeUse* node : view.nodes) {
      if (!node->registered || ledger_.HasProviderId(*machine, node->provider_id)) continue;
      told_ids.emplace_back(machine, &node->provider_id);
    }
    if (view.registered()) NodeLists::StopWaiting(*machine);
    if (!machine->taints.empty()) {
      std::set<std::string> uids;
      for (const NodeUse* node : view.nodes) uids.insert(node->uid);
      ledger_.KeepTaints(*machine, uids);
    }
    SetSurplusApart(view);
  }
  // Where the order matters it is that of the ledger.
  const auto by_key = [](const Machine* a, const Machine* b) { return a->key < b->key; };
  std::sort(first_seen.begin(), first_seen.end(), by_key);
  for (Machine* machine : first_seen) {
    machine->first_seen = context.now;
    if (!machine->created_here && !linked_.contains(machine->name())) {
      CountFound(*machine, context.now);
    }
  }
  std::stable_sort(told_ids.begin(), told_ids.end(),
                   [&](const auto& a, const auto& b) { return by_key(a.first, b.first); });
  for (const auto& [machine, id] : told_ids) ledger_.AddProviderId(*machine, *id);
  AdvanceUnseen(context);
  ordinals_.clear();
}

void Hook::Impl::AdvanceLostRows(StepContext& context) {
  std::vector<std::string> ended;
  for (const Machine* lost : ledger_.Lost()) {
    MachineView view{&ledger_.Edit(*lost), context.nodes.Of(*lost), {}};
    if (AdvanceLost(view, context)) {
      ended.push_back(lost->key);
    } else {
      context.lost.push_back(std::move(view));
    }
  }
  for (const std::string& key : ended) ledger_.DropLost(key);
}

// Requests that were created, or may have been, and that the watch has not shown. The creation is
// repeated as long as the node is needed, or an answer is missing. It is forgotten only if nothing
// needs the node and a fresh watch would show the object: a Step is called with a fresh watch only.
void Hook::Impl::AdvanceUnseen(StepContext& context) {
  for (std::string& name : std::exchange(never_written_, {})) {
    context.out.withdrawn.push_back(std::move(name));
  }
  std::vector<std::string> gone;
  for (const Machine* unseen : ledger_.Unseen()) {
    Machine& machine = ledger_.Edit(*unseen);
    const WriteAttempts& creation = machine.creation;
    const bool unneeded = MachineView{&machine, context.nodes.Of(machine), {}}.known_unneeded();
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
  // Of nodes whose GPUs are divided the request alone says how many they have.
  const auto is_divided = [this](const std::string& name) {
    const auto pool = pools_.find(name);
    return pool != pools_.end() &&
           pool->second.gpu_sharing.strategy != model::GpuPartition::Strategy::kNone;
  };
  const auto add = [&](const MachineView& view) {
    if (!is_asked(*view.machine)) return;
    const bool counted = view.registered() && !is_divided(view.request().pool);
    const int64_t node_gpus = counted ? GpusOnNode(view.node()->allocatable) : 0;
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
  for (const Machine* machine : ledger_.Unseen()) {
    // A request that is written again for a lost machine counts with that machine.
    if (ledger_.HasLost(machine->name()) || !is_asked(*machine)) continue;
    usage.Add(machine->desired, catalogs_.Of(machine->desired));
  }
  for (const auto& [kind, count] : ledger_.steady().kinds()) {
    if (queues != nullptr && !queues->contains(kind.queue)) continue;
    const model::NodeRequest request = RequestLike(kind);
    CapUsage one;
    one.Add(request, catalogs_.Of(request), is_divided(kind.pool) ? 0 : kind.node_gpus);
    AddTimes(one, count, usage);
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
      OffersChanged();
    }
  }
}

void Hook::Impl::LearnDevices(const StepContext& context) {
  for (const MachineView& view : context.views) {
    const model::NodeRequest& request = view.request();
    if (request.phase != model::NodeRequestPhase::kReady || !view.ready()) continue;
    if (shapes_.LearnDevices(request.instance_type, request.pool, view.node()->name,
                             request.ready_at.value_or(absl::InfinitePast()),
                             view.node()->devices)) {
      OffersChanged();
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
  for (const auto& [kind, count] : ledger_.steady().kinds()) {
    nodes.push_back({kind.instance_type, kind.pool, kind.ordered_gpus > 0, &kind.daemon_requests});
  }
  if (shapes_.LearnOverhead(nodes)) OffersChanged();
}

// The request that a node came from, as far as its labels, the catalogue and its pool tell it.
model::NodeRequest Hook::Impl::RequestOf(const NodeUse& orphan, const StepContext& context) const {
  model::NodeRequest request;
  request.meta.name = orphan.node_request;
  request.meta.labels = options_.node_labels;
  request.pool = orphan.pool;
  request.instance_type = orphan.instance_type;
  request.zone = orphan.zone;
  request.spot = orphan.spot;
  request.reservation = orphan.reservation;
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
  const std::optional<int64_t> price = type->PriceOf(orphan.spot, orphan.reservation);
  request.price_known = price.has_value();
  request.price_micro_usd_per_hour = price.value_or(0);
  SetGpuLabels(*type, request);
  return request;
}

// Adopts a node of ours whose request object is gone (deleted by force). Without a request it would
// not be billed and never be scaled down. The request is written again under its old name, and so
// belongs to the node again (I5).
void Hook::Impl::AdoptOrphans(StepContext& context) {
  std::map<std::string, Orphan> seen;
  for (const MachineView& view : context.lost) {
    const bool nameless = ledger_.Find(view.machine->name()) == nullptr;
    if (view.registered() && nameless) AdoptNode(*view.node(), view.machine, context, seen);
  }
  for (const NodeUse* node : context.nodes.orphans()) {
    // A node without the labels of our launches is an imitation and must not be touched.
    const bool ours =
        IsOurName(node->node_request, options_.request_prefix) && !node->instance_type.empty();
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

void Hook::Impl::CountReserved(const StepContext& context) {
  CapsLeft left;
  if (catalogs_.has_reservations()) {
    left.AddReservations(MakeOffers(catalogs_, context.pools), UsageOf(context));
  }
  if (left.nodes_by_reservation == reserved_left_) return;
  reserved_left_ = std::move(left.nodes_by_reservation);
  OffersChanged();
}

void Hook::Impl::ScaleDown(const Demand& demand, Evacuation* evacuation, StepContext& context) {
  const bool nodes_wanted = std::any_of(demand.begin(), demand.end(),
                                        [](const DemandItem& item) { return item.charged; });
  DisruptionBudgets budgets(context);
  const RemovalFreeze freeze(context);
  replacement_.Advance(context, budgets, evacuation, emptying_, nodes_wanted, freeze.on());
  emptying_.Advance(context, budgets, evacuation, nodes_wanted, freeze.on());
  ReplaceNodes(budgets, evacuation, context);
  RemoveUnneeded(context, budgets, freeze, removal_pace_);
}

void Hook::Impl::EndWaits(const std::vector<const model::NodePool*>& pools, absl::Time now) {
  std::map<std::string, absl::Duration> waits;
  for (const model::NodePool* pool : pools) {
    if (const auto& wait = pool->disruption.consolidate_after)
      waits.emplace(pool->meta.name, *wait);
  }
  const bool others = std::exchange(waits_, waits) != waits;
  const bool back = std::exchange(stepped_at_, now) > now;
  ledger_.EndWaits(others || back ? absl::InfiniteFuture() : now);
}

std::optional<absl::Time> Hook::Impl::WaitsUntil(const MachineView& view, absl::Time now) const {
  const model::NodeRequest& request = view.request();
  // Its purchase needs no recalling; and what is due in paid time is found anew in each step.
  const bool waits = view.removable_at.has_value() && *request.unneeded_since <= now &&
                     request.launched_at.value_or(now) <= now &&
                     options_.billing_period == absl::ZeroDuration() &&
                     linked_.contains(request.meta.name);
  return waits ? view.removable_at : std::nullopt;
}

void Hook::Impl::NoteSteady(StepContext& context) {
  for (const MachineView& view : context.views) {
    const uint64_t version = view.nodes.empty() ? 0 : context.nodes.VersionOf(*view.node());
    if (version == 0) continue;
    const std::optional<SteadyKind> kind = SteadyKindOf(view);
    if (!kind.has_value()) continue;
    const NodeUse& node = *view.node();
    const std::optional<absl::Time> due =
        node.needed ? std::nullopt : WaitsUntil(view, context.now);
    if (!node.needed && !due.has_value()) continue;
    // A machine of its name may have been lost since the step began.
    if (ledger_.FindByNode(node.node_request, node.provider_id) != view.machine) continue;
    ledger_.MakeSteady(*view.machine, *kind, version, due);
  }
}

}  // namespace fairlead::hook
