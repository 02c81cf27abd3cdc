// Workloads of other projects, made by their real controllers (tests/workload-controllers) with
// their real definitions: their pods are one gang, what is preempted is suspended and runs again,
// and none of it fails. The stand-ins of grouping_test.cc have the same names, so this runs in a
// process of its own.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/owners_fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kRuntimes[] =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes";

// A pod of one GPU; CONTAINER is the name that the controller looks for.
constexpr char kPod[] =
    R"({"metadata":{"labels":{"kai.scheduler/queue":"team"}},"spec":{"schedulerName":"fairlead",
    "terminationGracePeriodSeconds":0,"containers":[{"name":"CONTAINER","image":"i","resources":{
    "requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}}]}})";

std::string PodOf(const std::string& container) {
  return absl::StrReplaceAll(kPod, {{"CONTAINER", container}});
}

class RealControllersTest : public PreemptedOwnersTest {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FAIRLEAD_WORKLOAD_CONTROLLERS");
    if (folder == nullptr) {
      GTEST_SKIP() << "FAIRLEAD_WORKLOAD_CONTROLLERS is not set: scripts/workload-controllers.sh";
    }
    folder_ = folder;
    PreemptedOwnersTest::SetUp();
  }
  void TearDown() override {
    if (folder_.empty()) return;
    for (const auto& program : programs_) {
      program->Signal(SIGTERM);  // it takes its webhooks away
      EXPECT_EQ(program->Wait(absl::Seconds(30)), 0) << program->Log();
    }
    for (const Json& runtime : api().Get(kRuntimes).ok() ? api().List(kRuntimes) : none_) {
      api().Merge(Path(kRuntimes, NameOf(runtime)), R"({"metadata":{"finalizers":null}})");
      api().Delete(Path(kRuntimes, NameOf(runtime)));
    }
    PreemptedOwnersTest::TearDown();
  }
  // Fairlead beside these programs and these controllers of Kubernetes, and a node. The programs
  // come first: the garbage collector would notice their definitions half a minute later.
  ChildProcess& Begin(const std::vector<std::string>& programs, const std::string& controllers,
                      int gpus) {
    for (const std::string& program : programs) StartProgram(program);
    StartControllers(controllers);
    ChildProcess& process = StartGrouping();
    MakeNode("n1", gpus);
    return process;
  }
  // Of one project, with its definitions.
  void StartProgram(const std::string& name) {
    for (const std::string& file : FilesOf(absl::StrCat(folder_, "/crds/", name))) Define(file);
    programs_.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{absl::StrCat(folder_, "/fairlead-test-", name), "--kubeconfig",
                                 Plane::Get()->kubeconfig()},
        Plane::Get()->NewFile(absl::StrCat(name, ".log"))));
    ASSERT_TRUE(Eventually(
        absl::StrCat(name, " is ready"),
        [&] { return absl::StrContains(programs_.back()->Log(), "ready\n"); },
        [&] { return programs_.back()->Log(); }, absl::Minutes(1)));
  }
  // All of its pods are preempted, and run again when there is room.
  void Preempt(ChildProcess& process, const std::string& collection, const std::string& name,
               JsonPath suspend, size_t pods) {
    ASSERT_TRUE(BoundPodsBecome(pods)) << process.Log();
    EXPECT_EQ(Groups().size(), 1U) << "they are one gang";
    const auto history = api().Watch(collection);
    const auto seen = api().Watch(kPods);
    MakeUrgent("urgent", static_cast<int>(pods));
    ASSERT_TRUE(Bound({"urgent"})) << process.Log();
    ASSERT_TRUE(IsReleased(Path(collection, name), suspend)) << process.Log();
    EXPECT_TRUE(history->Any([&](const Json& owner) { return IsSuspended(owner, suspend); }));
    ASSERT_TRUE(Eventually(
        "its pods wait again", [&] { return api().List(kPods).size() == pods + 1; },
        [&] { return absl::StrCat(api().List(kPods).size(), " pods"); }, absl::Minutes(1)))
        << process.Log();
    EXPECT_EQ(BoundPods(), 1U);
    api().Delete(Path(kPods, "urgent"));
    ASSERT_TRUE(BoundPodsBecome(pods)) << process.Log();
    EXPECT_FALSE(seen->Any([](const Json& pod) {
      return FindCondition(pod, "DisruptionTarget") != nullptr;
    })) << "no pod was evicted";
    const Json owner = api().Get(Path(collection, name)).body;
    const Json* failed = FindCondition(owner, "Failed");
    EXPECT_TRUE(failed == nullptr || failed->TextAt({"status"}) != "True") << owner.Compact();
  }
  // The PodGroups that pods name.
  std::set<std::string> Groups() {
    std::set<std::string> groups;
    for (const Json& pod : api().List(kPods)) {
      groups.insert(pod.TextAt({"metadata", "annotations", "pod-group-name"}));
    }
    return groups;
  }

 private:
  static std::set<std::string> FilesOf(const std::string& folder) {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") files.insert(entry.path());
    }
    return files;
  }

  std::string folder_;
  const std::vector<Json> none_;
  std::vector<std::unique_ptr<ChildProcess>> programs_;
};

TEST_F(RealControllersTest, AJobSetIsSuspendedAndRunsAgain) {
  ChildProcess& process = Begin({"jobset"}, "job-controller,garbage-collector-controller", 3);
  api().Create(
      kJobSets,
      absl::StrCat(R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",)",
                   R"("metadata":{"name":"set"},"spec":{"failurePolicy":{"maxRestarts":0},)",
                   R"("replicatedJobs":[{"name":"w","replicas":1,"template":{"spec":{)",
                   R"("parallelism":3,"completions":3,"backoffLimit":0,"template":)", PodOf("c"),
                   "}}}]}}"));
  Preempt(process, kJobSets, "set", {"spec", "suspend"}, 3);
}

TEST_F(RealControllersTest, ARayJobIsSuspendedAndGetsAnotherCluster) {
  ChildProcess& process = Begin({"kuberay"}, "job-controller,garbage-collector-controller", 3);
  api().Create(
      kRayJobs,
      absl::StrCat(
          R"({"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"job"},"spec":{)",
          R"("entrypoint":"true","shutdownAfterJobFinishes":true,"rayClusterSpec":{)",
          R"("headGroupSpec":{"rayStartParams":{},"template":)", PodOf("head"),
          R"(},"workerGroupSpecs":[{"groupName":"w","replicas":2,"minReplicas":2,)",
          R"("maxReplicas":2,"rayStartParams":{},"template":)", PodOf("worker"), "}]}}}"));
  ASSERT_TRUE(BoundPodsBecome(3)) << process.Log();
  const std::string first = NameOf(api().List(kRayClusters).front());
  Preempt(process, kRayJobs, "job", {"spec", "suspend"}, 3);
  ASSERT_EQ(api().List(kRayClusters).size(), 1U);
  EXPECT_NE(NameOf(api().List(kRayClusters).front()), first);
  EXPECT_NE(api().Get(Path(kRayJobs, "job")).body.TextAt({"status", "jobDeploymentStatus"}),
            "Failed");
}

// KubeRay would refuse it, and do nothing for the RayJob from then on.
TEST_F(RealControllersTest, ARayJobThatKeepsItsClusterIsEvicted) {
  ChildProcess& process = Begin({"kuberay"}, "job-controller,garbage-collector-controller", 1);
  api().Create(
      kRayJobs,
      absl::StrCat(
          R"({"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"job"},"spec":{)",
          R"("entrypoint":"true","rayClusterSpec":{"headGroupSpec":{)",
          R"("rayStartParams":{},"template":)", PodOf("head"), "}}}}"));
  ASSERT_TRUE(BoundPodsBecome(1)) << process.Log();
  MakeUrgent("urgent", 1);
  ASSERT_TRUE(Bound({"urgent"})) << process.Log();
  EXPECT_NE(api().Get(Path(kRayJobs, "job")).body.TextAt({"spec", "suspend"}), "true");
  EXPECT_NE(api().Get(Path(kRayJobs, "job")).body.TextAt({"status", "jobDeploymentStatus"}),
            "ValidationFailed");
}

TEST_F(RealControllersTest, ARayClusterIsSuspendedAndRunsAgain) {
  ChildProcess& process = Begin({"kuberay"}, "job-controller,garbage-collector-controller", 2);
  api().Create(
      kRayClusters,
      absl::StrCat(R"({"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"ray"},)",
                   R"("spec":{"headGroupSpec":{"rayStartParams":{},"template":)", PodOf("head"),
                   R"(},"workerGroupSpecs":[{"groupName":"w","replicas":1,"minReplicas":1,)",
                   R"("maxReplicas":1,"rayStartParams":{},"template":)", PodOf("worker"), "}]}}"));
  Preempt(process, kRayClusters, "ray", {"spec", "suspend"}, 2);
}

// Its pods have the same names again.
TEST_F(RealControllersTest, APyTorchJobIsSuspendedAndRunsAgain) {
  ChildProcess& process = Begin({"kubeflow"}, "garbage-collector-controller", 3);
  api().Create(
      kPyTorchJobs,
      absl::StrCat(
          R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"pt"},)",
          R"("spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1,"template":)", PodOf("pytorch"),
          R"(},"Worker":{"replicas":2,"template":)", PodOf("pytorch"), "}}}}"));
  Preempt(process, kPyTorchJobs, "pt", {"spec", "runPolicy", "suspend"}, 3);
  EXPECT_NE(NodeOf("pt-master-0"), "");
}

// The TrainJob is suspended, and passes it on to its JobSet.
TEST_F(RealControllersTest, ATrainJobIsSuspendedAndRunsAgain) {
  ChildProcess& process =
      Begin({"jobset", "trainer"}, "job-controller,garbage-collector-controller", 2);
  api().Create(
      kRuntimes,
      absl::StrCat(R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime",)",
                   R"("metadata":{"name":"rt"},"spec":{"mlPolicy":{"numNodes":2,)",
                   R"("torch":{"numProcPerNode":"auto"}},"template":{"spec":{"replicatedJobs":[)",
                   R"({"name":"node","template":{"metadata":{"labels":{)",
                   R"("trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},"spec":{)",
                   R"("template":)", PodOf("node"), "}}}]}}}}"));
  api().Create(kTrainJobs, R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
      "metadata":{"name":"train"},"spec":{"runtimeRef":{"kind":"TrainingRuntime","name":"rt"}}})");
  Preempt(process, kTrainJobs, "train", {"spec", "suspend"}, 2);
}

// It has no field for that. Each replica is a gang.
TEST_F(RealControllersTest, AReplicaOfALeaderWorkerSetIsEvicted) {
  ChildProcess& process = Begin({"lws"}, "statefulset-controller,garbage-collector-controller", 4);
  api().Create(
      kLeaderSets,
      absl::StrCat(R"({"apiVersion":"leaderworkerset.x-k8s.io/v1","kind":"LeaderWorkerSet",)",
                   R"("metadata":{"name":"lws"},"spec":{"replicas":2,"leaderWorkerTemplate":{)",
                   R"("size":2,"workerTemplate":)", PodOf("c"), "}}}"));
  ASSERT_TRUE(BoundPodsBecome(4)) << process.Log();
  EXPECT_EQ(Groups().size(), 2U);
  MakeUrgent("urgent", 2);
  ASSERT_TRUE(Bound({"urgent"})) << process.Log();
  ASSERT_TRUE(Eventually("its pods wait again", [&] { return api().List(kPods).size() == 5; }))
      << process.Log();
  api().Delete(Path(kPods, "urgent"));
  EXPECT_TRUE(BoundPodsBecome(4)) << process.Log();
}

}  // namespace
}  // namespace fairlead::integration
