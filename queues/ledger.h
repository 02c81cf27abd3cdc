// What every queue holds and requests, including everything below it.
//
// There are three totals per queue: allocated (placed pods), allocated_non_preemptible (the part of
// it that cannot be reclaimed) and requested (all pods that run or want to run). `requested` counts
// a pod from its appearance to its end, placed or not; placing it changes only `allocated`. Amounts
// are *queue charge*: milli-CPU, bytes, milli-GPU (fractions and MIG slices already converted).
//
// Sums have 128 bits, so even an absurd request cannot make a charge and its release differ;
// readers see them saturated to 64 bits. A total below zero is a bug of the caller and aborts.
//
// The ledger keeps its own copy of the parent links, as of the last Rebuild(). Charges and releases
// always walk the path along which the totals were summed, even if the tree has changed since.
//
// Thread-safety: one thread. Copying costs one flat copy (about 250 bytes per queue): cheap enough
// to clone at the start of a search. Charges cost O(depth * resources).
#pragma once

#include <cstdint>
#include <vector>

#include "queues/exact.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

class QueueLedger {
 public:
  explicit QueueLedger(const QueueTree& tree) { Rebuild(tree); }

  // Sums again along the tree's current links; direct charges of each queue stay. Needed after a
  // change that QueueObserver is told as `reshaped`. O(queues * resources).
  void Rebuild(const QueueTree& tree);

  // Charges the queue (a leaf, or any queue that a running pod is in) and all its ancestors.
  void Charge(QueueId queue, const model::Resources& amount, bool preemptible);
  void Release(QueueId queue, const model::Resources& amount, bool preemptible);
  void AddRequested(QueueId queue, const model::Resources& amount);
  void SubRequested(QueueId queue, const model::Resources& amount);

  [[nodiscard]] int64_t allocated(QueueId queue, model::ResourceIndex resource) const {
    return Read(kAllocated, queue, resource);
  }
  [[nodiscard]] int64_t allocated_non_preemptible(QueueId queue, model::ResourceIndex r) const {
    return Read(kNonPreemptible, queue, r);
  }
  [[nodiscard]] int64_t requested(QueueId queue, model::ResourceIndex resource) const {
    return Read(kRequested, queue, resource);
  }
  [[nodiscard]] model::Resources allocated(QueueId queue) const { return Row(kAllocated, queue); }
  [[nodiscard]] model::Resources allocated_non_preemptible(QueueId queue) const {
    return Row(kNonPreemptible, queue);
  }
  [[nodiscard]] model::Resources requested(QueueId queue) const { return Row(kRequested, queue); }

  // Sets the totals of one queue alone, whatever its children hold: for totals that another program
  // recorded. Rebuild() and charges assume consistent totals; not for decisions.
  void OverrideTotals(QueueId queue, const model::Resources& allocated,
                      const model::Resources& allocated_non_preemptible,
                      const model::Resources& requested);

  friend bool operator==(const QueueLedger& a, const QueueLedger& b);

 private:
  enum Kind : uint8_t { kAllocated, kNonPreemptible, kRequested, kKinds };
  static constexpr QueueId kNone = ~QueueId{0};

  [[nodiscard]] size_t Offset(QueueId queue) const {
    return static_cast<size_t>(queue) * kKinds * width_;
  }
  [[nodiscard]] int64_t Read(Kind kind, QueueId queue, model::ResourceIndex resource) const;
  [[nodiscard]] model::Resources Row(Kind kind, QueueId queue) const;
  void Write(Kind kind, QueueId queue, const model::Resources& amount);
  void Apply(Kind kind, QueueId queue, const model::Resources& amount, int sign);
  void Widen(size_t width);

  size_t width_ = model::kGpu + 1;  // number of resource columns per row
  std::vector<QueueId> parent_;
  std::vector<Int128> totals_;  // queue-major, then kind, then resource
};

}  // namespace fairlead::queues
