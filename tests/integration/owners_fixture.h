// For tests of pods that controllers make: the real controllers of Kubernetes beside us, objects
// that own pods, and what becomes of their pods. Thread-safety: one thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {

inline constexpr char kJobs[] = "/apis/batch/v1/namespaces/default/jobs";
inline constexpr char kCronJobs[] = "/apis/batch/v1/namespaces/default/cronjobs";
inline constexpr char kSets[] = "/apis/apps/v1/namespaces/default/statefulsets";
inline constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";
inline constexpr char kReplicaSets[] = "/apis/apps/v1/namespaces/default/replicasets";
inline constexpr char kJobSets[] = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
inline constexpr char kLeaderSets[] =
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets";
inline constexpr char kRayClusters[] = "/apis/ray.io/v1/namespaces/default/rayclusters";
inline constexpr char kRayJobs[] = "/apis/ray.io/v1/namespaces/default/rayjobs";
inline constexpr char kTrainJobs[] =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs";
inline constexpr char kPyTorchJobs[] = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
inline constexpr char kSimulations[] =
    "/apis/grouping.example.com/v1/namespaces/default/simulations";
inline constexpr char kTemplate[] =
    R"({"metadata":{"labels":{"app":"a","kai.scheduler/queue":"team"}},"spec":{
    "schedulerName":"fairlead","restartPolicy":"POLICY","terminationGracePeriodSeconds":0,
    "containers":[{"name":"c","image":"i","resources":{
    "requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}}]}})";

inline std::string TemplateOf(absl::string_view policy) {
  return absl::StrReplaceAll(kTemplate, {{"POLICY", policy}});
}

inline std::string UidOf(const Json& object) { return object.TextAt({"metadata", "uid"}); }
inline std::string NameOf(const Json& object) { return object.TextAt({"metadata", "name"}); }

class OwnersTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    controllers_.reset();
    for (const char* collection :
         {kTrainJobs, kRayJobs, kJobSets, kJobs, kCronJobs, kSets, kDeployments, kReplicaSets,
          kLeaderSets, kRayClusters, kPyTorchJobs, kSimulations}) {
      if (!api().Get(collection).ok()) continue;
      for (const Json& owner : api().List(collection)) {
        const std::string path = Path(collection, NameOf(owner));
        api().Merge(path, R"({"metadata":{"finalizers":null}})");
        DeleteOwner(path);
      }
    }
    IntegrationTest::TearDown();
  }
  void StartControllers(const std::string& names) {
    Plane& plane = *Plane::Get();
    controllers_ = std::make_unique<ChildProcess>(plane.ControllerManager(names),
                                                  plane.NewFile("controllers.log"));
  }
  ChildProcess& StartGrouping(const std::string& kinds = "") {
    return Start({.kubeconfig = InstallRights({"base", "grouping"}),
                  .more = absl::StrCat("grouping:\n  enabled: true\n", kinds)});
  }
  void DefineKinds() {
    Define(FAIRLEAD_SOURCE_DIR "/tests/integration/testdata/owner_kinds.yaml", kSimulations);
    for (const char* collection : {kJobSets, kLeaderSets, kRayClusters, kPyTorchJobs}) {
      ASSERT_TRUE(Eventually(absl::StrCat(collection, " is served"),
                             [&] { return api().Get(collection).ok(); }));
    }
  }
  Json MakeJob(const std::string& name, int pods, const std::string& metadata = "",
               const std::string& spec = "") {
    return api().Create(kJobs, absl::StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{)",
                                            metadata, R"("name":")", name, R"("},"spec":{)", spec,
                                            R"("parallelism":)", pods, R"(,"completions":)", pods,
                                            R"(,"template":)", TemplateOf("Never"), "}}"));
  }
  // Made by hand, as the controller of its owner would.
  void MakeOwned(const std::string& name, const Json& owner, const std::string& labels = "") {
    MakePod({.name = name, .more_labels = labels, .more_metadata = OwnedBy(owner)});
  }
  size_t BoundPods() {
    size_t bound = 0;
    for (const Json& pod : api().List(kPods)) {
      if (!pod.TextAt({"spec", "nodeName"}).empty()) ++bound;
    }
    return bound;
  }
  ::testing::AssertionResult BoundPodsBecome(size_t wanted) {
    return Eventually(
        absl::StrCat(wanted, " pods are bound"), [&] { return BoundPods() == wanted; },
        [&] { return absl::StrCat(BoundPods()); });
  }
  // "group", or "group/sub-group"; empty: none.
  std::string GroupOf(const std::string& pod) {
    const Json object = Pod(pod);
    const std::string sub = object.TextAt({"metadata", "labels", "kai.scheduler/subgroup-name"});
    return absl::StrCat(object.TextAt({"metadata", "annotations", "pod-group-name"}),
                        sub.empty() ? "" : "/", sub);
  }
  ::testing::AssertionResult IsIn(const std::string& pod, const std::string& group) {
    return Eventually(
        absl::StrCat(pod, " is in ", group), [&] { return GroupOf(pod) == group; },
        [&] { return absl::StrCat(GroupOf(pod), " ", VerdictOf(pod)); });
  }
  std::string MessageOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* condition = FindCondition(object, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  }
  ::testing::AssertionResult IsTold(const std::string& pod, const std::string& text) {
    return Eventually(
        absl::StrCat(pod, " is told ", text),
        [&] { return absl::StrContains(MessageOf(pod), text); }, [&] { return MessageOf(pod); });
  }
  std::string Minimum(const std::string& group) {
    return api().Get(Path(kGroups, group)).body.TextAt({"spec", "minMember"});
  }
  ::testing::AssertionResult MinimumBecomes(const std::string& group, const std::string& wanted) {
    return Eventually(
        absl::StrCat("the minimum of ", group, " is ", wanted),
        [&] { return Minimum(group) == wanted; }, [&] { return Minimum(group); });
  }

  std::unique_ptr<ChildProcess> controllers_;
};

// With pods that take the place of others.
class PreemptedOwnersTest : public OwnersTest {
 protected:
  void SetUp() override {
    OwnersTest::SetUp();
    MakePriorityClass("train", 50);
    MakePriorityClass("urgent", 90);
  }
  void MakeUrgent(const std::string& name, int gpus) {
    MakePod({.name = name,
             .gpus = gpus,
             .more_labels = R"("kai.scheduler/preemptibility":"preemptible",)",
             .more_spec = R"("priorityClassName":"urgent","terminationGracePeriodSeconds":0,)"});
  }
  using JsonPath = std::initializer_list<absl::string_view>;
  // By Fairlead.
  static bool IsSuspended(const Json& owner, JsonPath path) {
    return owner.TextAt(path) == "true" &&
           owner.TextAt({"metadata", "labels", "fairlead.dev/suspended"}) == "true";
  }
  ::testing::AssertionResult IsReleased(const std::string& owner, JsonPath path) {
    return Eventually(
        absl::StrCat(owner, " is released"),
        [&] {
          const Json object = api().Get(owner).body;
          return object.TextAt(path) == "false" &&
                 object.At({"metadata", "labels", "fairlead.dev/suspended"}) == nullptr &&
                 object.At({"metadata", "annotations", "fairlead.dev/suspended-by"}) == nullptr;
        },
        [&] { return api().Get(owner).body.Compact(); }, absl::Minutes(1));
  }
};

// At least three of its pods start, or none.
inline constexpr char kGangOfThree[] = R"("annotations":{"kai.scheduler/batch-min-member":"3"},)";

}  // namespace fairlead::integration
