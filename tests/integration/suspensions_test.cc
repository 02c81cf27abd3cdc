// Workloads are suspended instead of evicted, with the rights of manifests/grouping and the real
// Job controller beside us.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/owners_fixture.h"

namespace fairlead::integration {
namespace {

class SuspensionsTest : public PreemptedOwnersTest {
 protected:
  Json Job(const std::string& name) { return api().Get(Path(kJobs, name)).body; }
  ::testing::AssertionResult IsReleased(const std::string& name) {
    return PreemptedOwnersTest::IsReleased(Path(kJobs, name), {"spec", "suspend"});
  }
};

TEST_F(SuspensionsTest, AJobThatIsPreemptedDoesNotFailAndRunsAgain) {
  StartControllers("job-controller,garbage-collector-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 3);
  // One failure would be the end of it.
  MakeJob("train", 3, kGangOfThree, R"("backoffLimit":0,)");
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();
  const auto history = api().Watch(kJobs);
  const auto pods = api().Watch(kPods);
  MakeUrgent("urgent", 3);
  ASSERT_TRUE(Bound({"urgent"})) << process.Log();
  ASSERT_TRUE(IsReleased("train")) << process.Log();
  EXPECT_TRUE(history->Any([](const Json& job) {
    return IsSuspended(job, {"spec", "suspend"}) &&
           job.TextAt({"metadata", "annotations", "fairlead.dev/suspended-by"}) == "fairlead" &&
           absl::StrContains(job.TextAt({"metadata", "annotations", "fairlead.dev/suspended-for"}),
                             "for workload default/urgent");
  })) << process.Log();
  EXPECT_TRUE(Eventually("its pods wait again", [&] { return api().List(kPods).size() == 4; }))
      << process.Log();
  EXPECT_EQ(BoundPods(), 1U);
  api().Delete(Path(kPods, "urgent"));
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();
  EXPECT_EQ(Job("train").TextAt({"status", "failed"}), "");
  EXPECT_EQ(FindCondition(Job("train"), "Failed"), nullptr);
  EXPECT_FALSE(pods->Any([](const Json& pod) {
    return FindCondition(pod, "DisruptionTarget") != nullptr;
  })) << "no pod was evicted";
}

// The pod alone needs no PodGroup, and its Job is suspended all the same.
TEST_F(SuspensionsTest, AJobOfOnePodDoesNotFail) {
  StartControllers("job-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 1);
  MakeJob("single", 1, "", R"("backoffLimit":0,)");
  ASSERT_TRUE(BoundPodsBecome(1)) << process.Log();
  MakeUrgent("urgent", 1);
  ASSERT_TRUE(Bound({"urgent"})) << process.Log();
  ASSERT_TRUE(IsReleased("single")) << process.Log();
  EXPECT_TRUE(Eventually("its pod waits again", [&] { return api().List(kPods).size() == 2; }))
      << process.Log();
  EXPECT_EQ(FindCondition(Job("single"), "Failed"), nullptr);
}

TEST_F(SuspensionsTest, WithoutTheRightPodsAreEvictedAndTheLogNamesTheRule) {
  StartControllers("job-controller");
  const std::string account = InstallRights({"base", "grouping"});
  constexpr char kRole[] = "/apis/rbac.authorization.k8s.io/v1/clusterroles/fairlead-grouping";
  const std::string rules = api().Get(kRole).body.Find("rules")->Compact();
  api().Merge(
      kRole,
      absl::StrCat(R"({"rules":)",
                   absl::StrReplaceAll(rules, {{R"("get","list","patch")", R"("get")"}}), "}"));
  ChildProcess& process = Start({.kubeconfig = account, .more = "grouping: {enabled: true}\n"});
  MakeNode("n1", 1);
  MakeJob("single", 1);
  ASSERT_TRUE(BoundPodsBecome(1)) << process.Log();
  MakeUrgent("urgent", 1);
  ASSERT_TRUE(Bound({"urgent"})) << process.Log();
  EXPECT_TRUE(Says(process, "resources: [jobs], verbs: [get, list, patch]"));
  EXPECT_FALSE(IsSuspended(Job("single"), {"spec", "suspend"}));
}

// As a leader leaves it that died at that moment.
TEST_F(SuspensionsTest, WhatAFormerLeaderLeftSuspendedIsReleased) {
  StartControllers("job-controller");
  MakeNode("n1", 2);
  constexpr char kMarks[] = R"("labels":{"fairlead.dev/suspended":"true"},)"
                            R"("annotations":{"fairlead.dev/suspended-by":"fairlead"},)";
  MakeJob("left", 1, kMarks, R"("suspend":true,)");
  MakeJob("own", 1, "", R"("suspend":true,)");
  ChildProcess& process = StartGrouping();
  ASSERT_TRUE(IsReleased("left")) << process.Log();
  EXPECT_TRUE(BoundPodsBecome(1)) << process.Log();
  EXPECT_EQ(Job("own").TextAt({"spec", "suspend"}), "true") << "its user suspended it";
}

}  // namespace
}  // namespace fairlead::integration
