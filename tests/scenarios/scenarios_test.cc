// Every folder beside this file with a scenario.yaml is a test. It runs with all invariants checked
// after every step, is compared with its expect.yaml, and runs again to the same trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/expectation.h"
#include "sim/report.h"
#include "sim/simulator.h"

namespace fairlead::sim {
namespace {

constexpr char kScenarios[] = "tests/scenarios";  // tests run at the root of the repository

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kScenarios)) {
    if (std::filesystem::exists(entry.path() / "scenario.yaml")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<Simulator> Start(const std::string& name) {
  absl::StatusOr<Scenario> scenario = ReadScenario(std::string(kScenarios) + "/" + name);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return nullptr;
  const bool faultless = std::all_of(scenario->timeline.begin(), scenario->timeline.end(),
                                     [](const ScenarioStep& step) { return step.faults.empty(); });
  SimulatorOptions options;
  options.core = core::KwokOptions();
  options.check_invariants = true;
  options.expect_no_empty_writes = faultless;
  absl::StatusOr<std::unique_ptr<Simulator>> simulator =
      Simulator::Make(*std::move(scenario), std::move(options));
  EXPECT_TRUE(simulator.ok()) << simulator.status();
  return simulator.ok() ? *std::move(simulator) : nullptr;
}

std::map<std::string, int64_t> NodeCounts(const core::View& view) {
  std::map<std::string, int64_t> counts;
  for (const core::NodeRow& node : view.nodes) {
    if (!node.node_request.empty()) ++counts[node.instance_type];
  }
  return counts;
}

WaitCounts WaitingCounts(const core::View& view) {
  WaitCounts counts;
  for (const core::WaitingRow& row : view.waiting) {
    counts[{std::string(verdict::CodeName(row.verdict.code)), row.queue}] +=
        static_cast<int64_t>(row.pods.size());
  }
  return counts;
}

void Check(const MomentCheck& expected, Simulator& simulator) {
  SCOPED_TRACE("at " + absl::FormatDuration(expected.at));
  const core::View view = simulator.view();
  if (expected.nodes.has_value()) {
    EXPECT_EQ(NodeCounts(view), *expected.nodes);
  }
  if (expected.waiting.has_value()) {
    EXPECT_EQ(WaitingCounts(view), *expected.waiting);
  }
  if (!expected.running.has_value()) return;
  std::map<std::string, int64_t> running;
  for (const core::RunningRow& row : view.running) {
    if (row.status == "Running") ++running[row.queue];
  }
  EXPECT_EQ(running, *expected.running);
}

absl::Time FirstBound(const Recorder& recorder, const std::string& pod) {
  for (const TimelineEvent& event : recorder.timeline()) {
    if (event.event == "pod_bound" && event.object == pod) return event.time;
  }
  return absl::InfiniteFuture();
}

void CheckEnd(const Expectation& expected, Simulator& simulator) {
  const Recorder& recorder = simulator.recorder();
  const core::BillTotals bill = simulator.bill();
  for (const auto& [first, then] : expected.starts) {
    EXPECT_LT(FirstBound(recorder, first), FirstBound(recorder, then)) << first << ", " << then;
  }
  std::map<std::pair<std::string, std::string>, std::set<std::string>> waited;
  for (const WaitEpisode& episode : recorder.Episodes()) {
    waited[{episode.code, episode.queue}].insert(episode.pod);
  }
  for (const auto& [code_and_queue, pods] : expected.waited) {
    EXPECT_EQ(static_cast<int64_t>(waited[code_and_queue].size()), pods)
        << code_and_queue.first << " in " << code_and_queue.second;
  }
  if (expected.bought) {
    EXPECT_EQ(recorder.nodes_bought(), *expected.bought);
  }
  if (expected.evictions) {
    EXPECT_EQ(recorder.evictions(), *expected.evictions);
  }
  if (expected.policy_blocked_nodes) {
    EXPECT_EQ(bill.policy_blocked_nodes, *expected.policy_blocked_nodes);
  }
  if (expected.duplicate_nodes) {
    EXPECT_EQ(bill.duplicate_nodes, *expected.duplicate_nodes);
  }
  if (expected.reactive_costs_more) {
    EXPECT_GT(bill.reactive_cost_micro_usd, bill.cost_micro_usd);
  }
  if (!expected.nodes_at_end) return;
  int64_t nodes = 0;
  for (const auto& [type, count] : NodeCounts(simulator.view())) nodes += count;
  EXPECT_EQ(nodes, *expected.nodes_at_end);
  EXPECT_EQ(static_cast<int64_t>(simulator.cluster().cloud().machines().size()),
            *expected.nodes_at_end)
      << "machines that the provider goes on billing";
}

class ScenarioTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, GoesAsExpectedTwice) {
  const absl::StatusOr<Expectation> expected =
      ReadExpectation(std::string(kScenarios) + "/" + GetParam() + "/expect.yaml");
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::unique_ptr<Simulator> simulator = Start(GetParam());
  ASSERT_NE(simulator, nullptr);
  for (const MomentCheck& check : expected->checks) {
    const absl::Status status = simulator->RunUntil(simulator->scenario().start + check.at);
    ASSERT_TRUE(status.ok()) << status;
    Check(check, *simulator);
  }
  const absl::Status status = simulator->Run();
  ASSERT_TRUE(status.ok()) << status;
  CheckEnd(*expected, *simulator);
  if (HasFailure()) std::cerr << LogText(simulator->recorder().timeline());

  std::unique_ptr<Simulator> again = Start(GetParam());
  ASSERT_NE(again, nullptr);
  ASSERT_TRUE(again->Run().ok());
  EXPECT_EQ(again->trace_hash(), simulator->trace_hash()) << "two runs, two traces";
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, ::testing::ValuesIn(ScenarioNames()),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace fairlead::sim
