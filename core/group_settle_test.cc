// Pods that a pod-grouper is going to annotate wait for that (core/reconcile/bindings.h,
// GroupSettle).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using GroupSettleTest = NoHookTest;

model::Pod OwnedByJob(const std::string& name, int64_t created) {
  model::Pod pod = PodBuilder("ns", name).Queue("q").Gpus(1).Created(created).Build();
  pod.meta.owners.push_back({"batch/v1", "Job", "train", "uid-train", true});
  return pod;
}

TEST_F(GroupSettleTest, APodThatAPodGrouperAnnotatesLateIsNotBoundAlone) {
  Put(MakeNode("n", 2));
  Put(MakeGroup("ns", "elsewhere", "q", 1));  // a pod-grouper is there
  // Three pods of a job, of which two would fit.
  for (int i = 0; i < 3; ++i) Put(OwnedByJob(absl::StrCat("t", i), 10));
  EXPECT_THAT(BoundIn(StepAt(At(10) + absl::Milliseconds(100))), IsEmpty());
  EXPECT_THAT(BoundIn(StepAt(At(10) + absl::Milliseconds(900))), IsEmpty());
  // The controller makes the group, then annotates one pod after the other.
  Put(MakeGroup("ns", "g", "q", 3));
  for (int i = 0; i < 3; ++i) {
    model::Pod pod = OwnedByJob(absl::StrCat("t", i), 10);
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "g");
    Put(pod);
    EXPECT_THAT(BoundIn(StepAt(At(10) + absl::Milliseconds(1000 + 200 * i))), IsEmpty()) << i;
  }
  for (int at = 12; at < 60; ++at) EXPECT_THAT(BoundIn(Step(at)), IsEmpty()) << "no gang of 2 of 3";
  Put(MakeNode("n2", 1));
  EXPECT_THAT(BoundIn(Step(61)), SizeIs(3));
}

// The watches of pods and of PodGroups are two connections: either is first. The pod's workload of
// its own ends then, and the group gets its id.
TEST_F(GroupSettleTest, APodWhoseAnnotationIsSeenBeforeItsGroupIsNotBoundAlone) {
  Put(MakeNode("n", 1));
  Put(MakeGroup("ns", "elsewhere", "q", 1));
  for (const char* name : {"t0", "t1"}) Put(OwnedByJob(name, 10));
  EXPECT_THAT(BoundIn(StepAt(At(10) + absl::Milliseconds(100))), IsEmpty());
  for (const char* name : {"t0", "t1"}) {
    model::Pod pod = OwnedByJob(name, 10);
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "g");
    Put(pod);
  }
  Put(MakeGroup("ns", "g", "q", 2));
  for (int at = 11; at < 60; ++at) EXPECT_THAT(BoundIn(Step(at)), IsEmpty()) << at;
  Put(MakeNode("n2", 1));
  EXPECT_THAT(BoundIn(Step(61)), SizeIs(2));
}

TEST_F(GroupSettleTest, APodOfAKnativeRevisionIsNotBoundAlone) {
  Put(MakeNode("n", 4));
  Put(MakeGroup("ns", "elsewhere", "q", 1));
  const auto owned = [](const std::string& name) {
    model::Pod pod = OwnedByJob(name, 10);
    pod.meta.owners = {{"apps/v1", "ReplicaSet", "hello-00001", "uid-rs", true}};
    return pod;
  };
  Put(owned("web"));
  model::Pod serving = owned("serving");
  serving.meta.labels.Set("serving.knative.dev/revision", "hello-00001");
  Put(serving);
  EXPECT_THAT(BoundIn(Step(10)), ElementsAre("web")) << "the group of a ReplicaSet needs one pod";
  EXPECT_THAT(BoundIn(Step(12)), ElementsAre("serving"));
}

TEST_F(GroupSettleTest, APodThatIsListedBeforeThePodGroupsIsHeldToo) {
  Put(MakeNode("n", 2));
  Put(OwnedByJob("t", 10));
  Put(MakeGroup("ns", "elsewhere", "q", 1));
  EXPECT_THAT(BoundIn(Step(10)), IsEmpty());
  EXPECT_THAT(BoundIn(Step(12)), ElementsAre("t"));
}

TEST_F(GroupSettleTest, APodThatIsGivenNoGroupIsBoundWhenItHasSettled) {
  Put(MakeNode("n", 2));
  Put(MakeGroup("ns", "elsewhere", "q", 1));
  Put(OwnedByJob("t", 10));
  StepResult result = StepAt(At(10) + absl::Milliseconds(500));
  EXPECT_THAT(BoundIn(result), IsEmpty());
  EXPECT_EQ(result.wake_at, At(12));
  EXPECT_THAT(BoundIn(Step(12)), ElementsAre("t"));
  Put(OwnedByJob("old", 1));
  EXPECT_THAT(BoundIn(Step(13)), ElementsAre("old")) << "it is older than the time to settle";
}

TEST_F(GroupSettleTest, WithoutAPodGrouperNothingIsHeld) {
  Put(MakeNode("n", 2));
  Put(OwnedByJob("t", 10));
  EXPECT_THAT(BoundIn(Step(10)), ElementsAre("t"));
}

}  // namespace
}  // namespace fairlead::core::testing
