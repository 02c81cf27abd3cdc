// From demand to requests: the items that may be planned now, the plan, and the outcome of the
// rest.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/machines/announced.h"
#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/provisioning/plan_sets.h"
#include "base/hash.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using verdict::Code;

// The workloads of a node are shown to users; a node for a thousand single pods need not name them
// all.
constexpr size_t kMaxReasonWorkloads = 20;
constexpr absl::string_view kRateIsUsedUp = "the rate of provisioning is used up; will be retried";
constexpr char kCouldBeServed[] = "nodes can be provisioned for it now; will be retried";

std::string RequestName(const std::string& prefix, const Offer& offer, const std::string& workload,
                        int64_t ordinal) {
  StableHash hash;
  hash.Add(offer.type->name).Add(offer.pool->meta.name).Add(offer.zone);
  hash.Add(static_cast<int64_t>(offer.spot)).Add(workload).Add(ordinal);
  if (offer.reservation != nullptr) hash.Add(offer.reservation->name);
  return absl::StrCat(prefix, hash.Hex());
}

// A whole plan under what the hook has learned, as Hook::Impl::GuardedPlacement.
class GuardedRehearsal final : public Rehearsal {
 public:
  GuardedRehearsal(std::unique_ptr<Rehearsal> rehearsal, const ObservedShapes& shapes,
                   const ProvisioningGuard& guard, absl::Time now)
      : rehearsal_(std::move(rehearsal)), shapes_(shapes), guard_(guard), now_(now) {}

  int AddNode(const model::Node& node) override {
    model::Node as_observed = node;
    if (shapes_.Knows(node)) shapes_.Apply(as_observed);
    const int number = rehearsal_->AddNode(as_observed);
    kinds_.resize(static_cast<size_t>(number));
    kinds_.push_back({std::string(node.meta.labels.Get(model::kInstanceTypeLabel)),
                      std::string(node.meta.labels.Get(model::kPoolLabel))});
    return number;
  }
  int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                int64_t count) override {
    return IsRefused(*spec, node) ? 0 : rehearsal_->Place(spec, node, count);
  }
  void Know(const std::shared_ptr<const model::PodSpec>& spec) override { rehearsal_->Know(spec); }
  std::vector<std::pair<int, int64_t>> PlaceBest(
      const std::shared_ptr<const model::PodSpec>& spec, int64_t count,
      absl::FunctionRef<bool(int)> passed_over) override {
    return rehearsal_->PlaceBest(
        spec, count, [&](int node) { return passed_over(node) || IsRefused(*spec, node); });
  }
  int64_t MostThatFit(const std::shared_ptr<const model::PodSpec>& spec, int node,
                      int64_t limit) override {
    return IsRefused(*spec, node) ? 0 : rehearsal_->MostThatFit(spec, node, limit);
  }
  std::optional<std::vector<std::string>> DomainLabels(
      const std::shared_ptr<const model::PodSpec>& spec) override {
    return rehearsal_->DomainLabels(spec);
  }
  bool OthersRefuse(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    return !IsRefused(*spec, node) && rehearsal_->OthersRefuse(spec, node);
  }
  std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    if (IsRefused(*spec, node)) {
      return "nodes were provisioned for such pods and did not help; will be retried";
    }
    return rehearsal_->WhyNot(spec, node);
  }
  [[nodiscard]] size_t Mark() const override { return rehearsal_->Mark(); }
  void RollbackTo(size_t mark) override { rehearsal_->RollbackTo(mark); }
  [[nodiscard]] int64_t work() const override { return rehearsal_->work(); }

 private:
  struct Kind {
    std::string type, pool;
  };
  [[nodiscard]] bool IsRefused(const model::PodSpec& spec, int node) const {
    const Kind& kind = kinds_[static_cast<size_t>(node)];
    return guard_.RefusedUntil(spec, kind.type, kind.pool, now_).has_value();
  }

  std::unique_ptr<Rehearsal> rehearsal_;
  const ObservedShapes& shapes_;
  const ProvisioningGuard& guard_;
  absl::Time now_;
  std::vector<Kind> kinds_;  // by number
};

}  // namespace

// The engine's placement with the hook's experience: nodes are as large as the last of their kind,
// and types that did not help pods are not provisioned for them.
class Hook::Impl::GuardedPlacement final : public Placement {
 public:
  GuardedPlacement(Placement& placement, const ObservedShapes& shapes,
                   const ProvisioningGuard& guard, absl::Time now)
      : placement_(placement), shapes_(shapes), guard_(guard), now_(now) {}

  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override {
    if (guard_.RefusedUntil(*spec, node.meta.labels.Get(model::kInstanceTypeLabel),
                            node.meta.labels.Get(model::kPoolLabel), now_)) {
      return 0;
    }
    if (!shapes_.Knows(node)) return placement_.CountThatFit(node, already, spec, limit);
    model::Node as_observed = node;
    shapes_.Apply(as_observed);
    return placement_.CountThatFit(as_observed, already, spec, limit);
  }
  std::unique_ptr<Rehearsal> Rehearse() override {
    std::unique_ptr<Rehearsal> rehearsal = placement_.Rehearse();
    if (rehearsal == nullptr) return nullptr;
    return std::make_unique<GuardedRehearsal>(std::move(rehearsal), shapes_, guard_, now_);
  }

 private:
  Placement& placement_;
  const ObservedShapes& shapes_;
  const ProvisioningGuard& guard_;
  absl::Time now_;
};

// The name comes from the decision: type, pool, zone, capacity type, first workload, and the
// smallest ordinal that no request has. Repeating a creation is a conflict.
model::NodeRequest Hook::Impl::NewRequest(const Offer& offer, const std::string& first) {
  model::NodeRequest request;
  request.pool = offer.pool->meta.name;
  request.provider = KeyOf(offer, options_.provider).provider;
  request.instance_type = offer.type->name;
  request.zone = offer.zone;
  request.spot = offer.spot;
  if (offer.reservation != nullptr) request.reservation = offer.reservation->name;
  request.price_micro_usd_per_hour = offer.price_micro_usd_per_hour;
  request.finalizers = {model::kMachineFinalizer};
  int64_t& ordinal = ordinals_[{offer.type->name, request.pool, offer.zone, offer.spot,
                                request.reservation, first}];
  do {
    request.meta.name = UsedName(options_.derived_names.get(),
                                 RequestName(options_.request_prefix, offer, first, ordinal++));
  } while (!ledger_.IsFree(request.meta.name));
  request.meta.labels = options_.node_labels;
  SetGpuLabels(*offer.type, request);
  SetAnnounced(UsableNode(offer, "").allocatable, request);
  return request;
}

model::NodeRequest Hook::Impl::RequestFor(const PlannedNode& node, const Planned& planned) {
  std::string first, queue;
  std::vector<std::string> reasons;
  for (const auto& [outcome, pods] : node.pods_of_item) {
    const DemandItem& item = *planned[outcome];
    if (first.empty()) {
      first = item.workload;
      queue = item.queue;
    }
    if (reasons.size() < kMaxReasonWorkloads) reasons.push_back(item.workload);
  }
  model::NodeRequest request = NewRequest(node.offer, first);
  request.queue = std::move(queue);
  request.reason_workloads = std::move(reasons);
  return request;
}

namespace {

// The machines of atomic sets that may be there, by the set's id.
std::map<std::string, std::vector<const MachineView*>> MembersOfSets(const StepContext& context) {
  std::map<std::string, std::vector<const MachineView*>> members;
  for (const MachineView& view : context.views) {
    const std::optional<LaunchSet> set = LaunchSetOf(view.request());
    if (set.has_value() && set->atomic && view.machine->Promises()) {
      members[set->id].push_back(&view);
    }
  }
  return members;
}

ProvisioningGuard::Ordered OrderedAs(const model::NodeRequest& request) {
  return {request.meta.name, request.instance_type, request.pool};
}

}  // namespace

// After a restart the requests say for which workloads they were made. The nodes of a gang are one
// purchase.
void Hook::Impl::RecallPurchases(const Demand& demand, const DemandMembers* members,
                                 StepContext& context) {
  std::map<std::string, std::vector<const MachineView*>> sets;
  std::map<std::string, const DemandItem*> wanted;
  const auto find = [&](const std::string& workload) -> const DemandItem* {
    if (const auto item = wanted.find(workload); item != wanted.end()) return item->second;
    for (const bool is_group : {true, false}) {
      if (members == nullptr) break;
      const std::optional<size_t> item = members->Find(is_group, workload);
      if (item.has_value()) return &demand[*item];
    }
    return nullptr;
  };
  for (const MachineView& view : context.views) {
    const model::NodeRequest& request = view.request();
    const bool unneeded = view.known_unneeded() && view.machine->Promises() && !view.tainted();
    const bool unhelpful = request.failure == ProvisioningGuard::kUnhelpful;
    if ((!unneeded && !unhelpful) || linked_.contains(request.meta.name)) continue;
    if (wanted.empty()) {
      for (const DemandItem& item : demand) wanted[item.workload] = &item;
    }
    std::vector<ProvisioningGuard::Ordered> nodes = {OrderedAs(request)};
    if (const auto set = LaunchSetOf(request); unneeded && set.has_value() && set->atomic) {
      if (sets.empty()) sets = MembersOfSets(context);
      const std::vector<const MachineView*>& all = sets[set->id];
      // Without all of them it is not known whether they would have been enough.
      if (std::ssize(all) < set->size) continue;
      nodes.clear();
      for (const MachineView* member : all) nodes.push_back(OrderedAs(member->request()));
    }
    for (const std::string& workload : request.reason_workloads) {
      const DemandItem* found = find(workload);
      if (found == nullptr) continue;
      for (const ProvisioningGuard::Ordered& node : nodes) linked_.insert(node.request);
      if (unhelpful) {
        guard_.Restore(*found, nodes.front(),
                       std::min(request.failed_at.value_or(context.now), context.now));
        continue;
      }
      DemandItem item = *found;
      item.workload = workload;
      guard_.Remember(item, nodes, request.unneeded_since.value_or(context.now));
    }
  }
}

// Judges whether former purchases helped.
void Hook::Impl::JudgePurchases(const Demand& demand, const DemandMembers* members,
                                StepContext& context) {
  const auto use_of = [&](const std::string& name) {
    const Machine* machine = ledger_.Find(name);
    if (machine == nullptr || !machine->Promises()) return ProvisioningGuard::Use::kGone;
    const NodeList uses = context.nodes.Of(*machine);
    bool usable = false, needed = false;
    for (const NodeUse* use : uses) {
      if (use->removal_tainted) return ProvisioningGuard::Use::kUnknown;
      usable = usable || use->ready;
      needed = needed || use->needed;
    }
    if (uses.empty() || (needed && !usable)) return ProvisioningGuard::Use::kUnknown;
    return needed ? ProvisioningGuard::Use::kNeeded : ProvisioningGuard::Use::kUnneeded;
  };
  guard_.Judge(demand, members, use_of, context.now);
  const auto is_gone = [&](const std::string& name) { return ledger_.Find(name) == nullptr; };
  guard_.ForgetWitnesses(is_gone);
  if (const auto gone = ledger_.TakeGone()) {
    for (const std::string& name : *gone) {
      if (is_gone(name)) linked_.erase(name);
    }
  } else {
    absl::erase_if(linked_, is_gone);
  }
}

Hook::Impl::Held Hook::Impl::WhyHeld(const DemandItem& item, StepContext& context) {
  if (const std::optional<absl::Time> rest = guard_.QueueRestsUntil(item.queue, context.now)) {
    context.WakeAt(*rest);
    return {absl::StrCat("the last nodes that were provisioned for queue ", item.queue,
                         " did not help; will be retried"),
            Service::kRefused};
  }
  if (!item.charged) return {};  // nothing is requested for it
  const absl::Time allowed = rate_.AllowedAt(item, context.now);
  if (context.now >= allowed) return {};
  context.WakeAt(allowed);
  return {std::string(kRateIsUsedUp), Service::kOpen};
}

std::vector<Hook::Impl::Held> Hook::Impl::SelectItems(const Demand& demand, StepContext& context,
                                                      std::vector<size_t>& items) {
  std::vector<Held> held(demand.size());
  for (size_t i = 0; i < demand.size(); ++i) {
    // Nothing is requested for what is not charged, so there is nothing to gather.
    if (demand[i].charged && gathering_.Holds(demand[i])) {
      held[i].why = "nodes are requested when no more demand comes";
    } else if (held[i] = WhyHeld(demand[i], context); held[i].why.empty()) {
      items.push_back(i);
    }
  }
  return held;
}

std::vector<Hook::Impl::PartPlan> Hook::Impl::DivideIntoParts(const Demand& demand,
                                                              const std::vector<size_t>& items,
                                                              const StepContext& context) {
  std::vector<PartPlan> parts;
  using Key = std::pair<bool, std::vector<const QueueCap*>>;
  std::map<Key, size_t> part_of;
  for (const size_t i : items) {
    Key key{demand[i].charged, {}};
    for (const QueueCap& cap : context.queue_caps) {
      if (cap.queues.contains(demand[i].queue)) key.second.push_back(&cap);
    }
    const auto [known, added] = part_of.try_emplace(key, parts.size());
    if (added) {
      PartPlan& part = parts.emplace_back();
      part.charged = key.first;
      part.queue_caps = std::move(key.second);
    }
    parts[known->second].items.push_back(i);
  }
  std::stable_partition(parts.begin(), parts.end(),
                        [](const PartPlan& part) { return part.charged; });
  return parts;
}

std::unique_ptr<Placement> Hook::Impl::Guarded(Placement& placement, absl::Time now) const {
  return std::make_unique<GuardedPlacement>(placement, shapes_, guard_, now);
}

void Hook::Impl::AddOffers(const std::vector<const model::NodePool*>& pools, absl::Time now,
                           PlanInput& input) const {
  for (Offer& offer : MakeOffers(catalogs_, pools)) {
    if (!IsKnownProvider(offer.pool->provider)) continue;
    const auto rest = backoff_.Resting(KeyOf(offer, options_.provider), now);
    if (rest.has_value()) {
      input.resting.push_back({std::move(offer), rest->until, rest->failure, rest->message});
    } else {
      input.offers.push_back(std::move(offer));
    }
  }
}

PlanInput Hook::Impl::MakePlanInput(const StepContext& context,
                                    const std::vector<const QueueCap*>& queue_caps,
                                    CapUsage& usage) {
  PlanInput input;
  AddOffers(context.pools, context.now, input);
  usage = UsageOf(context);
  input.caps = CapsLeftBeside(usage, context.pools);
  input.caps.AddReservations(input.offers, usage);
  for (const QueueCap* cap : queue_caps) {
    const CapUsage of_queue = UsageOf(context, &cap->queues);
    CapLimits limits;
    limits.gpus = cap->gpus;
    limits.micro_usd_per_hour = cap->micro_usd_per_hour;
    const CapsLeft left = CapsLeft::Of(limits, of_queue, {});
    const std::string name = absl::StrCat("of queue ", cap->queue, " ");
    if (left.gpus < input.caps.gpus) {
      input.caps.gpus = left.gpus;
      input.gpu_cap_of = name;
    }
    if (left.micro_usd_per_hour < input.caps.micro_usd_per_hour) {
      input.caps.micro_usd_per_hour = left.micro_usd_per_hour;
      input.cost_cap_of = name;
      usage.unpriced = of_queue.unpriced;
    }
  }
  input.max_nodes = options_.max_new_requests_per_step;
  return input;
}

// A workload keeps all of its nodes or none, so that a gang is never cut. What a cap held beside
// the dropped nodes is planned in the next step, without the demand that is beyond its rate.
void Hook::Impl::KeepToRate(const Demand& demand, Plan& plan, StepContext& context) {
  std::vector<bool> kept(plan.nodes.size(), false);
  bool dropped = false;
  for (ItemOutcome& outcome : plan.items) {
    std::vector<size_t> more = outcome.nodes;
    std::erase_if(more, [&](size_t node) { return kept[node]; });
    if (more.empty()) continue;
    const DemandItem& item = demand[outcome.item];
    if (Held held = WhyHeld(item, context); !held.why.empty()) {
      outcome.code = verdict::Code::kInsufficientCapacity;
      outcome.nodes.clear();
      outcome.details = {std::move(held.why)};
      outcome.open = held.service == Service::kOpen;
      dropped = true;
      continue;
    }
    for (const size_t node : more) {
      kept[node] = true;
      rate_.Provisioned(item, context.now);
    }
    guard_.Provisioned(item.queue, context.now);
  }
  std::vector<size_t> place(plan.nodes.size());
  std::vector<PlannedNode> nodes;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!kept[i]) continue;
    place[i] = nodes.size();
    std::erase_if(plan.nodes[i].pods_of_item,
                  [&](const auto& pods) { return plan.items[pods.first].nodes.empty(); });
    nodes.push_back(std::move(plan.nodes[i]));
  }
  for (ItemOutcome& item : plan.items) {
    for (size_t& node : item.nodes) node = place[node];
  }
  plan.nodes = std::move(nodes);
  if (!dropped) return;
  for (ItemOutcome& outcome : plan.items) {
    if (!outcome.capped || !WhyHeld(demand[outcome.item], context).why.empty()) continue;
    outcome.code = verdict::Code::kInsufficientCapacity;
    outcome.details = {kNextStep};
    outcome.open = true;
    plan.more_next_step = true;
  }
}

// The workloads for which the plan has nodes, by name.
Hook::Impl::Planned Hook::Impl::NamePlanned(const Plan& plan, const Demand& demand,
                                            const std::vector<size_t>& indexes,
                                            const DemandMembers* members) {
  Planned planned(plan.items.size());
  std::vector<std::string> names;  // of the present item
  for (size_t begin = 0, end = 0; begin < plan.items.size(); begin = end) {
    const size_t item = plan.items[begin].item;
    int64_t needed = 0, passed = 0;
    for (end = begin; end < plan.items.size() && plan.items[end].item == item; ++end) {
      passed += plan.items[end].members;
      if (!plan.items[end].nodes.empty()) needed = passed;
    }
    if (needed == 0) continue;
    names = {demand[item].workload};
    if (needed > 1 && members != nullptr) names = members->Names(indexes[item], needed);
    passed = 0;
    for (size_t i = begin; i < end; ++i) {
      if (!plan.items[i].nodes.empty()) {
        planned[i] = std::make_unique<DemandItem>(demand[item]);
        planned[i]->members = 1;
        const auto place = std::min(static_cast<size_t>(passed), names.size() - 1);
        planned[i]->workload = names[place];
      }
      passed += plan.items[i].members;
    }
  }
  return planned;
}

std::vector<model::NodeRequest> Hook::Impl::RequestsFor(const Plan& plan, const Planned& planned) {
  std::vector<model::NodeRequest> requests;
  for (const PlannedNode& node : plan.nodes) {
    model::NodeRequest& request = requests.emplace_back(RequestFor(node, planned));
    for (const auto& [outcome, pods] : node.pods_of_item) {
      const std::string& alternative = plan.items[outcome].alternative;
      if (alternative.empty()) continue;
      request.meta.annotations.Set(kAlternativeAnnotation, alternative);
      break;
    }
  }
  const auto is_whole = [&](size_t outcome) {
    return planned[outcome]->atomic || !planned[outcome]->domains.empty();
  };
  MarkPlanSets(plan, is_whole, requests, options_.derived_names.get());
  return requests;
}

void Hook::Impl::Create(model::NodeRequest request, const Offer& offer, StepContext& context) {
  ledger_.CreationSent(request, context.now);
  linked_.insert(request.meta.name);
  context.WakeAt(ledger_.Find(request.meta.name)->creation.due());
  context.Do(model::CreateNodeRequest{request});
  model::Node expected = UsableNode(offer, request.meta.name);
  shapes_.Apply(expected);
  context.out.created.push_back({std::move(request), std::move(expected)});
}

void Hook::Impl::EmitPlan(const Plan& plan, const Planned& planned, StepContext& context) {
  std::map<size_t, std::vector<ProvisioningGuard::Ordered>> by_outcome;
  std::vector<model::NodeRequest> requests = RequestsFor(plan, planned);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    model::NodeRequest& request = requests[i];
    for (const auto& [outcome, pods] : node.pods_of_item) {
      by_outcome[outcome].push_back({request.meta.name, request.instance_type, request.pool});
    }
    Create(std::move(request), node.offer, context);
  }
  for (const auto& [outcome, nodes] : by_outcome) guard_.Remember(*planned[outcome], nodes);
}

// Why nothing can be provisioned for the item, if the reason is experience and not the catalogue.
void Hook::Impl::ExplainGuard(const DemandItem& item, const PlanInput& input, Placement& placement,
                              DemandOutcome& outcome, StepContext& context) {
  std::vector<std::string> found;
  const auto add = [&found](std::string detail) {
    if (!detail.empty() && std::find(found.begin(), found.end(), detail) == found.end()) {
      found.push_back(std::move(detail));
    }
  };
  for (const Offer& offer : input.offers) {
    const model::Node node = UsableNode(offer, "");
    for (const verdict::DemandClass& pod_class : item.classes) {
      if (pod_class.spec == nullptr) continue;
      const auto until = guard_.RefusedUntil(*pod_class.spec, offer.type->name,
                                             offer.pool->meta.name, context.now);
      if (!until.has_value() && !shapes_.Knows(node)) continue;
      if (placement.CountThatFit(node, {}, pod_class.spec, 1) == 0) continue;
      add(shapes_.Describe(node));
      if (!until.has_value()) continue;
      context.WakeAt(*until);
      add(absl::StrCat("a node of type ", offer.type->name,
                       " was provisioned for such pods and did not help; will be retried"));
    }
  }
  constexpr size_t kMaxDetails = 3;
  if (found.size() > kMaxDetails) found.resize(kMaxDetails);
  for (std::string& detail : found) outcome.details.push_back(std::move(detail));
}

void Hook::Impl::MakePartPlan(const Demand& demand, Placement& placement, StepContext& context,
                              PartPlan& part) {
  const bool all = part.items.size() == demand.size();
  if (!all) {
    for (const size_t i : part.items) part.copy.push_back(demand[i]);
  }
  part.demand = all ? &demand : &part.copy;
  part.input = MakePlanInput(context, part.queue_caps, part.usage);
  part.input.demand = part.demand;
  const std::unique_ptr<Placement> guarded = Guarded(placement, context.now);
  part.plan = MakePlan(part.input, *guarded);
  if (part.plan.retry_at.has_value()) context.WakeAt(*part.plan.retry_at);
  part.planned.resize(part.plan.items.size());
}

void Hook::Impl::OrderPlan(PartPlan& part, const DemandMembers* members, StepContext& context) {
  KeepToRate(*part.demand, part.plan, context);
  if (part.plan.more_next_step) context.WakeAt(context.now);
  part.planned = NamePlanned(part.plan, *part.demand, part.items, members);
  part.first_new = context.out.created.size();
  EmitPlan(part.plan, part.planned, context);
}

void Hook::Impl::ReportItem(const DemandItem& item, PartPlan& part, Placement& placement,
                            StepContext& context) {
  const size_t number = part.next_item++;
  for (; part.next_outcome < part.plan.items.size() &&
         part.plan.items[part.next_outcome].item == number;
       ++part.next_outcome) {
    const ItemOutcome& found = part.plan.items[part.next_outcome];
    DemandOutcome& outcome = context.out.outcomes.emplace_back();
    outcome.workload = item.workload;
    outcome.members = found.members;
    const bool served = !found.nodes.empty() || found.code == Code::kNodesRequested;
    outcome.service = served ? Service::kServed : found.open ? Service::kOpen : Service::kRefused;
    if (served && !item.charged) {
      outcome.details = {kCouldBeServed};
      continue;
    }
    outcome.code = found.code;
    outcome.details = found.details;
    outcome.selects_none = found.selects_none;
    const auto& planned = part.planned[part.next_outcome];
    if (planned != nullptr) outcome.workload = planned->workload;
    for (const size_t node : found.nodes) {
      outcome.node_requests.push_back(context.out.created[part.first_new + node].request.meta.name);
    }
    for (const size_t node : found.nodes) {
      const model::NodeRequest& request = context.out.created[part.first_new + node].request;
      outcome.expected_at = std::max(outcome.expected_at.value_or(absl::InfinitePast()),
                                     context.now + ExpectedBoot(request));
    }
    if (outcome.code == Code::kNoInstanceTypeFits) {
      ExplainGuard(item, part.input, placement, outcome, context);
      ExplainDevices(item, part.input, placement, outcome);
      for (const std::string& problem : pool_problems_) outcome.details.push_back(problem);
    }
    if (outcome.code == Code::kCostCapReached && part.usage.unpriced > 0) {
      outcome.details.push_back(absl::StrCat(
          "nodes of unknown price: ", part.usage.unpriced, ", each counted as ",
          FormatDollars(part.usage.assumed_micro_usd_per_hour), " an hour, the dearest type"));
    }
  }
}

void Hook::Impl::Provision(const Demand& demand, const DemandMembers* members, Placement& placement,
                           StepContext& context) {
  explained_devices_ = 0;
  std::vector<Held> held(demand.size());
  std::vector<PartPlan> parts;
  std::vector<PartPlan*> part_of(demand.size(), nullptr);
  if (options_.enabled) {
    std::vector<size_t> items;
    held = SelectItems(demand, context, items);
    parts = DivideIntoParts(demand, items, context);
    // Each with what the caps leave after those before it.
    for (PartPlan& part : parts) {
      MakePartPlan(demand, placement, context, part);
      if (part.charged) OrderPlan(part, members, context);
      for (const size_t i : part.items) part_of[i] = &part;
    }
    TryHeld(demand, placement, held, context);
  }
  for (size_t i = 0; i < demand.size(); ++i) {
    if (part_of[i] != nullptr) {
      ReportItem(demand[i], *part_of[i], placement, context);
      continue;
    }
    DemandOutcome& outcome = context.out.outcomes.emplace_back();
    if (held[i].refused.has_value()) outcome = *std::move(held[i].refused);
    outcome.workload = demand[i].workload;
    outcome.members = demand[i].members;
    if (outcome.service == Service::kRefused) continue;
    outcome.service = held[i].service;
    if (options_.enabled) outcome.details.push_back(std::move(held[i].why));
  }
}

}  // namespace fairlead::hook
