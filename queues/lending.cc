#include "queues/lending.h"

#include <algorithm>
#include <limits>

namespace fairlead::queues {

using model::ResourceIndex;

LendingFloors::LendingFloors(const QueueTree& tree, const QueueLedger& ledger)
    : tree_(tree), ledger_(ledger) {
  if (!tree.AnyKept()) return;
  for (const ResourceIndex r : tree.resources()) {
    bool kept = false;
    for (QueueId q = 0; q < tree.size() && !kept; ++q) {
      kept = tree.Usable(q) && tree.BoundsOf(q, r).kept > 0;
    }
    if (!kept) continue;
    Column& column = columns_.emplace_back();
    column.resource = r;
    column.idle.resize(tree.size());
    column.below.resize(tree.size());
    column.top_held.resize(tree.size());
    for (QueueId q = 0; q < tree.size(); ++q) Renew(column, q);
  }
}

// The guaranteed quota that the queue would leave idle if it held `more`.
Int128 LendingFloors::IdleOf(const Column& column, QueueId queue, Int128 below,
                             int64_t more) const {
  if (!tree_.Usable(queue)) return 0;
  const Int128 held = Int128{ledger_.allocated(queue, column.resource)} + more;
  return std::max(below, tree_.BoundsOf(queue, column.resource).kept - held);
}

void LendingFloors::Renew(Column& column, QueueId leaf) const {
  for (std::optional<QueueId> at = leaf; at; at = tree_.ChargedTo(*at)) {
    const Int128 idle = IdleOf(column, *at, column.below[*at], 0);
    const Int128 change = idle - column.idle[*at];
    column.idle[*at] = idle;
    if (const std::optional<QueueId> parent = tree_.ChargedTo(*at)) {
      column.below[*parent] += change;
      continue;
    }
    column.idle_total += change;
    const int64_t held = ledger_.allocated(*at, column.resource);
    column.held_total += held - column.top_held[*at];
    column.top_held[*at] = held;
  }
}

void LendingFloors::Changed(QueueId leaf) {
  for (Column& column : columns_) Renew(column, leaf);
}

std::optional<LendingRefusal> LendingFloors::Check(QueueId leaf, const model::Resources& request,
                                                   const model::Resources& total) const {
  for (const Column& column : columns_) {
    const int64_t requested = request[column.resource];
    if (requested <= 0) continue;
    Int128 change = 0;  // change of what is idle at and below the queue
    for (std::optional<QueueId> at = leaf; at; at = tree_.Parent(*at)) {
      change = IdleOf(column, *at, column.below[*at] + change, requested) - column.idle[*at];
    }
    const Int128 idle_total = column.idle_total + change;
    // A request within its own idle part does not raise the sum.
    if (requested + change <= 0) continue;
    if (column.held_total + requested + idle_total > total[column.resource]) {
      return LendingRefusal{column.resource, total[column.resource], Saturate(column.held_total),
                            Saturate(idle_total), requested};
    }
  }
  return std::nullopt;
}

int64_t LendingFloors::Idle(ResourceIndex resource) const {
  for (const Column& column : columns_) {
    if (column.resource == resource) return Saturate(column.idle_total);
  }
  return 0;
}

model::Resources LendingFloors::Load() const {
  model::Resources load;
  for (const Column& column : columns_) {
    load.Set(column.resource, Saturate(column.held_total + column.idle_total));
  }
  return load;
}

}  // namespace fairlead::queues
