#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fairlead::sim {
namespace {

using ::testing::HasSubstr;

class ScenarioTest : public ::testing::Test {
 protected:
  ScenarioTest()
      : folder_(::testing::TempDir() + "/scenario_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~ScenarioTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  absl::StatusOr<Scenario> Read(const std::string& yaml) {
    Write("scenario.yaml", yaml);
    return ReadScenario(folder_ + "/");
  }
  std::string folder_;
};

constexpr char kHead[] = "name: n\nstart: 2026-03-02T00:00:00Z\nduration: 10h\n";

TEST_F(ScenarioTest, ReadsEverything) {
  Write("q.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec: {resources: "
        "{}}\n");
  const absl::StatusOr<Scenario> scenario = Read(std::string(kHead) + R"(description: d
seed: 7
accelerate: 60
configuration: conf.yaml
hook:
  clusterGPULimit: 14
  gpuLimits: {NVIDIA-A10G: 8}
  costLimit: 12.50
  unneededAfter: 10m
cloud: {bootDelay: 1m, bootDelays: {p5.48xlarge: 10m}, readyDelay: 5s}
timeline:
  - {at: 9h, delete: [Job/ns/a], scale: {Deployment/ns/web: 0}}
  - at: 8h30m
    note: morning
    apply: [q.yaml]
    fault:
      stockout: {instanceType: g5.xlarge, zone: a, for: 1h}
      restart: {}
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->end - scenario->start, absl::Hours(10));
  EXPECT_EQ(scenario->seed, 7u);
  EXPECT_EQ(scenario->configuration_file, folder_ + "/conf.yaml");
  hook::HookOptions hook;
  scenario->hook.ApplyTo(hook);
  EXPECT_EQ(hook.cluster_gpu_limit, 14);
  EXPECT_EQ(hook.gpu_limit_by_model.at("NVIDIA-A10G"), 8);
  EXPECT_EQ(hook.cost_limit_micro_usd_per_hour, 12'500'000);
  EXPECT_EQ(hook.unneeded_after, absl::Minutes(10));
  EXPECT_EQ(hook.launch_timeout, hook::HookOptions().launch_timeout) << "not said, not changed";
  EXPECT_EQ(scenario->cloud.boot_delay_by_type.at("p5.48xlarge"), absl::Minutes(10));
  ASSERT_EQ(scenario->timeline.size(), 2u);
  const ScenarioStep& morning = scenario->timeline[0];
  EXPECT_EQ(morning.at, absl::Hours(8) + absl::Minutes(30)) << "steps are sorted by time";
  ASSERT_EQ(morning.apply.size(), 1u);
  EXPECT_EQ(MetaOf(morning.apply[0].objects[0]).name, "q");
  ASSERT_EQ(morning.faults.size(), 2u);
  EXPECT_EQ(morning.faults[0].duration, absl::Hours(1));
  EXPECT_EQ(scenario->timeline[1].remove[0].key, "ns/a");
  EXPECT_EQ(scenario->timeline[1].scale[0].second, 0);
}

TEST_F(ScenarioTest, ErrorsNameFileLineAndColumn) {
  const struct {
    std::string yaml, expected;
  } cases[] = {
      {std::string(kHead) + "timeline: []\nhok: {}\n", "scenario.yaml:5:1: hok: unknown field"},
      {std::string(kHead) + "timeline: []\nname: m\n", "scenario.yaml:5:1: given twice: \"name\""},
      {"name: n\ntimeline: []\n", "start: is missing"},
      {"name: n\nstart: yesterday\n", "scenario.yaml:2:8: start: must be a time"},
      {std::string(kHead) + "timeline: [{at: -1h}]\n", ":4:17: timeline[0].at: must be a duration"},
      {std::string(kHead) + "timeline: [{at: 11h}]\n", "after the end"},
      {std::string(kHead) + "timeline: [{at: 1h, apply: [no.yaml]}]\n", "no.yaml: cannot be read"},
      {std::string(kHead) + "timeline: [{at: 1h, delete: [Cow/x]}]\n", "no kind Cow"},
      {std::string(kHead) + "timeline: [{at: 1h, scale: {Deployment/a/b: -1}}]\n", "whole number"},
      {std::string(kHead) + "timeline: [{at: 1h, fault: {flood: {}}}]\n", "unknown fault"},
      {std::string(kHead) + "timeline: [{at: 1h, fault: {stockout: {for: 1h}}}]\n",
       "stockout.instanceType: is missing"},
      {std::string(kHead) + "hook: {costLimit: -3}\ntimeline: []\n", "must be dollars"},
      {"name: [n\n", "scenario.yaml:"},
      {"", "the file is empty"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<Scenario> scenario = Read(c.yaml);
    ASSERT_FALSE(scenario.ok()) << c.yaml;
    EXPECT_THAT(std::string(scenario.status().message()), HasSubstr(c.expected)) << c.yaml;
  }
  EXPECT_TRUE(absl::IsNotFound(ReadScenario(folder_ + "/nowhere").status()));
}

TEST_F(ScenarioTest, AFaultInAManifestNamesItsFile) {
  Write("bad.yaml", "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {}\n");
  const absl::StatusOr<Scenario> scenario =
      Read(std::string(kHead) + "timeline: [{at: 1h, apply: [bad.yaml]}]\n");
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(std::string(scenario.status().message()), HasSubstr("bad.yaml"));
}

}  // namespace
}  // namespace fairlead::sim
