// The lending limit, enforced where pods are placed: room that a queue keeps back (Bounds::kept) is
// not taken by others, though it stands idle.
//
// Fair share alone does not do that: a queue over its share still runs where there is room, and is
// only the first to give. Here the whole cluster is one pool, per resource:
//
//   idle(q) = max(sum of idle(children), kept(q) - allocated(q))    kept and not in use, below q
//   a request is refused if afterwards  sum over the top queues of (allocated + idle) > total.
//
// A request that the queue's own (or an ancestor's) idle part covers does not raise the sum and is
// never refused here. Nodes and fragmentation are not looked at. More nodes cure a refusal, so it
// is a lack of capacity and not of permission.
//
// Ownership: keeps references to tree and ledger; neither may change its shape meanwhile. Contract:
// call Changed() after every charge and release. Thread-safety: one thread. Complexity: nothing
// where no queue keeps anything back; else building O(queues * resources), Changed() and Check()
// O(depth * resources).
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
  int64_t kept = 0;  // and idle, by all queues, were the request placed
  int64_t requested = 0;
  friend bool operator==(const LendingRefusal&, const LendingRefusal&) = default;
};

class LendingFloors {
 public:
  LendingFloors(const QueueTree& tree, const QueueLedger& ledger);

  // What was charged to this queue (and so to those above it) has changed.
  void Changed(QueueId leaf);
  // The first resource, in the order of tree.resources(), of which too little would be left.
  // `total`: what fair share divides.
  [[nodiscard]] std::optional<LendingRefusal> Check(QueueId leaf, const model::Resources& request,
                                                    const model::Resources& total) const;
  // Kept and idle, of all queues together.
  [[nodiscard]] int64_t Idle(model::ResourceIndex resource) const;
  // Allocated, and kept and idle, by all queues together, of each resource that some queue keeps
  // back: what the total has to hold.
  [[nodiscard]] model::Resources Load() const;

 private:
  struct Column {
    model::ResourceIndex resource;
    // Differences are added up, so none of it may saturate.
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
  std::vector<Column> columns_;  // of the resources that some queue keeps back
};

}  // namespace fairlead::queues
