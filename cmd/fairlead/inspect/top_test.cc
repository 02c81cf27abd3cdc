#include "cmd/fairlead/inspect/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/fairlead/inspect/test_views.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

struct Requested {
  std::string name;
  int64_t gpu_milli = 0, cpu_milli = 0;
};

// One node at $1 with 4 CPUs and 1 GPU.
core::View OneNode(const std::vector<Requested>& pods) {
  core::View view;
  view.nodes = {testing::MakeNode("fl-3", "Ready", 1, 1'000'000)};
  view.price_micro_usd_per_hour = 1'000'000;
  for (const Requested& pod : pods) {
    view.running.push_back({"research/" + pod.name, "research/" + pod.name, "research", "fl-3",
                            "Running", pod.gpu_milli, pod.cpu_milli, testing::kGiB});
  }
  return view;
}

TEST(TopTest, AHalfUsedNodeIsHalfIdle) {
  const Top top = TopOf(OneNode({{"small", 0, 2000}}), TopOrder::kGpus);
  ASSERT_EQ(top.workloads.size(), 1u);
  EXPECT_EQ(top.workloads[0].price_micro_usd_per_hour, 500'000);
  EXPECT_EQ(top.idle_micro_usd_per_hour, 500'000);
  EXPECT_EQ(top.queues[0].cpu_milli, 2000);
}

TEST(TopTest, PodsThatExceedANodeTogetherPayAllOfItInProportion) {
  const Top top = TopOf(OneNode({{"big", 1000, 1000}, {"small", 0, 4000}}), TopOrder::kName);
  EXPECT_EQ(top.workloads[0].price_micro_usd_per_hour, 500'000);
  EXPECT_EQ(top.workloads[1].price_micro_usd_per_hour, 500'000);
  EXPECT_EQ(top.queues[0].price_micro_usd_per_hour, 1'000'000);
  EXPECT_EQ(top.idle_micro_usd_per_hour, 0);
}

TEST(TopTest, TheOrderIsThatOfTheKeyThenOfNames) {
  const core::View view = OneNode({{"a", 0, 2000}, {"b", 1000, 1000}, {"c", 0, 2000}});
  const auto names = [&](TopOrder order) {
    std::string text;
    for (const Holder& holder : TopOf(view, order).workloads) text += holder.name.back();
    return text;
  };
  EXPECT_EQ(names(TopOrder::kGpus), "bac");
  EXPECT_EQ(names(TopOrder::kCpu), "acb");
  EXPECT_EQ(names(TopOrder::kName), "abc");
  EXPECT_EQ(names(TopOrder::kPods), "abc");
}

TEST(TopTest, WhatWaitsCountsAndAPodThatRequestsNothingPaysNothing) {
  core::View view = testing::SampleView();  // one pod runs, one pod and a gang of two wait
  const Top top = TopOf(view, TopOrder::kWaiting);
  ASSERT_EQ(top.workloads.size(), 3u);
  EXPECT_EQ(top.workloads[0].name, "serving/chat");
  EXPECT_EQ(top.workloads[0].waiting_pods, 2);
  EXPECT_EQ(top.workloads[0].pods, 0);
  EXPECT_EQ(top.workloads[2].pods, 1);
  EXPECT_EQ(top.workloads[2].gpu_milli, 0);
  EXPECT_EQ(top.idle_micro_usd_per_hour, view.price_micro_usd_per_hour);
}

TEST(TopTest, TextAndJson) {
  const Top top = TopOf(OneNode({{"big", 1000, 1000}, {"small", 0, 1000}}), TopOrder::kGpus);
  const std::string text = TopText(top, 1);
  EXPECT_THAT(text, HasSubstr("research/big  research"));
  EXPECT_THAT(text, HasSubstr("... and 1 more"));
  EXPECT_THAT(text, HasSubstr("$1.00 an hour, of it $0.00 idle"));
  EXPECT_EQ(TopText(Top(), 20), "No workload of Fairlead runs or waits.\n");
  const Json json = TopJson(top);
  EXPECT_EQ(json.TextAt({"sort"}), "gpus");
  EXPECT_EQ(json.Find("workloads")->items()[0].TextAt({"used", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json.Find("queues")->items()[0].TextAt({"pods"}), "2");
}

TEST(TopTest, OrdersHaveNames) {
  EXPECT_EQ(*ParseTopOrder("price"), TopOrder::kPrice);
  EXPECT_THAT(std::string(ParseTopOrder("cost").status().message()),
              HasSubstr("--sort cost: must"));
}

}  // namespace
}  // namespace fairlead::cmd
