#include "cmd/fairlead/forecast/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/fairlead/inspect/cluster_testing.h"

namespace fairlead::cmd {
namespace {

using sim::testing::NodeYaml;
using sim::testing::PodYaml;
using sim::testing::QueueYaml;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReadOnlyCluster;

Settings KwokSettings() {
  Settings settings;
  settings.configuration.options = core::KwokOptions();
  settings.catalog = hook::Catalog::BuiltIn();
  return settings;
}

class WhatIfTest : public ::testing::Test {
 protected:
  absl::StatusOr<WhatIf> Ask(ReadOnlyCluster& cluster, const std::string& yaml,
                             const std::vector<std::string>& removed = {}) {
    const std::vector<std::string> files(yaml.empty() ? 0 : 1, "f.yaml");
    absl::StatusOr<Change> change =
        ReadChange(files, removed, [&](const std::string&) { return yaml; });
    EXPECT_TRUE(change.ok()) << change.status();
    question_.change = *std::move(change);
    question_.settings = &settings_;
    return AskWhatIf(cluster.transport(), question_, cluster.now());
  }
  WhatIf Answer(ReadOnlyCluster& cluster, const std::string& yaml,
                const std::vector<std::string>& removed = {}) {
    absl::StatusOr<WhatIf> answer = Ask(cluster, yaml, removed);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : WhatIf();
  }

  Settings settings_ = KwokSettings();
  WhatIfQuestion question_;
};

// Queue q may use one GPU of two; pod b waits for the second.
std::string AtTheLimit() {
  return QueueYaml("q", 1, 1) + NodeYaml("n", 1) + PodYaml("a", "q", "n") + PodYaml("b", "q", "");
}

TEST_F(WhatIfTest, AHigherLimitBuysANodeForThePodThatWaits) {
  ReadOnlyCluster cluster(AtTheLimit());
  const WhatIf answer = Answer(cluster, QueueYaml("q", 1, 2));
  EXPECT_TRUE(answer.with.settled);
  EXPECT_TRUE(answer.without.settled);
  const Json json = WhatIfJson(answer);
  EXPECT_EQ(json.TextAt({"differs"}), "true");
  EXPECT_THAT(answer.changes, ElementsAre("replaces Queue q"));
  ASSERT_EQ(json.Find("workloads")->items().size(), 1u);
  const Json& workload = json.Find("workloads")->items()[0];
  EXPECT_EQ(workload.TextAt({"name"}), "team/b");
  EXPECT_EQ(workload.TextAt({"without", "code"}), "QueueLimitReached");
  EXPECT_EQ(workload.TextAt({"with", "placed"}), "1");
  const Json& queue = json.Find("queues")->items()[0];
  EXPECT_EQ(queue.TextAt({"without", "resources", "nvidia.com/gpu", "allocated"}), "1");
  EXPECT_EQ(queue.TextAt({"with", "resources", "nvidia.com/gpu", "allocated"}), "2");
  EXPECT_EQ(json.TextAt({"without", "pricePerHourUSD"}), "0.000000");
  EXPECT_NE(json.TextAt({"with", "pricePerHourUSD"}), "0.000000");
  EXPECT_EQ(json.TextAt({"with", "nodesRequested"}), "1");
  EXPECT_EQ(json.Find("nodes")->items()[0].TextAt({"with", "count"}), "1");
  const std::string text = WhatIfText(answer);
  EXPECT_THAT(text,
              AllOf(HasSubstr("The change replaces Queue q."), HasSubstr("1 -> 2"),
                    HasSubstr("waits: QueueLimitReached  placed"), Not(HasSubstr("Not the"))));
}

TEST_F(WhatIfTest, AnEvictionNamesItsVictimAndThatWaits) {
  settings_.configuration.options.hook.enabled = false;
  ReadOnlyCluster cluster(QueueYaml("rich", 0, -1) + QueueYaml("poor", 0, -1) + NodeYaml("n", 2) +
                          PodYaml("a", "rich", "n") + PodYaml("b", "rich", "n"));
  const WhatIf answer = Answer(cluster, QueueYaml("poor", 1, -1) + PodYaml("c", "poor", ""));
  const Json json = WhatIfJson(answer);
  ASSERT_EQ(json.Find("evictions")->items().size(), 1u);
  const Json& eviction = json.Find("evictions")->items()[0];
  EXPECT_EQ(eviction.TextAt({"in"}), "with");
  EXPECT_THAT(eviction.TextAt({"why"}), HasSubstr("team/c"));
  const std::string victim = eviction.TextAt({"pod"});
  EXPECT_EQ(json.Find("workloads")->items().size(), 2u);  // the victim, and c
  EXPECT_THAT(WhatIfText(answer), HasSubstr(victim));
}

TEST_F(WhatIfTest, ItReadsOnceAndEqualStatesDoNotDiffer) {
  ReadOnlyCluster cluster(AtTheLimit());
  const WhatIf answer = Answer(cluster, QueueYaml("q", 1, 1));
  const Json json = WhatIfJson(answer);
  EXPECT_EQ(json.TextAt({"differs"}), "false");
  EXPECT_THAT(json.Find("queues")->items(), IsEmpty());
  EXPECT_THAT(json.Find("workloads")->items(), IsEmpty());
  EXPECT_THAT(WhatIfText(answer), HasSubstr("No workload would be placed"));
  std::set<std::string> paths;
  for (const kube::FakeTransport::Exchange& exchange : cluster.transport().exchanges()) {
    EXPECT_EQ(exchange.request.method, "GET");
    EXPECT_TRUE(paths.insert(exchange.request.path).second) << exchange.request.path;
  }
}

TEST_F(WhatIfTest, ADeletedPodMakesRoom) {
  ReadOnlyCluster cluster(AtTheLimit());
  const WhatIf answer = Answer(cluster, "", {"Pod/team/a"});
  const std::map<std::string, WorkloadState> with = WorkloadsOf(answer.with.end);
  EXPECT_FALSE(with.contains("team/a"));
  EXPECT_EQ(StateText(with.at("team/b")), "placed");
}

TEST_F(WhatIfTest, OtherPricesChangeWhatIsBought) {
  ReadOnlyCluster cluster(QueueYaml("q", 2, 2) + PodYaml("b", "q", ""));
  const WhatIf before = Answer(cluster, QueueYaml("q", 2, 2));
  ASSERT_EQ(before.with.orders.size(), 1u);
  Settings other = KwokSettings();
  const absl::StatusOr<hook::Catalog> catalog = hook::Catalog::Parse(
      "types:\n- name: only.one\n  cpu: 8\n  memory: 32Gi\n  gpu: {model: NVIDIA-L4, count: 1, "
      "memory_mib: 23034}\n  zones: [a]\n  price: {on_demand: 0.25}\n",
      "other.yaml");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  other.catalog = *catalog;
  question_.with_settings = &other;
  const WhatIf answer = Answer(cluster, QueueYaml("q", 2, 2));
  EXPECT_EQ(answer.without.orders[0].instance_type, before.with.orders[0].instance_type);
  EXPECT_EQ(answer.with.orders[0].instance_type, "only.one");
}

TEST_F(WhatIfTest, TheBoundIsToldWhereItIsMet) {
  question_.bound = absl::Minutes(1);
  ReadOnlyCluster cluster(AtTheLimit());
  const WhatIf answer = Answer(cluster, QueueYaml("q", 1, 2));
  EXPECT_FALSE(answer.with.settled);
  EXPECT_THAT(WhatIfText(answer),
              HasSubstr("Not the end: with the change something may still change after 1m"));
  EXPECT_EQ(WhatIfJson(answer).TextAt({"with", "settled"}), "false");
}

TEST_F(WhatIfTest, ErrorsOfTheClusterAndOfTheChangeAreReturned) {
  ReadOnlyCluster cluster(AtTheLimit());
  EXPECT_TRUE(absl::IsNotFound(Ask(cluster, "", {"Queue/nonesuch"}).status()));
  cluster.transport().On("GET", "/api/v1/pods",
                         kube::FakeTransport::Reply::Json(403, R"({"kind":"Status","code":403})"));
  EXPECT_TRUE(absl::IsPermissionDenied(Ask(cluster, QueueYaml("q", 1, 1)).status()));
}

TEST_F(WhatIfTest, NamesOfTenantsAreMadePrintable) {
  WhatIf answer;
  answer.changes = {"adds Pod \x1b[31mx"};
  EXPECT_THAT(WhatIfText(answer), Not(HasSubstr("\x1b")));
}

TEST(ForecastPartsTest, TheBoundIsADuration) {
  EXPECT_EQ(*ParseBound("90m"), absl::Minutes(90));
  for (const char* text : {"", "1", "0s", "25h", "inf", "-1h", "x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBound(text).status())) << text;
  }
}

TEST(ForecastPartsTest, StatesInWords) {
  EXPECT_EQ(StateText(std::nullopt), "-");
  EXPECT_EQ(StateText(WorkloadState{"q", 1, 0, "", ""}), "placed");
  EXPECT_EQ(StateText(WorkloadState{"q", 3, 0, "", ""}), "3 placed");
  EXPECT_EQ(StateText(WorkloadState{"q", 0, 1, "Code", ""}), "waits: Code");
  EXPECT_EQ(StateText(WorkloadState{"q", 2, 1, "Code", ""}), "2 placed, 1 wait: Code");
}

}  // namespace
}  // namespace fairlead::cmd
