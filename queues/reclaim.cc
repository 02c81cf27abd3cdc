#include "queues/reclaim.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "queues/exact.h"

namespace fairlead::queues {
namespace {

using model::kUnlimited;
using model::ResourceIndex;
using model::Resources;

bool IsCore(ResourceIndex r) { return r <= model::kGpu; }

bool Exceeds(int64_t amount, int64_t bound) { return bound != kUnlimited && amount > bound; }

// What each queue would hold, while pieces are taken off. Remembers which queues gave.
class Holdings {
 public:
  explicit Holdings(const ReclaimContext& context) : context_(context) {}

  [[nodiscard]] Resources Of(QueueId queue) const {
    const auto it = remaining_.find(queue);
    return it != remaining_.end() ? it->second : context_.ledger.allocated(queue);
  }

  void TakeOff(QueueId leaf, const Resources& piece) {
    for (const QueueId queue : context_.tree.Ancestors(leaf)) {
      const auto [it, inserted] = remaining_.try_emplace(queue);
      if (inserted) {
        it->second = context_.ledger.allocated(queue);
        gave_.push_back(queue);
      }
      it->second -= piece;
    }
  }

  [[nodiscard]] absl::Span<const QueueId> gave() const { return gave_; }

 private:
  const ReclaimContext& context_;
  absl::flat_hash_map<QueueId, Resources> remaining_;
  std::vector<QueueId> gave_;  // in the order of the victims
};

std::vector<ResourceIndex> Involved(const ReclaimContext& context, const Reclaimer& reclaimer,
                                    absl::Span<const VictimQueue> victims) {
  std::vector<ResourceIndex> involved;
  for (const ResourceIndex r : context.tree.resources()) {
    bool found = reclaimer.request[r] > 0;
    for (const VictimQueue& victim : victims) {
      for (const Resources& piece : victim.pieces) found |= piece[r] > 0;
    }
    if (found) involved.push_back(r);
  }
  return involved;
}

// Reclaimer's saturation * multiplier >= the sibling's, as products: exact for any amounts.
bool AtLeastAsSaturated(int64_t held, int64_t fair_share, int64_t sibling_held,
                        int64_t sibling_share, int64_t multiplier_micro) {
  const auto wide = [](int64_t v) { return static_cast<Uint128>(std::max<int64_t>(0, v)); };
  return CompareProducts(wide(held) * wide(sibling_share), static_cast<uint64_t>(multiplier_micro),
                         wide(sibling_held) * wide(fair_share), kMicro) >= 0;
}

// The final test at one queue of the reclaimer's path.
ReclaimAnswer TestSaturation(const ReclaimContext& context, const Reclaimer& reclaimer,
                             QueueId queue, const Holdings& holdings,
                             absl::Span<const ResourceIndex> involved) {
  const int64_t multiplier = std::max(context.saturation_multiplier_micro, kMicro);
  const Resources held = holdings.Of(queue) + reclaimer.request;
  for (const ResourceIndex r : involved) {
    const int64_t fair_share = context.shares.Get(queue, r);
    if (held[r] <= fair_share) continue;
    for (const QueueId sibling : holdings.gave()) {
      if (sibling == queue || context.tree.Parent(sibling) != context.tree.Parent(queue)) continue;
      const int64_t sibling_share = context.shares.Get(sibling, r);
      if (sibling_share > 0 && AtLeastAsSaturated(held[r], fair_share, holdings.Of(sibling)[r],
                                                  sibling_share, multiplier)) {
        return {ReclaimRefusal::kMoreSaturated, queue, r};
      }
    }
  }
  return {};
}

ReclaimAnswer TestNonPreemptibleQuota(const ReclaimContext& context, const Reclaimer& reclaimer,
                                      QueueId queue) {
  for (const ResourceIndex r : context.tree.resources()) {
    if (reclaimer.request[r] <= 0) continue;
    const int64_t used = context.ledger.allocated_non_preemptible(queue, r);
    if (Exceeds(model::SaturatingAdd(used, reclaimer.request[r]),
                context.tree.BoundsOf(queue, r).quota)) {
      return {ReclaimRefusal::kNonPreemptibleQuota, queue, r};
    }
  }
  return {};
}

}  // namespace

ReclaimAnswer CanReclaim(const ReclaimContext& context, const Reclaimer& reclaimer) {
  const QueueId leaf = reclaimer.leaf;
  for (const ResourceIndex r : context.tree.resources()) {
    if (!IsCore(r) && reclaimer.request[r] <= 0) continue;
    const int64_t request = reclaimer.request[r];
    if (model::SaturatingAdd(context.ledger.allocated(leaf, r), request) >
        context.shares.Get(leaf, r)) {
      return {ReclaimRefusal::kOverFairShare, leaf, r};
    }
    if (reclaimer.preemptible) continue;
    const int64_t used = context.ledger.allocated_non_preemptible(leaf, r);
    if (Exceeds(model::SaturatingAdd(used, request), context.tree.BoundsOf(leaf, r).quota)) {
      return {ReclaimRefusal::kNonPreemptibleQuota, leaf, r};
    }
  }
  return {};
}

bool MaintainFairShare(const ReclaimContext& context, QueueId victim_side,
                       const Resources& remaining) {
  const auto resources = context.tree.resources();
  return std::any_of(resources.begin(), resources.end(), [&](ResourceIndex r) {
    return Exceeds(remaining[r], AllocatableShare(context.tree, context.shares, victim_side, r));
  });
}

bool GuaranteeDeservedQuota(const ReclaimContext& context, const Reclaimer& reclaimer,
                            QueueId reclaimer_side, QueueId victim_side,
                            const Resources& remaining) {
  bool victim_over = false;
  for (const ResourceIndex r : context.tree.resources()) {
    const int64_t request = reclaimer.request[r];
    victim_over |= Exceeds(remaining[r], context.tree.BoundsOf(victim_side, r).quota);
    if (!IsCore(r) && request <= 0) continue;
    const int64_t held = context.ledger.allocated(reclaimer_side, r);
    if (Exceeds(model::SaturatingAdd(held, request),
                context.tree.BoundsOf(reclaimer_side, r).quota)) {
      return false;
    }
  }
  return victim_over;
}

bool MayEverReclaimFrom(const ReclaimContext& context, const Reclaimer& reclaimer,
                        QueueId victim_leaf) {
  const auto [reclaimer_side, victim_side] = context.tree.Diverging(reclaimer.leaf, victim_leaf);
  const Resources held = context.ledger.allocated(victim_side);
  return MaintainFairShare(context, victim_side, held) ||
         GuaranteeDeservedQuota(context, reclaimer, reclaimer_side, victim_side, held);
}

ReclaimAnswer Reclaimable(const ReclaimContext& context, const Reclaimer& reclaimer,
                          absl::Span<const VictimQueue> victims) {
  Holdings holdings(context);
  for (const VictimQueue& victim : victims) {
    const auto [reclaimer_side, victim_side] = context.tree.Diverging(reclaimer.leaf, victim.leaf);
    for (const Resources& piece : victim.pieces) {
      const Resources remaining = holdings.Of(victim_side);
      if (!MaintainFairShare(context, victim_side, remaining) &&
          !GuaranteeDeservedQuota(context, reclaimer, reclaimer_side, victim_side, remaining)) {
        return {ReclaimRefusal::kVictimWithinItsShare, victim_side, 0};
      }
      holdings.TakeOff(victim.leaf, piece);
    }
  }
  const std::vector<ResourceIndex> involved = Involved(context, reclaimer, victims);
  for (const QueueId queue : context.tree.Ancestors(reclaimer.leaf)) {
    const ReclaimAnswer saturation = TestSaturation(context, reclaimer, queue, holdings, involved);
    if (!saturation.allowed()) return saturation;
    if (reclaimer.preemptible) continue;
    const ReclaimAnswer quota = TestNonPreemptibleQuota(context, reclaimer, queue);
    if (!quota.allowed()) return quota;
  }
  return {};
}

}  // namespace fairlead::queues
