// Pods that another scheduler binds: they hold what they are granted, and the scheduler is told.
#include <string>
#include <utility>
#include <vector>

#include "core/decision_loop_testing.h"
#include "core/guest_grants.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuestAnswer::Kind;

constexpr char kGuest[] = "team-scheduler";

class GuestsTest : public DecisionLoopTest {
 protected:
  GuestsTest() {
    options_.hook.enabled = false;
    options_.state.guest_schedulers = {kGuest};
    options_.state.scheduler_names.push_back(kGuest);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 2));
    Put(MakeNode("n", 4));
  }
  static PodBuilder Guest(const std::string& name, int64_t gpus) {
    PodBuilder pod("ns", name);
    pod.Queue("q").Gpus(gpus).Created(1).Scheduler(kGuest);
    return pod;
  }
  GuestAnswer Ask(const model::Pod& pod, int at = 5) { return loop_->AskGuest(pod, "", At(at)); }
  // Its scheduler has reserved node "n".
  Kind AskToBind(const model::Pod& pod, int at = 5, const std::string& node = "n") {
    return loop_->AskGuest(pod, node, At(at)).kind;
  }
  // A gang of two, which are granted their nodes.
  std::pair<model::Pod, model::Pod> GrantedPair() {
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeGroup("ns", "g", "q", 2));
    std::pair<model::Pod, model::Pod> pods(Guest("a", 1).Group("g").Build(),
                                           Guest("b", 1).Group("g").Build());
    Put(pods.first);
    Put(pods.second);
    AnswerAll(Step(1));
    return pods;
  }
  static std::vector<std::string> Nominated(const StepResult& result) {
    std::vector<std::string> out;
    for (const auto& write : Of<model::NominateNode>(result)) {
      out.push_back(absl::StrCat(write.name, "@", write.node));
    }
    return out;
  }
};

TEST_F(GuestsTest, APodIsGrantedItsNodeAndNotBound) {
  const model::Pod pod = Guest("p", 2).Build();
  EXPECT_EQ(Ask(pod).kind, Kind::kUndecided) << "the watch has not shown it";
  Put(pod);
  EXPECT_EQ(Ask(pod).kind, Kind::kUndecided);
  const StepResult result = Step(1);
  EXPECT_THAT(Of<model::BindPod>(result), IsEmpty());
  EXPECT_THAT(Nominated(result), ElementsAre("p@n")) << "what wakes its scheduler";
  const GuestAnswer answer = Ask(pod);
  EXPECT_EQ(answer.kind, Kind::kGranted);
  EXPECT_EQ(answer.node, "n");
  AnswerAll(result);
  // What it holds is charged, before it is bound and after.
  for (const bool bound : {false, true}) {
    if (bound) Put(Guest("p", 2).On("n", model::PodPhase::kRunning).Build());
    Put(PodBuilder("ns", "own").Queue("q").Gpus(1).Created(2).Build());
    const StepResult next = Step(2);
    EXPECT_THAT(Of<model::BindPod>(next), IsEmpty()) << bound;
    for (const auto& event : Of<model::EmitEvent>(next)) EXPECT_NE(event.reason, "Scheduled");
    AnswerAll(next);
  }
  EXPECT_EQ(loop_->CheckConsistency(), "");
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  EXPECT_THAT(Of<model::BindPod>(Step(3)), SizeIs(1)) << "there is room again";
}

TEST_F(GuestsTest, APodThatWaitsIsToldWhy) {
  const model::Pod pod = Guest("p", 3).Build();
  Put(pod);
  AnswerAll(Step(1));
  const GuestAnswer answer = Ask(pod);
  EXPECT_EQ(answer.kind, Kind::kWaits);
  EXPECT_THAT(answer.reason, HasSubstr("QueueLimitReached: "));
  EXPECT_THAT(answer.reason, ::testing::EndsWith("limit of 2 GPUs")) << "without a full stop";
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  const StepResult result = Step(2);
  EXPECT_THAT(Nominated(result), ElementsAre("p@n"));
  EXPECT_EQ(Ask(pod).kind, Kind::kGranted);
}

TEST_F(GuestsTest, APodThatNamesNoQueueIsNotOurs) {
  const model::Pod system = PodBuilder("ns", "system").Gpus(1).Scheduler(kGuest).Build();
  Put(system);
  const model::Pod stranger = PodBuilder("ns", "x").Queue("q").Gpus(1).Scheduler("other").Build();
  Put(stranger);
  const model::Pod own = PodBuilder("ns", "own").Queue("q").Gpus(1).Build();
  Put(own);
  EXPECT_THAT(Of<model::BindPod>(Step(1)), SizeIs(1));
  EXPECT_EQ(Ask(system).kind, Kind::kNotOurs);
  EXPECT_EQ(Ask(stranger).kind, Kind::kNotOurs);
  EXPECT_EQ(Ask(own).kind, Kind::kNotOurs);
}

TEST_F(GuestsTest, AGangIsGrantedWholeOrNotAtAll) {
  Put(MakeGroup("ns", "g", "q", 3));
  std::vector<model::Pod> pods;
  for (const char* name : {"a", "b", "c"}) pods.push_back(Guest(name, 1).Group("g").Build());
  for (const model::Pod& pod : pods) Put(pod);
  AnswerAll(Step(1));
  for (const model::Pod& pod : pods) EXPECT_EQ(Ask(pod).kind, Kind::kWaits) << pod.meta.name;
  Put(MakeQueue("q", "", kUnlimited, 3));
  AnswerAll(Step(2));
  for (const model::Pod& pod : pods) EXPECT_EQ(Ask(pod).kind, Kind::kGranted) << pod.meta.name;
  // Their scheduler binds one after the other.
  Put(Guest("a", 1).Group("g").On("n", model::PodPhase::kRunning).Build());
  AnswerAll(Step(3));
  EXPECT_EQ(Ask(pods[1]).kind, Kind::kGranted);
  EXPECT_EQ(Ask(pods[2]).kind, Kind::kGranted);
  EXPECT_EQ(loop_->CheckConsistency(), "");
}

TEST_F(GuestsTest, NoPodOfAGangIsBoundBeforeAllAreReserved) {
  const auto [a, b] = GrantedPair();
  EXPECT_EQ(AskToBind(a), Kind::kHeld);
  EXPECT_EQ(Ask(a).kind, Kind::kGranted) << "where it may go is another question";
  EXPECT_EQ(AskToBind(b), Kind::kGranted);
  EXPECT_EQ(AskToBind(a), Kind::kGranted);
  // A scheduler that does not ask again has given the node up.
  EXPECT_EQ(AskToBind(b, 9), Kind::kHeld);
  EXPECT_EQ(AskToBind(a, 10), Kind::kGranted);
  EXPECT_EQ(AskToBind(a, 10, "another node"), Kind::kGranted) << "which node is said";
  // With its minimum bound the gang waits for none.
  Put(MakeGroup("ns", "g", "q", 1));
  Put(Guest("b", 1).Group("g").On("n", model::PodPhase::kRunning).Build());
  const model::Pod c = Guest("c", 1).Group("g").Build();
  Put(c);
  AnswerAll(Step(11));
  EXPECT_EQ(AskToBind(c, 20), Kind::kGranted);
}

// The other would hold its node for nothing, and could start alone.
TEST_F(GuestsTest, TheGrantsOfAGangEndTogether) {
  const auto [a, b] = GrantedPair();
  EXPECT_EQ(AskToBind(a, 5), Kind::kHeld);
  EXPECT_EQ(Ask(b, 30).kind, Kind::kGranted) << "it has more time than the other";
  AnswerAll(Step(62));
  EXPECT_NE(Ask(a, 62).kind, Kind::kGranted);
  EXPECT_NE(AskToBind(b, 62), Kind::kGranted);
  EXPECT_NE(AskToBind(b, 62), Kind::kHeld);
  EXPECT_EQ(loop_->CheckConsistency(), "");
  // After a pause both are granted nodes again, at once.
  int at = 63;
  for (; at < 100 && Ask(a, at).kind != Kind::kGranted; ++at) AnswerAll(Step(at));
  EXPECT_EQ(Ask(b, at).kind, Kind::kGranted);
}

TEST_F(GuestsTest, WaitingForTheGangGivesNoMoreTime) {
  const auto [a, b] = GrantedPair();
  for (int at = 2; at < 61; ++at) EXPECT_EQ(AskToBind(a, at), Kind::kHeld);
  AnswerAll(Step(62));
  EXPECT_EQ(AskToBind(a, 62), Kind::kWaits) << "what it held is for others";
  EXPECT_EQ(loop_->CheckConsistency(), "");
}

TEST_F(GuestsTest, ALonePodIsBoundAtOnce) {
  const model::Pod pod = Guest("p", 1).Build();
  Put(pod);
  AnswerAll(Step(1));
  EXPECT_EQ(AskToBind(pod), Kind::kGranted);
}

TEST_F(GuestsTest, AGrantThatIsNotUsedEnds) {
  const model::Pod pod = Guest("p", 2).Build();
  Put(pod);
  AnswerAll(Step(1));
  EXPECT_LE(Step(2).wake_at, At(61));
  EXPECT_EQ(Ask(pod, 50).kind, Kind::kGranted) << "its scheduler may be binding it";
  AnswerAll(Step(100));
  EXPECT_EQ(Ask(pod, 100).kind, Kind::kGranted);
  AnswerAll(Step(161));
  const GuestAnswer answer = Ask(pod, 161);
  EXPECT_EQ(answer.kind, Kind::kWaits);
  EXPECT_THAT(answer.reason, HasSubstr("has not bound it to node n within 2m39s"));
  // It is granted a node again after a pause.
  for (int at = 162; at < 300 && Ask(pod, at).kind != Kind::kGranted; ++at) AnswerAll(Step(at));
  EXPECT_EQ(Ask(pod, 300).kind, Kind::kGranted);
  EXPECT_EQ(loop_->CheckConsistency(), "");
}

TEST_F(GuestsTest, AGrantEndsWithItsNodeAndThePodGetsAnother) {
  const model::Pod pod = Guest("p", 1).Build();
  Put(pod);
  AnswerAll(Step(1));
  ASSERT_EQ(Ask(pod).node, "n");
  Put(MakeNode("m", 4));
  AnswerAll(Step(2));
  EXPECT_EQ(Ask(pod).node, "n") << "it keeps it";
  model::Node cordoned = MakeNode("n", 4);
  cordoned.unschedulable = true;
  Put(cordoned);
  AnswerAll(Step(3));
  EXPECT_EQ(Ask(pod).node, "m");
  loop_->Apply(model::Delete{model::Kind::kNode, "", "m", "uid-m"});
  const StepResult alone = Step(4);
  AnswerAll(alone);
  EXPECT_EQ(Ask(pod).kind, Kind::kWaits);
  for (const auto& write : Of<model::SetPodUnschedulable>(alone)) {
    EXPECT_EQ(write.reason, "Unschedulable") << "nothing was refused";
  }
}

TEST_F(GuestsTest, AGrantEndsIfOthersTakeItsRoom) {
  Put(MakeNode("m", 4));
  const model::Pod first = Guest("a", 1).Build(), second = Guest("b", 1).Build();
  Put(first);
  Put(second);
  AnswerAll(Step(1));
  const std::string node = Ask(first).node;
  ASSERT_EQ(Ask(second).node, node) << "packed";
  // A pod of another scheduler leaves room for one of them.
  Put(PodBuilder("ns", "foreign").Gpus(3).Scheduler("other").On(node).Build());
  AnswerAll(Step(2));
  EXPECT_EQ(Ask(first).node, node);
  EXPECT_EQ(Ask(second).node, node == "n" ? "m" : "n");
}

// Something keeps its scheduler from it, of which Fairlead knows nothing.
TEST_F(GuestsTest, AskingAgainAndAgainDoesNotKeepTheNodeForEver) {
  const model::Pod pod = Guest("p", 1).Build();
  Put(pod);
  AnswerAll(Step(1));
  int at = 1;
  for (; Ask(pod, at).kind == Kind::kGranted && at < 1000; at += 20) AnswerAll(Step(at));
  EXPECT_GT(at, 180);
  EXPECT_LT(at, 240);
  EXPECT_THAT(Ask(pod, at).reason, HasSubstr("has not bound it to node n within 3m"));
}

TEST_F(GuestsTest, APodThatIsBoundElsewhereCountsThere) {
  Put(MakeNode("m", 4));
  const model::Pod pod = Guest("p", 2).Build();
  Put(pod);
  AnswerAll(Step(1));
  const std::string other = Ask(pod).node == "n" ? "m" : "n";
  Put(Guest("p", 2).On(other, model::PodPhase::kRunning).Build());
  AnswerAll(Step(2));
  EXPECT_NE(Ask(pod).kind, Kind::kGranted);
  EXPECT_EQ(loop_->CheckConsistency(), "");
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "own").Queue("q").Gpus(4).Created(2).Build());
  const auto bound = Of<model::BindPod>(Step(3));
  ASSERT_THAT(bound, SizeIs(1));
  EXPECT_NE(bound[0].node, other);
}

TEST_F(GuestsTest, APodThatGoesGivesBackWhatItWasGranted) {
  for (const bool terminating : {false, true}) {
    SCOPED_TRACE(terminating);
    const model::Pod pod = Guest("p", 2).Build();
    Put(pod);
    AnswerAll(Step(1));
    ASSERT_EQ(Ask(pod).kind, Kind::kGranted);
    if (terminating) Put(Guest("p", 2).Deleting().Build());
    if (terminating) AnswerAll(Step(2));
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
    AnswerAll(Step(3));
    EXPECT_NE(Ask(pod).kind, Kind::kGranted);
    EXPECT_EQ(loop_->CheckConsistency(), "");
  }
  Put(PodBuilder("ns", "own").Queue("q").Gpus(2).Created(2).Build());
  EXPECT_THAT(Of<model::BindPod>(Step(4)), SizeIs(1));
}

TEST_F(GuestsTest, AShareOfAGpuIsNotGranted) {
  PodBuilder pod("ns", "p");
  pod.Queue("q").GpuFraction(500).Created(1).Scheduler(kGuest);
  Put(pod.Build());
  AnswerAll(Step(1));
  AnswerAll(Step(2));
  const GuestAnswer answer = Ask(pod.Build());
  EXPECT_EQ(answer.kind, Kind::kWaits);
  EXPECT_THAT(answer.reason, HasSubstr("set schedulerName to fairlead"));
}

TEST(GuestGrantsTest, AGrantReplacesTheFormerOneOfItsPod) {
  GuestGrants grants(absl::Seconds(60));
  const absl::Time now = absl::UnixEpoch();
  grants.Add(1, {"ns", "p", "u", "n"}, now);
  grants.Add(2, {"ns", "p", "u", "m"}, now + absl::Seconds(30));
  EXPECT_THAT(grants.All(), SizeIs(1));
  EXPECT_THAT(grants.TakeNew(), SizeIs(2));
  EXPECT_THAT(grants.TakeNew(), IsEmpty());
  EXPECT_EQ(*grants.NodeOf("u"), "m");
  grants.Told("u", now + absl::Seconds(31));
  EXPECT_THAT(grants.TakeExpired(now + absl::Seconds(90)), IsEmpty());
  const auto expired = grants.TakeExpired(now + absl::Seconds(91));
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(expired[0].id, 2u);
  EXPECT_EQ(expired[0].grant.node, "m");
  EXPECT_EQ(expired[0].held, absl::Seconds(61)) << "until a minute after the last question";
  EXPECT_EQ(grants.NodeOf("u"), nullptr);
  EXPECT_EQ(grants.End("u"), std::nullopt);
  EXPECT_EQ(grants.size(), 0u);
}

}  // namespace
}  // namespace fairlead::core::testing
