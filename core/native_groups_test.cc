// Groups of scheduling.k8s.io in the loop: their pods are decided on as those of KAI's groups are,
// and their condition is written.
#include "core/native_groups.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "core/decision_loop_testing.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

model::NativePodGroup MakeNative(absl::string_view name, int32_t min_count) {
  model::NativePodGroup group;
  group.meta.ns = "ns";
  group.meta.name = std::string(name);
  group.meta.uid = absl::StrCat("native-", name);
  group.meta.generation = 1;
  group.native = true;
  group.queue = "q";
  group.min_member = min_count;
  return group;
}

model::Pod Member(absl::string_view name, absl::string_view group) {
  model::Pod pod = PodBuilder("ns", name).Queue("q").Gpus(1);
  pod.scheduling_group = std::string(group);
  return pod;
}

class NativeGroupsTest : public NoHookTest {
 protected:
  using Conditions = std::vector<model::SetPodGroupScheduled>;

  static Conditions ConditionsIn(const StepResult& result) {
    return Of<model::SetPodGroupScheduled>(result);
  }
  // The API server's object after the write.
  static model::NativePodGroup With(model::NativePodGroup group,
                                    const model::SetPodGroupScheduled& write) {
    group.scheduled_status = write.scheduled ? "True" : "False";
    group.scheduled_reason = write.scheduled ? "Scheduled" : "Unschedulable";
    group.scheduled_message = write.message;
    return group;
  }
  void ShowBound(const StepResult& result) {
    for (const model::BindPod& bind : Of<model::BindPod>(result)) {
      model::Pod pod = Member(bind.name, "g");
      pod.node_name = bind.node;
      Put(pod);
    }
  }
};

TEST_F(NativeGroupsTest, AGangStartsTogether) {
  Put(MakeNode("n", 4));
  const model::NativePodGroup group = MakeNative("g", 2);
  Put(group);
  Put(Member("p0", "g"));
  StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  const auto verdicts = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].native);
  EXPECT_THAT(verdicts[0].schedulability_json, HasSubstr("GangIncomplete"));
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].verdict_json, "") << "its group bears it";
  Conditions conditions = ConditionsIn(result);
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_FALSE(conditions[0].scheduled);
  EXPECT_TRUE(conditions[0].turns);
  EXPECT_EQ(conditions[0].uid, "native-g");
  EXPECT_EQ(conditions[0].observed_generation, 1);
  EXPECT_THAT(conditions[0].message, StartsWith("GangIncomplete: "));
  AnswerAll(result);
  model::NativePodGroup shown = With(group, conditions[0]);
  Put(shown);

  Put(Member("p1", "g"));
  result = Step(2);
  EXPECT_THAT(BoundIn(result), ElementsAre("p0", "p1"));
  EXPECT_THAT(ConditionsIn(result), IsEmpty()) << "the watch has not shown them";
  AnswerAll(result);
  ShowBound(result);
  result = Step(3);
  conditions = ConditionsIn(result);
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_TRUE(conditions[0].scheduled);
  EXPECT_TRUE(conditions[0].turns);
  AnswerAll(result);
  EXPECT_THAT(ConditionsIn(Step(4)), IsEmpty());
  shown = With(shown, conditions[0]);
  Put(shown);

  // As upstream: what was scheduled once stays so.
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p1", ""});
  Put(Member("p2", "g"));
  Put(MakeNode("n", 1));
  for (int at = 5; at < 8; ++at) {
    result = Step(at);
    EXPECT_THAT(ConditionsIn(result), IsEmpty());
    AnswerAll(result);
  }
}

TEST_F(NativeGroupsTest, TheConditionFollowsTheCodeAndNotTheNumbers) {
  const model::NativePodGroup group = MakeNative("g", 1);
  Put(group);
  Put(Member("p0", "g"));
  StepResult result = Step(1);
  ASSERT_EQ(ConditionsIn(result).size(), 1u);
  const model::SetPodGroupScheduled first = ConditionsIn(result)[0];
  AnswerAll(result);
  // Accepted, and not shown yet: it is not written again.
  Put(Member("p1", "g"));
  result = Step(2);
  EXPECT_THAT(ConditionsIn(result), IsEmpty());
  AnswerAll(result);
  Put(With(group, first));
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(MakeNode("n", 4));
  result = Step(3);
  ASSERT_EQ(ConditionsIn(result).size(), 1u);
  EXPECT_THAT(ConditionsIn(result)[0].message, StartsWith("QueueLimitReached: "));
  EXPECT_FALSE(ConditionsIn(result)[0].turns) << "it is False still";
}

TEST_F(NativeGroupsTest, ASuccessorDoesNotWriteWhatIsThere) {
  model::NativePodGroup group = MakeNative("g", 1);
  group.scheduled_status = "False";
  group.scheduled_reason = "Unschedulable";
  group.scheduled_message = "InsufficientCapacity: as a former process wrote it";
  Put(group);
  Put(Member("p0", "g"));
  EXPECT_THAT(ConditionsIn(Step(1)), IsEmpty());
}

TEST_F(NativeGroupsTest, AFailedWriteIsRepeatedAfterAPause) {
  for (const absl::Status& answer :
       {absl::PermissionDeniedError("403"), absl::UnavailableError("no answer"),
        absl::AbortedError("429"), absl::FailedPreconditionError("409")}) {
    SCOPED_TRACE(answer.ToString());
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    const model::NativePodGroup group = MakeNative("g", 1);
    Put(group);
    Put(Member("p0", "g"));
    StepResult result = Step(10);
    ASSERT_EQ(ConditionsIn(result).size(), 1u);
    AnswerThe<model::SetPodGroupScheduled>(result, answer);
    result = Step(10);
    EXPECT_THAT(ConditionsIn(result), IsEmpty());
    ASSERT_GT(result.wake_at, At(10));
    ASSERT_LE(result.wake_at, At(15));
    result = StepsTo<model::SetPodGroupScheduled>(result, At(20));
    ASSERT_EQ(ConditionsIn(result).size(), 1u);
    AnswerAll(result);
    Put(With(group, ConditionsIn(result)[0]));
    for (int at = 21; at < 40; ++at) EXPECT_THAT(ConditionsIn(Step(at)), IsEmpty());
  }
}

TEST_F(NativeGroupsTest, WhatTheServerCallsInvalidIsNotRepeated) {
  Put(MakeNative("g", 1));
  Put(Member("p0", "g"));
  StepResult result = Step(1);
  ASSERT_EQ(ConditionsIn(result).size(), 1u);
  AnswerThe<model::SetPodGroupScheduled>(result, absl::InvalidArgumentError("422"));
  for (int at = 2; at < 60; ++at) EXPECT_THAT(ConditionsIn(Step(at)), IsEmpty());
}

TEST_F(NativeGroupsTest, KaisGroupOfTheNameGoesFirst) {
  Put(MakeNode("n", 4));
  for (const bool native_first : {true, false}) {
    SCOPED_TRACE(native_first);
    if (native_first) Put(MakeNative("g", 1));
    Put(MakeGroup("ns", "g", "q", 3));
    if (!native_first) Put(MakeNative("g", 1));
    Put(Member("p0", "g"));
    Put(PodBuilder("ns", "p1").Queue("q").Gpus(1).Group("g").Build());
    StepResult result = Step(1);
    EXPECT_THAT(BoundIn(result), IsEmpty()) << "KAI's wants three";
    EXPECT_THAT(ConditionsIn(result), IsEmpty());
    AnswerAll(result);
    // A list of the other API's objects says nothing about this one.
    loop_->Apply(model::Delete{model::Kind::kPodGroup, "ns", "g", ""});
    result = Step(2);
    EXPECT_THAT(BoundIn(result), ElementsAre("p0", "p1"));
    for (const char* pod : {"p0", "p1"}) {
      loop_->Apply(model::Delete{model::Kind::kPod, "ns", pod, ""});
    }
    loop_->Apply(model::Delete{model::Kind::kNativePodGroup, "ns", "g", "native-g"});
    Step(3);
  }
}

TEST_F(NativeGroupsTest, ADeletedKaiGroupLeavesTheNativeOneAlone) {
  Put(MakeNode("n", 4));
  Put(MakeNative("g", 1));
  loop_->Apply(model::Delete{model::Kind::kPodGroup, "ns", "g", ""});
  Put(Member("p0", "g"));
  EXPECT_THAT(BoundIn(Step(1)), ElementsAre("p0"));
}

TEST_F(NativeGroupsTest, WithoutItsGroupAPodWaits) {
  Put(MakeNode("n", 4));
  Put(Member("p0", "g"));
  StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_THAT(Of<model::SetPodUnschedulable>(result)[0].verdict_json, HasSubstr("MissingObject"));
  AnswerAll(result);
  Put(MakeNative("g", 1));
  result = Step(2);
  EXPECT_THAT(BoundIn(result), ElementsAre("p0"));
  // Another one's deletion is none of its.
  loop_->Apply(model::Delete{model::Kind::kNativePodGroup, "ns", "g", "another"});
  Put(Member("p1", "g"));
  EXPECT_THAT(BoundIn(Step(3)), ElementsAre("p1"));
  loop_->Apply(model::Delete{model::Kind::kNativePodGroup, "ns", "g", ""});
  Put(Member("p2", "g"));
  EXPECT_THAT(BoundIn(Step(4)), IsEmpty());
}

TEST_F(NativeGroupsTest, WhatCannotBeObeyedIsTold) {
  Put(MakeNode("n", 4));
  model::NativePodGroup group = MakeNative("g", 1);
  group.invalid = "spec.resourceClaims: claims of a pod group are not supported";
  Put(group);
  Put(Member("p0", "g"));
  const StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  ASSERT_EQ(Of<model::SetPodGroupSchedulability>(result).size(), 1u);
  EXPECT_THAT(Of<model::SetPodGroupSchedulability>(result)[0].schedulability_json,
              HasSubstr("spec.resourceClaims"));
}

TEST_F(NativeGroupsTest, ATopologyKeepsAGangInOneDomain) {
  // Each rack has one node with one GPU and one with two.
  for (const char* rack : {"a", "b"}) {
    for (const int gpus : {1, 2}) {
      model::Node node = MakeNode(absl::StrCat(rack, gpus), gpus);
      node.meta.labels.Set("rack", rack);
      Put(node);
    }
  }
  Put(MakeNode("without", 8));
  const auto with_rack = [](const char* name) {
    model::NativePodGroup group = MakeNative(name, 3);
    group.topology.topology = "label/rack";
    group.topology.required_level = "rack";
    return group;
  };
  for (const char* name : {"g", "h"}) {
    Put(with_rack(name));
    for (int i = 0; i < 3; ++i) Put(Member(absl::StrCat(name, i), name));
  }
  StepResult result = Step(1);
  std::map<std::string, std::string> racks;  // by group
  for (const model::BindPod& bind : Of<model::BindPod>(result)) {
    std::string& rack = racks[bind.name.substr(0, 1)];
    if (rack.empty()) rack = bind.node.substr(0, 1);
    EXPECT_EQ(bind.node.substr(0, 1), rack) << bind.name;
  }
  EXPECT_EQ(racks.size(), 2u);
  EXPECT_NE(racks["g"], racks["h"]);
  AnswerAll(result);
  // The topology is there as long as some group needs it.
  loop_->Apply(model::Delete{model::Kind::kNativePodGroup, "ns", "g", ""});
  Put(with_rack("i"));
  for (int i = 0; i < 3; ++i) Put(Member(absl::StrCat("i", i), "i"));
  result = Step(2);
  ASSERT_FALSE(Of<model::SetPodGroupSchedulability>(result).empty());
  EXPECT_THAT(Of<model::SetPodGroupSchedulability>(result)[0].schedulability_json,
              HasSubstr("InsufficientCapacity"));
}

}  // namespace
}  // namespace fairlead::core::testing
