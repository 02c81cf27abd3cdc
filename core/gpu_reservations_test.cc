#include "core/gpu_reservations.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core {
namespace {

using model::testing::At;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNs[] = "kai-resource-reservation";

template <typename T>
std::vector<T> Of(const GpuReservations::Outcome& outcome) {
  std::vector<T> found;
  for (const model::Action& action : outcome.actions) {
    if (const T* what = std::get_if<T>(&action.what)) found.push_back(*what);
  }
  return found;
}

std::vector<std::string> Closings(const GpuReservations::Outcome& outcome) {
  std::vector<std::string> text;
  for (const GpuReservations::Closing& closing : outcome.closings) {
    text.push_back(
        absl::StrCat(closing.node, "/", closing.group, closing.closed ? " closed" : " open"));
  }
  return text;
}

// The reservation pod of a group as the watch shows it.
PodBuilder ReservationPod(const std::string& node, const std::string& group,
                          const std::string& device = "", const std::string& name = "") {
  PodBuilder pod(kNs, name.empty() ? ReservationName(node, group) : name);
  pod.Scheduler("default-scheduler").Gpus(1).Label(model::kGpuGroupLabel, group).On(node);
  if (!device.empty()) pod.Annotation(model::kGpuIndexAnnotation, device);
  return pod;
}

PodBuilder Sharer(const std::string& name, const std::string& node, const std::string& group,
                  const std::string& device) {
  PodBuilder pod("ns", name);
  pod.GpuFraction(500).Label(model::kGpuGroupLabel, group).On(node);
  if (!device.empty()) pod.Annotation(model::kVisibleDevicesAnnotation, device);
  return pod;
}

class GpuReservationsTest : public ::testing::Test {
 protected:
  GpuReservations::Outcome Step(int64_t at) {
    return book_.Step(At(at), [this](const std::string& node, const std::string& group) {
      return used_.contains({node, group});
    });
  }
  void Hold(const std::string& pod, const std::vector<std::string>& groups,
            const std::string& node = "n1") {
    book_.Hold({"ns", pod, absl::StrCat("uid-ns-", pod), node, {}}, groups, "0.50");
    for (const std::string& group : groups) used_.insert({node, group});
  }
  // Pod "a" with these config maps is held for group "g", whose device is known.
  void HoldWithConfigMaps(std::vector<std::string> names) {
    PodBuilder pod("ns", "a");
    pod.GpuFraction(500).Annotation(model::kSharedGpuConfigMapAnnotation, "job-x-shared-gpu");
    model::Pod mutated = pod.Build();
    mutated.spec.config_map_names = std::move(names);
    Show(mutated);
    Show(ReservationPod("n1", "g", "GPU-1"));
    Hold("a", {"g"});
  }
  // The pod is bound and the watch shows it.
  void Show(const model::Pod& pod) { book_.PodChanged(pod); }
  void Gone(const model::Pod& pod) { book_.PodGone(pod.meta.ns, pod.meta.name, pod.meta.uid); }

  GpuReservations book_{GpuSharingOptions{}, Backoff{absl::Seconds(1), absl::Seconds(60)}};
  std::set<std::pair<std::string, std::string>> used_;  // node, group
};

// ---- a standby: events, and no step

TEST_F(GpuReservationsTest, AStandbyKeepsAndSaysNothingAboutGpusThatAreGone) {
  const model::Pod lasting = ReservationPod("n1", "lasting", "GPU-0").Build();
  Show(lasting);
  Show(Sharer("lasting", "n1", "lasting", "GPU-0").Build());
  for (int i = 0; i < 1000; ++i) {
    const std::string group = absl::StrCat("g", i);
    const model::Pod reservation = ReservationPod("n1", group, "GPU-1").Build();
    const model::Pod sharer = Sharer("p", "n1", group, "GPU-1").Build();
    Show(reservation);
    Show(sharer);
    Gone(reservation);  // a loss, and a pod that ended
    Gone(sharer);
    EXPECT_LE(book_.queued(), 70u) << i;
    EXPECT_LE(book_.groups(), 70u) << i;
  }
  // It becomes the leader.
  used_.insert({"n1", "lasting"});
  EXPECT_THAT(Step(0).actions, IsEmpty());
  EXPECT_EQ(book_.queued(), 0u);
  EXPECT_EQ(book_.groups(), 1u);
  Gone(lasting);
  EXPECT_THAT(Of<model::EmitEvent>(Step(1)), SizeIs(1)) << "the leader says it";
}

// ---- failures
// -------------------------------------------------------------------------------

TEST_F(GpuReservationsTest, PodsThatWaitFailIfTheCreationIsRefused) {
  Hold("a", {"g"});
  Hold("b", {"g"});
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(0)), SizeIs(1));
  book_.Created("n1", "g", absl::PermissionDeniedError("exceeded quota: gpus"), At(1));
  const auto outcome = Step(1);
  ASSERT_THAT(outcome.failed, SizeIs(2));
  EXPECT_EQ(outcome.failed[0].name, "a");
  EXPECT_EQ(outcome.failed[0].uid, "uid-ns-a");
  EXPECT_THAT(outcome.failed[1].reason, HasSubstr("exceeded quota: gpus"));
  EXPECT_FALSE(book_.Holds("ns", "a"));
  // The next pod requests it at once: pods have their own pauses.
  Hold("a", {"g"});
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(2)), SizeIs(1));
}

// Nothing was judged: the server is busy, or the turn came too late.
TEST_F(GpuReservationsTest, APutOffFailsNoPodAndTheFifthInARowDoes) {
  Hold("a", {"g"});
  int64_t now = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT(Of<model::CreateGpuReservation>(Step(now)), SizeIs(1));
    book_.Created("n1", "g", absl::AbortedError("429"), At(now));
    EXPECT_THAT(Step(now).failed, IsEmpty());
    ASSERT_EQ(book_.wake_at(), At(now + (1 << i)));
    now += 1 << i;
  }
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(now)), SizeIs(1));
  book_.Created("n1", "g", absl::AbortedError("429"), At(now));
  EXPECT_THAT(Step(now).failed, SizeIs(1));
}

TEST_F(GpuReservationsTest, ALostAnswerIsAskedForAgainAfterAPauseAndFailsNoPod) {
  Hold("a", {"g"});
  Step(0);
  book_.Created("n1", "g", absl::UnavailableError("no connection"), At(1));
  auto outcome = Step(1);
  EXPECT_THAT(outcome.failed, IsEmpty());
  EXPECT_THAT(outcome.actions, IsEmpty());
  ASSERT_EQ(book_.wake_at(), At(2));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(2)), SizeIs(1));
  // It was there already.
  book_.Created("n1", "g", absl::AlreadyExistsError("it exists"), At(3));
  Show(ReservationPod("n1", "g", "GPU-1"));
  EXPECT_THAT(Step(3).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, WithoutADeviceInTimeTheReservationGoesAndTheReasonIsSaid) {
  Hold("a", {"g"});
  Step(0);
  Show(ReservationPod("n1", "g"));
  EXPECT_THAT(Step(1).actions, IsEmpty());
  EXPECT_THAT(Step(39).failed, IsEmpty());
  ASSERT_EQ(book_.wake_at(), At(40));
  const auto outcome = Step(40);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("did not get its device within 40s"));
  const auto deleted = Of<model::DeletePod>(outcome);
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(deleted[0].ns, kNs);
  EXPECT_EQ(deleted[0].name, ReservationName("n1", "g"));
  EXPECT_EQ(deleted[0].uid, ReservationPod("n1", "g").Build().meta.uid);
  // The name is taken until it is gone.
  Hold("a", {"g"});
  Show(ReservationPod("n1", "g").Deleting());
  EXPECT_THAT(Step(41).actions, IsEmpty());
  Gone(ReservationPod("n1", "g"));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(42)), SizeIs(1));
}

TEST_F(GpuReservationsTest, ACreationThatNothingBecomesOfTimesOutToo) {
  Hold("a", {"g"});
  Step(0);
  book_.Created("n1", "g", absl::OkStatus(), At(0));
  EXPECT_THAT(Step(40).failed, SizeIs(1));
  Hold("a", {"g"});
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(41)), SizeIs(1));
}

// It takes a GPU when it comes: after a pause, or a jump of the clock, the watch may be behind.
TEST_F(GpuReservationsTest, WhatNoPodWaitsForAnyMoreMayStillCome) {
  Hold("a", {"g"});
  Step(0);
  book_.Created("n1", "g", absl::OkStatus(), At(0));
  const auto comes = [](const GpuReservations::Outcome& of) {
    return of.coming.empty() ? std::string("as before") : of.coming.back().comes ? "yes" : "no";
  };
  const auto outcome = Step(40);
  EXPECT_THAT(outcome.failed, SizeIs(1));
  EXPECT_EQ(comes(outcome), "yes") << "in the step in which the pod gives its part back";
  used_.clear();
  EXPECT_EQ(comes(Step(41)), "as before");
  Show(ReservationPod("n1", "g"));
  EXPECT_EQ(comes(Step(42)), "no") << "it is there";
  EXPECT_THAT(Of<model::DeletePod>(Step(60)), SizeIs(1));
}

TEST_F(GpuReservationsTest, WhatHasNotComeForLongDoesNotComeAnyMore) {
  Hold("a", {"g"});
  Step(0);
  used_.clear();
  EXPECT_EQ(Step(40).coming.size(), 1u);
  ASSERT_EQ(book_.wake_at(), At(130));
  const auto outcome = Step(130);
  ASSERT_EQ(outcome.coming.size(), 1u);
  EXPECT_FALSE(outcome.coming[0].comes);
}

TEST_F(GpuReservationsTest, OneThatTheKubeletRefusesIsDeletedAndFailsPodsThatWait) {
  Hold("a", {"g"});
  Step(0);
  Show(ReservationPod("n1", "g").On("n1", model::PodPhase::kFailed));
  const auto outcome = Step(1);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("failed on node n1"));
  EXPECT_THAT(Of<model::DeletePod>(outcome), SizeIs(1));
  EXPECT_THAT(Step(2).actions, IsEmpty()) << "it was asked for once";
}

// The watch of a real API server omits pods that have ended.
TEST_F(GpuReservationsTest, OneThatVanishesBeforeItHadItsDeviceFailsPodsThatWaitAndIsRemoved) {
  Hold("a", {"g"});
  Step(0);
  Show(ReservationPod("n1", "g"));
  Step(1);
  Gone(ReservationPod("n1", "g"));
  const auto outcome = Step(2);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("before it had its device"));
  const auto deleted = Of<model::DeletePod>(outcome);
  ASSERT_THAT(deleted, SizeIs(1)) << "its name is needed";
  EXPECT_EQ(deleted[0].uid, ReservationPod("n1", "g").Build().meta.uid);
}

TEST_F(GpuReservationsTest, AnEndedOneOfAFormerProcessIsRemovedAndMadeAnew) {
  Hold("a", {"g"});
  ASSERT_THAT(Of<model::CreateGpuReservation>(Step(0)), SizeIs(1));
  book_.Created("n1", "g", absl::AlreadyExistsError("it is there"), At(1));
  EXPECT_THAT(Step(1).actions, IsEmpty()) << "the watch may be late";
  ASSERT_EQ(book_.wake_at(), At(6));
  const auto deleted = Of<model::DeletePod>(Step(6));
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(deleted[0].name, ReservationName("n1", "g"));
  ASSERT_EQ(book_.wake_at(), At(7));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(7)), SizeIs(1));
}

TEST_F(GpuReservationsTest, ADeletionThatFailsIsRepeated) {
  Show(ReservationPod("n1", "g", "GPU-1"));
  Step(0);
  EXPECT_THAT(Of<model::DeletePod>(Step(10)), SizeIs(1));
  book_.Deleted(ReservationName("n1", "g"), absl::UnavailableError("?"), At(11));
  EXPECT_THAT(Step(11).actions, IsEmpty());
  ASSERT_EQ(book_.wake_at(), At(12));
  EXPECT_THAT(Of<model::DeletePod>(Step(12)), SizeIs(1));
}

TEST_F(GpuReservationsTest, OneThatVanishesWhileSharedIsMadeAgainAndNoPodIsEvicted) {
  used_.insert({"n1", "g"});
  Show(ReservationPod("n1", "g", "GPU-1"));
  Show(Sharer("a", "n1", "g", "GPU-1"));
  EXPECT_THAT(Step(0).actions, IsEmpty());
  Gone(ReservationPod("n1", "g"));
  Hold("b", {"g"});
  auto outcome = Step(1);
  const auto events = Of<model::EmitEvent>(outcome);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "a");
  EXPECT_EQ(events[0].reason, "GpuReservationLost");
  EXPECT_TRUE(events[0].warning);
  EXPECT_THAT(Of<model::CreateGpuReservation>(outcome), SizeIs(1));
  EXPECT_THAT(outcome.bindings, IsEmpty());
  Show(ReservationPod("n1", "g"));
  EXPECT_THAT(Step(2).bindings, IsEmpty());
  Show(ReservationPod("n1", "g", "GPU-1"));
  EXPECT_THAT(Step(3).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, OneThatCannotBeMadeAgainIsTriedWithGrowingPausesAndSaidOnce) {
  used_.insert({"n1", "g"});
  Show(ReservationPod("n1", "g", "GPU-1"));
  Show(Sharer("a", "n1", "g", "GPU-1"));
  Step(0);
  Gone(ReservationPod("n1", "g", "GPU-1"));
  int64_t now = 1;
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(now)), SizeIs(1));
  for (const int64_t pause : {1, 2, 4, 8}) {
    Show(ReservationPod("n1", "g"));
    Step(now);
    Gone(ReservationPod("n1", "g"));
    const auto outcome = Step(now);
    EXPECT_THAT(Of<model::EmitEvent>(outcome), IsEmpty());
    EXPECT_THAT(Of<model::CreateGpuReservation>(outcome), IsEmpty());
    ASSERT_EQ(book_.wake_at(), At(now + pause));
    now += pause;
    EXPECT_THAT(Of<model::CreateGpuReservation>(Step(now)), SizeIs(1));
  }
  // Nothing is created for a node that is gone, though its pods still exist.
  used_.clear();
  Show(ReservationPod("n1", "g"));
  Gone(ReservationPod("n1", "g"));
  Step(now);
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(now + 1000)), IsEmpty());
}

TEST_F(GpuReservationsTest, NoPodJoinsAGpuThatCameBackAsAnotherDevice) {
  used_.insert({"n1", "g"});
  Show(Sharer("a", "n1", "g", "GPU-1"));
  Show(ReservationPod("n1", "g", "GPU-2"));
  Hold("b", {"g"});
  auto outcome = Step(0);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("GPU-1"));
  EXPECT_THAT(outcome.actions, IsEmpty()) << "no pod is evicted for it";
  EXPECT_THAT(Closings(outcome), ElementsAre("n1/g closed"));
  EXPECT_THAT(Closings(Step(0)), IsEmpty()) << "it is said once";
  // When the former sharers are gone it is an ordinary GPU.
  Gone(Sharer("a", "n1", "g", "GPU-1"));
  Hold("b", {"g"});
  outcome = Step(1);
  EXPECT_THAT(Closings(outcome), ElementsAre("n1/g open"));
  ASSERT_THAT(outcome.bindings, SizeIs(1));
  EXPECT_EQ(outcome.bindings[0].annotations.Get(model::kVisibleDevicesAnnotation), "GPU-2");
}

TEST_F(GpuReservationsTest, AGpuThatAnotherSchedulerSharesOutIsLeftAlone) {
  used_.insert({"n1", "g"});
  Show(Sharer("kai", "n1", "g", ""));  // KAI's sharer: its reservation pod is in another namespace
  auto first = Step(0);
  EXPECT_THAT(first.actions, IsEmpty()) << "no second GPU is taken for it";
  EXPECT_THAT(Closings(first), ElementsAre("n1/g closed"));
  Hold("b", {"g"});
  const auto outcome = Step(1);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("has no reservation pod of it"));
  EXPECT_THAT(outcome.actions, IsEmpty());
}

TEST_F(GpuReservationsTest, ANodeThatIsGoneFailsWhatWaitsForIt) {
  Hold("a", {"g"});
  Hold("b", {"h"}, "n2");
  Step(0);
  book_.NodeGone("n1");
  const auto outcome = Step(1);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_EQ(outcome.failed[0].name, "a");
  EXPECT_TRUE(book_.Holds("ns", "b"));
}

TEST_F(GpuReservationsTest, AConfigMapThatIsRefusedFailsThePod) {
  HoldWithConfigMaps({"job-x-shared-gpu-0", "job-x-shared-gpu-0-evar", "own"});
  EXPECT_THAT(Of<model::ApplyConfigMap>(Step(0)), SizeIs(2));
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0",
                         absl::PermissionDeniedError("config maps"), At(0));
  const auto outcome = Step(1);
  ASSERT_THAT(outcome.failed, SizeIs(1));
  EXPECT_THAT(outcome.failed[0].reason, HasSubstr("config maps"));
  EXPECT_THAT(outcome.bindings, IsEmpty());
}

TEST_F(GpuReservationsTest, AConfigMapThatIsPutOffIsWrittenAgain) {
  HoldWithConfigMaps({"job-x-shared-gpu-0"});
  ASSERT_THAT(Of<model::ApplyConfigMap>(Step(0)), SizeIs(1));
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0", absl::CancelledError("late"),
                         At(0));
  const auto outcome = Step(0);
  EXPECT_THAT(outcome.failed, IsEmpty());
  EXPECT_THAT(outcome.actions, IsEmpty());
  ASSERT_EQ(book_.wake_at(), At(1));
  EXPECT_THAT(Of<model::ApplyConfigMap>(Step(1)), SizeIs(1));
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0", absl::OkStatus(), At(1));
  EXPECT_THAT(Step(1).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, AConfigMapOfUnknownOutcomeIsWrittenAgainAndNoRefusalOfItIsCertain) {
  HoldWithConfigMaps({"job-x-shared-gpu-0"});
  EXPECT_THAT(Of<model::ApplyConfigMap>(Step(0)), SizeIs(1));
  int64_t now = 0;
  for (const int64_t pause : {1, 2, 4}) {
    book_.ConfigMapApplied(
        "ns", "a", "uid-ns-a", "job-x-shared-gpu-0",
        now == 0 ? absl::UnavailableError("no answer") : absl::PermissionDeniedError("403"),
        At(now));
    const auto outcome = Step(now);
    EXPECT_THAT(outcome.failed, IsEmpty());
    EXPECT_THAT(outcome.actions, IsEmpty());
    ASSERT_EQ(book_.wake_at(), At(now + pause));
    now += pause;
    EXPECT_THAT(Of<model::ApplyConfigMap>(Step(now)), SizeIs(1));
    EXPECT_GT(book_.wake_at(), At(now)) << "it does not spin";
  }
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0", absl::OkStatus(), At(now));
  EXPECT_THAT(Step(now).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, ACreationInDoubtIsNotRefusedForCertain) {
  Hold("a", {"g"});
  Step(0);
  book_.Created("n1", "g", absl::DeadlineExceededError("no answer"), At(1));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(2)), SizeIs(1));
  book_.Created("n1", "g", absl::PermissionDeniedError("403"), At(2));
  EXPECT_THAT(Step(2).failed, IsEmpty());
  // It was created by the first attempt.
  Show(ReservationPod("n1", "g", "GPU-1"));
  EXPECT_THAT(Step(3).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, ADeletionInDoubtLetsNoPodJoinUntilItIsDecided) {
  Show(ReservationPod("n1", "g", "GPU-1"));
  Step(0);
  EXPECT_THAT(Of<model::DeletePod>(Step(10)), SizeIs(1));
  book_.Deleted(ReservationName("n1", "g"), absl::UnavailableError("no answer"), At(11));
  Hold("a", {"g"});
  EXPECT_THAT(Step(11).bindings, IsEmpty()) << "its GPU may be freed";
  EXPECT_THAT(Of<model::DeletePod>(Step(12)), SizeIs(1));
  Gone(ReservationPod("n1", "g"));
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(13)), SizeIs(1));
}

TEST_F(GpuReservationsTest, WhatHoldsNothingForAGroupIsNoReservation) {
  Hold("a", {"g"});
  Step(0);
  PodBuilder no_gpu(kNs, "helper");
  Show(no_gpu.Label(model::kGpuGroupLabel, "g")
           .On("n1")
           .Annotation(model::kGpuIndexAnnotation, "GPU-9"));
  Show(ReservationPod("n2", "g", "GPU-8", "of-another-node"));
  Show(ReservationPod("n1", "h", "GPU-7", "of-another-group"));
  Show(ReservationPod("n1", "g", "GPU-1,GPU-2", "of-two"));
  EXPECT_THAT(Step(1).bindings, IsEmpty());
}

// ---- success
// -------------------------------------------------------------------------------

TEST_F(GpuReservationsTest, ABindingGoesWhenItsDeviceIsKnownAndSaysIt) {
  Hold("a", {"g"});
  const auto first = Step(0);
  EXPECT_THAT(first.bindings, IsEmpty());
  const auto asked = Of<model::CreateGpuReservation>(first);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].ns, kNs);
  EXPECT_EQ(asked[0].name, ReservationName("n1", "g"));
  EXPECT_EQ(asked[0].node, "n1");
  EXPECT_EQ(asked[0].group, "g");
  EXPECT_THAT(asked[0].command, ElementsAre("fairlead-gpu-index"));
  EXPECT_THAT(Step(1).actions, IsEmpty()) << "asked for twice";
  Show(ReservationPod("n1", "g"));
  EXPECT_THAT(Step(2).bindings, IsEmpty());
  Show(ReservationPod("n1", "g", "GPU-1"));
  const auto done = Step(3);
  ASSERT_THAT(done.bindings, SizeIs(1));
  const model::BindPod& bind = done.bindings[0];
  EXPECT_EQ(bind.name, "a");
  EXPECT_EQ(bind.node, "n1");
  EXPECT_EQ(bind.labels.Get("runai-gpu-group"), "g");
  EXPECT_EQ(bind.annotations.Get("received-resource-type"), "Fraction");
  EXPECT_EQ(bind.annotations.Get("fairlead.dev/visible-devices"), "GPU-1");
  EXPECT_EQ(bind.annotations.Get("fairlead.dev/gpu-portion"), "0.50");
  EXPECT_FALSE(book_.Holds("ns", "a"));
  // Another pod joins at once.
  Hold("b", {"g"});
  EXPECT_THAT(Step(4).bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, SeveralDevicesAreWaitedForTogetherAndLabelledAsKaiDoes) {
  Hold("a", {"h", "g"});
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(0)), SizeIs(2));
  Show(ReservationPod("n1", "h", "GPU-h"));
  EXPECT_THAT(Step(1).bindings, IsEmpty());
  Show(ReservationPod("n1", "g", "GPU-g"));
  const auto outcome = Step(2);
  ASSERT_THAT(outcome.bindings, SizeIs(1));
  const model::BindPod& bind = outcome.bindings[0];
  EXPECT_EQ(bind.labels.size(), 2u);
  EXPECT_EQ(bind.labels.Get("runai-gpu-group/g"), "g");
  EXPECT_EQ(bind.labels.Get("runai-gpu-group/h"), "h");
  EXPECT_EQ(bind.annotations.Get(model::kVisibleDevicesAnnotation), "GPU-g,GPU-h");
}

TEST_F(GpuReservationsTest, ReservationPodsOfKaiAreAsGoodAsOurs) {
  Show(ReservationPod("n1", "g", "GPU-1", "gpu-reservation-n1-x7z2q"));
  Hold("a", {"g"});
  const auto outcome = Step(0);
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_THAT(outcome.bindings, SizeIs(1));
}

TEST_F(GpuReservationsTest, KaisConfigMapsAreWrittenBeforeTheBinding) {
  HoldWithConfigMaps({"job-x-shared-gpu-0", "job-x-shared-gpu-0-evar", "own"});
  const auto asked = Step(0);
  const auto maps = Of<model::ApplyConfigMap>(asked);
  EXPECT_THAT(asked.bindings, IsEmpty());
  ASSERT_THAT(maps, SizeIs(2));
  EXPECT_EQ(maps[0].name, "job-x-shared-gpu-0");
  EXPECT_EQ(maps[0].data.Get("NVIDIA_VISIBLE_DEVICES"), "GPU-1");
  EXPECT_EQ(maps[0].data.Get("GPU_PORTION"), "0.50");
  EXPECT_EQ(maps[0].data.Get("RUNAI_NUM_OF_GPUS"), "0.50");
  EXPECT_EQ(maps[0].owner_pod, "a");
  EXPECT_EQ(maps[0].owner_uid, "uid-ns-a");
  EXPECT_EQ(maps[1].name, "job-x-shared-gpu-0-evar");
  EXPECT_EQ(maps[1].data, (model::StringMap{{"NVIDIA_VISIBLE_DEVICES", "GPU-1"}}));
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0", absl::OkStatus(), At(0));
  EXPECT_THAT(Step(1).bindings, IsEmpty()) << "one of two is there";
  book_.ConfigMapApplied("ns", "a", "uid-ns-a", "job-x-shared-gpu-0-evar", absl::OkStatus(), At(1));
  EXPECT_THAT(Step(2).bindings, SizeIs(1));
}

// ---- the end of a reservation
// ----------------------------------------------------------------------

TEST_F(GpuReservationsTest, WhatNoPodSharesGoesAfterTheGraceAlsoAfterARestart) {
  Show(ReservationPod("n1", "g", "GPU-1", "kai-made-it"));
  EXPECT_THAT(Step(100).actions, IsEmpty());
  ASSERT_EQ(book_.wake_at(), At(110));
  EXPECT_THAT(Step(109).actions, IsEmpty());
  const auto deleted = Of<model::DeletePod>(Step(110));
  ASSERT_THAT(deleted, SizeIs(1));
  EXPECT_EQ(deleted[0].name, "kai-made-it");
  EXPECT_THAT(Step(200).actions, IsEmpty());
  Gone(ReservationPod("n1", "g", "GPU-1", "kai-made-it"));
  EXPECT_THAT(Step(201).actions, IsEmpty());
  EXPECT_EQ(book_.wake_at(), absl::InfiniteFuture());
}

TEST_F(GpuReservationsTest, APodThatComesWithinTheGraceKeepsIt) {
  Show(ReservationPod("n1", "g", "GPU-1"));
  Step(0);
  Hold("a", {"g"});
  EXPECT_THAT(Step(9).bindings, SizeIs(1));
  EXPECT_THAT(Step(1000).actions, IsEmpty());
}

TEST_F(GpuReservationsTest, NoneIsDeletedThatALivePodNames) {
  // KAI's binder labels a pod before it binds it: the state does not count that pod.
  PodBuilder pod("ns", "kai");
  pod.GpuFraction(500).Label("runai-gpu-group/g", "g");
  Show(pod);
  Show(ReservationPod("n1", "g", "GPU-1"));
  Step(0);
  EXPECT_THAT(Step(1000).actions, IsEmpty());
  pod.On("n1", model::PodPhase::kSucceeded);
  Show(pod);
  Step(1000);
  EXPECT_THAT(Of<model::DeletePod>(Step(1010)), SizeIs(1));
}

TEST_F(GpuReservationsTest, ABindingThatWasSentAndFailsLeavesNothingBehind) {
  Show(ReservationPod("n1", "g", "GPU-1"));
  Hold("a", {"g"});
  ASSERT_THAT(Step(0).bindings, SizeIs(1));
  EXPECT_THAT(Step(1000).actions, IsEmpty()) << "its answer is not there yet";
  used_.clear();
  book_.Drop("ns", "a");
  Step(1000);
  EXPECT_THAT(Of<model::DeletePod>(Step(1010)), SizeIs(1));
}

TEST_F(GpuReservationsTest, AHeldPodThatFailsLeavesNothingBehind) {
  Hold("a", {"g", "h"});
  Step(0);
  Show(ReservationPod("n1", "h", "GPU-h"));
  book_.Created("n1", "g", absl::PermissionDeniedError("no"), At(1));
  ASSERT_THAT(Step(1).failed, SizeIs(1));
  used_.clear();  // the state forgets it after the step
  EXPECT_TRUE(book_.HasWork(At(1)));
  Step(1);
  EXPECT_THAT(Of<model::DeletePod>(Step(11)), SizeIs(1));
}

TEST_F(GpuReservationsTest, APodThatIsGoneWhileItWaitsIsNotBound) {
  Hold("a", {"g"});
  Step(0);
  Gone(PodBuilder("ns", "a"));
  used_.clear();
  Show(ReservationPod("n1", "g", "GPU-1"));
  EXPECT_THAT(Step(1).bindings, IsEmpty());
  EXPECT_THAT(Of<model::DeletePod>(Step(11)), SizeIs(1));
}

TEST_F(GpuReservationsTest, APodThatIsPlacedAgainWaitsForItsNewPlaceOnly) {
  Hold("a", {"g"});
  Step(0);
  Hold("a", {"h"});
  used_.erase({"n1", "g"});
  EXPECT_THAT(Of<model::CreateGpuReservation>(Step(1)), SizeIs(1));
  Show(ReservationPod("n1", "g", "GPU-g"));
  EXPECT_THAT(Step(2).bindings, IsEmpty());
  Show(ReservationPod("n1", "h", "GPU-h"));
  EXPECT_THAT(Step(3).bindings, SizeIs(1));
  EXPECT_THAT(Of<model::DeletePod>(Step(12)), SizeIs(1));
}

TEST_F(GpuReservationsTest, SwitchedOffItTouchesNothing) {
  GpuSharingOptions off;
  off.enabled = false;
  GpuReservations book(off, Backoff{absl::Seconds(1), absl::Seconds(60)});
  book.PodChanged(ReservationPod("n1", "g", "GPU-1"));
  EXPECT_FALSE(book.HasWork(At(1000)));
}

TEST(ReservationNameTest, FollowsFromNodeAndGroupAndIsAName) {
  const std::string name = ReservationName("n1", "g");
  EXPECT_EQ(name, ReservationName("n1", "g"));
  EXPECT_NE(name, ReservationName("n1g", ""));
  EXPECT_NE(name, ReservationName("n2", "g"));
  EXPECT_EQ(name.size(), absl::string_view("gpu-reservation-").size() + 16);
  EXPECT_TRUE(absl::StartsWith(name, "gpu-reservation-")) << "what KAI knows its own by";
}

}  // namespace
}  // namespace fairlead::core
