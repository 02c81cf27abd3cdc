// Pods with PersistentVolumeClaims in the decision loop: every answer to a write about volumes, and
// what is taken away after it was written.
#include <functional>
#include <string>
#include <vector>

#include "core/volumes_testing.h"
#include "scheduler/model/testing/device_builders.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- answers

TEST_F(VolumesTest, ARefusalSendsThePodBackAndItIsDecidedAgain) {
  for (const absl::Status& answer :
       {absl::FailedPreconditionError("409 Conflict"), absl::NotFoundError("404"),
        absl::InvalidArgumentError("422"), absl::PermissionDeniedError("403")}) {
    for (const bool local : {true, false}) {
      SCOPED_TRACE(absl::StrCat(answer.ToString(), local ? ", a volume" : ", a node"));
      BeginAgain();
      StepResult step = local ? AskForLocal() : AskForCloud();
      if (local) {
        AnswerThe<BindVolume>(step, answer);
      } else {
        AnswerThe<SelectVolumeNode>(step, answer);
      }
      step = Step(2);
      EXPECT_EQ(WritesIn(step), 0u);
      EXPECT_THAT(BoundIn(step), IsEmpty());
      EXPECT_THAT(FailuresIn(step), ElementsAre(std::string(answer.message())));
      // Another client's change, which the watch shows late.
      if (local) {
        Put(Version(12, OnHost("v", "n1")));
      } else {
        Put(Version(12, MakeVolumeClaim("c", "cloud")));
      }
      step = Step(20);
      ASSERT_EQ(WritesIn(step), 1u);
      EXPECT_EQ(local ? Of<BindVolume>(step)[0].resource_version
                      : Of<SelectVolumeNode>(step)[0].resource_version,
                "12");
    }
  }
}

TEST_F(VolumesTest, AWriteThatWasNotSentIsSentAtOnceAndOneThatWasPutOffAfterAPause) {
  Begin();
  StepResult step = AskForCloud();
  AnswerThe<SelectVolumeNode>(step, absl::CancelledError("not sent in time"));
  step = Step(2);
  EXPECT_EQ(WritesIn(step), 1u);
  for (int i = 1; i < 5; ++i) {
    AnswerThe<SelectVolumeNode>(step, absl::AbortedError("429"));
    step = StepAt(At(2 + 100 * i));
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    EXPECT_EQ(WritesIn(step), 0u) << "the pause begins with the answer";
    step = StepAt(step.wake_at);
    ASSERT_EQ(WritesIn(step), 1u) << i;
  }
  AnswerThe<SelectVolumeNode>(step, absl::AbortedError("429"));
  EXPECT_THAT(FailuresIn(Step(550)), ElementsAre("429")) << "five times in a row are a refusal";
}

TEST_F(VolumesTest, WhatMayNoLongerBeWrittenIsNotRepeated) {
  struct Case {
    bool local;
    const char* reason;
    std::function<void()> change;
  };
  const PersistentVolumeClaim cloud = Version(20, MakeVolumeClaim("c", "cloud"));
  PersistentVolumeClaim going = cloud;
  going.meta.deletion = At(50);
  PersistentVolume volume_going = Version(20, OnHost("v", "n1"));
  volume_going.meta.deletion = At(50);
  const std::vector<Case> cases = {
      {false, "PersistentVolumeClaim ns/c is being deleted", [&] { Put(going); }},
      {false, "PersistentVolumeClaim ns/c is to be provisioned for node n2",
       [&] { Put(Selected(cloud, "n2")); }},
      {false, "nothing provisions a volume for PersistentVolumeClaim ns/c",
       [&] { Delete(model::Kind::kStorageClass, "", "cloud"); }},
      {true, "PersistentVolume v is being deleted", [&] { Put(volume_going); }},
      {true, "PersistentVolume v is for PersistentVolumeClaim ns/other",
       [&] { Put(Version(20, OfClaim(OnHost("v", "n1"), MakeVolumeClaim("other", "local")))); }},
  };
  for (const absl::Status& answer : {absl::AbortedError("429"), absl::UnavailableError("lost")}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(absl::StrCat(c.reason, ", ", answer.ToString()));
      BeginAgain();
      StepResult step = c.local ? AskForLocal() : AskForCloud();
      for (size_t i = 0; i < step.actions.size(); ++i) Answer(step, i, answer);
      EXPECT_EQ(WritesIn(Step(1)), 0u);
      c.change();
      step = Step(100);
      EXPECT_EQ(WritesIn(step), 0u);
      EXPECT_THAT(FailuresIn(step), ElementsAre(c.reason));
    }
  }
}

TEST_F(VolumesTest, AWriteOfUnknownOutcomeThatTheWatchShowsIsNotRepeated) {
  for (const bool local : {true, false}) {
    SCOPED_TRACE(local ? "a volume" : "a node");
    BeginAgain();
    StepResult step = local ? AskForLocal() : AskForCloud();
    for (size_t i = 0; i < step.actions.size(); ++i) Answer(step, i, absl::UnavailableError("x"));
    EXPECT_EQ(WritesIn(Step(1)), 0u);
    const PersistentVolumeClaim claim = MakeVolumeClaim("c", local ? "local" : "cloud");
    if (local) {
      Put(Version(9, OfClaim(OnHost("v", "n1"), claim)));
    } else {
      Put(Version(9, Selected(claim, "n1")));
      Put(MakeVolume("v", "cloud"));
    }
    step = Step(100);
    EXPECT_EQ(WritesIn(step), 0u);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    Put(Version(10, BoundTo(claim, "v")));
    EXPECT_THAT(BoundIn(Step(101)), ElementsAre("p"));
  }
}

TEST_F(VolumesTest, AWriteOfUnknownOutcomeIsRepeatedAndARefusalOfItProvesNothing) {
  Begin();
  StepResult step = AskForCloud();
  AnswerThe<SelectVolumeNode>(step, absl::DeadlineExceededError("no answer"));
  step = Step(1);
  EXPECT_EQ(WritesIn(step), 0u);
  step = StepsTo<SelectVolumeNode>(step, At(10));
  ASSERT_THAT(Of<SelectVolumeNode>(step), SizeIs(1));
  EXPECT_EQ(Of<SelectVolumeNode>(step)[0].resource_version, "5");
  // Another client's change: then the first attempt was not done, nor will it be.
  Put(Version(8, MakeVolumeClaim("c", "cloud")));
  EXPECT_EQ(WritesIn(Step(15)), 0u) << "one write at a time";
  AnswerThe<SelectVolumeNode>(step, absl::FailedPreconditionError("409"));
  step = Step(20);
  EXPECT_THAT(FailuresIn(step), IsEmpty()) << "the first attempt may be its reason";
  step = Step(100);
  ASSERT_THAT(Of<SelectVolumeNode>(step), SizeIs(1));
  EXPECT_EQ(Of<SelectVolumeNode>(step)[0].resource_version, "8");
  AnswerThe<SelectVolumeNode>(step, absl::FailedPreconditionError("409"));
  EXPECT_THAT(FailuresIn(Step(101)), ElementsAre("409"));
}

// A webhook refuses for ever: the pod does not hold its place until the time-out.
TEST_F(VolumesTest, ARefusalThatIsNoConflictIsBelievedAfterAnUnknownOutcome) {
  Begin();
  StepResult step = AskForCloud();
  AnswerThe<SelectVolumeNode>(step, absl::DeadlineExceededError("no answer"));
  step = StepsTo<SelectVolumeNode>(Step(1), At(10));
  AnswerThe<SelectVolumeNode>(step, absl::PermissionDeniedError("403"));
  EXPECT_THAT(FailuresIn(Step(20)), ElementsAre("403"));
}

TEST_F(VolumesTest, TheAnswerToAWriteOfAFormerDecisionDecidesNothing) {
  for (const absl::Status& answer :
       {absl::FailedPreconditionError("409"), absl::UnavailableError("lost"), absl::OkStatus()}) {
    SCOPED_TRACE(answer.ToString());
    BeginAgain(2);
    const StepResult first = AskForCloud();
    Delete(model::Kind::kPod, "ns", "p", "uid-ns-p");
    Cordon("n1");
    Put(Pod("q", {"c"}));
    EXPECT_EQ(WritesIn(Step(2)), 0u) << "one write of a claim at a time";
    AnswerThe<SelectVolumeNode>(first, answer);
    const StepResult step = Step(3);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    ASSERT_THAT(Of<SelectVolumeNode>(step), SizeIs(1));
    EXPECT_EQ(Of<SelectVolumeNode>(step)[0].node, "n2");
  }
}

TEST_F(VolumesTest, NothingIsRepeatedForAPodThatAnotherHasReplaced) {
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "its claim has another pod" : "its claim has no other pod");
    BeginAgain(2);
    const StepResult first = AskForCloud();
    Cordon("n1");
    model::Pod another = Pod("p", {"c"});
    another.meta.uid = "uid-2";
    another.scheduler_name = "another";
    Put(another);
    if (shared) Put(Pod("q", {"c"}));
    EXPECT_EQ(WritesIn(Step(2)), 0u);
    AnswerThe<SelectVolumeNode>(first, absl::UnavailableError("lost"));
    EXPECT_EQ(WritesIn(Step(3)), shared ? 1u : 0u);
    const StepResult step = Step(100);
    EXPECT_EQ(WritesIn(step), 0u);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
  }
}

// ---- what is taken away after it was written

TEST_F(VolumesTest, AProvisionerThatGivesUpSendsThePodBack) {
  struct Case {
    const char* what;
    bool shown;        // by the watch, before it is taken away
    const char* node;  // of the annotation afterwards
  };
  for (const Case& c :
       {Case{"shown, then removed", true, ""}, Case{"the watch skips our write", false, ""},
        Case{"another node", true, "n2"}}) {
    SCOPED_TRACE(c.what);
    BeginAgain(2);
    StepResult step = AskForCloud();
    AnswerAll(step);
    // The watch is late: this is the version that was written to.
    Put(Version(5, MakeVolumeClaim("c", "cloud")));
    step = Step(2);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    EXPECT_EQ(WritesIn(step), 0u);
    if (c.shown) Put(Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n1")));
    EXPECT_THAT(FailuresIn(Step(3)), IsEmpty());
    Put(Version(7, Selected(MakeVolumeClaim("c", "cloud"), c.node)));
    step = Step(4);
    ASSERT_THAT(FailuresIn(step), SizeIs(1));
    EXPECT_THAT(FailuresIn(step)[0],
                HasSubstr("provisioning failed for PersistentVolumeClaim ns/c"));
    step = Step(20);
    EXPECT_EQ(WritesIn(step), c.node[0] == '\0' ? 1u : 0u);
    EXPECT_THAT(BoundIn(step), IsEmpty());
  }
}

TEST_F(VolumesTest, AVolumeThatIsReleasedSendsThePodBack) {
  for (const bool shown : {true, false}) {
    SCOPED_TRACE(shown ? "shown" : "skipped");
    BeginAgain();
    StepResult step = AskForLocal();
    AnswerAll(step);
    Put(Version(4, OnHost("v", "n1")));
    EXPECT_THAT(FailuresIn(Step(2)), IsEmpty());
    if (shown) Put(Version(5, OfClaim(OnHost("v", "n1"), MakeVolumeClaim("c", "local"))));
    EXPECT_THAT(FailuresIn(Step(3)), IsEmpty());
    Put(Version(6, OnHost("v", "n1")));
    step = Step(4);
    EXPECT_THAT(FailuresIn(step), ElementsAre("PersistentVolume v no longer names "
                                              "PersistentVolumeClaim ns/c in its claimRef"));
    EXPECT_EQ(WritesIn(Step(20)), 1u);
  }
}

TEST_F(VolumesTest, WhatIsGoneOrAnotherSendsThePodBack) {
  struct Case {
    const char* reason;
    std::function<void()> change;
  };
  const PersistentVolumeClaim claim = MakeVolumeClaim("c", "local");
  PersistentVolumeClaim other_claim = Version(20, claim);
  other_claim.meta.uid = "uid-2";
  PersistentVolumeClaim lost = Version(20, claim);
  lost.lost = true;
  lost.volume_name = "v";
  PersistentVolume other_volume = Version(20, OnHost("v", "n1"));
  other_volume.meta.uid = "uid-2";
  const std::vector<Case> cases = {
      {"PersistentVolumeClaim ns/c is gone",
       [&] { Delete(model::Kind::kPersistentVolumeClaim, "ns", "c"); }},
      {"PersistentVolumeClaim ns/c was deleted and created again", [&] { Put(other_claim); }},
      {"PersistentVolumeClaim ns/c has lost its volume v", [&] { Put(lost); }},
      {"PersistentVolume v is gone", [&] { Delete(model::Kind::kPersistentVolume, "", "v"); }},
      {"PersistentVolume v is gone", [&] { Put(other_volume); }},
      {"PersistentVolume v does not suit node n1", [&] { Put(Version(20, OnHost("v", "n7"))); }},
      {"node n1 is gone", [&] { Delete(model::Kind::kNode, "", "n1", "uid-n1"); }},
  };
  for (const bool answered : {false, true}) {
    for (const Case& c : cases) {
      SCOPED_TRACE(absl::StrCat(c.reason, answered ? ", after the answer" : ""));
      BeginAgain();
      const StepResult first = AskForLocal();
      if (answered) {
        AnswerAll(first);
        Put(Version(6, OfClaim(OnHost("v", "n1"), claim)));
        Step(2);
      }
      c.change();
      StepResult step = Step(3);
      EXPECT_THAT(FailuresIn(step), ElementsAre(c.reason));
      EXPECT_THAT(BoundIn(step), IsEmpty());
      if (!answered) AnswerAll(first);
      EXPECT_THAT(BoundIn(Step(4)), IsEmpty());
    }
  }
}

// The pod waits for its device; meanwhile the volume that a former process asked for comes.
TEST_F(VolumesTest, AClaimThatIsBoundBeforeItsTurnHasToSuitTheNode) {
  for (const char* host : {"n1", "n2"}) {
    SCOPED_TRACE(host);
    BeginAgain(2);
    Put(model::testing::MakeDeviceClass("nic.io"));
    for (const char* node : {"n1", "n2"}) Put(model::testing::MakeSlice(node, 1, "nic.io"));
    model::ResourceClaim device = model::testing::MakeClaim("device", 1, "nic.io");
    device.meta.uid = "uid-device";
    Put(device);
    const PersistentVolumeClaim claim = Selected(MakeVolumeClaim("c", "cloud"), "n1");
    Put(claim);
    model::Pod pod = Pod("p", {"c"});
    pod.spec.resource_claims = {"device"};
    Put(pod);
    const StepResult first = Step(1);
    ASSERT_THAT(Of<model::ReserveClaim>(first), SizeIs(1));
    Put(Where(MakeVolume("v", "cloud"), model::kHostnameLabel, {host}));
    Put(Version(9, BoundTo(claim, "v")));
    Step(2);
    AnswerAll(first);
    const StepResult step = Step(3);
    const bool suits = std::string(host) == "n1";
    EXPECT_THAT(BoundIn(step), SizeIs(suits ? 1 : 0));
    EXPECT_THAT(FailuresIn(step), SizeIs(suits ? 0 : 1));
  }
}

TEST_F(VolumesTest, AClaimThatGetsAVolumeOfAnotherZoneSendsThePodThere) {
  Begin(2);
  StepResult step = AskForCloud();
  ASSERT_EQ(Of<SelectVolumeNode>(step)[0].node, "n1");
  AnswerAll(step);
  const PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud");
  Put(Where(MakeVolume("v", "cloud"), model::kHostnameLabel, {"n2"}));
  Put(Version(9, BoundTo(Selected(claim, "n1"), "v")));
  step = Step(2);
  EXPECT_THAT(FailuresIn(step), ElementsAre("PersistentVolume v does not suit node n1"));
  EXPECT_THAT(BoundIn(step), IsEmpty());
  step = Step(20);
  ASSERT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_EQ(Of<model::BindPod>(step)[0].node, "n2");
  EXPECT_EQ(WritesIn(step), 0u);
}

}  // namespace
}  // namespace fairlead::core::testing
