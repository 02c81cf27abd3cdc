// Caps of queues: what is provisioned for a queue and for those below it.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "base/testing/random.h"
#include "gmock/gmock.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::Random;
using ::testing::SizeIs;
using testing::Spec;
using verdict::Code;

class QueueCapTest : public HookTest {
 protected:
  static DemandItem Of(const std::string& queue, const std::string& name, int64_t gpus,
                       int64_t count = 1, bool atomic = false) {
    DemandItem item = Item(name, Spec(1000, 1, gpus), count, atomic);
    item.queue = queue;
    return item;
  }
  int64_t GpusFor(const std::set<std::string>& queues) const {
    int64_t gpus = 0;
    for (const auto& [name, request] : requests_) {
      if (queues.contains(request.queue)) gpus += OrderedGpus(request).value_or(0);
    }
    return gpus;
  }
};

TEST_F(QueueCapTest, ACapOfOneQueueLeavesTheOthersAlone) {
  queue_caps_ = {{.queue = "a", .queues = {"a"}, .gpus = 2}};
  const StepOutput out =
      StepAndApply({Of("a", "t/1", 1), Of("a", "t/2", 1), Of("a", "t/3", 1), Of("b", "t/4", 1, 3)});
  EXPECT_EQ(GpusFor({"a"}), 2);
  EXPECT_EQ(GpusFor({"b"}), 3);
  ASSERT_THAT(out.outcomes, SizeIs(4));
  EXPECT_EQ(out.outcomes[0].code, Code::kNodesRequested);
  EXPECT_EQ(out.outcomes[2].code, Code::kGpuCapReached);
  EXPECT_THAT(out.outcomes[2].details, ElementsAre(HasSubstr("the cap of queue a leaves 0")));
  EXPECT_EQ(out.outcomes[3].code, Code::kNodesRequested);
}

TEST_F(QueueCapTest, TheCapOfAParentHoldsForAllBelowTogether) {
  queue_caps_ = {{.queue = "a", .queues = {"a"}, .gpus = 3},
                 {.queue = "top", .queues = {"a", "b", "top"}, .gpus = 4}};
  StepAndApply({Of("a", "t/1", 1, 5), Of("b", "t/2", 1, 5)});
  EXPECT_EQ(GpusFor({"a"}), 3);
  EXPECT_EQ(GpusFor({"a", "b"}), 4);
}

TEST_F(QueueCapTest, InFlightCountsAndAGangIsNotCut) {
  queue_caps_ = {{.queue = "a", .queues = {"a"}, .gpus = 3}};
  StepAndApply({Of("a", "t/1", 1)});
  const StepOutput out = StepAndApply({Of("a", "t/gang", 1, 3, true)});
  EXPECT_EQ(GpusFor({"a"}), 1);
  EXPECT_EQ(out.outcomes.at(0).code, Code::kGpuCapReached);
  EXPECT_THAT(out.outcomes.at(0).details.at(0),
              HasSubstr("have 3 GPUs, the cap of queue a leaves 2"));
}

TEST_F(QueueCapTest, DollarsOfAQueue) {
  queue_caps_ = {{.queue = "a", .queues = {"a"}, .micro_usd_per_hour = 5 * kDollar / 2}};
  const StepOutput out = StepAndApply({Of("a", "t/1", 1, 1), Of("a", "t/2", 1, 3, true)});
  EXPECT_EQ(GpusFor({"a"}), 1);
  EXPECT_EQ(out.outcomes.at(1).code, Code::kCostCapReached);
  EXPECT_THAT(out.outcomes.at(1).details.at(0), HasSubstr("the cap of queue a leaves $1.50"));
}

TEST_F(QueueCapTest, TheCapsOfTheAutoscalerHoldBesides) {
  options_.cluster_gpu_limit = 2;
  Restart();
  queue_caps_ = {{.queue = "a", .queues = {"a"}, .gpus = 3}};
  const StepOutput out = StepAndApply({Of("a", "t/1", 1, 1), Of("a", "t/2", 1, 3, true)});
  EXPECT_EQ(GpusFor({"a"}), 1);
  EXPECT_THAT(out.outcomes.at(1).details.at(0), HasSubstr("the cap leaves 1"));
}

// Whatever is demanded, lost, raised and lowered: a queue never gets more.
TEST_F(QueueCapTest, RandomCapsOfQueuesAreNeverPassed) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    requests_.clear();
    nodes_.clear();
    Restart();
    const auto cap = [&random] {
      return random.OneIn(3) ? model::kUnlimited : random.Between(0, 5);
    };
    queue_caps_ = {{.queue = "a", .queues = {"a"}, .gpus = cap()},
                   {.queue = "b", .queues = {"b"}, .micro_usd_per_hour = cap() * kDollar},
                   {.queue = "top", .queues = {"a", "b", "c", "top"}, .gpus = cap()}};
    if (queue_caps_[1].micro_usd_per_hour < 0)
      queue_caps_[1].micro_usd_per_hour = model::kUnlimited;
    for (int step = 0; step < 6; ++step) {
      Demand demand;
      const int64_t items = 1 + random.Between(0, 3);
      for (int64_t i = 0; i < items; ++i) {
        const char* queues[] = {"a", "b", "c", "d"};
        demand.push_back(Of(queues[random.Between(0, 3)], absl::StrCat("t/", step, "-", i), 1,
                            1 + random.Between(0, 3), random.OneIn(2)));
      }
      StepAndApply(demand);
      now_ += absl::Seconds(1);
    }
    for (const QueueCap& limit : queue_caps_) {
      int64_t price = 0;
      for (const auto& [name, request] : requests_) {
        if (limit.queues.contains(request.queue)) price += request.price_micro_usd_per_hour;
      }
      if (limit.gpus >= 0) {
        EXPECT_LE(GpusFor(limit.queues), limit.gpus) << limit.queue;
      }
      if (limit.micro_usd_per_hour >= 0) {
        EXPECT_LE(price, limit.micro_usd_per_hour) << limit.queue;
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::hook
