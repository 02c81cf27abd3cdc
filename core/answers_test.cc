// Answers that are late, lost or refused, and how the decision loop handles them.
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "core/decision_loop_testing.h"

namespace fairlead::core::testing {
namespace {

class AnswersTest : public DecisionLoopTest {
 protected:
  // One pod, one node, and a second pod that would take the capacity as soon as it is released.
  StepResult BindOne() {
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 1));
    Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).Build());
    Put(PodBuilder("ns", "other").Queue("q").Gpus(1).Created(2).Build());
    StepResult result = Step(1);
    EXPECT_EQ(Of<model::BindPod>(result).size(), 1u);
    return result;
  }
};

TEST_F(AnswersTest, RefusalAfterAnUnknownOutcomeMayBeOurOwnDoing) {
  options_.hook.enabled = false;
  Restart();
  StepResult result = BindOne();
  AnswerThe<model::BindPod>(result, absl::DeadlineExceededError("no answer"));
  (void)Step(1);
  result = Step(2);
  ASSERT_EQ(Of<model::BindPod>(result).size(), 1u);
  // If the first request was carried out, the API server answers the second like this.
  AnswerThe<model::BindPod>(result, absl::FailedPreconditionError("409: already assigned"));
  std::set<std::string> bound;
  for (absl::Time now = At(2); now < At(300);) {
    result = StepAt(now);
    for (const auto& bind : Of<model::BindPod>(result)) bound.insert(bind.name);
    AnswerThe<model::BindPod>(result, absl::FailedPreconditionError("409: already assigned"));
    // The step at that instant takes the answer.
    ASSERT_GE(result.wake_at, now);
    now = std::max(now + absl::Milliseconds(10), std::min(result.wake_at, now + absl::Minutes(1)));
  }
  EXPECT_EQ(bound, std::set<std::string>{"p"}) << "its room was given to another pod";
  // The watch decides: the binding was carried out.
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).On("n").Build());
  EXPECT_TRUE(Of<model::BindPod>(Step(301)).empty());
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  const auto next = Of<model::BindPod>(Step(302));
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].name, "other");
}

TEST_F(AnswersTest, UnknownBindingToANodeThatIsGoneIsGivenUp) {
  options_.hook.enabled = false;
  Restart();
  StepResult result = BindOne();
  AnswerThe<model::BindPod>(result, absl::UnavailableError("no answer"));
  loop_->Apply(model::Delete{model::Kind::kNode, "", "n", "uid-n"});
  (void)Step(1);
  EXPECT_TRUE(Of<model::BindPod>(Step(2)).empty());
  Put(MakeNode("n2", 2));
  std::map<std::string, std::string> bound;
  for (const auto& bind : Of<model::BindPod>(Step(3))) bound[bind.name] = bind.node;
  EXPECT_EQ(bound, (std::map<std::string, std::string>{{"p", "n2"}, {"other", "n2"}}));
}

// The loop learns the time from Step alone: a pause after a late answer must not be counted from
// the step before it.
TEST_F(AnswersTest, PauseAfterALateAnswerCountsFromTheAnswer) {
  options_.hook.enabled = false;
  Restart();
  StepResult result = BindOne();
  AnswerThe<model::BindPod>(result, absl::UnavailableError("timed out after a minute"));
  result = Step(61);
  EXPECT_TRUE(Of<model::BindPod>(result).empty()) << "asked again without any pause";
  EXPECT_EQ(result.wake_at, At(62));
  EXPECT_EQ(Of<model::BindPod>(Step(62)).size(), 1u);
  // Now with a refusal.
  Restart();
  result = BindOne();
  AnswerThe<model::BindPod>(result, absl::FailedPreconditionError("409"));
  result = Step(61);
  for (const auto& bind : Of<model::BindPod>(result)) EXPECT_EQ(bind.name, "other");
}

TEST_F(AnswersTest, EvictionOfUnknownOutcomeIsRetriedAndNoOtherPodGoes) {
  SyncAll();
  Put(MakeQueue("low", "", 0, kUnlimited));
  Put(MakeQueue("high", "", 4, kUnlimited));
  for (int i = 0; i < 2; ++i) {
    Put(MakeNode(absl::StrCat("n", i), 1));
    Put(PodBuilder("ns", absl::StrCat("v", i))
            .Queue("low")
            .Gpus(1)
            .On(absl::StrCat("n", i))
            .Build());
  }
  Put(PodBuilder("ns", "p").Queue("high").Gpus(1).Created(5).Build());
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::EvictPod>(result).size(), 1u);
  const std::string victim = Of<model::EvictPod>(result)[0].name;
  for (int at = 2; at < 20; ++at) {
    AnswerThe<model::EvictPod>(result, absl::UnavailableError("no answer"));
    // Younger pods come to run: victims that would be chosen now.
    const std::string node = absl::StrCat("m", at);
    Put(MakeNode(node, 1));
    Put(PodBuilder("ns", absl::StrCat("w", at)).Queue("low").Gpus(1).Created(at).On(node).Build());
    result = Step(at);
    for (const auto& evict : Of<model::EvictPod>(result)) EXPECT_EQ(evict.name, victim);
  }
}

TEST_F(AnswersTest, FailedVerdictWriteWakesTheLoopAndIsMadeAgain) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  for (const absl::Status& failure :
       {absl::UnavailableError("lost"), absl::InternalError("500"),
        absl::ResourceExhaustedError("429"), absl::FailedPreconditionError("409: conflict")}) {
    SCOPED_TRACE(failure.ToString());
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 0));
    Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
    StepResult result = Step(1);
    ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
    absl::Duration former = absl::ZeroDuration();
    absl::Time now = At(1);
    for (int attempt = 0; attempt < 5; ++attempt) {
      AnswerThe<model::SetPodUnschedulable>(result, failure);
      result = StepAt(now);
      EXPECT_TRUE(result.actions.empty()) << "no pause";
      ASSERT_LT(result.wake_at, absl::InfiniteFuture());
      const absl::Duration pause = result.wake_at - now;
      EXPECT_GT(pause, former) << "the pause grows";
      former = pause;
      now = result.wake_at;
      result = StepAt(now);
      ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
    }
    AnswerAll(result);
    EXPECT_EQ(Step(1000).wake_at, absl::InfiniteFuture());
  }
}

TEST_F(AnswersTest, FailedClearingOfAGroupIsMadeAgain) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(MakeNode("n", 8));
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  Put(group);
  Put(PodBuilder("ns", "g0").Group("g").Gpus(1).Build());
  AnswerAll(Step(1));
  group.schedulability_hash = "as written";
  Put(group);
  Put(MakeQueue("q", "", kUnlimited, 8));
  AnswerAll(Step(2));
  Put(PodBuilder("ns", "g0").Group("g").Gpus(1).On("n").Build());
  StepResult result = Step(2);
  ASSERT_EQ(Of<model::SetPodGroupSchedulability>(result).size(), 1u);
  AnswerThe<model::SetPodGroupSchedulability>(result, absl::UnavailableError("lost"));
  result = Step(2);
  ASSERT_LE(result.wake_at, At(4));
  result = StepAt(result.wake_at);
  ASSERT_EQ(Of<model::SetPodGroupSchedulability>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodGroupSchedulability>(result)[0].schedulability_json, "");
  AnswerAll(result);
  group.schedulability_hash.clear();
  Put(group);
  EXPECT_TRUE(Step(100).actions.empty());
}

// Other autoscalers act on the reason: it must follow the switch of the hook, although the verdict
// is unchanged.
// The write of a group's verdict was done and its answer lost; until the repetition is due the
// group has come to the front of its queue.
TEST_F(AnswersTest, AVerdictThatTheWatchShowsIsNotWrittenAgain) {
  options_.hook.enabled = false;
  for (const bool seen : {true, false}) {
    SCOPED_TRACE(seen ? "the watch shows it" : "the watch does not show it");
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 1));
    Put(MakeGroup("ns", "first", "q", 2));
    model::PodGroup group = MakeGroup("ns", "g", "q", 2);
    group.meta.creation = At(1);
    Put(group);
    for (int i = 0; i < 2; ++i) {
      Put(PodBuilder("ns", absl::StrCat("first", i)).Group("first").Gpus(1).Build());
      Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Created(1).Build());
    }
    StepResult result = Step(1);
    const auto writes = Of<model::SetPodGroupSchedulability>(result);
    ASSERT_EQ(writes.size(), 2u);
    ASSERT_EQ(writes[1].name, "g");
    EXPECT_TRUE(absl::StrContains(writes[1].schedulability_json, "\"position\":2"));
    AnswerThe<model::SetPodGroupSchedulability>(result, absl::UnavailableError("lost"));
    // Another verdict, and the first one again, but for the position.
    Put(MakeQueue("q", "", kUnlimited, 0));
    AnswerAll(Step(1));
    for (int i = 0; i < 2; ++i) {
      loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("first", i), ""});
    }
    loop_->Apply(model::Delete{model::Kind::kPodGroup, "ns", "first", ""});
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    if (seen) {
      group.schedulability_hash = model::VerdictHashOf(writes[1].schedulability_json);
      Put(group);
    }
    AnswerAll(Step(1));
    size_t again = 0;
    for (int64_t at = 2; at < 10; ++at) {
      result = Step(at);
      again += Of<model::SetPodGroupSchedulability>(result).size();
      AnswerAll(result);
    }
    EXPECT_EQ(again, seen ? 0u : 1u);
  }
}

TEST_F(AnswersTest, ReasonFollowsTheSwitchOfTheHook) {
  model::Pod pod = PodBuilder("ns", "p").Queue("high").Gpus(1).Created(5).Build();
  model::Pod victim = PodBuilder("ns", "v").Queue("low").Gpus(1).On("n").Build();
  const auto world = [&] {
    SyncAll();
    Put(MakeQueue("low", "", 0, kUnlimited));
    Put(MakeQueue("high", "", 4, kUnlimited));
    Put(MakeNode("n", 1));
    Put(victim);
    Put(pod);
  };
  std::vector<std::string> reasons;
  for (const bool hook_on : {false, true, true, false, false}) {
    options_.hook.enabled = hook_on;
    Restart();
    world();
    auto writes = Of<model::SetPodUnschedulable>(Step(1));
    if (writes.empty()) writes = Of<model::SetPodUnschedulable>(Step(3));  // it was put off
    reasons.push_back(writes.empty() ? "" : writes[0].reason);
    if (writes.empty()) continue;
    pod.meta.annotations.Set(model::kVerdictAnnotation, writes[0].verdict_json);
    pod.scheduled = {"False", writes[0].reason};
    pod.nominated_node_name = writes[0].nominated_node;
    victim.meta.deletion = At(1);  // it was evicted by the first process
  }
  EXPECT_EQ(reasons, (std::vector<std::string>{"Unschedulable", "WaitingForVictims", "",
                                               "Unschedulable", ""}));
}

// With the hook off a gang's pods have the reason that other autoscalers read; they must lose it
// when a policy holds the gang.
TEST_F(AnswersTest, PodsOfAGangAreToldWhenCapacityNoLongerHelps) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeGroup("ns", "g", "q", 2));
  for (int i = 0; i < 2; ++i) {
    Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Build());
  }
  StepResult result = Step(1);
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    EXPECT_EQ(write.reason, "Unschedulable");
  }
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result).size(), 2u);
  AnswerAll(result);
  Put(MakeQueue("q", "", kUnlimited, 1));
  result = Step(2);
  EXPECT_EQ(Of<model::SetPodGroupSchedulability>(result).size(), 1u);
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 2u);
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    EXPECT_EQ(write.reason, "QueueLimitReached");
  }
  AnswerAll(result);
  EXPECT_TRUE(Step(200).actions.empty());
}

}  // namespace
}  // namespace fairlead::core::testing
