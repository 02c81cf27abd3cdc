#include "autoscale-hook/hook.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/caps.h"
#include "autoscale-hook/lifecycle.h"
#include "autoscale-hook/offers.h"
#include "autoscale-hook/planner.h"
#include "autoscale-hook/removal.h"
#include "autoscale-hook/step_context.h"
#include "base/hash.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

// Who a node is for is told to people; a node for a thousand single pods need not name them all.
constexpr size_t kMaxReasonWorkloads = 20;

// A request that was asked to be created and is not visible yet.
struct UnseenRequest {
  model::NodeRequest request;
  absl::Time asked_at;
};

std::string RequestName(const Offer& offer, const std::string& workload, int64_t ordinal) {
  StableHash hash;
  hash.Add(offer.type->name).Add(offer.pool->meta.name).Add(offer.zone);
  hash.Add(static_cast<int64_t>(offer.spot)).Add(workload).Add(ordinal);
  return absl::StrCat("fl-", hash.Hex());
}

// Nodes by the request that they come from. The node named as its request is the one; a second node
// of the same request (a provider that launched twice) can only add a need, which is then told of a
// copy.
class NodesByRequest {
 public:
  explicit NodesByRequest(const std::vector<NodeUse>* nodes) {
    if (nodes == nullptr) return;
    rows_.reserve(nodes->size());
    for (const NodeUse& node : *nodes) {
      if (!node.node_request.empty()) rows_.push_back(&node);
    }
    const auto before = [](const NodeUse* a, const NodeUse* b) {
      return a->node_request < b->node_request;
    };
    if (!std::is_sorted(rows_.begin(), rows_.end(), before)) {
      std::stable_sort(rows_.begin(), rows_.end(), before);
    }
    size_t kept = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (kept > 0 && rows_[kept - 1]->node_request == rows_[i]->node_request) {
        rows_[kept - 1] = Merged(*rows_[kept - 1], *rows_[i]);
      } else {
        rows_[kept++] = rows_[i];
      }
    }
    rows_.resize(kept);
  }

  [[nodiscard]] const NodeUse* Find(const std::string& request) const {
    auto it = std::lower_bound(
        rows_.begin(), rows_.end(), request,
        [](const NodeUse* row, const std::string& name) { return row->node_request < name; });
    return it != rows_.end() && (*it)->node_request == request ? *it : nullptr;
  }
  [[nodiscard]] const std::vector<const NodeUse*>& rows() const { return rows_; }

 private:
  const NodeUse* Merged(const NodeUse& first, const NodeUse& second) {
    NodeUse& merged = merged_.emplace_back(second.name == second.node_request ? second : first);
    merged.needed = first.needed || second.needed;
    return &merged;
  }

  std::vector<const NodeUse*> rows_;
  std::deque<NodeUse> merged_;
};

// So that it still counts against the caps when its type has left the catalogue.
void SetGpuLabels(const InstanceType& type, model::NodeRequest& request) {
  if (type.gpu_count > 0) request.meta.labels.Set(kRequestGpuModelLabel, type.gpu_model);
  request.meta.labels.Set(kRequestGpusLabel, absl::StrCat(type.gpu_count));
}

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

}  // namespace

class Hook::Impl {
 public:
  Impl(HookOptions options, const Catalog* catalog, const Hook& hook)
      : options_(std::move(options)),
        catalog_(*catalog),
        hook_(hook),
        backoff_(options_.backoff_initial, options_.backoff_max) {}

  StepOutput Step(const StepInput& input, Placement& placement);
  absl::StatusOr<model::Node> ExpectedNode(const model::NodeRequest& request,
                                           const std::vector<const model::NodePool*>& pools) const;
  std::vector<std::vector<std::string>> LabelsOnOffer(
      std::vector<const model::NodePool*> pools) const {
    if (pools.empty()) pools.push_back(&default_pool_);
    return hook::LabelsOnOffer(MakeOffers(catalog_, pools));
  }
  std::vector<model::Node> NodesOnOffer(std::vector<const model::NodePool*> pools) const {
    if (pools.empty()) pools.push_back(&default_pool_);
    std::vector<model::Node> nodes;
    for (const Offer& offer : MakeOffers(catalog_, pools)) nodes.push_back(UsableNode(offer, ""));
    return nodes;
  }
  void OnProviderResult(const std::string& name, bool launch, const absl::Status& status,
                        absl::Time now);
  void OnCreateResult(const std::string& name, const absl::Status& status, absl::Time now);

 private:
  std::vector<const model::NodePool*> TakePools(const StepInput& input);
  void TakeRequests(const StepInput& input, const NodesByRequest& nodes, StepContext& context);
  RequestView ViewOf(const model::NodeRequest& stored, absl::Time now);
  void ForgetUnseen(StepContext& context);
  void AdoptOrphans(const NodesByRequest& nodes, StepContext& context);
  model::NodeRequest RequestOf(const NodeUse& orphan, const StepContext& context) const;
  void WriteStatuses(StepContext& context);
  CapUsage UsageOf(const StepContext& context) const;
  void BuyForDemand(const Demand& demand, Placement& placement, StepContext& context);
  model::NodeRequest RequestFor(const PlannedNode& node, const Demand& demand);

  HookOptions options_;
  const Catalog& catalog_;
  const Hook& hook_;
  BackOff backoff_;
  model::NodePool default_pool_;
  std::map<std::string, model::NodePool> pools_;  // of the last step, for ExpectedNode
  std::map<std::string, RequestMemory> memory_;   // by request name
  std::map<std::string, UnseenRequest> unseen_;   // by request name
  std::vector<std::string> never_written_;        // refused creations, to be withdrawn
  std::map<std::string, absl::Time> orphans_;     // nodes without their request, since when
  std::set<std::string> names_;                   // taken, of this step
  std::map<std::tuple<std::string, std::string, std::string, bool, std::string>, int64_t> ordinals_;
};

std::vector<const model::NodePool*> Hook::Impl::TakePools(const StepInput& input) {
  std::vector<const model::NodePool*> pools = input.pools;
  if (pools.empty()) pools.push_back(&default_pool_);
  std::map<std::string, model::NodePool> seen;
  for (const model::NodePool* pool : pools) {
    auto known = pools_.find(pool->meta.name);
    if (known != pools_.end() && PoolDigest(known->second) != PoolDigest(*pool)) {
      backoff_.PoolChanged(pool->meta.name,
                           pool->provider.empty() ? options_.provider : pool->provider);
    }
    seen.emplace(pool->meta.name, *pool);
  }
  pools_ = std::move(seen);
  return pools;
}

RequestView Hook::Impl::ViewOf(const model::NodeRequest& stored, absl::Time now) {
  auto [it, added] = memory_.try_emplace(stored.meta.name);
  RequestMemory& memory = it->second;
  if (added || memory.uid != stored.meta.uid) {
    memory = RequestMemory();
    memory.uid = stored.meta.uid;
    memory.first_seen = now;
  }
  RequestView view;
  view.memory = &memory;
  view.failed_is_stored = stored.phase == model::NodeRequestPhase::kFailed;
  view.request = stored;
  if (memory.unconfirmed.has_value()) {
    if (SameStatus(*memory.unconfirmed, stored)) {
      memory.unconfirmed.reset();
    } else {
      model::ObjectMeta meta = stored.meta;
      view.request = *memory.unconfirmed;
      view.request.meta = std::move(meta);
    }
  }
  return view;
}

void Hook::Impl::TakeRequests(const StepInput& input, const NodesByRequest& nodes,
                              StepContext& context) {
  std::set<std::string> present;
  for (const model::NodeRequest* stored : input.requests) {
    present.insert(stored->meta.name);
    unseen_.erase(stored->meta.name);
    RequestView view = ViewOf(*stored, context.now);
    view.node = nodes.Find(stored->meta.name);
    context.views.push_back(std::move(view));
  }
  std::erase_if(memory_, [&](const auto& entry) { return !present.contains(entry.first); });
  ForgetUnseen(context);
  names_ = std::move(present);
  for (const auto& [name, unseen] : unseen_) names_.insert(name);
  ordinals_.clear();
}

void Hook::Impl::ForgetUnseen(StepContext& context) {
  for (std::string& name : std::exchange(never_written_, {})) {
    context.out.withdrawn.push_back(std::move(name));
  }
  for (auto it = unseen_.begin(); it != unseen_.end();) {
    const absl::Time end = it->second.asked_at + options_.launch_timeout;
    if (context.now < end) {
      context.WakeAt(end);
      ++it;
      continue;
    }
    context.out.withdrawn.push_back(it->first);
    it = unseen_.erase(it);
  }
}

void Hook::Impl::WriteStatuses(StepContext& context) {
  for (RequestView& view : context.views) {
    RequestMemory& memory = *view.memory;
    const bool retry =
        memory.unconfirmed.has_value() && context.now >= memory.written_at + kWriteRetry;
    if (view.dirty || retry) {
      memory.unconfirmed = view.request;
      memory.written_at = context.now;
      context.out.actions.push_back({0, model::UpdateNodeRequestStatus{view.request}});
    }
    if (memory.unconfirmed.has_value()) context.WakeAt(memory.written_at + kWriteRetry);
  }
}

CapUsage Hook::Impl::UsageOf(const StepContext& context) const {
  CapUsage usage;
  for (const RequestView& view : context.views) {
    if (CountsAgainstCaps(view.request, view.registered())) usage.Add(view.request, catalog_);
  }
  for (const auto& [name, unseen] : unseen_) usage.Add(unseen.request, catalog_);
  return usage;
}

// What a node's labels, the catalogue and its pool tell of the request that it came from.
model::NodeRequest Hook::Impl::RequestOf(const NodeUse& orphan, const StepContext& context) const {
  model::NodeRequest request;
  request.meta.name = orphan.node_request;
  request.pool = orphan.pool;
  request.instance_type = orphan.instance_type;
  request.zone = orphan.zone;
  request.spot = orphan.spot;
  request.provider = options_.provider;
  for (const model::NodePool* pool : context.pools) {
    if (pool->meta.name == orphan.pool && !pool->provider.empty()) {
      request.provider = pool->provider;
    }
  }
  const InstanceType* type = catalog_.Find(orphan.instance_type);
  if (type == nullptr) return request;  // its price and its GPUs are not known
  const std::optional<int64_t>& price =
      orphan.spot ? type->spot_micro_usd : type->on_demand_micro_usd;
  request.price_micro_usd_per_hour = price.value_or(0);
  SetGpuLabels(*type, request);
  return request;
}

// A node of ours whose request object is gone (deleted by force) is on nobody's bill and would
// never be given back: its request is written anew under the same name, which makes it the node's
// own again, and everything else follows (I5).
void Hook::Impl::AdoptOrphans(const NodesByRequest& nodes, StepContext& context) {
  std::map<std::string, absl::Time> seen;
  for (const NodeUse* row : nodes.rows()) {
    const NodeUse& node = *row;
    const std::string& name = node.node_request;
    // Without the labels that we launch with it is somebody's imitation, and not to be touched.
    const bool ours = node.registered && node.name == name && !node.instance_type.empty();
    if (!ours || names_.contains(name)) continue;
    auto known = orphans_.find(name);
    const absl::Time since = known == orphans_.end() ? context.now : known->second;
    if (context.now < since + kMissingGrace) {
      seen.emplace(name, since);
      context.WakeAt(since + kMissingGrace);
      continue;
    }
    model::NodeRequest request = RequestOf(node, context);
    names_.insert(name);
    unseen_[name] = {request, context.now};
    context.WakeAt(context.now + options_.launch_timeout);
    context.Do(model::CreateNodeRequest{request});
    context.out.created.push_back({std::move(request), model::Node(), /*adopted=*/true});
  }
  orphans_ = std::move(seen);
}

// The name comes from the decision: type, pool, zone, capacity type, first workload, and the
// smallest ordinal that no request has. A repeated creation of the same decision is a conflict.
model::NodeRequest Hook::Impl::RequestFor(const PlannedNode& node, const Demand& demand) {
  const Offer& offer = node.offer;
  model::NodeRequest request;
  request.pool = offer.pool->meta.name;
  request.provider = KeyOf(offer, options_.provider).provider;
  request.instance_type = offer.type->name;
  request.zone = offer.zone;
  request.spot = offer.spot;
  request.price_micro_usd_per_hour = offer.price_micro_usd_per_hour;
  std::string first;
  for (const auto& [item, pods] : node.pods_of_item) {
    if (first.empty()) {
      first = demand[item].workload;
      request.queue = demand[item].queue;
    }
    if (request.reason_workloads.size() < kMaxReasonWorkloads) {
      request.reason_workloads.push_back(demand[item].workload);
    }
  }
  int64_t& ordinal = ordinals_[{offer.type->name, request.pool, offer.zone, offer.spot, first}];
  do {
    request.meta.name = RequestName(offer, first, ordinal++);
  } while (!names_.insert(request.meta.name).second);
  SetGpuLabels(*offer.type, request);
  return request;
}

void Hook::Impl::BuyForDemand(const Demand& demand, Placement& placement, StepContext& context) {
  StepOutput& out = context.out;
  for (const DemandItem& item : demand) {
    DemandOutcome outcome;
    outcome.workload = item.workload;
    out.outcomes.push_back(std::move(outcome));
  }
  if (demand.empty() || !options_.enabled) return;

  PlanInput plan_input;
  plan_input.demand = &demand;
  for (Offer& offer : MakeOffers(catalog_, context.pools)) {
    const auto rest = backoff_.Resting(KeyOf(offer, options_.provider), context.now);
    if (rest.has_value()) {
      plan_input.resting.push_back({std::move(offer), rest->until, rest->failure});
    } else {
      plan_input.offers.push_back(std::move(offer));
    }
  }
  plan_input.caps = CapsLeft::Of({options_.cluster_gpu_limit, options_.gpu_limit_by_model,
                                  options_.cost_limit_micro_usd_per_hour},
                                 UsageOf(context), context.pools);
  plan_input.max_nodes = options_.max_new_requests_per_step;
  const Plan plan = MakePlan(plan_input, placement);
  if (plan.retry_at.has_value()) context.WakeAt(*plan.retry_at);
  if (plan.more_next_step) context.WakeAt(context.now);

  std::vector<std::string> names;
  for (const PlannedNode& node : plan.nodes) {
    model::NodeRequest request = RequestFor(node, demand);
    names.push_back(request.meta.name);
    unseen_[request.meta.name] = {request, context.now};
    context.WakeAt(context.now + options_.launch_timeout);
    context.Do(model::CreateNodeRequest{request});
    out.created.push_back({request, UsableNode(node.offer, request.meta.name)});
  }
  for (size_t i = 0; i < demand.size(); ++i) {
    DemandOutcome& outcome = out.outcomes[i];
    outcome.code = plan.items[i].code;
    outcome.details = plan.items[i].details;
    for (size_t node : plan.items[i].nodes) outcome.node_requests.push_back(names[node]);
    if (!outcome.node_requests.empty()) outcome.expected_at = context.now + options_.expected_boot;
  }
}

StepOutput Hook::Impl::Step(const StepInput& input, Placement& placement) {
  StepOutput out;
  const std::vector<const model::NodePool*> pools = TakePools(input);
  const NodesByRequest nodes(input.nodes);
  StepContext context{options_, hook_,    absl::FromUnixSeconds(absl::ToUnixSeconds(input.now)),
                      pools,    backoff_, {},
                      out,      {}};
  if (options_.enabled) {
    TakeRequests(input, nodes, context);
    for (RequestView& view : context.views) AdvanceLifecycle(view, context);
    RemoveUnneeded(context);
    WriteStatuses(context);
    AdoptOrphans(nodes, context);
  }
  static const Demand kNone;
  BuyForDemand(input.demand == nullptr ? kNone : *input.demand, placement, context);
  std::move(context.actions.begin(), context.actions.end(), std::back_inserter(out.actions));
  out.wake_at = UpToWholeSecond(out.wake_at);
  return out;
}

absl::StatusOr<model::Node> Hook::Impl::ExpectedNode(
    const model::NodeRequest& request, const std::vector<const model::NodePool*>& pools) const {
  const InstanceType* type = catalog_.Find(request.instance_type);
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
  return UsableNode({type, pool, request.zone, request.spot, request.price_micro_usd_per_hour},
                    request.meta.name);
}

void Hook::Impl::OnProviderResult(const std::string& name, bool launch, const absl::Status& status,
                                  absl::Time now) {
  auto it = memory_.find(name);
  if (it == memory_.end()) return;
  RequestMemory& memory = it->second;
  if (launch) {
    memory.launch_answer = status;
  } else if (status.ok() || absl::IsNotFound(status)) {
    memory.terminated = memory.terminate_sent.has_value();
    memory.terminate_retry_at.reset();
  } else {
    memory.terminate_retry_at = now + kProviderRetry;
  }
}

void Hook::Impl::OnCreateResult(const std::string& name, const absl::Status& status,
                                absl::Time now) {
  // Done, there already, or unknown: the watch will show it.
  if (status.ok() || absl::IsAlreadyExists(status) || absl::IsUnavailable(status) ||
      absl::IsDeadlineExceeded(status)) {
    return;
  }
  auto it = unseen_.find(name);
  if (it == unseen_.end()) return;
  backoff_.Failed(KeyOf(it->second.request), FailureClass::kOther, now);
  unseen_.erase(it);
  never_written_.push_back(name);
}

Hook::Hook(HookOptions options, const Catalog* catalog)
    : impl_(std::make_unique<Impl>(std::move(options), catalog, *this)) {}
Hook::~Hook() = default;

StepOutput Hook::Step(const StepInput& input, Placement& placement) {
  return impl_->Step(input, placement);
}

absl::StatusOr<model::Node> Hook::ExpectedNode(
    const model::NodeRequest& request, const std::vector<const model::NodePool*>& pools) const {
  return impl_->ExpectedNode(request, pools);
}

std::vector<std::vector<std::string>> Hook::LabelsOnOffer(
    const std::vector<const model::NodePool*>& pools) const {
  return impl_->LabelsOnOffer(pools);
}

std::vector<model::Node> Hook::NodesOnOffer(
    const std::vector<const model::NodePool*>& pools) const {
  return impl_->NodesOnOffer(pools);
}

void Hook::OnProviderResult(const std::string& request_name, bool launch,
                            const absl::Status& status, absl::Time now) {
  impl_->OnProviderResult(request_name, launch, status, now);
}

void Hook::OnCreateResult(const std::string& request_name, const absl::Status& status,
                          absl::Time now) {
  impl_->OnCreateResult(request_name, status, now);
}

}  // namespace fairlead::hook
