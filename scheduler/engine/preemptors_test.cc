#include "scheduler/engine/preemptors.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::MakeQueue;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;
using verdict::Code;

// Queue a holds 4 GPUs, all that root may hold, and has a higher priority than queue b, which holds
// none of its quota of 2. Capacity is not short: the nodes have 8 GPUs.
class PreemptorsTest : public ::testing::Test {
 protected:
  PreemptorsTest() {
    c_.Queue("root", model::kUnlimited, 4);
    model::Queue a = MakeQueue("a", "root", 1, model::kUnlimited);
    a.priority = 300;
    c_.Queue(a);
    c_.Queue("b", 2, model::kUnlimited, "root");
    c_.Node("n1", 4);
    c_.Node("n2", 4);
    for (int i = 1; i <= 4; ++i) c_.Pod(OfA(i).On("n1"));
  }
  static model::testing::PodBuilder OfA(int number) {
    return Job(absl::StrCat("a", number), "a", 1, number);
  }
  void Remove(absl::string_view pod) {
    c_.state().RemovePod("ns", pod, absl::StrCat("uid-ns-", pod));
  }
  // Capacity is short instead of the headroom of the limit.
  void LeaveOneNode() {
    c_.Queue("root", model::kUnlimited);
    c_.state().RemoveNode("n2", "uid-n2");
  }
  // A gang at the head of queue b that exceeds b's quota: while it is there, queue a comes before
  // queue b.
  void PutGangFirst() {
    c_.Group(PreemptibleGroup("gang", "b", 3));
    for (const char* name : {"g1", "g2", "g3"}) {
      c_.Pod(Member(name, "gang").Priority("high", 80));
    }
  }

  Cluster c_;
};

// The pods that a's controllers create again come first in queue order.
TEST_F(PreemptorsTest, PodsCreatedForVictimsDoNotTakeTheHeadroomOfTheLimit) {
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre("reclaim:a4"));
  PutGangFirst();
  c_.Pod(OfA(5));
  c_.Run(101);
  EXPECT_THAT(c_.Bound(), ElementsAre("b1>n2"));
  EXPECT_EQ(c_.CodeOf("a5"), Code::kQueueLimitReached);
}

TEST_F(PreemptorsTest, NorTheFreedCapacity) {
  LeaveOneNode();
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre("reclaim:a4"));
  PutGangFirst();
  c_.Pod(OfA(5));
  c_.Run(101);
  EXPECT_EQ(c_.CodeOf("b1"), Code::kWaitingForVictims);
  EXPECT_EQ(c_.CodeOf("a5"), Code::kInsufficientCapacity);
  Remove("a4");
  c_.Run(102);
  EXPECT_THAT(c_.Bound(), ElementsAre("b1>n1"));
}

// Evictions that are not sent yet are cancelled where nothing is promised any more.
TEST(PreemptorsNodeTest, RoomThatBecomesIdleSparesVictims) {
  Cluster c;
  c.Queue("a", 0);
  c.Queue("b", 24);
  for (const char* node : {"n0", "n1"}) {
    c.Node(node, 8);
    for (int i = 0; i < 8; ++i) c.Pod(Job(absl::StrCat(node, "-", i), "a", 1, i).On(node));
  }
  c.Group(PreemptibleGroup("gang", "b", 2, 10));
  for (const char* name : {"g0", "g1"}) {
    c.Pod(model::testing::PodBuilder("ns", name).Group("gang").Gpus(8).Created(10));
  }
  c.Run(100);
  ASSERT_EQ(c.Evicted().size(), 16u);
  c.Run(101);
  EXPECT_THAT(c.Promised(), ElementsAre("g0>n0", "g1>n1"));
  c.Node("n2", 8);
  c.Run(102);
  EXPECT_THAT(c.Promised(), ElementsAre("g0>n2", "g1>n1"));
}

// Its own promise keeps the preemptor in its place in queue order.
TEST_F(PreemptorsTest, APreemptorServedFirstHasItsPositionInItsQueue) {
  LeaveOneNode();
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  PutGangFirst();
  c_.Run(101);
  ASSERT_NE(c_.VerdictOf("b1"), nullptr);
  EXPECT_EQ(c_.VerdictOf("gang")->position, 1);
  EXPECT_EQ(c_.VerdictOf("b1")->position, 2);
}

// What is served first is what pods were evicted for, and no more.
TEST_F(PreemptorsTest, ALargerStepIsNotServedFirst) {
  c_.Group(PreemptibleGroup("b1", "b", 1));
  c_.Pod(Member("b1-0", "b1"));
  c_.Pod(Member("b1-1", "b1"));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre("reclaim:a4"));
  c_.Group(PreemptibleGroup("b1", "b", 2));
  c_.Pod(OfA(5));
  c_.Run(101);
  EXPECT_EQ(c_.CodeOf("b1"), Code::kWaitingForVictims);  // in its turn
}

TEST_F(PreemptorsTest, ItEndsAfterAWhile) {
  LeaveOneNode();
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  PutGangFirst();
  c_.Pod(OfA(5));
  const int64_t end = 100 + absl::ToInt64Seconds(Preemptors::kHeldFor);
  EXPECT_EQ(c_.Run(end - 1).wake_at, model::testing::At(end));
  EXPECT_EQ(c_.CodeOf("b1"), Code::kWaitingForVictims);
  c_.Run(end);
  EXPECT_EQ(c_.CodeOf("b1"), Code::kInsufficientCapacity);
  EXPECT_EQ(c_.CodeOf("a5"), Code::kWaitingForVictims);
}

// An eviction that is refused ends it too.
TEST_F(PreemptorsTest, ItEndsWhenItsCapacityDoesNotCome) {
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  c_.state().ForgetEviction(c_.state().FindPod("ns", "a4"));
  c_.engine().OnEvictionRefused(c_.state().FindPod("ns", "a4"), model::testing::At(200), false,
                                model::testing::At(100));
  c_.Run(101);
  EXPECT_THAT(c_.Evicted(), ElementsAre("reclaim:a3"));
}

// Reclaim plans as the next cycle decides: what comes first there gets its part of the limit again,
// so nothing would be left for the step, and no pod is evicted or moved in vain.
TEST_F(PreemptorsTest, NoPodIsEvictedForAStepThatWouldExceedALimitAgain) {
  PutGangFirst();
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  EXPECT_EQ(c_.CodeOf("b1"), Code::kQueueLimitReached);
}

}  // namespace
}  // namespace fairlead::engine
