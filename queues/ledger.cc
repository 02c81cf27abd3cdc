#include "queues/ledger.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fairlead::queues {
void QueueLedger::Rebuild(const QueueTree& tree) {
  const size_t row = kKinds * width_;
  // A queue's own amount is its total minus its children's totals.
  std::vector<Int128> own = totals_;
  for (QueueId q = 0; q < parent_.size(); ++q) {
    if (parent_[q] == kNone) continue;
    for (size_t i = 0; i < row; ++i) own[Offset(parent_[q]) + i] -= totals_[Offset(q) + i];
  }
  own.resize(tree.size() * row, 0);
  parent_.assign(tree.size(), kNone);
  for (QueueId q = 0; q < tree.size(); ++q) parent_[q] = tree.ChargedTo(q).value_or(kNone);
  totals_.assign(own.size(), 0);
  for (QueueId q = 0; q < tree.size(); ++q) {
    for (QueueId at = q; at != kNone; at = parent_[at]) {
      for (size_t i = 0; i < row; ++i) totals_[Offset(at) + i] += own[Offset(q) + i];
    }
  }
}

void QueueLedger::Charge(QueueId queue, const model::Resources& amount, bool preemptible) {
  Apply(kAllocated, queue, amount, 1);
  if (!preemptible) Apply(kNonPreemptible, queue, amount, 1);
}

void QueueLedger::Release(QueueId queue, const model::Resources& amount, bool preemptible) {
  Apply(kAllocated, queue, amount, -1);
  if (!preemptible) Apply(kNonPreemptible, queue, amount, -1);
}

void QueueLedger::AddRequested(QueueId queue, const model::Resources& amount) {
  Apply(kRequested, queue, amount, 1);
}

void QueueLedger::SubRequested(QueueId queue, const model::Resources& amount) {
  Apply(kRequested, queue, amount, -1);
}

void QueueLedger::Apply(Kind kind, QueueId queue, const model::Resources& amount, int sign) {
  FAIRLEAD_CHECK(queue < parent_.size(), absl::StrCat("queue ", queue, " is not in the ledger"));
  if (amount.size() > width_) Widen(amount.size());
  for (QueueId at = queue; at != kNone; at = parent_[at]) {
    const size_t base = Offset(at) + kind * width_;
    for (size_t r = 0; r < amount.size(); ++r) {
      const int64_t change = amount[static_cast<model::ResourceIndex>(r)];
      if (change == 0) continue;
      FAIRLEAD_CHECK(change > 0, absl::StrCat("negative charge to queue ", queue));
      Int128& total = totals_[base + r];
      total += sign > 0 ? change : -change;
      FAIRLEAD_CHECK(total >= 0, absl::StrCat("queue ", at, ", resource ", r, ", total ", int{kind},
                                              ": more released than charged"));
    }
  }
}

void QueueLedger::Widen(size_t width) {
  std::vector<Int128> wider(parent_.size() * kKinds * width, 0);
  for (size_t row = 0; row < parent_.size() * kKinds; ++row) {
    std::copy_n(totals_.begin() + static_cast<int64_t>(row * width_), width_,
                wider.begin() + static_cast<int64_t>(row * width));
  }
  totals_ = std::move(wider);
  width_ = width;
}

int64_t QueueLedger::Read(Kind kind, QueueId queue, model::ResourceIndex resource) const {
  if (queue >= parent_.size() || resource >= width_) return 0;
  return Saturate(totals_[Offset(queue) + kind * width_ + resource]);
}

model::Resources QueueLedger::Row(Kind kind, QueueId queue) const {
  model::Resources row;
  for (size_t r = 0; r < width_; ++r) {
    const auto index = static_cast<model::ResourceIndex>(r);
    row.Set(index, Read(kind, queue, index));
  }
  return row;
}

void QueueLedger::Write(Kind kind, QueueId queue, const model::Resources& amount) {
  if (amount.size() > width_) Widen(amount.size());
  for (size_t r = 0; r < width_; ++r) {
    totals_[Offset(queue) + kind * width_ + r] = amount[static_cast<model::ResourceIndex>(r)];
  }
}

void QueueLedger::OverrideTotals(QueueId queue, const model::Resources& allocated,
                                 const model::Resources& allocated_non_preemptible,
                                 const model::Resources& requested) {
  Write(kAllocated, queue, allocated);
  Write(kNonPreemptible, queue, allocated_non_preemptible);
  Write(kRequested, queue, requested);
}

bool operator==(const QueueLedger& a, const QueueLedger& b) {
  if (a.parent_ != b.parent_) return false;
  for (QueueId q = 0; q < a.parent_.size(); ++q) {
    for (const auto kind :
         {QueueLedger::kAllocated, QueueLedger::kNonPreemptible, QueueLedger::kRequested}) {
      if (!(a.Row(kind, q) == b.Row(kind, q))) return false;
    }
  }
  return true;
}

}  // namespace fairlead::queues
