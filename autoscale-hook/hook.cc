#include "autoscale-hook/hook.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/machines/announced.h"
#include "autoscale-hook/machines/lifecycle.h"
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

Hook::Impl::Impl(HookOptions options, const Catalog* catalog, const Hook& hook)
    : options_(std::move(options)),
      catalogs_(catalog, options_.provider),
      hook_(hook),
      backoff_({options_.backoff_initial, options_.backoff_max}),
      gathering_(options_.gathering_quiet, options_.gathering_max),
      reports_(options_.request_prefix),
      rate_(options_.guard),
      guard_(options_.guard) {
  if (options_.provider.empty()) options_.enabled = false;
  default_pool_.labels = options_.node_labels;
}

std::vector<model::OfferedNode> Hook::Impl::NodesOnOffer(
    std::vector<const model::NodePool*> pools) const {
  if (pools.empty()) pools.push_back(&default_pool_);
  CapsLeft all = CapsLeftBeside({}, pools);
  all.nodes_by_reservation = reserved_left_;
  std::vector<model::OfferedNode> nodes;
  for (const Offer& offer : MakeOffers(catalogs_, pools)) {
    if (!Allows(all, offer)) continue;  // one node of it is more than a cap, whatever else runs
    model::OfferedNode& offered = nodes.emplace_back();
    offered.node = UsableNode(offer, "");
    shapes_.Apply(offered.node);
    offered.micro_usd_per_hour = offer.PriceOfChoice();
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
    // One that is made again under its name is another one.
    if (known == pools_.end() || PoolDigest(known->second) != PoolDigest(*pool)) {
      backoff_.PoolChanged(name, pool->provider.empty() ? options_.provider : pool->provider);
      guard_.PoolChanged(name);
      tried_.clear();
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

StepOutput Hook::Impl::Step(const StepInput& input, Placement& placement) {
  static const std::vector<QueueCap> kNoCaps;
  StepOutput out;
  const absl::Time now = absl::FromUnixSeconds(absl::ToUnixSeconds(input.now));
  const std::vector<const model::NodePool*> pools = TakePools(input);
  EndWaits(pools, now);
  const NodesByRow nodes =
      options_.enabled ? SettleRows(input) : NodesByRow(input.nodes, nullptr, ledger_);
  StepContext context{.options = options_,
                      .hook = hook_,
                      .now = now,
                      .pools = pools,
                      .queue_caps = input.queue_caps == nullptr ? kNoCaps : *input.queue_caps,
                      .backoff = backoff_,
                      .ledger = ledger_,
                      .nodes = nodes,
                      .views = {},
                      .lost = {},
                      .out = out,
                      .actions = {},
                      .unproved = {},
                      .witnesses = guard_.witnesses()};
  static const Demand kNone;
  const Demand& demand = input.demand == nullptr ? kNone : *input.demand;
  if (options_.enabled) {
    NodeReplacement::Mark(ledger_, now);
    reports_.SettleUnclaimed(nodes.orphans(), context);
    TakeMachines(context);
    for (MachineView& view : context.views) AdvanceLifecycle(view, context);
    NodeReplacement::Mark(ledger_, now);  // phases have changed
    LearnShapes(context);
    LearnDevices(context);
    LearnOverhead(context);
    RecallPurchases(demand, input.members, context);
    ScaleDown(demand, input.evacuation, context);
    OrderMachines(context);
    out.node_list = node_lists_.Next(context.unproved, context.now, out.wake_at);
    JudgePurchases(demand, input.members, context);
    // Before a machine is told to go, its request must say whether it was of use.
    for (MachineView& view : context.views) {
      if (view.request().phase == model::NodeRequestPhase::kDraining) context.NoteWitness(view);
      context.WriteStatus(view);
    }
    AdoptOrphans(context);
  }
  if (options_.enabled && !input.gathered) {
    gathering_.Update(gathering_.ChangesTo(demand), input.now);
  }
  Provision(demand, input.members, placement, context);
  if (options_.enabled) {
    CountReserved(context);
    NoteSteady(context);
  }
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
      UsableNode({type, pool, request.zone, request.spot, request.price_micro_usd_per_hour,
                  type->FindReservation(request.reservation)},
                 request.meta.name);
  if (!request.reservation.empty()) {
    // It may have left the catalogue, which does not matter to a machine that was launched.
    node.meta.labels.Set(model::kCapacityTypeLabel, request.CapacityType());
    node.meta.labels.Set(model::kReservationLabel, request.reservation);
  }
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

std::shared_ptr<const model::NodeDevices> Hook::DeclaredDevicesOf(
    const model::NodeRequest& request) const {
  return impl_->DeclaredDevicesOf(request);
}

bool Hook::KnowsReservation(const model::NodeRequest& request) const {
  return request.reservation.empty() || impl_->ReservationOf(request) != nullptr;
}

model::StringMap Hook::ReservationLabels(const model::NodeRequest& request) const {
  const Reservation* reservation = impl_->ReservationOf(request);
  return reservation == nullptr ? model::StringMap() : reservation->labels;
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
