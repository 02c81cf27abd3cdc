// Fair share: how much of the cluster each queue should have. The top queues are divided first,
// then each queue's own share among its children, independently per resource. KAI's division
// (v0.17), in exact integer arithmetic:
//
//  1. Every queue gets min(quota, requestable), where requestable = min(limit, requested) and an
//     unlimited quota is the whole amount being divided. This phase ignores priority and is not
//     scaled down: quotas that exceed the amount give shares that sum to more than the amount.
//  2. What is left goes to queues in descending priority; within one priority in rounds. A round
//     divides what is left at its start by weight among the queues that want more:
//        n_i = weight_i / sum of weights;  w_i = max(0, n_i + k * (n_i - usage_i));
//        give_i = left * w_i / sum of w.
//     A queue that wants at most give_i gets what it wants. Any other queue gets give_i rounded
//     down to whole units, and its fraction is remembered. There is another round while some queue
//     wanted less than its part. Weight 0 gets nothing here.
//  3. The rest is given in single units, priority by priority again: to the largest remembered
//     fraction first, then to the older queue, then by name.
// A unit is one GPU, one milli-CPU, one byte. The unit of step 3 may lift a queue with a fractional
// request above that request by less than one unit, as in KAI.
//
// Not in KAI: a queue with a lending limit requests at least its guaranteed quota (Bounds::kept),
// wanted or not, and so do the queues above it. So no other queue gets that part of its quota.
//
// Thread-safety: FairShareDivider belongs to one thread, the rest are pure functions. Complexity:
// O(queues * resources * rounds); rounds is at most the number of siblings and in practice two or
// three. Nothing can fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "queues/ledger.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

inline constexpr int64_t kMicro = 1'000'000;
inline constexpr int64_t kNano = 1'000'000'000;

// One queue of one level, for one resource.
struct LevelQueue {
  int32_t priority = 0;
  uint32_t age_rank = 0;  // smaller: older, then smaller name; distinct within a level
  int64_t quota = 0;
  int64_t limit = 0;
  int64_t weight_micro = 0;
  int64_t requested = 0;
  int64_t usage_nano = 0;  // of the cluster's capacity over the window
  int64_t fair_share = 0;  // in for kOverQuotaOnly; out
};

enum class DivideMode : uint8_t {
  kFull,
  kOverQuotaOnly,  // steps 2 and 3 alone: `total` is what is left, shares are given
};

// Divides `total` (base units) among the queues of one level; `unit` is a whole unit in base units.
// k_micro: weight of history in millionths, within [0, 1000 * kMicro]. Returns the undivided rest.
int64_t DivideLevel(int64_t total, int64_t unit, int64_t k_micro, DivideMode mode,
                    absl::Span<LevelQueue> queues);

struct FairShareOptions {
  int64_t k_micro = kMicro;  // KAI's kValue; <= 0: history is ignored
  // Historical usage by QueueId, in nano-fractions of the cluster's capacity. Past the end: none.
  std::vector<model::Resources> usage;
};

// The result: base units, by queue and resource. Zero for queues that are not usable.
class FairShares {
 public:
  FairShares() = default;
  explicit FairShares(const QueueTree& tree);

  [[nodiscard]] int64_t Get(QueueId queue, model::ResourceIndex resource) const;
  [[nodiscard]] model::Resources Of(QueueId queue) const;
  // Does nothing for a resource that no queue named when this object was made.
  void Set(QueueId queue, model::ResourceIndex resource, int64_t amount);

 private:
  [[nodiscard]] size_t Column(model::ResourceIndex resource) const;

  std::vector<model::ResourceIndex> resources_;
  std::vector<int64_t> amounts_;  // queue-major
};

// Divides repeatedly: keeps the result of siblings that did not change. Same results as
// ComputeFairShare. Its owner tells it of each change of the tree (QueueObserver). What queues
// request is read and compared at each division: it changes with most placements, and is divided
// once a cycle. Ownership: keeps a reference to the tree. Complexity: reading what every queue
// requests (some microseconds per hundred queues), and the divisions that changed.
class FairShareDivider {
 public:
  explicit FairShareDivider(const QueueTree& tree) : tree_(tree) {}

  // A queue object has changed. O(1).
  void QueuesChanged() { laid_out_ = false; }
  // The first difference between what it knows of the tree and the tree, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

  // `total`: what usable nodes can allocate, less what pods of other schedulers use of it. The
  // result is valid until the next call.
  const FairShares& Divide(const QueueLedger& ledger, const model::Resources& total,
                           const FairShareOptions& options);
  // The number of (level, resource) pairs that the last call divided.
  [[nodiscard]] size_t divisions() const { return divisions_; }

 private:
  static constexpr size_t kNowhere = ~size_t{0};
  // Usable siblings: rows [first, end) of every resource.
  struct Level {
    size_t parent;  // position; kNowhere for the top queues
    size_t first, end;
  };
  struct Column {
    model::ResourceIndex resource;
    int64_t unit;
    std::vector<LevelQueue> rows;  // by position
    std::vector<int64_t> totals;   // by level: what the last division divided
  };

  void Layout();
  void AddLevel(size_t parent, absl::Span<const QueueId> siblings);
  // Sets requested_: what the ledger says, and the guaranteed quota even without requests.
  void ReadRequests(const QueueLedger& ledger, model::ResourceIndex resource);
  void DivideColumn(Column& column, const model::Resources& total, const FairShareOptions& options,
                    bool all);

  const QueueTree& tree_;
  bool laid_out_ = false;  // since the last change of the tree
  int64_t k_micro_ = 0;
  std::vector<QueueId> queues_;  // by position; parents before children
  std::vector<Level> levels_;
  std::vector<Column> columns_;
  std::vector<size_t> parent_at_;    // by position: where the parent is; kNowhere for top queues
  std::vector<int64_t> requested_;   // scratch, by position
  std::vector<int64_t> kept_below_;  // scratch, by position
  FairShares shares_;
  size_t divisions_ = 0;
};

// One division, without state. `total`: as above.
FairShares ComputeFairShare(const QueueTree& tree, const QueueLedger& ledger,
                            const model::Resources& total, const FairShareOptions& options = {});

// The bound that ordering and reclaim compare with: the limit if the quota is unlimited, else
// min(limit, max(quota, fair share)). kUnlimited if there is none.
int64_t AllocatableShare(const Bounds& bounds, int64_t fair_share);
int64_t AllocatableShare(const QueueTree& tree, const FairShares& shares, QueueId queue,
                         model::ResourceIndex resource);

// The unit of division of a resource: a whole device for GPUs, otherwise one base unit.
int64_t DivisionUnit(absl::string_view resource_name);

}  // namespace fairlead::queues
