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

// What each queue would hold while pieces are subtracted. Remembers which queues gave.
class Holdings {
 public:
  explicit Holdings(const ReclaimContext& context) : context_(context) {}

  [[nodiscard]] Resources Of(QueueId queue) const {
    const auto it = given_.find(queue);
    return it != given_.end() ? it->second.left : context_.ledger.allocated(queue);
  }
  // The value of Of() before the last piece of a queue that gave.
  [[nodiscard]] Resources BeforeLastPiece(QueueId queue) const {
    const Given& given = given_.at(queue);
    return given.left + given.last_piece;
  }

  // Returns how many queues give for the first time.
  size_t TakeOff(QueueId leaf, const Resources& piece) {
    const size_t before = gave_.size();
    for (const QueueId queue : context_.tree.Ancestors(leaf)) {
      const auto [it, inserted] = given_.try_emplace(queue);
      if (inserted) {
        it->second.left = context_.ledger.allocated(queue);
        gave_.push_back(queue);
      }
      it->second.left -= piece;
      it->second.last_piece = piece;
    }
    return gave_.size() - before;
  }
  // Undoes the last TakeOff(), which has returned `first_time`; last pieces stay as they are.
  void PutBack(QueueId leaf, const Resources& piece, size_t first_time) {
    for (const QueueId queue : context_.tree.Ancestors(leaf)) given_.at(queue).left += piece;
    for (; first_time > 0; --first_time) {
      given_.erase(gave_.back());
      gave_.pop_back();
    }
  }

  [[nodiscard]] absl::Span<const QueueId> gave() const { return gave_; }

 private:
  struct Given {
    Resources left, last_piece;
  };
  const ReclaimContext& context_;
  absl::flat_hash_map<QueueId, Given> given_;
  std::vector<QueueId> gave_;  // in the order of the victims
};

struct InvolvedResource {
  ResourceIndex index = 0;
  bool rounded = false;  // on the reclaimer's path, as far as it was walked
};

// `largest`: of all pieces, by resource.
std::vector<InvolvedResource> Involved(const ReclaimContext& context, const Reclaimer& reclaimer,
                                       const Resources& largest) {
  std::vector<InvolvedResource> involved;
  for (const ResourceIndex r : context.tree.resources()) {
    if (reclaimer.request[r] > 0 || largest[r] > 0) involved.push_back({r});
  }
  return involved;
}

void Enlarge(const ReclaimContext& context, const Resources& piece, Resources& largest) {
  for (const ResourceIndex r : context.tree.resources()) {
    if (piece[r] > largest[r]) largest.Set(r, piece[r]);
  }
}

// True if the queue lacks some of the resource and the step gives it more than that. Its excess is
// less than the step, because its previous amount is below its share.
bool RoundsUp(const ReclaimContext& context, QueueId queue, ResourceIndex r, int64_t with_step) {
  const int64_t fair_share = context.shares.Get(queue, r);
  return context.round_to_gang && with_step > fair_share &&
         context.ledger.allocated(queue, r) < fair_share;
}

// Reclaimer's saturation * multiplier >= the sibling's, as products: exact for any amounts.
bool AtLeastAsSaturated(int64_t held, int64_t fair_share, int64_t sibling_held,
                        int64_t sibling_share, int64_t multiplier_micro) {
  const auto wide = [](int64_t v) { return static_cast<Uint128>(std::max<int64_t>(0, v)); };
  return CompareProducts(wide(held) * wide(sibling_share), static_cast<uint64_t>(multiplier_micro),
                         wide(sibling_held) * wide(fair_share), kMicro) >= 0;
}

std::vector<QueueId> SiblingsThatGave(const ReclaimContext& context, QueueId queue,
                                      const Holdings& holdings) {
  std::vector<QueueId> siblings;
  for (const QueueId giver : holdings.gave()) {
    if (giver != queue && context.tree.Parent(giver) == context.tree.Parent(queue)) {
      siblings.push_back(giver);
    }
  }
  return siblings;
}

// The change of the queue's shortage of the resource; negative if the shortage shrinks.
int64_t LackAdded(const ReclaimContext& context, QueueId queue, ResourceIndex r, int64_t held) {
  const int64_t fair_share = context.shares.Get(queue, r);
  const auto lack = [fair_share](int64_t amount) {
    return amount >= fair_share ? 0 : model::SaturatingAdd(fair_share, -amount);
  };
  return lack(held) - lack(context.ledger.allocated(queue, r));
}

// For rounding at a queue with a shortage: true if the givers' shortage grows by at least what the
// queue gains, or if more than the step would be freed, which would help other queues only.
bool TakesFromTheNeedy(const ReclaimContext& context, const Reclaimer& reclaimer, QueueId queue,
                       absl::Span<const QueueId> siblings, const Holdings& holdings,
                       ResourceIndex r) {
  int64_t lack_added = 0;
  int64_t taken = 0;
  for (const QueueId sibling : siblings) {
    const int64_t left = holdings.Of(sibling)[r];
    lack_added = model::SaturatingAdd(lack_added, LackAdded(context, sibling, r, left));
    taken = model::SaturatingAdd(taken, context.ledger.allocated(sibling, r) - left);
  }
  if (lack_added <= 0) return false;
  const int64_t held = model::SaturatingAdd(holdings.Of(queue)[r], reclaimer.request[r]);
  return taken > reclaimer.request[r] || lack_added >= -LackAdded(context, queue, r, held);
}

// The final test at one queue of the reclaimer's path, after the queues below it.
ReclaimAnswer TestSaturation(const ReclaimContext& context, const Reclaimer& reclaimer,
                             QueueId queue, const Holdings& holdings,
                             std::vector<InvolvedResource>& involved) {
  const int64_t multiplier = std::max(context.saturation_multiplier_micro, kMicro);
  const Resources held = holdings.Of(queue) + reclaimer.request;
  const std::vector<QueueId> siblings = SiblingsThatGave(context, queue, holdings);
  for (auto& [r, rounded] : involved) {
    const int64_t fair_share = context.shares.Get(queue, r);
    const bool rounds_up = RoundsUp(context, queue, r, held[r]);
    rounded |= rounds_up;
    if (rounded && context.ledger.allocated(queue, r) < fair_share &&
        TakesFromTheNeedy(context, reclaimer, queue, siblings, holdings, r)) {
      return {ReclaimRefusal::kVictimWithinItsShare, siblings.front(), r};
    }
    if (held[r] <= fair_share || rounds_up) continue;
    for (const QueueId sibling : siblings) {
      const int64_t sibling_share = context.shares.Get(sibling, r);
      if (sibling_share > 0 && AtLeastAsSaturated(held[r], fair_share, holdings.Of(sibling)[r],
                                                  sibling_share, multiplier)) {
        return {ReclaimRefusal::kMoreSaturated, queue, r};
      }
    }
  }
  return {};
}

// If a queue is rounded up, every queue that gave must have been over its share before its last
// piece. That includes the leaves of the victims, or one rounding would make another necessary.
ReclaimAnswer TestGivers(const ReclaimContext& context, const Reclaimer& reclaimer,
                         const Holdings& holdings, absl::Span<const InvolvedResource> involved) {
  if (!context.round_to_gang) return {};
  const QueuePath path = context.tree.Ancestors(reclaimer.leaf);
  for (const QueueId giver : holdings.gave()) {
    if (std::find(path.begin(), path.end(), giver) != path.end()) continue;
    for (const auto& [r, rounded] : involved) {
      if (rounded && holdings.BeforeLastPiece(giver)[r] <= context.shares.Get(giver, r)) {
        return {ReclaimRefusal::kVictimWithinItsShare, giver, r};
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
      return {ReclaimRefusal::kOverQuota, queue, r};
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
    const int64_t with_step = model::SaturatingAdd(context.ledger.allocated(leaf, r), request);
    if (with_step > context.shares.Get(leaf, r) && !RoundsUp(context, leaf, r, with_step)) {
      return {ReclaimRefusal::kOverFairShare, leaf, r};
    }
    if (reclaimer.preemptible) continue;
    const int64_t used = context.ledger.allocated_non_preemptible(leaf, r);
    if (Exceeds(model::SaturatingAdd(used, request), context.tree.BoundsOf(leaf, r).quota)) {
      return {ReclaimRefusal::kOverQuota, leaf, r};
    }
  }
  return {};
}

bool MaintainFairShare(const ReclaimContext& context, QueueId victim_side,
                       const Resources& remaining, const Resources& involved) {
  const auto resources = context.tree.resources();
  return std::any_of(resources.begin(), resources.end(), [&](ResourceIndex r) {
    return involved[r] > 0 &&
           Exceeds(remaining[r], AllocatableShare(context.tree, context.shares, victim_side, r));
  });
}

bool GuaranteeDeservedQuota(const ReclaimContext& context, const Reclaimer& reclaimer,
                            QueueId reclaimer_side, QueueId victim_side,
                            const Resources& remaining) {
  bool victim_over = false;
  for (const ResourceIndex r : context.tree.resources()) {
    const int64_t request = reclaimer.request[r];
    victim_over |=
        request > 0 && Exceeds(remaining[r], context.tree.BoundsOf(victim_side, r).quota);
    if (!IsCore(r) && request <= 0) continue;
    const int64_t held = context.ledger.allocated(reclaimer_side, r);
    if (Exceeds(model::SaturatingAdd(held, request),
                context.tree.BoundsOf(reclaimer_side, r).quota)) {
      return false;
    }
  }
  return victim_over;
}

namespace {

bool HasRight(const ReclaimContext& context, const Reclaimer& reclaimer, QueueId reclaimer_side,
              QueueId victim_side, const Resources& remaining, const Resources& involved) {
  return MaintainFairShare(context, victim_side, remaining, involved) ||
         GuaranteeDeservedQuota(context, reclaimer, reclaimer_side, victim_side, remaining);
}

}  // namespace

bool MayEverReclaimFrom(const ReclaimContext& context, const Reclaimer& reclaimer,
                        QueueId victim_leaf) {
  const auto [reclaimer_side, victim_side] = context.tree.Diverging(reclaimer.leaf, victim_leaf);
  const Resources held = context.ledger.allocated(victim_side);
  return HasRight(context, reclaimer, reclaimer_side, victim_side, held, held);
}

namespace {

// The answer for a piece that there is no right to take.
ReclaimAnswer NoRight(const ReclaimContext& context, const Reclaimer& reclaimer,
                      QueueId reclaimer_side, QueueId victim_side, const Resources& remaining) {
  // Other pieces of that side may have some of what it holds too much of.
  const bool others = HasRight(context, reclaimer, reclaimer_side, victim_side, remaining,
                               /*involved=*/remaining);
  return {others ? ReclaimRefusal::kGivesNoExcess : ReclaimRefusal::kVictimWithinItsShare,
          victim_side, 0};
}

// The tests of all victims together, each of which there is a right to take.
ReclaimAnswer TestTogether(const ReclaimContext& context, const Reclaimer& reclaimer,
                           const Holdings& holdings, const Resources& largest) {
  std::vector<InvolvedResource> involved = Involved(context, reclaimer, largest);
  for (const QueueId queue : context.tree.Ancestors(reclaimer.leaf)) {
    const ReclaimAnswer saturation = TestSaturation(context, reclaimer, queue, holdings, involved);
    if (!saturation.allowed()) return saturation;
    if (reclaimer.preemptible) continue;
    const ReclaimAnswer quota = TestNonPreemptibleQuota(context, reclaimer, queue);
    if (!quota.allowed()) return quota;
  }
  return TestGivers(context, reclaimer, holdings, involved);
}

}  // namespace

ReclaimAnswer Reclaimable(const ReclaimContext& context, const Reclaimer& reclaimer,
                          absl::Span<const VictimQueue> victims) {
  Holdings holdings(context);
  Resources largest;
  for (const VictimQueue& victim : victims) {
    const auto [reclaimer_side, victim_side] = context.tree.Diverging(reclaimer.leaf, victim.leaf);
    for (const Resources& piece : victim.pieces) {
      const Resources remaining = holdings.Of(victim_side);
      if (!HasRight(context, reclaimer, reclaimer_side, victim_side, remaining,
                    reclaimer.request + piece)) {
        return NoRight(context, reclaimer, reclaimer_side, victim_side, remaining);
      }
      holdings.TakeOff(victim.leaf, piece);
      Enlarge(context, piece, largest);
    }
  }
  return TestTogether(context, reclaimer, holdings, largest);
}

// The right to take a piece depends on what its side still holds before it, and on which resources
// it has. What the side holds falls from piece to piece, so of the pieces of one queue that have
// the same resources the last has the right only if all have it.
class ReclaimTrial::Impl {
 public:
  Impl(const ReclaimContext& context, const Reclaimer& reclaimer)
      : context_(context),
        reclaimer_(reclaimer),
        holdings_(context_),
        whole_(context.round_to_gang || context.tree.resources().size() > 64) {}

  ReclaimAnswer Add(QueueId leaf, const Resources& piece) {
    const size_t place = PlaceOf(leaf);
    if (whole_) {
      const ReclaimAnswer answer = TestAll(place, leaf, piece);
      if (answer.allowed()) QueueAt(place, leaf).pieces.push_back(piece);
      return answer;
    }
    const auto [reclaimer_side, victim_side] = context_.tree.Diverging(reclaimer_.leaf, leaf);
    const Resources remaining = RemainingAt(place, victim_side);
    const Resources involved = reclaimer_.request + piece;
    if (!HasRight(context_, reclaimer_, reclaimer_side, victim_side, remaining, involved)) {
      return NoRight(context_, reclaimer_, reclaimer_side, victim_side, remaining);
    }
    for (size_t later = place + 1; later < queues_.size(); ++later) {
      if (queues_[later].side == victim_side && !StaysRight(queues_[later], piece)) {
        return TestAll(place, leaf, piece);  // which piece is refused first, and why
      }
    }
    const Resources former = largest_;
    const size_t first_time = holdings_.TakeOff(leaf, piece);
    Enlarge(context_, piece, largest_);
    const ReclaimAnswer together = TestTogether(context_, reclaimer_, holdings_, largest_);
    if (!together.allowed()) {
      holdings_.PutBack(leaf, piece, first_time);
      largest_ = former;
      return together;
    }
    Keep(place, leaf, {reclaimer_side, victim_side}, remaining, involved, piece);
    return together;
  }

 private:
  // The last piece of a queue that has these resources.
  struct Last {
    uint64_t resources = 0;  // bits by their place in tree.resources()
    Resources involved;      // what the request and the piece have together
    Resources remaining;     // what the side held before it
  };
  struct Queue {
    QueueId leaf = 0, reclaimer_side = 0, side = 0;
    std::vector<Last> last;
    Resources left;  // what the side holds after its pieces and those of the queues before it
    std::vector<Resources> pieces;
  };

  [[nodiscard]] size_t PlaceOf(QueueId leaf) const {
    size_t place = 0;
    while (place < queues_.size() && queues_[place].leaf != leaf) ++place;
    return place;
  }
  [[nodiscard]] Resources RemainingAt(size_t place, QueueId side) const {
    if (place < queues_.size()) return queues_[place].left;
    for (size_t before = place; before-- > 0;) {
      if (queues_[before].side == side) return queues_[before].left;
    }
    return context_.ledger.allocated(side);
  }
  [[nodiscard]] bool StaysRight(const Queue& queue, const Resources& piece) const {
    return std::all_of(queue.last.begin(), queue.last.end(), [&](const Last& last) {
      Resources remaining = last.remaining;
      remaining -= piece;
      return HasRight(context_, reclaimer_, queue.reclaimer_side, queue.side, remaining,
                      last.involved);
    });
  }
  void Keep(size_t place, QueueId leaf, std::pair<QueueId, QueueId> sides,
            const Resources& remaining, const Resources& involved, const Resources& piece) {
    Queue& queue = QueueAt(place, leaf);
    queue.reclaimer_side = sides.first;
    queue.side = sides.second;
    queue.pieces.push_back(piece);
    queue.left = remaining - piece;
    uint64_t bits = 0;
    const auto resources = context_.tree.resources();
    for (size_t i = 0; i < resources.size(); ++i) {
      if (involved[resources[i]] > 0) bits |= uint64_t{1} << i;
    }
    std::vector<Last>& last = queue.last;
    const auto known =
        std::find_if(last.begin(), last.end(), [&](const Last& l) { return l.resources == bits; });
    if (known != last.end()) {
      known->remaining = remaining;
    } else {
      last.push_back({bits, involved, remaining});
    }
    for (size_t later = place + 1; later < queues_.size(); ++later) {
      if (queues_[later].side != sides.second) continue;
      queues_[later].left -= piece;
      for (Last& each : queues_[later].last) each.remaining -= piece;
    }
  }
  Queue& QueueAt(size_t place, QueueId leaf) {
    if (place == queues_.size()) {
      queues_.emplace_back();
      queues_.back().leaf = leaf;
    }
    return queues_[place];
  }
  [[nodiscard]] ReclaimAnswer TestAll(size_t place, QueueId leaf, const Resources& piece) const {
    std::vector<VictimQueue> victims;
    for (const Queue& queue : queues_) victims.push_back({queue.leaf, queue.pieces});
    if (place == victims.size()) victims.push_back({leaf, {}});
    victims[place].pieces.push_back(piece);
    return Reclaimable(context_, reclaimer_, victims);
  }

  const ReclaimContext context_;
  const Reclaimer reclaimer_;
  Holdings holdings_;
  const bool whole_;  // only pieces are kept, and all are tested each time
  Resources largest_;
  std::vector<Queue> queues_;  // by their first pieces
};

ReclaimTrial::ReclaimTrial(const ReclaimContext& context, const Reclaimer& reclaimer)
    : impl_(std::make_unique<Impl>(context, reclaimer)) {}
ReclaimTrial::~ReclaimTrial() = default;

ReclaimAnswer ReclaimTrial::Add(QueueId leaf, const model::Resources& piece) {
  return impl_->Add(leaf, piece);
}

}  // namespace fairlead::queues
