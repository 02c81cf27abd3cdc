#include "scheduler/engine/buying.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "scheduler/engine/hypothesis.h"

namespace fairlead::engine {
namespace {

// Millionths of a dollar for seconds at this price an hour, rounded up.
absl::int128 CostOf(int64_t micro_usd_per_hour, absl::Duration time) {
  const absl::int128 seconds = std::max<int64_t>(0, absl::ToInt64Seconds(time));
  return (absl::int128(micro_usd_per_hour) * seconds + 3599) / 3600;
}

int64_t Saturated(absl::int128 amount) {
  return static_cast<int64_t>(std::min(amount, absl::int128(std::numeric_limits<int64_t>::max())));
}

// Of the node on offer, if it would take such a pod if it were empty.
std::optional<model::Resources> AmountsOf(const CycleInputs& in, const model::OfferedNode& offer,
                                          state::PodClassId pod_class) {
  Hypothesis what_if(in.state, in.framework, in.placer.parts_order());
  const state::NodeId node = what_if.AddNode(offer.node);
  if (!what_if.Fits(pod_class, node, framework::Capacity::kEmpty)) return std::nullopt;
  return in.state.node(node).allocatable;
}

}  // namespace

uint64_t KindOfDemand(const state::ClusterState& state, const Outcome& outcome) {
  const state::Workload& workload = state.workload(outcome.workload);
  const TasksToAllocate& step = outcome.step;
  StableHash hash;
  hash.Add(workload.queue).Add(static_cast<int64_t>(workload.preemptible));
  hash.Add(KindOf(state, workload, step).text).Add(static_cast<int64_t>(step.pods.size()));
  if (workload.Active() > 0) hash.Add(workload.ns).Add(workload.name).Add(workload.uid);
  uint64_t last = 0;
  for (const state::PodId pod : step.pods) {
    const uint64_t serial = state.class_of(pod).serial;
    if (std::exchange(last, serial) != serial) hash.Add(static_cast<int64_t>(serial));
  }
  return hash.value();
}

bool FitsSomeOffer(const CycleInputs& in, state::PodClassId pod_class) {
  return std::any_of(in.offered_nodes.begin(), in.offered_nodes.end(), [&](const auto& offer) {
    return AmountsOf(in, offer, pod_class).has_value();
  });
}

bool Buying::MayPrefer(const Outcome& outcome, OverQuota policy) {
  if (!in_.options.hook_on || in_.over_quota.empty()) return false;
  if (outcome.code == verdict::Code::kQueueLimitReached) return false;
  const auto said = in_.over_quota.find(in_.tree.Name(outcome.leaf));
  return said != in_.over_quota.end() && said->second == policy && IsAboveQuota(outcome) &&
         CanBeHad(outcome);
}

std::optional<int64_t> Buying::PrefersTo(const Outcome& outcome,
                                         const std::vector<state::PodId>& victims) {
  absl::int128 nodes = 0;
  for (const state::PodId pod : outcome.step.pods) {
    const std::optional<Price> price = PriceOf(pod);
    if (!price.has_value()) return std::nullopt;
    nodes += CostOf(price->micro_usd_per_hour, price->unused);
  }
  absl::int128 evictions = 0;
  for (const state::PodId id : victims) {
    const absl::Duration ran = Ran(in_.state.pod(id));
    if (ran <= absl::ZeroDuration()) continue;
    const std::optional<Price> price = PriceOf(id);
    if (!price.has_value()) return Saturated(nodes);
    evictions += CostOf(price->micro_usd_per_hour, ran);
  }
  return evictions > nodes ? std::optional(Saturated(nodes)) : std::nullopt;
}

// By the kubelet's word: a start that users can write would let them choose.
absl::Duration Buying::Ran(const state::PodRecord& pod) const {
  if (pod.start_s == state::PodRecord::kNoStart) return absl::ZeroDuration();
  return in_.now - absl::FromUnixSeconds(pod.start_s);
}

std::optional<Buying::Price> Buying::PriceOf(state::PodId pod) {
  const state::PodClassId id = in_.state.pod(pod).pod_class;
  const auto [known, added] = prices_.try_emplace(id);
  if (!added) return known->second;
  const model::Resources charge = in_.tracker.ChargeOf(in_.state.pod(pod));
  std::optional<Price>& best = known->second;
  for (const model::OfferedNode& offer : in_.offered_nodes) {
    const std::optional<model::Resources> all = AmountsOf(in_, offer, id);
    if (!all.has_value()) continue;
    absl::int128 part = 0;
    for (const model::ResourceIndex r : in_.tree.resources()) {
      const int64_t has = (*all)[r];
      if (charge[r] <= 0 || has <= 0) continue;
      const absl::int128 price = offer.micro_usd_per_hour;
      part = std::max(part, (price * std::min(charge[r], has) + has - 1) / has);
    }
    const int64_t price = Saturated(part);
    if (!best.has_value() || price < best->micro_usd_per_hour) best = {price, offer.unused};
  }
  return best;
}

bool Buying::IsAboveQuota(const Outcome& outcome) const {
  const auto resources = in_.tree.resources();
  return std::any_of(resources.begin(), resources.end(), [&](model::ResourceIndex r) {
    const int64_t request = outcome.step_request[r];
    const int64_t quota = in_.tree.BoundsOf(outcome.leaf, r).quota;
    if (request <= 0 || quota == model::kUnlimited) return false;
    const int64_t held = in_.tracker.ledger().allocated(outcome.leaf, r);
    return model::SaturatingAdd(held, request) > quota;
  });
}

bool Buying::CanBeHad(const Outcome& outcome) {
  if (in_.unservable != nullptr && in_.unservable->contains(KindOfDemand(in_.state, outcome))) {
    return false;
  }
  const auto& pods = outcome.step.pods;
  return std::all_of(pods.begin(), pods.end(), [this](state::PodId pod) {
    const state::PodClassId id = in_.state.pod(pod).pod_class;
    const auto [known, added] = on_offer_.try_emplace(id, false);
    if (added) known->second = FitsSomeOffer(in_, id);
    return known->second;
  });
}

}  // namespace fairlead::engine
