#include "sim/world/facts.h"

#include <gtest/gtest.h>

#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

TEST(FactsTest, ReadsAmounts) {
  EXPECT_EQ(ReadAmount("1500m", true), 1500);
  EXPECT_EQ(ReadAmount("2", true), 2000);
  EXPECT_EQ(ReadAmount("4Gi", false), int64_t{4} << 30);
  EXPECT_EQ(ReadAmount("64M", false), 64'000'000);
  EXPECT_EQ(ReadAmount("-1", true), -1000);
  EXPECT_EQ(ReadAmount("nonsense", true), 0);
  EXPECT_EQ(ReadAmount("9223372036854775807", true), kHuge);
}

TEST(FactsTest, HugeAmountsCannotOverflowASum) {
  Amounts sum;
  for (int i = 0; i < 1000; ++i) sum += Amounts{kHuge, kHuge, kHuge};
  EXPECT_EQ(sum.gpu, kHuge);
}

TEST(FactsTest, ReadsAPod) {
  Operation fields;
  fields.With("ns", "team-a")
      .With("queue", "q1")
      .With("group", "g")
      .With("cpu", 1500)
      .With("gpu", 2);
  const PodFacts pod = ReadPod(MakePod(fields, "p"));
  EXPECT_EQ(pod.key(), "team-a/p");
  EXPECT_EQ(pod.queue_label, "q1");
  EXPECT_EQ(pod.group, "g");
  EXPECT_EQ(pod.requests.cpu, 1500);
  EXPECT_EQ(pod.requests.gpu, 2000);
  EXPECT_TRUE(pod.ours);
  EXPECT_TRUE(pod.plain);
  EXPECT_TRUE(pod.waiting());
}

TEST(FactsTest, APodIsReadyIfTheConditionSaysSo) {
  Json pod = MakePod(Operation(), "p");
  EXPECT_FALSE(ReadPod(pod).ready);
  SetCondition(pod, "PodScheduled", true, "");
  EXPECT_FALSE(ReadPod(pod).ready);
  SetCondition(pod, "Ready", true, "");
  EXPECT_TRUE(ReadPod(pod).ready);
  SetCondition(pod, "Ready", false, "ContainersNotReady");
  EXPECT_FALSE(ReadPod(pod).ready);
}

TEST(FactsTest, PodsThatOnlyAmountsDoNotDecideAboutAreNotPlain) {
  for (const char* odd : {"selector", "volume", "gated", "namespace-affinity"}) {
    Operation fields;
    fields.With("odd", odd);
    EXPECT_FALSE(ReadPod(MakePod(fields, "p")).plain) << odd;
  }
}

TEST(FactsTest, WhatIsOfAnotherShardIsNotOurs) {
  Operation ours, others;
  others.With("shard", kOtherShard);
  EXPECT_TRUE(ReadPod(MakePod(ours, "p")).ours);
  EXPECT_FALSE(ReadPod(MakePod(others, "p")).ours);
  EXPECT_FALSE(ReadNode(MakeNode(ours)).tainted_by_others);
  EXPECT_TRUE(ReadNode(MakeNode(others)).tainted_by_others);
  EXPECT_TRUE(IsOfOtherShard(MakeQueue(others)));
  EXPECT_TRUE(IsOfOtherShard(MakeGroup(others)));
}

TEST(FactsTest, ReadsAQueueAndSeesContradictions) {
  Operation fields;
  fields.With("name", "q").With("gpu_quota", 2).With("gpu_limit", 4);
  const QueueFacts queue = ReadQueue(MakeQueue(fields));
  EXPECT_EQ(queue.gpu_quota, 2000);
  EXPECT_EQ(queue.gpu_limit, 4000);
  EXPECT_EQ(queue.cpu_limit, kNoLimit);
  EXPECT_FALSE(queue.odd);
  Operation odd;
  odd.With("name", "q").With("gpu_quota", 8).With("gpu_limit", 4);
  EXPECT_TRUE(ReadQueue(MakeQueue(odd)).odd);
}

}  // namespace
}  // namespace fairlead::sim::world
