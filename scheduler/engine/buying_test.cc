// Queues that prefer new nodes to evictions for what they hold above their quota.
#include "scheduler/engine/buying.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeNode;
using testing::Cluster;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using ::testing::Not;
using verdict::Code;

constexpr int64_t kNow = 1'000'000'000;

// One node with 2 GPUs, whose pod is in the way of a pod of higher priority.
void AQueueAtItsQuota(Cluster& c) {
  c.Queue("q", 2);
  c.Node("n", 2);
  c.Pod(Job("low", "q", 2, 1).Priority("low", 10).On("n"));
  c.Pod(Job("high", "q", 2, 2).Priority("high", 90));
}

// At 4 dollars an hour, which are paid for 15 minutes without work.
void Offer(Cluster& c, int64_t gpus) {
  c.engine().SetOfferedNodes({{MakeNode("offer", gpus), 4'000'000, absl::Minutes(15)}});
}

TEST(BuyingTest, AboveItsQuotaAQueueMayPreferNodes) {
  Cluster c;
  AQueueAtItsQuota(c);
  Offer(c, 4);
  c.engine().SetOverQuota({{"q", OverQuota::kBuyNodes}});
  c.Run();
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_EQ(c.CodeOf("high"), Code::kInsufficientCapacity);
  EXPECT_THAT(c.DetailsOf("high"), HasSubstr("while nodes can be had"));
}

TEST(BuyingTest, OtherQueuesEvict) {
  Cluster c;
  AQueueAtItsQuota(c);
  Offer(c, 4);
  c.engine().SetOverQuota({{"other", OverQuota::kBuyNodes}});
  c.Run();
  EXPECT_THAT(c.Evicted(), Not(IsEmpty()));
}

TEST(BuyingTest, WhatNoNodeOnOfferHoldsIsNotWaitedFor) {
  for (const bool small : {false, true}) {
    Cluster c;
    AQueueAtItsQuota(c);
    if (small) Offer(c, 1);
    c.engine().SetOverQuota({{"q", OverQuota::kBuyNodes}});
    c.Run();
    EXPECT_THAT(c.Evicted(), Not(IsEmpty())) << small;
  }
}

// A cap, a stock-out, a back-off.
TEST(BuyingTest, WhatTheAutoscalerCannotServeEvicts) {
  Cluster c;
  AQueueAtItsQuota(c);
  Offer(c, 4);
  c.engine().SetOverQuota({{"q", OverQuota::kBuyNodes}});
  const CycleResult cycle = c.Run();
  ASSERT_THAT(c.Evicted(), IsEmpty());
  const uint64_t kind = testing::FindWaiting(c.state(), cycle, "high")->demand_kind;
  const absl::flat_hash_set<uint64_t> unservable = {kind};
  c.engine().SetUnservable(&unservable);
  c.Run();
  EXPECT_THAT(c.Evicted(), Not(IsEmpty()));
  c.engine().SetUnservable(nullptr);
}

TEST(BuyingTest, WithinQuotaNobodyWaitsForNodes) {
  Cluster c;
  c.Queue("rich", 2);
  c.Queue("over", 0);
  c.Node("n", 2);
  c.Pod(Job("borrowed", "over", 2, 1).On("n"));
  c.Pod(Job("entitled", "rich", 2, 2));
  Offer(c, 4);
  c.engine().SetOverQuota({{"rich", OverQuota::kBuyNodes}, {"over", OverQuota::kBuyNodes}});
  c.Run();
  EXPECT_THAT(c.Evicted(), Not(IsEmpty()));
}

// Both pods take half of the node: 2 dollars an hour. New nodes waste a quarter of an hour of that.
TEST(BuyingTest, WorkIsWeighedAgainstNodes) {
  for (const auto& [ran_s, evicts] :
       {std::pair<int64_t, bool>(0, true), {900, true}, {901, false}, {1'000'000'000, false}}) {
    Cluster c;
    c.Queue("q", 2);
    c.Node("n", 2);
    c.Pod(Job("low", "q", 2, 1).Priority("low", 10).On("n").Started(kNow - ran_s));
    c.Pod(Job("high", "q", 2, 2).Priority("high", 90));
    Offer(c, 4);
    c.engine().SetOverQuota({{"q", OverQuota::kWeigh}});
    c.Run(kNow);
    EXPECT_EQ(!c.Evicted().empty(), evicts) << ran_s;
    if (evicts) continue;
    EXPECT_EQ(c.CodeOf("high"), Code::kInsufficientCapacity);
    EXPECT_THAT(c.DetailsOf("high"), HasSubstr("worth more than the $0.50 that new nodes cost"));
  }
}

// The victim needs more than any node on offer has: nothing that can be had replaces its work.
TEST(BuyingTest, WorkThatNoNodeOnOfferHoldsIsWorthMoreThanNodes) {
  for (const bool started : {false, true}) {
    Cluster c;
    c.Queue("q", 2);
    c.Node("n", 2);
    auto low = Job("low", "q", 2, 1).Priority("low", 10).On("n");
    if (started) low.Started(kNow - 1);
    c.Pod(low);
    c.Pod(Job("high", "q", 1, 2).Priority("high", 90));
    c.Pod(Job("fill", "q", 1, 3).Priority("high", 90));
    Offer(c, 1);
    c.engine().SetOverQuota({{"q", OverQuota::kWeigh}});
    c.Run(kNow);
    EXPECT_EQ(c.Evicted().empty(), started);
  }
}

}  // namespace
}  // namespace fairlead::engine
