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
  void Start(const char* over_quota) {
    Restart();
    SyncAll();
    model::Queue queue = MakeQueue("research", "", 0, model::kUnlimited);
    queue.meta.annotations.Set(kOverQuota, over_quota);
    Put(queue);
    AddPod(
        PodBuilder("ns", "low").Queue("research").Gpus(1).Created(0).Priority("low", 10).Build());
    Play(absl::Minutes(2));
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
  model::Queue queue = MakeQueue("research", "", 0, model::kUnlimited);
  queue.meta.annotations.Set(kOverQuota, "BuyNodes");
  Put(queue);
  Play(absl::Minutes(3));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(bound_.count("high"), 1u);
}

}  // namespace
}  // namespace fairlead::core::testing
