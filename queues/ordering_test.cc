#include "queues/ordering.h"

#include <gtest/gtest.h>

#include <limits>

#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kUnlimited;

constexpr CoreAmounts kCluster = {100'000, 1'000'000, 10'000};

// Only GPUs are bounded: fair share 4 GPUs, quota 2.
QueueView View(absl::string_view name) {
  QueueView view;
  view.name = name;
  view.creation = Age(0);
  view.fair_share = {100'000, 1'000'000, 4000};
  view.quota = {kUnlimited, kUnlimited, 2000};
  view.allocatable_share = {kUnlimited, kUnlimited, 4000};
  return view;
}

// One case per rule: `a` must come before `b`, although every later rule says the contrary or
// nothing.
TEST(CompareQueuesTest, RulesInTheirOrder) {
  struct Case {
    const char* rule;
    QueueView a = View("y"), b = View("x");
  };
  std::vector<Case> cases;
  {
    Case c{"1: over its fair share in all three comes last"};
    c.b.allocated = {100'001, 1'000'001, 4001};
    c.a.allocated = {100'000, 1'000'001, 9000};  // CPU exactly at its share: not over
    c.b.priority = 900;
    cases.push_back(c);
  }
  {
    Case c{"2: stays within its quota with its next job"};
    c.a.allocated[model::kGpu] = 1500;
    c.a.next_job[model::kGpu] = 500;
    c.b.allocated[model::kGpu] = 1500;
    c.b.next_job[model::kGpu] = 501;
    c.b.priority = 900;
    cases.push_back(c);
  }
  {
    Case c{"3: higher priority"};
    c.a.priority = 101;
    c.b.priority = 100;
    c.a.allocated[model::kGpu] = 1999;
    cases.push_back(c);
  }
  {
    Case c{"4: a queue that would use what it has no share of goes last"};
    for (QueueView* v : {&c.a, &c.b}) v->quota[model::kGpu] = kUnlimited;
    c.b.allocatable_share[model::kGpu] = 0;
    c.b.next_job[model::kGpu] = 1;
    c.a.allocated[model::kGpu] = 3900;
    cases.push_back(c);
  }
  {
    Case c{"5: smaller dominant share with the next job"};
    c.a.allocated[model::kGpu] = 1000;
    c.a.next_job[model::kGpu] = 100;
    c.b.allocated[model::kGpu] = 500;
    c.b.next_job[model::kGpu] = 601;
    cases.push_back(c);
  }
  {
    Case c{"5: an unlimited share is the cluster's"};
    c.a.allocated[model::kCpu] = 49'999;  // of 100,000
    c.b.allocated[model::kGpu] = 2000;    // of 4,000
    cases.push_back(c);
  }
  {
    Case c{"6: smaller dominant share without it"};
    c.a.allocated[model::kGpu] = 400;
    c.a.next_job[model::kGpu] = 600;
    c.b.allocated[model::kGpu] = 500;
    c.b.next_job[model::kGpu] = 500;
    cases.push_back(c);
  }
  {
    Case c{"7: smaller allocatable share"};
    c.b.allocatable_share[model::kGpu] = 4001;
    c.a.creation = Age(5);
    cases.push_back(c);
  }
  {
    Case c{"7: unlimited is the largest"};
    c.b.allocatable_share[model::kGpu] = kUnlimited;
    cases.push_back(c);
  }
  {
    Case c{"8: older"};
    c.b.creation = Age(1);
    cases.push_back(c);
  }
  {
    Case c{"8: name"};
    std::swap(c.a.name, c.b.name);
    cases.push_back(c);
  }
  for (const Case& c : cases) {
    EXPECT_LT(CompareQueues(c.a, c.b, kCluster), 0) << c.rule;
    EXPECT_GT(CompareQueues(c.b, c.a, kCluster), 0) << c.rule;
    EXPECT_GT(CompareVictimQueues(MakeRank(c.a, kCluster), MakeRank(c.b, kCluster)), 0) << c.rule;
  }
  EXPECT_EQ(CompareQueues(View("x"), View("x"), kCluster), 0);
}

TEST(CompareQueuesTest, ZeroSharesCompareInDevicesMilliCpuAndBytes) {
  // Both use a resource of which they have no share: 0.5 GPUs weigh 500, 1 milli-CPU weighs 1000.
  QueueView gpu = View("gpu");
  gpu.allocatable_share = {0, 0, 0};
  QueueView cpu = gpu;
  cpu.name = "cpu";
  gpu.allocated[model::kGpu] = 500;
  cpu.allocated[model::kCpu] = 1;
  EXPECT_LT(CompareQueues(gpu, cpu, kCluster), 0);
  gpu.allocated[model::kGpu] = 1001;
  EXPECT_GT(CompareQueues(gpu, cpu, kCluster), 0);
}

TEST(CompareQueuesTest, PickedVictimsLowerTheShare) {
  QueueView a = View("a");
  QueueView b = View("b");
  a.allocated[model::kGpu] = 2000;
  b.allocated[model::kGpu] = 1500;
  EXPECT_LT(CompareQueues(b, a, kCluster), 0);
  a.picked_victims[model::kGpu] = 1000;
  EXPECT_LT(CompareQueues(a, b, kCluster), 0);
}

TEST(CompareQueuesTest, RatiosThatDoublesCannotTellApart) {
  const int64_t big = (int64_t{1} << 60) + 1;
  QueueView a = View("a");
  QueueView b = View("b");
  a.quota = b.quota = {kUnlimited, kUnlimited, kUnlimited};
  a.allocatable_share[model::kMemory] = b.allocatable_share[model::kMemory] =
      std::numeric_limits<int64_t>::max();
  a.allocated[model::kMemory] = big;
  b.allocated[model::kMemory] = big - 1;
  EXPECT_LT(CompareQueues(b, a, kCluster), 0);
  EXPECT_GT(CompareQueues(a, b, kCluster), 0);
}

TEST(CompareQueuesTest, IsAStrictWeakOrder) {
  Random random;
  SCOPED_TRACE(random.Describe());
  const auto random_view = [&random](absl::string_view name) {
    QueueView view;
    view.name = name;
    view.creation = Age(random.Between(0, 1));
    view.priority = static_cast<int32_t>(random.Between(0, 1));
    for (size_t r = 0; r < view.allocated.size(); ++r) {
      view.allocated[r] = random.Between(0, 3);
      view.fair_share[r] = random.Between(0, 2);
      view.quota[r] = random.Between(-1, 3);
      view.allocatable_share[r] = random.Between(-1, 3);
      view.next_job[r] = random.Between(0, 1);
      view.picked_victims[r] = random.OneIn(3) ? random.Between(0, 2) : 0;
    }
    return view;
  };
  const CoreAmounts cluster = {4, 4, 0};
  for (int round = 0; round < 50'000; ++round) {
    const QueueRank a = MakeRank(random_view("a"), cluster);
    const QueueRank b = MakeRank(random_view("b"), cluster);
    const QueueRank c = MakeRank(random_view("c"), cluster);
    const auto sign = [](int v) { return (v > 0) - (v < 0); };
    ASSERT_NE(CompareQueues(a, b), 0);
    ASSERT_EQ(sign(CompareQueues(a, b)), -sign(CompareQueues(b, a)));
    ASSERT_EQ(CompareQueues(a, a), 0);
    if (CompareQueues(a, b) < 0 && CompareQueues(b, c) < 0) {
      ASSERT_LT(CompareQueues(a, c), 0);
    }
    if (CompareQueues(b, a) < 0 && CompareQueues(c, b) < 0) {
      ASSERT_LT(CompareQueues(c, a), 0);
    }
  }
}

}  // namespace
}  // namespace fairlead::queues
