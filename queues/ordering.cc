#include "queues/ordering.h"

#include <algorithm>
#include <limits>

namespace fairlead::queues {
namespace {

using model::kUnlimited;
using model::ResourceIndex;

constexpr std::array<ResourceIndex, 3> kCore = {model::kCpu, model::kMemory, model::kGpu};
constexpr std::array<ResourceIndex, 3> kVectorOrder = {model::kGpu, model::kCpu, model::kMemory};

// 1000 times the amount in KAI's units: devices for GPUs, else base units.
Uint128 ThousandFold(ResourceIndex r, int64_t amount) {
  const Uint128 wide = static_cast<Uint128>(amount);
  return r == model::kGpu ? wide : wide * 1000;
}

Ratio ShareOf(ResourceIndex r, int64_t used, int64_t allocatable, int64_t cluster_total) {
  const int64_t share = allocatable == kUnlimited ? cluster_total : allocatable;
  const int64_t amount = std::max<int64_t>(0, used);
  if (share <= 0) return {ThousandFold(r, amount), 1};
  return {static_cast<Uint128>(amount), static_cast<uint64_t>(share)};
}

template <typename T>
int Sign(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

}  // namespace

CoreAmounts ToCore(const model::Resources& resources) {
  return {resources[model::kCpu], resources[model::kMemory], resources[model::kGpu]};
}

QueueView MakeView(const QueueTree& tree, const QueueLedger& ledger, const FairShares& shares,
                   QueueId queue, const model::Resources* next_job) {
  QueueView view;
  for (const ResourceIndex r : kCore) {
    view.allocated[r] = ledger.allocated(queue, r);
    view.fair_share[r] = shares.Get(queue, r);
    view.quota[r] = tree.BoundsOf(queue, r).quota;
    view.allocatable_share[r] = AllocatableShare(tree, shares, queue, r);
  }
  if (next_job != nullptr) view.next_job = ToCore(*next_job);
  const model::Queue& spec = tree.Spec(queue);
  view.priority = spec.priority;
  view.creation = spec.meta.creation;
  view.name = spec.meta.name;
  return view;
}

QueueRank MakeRank(const QueueView& view, const CoreAmounts& cluster_total) {
  QueueRank rank;
  rank.over_fair_share = true;
  rank.within_quota = true;
  for (const ResourceIndex r : kCore) {
    const int64_t allocatable = view.allocatable_share[r];
    const int64_t with_job = model::SaturatingAdd(view.allocated[r], view.next_job[r]);
    rank.over_fair_share &= view.allocated[r] > view.fair_share[r];
    rank.within_quota &= view.quota[r] == kUnlimited || with_job <= view.quota[r];
    const int64_t left_with_job = model::SaturatingAdd(with_job, -view.picked_victims[r]);
    rank.uses_zero_share |= allocatable == 0 && left_with_job > 0;

    const Ratio with = ShareOf(r, left_with_job, allocatable, cluster_total[r]);
    if (Compare(rank.share_with_job, with) < 0) rank.share_with_job = with;
    const Ratio without =
        ShareOf(r, model::SaturatingAdd(view.allocated[r], -view.picked_victims[r]), allocatable,
                cluster_total[r]);
    if (Compare(rank.share_without_job, without) < 0) rank.share_without_job = without;
  }
  for (size_t i = 0; i < kVectorOrder.size(); ++i) {
    const int64_t share = view.allocatable_share[kVectorOrder[i]];
    rank.allocatable[i] = share == kUnlimited ? std::numeric_limits<uint64_t>::max()
                                              : static_cast<uint64_t>(std::max<int64_t>(0, share));
  }
  rank.priority = view.priority;
  rank.creation = view.creation;
  rank.name = view.name;
  return rank;
}

int CompareQueues(const QueueRank& a, const QueueRank& b) {
  if (a.over_fair_share != b.over_fair_share) return a.over_fair_share ? 1 : -1;
  if (a.within_quota != b.within_quota) return a.within_quota ? -1 : 1;
  if (a.priority != b.priority) return a.priority > b.priority ? -1 : 1;
  if (a.uses_zero_share != b.uses_zero_share) return a.uses_zero_share ? 1 : -1;
  if (const int c = Compare(a.share_with_job, b.share_with_job); c != 0) return c;
  if (const int c = Compare(a.share_without_job, b.share_without_job); c != 0) return c;
  if (const int c = Sign(a.allocatable, b.allocatable); c != 0) return c;
  if (const int c = Sign(a.creation, b.creation); c != 0) return c;
  return Sign(a.name, b.name);
}

int CompareQueues(const QueueView& a, const QueueView& b, const CoreAmounts& cluster_total) {
  return CompareQueues(MakeRank(a, cluster_total), MakeRank(b, cluster_total));
}

}  // namespace fairlead::queues
