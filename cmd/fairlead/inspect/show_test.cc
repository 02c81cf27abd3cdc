#include "cmd/fairlead/inspect/show.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cmd/fairlead/inspect/test_views.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"

namespace fairlead::cmd {
namespace {

using testing::SampleView;

TEST(ShowTest, QueuesTable) {
  EXPECT_EQ(
      QueuesText(SampleView()),
      R"(QUEUE                   GPUS  QUOTA  LIMIT  FAIR SHARE  REQUESTED  CPU  MEMORY  WAITING  PODS
gpu-platform               8     12      -           8         10   16     8Gi        0     8
  research                 8      4      8           8         10   16     8Gi        1     8
  production-inference     0      8     12           0          2    0       0        1     0

Quota, limit, fair share and requested count GPUs; - means unlimited.
)");
}

TEST(ShowTest, NodesTable) {
  EXPECT_EQ(
      NodesText(SampleView()),
      R"(NODE   TYPE       ZONE        STATUS    GPUS  CPU  PODS  PROMISED    $/H  CAPACITY   UNNEEDED
cpu-1             us-east-1a  Ready           0/8     0         0
fl-1   g5.xlarge  us-east-1a  Ordered    0/1  0/4     0         1  $1.01  on-demand
fl-2   g5.xlarge  us-east-1a  Starting   0/1  0/4     0         0  $1.01  on-demand
fl-3   g5.xlarge  us-east-1a  Ready      1/1  2/4     1         0  $1.01  spot       3m

4 nodes; provisioned and ordered: 3 GPUs, $3.02 an hour.
)");
}

TEST(ShowTest, EmptyViewsSaySo) {
  EXPECT_NE(QueuesText({}).find("No queues"), std::string::npos);
  EXPECT_EQ(NodesText({}), "No nodes.\n");
}

TEST(ShowTest, QueuesJson) {
  core::View view = SampleView();
  view.queues.resize(2);
  view.queues.erase(view.queues.begin());
  view.queues[0].resources.resize(1);
  view.queues[0].problem = "its parent is missing";
  EXPECT_EQ(
      QueuesJson(view).Compact(),
      R"({"kind":"QueueList","items":[{"name":"research","parent":"gpu-platform","depth":1,)"
      R"("leaf":true,"priority":100,"problem":"its parent is missing","waitingWorkloads":1,)"
      R"("runningPods":8,"resources":{"nvidia.com/gpu":{"quota":"4","limit":"8",)"
      R"("fairShare":"8","allocated":"8","allocatedNonPreemptible":"0","requested":"10"}}}]})");
}

TEST(ShowTest, WhatHistoryCountsForIsSaid) {
  core::View view = SampleView();
  EXPECT_FALSE(absl::StrContains(QueuesText(view), "Fair shares"));
  EXPECT_FALSE(absl::StrContains(QueuesJson(view).Compact(), "history"));
  view.history = {true, "the last report is 7m old", std::nullopt};
  EXPECT_TRUE(absl::StrContains(
      QueuesText(view), "Fair shares are divided without history: the last report is 7m old.\n"));
  EXPECT_TRUE(absl::StrContains(QueuesJson(view).Compact(),
                                R"("history":{"problem":"the last report is 7m old"})"));
  view.history = {true, "", view.at};
  EXPECT_TRUE(absl::StrContains(QueuesText(view),
                                "Fair shares count what queues used before 2026-03-02T10:00:00Z"));
  EXPECT_TRUE(absl::StrContains(QueuesJson(view).Compact(),
                                R"("history":{"asOf":"2026-03-02T10:00:00Z"},"items")"));
}

TEST(ShowTest, WhatKaiHasCountedStandsBesideWhatWeCount) {
  core::View view = SampleView();
  view.queues.resize(1);
  core::QueueRow& queue = view.queues[0];
  queue.resources.resize(1);
  core::QueueResourceRow& gpu = queue.resources[0];
  gpu.allocated = 2500;
  gpu.allocated_non_preemptible = 1000;
  gpu.requested = 3000;
  gpu.recorded = core::QueueAmounts{2500, 1000, 3000};
  const std::string amounts =
      R"("allocated":"2500m","allocatedNonPreemptible":"1","requested":"3")";
  const std::string json = QueuesJson(view).Compact();
  EXPECT_TRUE(absl::StrContains(json, absl::StrCat(amounts, R"(,"recorded":{)", amounts, "}")))
      << json;
  EXPECT_EQ(DisagreementText(queue), "");
  gpu.recorded->allocated = 2100;
  EXPECT_EQ(DisagreementText(queue), absl::StrCat("status of queue ", queue.name,
                                                  " counts other GPUs: allocated 2.1, here 2.5\n"));
  EXPECT_TRUE(absl::StrContains(QueuesText(view), DisagreementText(queue)));
  gpu.recorded.reset();
  EXPECT_EQ(DisagreementText(queue), "");
}

TEST(ShowTest, NodesJson) {
  core::View view = SampleView();
  view.nodes = {view.nodes[0], view.nodes[3]};
  EXPECT_EQ(NodesJson(view).Compact(),
            R"({"kind":"NodeList","pricePerHourUSD":"3.018000","gpusHeld":3,"items":[)"
            R"({"name":"cpu-1","zone":"us-east-1a","status":"Ready","pods":0,"promised":0,)"
            R"("allocatable":{"cpu":"8","pods":"110"},"used":{"cpu":"0","nvidia.com/gpu":"0"}},)"
            R"({"name":"fl-3","instanceType":"g5.xlarge","zone":"us-east-1a","status":"Ready",)"
            R"("nodeRequest":"fl-3","capacityType":"spot","pricePerHourUSD":"1.006000","pods":1,)"
            R"("promised":0,"unneededSince":"2026-03-02T09:57:00Z","allocatable":{"cpu":"4",)"
            R"("memory":"17179869184","nvidia.com/gpu":"1","pods":"58"},"used":{"cpu":"2",)"
            R"("nvidia.com/gpu":"1"}}]})");
}

TEST(ShowTest, JsonAndYamlAreTheSameTree) {
  const Json tree = NodesJson(SampleView());
  const auto from_yaml = YamlToJson(Render(tree, OutputFormat::kYaml));
  ASSERT_TRUE(from_yaml.ok()) << from_yaml.status();
  EXPECT_EQ(from_yaml->at(0), tree.Compact());
  const auto from_json = Json::Parse(Render(tree, OutputFormat::kJson));
  ASSERT_TRUE(from_json.ok()) << from_json.status();
  EXPECT_EQ(from_json->Compact(), tree.Compact());
}

TEST(ShowTest, WideTablesHaveMoreColumns) {
  core::View view = testing::SampleView();
  view.nodes[3].allocatable = {{"cpu", 4000},
                               {"memory", testing::kGiB},
                               {"nvidia.com/gpu", 1000},
                               {"nvidia.com/mig-1g.5gb", 2},
                               {"pods", 10}};
  view.queues[1].resources[0].allocated_non_preemptible = 3000;
  for (const char* column : {"PRIORITY", "NON-PREEMPTIBLE", "CPU LIMIT", "MEMORY QUOTA"}) {
    EXPECT_THAT(QueuesText(view, /*wide=*/true), HasSubstr(column));
    EXPECT_THAT(QueuesText(view), ::testing::Not(HasSubstr(column)));
  }
  const std::string nodes = NodesText(view, /*wide=*/true);
  EXPECT_THAT(nodes, HasSubstr("nvidia.com/mig-1g.5gb 0/2"));
  EXPECT_THAT(nodes, HasSubstr("NODE REQUEST"));
  EXPECT_THAT(nodes, HasSubstr("0/1Gi"));
  EXPECT_THAT(NodesText(view), ::testing::Not(HasSubstr("NODE REQUEST")));
}

TEST(ShowTest, Formats) {
  EXPECT_TRUE(ParseOutputFormat("json").ok());
  EXPECT_EQ(*ParseOutputFormat("wide", /*has_wide=*/true), OutputFormat::kWide);
  EXPECT_THAT(std::string(ParseOutputFormat("xml", /*has_wide=*/true).status().message()),
              HasSubstr("must be table, wide, json or yaml"));
  EXPECT_EQ(ParseOutputFormat("wide").status().message(),
            "--output wide: must be table, json or yaml");
}

TEST(ShowTest, SmallTexts) {
  EXPECT_EQ(AgeText(absl::Seconds(59)), "59s");
  EXPECT_EQ(AgeText(absl::Seconds(-5)), "0s");
  EXPECT_EQ(AgeText(absl::Seconds(125)), "2m5s");
  EXPECT_EQ(AgeText(absl::Minutes(45)), "45m");
  EXPECT_EQ(AgeText(absl::Minutes(185)), "3h5m");
  EXPECT_EQ(AgeText(absl::Hours(52)), "2d4h");
  EXPECT_EQ(DollarsText(12'345'000), "$12.35");
  EXPECT_EQ(DollarsText(-12'345'000), "-$12.35");
  EXPECT_EQ(DollarsText(-5'000), "-$0.01");
  EXPECT_EQ(DollarsExact(12'500'000), "12.500000");
}

}  // namespace
}  // namespace fairlead::cmd
