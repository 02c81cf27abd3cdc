#include "queues/job_order.h"

#include <utility>

namespace fairlead::queues {

QueueOrderIterator::QueueOrderIterator(const QueueTree& tree, const QueueLedger& ledger,
                                       const FairShares& shares, NextJobRequest next_job,
                                       const Options& options)
    : tree_(tree),
      ledger_(ledger),
      shares_(shares),
      next_job_(std::move(next_job)),
      victims_(options.victims),
      cluster_total_(ToCore(options.cluster_total)),
      node_of_(tree.size(), kNobody) {
  nodes_.emplace_back();
  Build(0, tree.Roots());
  for (uint32_t node = 1; node < nodes_.size(); ++node) {
    Build(node, tree.Children(nodes_[node].queue));
  }
  ChangedAll();
}

void QueueOrderIterator::Build(uint32_t node, absl::Span<const QueueId> children) {
  uint32_t slot = 0;
  for (const QueueId child : children) {
    if (!tree_.Usable(child)) continue;
    node_of_[child] = static_cast<uint32_t>(nodes_.size());
    Node& row = nodes_.emplace_back();
    row.queue = child;
    row.parent = node;
    row.slot = slot++;
  }
  if (slot == 0) return;
  size_t width = 1;
  while (width < slot) width *= 2;
  nodes_[node].matches.assign(2 * width, kNobody);
}

void QueueOrderIterator::ChangedAll() {
  for (const uint32_t leaf : dirty_) nodes_[leaf].dirty = false;
  dirty_.clear();
  // The loop goes up: children come after their parents.
  for (auto node = static_cast<uint32_t>(nodes_.size()); node-- > 0;) {
    if (!nodes_[node].matches.empty()) {
      PlayAll(node);
      AdoptWinner(node);
    } else if (node != 0) {
      AskLeaf(node);
    }
    if (node == 0) break;
    nodes_[node].ranked = false;
    Node& parent = nodes_[nodes_[node].parent];
    const bool playing = nodes_[node].best_leaf != kNobody;
    parent.matches[parent.matches.size() / 2 + nodes_[node].slot] = playing ? node : kNobody;
  }
}

void QueueOrderIterator::PlayAll(uint32_t node) {
  std::vector<uint32_t>& matches = nodes_[node].matches;
  for (size_t at = matches.size() / 2; at-- > 1;) {
    matches[at] = Winner(matches[2 * at], matches[2 * at + 1]);
  }
}

std::optional<QueueId> QueueOrderIterator::Next() {
  for (const uint32_t leaf : dirty_) RefreshPath(leaf);
  dirty_.clear();
  if (nodes_[0].best_leaf == kNobody) return std::nullopt;
  return nodes_[nodes_[0].best_leaf].queue;
}

void QueueOrderIterator::Changed(QueueId leaf) {
  if (leaf >= node_of_.size() || node_of_[leaf] == kNobody) return;
  const uint32_t node = node_of_[leaf];
  if (nodes_[node].dirty) return;
  nodes_[node].dirty = true;
  dirty_.push_back(node);
}

void QueueOrderIterator::Picked(QueueId leaf, const model::Resources& amount) {
  if (leaf >= node_of_.size() || node_of_[leaf] == kNobody) return;
  const CoreAmounts core = ToCore(amount);
  for (uint32_t node = node_of_[leaf]; node != 0; node = nodes_[node].parent) {
    for (size_t r = 0; r < core.size(); ++r) {
      nodes_[node].picked[r] = model::SaturatingAdd(nodes_[node].picked[r], core[r]);
    }
  }
  Changed(leaf);
}

// Every match between two changed queues is played again after the later of them was refreshed. So
// the order in which paths are refreshed does not matter.
void QueueOrderIterator::RefreshPath(uint32_t leaf) {
  nodes_[leaf].dirty = false;
  // The queue of a charge may have ceased to be a leaf: then its matches are unchanged.
  if (nodes_[leaf].matches.empty()) AskLeaf(leaf);
  for (uint32_t node = leaf; node != 0; node = nodes_[node].parent) {
    nodes_[node].ranked = false;
    const uint32_t parent = nodes_[node].parent;
    std::vector<uint32_t>& matches = nodes_[parent].matches;
    size_t at = matches.size() / 2 + nodes_[node].slot;
    matches[at] = nodes_[node].best_leaf != kNobody ? node : kNobody;
    for (at /= 2; at >= 1; at /= 2) matches[at] = Winner(matches[2 * at], matches[2 * at + 1]);
    AdoptWinner(parent);
  }
}

void QueueOrderIterator::AskLeaf(uint32_t leaf) {
  Node& row = nodes_[leaf];
  const model::Resources* request = tree_.IsLeaf(row.queue) ? next_job_(row.queue) : nullptr;
  row.best_leaf = request != nullptr ? leaf : kNobody;
  row.next_job = request != nullptr ? ToCore(*request) : CoreAmounts{};
}

const QueueRank& QueueOrderIterator::RankOf(uint32_t node) {
  Node& row = nodes_[node];
  if (std::exchange(row.ranked, true)) return row.rank;
  QueueView view = MakeView(tree_, ledger_, shares_, row.queue, nullptr);
  view.next_job = row.next_job;
  if (victims_) view.picked_victims = row.picked;
  row.rank = MakeRank(view, cluster_total_);
  return row.rank;
}

void QueueOrderIterator::AdoptWinner(uint32_t node) {
  Node& row = nodes_[node];
  // A single child is its own winner: with width 1 the only entry is at 1.
  const uint32_t winner = row.matches[1];
  row.best_leaf = winner == kNobody ? kNobody : nodes_[winner].best_leaf;
  row.next_job = winner == kNobody ? CoreAmounts{} : nodes_[winner].next_job;
}

uint32_t QueueOrderIterator::Winner(uint32_t a, uint32_t b) {
  if (a == kNobody) return b;
  if (b == kNobody) return a;
  const QueueRank& x = RankOf(a);
  const QueueRank& y = RankOf(b);
  return (victims_ ? CompareVictimQueues(x, y) : CompareQueues(x, y)) <= 0 ? a : b;
}

}  // namespace fairlead::queues
