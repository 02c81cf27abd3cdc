// nominatedNodeName of pods whose binding is slow: when it is written, repeated and cleared. The
// pods wait for a volume.
#include <string>
#include <vector>

#include "core/volumes_testing.h"

namespace fairlead::core::testing {
namespace {

using model::NominateNode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The pods that a step nominates, with their nodes.
std::vector<std::string> NominatedIn(const StepResult& step) {
  std::vector<std::string> names;
  for (const auto& write : Of<NominateNode>(step)) {
    names.push_back(absl::StrCat(write.name, " ", write.node));
  }
  return names;
}

class NominationsTest : public VolumesTest {
 protected:
  // The pod of AskForCloud is held, and was nominated in the step that is returned.
  StepResult BeginSlowly() {
    Begin();
    StepResult step = AskForCloud();
    AnswerAll(step);
    step = StepAt(step.wake_at);
    EXPECT_EQ(step.wake_at > At(1), true);
    EXPECT_THAT(NominatedIn(step), ElementsAre("p n1"));
    return step;
  }
  // The watch shows the name.
  void ShowNominated(const std::string& name = "p", const std::string& claim = "c") {
    model::Pod pod = Pod(name, {claim});
    pod.nominated_node_name = "n1";
    Put(pod);
  }
  // The provisioner gives up: the binding fails.
  void GiveUp(int64_t version = 9) { Put(Version(version, MakeVolumeClaim("c", "cloud"))); }
};

TEST_F(NominationsTest, WrittenOnceTheBindingIsSlow) {
  Begin();
  StepResult step = AskForCloud();
  EXPECT_THAT(NominatedIn(step), IsEmpty());
  EXPECT_EQ(step.wake_at, At(1) + BindingPipeline::kSlow);
  AnswerAll(step);
  EXPECT_THAT(NominatedIn(StepAt(At(1) + BindingPipeline::kSlow - absl::Milliseconds(1))),
              IsEmpty());
  step = StepAt(At(1) + BindingPipeline::kSlow);
  ASSERT_THAT(NominatedIn(step), ElementsAre("p n1"));
  EXPECT_EQ(Of<NominateNode>(step)[0].uid, Pod("p", {}).meta.uid);
  AnswerAll(step);
  EXPECT_THAT(NominatedIn(Step(30)), IsEmpty()) << "once";
}

TEST_F(NominationsTest, NotWrittenForPodsThatAreBoundInTime) {
  Begin();
  StepResult step = AskForCloud();
  AnswerAll(step);
  Put(Version(9, BoundTo(MakeVolumeClaim("c", "cloud"), "v")));
  Put(MakeVolume("v", "cloud"));
  step = StepAt(At(1) + absl::Milliseconds(100));
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_THAT(NominatedIn(Step(30)), IsEmpty());
}

TEST_F(NominationsTest, RepeatedWhileThePodIsHeld) {
  for (const absl::Status& answer :
       {absl::UnavailableError("lost"), absl::PermissionDeniedError("403"),
        absl::FailedPreconditionError("409")}) {
    SCOPED_TRACE(answer.ToString());
    BeginAgain();
    StepResult step = AskForCloud();
    AnswerAll(step);
    step = StepAt(At(1) + BindingPipeline::kSlow);
    ASSERT_THAT(NominatedIn(step), SizeIs(1));
    AnswerThe<NominateNode>(step, answer);
    step = StepAt(At(2));
    EXPECT_THAT(NominatedIn(step), IsEmpty()) << "after a pause";
    step = StepAt(step.wake_at);
    ASSERT_THAT(NominatedIn(step), ElementsAre("p n1"));
    AnswerThe<NominateNode>(step, answer);
    // The pod waits again: it has its verdict, and no node.
    GiveUp();
    step = Step(60);
    EXPECT_THAT(NominatedIn(step), IsEmpty());
  }
}

TEST_F(NominationsTest, ClearedWithTheVerdictAfterTheBindingFailed) {
  for (const bool shown : {true, false}) {
    SCOPED_TRACE(shown ? "the watch has shown the name" : "the watch is late");
    BeginAgain();
    StepResult step = AskForCloud();
    AnswerAll(step);
    step = StepAt(At(1) + BindingPipeline::kSlow);
    AnswerAll(step);
    if (shown) ShowNominated();
    GiveUp();
    Cordon("n1");
    step = Step(3);
    auto verdicts = Of<model::SetPodUnschedulable>(step);
    ASSERT_THAT(verdicts, SizeIs(1));
    EXPECT_EQ(verdicts[0].nominated_node, "");
    // Refused: it is still there, and the verdict is still due.
    for (size_t i = 0; i < step.actions.size(); ++i) {
      Answer(step, i, absl::PermissionDeniedError("403"));
    }
    step = StepsTo<model::SetPodUnschedulable>(Step(4), At(60));
    verdicts = Of<model::SetPodUnschedulable>(step);
    ASSERT_THAT(verdicts, SizeIs(1));
    EXPECT_EQ(verdicts[0].nominated_node, "");
  }
}

TEST_F(NominationsTest, ClearedOnEachPodOfAGang) {
  Begin();
  Put(MakeGroup("ns", "g", "team", 2));
  Put(Version(5, MakeVolumeClaim("c", "cloud")));
  for (const char* name : {"a", "b"}) {
    Put(WithClaims(PodBuilder("ns", name).Queue("team").Group("g").Build(), {"c"}));
  }
  StepResult step = Step(1);
  AnswerAll(step);
  step = StepAt(At(1) + BindingPipeline::kSlow);
  ASSERT_THAT(NominatedIn(step), ElementsAre("a n1", "b n1"));
  AnswerAll(step);
  GiveUp();
  Cordon("n1");
  step = Step(3);
  std::vector<std::string> cleared;
  for (const auto& write : Of<model::SetPodUnschedulable>(step)) {
    EXPECT_EQ(write.nominated_node, "");
    cleared.push_back(write.name);
  }
  EXPECT_THAT(cleared, ElementsAre("a", "b")) << "at once, whatever the pace";
  // One is refused: it is written again, the other is not.
  bool first = true;
  for (size_t i = 0; i < step.actions.size(); ++i) {
    const bool is = std::holds_alternative<model::SetPodUnschedulable>(step.actions[i].what);
    Answer(
        step, i,
        is && std::exchange(first, false) ? absl::PermissionDeniedError("403") : absl::OkStatus());
  }
  step = StepsTo<model::SetPodUnschedulable>(Step(4), At(60));
  const auto again = Of<model::SetPodUnschedulable>(step);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].name, "a");
  EXPECT_EQ(again[0].nominated_node, "");
}

TEST_F(NominationsTest, ANewProcessPlacesThePodThereAgain) {
  Begin(2);
  model::Pod pod = Pod("p", {"c"});
  pod.nominated_node_name = "n2";
  Put(Version(5, MakeVolumeClaim("c", "cloud")));
  Put(pod);
  const StepResult step = Step(1);
  ASSERT_THAT(Of<SelectVolumeNode>(step), SizeIs(1));
  EXPECT_EQ(Of<SelectVolumeNode>(step)[0].node, "n2");
}

TEST_F(NominationsTest, WhatTheObjectSaysAlreadyIsNotWritten) {
  Begin();
  model::Pod pod = Pod("p", {"c"});
  pod.nominated_node_name = "n1";
  Put(Version(5, MakeVolumeClaim("c", "cloud")));
  Put(pod);
  AnswerAll(Step(1));
  EXPECT_THAT(NominatedIn(StepAt(At(1) + BindingPipeline::kSlow)), IsEmpty());
  // If the binding fails, it is cleared all the same.
  GiveUp();
  Cordon("n1");
  const auto verdicts = Of<model::SetPodUnschedulable>(Step(3));
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_EQ(verdicts[0].nominated_node, "");
}

TEST_F(NominationsTest, ForgottenWithThePod) {
  BeginSlowly();
  Delete(model::Kind::kPod, "ns", "p");
  StepResult step = Step(5);
  EXPECT_THAT(NominatedIn(step), IsEmpty());
  EXPECT_EQ(loop_->queue_sizes().retries, 0u);
  // Another pod of the name owes nothing.
  model::Pod again = Pod("p", {});
  again.meta.uid = "another";
  again.node_name = "n1";
  Put(again);
  EXPECT_THAT(Of<model::SetPodUnschedulable>(Step(6)), IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
