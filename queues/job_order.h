// The leaf queue to serve next. Walks down the tree and takes, at each level, the best child by
// ordering.h, judging each child with the best job of its subtree.
//
// Placing a job changes the allocations of its queue and the queues above it, and so only their
// places among their siblings. Each inner queue therefore keeps a knock-out tournament of its
// children: after one change only the matches on the changed paths are played again.
//
//   QueueOrderIterator order(tree, ledger, shares, next_job, {.cluster_total = total});
//   while (std::optional<QueueId> leaf = order.Next()) {
//     ... try the leaf's next job; charge the ledger; advance the leaf's own list ...
//     order.Changed(*leaf);
//   }
//
// Next() removes nothing: it returns the same leaf until Changed() or Picked(). Contract: call
// Changed() for a leaf, before Next(), after its ledger charge or its next job has changed. The
// tree and the fair shares must not change meanwhile.
//
// Thread-safety: one thread. Ownership: keeps references to tree, ledger and shares, and the
// callback; uses the pointer that the callback returns only during the call. Complexity: building
// O(queues); Changed() O(1); Next() O(depth * log siblings) per changed leaf.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "queues/fair_share.h"
#include "queues/ledger.h"
#include "queues/ordering.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

class QueueOrderIterator {
 public:
  // What the leaf's next job requests (one step: the gang, or one extra pod); null if the leaf has
  // no more. Called only for usable leaves.
  using NextJobRequest = std::function<const model::Resources*(QueueId leaf)>;
  struct Options {
    bool victims = false;  // reversed: eviction order
    model::Resources cluster_total;
  };

  QueueOrderIterator(const QueueTree& tree, const QueueLedger& ledger, const FairShares& shares,
                     NextJobRequest next_job, const Options& options);

  // None when every leaf is exhausted.
  std::optional<QueueId> Next();
  void Changed(QueueId leaf);
  // Victims only: `amount` of what the leaf holds is picked but still charged in the ledger.
  // Includes Changed().
  void Picked(QueueId leaf, const model::Resources& amount);
  // Says that everything may have changed (a rolled-back transaction that touched many queues).
  void ChangedAll();

 private:
  static constexpr uint32_t kNobody = ~uint32_t{0};
  // Node 0 is above the top queues and has no queue.
  struct Node {
    QueueId queue = 0;
    uint32_t parent = 0;
    uint32_t slot = 0;             // place among the parent's children
    uint32_t best_leaf = kNobody;  // node of the leaf that is next in this subtree
    bool dirty = false;
    CoreAmounts next_job = {};  // of best_leaf
    CoreAmounts picked = {};
    bool ranked = false;  // `rank` is up to date; it is made for its first match
    QueueRank rank;
    // Winners of the matches between children: heap layout, root at 1, leaves at [width, 2*width).
    std::vector<uint32_t> matches;
  };

  void Build(uint32_t node, absl::Span<const QueueId> children);
  void PlayAll(uint32_t node);
  void RefreshPath(uint32_t leaf);
  void AskLeaf(uint32_t leaf);
  const QueueRank& RankOf(uint32_t node);
  void AdoptWinner(uint32_t node);
  [[nodiscard]] uint32_t Winner(uint32_t a, uint32_t b);

  const QueueTree& tree_;
  const QueueLedger& ledger_;
  const FairShares& shares_;
  const NextJobRequest next_job_;
  const bool victims_;
  const CoreAmounts cluster_total_;
  std::vector<Node> nodes_;  // parents before children
  std::vector<uint32_t> node_of_;
  std::vector<uint32_t> dirty_;
};

}  // namespace fairlead::queues
