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

// One node with 2 GPUs, whose pod is in the way of a pod of higher priority.
void AQueueAtItsQuota(Cluster& c) {
  c.Queue("q", 2);
  c.Node("n", 2);
  c.Pod(Job("low", "q", 2, 1).Priority("low", 10).On("n"));
  c.Pod(Job("high", "q", 2, 2).Priority("high", 90));
}

TEST(BuyingTest, AboveItsQuotaAQueueMayPreferNodes) {
  Cluster c;
  AQueueAtItsQuota(c);
  c.engine().SetOfferedNodes({MakeNode("offer", 4)});
  c.engine().SetBuysFirst({"q"});
  c.Run();
  EXPECT_THAT(c.Evicted(), IsEmpty());
  EXPECT_EQ(c.CodeOf("high"), Code::kInsufficientCapacity);
  EXPECT_THAT(c.DetailsOf("high"), HasSubstr("while nodes can be had"));
}

TEST(BuyingTest, OtherQueuesEvict) {
  Cluster c;
  AQueueAtItsQuota(c);
  c.engine().SetOfferedNodes({MakeNode("offer", 4)});
  c.engine().SetBuysFirst({"other"});
  c.Run();
  EXPECT_THAT(c.Evicted(), Not(IsEmpty()));
}

TEST(BuyingTest, WhatNoNodeOnOfferHoldsIsNotWaitedFor) {
  for (const bool small : {false, true}) {
    Cluster c;
    AQueueAtItsQuota(c);
    if (small) c.engine().SetOfferedNodes({MakeNode("offer", 1)});
    c.engine().SetBuysFirst({"q"});
    c.Run();
    EXPECT_THAT(c.Evicted(), Not(IsEmpty())) << small;
  }
}

// A cap, a stock-out, a back-off.
TEST(BuyingTest, WhatTheAutoscalerCannotServeEvicts) {
  Cluster c;
  AQueueAtItsQuota(c);
  c.engine().SetOfferedNodes({MakeNode("offer", 4)});
  c.engine().SetBuysFirst({"q"});
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
  c.engine().SetOfferedNodes({MakeNode("offer", 4)});
  c.engine().SetBuysFirst({"rich", "over"});
  c.Run();
  EXPECT_THAT(c.Evicted(), Not(IsEmpty()));
}

}  // namespace
}  // namespace fairlead::engine
