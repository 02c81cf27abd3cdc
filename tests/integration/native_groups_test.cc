// PodGroups of the API server itself (scheduling.k8s.io/v1alpha2), with the rights of
// manifests/base/rbac.yaml. No kube-scheduler and no controller are beside us.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kNativeGroups[] = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups";

class NativeGroupsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Forget();
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    Forget();
  }
  // The controller that takes their finalizer off does not run.
  void Forget() {
    for (const Json& group : api().List(kNativeGroups)) {
      const std::string path = Path(kNativeGroups, group.TextAt({"metadata", "name"}));
      api().Merge(path, R"({"metadata":{"finalizers":null}})");
      api().Delete(path);
    }
  }
  void MakeNativeGroup(const std::string& name, const std::string& spec) {
    api().Create(kNativeGroups,
                 absl::StrCat(R"({"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup",)",
                              R"("metadata":{"name":")", name,
                              R"(","labels":{"kai.scheduler/queue":"team"}},"spec":)", spec, "}"));
  }
  void MakeMember(const std::string& name, const std::string& group) {
    MakePod({.name = name,
             .more_spec = absl::StrCat(R"("schedulingGroup":{"podGroupName":")", group, R"("},)")});
  }
  // "False Unschedulable InsufficientCapacity: ..."; empty: the group has no such condition.
  std::string ConditionOf(const std::string& group) {
    const Json object = api().Get(Path(kNativeGroups, group)).body;
    const Json* const condition = FindCondition(object, "PodGroupScheduled");
    if (condition == nullptr) return "";
    return absl::StrCat(condition->TextAt({"status"}), " ", condition->TextAt({"reason"}), " ",
                        condition->TextAt({"message"}));
  }
  ::testing::AssertionResult Becomes(const std::string& group, const std::string& begin) {
    return Eventually(
        absl::StrCat("condition of ", group, ": ", begin),
        [&] { return absl::StartsWith(ConditionOf(group), begin); },
        [&] { return ConditionOf(group); });
  }
};

TEST_F(NativeGroupsTest, AGangOfTheApiServersOwnStartsTogether) {
  const std::string kubeconfig = InstallRights();
  MakeNode("n1", 2);
  Start({.kubeconfig = kubeconfig});
  MakeNativeGroup("gang", R"({"schedulingPolicy":{"gang":{"minCount":3}}})");
  MakeMember("g0", "gang");
  ASSERT_TRUE(Becomes("gang", "False Unschedulable GangIncomplete: "));
  EXPECT_EQ(FindCondition(Pod("g0"), "PodScheduled")->TextAt({"reason"}), "GangIncomplete");
  const auto verdict =
      Json::Parse(api()
                      .Get(Path(kNativeGroups, "gang"))
                      .body.TextAt({"metadata", "annotations", "fairlead.dev/verdict"}));
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->TextAt({"code"}), "GangIncomplete");
  MakeMember("g1", "gang");
  MakeMember("g2", "gang");
  ASSERT_TRUE(Becomes("gang", "False Unschedulable InsufficientCapacity: "));
  for (const char* pod : {"g0", "g1", "g2"}) EXPECT_EQ(NodeOf(pod), "") << pod;
  MakeNode("n2", 1);
  ASSERT_TRUE(Bound({"g0", "g1", "g2"}));
  ASSERT_TRUE(Becomes("gang", "True Scheduled "));
  // The verdict goes.
  EXPECT_TRUE(Eventually(
      "no verdict",
      [&] {
        return api()
            .Get(Path(kNativeGroups, "gang"))
            .body.TextAt({"metadata", "annotations", "fairlead.dev/verdict"})
            .empty();
      },
      nullptr));
  ExpectNoNodeOvercommitted();
}

TEST_F(NativeGroupsTest, WithoutAGangPodsStartOneByOneAndATopologyHolds) {
  MakeNode("n1", 1);
  Start({});
  MakeNativeGroup("loose", R"({"schedulingPolicy":{"basic":{}}})");
  MakeMember("l0", "loose");
  MakeMember("l1", "loose");
  ASSERT_TRUE(Becomes("loose", "True Scheduled "));
  EXPECT_TRUE(NodeOf("l0").empty() != NodeOf("l1").empty());

  MakeNode("a1", 1);
  MakeNode("a2", 1);
  MakeNode("b1", 1);
  for (const char* node : {"a1", "a2", "b1"}) {
    api().Merge(Path(kNodes, node), absl::StrCat(R"({"metadata":{"labels":{"rack":")",
                                                 std::string(node, 1), R"("}}})"));
  }
  MakeNativeGroup("near", R"({"schedulingPolicy":{"gang":{"minCount":2}},
      "schedulingConstraints":{"topology":[{"key":"rack"}]}})");
  // The second pod of the first group takes what is left.
  ASSERT_TRUE(Bound({"l0", "l1"}));
  MakeNode("a3", 2);
  api().Merge(Path(kNodes, "a3"), R"({"metadata":{"labels":{"rack":"c"}}})");
  MakeMember("r0", "near");
  MakeMember("r1", "near");
  ASSERT_TRUE(Bound({"r0", "r1"}));
  const auto rack = [&](const char* pod) {
    return api().Get(Path(kNodes, NodeOf(pod))).body.TextAt({"metadata", "labels", "rack"});
  };
  EXPECT_EQ(rack("r0"), rack("r1"));
}

}  // namespace
}  // namespace fairlead::integration
