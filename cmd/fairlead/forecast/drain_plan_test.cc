#include "cmd/fairlead/forecast/drain_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cmd/fairlead/inspect/cluster_testing.h"

namespace fairlead::cmd {
namespace {

using sim::testing::NodeYaml;
using sim::testing::PodYaml;
using sim::testing::QueueYaml;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReadOnlyCluster;
using Kind = PodFate::Kind;

class DrainPlanTest : public ::testing::Test {
 protected:
  DrainPlanTest() {
    settings_.configuration.options = core::KwokOptions();
    settings_.catalog = hook::Catalog::BuiltIn();
  }
  absl::StatusOr<DrainPlan> Ask(ReadOnlyCluster& cluster, std::vector<std::string> nodes) {
    question_.settings = &settings_;
    question_.nodes = std::move(nodes);
    return AskDrainPlan(cluster.transport(), question_, cluster.now());
  }
  DrainPlan Plan(ReadOnlyCluster& cluster, std::vector<std::string> nodes) {
    absl::StatusOr<DrainPlan> plan = Ask(cluster, std::move(nodes));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : DrainPlan();
  }

  Settings settings_;
  DrainQuestion question_;
};

std::string Replaced(std::string yaml, const std::string& from, const std::string& to) {
  return yaml.replace(yaml.find(from), from.size(), to);
}

TEST_F(DrainPlanTest, EachPodHasItsFate) {
  settings_.configuration.options.hook.enabled = false;
  const std::string annotated =
      Replaced(PodYaml("kept", "q", "n"), "metadata:\n",
               "metadata:\n  annotations: {fairlead.dev/do-not-evict: 'true'}\n");
  const std::string mirror =
      Replaced(PodYaml("static", "q", "n", true), "metadata:\n",
               "metadata:\n  annotations: {kubernetes.io/config.mirror: x}\n");
  ReadOnlyCluster cluster(
      QueueYaml("q", 9, 9) + NodeYaml("n", 9) + NodeYaml("other", 1) + PodYaml("a", "q", "n") +
      PodYaml("b", "q", "n") + PodYaml("bare", "q", "n", true) + annotated + mirror +
      Replaced(PodYaml("daemon", "q", "n"), "ReplicaSet", "DaemonSet") +
      Replaced(PodYaml("foreign", "q", "n"), "schedulerName: fairlead", "schedulerName: theirs") +
      PodYaml("guarded", "q", "n") + PodYaml("elsewhere", "q", "other") +
      "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: guard, namespace: "
      "team}\nspec: {maxUnavailable: 0, selector: {matchLabels: {app: guarded}}}\n"
      "status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: "
      "1}\n");
  // Pod `elsewhere` has the only other GPU.
  const DrainPlan plan = Plan(cluster, {"n"});
  std::map<std::string, Kind> kinds;
  for (const PodFate& fate : plan.pods) kinds[fate.pod] = fate.kind;
  EXPECT_EQ(kinds.size(), 8u);
  EXPECT_EQ(kinds["team/a"], Kind::kWaits);
  EXPECT_EQ(kinds["team/b"], Kind::kWaits);
  EXPECT_EQ(kinds["team/bare"], Kind::kEnds);
  EXPECT_EQ(kinds["team/kept"], Kind::kKept);
  EXPECT_EQ(kinds["team/static"], Kind::kBelongsToNode);
  EXPECT_EQ(kinds["team/daemon"], Kind::kBelongsToNode);
  EXPECT_EQ(kinds["team/foreign"], Kind::kOtherScheduler);
  EXPECT_EQ(kinds["team/guarded"], Kind::kRefused);
  const std::string text = DrainPlanText(plan);
  EXPECT_THAT(text, AllOf(HasSubstr("stays: a budget refuses"), HasSubstr("budget team/guard"),
                          HasSubstr("ends: no controller"), Not(HasSubstr("elsewhere"))));
}

TEST_F(DrainPlanTest, PodsGoWhereThereIsRoomAndElseToANodeThatIsRequested) {
  ReadOnlyCluster cluster(QueueYaml("q", 9, 9) + NodeYaml("n", 2) + NodeYaml("other", 1) +
                          PodYaml("a", "q", "n") + PodYaml("b", "q", "n"));
  const DrainPlan plan = Plan(cluster, {"n", "n"});
  EXPECT_EQ(plan.nodes.size(), 1u);
  ASSERT_EQ(plan.pods.size(), 2u);
  int ordered = 0;
  for (const PodFate& fate : plan.pods) {
    EXPECT_EQ(fate.kind, Kind::kPlaced) << fate.pod;
    EXPECT_NE(fate.to, "n");
    EXPECT_EQ(fate.ordered, fate.to != "other");
    ordered += fate.ordered ? 1 : 0;
  }
  EXPECT_EQ(ordered, 1);
  const Json json = DrainPlanJson(plan);
  EXPECT_EQ(json.Find("nodesRequested")->items().size(), 1u);
  EXPECT_EQ(json.TextAt({"pricePerHourUSD", "before"}), "0.000000");
  EXPECT_NE(json.TextAt({"pricePerHourUSD", "after"}), "0.000000");
  EXPECT_THAT(json.Find("workloads")->items(), IsEmpty());
  EXPECT_THAT(DrainPlanText(plan), HasSubstr("(to be requested)"));
}

TEST_F(DrainPlanTest, WhoIsDisplacedByTheDrainedPodsIsTold) {
  settings_.configuration.options.hook.enabled = false;
  ReadOnlyCluster cluster(QueueYaml("first", 1, -1) + QueueYaml("over", 0, -1) + NodeYaml("n", 1) +
                          NodeYaml("other", 1) + PodYaml("a", "first", "n") +
                          PodYaml("o", "over", "other"));
  const DrainPlan plan = Plan(cluster, {"n"});
  EXPECT_EQ(plan.pods[0].kind, Kind::kPlaced);
  EXPECT_EQ(plan.pods[0].to, "other");
  const Json json = DrainPlanJson(plan);
  ASSERT_EQ(json.Find("workloads")->items().size(), 1u);
  EXPECT_EQ(json.Find("workloads")->items()[0].TextAt({"name"}), "team/o");
  ASSERT_EQ(json.Find("evictions")->items().size(), 1u);
  EXPECT_EQ(json.Find("evictions")->items()[0].TextAt({"pod"}), "team/o");
}

TEST_F(DrainPlanTest, AnEmptyNodeAndOneThatIsMissing) {
  ReadOnlyCluster cluster(QueueYaml("q", 1, 1) + NodeYaml("n", 1));
  EXPECT_THAT(DrainPlanText(Plan(cluster, {"n"})), HasSubstr("There is no pod on them."));
  const absl::Status status = Ask(cluster, {"n", "m"}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no node m"));
  for (const kube::FakeTransport::Exchange& exchange : cluster.transport().exchanges()) {
    EXPECT_EQ(exchange.request.method, "GET");
  }
}

}  // namespace
}  // namespace fairlead::cmd
