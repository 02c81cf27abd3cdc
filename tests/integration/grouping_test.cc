// Pods are grouped by their owners, with the rights of manifests/grouping and the real controllers
// of Jobs, StatefulSets, Deployments and garbage beside us. The controllers of other projects are
// not here (real_controllers_test.cc): their objects and pods are made by hand, with the labels
// that they would have.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/owners_fixture.h"

namespace fairlead::integration {
namespace {

using GroupingTest = OwnersTest;

TEST_F(GroupingTest, AJobIsAGangThatStartsTogetherAndItsGroupGoesWithIt) {
  StartControllers("job-controller,garbage-collector-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 2);
  const Json job = MakeJob("train", 3, kGangOfThree);
  const std::string name = absl::StrCat("pg-train-", UidOf(job));
  ASSERT_TRUE(Eventually("the group is made", [&] { return api().List(kGroups).size() == 1; }))
      << process.Log();
  const Json group = api().List(kGroups).front();
  EXPECT_EQ(NameOf(group), name);
  EXPECT_EQ(group.TextAt({"spec", "minMember"}), "3");
  EXPECT_EQ(group.TextAt({"spec", "queue"}), "team");
  EXPECT_EQ(group.TextAt({"metadata", "annotations", "fairlead.dev/follows-owner"}), "true");
  EXPECT_EQ(UidOf(Json::Object().Set("metadata",
                                     group.At({"metadata", "ownerReferences"})->items().front())),
            UidOf(job));
  ASSERT_TRUE(Eventually("its pods name it", [&] {
    size_t named = 0;
    for (const Json& pod : api().List(kPods)) {
      if (pod.TextAt({"metadata", "annotations", "pod-group-name"}) == name) ++named;
    }
    return named == 3;
  })) << process.Log();
  EXPECT_EQ(BoundPods(), 0U) << "two of three would fit";
  MakeNode("n2", 1);
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();
  DeleteOwner(Path(kJobs, "train"));
  EXPECT_TRUE(Eventually(
      "the group is gone", [&] { return api().List(kGroups).empty(); }, nullptr, absl::Minutes(1)));
}

TEST_F(GroupingTest, PodsThatAreAloneHaveNoGroup) {
  StartControllers(
      "job-controller,statefulset-controller,deployment-controller,replicaset-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 8);
  const std::string more =
      absl::StrCat(R"("selector":{"matchLabels":{"app":"a"}},"template":)", TemplateOf("Always"));
  api().Create(kDeployments,
               absl::StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment",)",
                            R"("metadata":{"name":"d"},"spec":{"replicas":2,)", more, "}}"));
  MakeJob("single", 1);
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();
  // The Jobs of a CronJob are workloads, and not the CronJob.
  const Json cron = api().Create(
      kCronJobs,
      absl::StrCat(R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"nightly"},)",
                   R"("spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{)",
                   R"("template":)", TemplateOf("Never"), "}}}}"));
  MakeJob("nightly-1", 1, OwnedBy(cron));
  ASSERT_TRUE(BoundPodsBecome(4)) << process.Log();
  EXPECT_EQ(api().List(kGroups).size(), 0U);
  const Json run = MakeJob("nightly-2", 3, absl::StrCat(kGangOfThree, OwnedBy(cron)));
  ASSERT_TRUE(BoundPodsBecome(7)) << process.Log();
  ASSERT_EQ(api().List(kGroups).size(), 1U);
  EXPECT_EQ(Minimum(absl::StrCat("pg-nightly-2-", UidOf(run))), "3");
  // The pods of a StatefulSet are one workload of which each starts by itself.
  const Json set = api().Create(
      kSets,
      absl::StrCat(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},)",
                   R"("spec":{"replicas":2,"podManagementPolicy":"Parallel",)",
                   R"("serviceName":"s",)",
                   absl::StrReplaceAll(more, {{R"("app":"a")", R"("app":"s")"}}), "}}"));
  EXPECT_TRUE(IsIn("s-0", absl::StrCat("pg-s-", UidOf(set)))) << process.Log();
  EXPECT_EQ(Minimum(absl::StrCat("pg-s-", UidOf(set))), "1");
}

TEST_F(GroupingTest, KindsOfOtherProjectsHaveTheirSubGroups) {
  DefineKinds();
  StartControllers("job-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 16);
  // The real controller of Jobs makes the pods of a JobSet.
  const Json set = api().Create(kJobSets, R"({"apiVersion":"jobset.x-k8s.io/v1alpha2",
      "kind":"JobSet","metadata":{"name":"set"},"spec":{"replicatedJobs":[
      {"name":"driver","template":{"spec":{}}},
      {"name":"workers","replicas":1,"template":{"spec":{"parallelism":2,"completions":2}}}]}})");
  const auto job_of_set = [&](const std::string& name, int pods) {
    const std::string labels =
        absl::StrCat(R"("labels":{"app":"a","jobset.sigs.k8s.io/replicatedjob-name":")", name,
                     R"(","jobset.sigs.k8s.io/job-index":"0",)");
    api().Create(
        kJobs,
        absl::StrCat(
            R"({"apiVersion":"batch/v1","kind":"Job","metadata":{)", OwnedBy(set),
            R"("name":"set-)", name, R"("},"spec":{"parallelism":)", pods, R"(,"completions":)",
            pods, R"(,"template":)",
            absl::StrReplaceAll(TemplateOf("Never"), {{R"("labels":{"app":"a",)", labels}}), "}}"));
  };
  job_of_set("driver", 1);
  const std::string of_set = absl::StrCat("pg-set-", UidOf(set));
  ASSERT_TRUE(Eventually("the pod of the driver is in its sub-group", [&] {
    const std::vector<Json> pods = api().List(kPods);
    return pods.size() == 1 &&
           GroupOf(NameOf(pods.front())) == absl::StrCat(of_set, "/driver-replica-0");
  })) << process.Log();
  EXPECT_EQ(BoundPods(), 0U) << "its workers are missing";
  job_of_set("workers", 2);
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();

  const Json ray = api().Create(kRayClusters, R"({"apiVersion":"ray.io/v1","kind":"RayCluster",
      "metadata":{"name":"ray"},"spec":{"headGroupSpec":{},
      "workerGroupSpecs":[{"groupName":"gpu","minReplicas":1,"replicas":1}]}})");
  const std::string of_ray = absl::StrCat("pg-ray-", UidOf(ray));
  MakeOwned("head", ray, R"("ray.io/node-type":"head","ray.io/group":"headgroup",)");
  EXPECT_TRUE(IsIn("head", absl::StrCat(of_ray, "/headgroup")));
  EXPECT_EQ(Minimum(of_ray), "2");
  EXPECT_EQ(NodeOf("head"), "");
  MakeOwned("worker-1", ray, R"("ray.io/node-type":"worker","ray.io/group":"gpu",)");
  ASSERT_TRUE(Bound({"head", "worker-1"})) << process.Log();

  const Json torch = api().Create(kPyTorchJobs, R"({"apiVersion":"kubeflow.org/v1",
      "kind":"PyTorchJob","metadata":{"name":"torch"},"spec":{"pytorchReplicaSpecs":{
      "Master":{"replicas":1},"Worker":{"replicas":1}}}})");
  MakeOwned("master", torch, R"("training.kubeflow.org/replica-type":"master",)");
  EXPECT_TRUE(IsIn("master", absl::StrCat("pg-torch-", UidOf(torch), "/master")));
  MakeOwned("worker-2", torch, R"("training.kubeflow.org/replica-type":"worker",)");
  ASSERT_TRUE(Bound({"master", "worker-2"})) << process.Log();

  // A worker's owner is owned by the leader's pod.
  const Json leaders = api().Create(kLeaderSets, R"({"apiVersion":"leaderworkerset.x-k8s.io/v1",
      "kind":"LeaderWorkerSet","metadata":{"name":"lws"},
      "spec":{"replicas":1,"leaderWorkerTemplate":{"size":2}}})");
  const std::string of_leaders = absl::StrCat("pg-lws-", UidOf(leaders), "-group-0");
  const auto label = [](int index) {
    return absl::StrCat(R"("leaderworkerset.sigs.k8s.io/group-index":"0",)",
                        R"("leaderworkerset.sigs.k8s.io/worker-index":")", index, "\",");
  };
  MakeOwned("lws-0", leaders, label(0));
  EXPECT_TRUE(IsIn("lws-0", absl::StrCat(of_leaders, "/leader")));
  const Json workers = api().Create(
      kSets, absl::StrCat(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{)",
                          OwnedBy(Pod("lws-0")), R"("name":"lws-0"},"spec":{"replicas":1,)",
                          R"("serviceName":"lws","selector":{"matchLabels":{"app":"a"}},)",
                          R"("template":)", TemplateOf("Always"), "}}"));
  MakeOwned("lws-0-1", workers, label(1));
  EXPECT_TRUE(IsIn("lws-0-1", absl::StrCat(of_leaders, "/workers"))) << process.Log();
  EXPECT_TRUE(Bound({"lws-0", "lws-0-1"})) << process.Log();
}

TEST_F(GroupingTest, AGroupFollowsItsOwnerUpAndDown) {
  DefineKinds();
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 8);
  const Json ray = api().Create(kRayClusters, R"({"apiVersion":"ray.io/v1","kind":"RayCluster",
      "metadata":{"name":"ray"},"spec":{"headGroupSpec":{},
      "workerGroupSpecs":[{"groupName":"gpu","minReplicas":1,"replicas":1}]}})");
  const std::string group = absl::StrCat("pg-ray-", UidOf(ray));
  const auto worker = [&](const std::string& name) {
    MakeOwned(name, ray, R"("ray.io/node-type":"worker","ray.io/group":"gpu",)");
  };
  MakeOwned("head", ray, R"("ray.io/node-type":"head","ray.io/group":"headgroup",)");
  worker("w1");
  ASSERT_TRUE(Bound({"head", "w1"})) << process.Log();
  // A user moves the group to another queue.
  MakeQueue("other", -1, -1);
  api().Merge(Path(kGroups, group), R"({"spec":{"queue":"other"}})");
  const auto scale = [&](int workers) {
    api().Merge(Path(kRayClusters, "ray"),
                absl::StrCat(R"({"spec":{"workerGroupSpecs":[{"groupName":"gpu","minReplicas":)",
                             workers, R"(,"replicas":)", workers, "}]}}"));
  };
  scale(3);
  worker("w2");  // by which we learn of it
  ASSERT_TRUE(MinimumBecomes(group, "4")) << process.Log();
  worker("w3");
  ASSERT_TRUE(Bound({"w2", "w3"})) << process.Log();
  scale(1);
  for (const char* name : {"w2", "w3"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(MinimumBecomes(group, "2")) << process.Log();
  EXPECT_EQ(api().Get(Path(kGroups, group)).body.TextAt({"spec", "queue"}), "other");
}

TEST_F(GroupingTest, AGroupOfAUserIsUsedAndNeverWritten) {
  StartControllers("job-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 2);
  const Json job = MakeJob("train", 3, kGangOfThree, R"("suspend":true,)");
  const std::string name = absl::StrCat("pg-train-", UidOf(job));
  const Json before = MakeGroup(name, 1);
  const auto history = api().Watch(kGroups);
  api().Merge(Path(kJobs, "train"), R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(BoundPodsBecome(2)) << process.Log();
  const Json after = api().Get(Path(kGroups, name)).body;
  EXPECT_EQ(after.At({"spec"})->Compact(), before.At({"spec"})->Compact());
  EXPECT_EQ(after.TextAt({"metadata", "annotations", "fairlead.dev/follows-owner"}), "");
  EXPECT_EQ(after.At({"metadata", "ownerReferences"}), nullptr);
  EXPECT_FALSE(
      history->Any([](const Json& group) { return group.TextAt({"spec", "minMember"}) != "1"; }));
}

TEST_F(GroupingTest, AnOwnerThatMayNotBeReadOrIsGoneIsNamedInTheVerdictAndHarmsNoOthers) {
  DefineKinds();
  StartControllers("job-controller");
  ChildProcess& process = StartGrouping();
  MakeNode("n1", 2);
  const Json secret = api().Create(kSimulations, R"({"apiVersion":"grouping.example.com/v1",
      "kind":"Simulation","metadata":{"name":"s"},"spec":{"pods":1}})");
  MakeOwned("p", secret);
  const Json gone = MakeJob("gone", 0);
  DeleteOwner(Path(kJobs, "gone"));
  ASSERT_TRUE(Eventually("the Job is gone", [&] { return !api().Get(Path(kJobs, "gone")).ok(); }));
  MakeOwned("orphan", gone);
  MakeJob("good", 1);
  EXPECT_TRUE(BoundPodsBecome(1)) << process.Log();
  EXPECT_TRUE(IsTold("p", "resources: [simulations]")) << process.Log();
  EXPECT_TRUE(IsTold("orphan", "batch/v1 Job default/gone is gone; what helps: delete the pod"))
      << process.Log();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(NodeOf("orphan"), "");
}

TEST_F(GroupingTest, AKindOfAUserIsARowOfTheConfiguration) {
  DefineKinds();
  const std::string account = InstallRights({"base", "grouping"});
  constexpr char kRole[] = "/apis/rbac.authorization.k8s.io/v1/clusterroles/fairlead-grouping";
  Json role = api().Get(kRole).body;
  role.Find("rules")->Add(*Json::Parse(
      R"({"apiGroups":["grouping.example.com"],"resources":["simulations"],"verbs":["get"]})"));
  api().Merge(kRole, absl::StrCat(R"({"rules":)", role.Find("rules")->Compact(), "}"));
  ChildProcess& process =
      Start({.kubeconfig = account,
             .more = "grouping:\n  enabled: true\n  kinds:\n  - group: grouping.example.com\n"
                     "    kind: Simulation\n    minMember: {path: spec.pods, default: 1}\n"});
  MakeNode("n1", 2);
  const Json simulation = api().Create(kSimulations, R"({"apiVersion":"grouping.example.com/v1",
      "kind":"Simulation","metadata":{"name":"s"},"spec":{"pods":2}})");
  MakeOwned("p", simulation);
  EXPECT_TRUE(IsIn("p", absl::StrCat("pg-s-", UidOf(simulation)))) << process.Log();
  EXPECT_EQ(NodeOf("p"), "");
  MakeOwned("q", simulation);
  EXPECT_TRUE(Bound({"p", "q"})) << process.Log();
}

}  // namespace
}  // namespace fairlead::integration
