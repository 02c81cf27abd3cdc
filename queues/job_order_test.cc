#include "queues/job_order.h"

#include <gtest/gtest.h>

#include <map>

#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::Resources;

TEST(QueueOrderIteratorTest, NothingToServe) {
  model::ResourceNames names;
  QueueTree tree(names);
  QueueLedger ledger(tree);
  const FairShares shares(tree);
  QueueOrderIterator empty(tree, ledger, shares, [](QueueId) { return nullptr; }, {});
  EXPECT_EQ(empty.Next(), std::nullopt);

  tree.Upsert(MakeQueue("orphan", "missing"));
  tree.Upsert(MakeQueue("parent"));
  tree.Upsert(MakeQueue("a", "a2"));
  tree.Upsert(MakeQueue("a2", "a"));
  model::Queue invalid = MakeQueue("invalid", "parent");
  invalid.invalid = "broken";
  tree.Upsert(invalid);
  ledger.Rebuild(tree);
  const Resources one = Gpus(1000);
  int asked = 0;
  const FairShares none(tree);
  QueueOrderIterator order(tree, ledger, none,
                           [&](QueueId) {
                             ++asked;
                             return &one;
                           },
                           {});
  EXPECT_EQ(order.Next(), std::nullopt) << "orphans, cycles and invalid queues are not served";
  EXPECT_EQ(asked, 0) << "nor is a queue that is not a leaf";
  order.Changed(*tree.Find("orphan"));
  EXPECT_EQ(order.Next(), std::nullopt);
}

TEST(QueueOrderIteratorTest, EqualQueuesTakeTurnsAndOnlyChangedLeavesAreAsked) {
  model::ResourceNames names;
  QueueTree tree(names);
  const auto add = [&](const char* name, const char* parent, int64_t age) {
    model::Queue queue = MakeQueue(name, parent, age);
    queue.gpu = {4000, model::kUnlimited, kMicro};
    return tree.Upsert(queue);
  };
  add("d1", "", 0);
  add("d2", "", 1);
  const QueueId a = add("a", "d1", 0);
  const QueueId b = add("b", "d1", 1);
  const QueueId c = add("c", "d2", 0);
  QueueLedger ledger(tree);
  std::map<QueueId, int> left = {{a, 2}, {b, 2}, {c, 2}};
  for (const auto& [queue, jobs] : left) ledger.AddRequested(queue, Gpus(jobs * 1000));
  const Resources total = Gpus(8000);
  const FairShares shares = ComputeFairShare(tree, ledger, total);
  const Resources job = Gpus(1000);
  int asked = 0;
  QueueOrderIterator order(tree, ledger, shares,
                           [&](QueueId leaf) {
                             ++asked;
                             return left[leaf] > 0 ? &job : nullptr;
                           },
                           {.victims = false, .cluster_total = total});
  std::string served;
  while (const std::optional<QueueId> leaf = order.Next()) {
    EXPECT_EQ(order.Next(), leaf) << "looking does not take";
    served += tree.Name(*leaf);
    ledger.Charge(*leaf, job, true);
    --left[*leaf];
    order.Changed(*leaf);
  }
  EXPECT_EQ(served, "acbcab");
  EXPECT_EQ(asked, 3 + 6);
}

// The oracle of Next(): compares every pair, at every level, from scratch.
class Reference {
 public:
  Reference(const QueueTree& tree, const QueueLedger& ledger, const FairShares& shares,
            const std::map<QueueId, std::vector<Resources>>& jobs,
            const std::map<QueueId, Resources>& picked, bool victims, const Resources& total)
      : tree_(tree),
        ledger_(ledger),
        shares_(shares),
        jobs_(jobs),
        picked_(picked),
        victims_(victims),
        total_(ToCore(total)) {}

  std::optional<QueueId> Best(absl::Span<const QueueId> siblings) const {
    std::optional<QueueId> best_child, best_leaf;
    for (const QueueId child : siblings) {
      if (!tree_.Usable(child)) continue;
      const std::optional<QueueId> leaf =
          tree_.IsLeaf(child) ? (jobs_.at(child).empty() ? std::nullopt : std::optional(child))
                              : Best(tree_.Children(child));
      if (!leaf) continue;
      if (!best_child || Before(child, *leaf, *best_child, *best_leaf)) {
        best_child = child;
        best_leaf = leaf;
      }
    }
    return best_leaf;
  }

 private:
  bool Before(QueueId a, QueueId a_leaf, QueueId b, QueueId b_leaf) const {
    const int c = CompareQueues(ViewOf(a, a_leaf), ViewOf(b, b_leaf), total_);
    return victims_ ? c > 0 : c < 0;
  }
  QueueView ViewOf(QueueId queue, QueueId leaf) const {
    QueueView view = MakeView(tree_, ledger_, shares_, queue, &jobs_.at(leaf).back());
    for (const auto& [from, amount] : picked_) {
      const QueuePath path = tree_.Ancestors(from);
      if (std::find(path.begin(), path.end(), queue) == path.end()) continue;
      for (size_t r = 0; r < 3; ++r) {
        view.picked_victims[r] += amount[static_cast<model::ResourceIndex>(r)];
      }
    }
    return view;
  }
  const QueueTree& tree_;
  const QueueLedger& ledger_;
  const FairShares& shares_;
  const std::map<QueueId, std::vector<Resources>>& jobs_;
  const std::map<QueueId, Resources>& picked_;
  bool victims_;
  CoreAmounts total_;
};

TEST(QueueOrderIteratorTest, AgreesWithComparingEverythingAfterEveryChange) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 150; ++round) {
    const bool victims = random.OneIn(2);
    model::ResourceNames names;
    QueueTree tree(names);
    for (const model::Queue& queue : RandomQueues(random, random.Between(1, 20))) {
      tree.Upsert(queue);
    }
    QueueLedger ledger(tree);
    std::map<QueueId, std::vector<Resources>> jobs;
    std::map<QueueId, Resources> picked;
    for (QueueId q = 0; q < tree.size(); ++q) {
      jobs[q];
      if (!tree.IsLeaf(q)) continue;
      for (int64_t i = random.Between(0, 6); i > 0; --i) {
        jobs[q].push_back(
            Amounts(random.Between(0, 4), random.Between(0, 4), random.Between(0, 4) * 500));
        ledger.AddRequested(q, jobs[q].back());
        if (victims) ledger.Charge(q, jobs[q].back(), true);
      }
    }
    const Resources total = Amounts(40, 40, 16'000);
    const FairShares shares = ComputeFairShare(tree, ledger, total);
    QueueOrderIterator order(
        tree, ledger, shares,
        [&](QueueId leaf) { return jobs[leaf].empty() ? nullptr : &jobs[leaf].back(); },
        {.victims = victims, .cluster_total = total});
    const Reference reference(tree, ledger, shares, jobs, picked, victims, total);
    for (int step = 0;; ++step) {
      const std::optional<QueueId> leaf = order.Next();
      ASSERT_EQ(leaf, reference.Best(tree.Roots())) << "round " << round << " step " << step;
      if (!leaf) break;
      const Resources job = jobs[*leaf].back();
      jobs[*leaf].pop_back();
      if (victims && random.OneIn(2)) {
        picked[*leaf] += job;
        order.Picked(*leaf, job);
      } else if (victims) {
        ledger.Release(*leaf, job, true);
        order.Changed(*leaf);
      } else {
        if (random.OneIn(2)) ledger.Charge(*leaf, job, true);
        order.Changed(*leaf);
      }
      // Other leaves change too, several between two calls.
      for (int64_t i = random.Between(0, 2); i > 0; --i) {
        const auto other =
            static_cast<QueueId>(random.Between(0, static_cast<int64_t>(tree.size()) - 1));
        ledger.Charge(other, Gpus(500), true);
        order.Changed(other);
      }
      if (random.OneIn(10)) {
        const auto other =
            static_cast<QueueId>(random.Between(0, static_cast<int64_t>(tree.size()) - 1));
        ledger.Charge(other, Amounts(1, 1, 1), true);
        order.ChangedAll();
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::queues
