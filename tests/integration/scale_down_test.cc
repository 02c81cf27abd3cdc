// What the scale hook does on a real API server besides provisioning: nodes whose pods have room
// elsewhere, the condition of NodePools, and the caps of queues. kwok plays the kubelets.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

class ScaleDownTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Plane& plane = *Plane::Get();
    kwok_ = std::make_unique<ChildProcess>(plane.Kwok(), plane.NewFile("kwok.log"));
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    kwok_.reset();
    Empty(kPools);
    IntegrationTest::TearDown();
  }
  // With the rights of the manifests.
  ChildProcess& StartHook() {
    return Start(
        {.kubeconfig = InstallRights({"base", "kwok"}), .hook = true, .unneeded_after = "1s"});
  }
  void MakePool(const std::string& spec) {
    api().Create(kPools, absl::StrCat(R"({"apiVersion":"fairlead.dev/v1alpha1","kind":"NodePool",)",
                                      R"("metadata":{"name":"gpu"},"spec":)", spec, "}"));
  }
  ::testing::AssertionResult PoolIs(const std::string& ready, const std::string& message) {
    return Eventually(
        absl::StrCat("condition Ready is ", ready, " with ", message),
        [&] {
          const Json pool = api().Get(Path(kPools, "gpu")).body;
          const Json* condition = FindCondition(pool, "Ready");
          return condition != nullptr && condition->TextAt({"status"}) == ready &&
                 absl::StrContains(condition->TextAt({"message"}), message);
        },
        [&] { return api().Get(Path(kPools, "gpu")).body.Compact(); });
  }
  static std::string OwnedBy(const std::string& owner) {
    return absl::StrCat(
        R"("ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":")", owner,
        R"(","uid":")", owner, R"(","controller":true}],)");
  }

  std::unique_ptr<ChildProcess> kwok_;
};

TEST_F(ScaleDownTest, APodMovesToRoomThatIsThereAndItsNodeIsGivenBack) {
  MakePool(R"({"provider":"kwok","instanceTypes":["g5.xlarge"],"disruption":{
    "consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"1s",
    "budgets":[{"nodes":"100%"}]}})");
  ChildProcess& process = StartHook();
  MakePod({.name = "kept", .more_metadata = ""});  // no controller would make another
  MakePod({.name = "moved", .more_metadata = OwnedBy("set")});
  ASSERT_TRUE(Bound({"kept", "moved"}));
  const std::string first = NodeOf("moved");
  ASSERT_NE(first, NodeOf("kept"));
  MakeNode("roomy", 4);
  ASSERT_TRUE(Eventually(
      "the pod is evicted", [&] { return api().Get(Path(kPods, "moved")).status == 404; },
      [&] { return absl::StrCat(Pod("moved").Compact(), "\n", process.Log()); }));
  MakePod({.name = "moved-2", .more_metadata = OwnedBy("set")});
  ASSERT_TRUE(Bound({"moved-2"}));
  EXPECT_EQ(NodeOf("moved-2"), "roomy");
  EXPECT_TRUE(Eventually(
      "its node is given back", [&] { return api().Get(Path(kNodes, first)).status == 404; },
      [&] { return process.Log(); }));
  EXPECT_TRUE(Eventually("one request is left, that of the pod without a controller",
                         [&] { return api().List(kRequests).size() == 1; }));
  EXPECT_EQ(api().Get(Path(kNodes, NodeOf("kept"))).status, 200);
  // The audit log has it all.
  for (const char* workload : {"default/kept", "default/moved"}) {
    EXPECT_TRUE(Says(process, absl::StrCat(R"("priceUsdPerHour":1.006000,"queue":"team",)",
                                           R"("workloads":[")", workload, R"("]})")));
  }
  EXPECT_TRUE(Says(process, R"("namespace":"default","pod":"moved","uid":")"));
  EXPECT_TRUE(Says(process, absl::StrCat(R"("nodeRequest":")", first, R"(","phase":"Draining")")));
  EXPECT_TRUE(
      Says(process, absl::StrCat(R"("nodeRequest":")", first, R"(","provider":"kwok","node":")")));
}

TEST_F(ScaleDownTest, TheConditionOfANodePoolSaysWhatIsWrong) {
  MakePool(R"({"provider":"aws"})");
  StartHook();
  ASSERT_TRUE(PoolIs("False", "spec.provider: \"aws\" is not configured"));
  MakePod({.name = "p"});
  ASSERT_TRUE(Eventually("nothing is provisioned from it",
                         [&] { return VerdictOf("p") == "NoInstanceTypeFits"; }));
  EXPECT_TRUE(api().List(kRequests).empty());
  api().Merge(Path(kPools, "gpu"), R"({"spec":{"provider":"kwok"}})");
  ASSERT_TRUE(PoolIs("True", "nodes are provisioned from it"));
  EXPECT_TRUE(Bound({"p"}));
}

// Wrong disruption rules are refused by the API server, whose schema is ours.
TEST_F(ScaleDownTest, TheSchemaRefusesWrongRules) {
  for (const char* spec :
       {R"({"disruption":{"consolidationPolicy":"Always"}})",
        R"({"disruption":{"budgets":[{"nodes":"101%"}]}})",
        R"({"disruption":{"budgets":[{"nodes":"1","schedule":"@daily"}]}})", R"({"gpuSharing":{}})",
        R"({"gpuSharing":{"strategy":"MPS","replicas":1}})", R"({"devices":[{"count":1}]})",
        R"({"devices":[{"driver":"nic.io"}]})", R"({"devices":[{"driver":"nic.io","count":1025}]})",
        R"({"devices":[{"driver":"gpu.nvidia.com","count":8}]})",
        R"({"devices":[{"driver":"nic.io","count":1,"attributes":{"a":{"int":1,"bool":true}}}]})",
        R"({"devices":[{"driver":"gpu.nvidia.com"}],"gpuSharing":{"strategy":"MPS","replicas":2}})",
        R"({"labels":{"kubernetes.io/hostname":"a"}})"}) {
    const Answer answer =
        api().Call("POST", kPools,
                   absl::StrCat(R"({"apiVersion":"fairlead.dev/v1alpha1","kind":"NodePool",)",
                                R"("metadata":{"name":"gpu"},"spec":)", spec, "}"));
    EXPECT_EQ(answer.status, 422) << spec;
  }
  MakePool(R"({"devices":[{"driver":"gpu.nvidia.com","capacity":{"memory":"80Gi"}},)"
           R"({"driver":"nic.io","count":2,"attributes":{"x.io/speed":{"int":400}}}]})");
}

TEST_F(ScaleDownTest, TheCapOfAQueueHoldsItAlone) {
  StartHook();
  api().Merge(Path(kQueues, "team"),
              R"({"metadata":{"annotations":{"fairlead.dev/provisioned-gpu-limit":"1"}}})");
  MakeQueue("other", -1, -1);
  MakePod({.name = "a"});
  ASSERT_TRUE(Bound({"a"}));
  MakePod({.name = "b"});
  MakePod({.name = "c", .queue = "other"});
  ASSERT_TRUE(Bound({"c"}));
  ASSERT_TRUE(Eventually("the cap is told", [&] { return VerdictOf("b") == "GpuCapReached"; }));
  EXPECT_TRUE(absl::StrContains(
      Pod("b").TextAt({"metadata", "annotations", "fairlead.dev/verdict"}), "of queue team"));
  api().Merge(Path(kQueues, "team"),
              R"({"metadata":{"annotations":{"fairlead.dev/provisioned-gpu-limit":null}}})");
  EXPECT_TRUE(Bound({"b"}));
}

}  // namespace
}  // namespace fairlead::integration
