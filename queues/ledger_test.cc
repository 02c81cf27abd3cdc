#include "queues/ledger.h"

#include <gtest/gtest.h>

#include <limits>

#include "queues/limits.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kCpu;
using model::kGpu;
using model::kMemory;
using model::kUnlimited;

class LedgerTest : public ::testing::Test {
 protected:
  model::ResourceNames names_;
  QueueTree tree_{names_};
  QueueId top_ = tree_.Upsert(MakeQueue("top"));
  QueueId mid_ = tree_.Upsert(MakeQueue("mid", "top"));
  QueueId leaf_ = tree_.Upsert(MakeQueue("leaf", "mid"));
  QueueId other_ = tree_.Upsert(MakeQueue("other", "top"));
};

TEST_F(LedgerTest, ReleasingMoreThanChargedAborts) {
  QueueLedger ledger(tree_);
  ledger.Charge(leaf_, Gpus(1000), true);
  EXPECT_DEATH(ledger.Release(leaf_, Gpus(1001), true), "more released than charged");
  EXPECT_DEATH(ledger.Release(leaf_, Gpus(1000), false), "more released than charged");
  EXPECT_DEATH(ledger.Release(other_, Gpus(1), true), "more released than charged");
  EXPECT_DEATH(ledger.SubRequested(leaf_, Gpus(1)), "more released than charged");
  EXPECT_DEATH(ledger.Charge(leaf_, Gpus(-1), true), "negative charge");
  EXPECT_DEATH(ledger.Charge(99, Gpus(1), true), "not in the ledger");
}

TEST_F(LedgerTest, ChargesReachEveryAncestorAndNoOtherQueue) {
  QueueLedger ledger(tree_);
  ledger.Charge(leaf_, Amounts(100, 200, 500), false);
  ledger.Charge(leaf_, Amounts(1, 2, 0), true);
  ledger.AddRequested(leaf_, Gpus(4000));
  for (const QueueId queue : {leaf_, mid_, top_}) {
    EXPECT_EQ(ledger.allocated(queue), Amounts(101, 202, 500));
    EXPECT_EQ(ledger.allocated_non_preemptible(queue), Amounts(100, 200, 500));
    EXPECT_EQ(ledger.requested(queue), Gpus(4000));
  }
  EXPECT_TRUE(ledger.allocated(other_).IsZero());
  EXPECT_EQ(ledger.allocated(mid_, kCpu), 101);
  EXPECT_EQ(ledger.allocated(mid_, 40), 0);
}

TEST_F(LedgerTest, RebuildFollowsTheTree) {
  QueueLedger ledger(tree_);
  ledger.Charge(leaf_, Gpus(500), false);
  ledger.Charge(mid_, Gpus(20), true);  // a pod in a queue that has become an inner one
  tree_.Upsert(MakeQueue("mid"));       // moved away from top
  EXPECT_EQ(ledger.allocated(top_, kGpu), 520) << "as built, until it is rebuilt";
  ledger.Rebuild(tree_);
  EXPECT_EQ(ledger.allocated(top_, kGpu), 0);
  EXPECT_EQ(ledger.allocated(mid_, kGpu), 520);
  tree_.Remove("leaf");  // its pods still run
  ledger.Rebuild(tree_);
  EXPECT_EQ(ledger.allocated(mid_, kGpu), 520) << "the queues above stay charged";
  EXPECT_EQ(ledger.allocated_non_preemptible(leaf_, kGpu), 500);
  const QueueId added = tree_.Upsert(MakeQueue("added", "leaf"));
  tree_.Upsert(MakeQueue("leaf", "other"));
  ledger.Rebuild(tree_);
  ledger.Charge(added, Gpus(1), true);
  EXPECT_EQ(ledger.allocated(other_, kGpu), 501);
  EXPECT_EQ(ledger.allocated(top_, kGpu), 501);
}

TEST_F(LedgerTest, AbsurdAmountsAreReadSaturatedAndReleasedExactly) {
  QueueLedger ledger(tree_);
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) ledger.AddRequested(leaf_, Amounts(0, most, 0));
  ledger.AddRequested(other_, Amounts(0, 7, 0));
  EXPECT_EQ(ledger.requested(top_, kMemory), most);
  for (int i = 0; i < 5; ++i) ledger.SubRequested(leaf_, Amounts(0, most, 0));
  EXPECT_EQ(ledger.requested(top_, kMemory), 7);
}

TEST_F(LedgerTest, RandomChargesAreUndoneExactlyAndSumOverTheTree) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 30; ++round) {
    model::ResourceNames names;
    QueueTree tree(names);
    for (const model::Queue& queue : RandomQueues(random, 20)) tree.Upsert(queue);
    QueueLedger ledger(tree);
    struct Entry {
      QueueId queue;
      model::Resources amount;
      bool preemptible;
    };
    std::vector<Entry> entries;
    const auto charge = [&] {
      Entry entry{static_cast<QueueId>(random.Between(0, static_cast<int64_t>(tree.size()) - 1)),
                  Amounts(random.Between(0, 9), random.Between(0, 9), random.Between(0, 9)),
                  random.OneIn(2)};
      if (random.OneIn(10)) entry.amount.Set(static_cast<uint16_t>(random.Between(3, 9)), 1);
      ledger.Charge(entry.queue, entry.amount, entry.preemptible);
      entries.push_back(entry);
    };
    for (int i = 0; i < 50; ++i) charge();
    const QueueLedger before = ledger;
    for (int i = 0; i < 50; ++i) charge();
    while (entries.size() > 50) {
      ledger.Release(entries.back().queue, entries.back().amount, entries.back().preemptible);
      entries.pop_back();
    }
    ASSERT_TRUE(ledger == before);
    for (QueueId q = 0; q < tree.size(); ++q) {
      model::Resources all, non_preemptible;
      for (const Entry& entry : entries) {
        const QueuePath path = tree.Ancestors(entry.queue);
        if (std::find(path.begin(), path.end(), q) == path.end()) continue;
        all += entry.amount;
        if (!entry.preemptible) non_preemptible += entry.amount;
      }
      ASSERT_EQ(ledger.allocated(q), all);
      ASSERT_EQ(ledger.allocated_non_preemptible(q), non_preemptible);
    }
    QueueLedger rebuilt = ledger;
    rebuilt.Rebuild(tree);
    ASSERT_TRUE(rebuilt == ledger);
  }
}

// --- limits -------------------------------------------------------------------------------------

class LimitsTest : public LedgerTest {
 protected:
  void Bound(const std::string& name, const std::string& parent, int64_t quota, int64_t limit) {
    model::Queue queue = MakeQueue(name, parent);
    queue.gpu = {quota, limit, 0};
    tree_.Upsert(queue);
  }
};

TEST_F(LimitsTest, TheLimitOfEveryAncestorIsChecked) {
  const struct {
    const char* name;
    const char* parent;
    QueueId id;
  } levels[] = {{"leaf", "mid", leaf_}, {"mid", "top", mid_}, {"top", "", top_}};
  for (const auto& level : levels) {
    Bound(level.name, level.parent, kUnlimited, 3000);
    QueueLedger ledger(tree_);
    ledger.Charge(leaf_, Gpus(2000), true);
    EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Gpus(1000), true), std::nullopt) << level.name;
    const LimitViolation expected{level.id, kGpu, LimitKind::kLimit, 3000, 2000, 1001};
    EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Gpus(1001), true), expected) << level.name;
    Bound(level.name, level.parent, kUnlimited, kUnlimited);
  }
}

TEST_F(LimitsTest, TheQuotaOfEveryAncestorHoldsNonPreemptibleWork) {
  Bound("mid", "top", 1000, kUnlimited);
  QueueLedger ledger(tree_);
  ledger.Charge(leaf_, Gpus(5000), true);
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Gpus(1000), false), std::nullopt);
  ledger.Charge(leaf_, Gpus(1000), false);
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Gpus(1), true), std::nullopt);
  const LimitViolation expected{mid_, kGpu, LimitKind::kNonPreemptibleQuota, 1000, 1000, 1};
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Gpus(1), false), expected);
  EXPECT_EQ(CheckLimits(tree_, ledger, other_, Gpus(1), false), std::nullopt);
}

TEST_F(LimitsTest, WhatIsNotRequestedIsNotCompared) {
  QueueLedger ledger(tree_);
  ledger.Charge(leaf_, Amounts(100, 100, 2000), false);
  Bound("leaf", "mid", 1000, 1000);  // lowered below what it has
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Amounts(5, 5, 0), false), std::nullopt);
  EXPECT_TRUE(CheckLimits(tree_, ledger, leaf_, Gpus(1), true));
}

TEST_F(LimitsTest, AnOmittedLimitIsALimitOfZeroAndExtraResourcesAreBounded) {
  model::Queue queue = MakeQueue("leaf", "mid");
  queue.cpu = {};
  queue.other = {{"example.com/licence", {kUnlimited, 2, 0}}};
  tree_.Upsert(queue);
  QueueLedger ledger(tree_);
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, Amounts(1, 0, 0), true)->resource, kCpu);
  model::Resources licences;
  licences.Set(*names_.Find("example.com/licence"), 3);
  EXPECT_EQ(CheckLimits(tree_, ledger, leaf_, licences, true)->limit, 2);
}

TEST_F(LimitsTest, HeadroomIsTheLargestRequestThatPasses) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 100; ++round) {
    model::ResourceNames names;
    QueueTree tree(names);
    for (const model::Queue& queue : RandomQueues(random, 10)) tree.Upsert(queue);
    QueueLedger ledger(tree);
    for (QueueId q = 0; q < tree.size(); ++q) {
      ledger.Charge(q,
                    Amounts(random.Between(0, 20), random.Between(0, 20), random.Between(0, 2000)),
                    random.OneIn(2));
    }
    for (QueueId q = 0; q < tree.size(); ++q) {
      for (const bool preemptible : {true, false}) {
        const model::Resources headroom = Headroom(tree, ledger, q, preemptible);
        EXPECT_EQ(headroom[model::kPods], kUnlimited);
        for (const model::ResourceIndex r : {kCpu, kMemory, kGpu}) {
          model::Resources request;
          if (headroom[r] == kUnlimited) {
            request.Set(r, std::numeric_limits<int64_t>::max());
            ASSERT_EQ(CheckLimits(tree, ledger, q, request, preemptible), std::nullopt);
            continue;
          }
          request.Set(r, headroom[r]);
          ASSERT_EQ(CheckLimits(tree, ledger, q, request, preemptible), std::nullopt);
          request.Set(r, headroom[r] + 1);
          ASSERT_TRUE(CheckLimits(tree, ledger, q, request, preemptible));
        }
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::queues
