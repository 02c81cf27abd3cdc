// The lending limit, enforced at placement: no other queue takes capacity that a queue has
// guaranteed (Bounds::kept), even while it is idle.
//
// Fair share alone does not do that: a queue over its share still runs if there is capacity, and is
// only the first to be evicted. Here the whole cluster is one pool, per resource:
//
//   idle(q) = max(sum of idle(children), kept(q) - allocated(q))    kept and not in use, below q
//   a request is refused if afterwards  sum over the top queues of (allocated + idle) > total.
//
// A request that the idle part of the queue (or of an ancestor) covers does not raise the sum and
// is never refused here. Nodes and fragmentation are ignored. More nodes cure a refusal, so it is a
// lack of capacity and not of permission.
//
// Ownership: keeps references to tree and ledger; neither may change its shape meanwhile. Contract:
// call Changed() after every charge and release. Thread-safety: one thread. Complexity: nothing if
// no queue has a lending limit; else building O(queues * resources), Changed() and Check() O(depth
// * resources).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "queues/exact.h"
#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

struct LendingRefusal {
  model::ResourceIndex resource = 0;
  int64_t total = 0;
  int64_t used = 0;  // by all queues
  int64_t kept = 0;  // guaranteed and idle, in all queues, if the request were placed
  int64_t requested = 0;
  friend bool operator==(const LendingRefusal&, const LendingRefusal&) = default;
};

class LendingFloors {
 public:
  LendingFloors(const QueueTree& tree, const QueueLedger& ledger);

  // Says that the charge of this queue (and so of those above it) has changed.
  void Changed(QueueId leaf);
  // The first resource, in the order of tree.resources(), of which too little would be left; none
  // if the request is allowed. `total`: the amount that fair share divides.
  [[nodiscard]] std::optional<LendingRefusal> Check(QueueId leaf, const model::Resources& request,
                                                    const model::Resources& total) const;
  // Guaranteed and idle, of all queues together.
  [[nodiscard]] int64_t Idle(model::ResourceIndex resource) const;
  // Per resource with guaranteed quota, what the total has to hold: allocated, plus guaranteed and
  // idle, over all queues.
  [[nodiscard]] model::Resources Load() const;

 private:
  struct Column {
    model::ResourceIndex resource;
    // Differences are added up, so no entry may saturate.
    std::vector<Int128> idle;      // by QueueId
    std::vector<Int128> below;     // by QueueId: sum of idle of the children
    std::vector<Int128> top_held;  // by QueueId: allocated, of queues without a parent
    Int128 idle_total = 0;
    Int128 held_total = 0;
  };

  void Renew(Column& column, QueueId leaf) const;
  [[nodiscard]] Int128 IdleOf(const Column& column, QueueId queue, Int128 below,
                              int64_t more) const;

  const QueueTree& tree_;
  const QueueLedger& ledger_;
  std::vector<Column> columns_;  // of the resources with guaranteed quota
};

}  // namespace fairlead::queues
