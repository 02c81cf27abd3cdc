// Shares of GPUs in the decision loop: from a pod that requests one to its binding, and every
// possible failure.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using model::kGpuGroupLabel;
using model::kGpuIndexAnnotation;
using model::kVisibleDevicesAnnotation;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GpuSharesTest : public DecisionLoopTest {
 protected:
  GpuSharesTest() {
    options_.hook.enabled = false;
    Restart();
  }
  void Begin(int gpus = 1) {
    SyncAll();
    Put(MakeQueue("team", "", kUnlimited, kUnlimited));
    gpus_ = gpus;
    Put(MakeNode("n1", gpus));
  }
  // A new process, which gets the cluster's objects.
  void Again() {
    Restart();
    Begin(gpus_);
  }
  static PodBuilder Half(const std::string& name) {
    PodBuilder pod("ns", name);
    pod.Queue("team").GpuFraction(500);
    return pod;
  }
  // The API server's pod after its binding.
  static PodBuilder Bound(PodBuilder pod, const model::BindPod& bind) {
    for (const auto& [key, value] : bind.labels) pod.Label(key, value);
    for (const auto& [key, value] : bind.annotations) pod.Annotation(key, value);
    return pod.On(bind.node);
  }
  static PodBuilder Reservation(const model::CreateGpuReservation& asked,
                                const std::string& device = "") {
    PodBuilder pod(asked.ns, asked.name);
    pod.Scheduler("default-scheduler").Gpus(1).Label(kGpuGroupLabel, asked.group).On(asked.node);
    if (!device.empty()) pod.Annotation(kGpuIndexAnnotation, device);
    return pod;
  }
  void Delete(const model::Pod& pod) {
    loop_->Apply(model::Delete{model::Kind::kPod, pod.meta.ns, pod.meta.name, pod.meta.uid});
  }
  // From the pod to its reservation, requested and confirmed.
  model::CreateGpuReservation Reserve(const std::string& name, int64_t at) {
    Put(Half(name));
    const StepResult step = Step(at);
    const auto asked = Of<model::CreateGpuReservation>(step);
    EXPECT_THAT(asked, SizeIs(1));
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
    AnswerAll(step);
    return asked.empty() ? model::CreateGpuReservation{} : asked[0];
  }
  // At second 2 the pod is bound to half of device GPU-1.
  std::pair<model::CreateGpuReservation, model::Pod> RunOnAShare(const std::string& name) {
    const model::CreateGpuReservation asked = Reserve(name, 1);
    Put(Reservation(asked, "GPU-1"));
    const StepResult bound = Step(2);
    const auto binds = Of<model::BindPod>(bound);
    EXPECT_THAT(binds, SizeIs(1));
    if (binds.size() != 1) return {};
    AnswerAll(bound);
    const model::Pod pod = Bound(Half(name), binds[0]);
    Put(pod);
    return {asked, pod};
  }
  int gpus_ = 1;
};

TEST_F(GpuSharesTest, ARefusedReservationSendsThePodBackWithTheReason) {
  options_.emit_events = true;
  Restart();
  Begin();
  Put(Half("a"));
  const StepResult first = Step(1);
  AnswerThe<model::CreateGpuReservation>(first, absl::PermissionDeniedError("exceeded quota"));
  const StepResult second = Step(2);
  EXPECT_THAT(Of<model::CreateGpuReservation>(second), IsEmpty()) << "it waits";
  const auto events = Of<model::EmitEvent>(second);
  const auto failed = std::find_if(events.begin(), events.end(), [](const model::EmitEvent& e) {
    return e.reason == "FailedBinding";
  });
  ASSERT_NE(failed, events.end());
  EXPECT_EQ(failed->name, "a");
  EXPECT_TRUE(absl::StrContains(failed->note, "exceeded quota")) << failed->note;
  // It is tried again after the pause, which the message tells.
  EXPECT_LE(second.wake_at, At(3));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(3)), SizeIs(1));
}

TEST_F(GpuSharesTest, WithoutADeviceInTimeTheRoomIsGivenBack) {
  Begin();
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked));
  const StepResult waits = Step(2);
  EXPECT_EQ(waits.wake_at, At(41));
  const StepResult over = Step(41);
  EXPECT_THAT(Of<model::DeletePod>(over), SizeIs(1));
  Delete(Reservation(asked));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(43)), SizeIs(1)) << "another attempt";
}

TEST_F(GpuSharesTest, APodThatWaitsForItsDeviceIsNotUnschedulableAndItsRoomIsTaken) {
  Begin();
  Reserve("a", 1);
  Put(PodBuilder("ns", "whole").Queue("team").Gpus(1));
  const StepResult step = Step(2);
  EXPECT_THAT(Of<model::BindPod>(step), IsEmpty()) << "the GPU is given away";
  const auto verdicts = Of<model::SetPodUnschedulable>(step);
  ASSERT_THAT(verdicts, SizeIs(1));
  EXPECT_EQ(verdicts[0].name, "whole");
}

TEST_F(GpuSharesTest, TheBindingFollowsTheDeviceAndTheNextOneJoins) {
  Begin();
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked, "GPU-1"));
  const StepResult bound = Step(2);
  const auto binds = Of<model::BindPod>(bound);
  ASSERT_THAT(binds, SizeIs(1));
  EXPECT_EQ(binds[0].labels.Get(kGpuGroupLabel), asked.group);
  EXPECT_EQ(binds[0].annotations.Get(kVisibleDevicesAnnotation), "GPU-1");
  EXPECT_EQ(binds[0].annotations.Get("fairlead.dev/gpu-portion"), "0.50");
  EXPECT_TRUE(binds[0].annotations.Has(model::kLastStartAnnotation));
  AnswerAll(bound);
  Put(Bound(Half("a"), binds[0]));
  Put(Half("b"));
  const auto second = Of<model::BindPod>(Step(3));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].labels.Get(kGpuGroupLabel), asked.group);
  EXPECT_EQ(second[0].annotations.Get(kVisibleDevicesAnnotation), "GPU-1");
  Put(Half("c"));
  EXPECT_THAT(Of<model::BindPod>(Step(4)), IsEmpty()) << "a GPU has two halves";
}

// The reservation pod of a shared GPU was lost, and came back with another device.
TEST_F(GpuSharesTest, AGpuThatCameBackAsAnotherDeviceIsNotChosenWhileAnotherWouldDo) {
  Begin(2);
  const auto [asked, a] = RunOnAShare("a");
  ASSERT_EQ(a.meta.name, "a");
  Put(Reservation(asked, "GPU-7"));
  Step(3);
  Put(Half("b"));
  const auto other = Of<model::CreateGpuReservation>(Step(4));
  ASSERT_THAT(other, SizeIs(1)) << "the free GPU, not the half of the first one";
  EXPECT_NE(other[0].group, asked.group);
  // When its pod is gone it is an ordinary GPU, which the next two take.
  Delete(a);
  Put(Half("c"));
  Put(Half("d"));
  Step(5);
  EXPECT_EQ(loop_->CheckConsistency(), "");
}

TEST_F(GpuSharesTest, ThereIsNoRoomOnAGpuThatCameBackAsAnotherDevice) {
  Begin(1);
  const auto [asked, a] = RunOnAShare("a");
  Put(Reservation(asked, "GPU-7"));
  Put(Half("b"));
  const StepResult none = Step(3);
  EXPECT_THAT(Of<model::BindPod>(none), IsEmpty());
  EXPECT_THAT(Of<model::SetPodUnschedulable>(none), SizeIs(1)) << "it waits, and says so";
  // The device is again what the sharing pod has.
  Put(Reservation(asked, "GPU-1"));
  EXPECT_THAT(Of<model::BindPod>(Step(4)), SizeIs(1));
}

TEST_F(GpuSharesTest, ABindingThatIsRefusedFreesTheGpuAfterTheGrace) {
  Begin();
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked, "GPU-1"));
  const StepResult bound = Step(2);
  AnswerThe<model::BindPod>(bound, absl::FailedPreconditionError("it is gone"));
  Step(3);
  Delete(Half("a"));
  const StepResult idle = Step(4);
  EXPECT_THAT(Of<model::DeletePod>(idle), IsEmpty());
  EXPECT_LE(idle.wake_at, At(14));
  const auto deleted = Of<model::DeletePod>(Step(14));
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(deleted[0].name, asked.name);
  Delete(Reservation(asked));
  Put(PodBuilder("ns", "whole").Queue("team").Gpus(1));
  EXPECT_THAT(Of<model::BindPod>(Step(15)), SizeIs(1)) << "the GPU is whole again";
}

TEST_F(GpuSharesTest, AReservationThatIsBeingCreatedTakesItsGpuAlsoWithoutItsPod) {
  Begin();
  Put(Half("a"));
  const auto asked = Of<model::CreateGpuReservation>(Step(10));
  ASSERT_THAT(asked, SizeIs(1));
  Delete(Half("a"));
  Put(PodBuilder("ns", "whole").Queue("team").Gpus(1));
  EXPECT_THAT(Of<model::BindPod>(Step(11)), IsEmpty()) << "the reservation pod comes";
  // It is seen, and deleted after its grace: then the GPU is free.
  Put(Reservation(asked[0], "GPU-1"));
  EXPECT_THAT(Of<model::BindPod>(Step(12)), IsEmpty());
  StepResult late = Step(30);
  ASSERT_THAT(Of<model::DeletePod>(late), SizeIs(1));
  Delete(Reservation(asked[0], "GPU-1"));
  EXPECT_THAT(Of<model::BindPod>(Step(31)), SizeIs(1));
}

TEST_F(GpuSharesTest, AReservationThatIsRefusedTakesNoGpu) {
  Begin();
  Put(Half("a"));
  const StepResult step = Step(10);
  ASSERT_THAT(Of<model::CreateGpuReservation>(step), SizeIs(1));
  Delete(Half("a"));
  Put(PodBuilder("ns", "whole").Queue("team").Gpus(1));
  EXPECT_THAT(Of<model::BindPod>(Step(11)), IsEmpty());
  AnswerThe<model::CreateGpuReservation>(step, absl::PermissionDeniedError("no"));
  EXPECT_THAT(Of<model::BindPod>(Step(12)), SizeIs(1));
}

TEST_F(GpuSharesTest, TheLastSharerGoesAndTheReservationAfterIt) {
  Begin();
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked, "GPU-1"));
  const StepResult bound = Step(2);
  AnswerAll(bound);
  const PodBuilder running = Bound(Half("a"), Of<model::BindPod>(bound).at(0));
  Put(running);
  EXPECT_THAT(Of<model::DeletePod>(Step(1000)), IsEmpty());
  PodBuilder ending = running;
  Put(ending.Deleting());
  EXPECT_THAT(Of<model::DeletePod>(Step(2000)), IsEmpty()) << "it may still use the GPU";
  Delete(running);
  Step(2001);
  EXPECT_THAT(Of<model::DeletePod>(Step(2011)), SizeIs(1));
}

// ---- restarts
// ----------------------------------------------------------------------------------

TEST_F(GpuSharesTest, AfterARestartBetweenReservationAndBindingTheSameGpuIsUsed) {
  for (const bool with_device : {true, false}) {
    SCOPED_TRACE(with_device);
    Restart();
    Begin(2);
    const auto asked = Reserve("a", 1);
    Again();
    Put(Reservation(asked, with_device ? "GPU-1" : ""));
    Put(Half("a"));
    const StepResult step = Step(10);
    EXPECT_THAT(Of<model::CreateGpuReservation>(step), IsEmpty()) << "a second GPU for one pod";
    if (!with_device) {
      EXPECT_THAT(Of<model::BindPod>(step), IsEmpty());
      Put(Reservation(asked, "GPU-1"));
    }
    const auto binds = Of<model::BindPod>(with_device ? step : Step(11));
    ASSERT_THAT(binds, SizeIs(1));
    EXPECT_EQ(binds[0].labels.Get(kGpuGroupLabel), asked.group);
  }
}

TEST_F(GpuSharesTest, AfterARestartBeforeTheReservationIsSeenItIsAskedForByTheSameName) {
  Begin(2);
  const auto asked = Reserve("a", 1);
  Again();
  Put(Half("a"));
  const StepResult step = Step(10);
  const auto again = Of<model::CreateGpuReservation>(step);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].name, asked.name);
  AnswerThe<model::CreateGpuReservation>(step, absl::AlreadyExistsError("it is there"));
  Put(Reservation(asked, "GPU-1"));
  EXPECT_THAT(Of<model::BindPod>(Step(11)), SizeIs(1));
}

TEST_F(GpuSharesTest, AfterARestartWhatIsSharedStaysSharedAndWhatIsNotGoes) {
  Begin(2);
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked, "GPU-1"));
  const auto bind = Of<model::BindPod>(Step(2)).at(0);
  Again();
  Put(Bound(Half("a"), bind));
  Put(Reservation(asked, "GPU-1"));
  model::CreateGpuReservation orphan = asked;
  orphan.group = "missing";
  orphan.name = "left-over";
  Put(Reservation(orphan, "GPU-2"));
  Step(10);
  const auto deleted = Of<model::DeletePod>(Step(20));
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(deleted[0].name, "left-over");
  Put(Half("b"));
  const auto joined = Of<model::BindPod>(Step(21));
  ASSERT_THAT(joined, SizeIs(1));
  EXPECT_EQ(joined[0].annotations.Get(kVisibleDevicesAnnotation), "GPU-1");
}

TEST_F(GpuSharesTest, AfterARestartALostReservationIsMadeAgain) {
  Begin(2);
  const auto asked = Reserve("a", 1);
  Put(Reservation(asked, "GPU-1"));
  const auto bind = Of<model::BindPod>(Step(2)).at(0);
  Again();
  Put(Bound(Half("a"), bind));
  const StepResult step = Step(10);
  const auto again = Of<model::CreateGpuReservation>(step);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].name, asked.name);
  EXPECT_THAT(Of<model::EvictPod>(step), IsEmpty());
}

TEST_F(GpuSharesTest, AGangIsBoundWhenTheDevicesOfAllMembersAreKnown) {
  Begin(2);
  Put(MakeGroup("ns", "gang", "team", 2));
  for (const char* name : {"g0", "g1"}) {
    PodBuilder pod("ns", name);
    Put(pod.Queue("team").GpuFraction(600).Group("gang"));
  }
  const StepResult step = Step(1);
  const auto asked = Of<model::CreateGpuReservation>(step);
  ASSERT_THAT(asked, SizeIs(2)) << "0.6 twice is two GPUs";
  EXPECT_NE(asked[0].group, asked[1].group);
  AnswerAll(step);
  Put(Reservation(asked[0], "GPU-0"));
  EXPECT_THAT(Of<model::BindPod>(Step(2)), IsEmpty()) << "all or none";
  Put(Reservation(asked[1], "GPU-1"));
  EXPECT_THAT(Of<model::BindPod>(Step(3)), SizeIs(2));
}

}  // namespace
}  // namespace fairlead::core::testing
