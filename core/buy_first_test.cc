// Queues that prefer new nodes to evictions above their quota, through the whole decision loop.
#include <gmock/gmock.h>

#include "core/machines_testing.h"
#include "core/queue_provisioning.h"

namespace fairlead::core::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class BuyFirstTest : public MachinesTest {
 protected:
  void Say(const char* over_quota) {
    model::Queue queue = MakeQueue("research", "", 0, model::kUnlimited);
    queue.meta.annotations.Set(kOverQuota, over_quota);
    Put(queue);
  }
  // `low` has run for two minutes at most.
  void Start(const char* over_quota, absl::Duration low_runs = absl::Minutes(2)) {
    Restart();
    SyncAll();
    Say(over_quota);
    AddPod(
        PodBuilder("ns", "low").Queue("research").Gpus(1).Created(0).Priority("low", 10).Build());
    Play(low_runs);
    ASSERT_THAT(bound_, SizeIs(1));
    AddPod(
        PodBuilder("ns", "high").Queue("research").Gpus(1).Created(1).Priority("high", 90).Build());
  }
};

TEST_F(BuyFirstTest, ANodeIsProvisionedAndNothingIsEvicted) {
  Start("BuyNodes");
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(bound_.count("high"), 1u);
  EXPECT_EQ(bound_.count("low"), 1u);
}

TEST_F(BuyFirstTest, OtherwiseThePodOfLowerPriorityLeaves) {
  Start("Evict");
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, SizeIs(1));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(bound_.count("high"), 1u);
}

TEST_F(BuyFirstTest, WhereACapForbidsNodesThePodOfLowerPriorityLeaves) {
  options_.hook.cluster_gpu_limit = 1;
  Start("BuyNodes");
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, SizeIs(1));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(bound_.count("high"), 1u);
}

// The annotation comes to a queue with work in it.
TEST_F(BuyFirstTest, ANewAnnotationCountsAtOnce) {
  Start("Evict");
  Say("BuyNodes");
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(bound_.count("high"), 1u);
}

// A new node is paid for some minutes before it works, and five after that (hook.unneededAfter).
TEST_F(BuyFirstTest, AQueueThatWeighsEvictsWhatHasJustStarted) {
  Start("Weigh");
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, SizeIs(1));
  EXPECT_EQ(created_, 1);
}

TEST_F(BuyFirstTest, AQueueThatWeighsBuysRatherThanEndHoursOfWork) {
  Start("Weigh", absl::Hours(2));
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(bound_.count("high"), 1u);
}

}  // namespace
}  // namespace fairlead::core::testing
