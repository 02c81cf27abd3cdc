#include "queues/lending.h"

#include <gtest/gtest.h>

#include <functional>

#include "queues/fair_share.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kCpu;
using model::kGpu;
using model::kUnlimited;

model::Queue Lender(const std::string& name, const std::string& parent, int64_t quota,
                    int64_t lending_limit, int64_t limit = kUnlimited) {
  model::Queue queue = MakeQueue(name, parent);
  queue.gpu = {quota, limit, kMicro, lending_limit};
  return queue;
}

class LendingTest : public ::testing::Test {
 protected:
  model::ResourceNames names_;
  QueueTree tree_{names_};
};

TEST_F(LendingTest, WhatIsKeptFollowsFromTheSpec) {
  const auto kept = [this](int64_t quota, int64_t lending_limit, int64_t limit = kUnlimited) {
    return tree_.BoundsOf(tree_.Upsert(Lender("q", "", quota, lending_limit, limit)), kGpu).kept;
  };
  EXPECT_EQ(kept(4000, kUnlimited), 0);
  EXPECT_FALSE(tree_.AnyKept());
  EXPECT_EQ(kept(4000, 0), 4000);
  EXPECT_TRUE(tree_.AnyKept());
  EXPECT_EQ(kept(4000, 1500), 2500);
  EXPECT_EQ(kept(4000, 9000), 0);
  EXPECT_EQ(kept(4000, 0, 1000), 1000) << "not more than it may use";
  EXPECT_EQ(kept(kUnlimited, 0), 0) << "there is no unused part of an unlimited quota";
  EXPECT_FALSE(tree_.AnyKept());
  const QueueId bad = tree_.Upsert(Lender("q", "", 4000, -2));
  EXPECT_EQ(tree_.Problem(bad), "spec.resources.gpu.lendingLimit is negative and not -1");
  tree_.Upsert(Lender("q", "", 4000, 0));
  tree_.Remove("q");
  EXPECT_FALSE(tree_.AnyKept());
}

// 16 GPUs. lender: quota 8, lends at most 3, requests nothing; borrower: quota 4, wants everything.
TEST_F(LendingTest, KeptPartIsNotDividedAmongOthers) {
  const QueueId lender = tree_.Upsert(Lender("lender", "", 8000, 3000));
  const QueueId borrower = tree_.Upsert(Lender("borrower", "", 4000, kUnlimited));
  QueueLedger ledger(tree_);
  ledger.AddRequested(borrower, Gpus(100'000));
  FairShares shares = ComputeFairShare(tree_, ledger, Gpus(16'000));
  EXPECT_EQ(shares.Get(lender, kGpu), 5000);
  EXPECT_EQ(shares.Get(borrower, kGpu), 11'000) << "its own 4, 4 that no queue owns, 3 borrowed";
  ledger.AddRequested(lender, Gpus(7000));
  shares = ComputeFairShare(tree_, ledger, Gpus(16'000));
  EXPECT_EQ(shares.Get(lender, kGpu), 7000) << "its quota is its own";
  EXPECT_EQ(shares.Get(borrower, kGpu), 9000);
}

// The part guaranteed to an idle child is not lent to cousins either, and does not reduce what its
// sibling gets from elsewhere.
TEST_F(LendingTest, QueuesAboveKeepForTheirChildren) {
  const QueueId dept = tree_.Upsert(Lender("dept", "", 8000, kUnlimited));
  const QueueId idle = tree_.Upsert(Lender("idle", "dept", 4000, 0));
  const QueueId busy = tree_.Upsert(Lender("busy", "dept", 4000, kUnlimited));
  const QueueId other = tree_.Upsert(Lender("other", "", 0, kUnlimited));
  QueueLedger ledger(tree_);
  ledger.AddRequested(busy, Gpus(6000));
  ledger.AddRequested(other, Gpus(100'000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(16'000));
  EXPECT_EQ(shares.Get(idle, kGpu), 4000);
  EXPECT_EQ(shares.Get(busy, kGpu), 6000);
  EXPECT_EQ(shares.Get(dept, kGpu), 10'000);
  EXPECT_EQ(shares.Get(other, kGpu), 6000);
}

TEST_F(LendingTest, FloorsAreHeldWherePodsArePlaced) {
  const QueueId lender = tree_.Upsert(Lender("lender", "", 8000, 3000));
  const QueueId borrower = tree_.Upsert(Lender("borrower", "", 4000, kUnlimited));
  QueueLedger ledger(tree_);
  LendingFloors floors(tree_, ledger);
  EXPECT_EQ(floors.Idle(kGpu), 5000);
  EXPECT_EQ(floors.Idle(kCpu), 0);
  ledger.Charge(borrower, Gpus(10'000), true);
  floors.Changed(borrower);
  EXPECT_FALSE(floors.Check(borrower, Gpus(1000), Gpus(16'000)));
  EXPECT_EQ(floors.Check(borrower, Gpus(1001), Gpus(16'000)),
            (LendingRefusal{kGpu, 16'000, 10'000, 5000, 1001}));
  EXPECT_FALSE(floors.Check(borrower, Gpus(1001), Gpus(17'000))) << "another node would help";
  EXPECT_FALSE(floors.Check(borrower, Amounts(5, 5, 0), Gpus(0))) << "nothing of it is asked for";
  // The owner: its guaranteed part, and then unowned capacity.
  EXPECT_FALSE(floors.Check(lender, Gpus(5000), Gpus(15'000)));
  EXPECT_FALSE(floors.Check(lender, Gpus(6000), Gpus(16'000)));
  EXPECT_TRUE(floors.Check(lender, Gpus(6001), Gpus(16'000)));
  // The cluster lost nodes: other queues wait; the owner may still take its guaranteed part.
  EXPECT_TRUE(floors.Check(borrower, Gpus(1), Gpus(12'000)));
  EXPECT_FALSE(floors.Check(lender, Gpus(5000), Gpus(12'000)));
  ledger.Charge(lender, Gpus(5000), true);
  floors.Changed(lender);
  EXPECT_EQ(floors.Idle(kGpu), 0);
  EXPECT_FALSE(floors.Check(borrower, Gpus(1000), Gpus(16'000)));
}

// idle() by definition, and Check() by placing the request and comparing.
TEST_F(LendingTest, AgreesWithTheDefinitionOnRandomTrees) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 150; ++round) {
    model::ResourceNames names;
    QueueTree tree(names);
    for (model::Queue queue : RandomQueues(random, random.Between(1, 20))) {
      if (random.OneIn(2)) queue.gpu.lending_limit = random.Between(0, 8) * 500;
      tree.Upsert(queue);
    }
    QueueLedger ledger(tree);
    LendingFloors floors(tree, ledger);
    const std::function<int64_t(QueueId)> idle = [&](QueueId q) -> int64_t {
      if (!tree.Usable(q)) return 0;
      int64_t below = 0;
      for (const QueueId child : tree.Children(q)) below += idle(child);
      const model::QueueResource& gpu = tree.Spec(q).gpu;
      int64_t kept = gpu.quota >= 0 && gpu.lending_limit >= 0
                         ? std::max<int64_t>(0, gpu.quota - gpu.lending_limit)
                         : 0;
      if (gpu.limit >= 0) kept = std::min(kept, gpu.limit);
      return std::max(below, kept - ledger.allocated(q, kGpu));
    };
    const auto sum = [&] {
      int64_t result = 0;
      for (QueueId q = 0; q < tree.size(); ++q) {
        if (!tree.Parent(q)) result += ledger.allocated(q, kGpu) + idle(q);
      }
      return result;
    };
    for (int step = 0; step < 40; ++step) {
      const auto queue =
          static_cast<QueueId>(random.Between(0, static_cast<int64_t>(tree.size()) - 1));
      const model::Resources request = Gpus(random.Between(1, 6) * 500);
      const model::Resources total = Gpus(random.Between(0, 60) * 1000);
      const int64_t before = sum();
      const bool refused = floors.Check(queue, request, total).has_value();
      ledger.Charge(queue, request, true);
      floors.Changed(queue);
      const bool keepers = tree.AnyKept();
      ASSERT_EQ(refused, keepers && sum() > before && sum() > total[kGpu]) << "round " << round;
      if (keepers) {
        int64_t all = 0;
        for (const QueueId root : tree.Roots()) all += idle(root);
        ASSERT_EQ(floors.Idle(kGpu), all);
      }
      if (random.OneIn(2)) {
        ledger.Release(queue, request, true);
        floors.Changed(queue);
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::queues
