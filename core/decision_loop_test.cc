#include "core/decision_loop.h"

#include <map>
#include <string>

#include "core/decision_loop_testing.h"

namespace fairlead::core::testing {
namespace {

TEST_F(DecisionLoopTest, DecidesNothingBeforeEveryKindIsListed) {
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  for (model::Kind kind : model::kAllKinds) {
    EXPECT_TRUE(Step(1).actions.empty()) << model::KindName(kind);
    loop_->Apply(model::Synced{kind});
  }
  EXPECT_EQ(Of<model::BindPod>(Step(1)).size(), 1u);
}

TEST_F(DecisionLoopTest, BindsWithUidOnceAndTheEchoCostsNothing) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  const StepResult first = Step(1);
  const auto binds = Of<model::BindPod>(first);
  ASSERT_EQ(binds.size(), 1u);
  EXPECT_EQ(binds[0].uid, "uid-ns-p");
  EXPECT_EQ(binds[0].node, "n");
  EXPECT_TRUE(binds[0].annotations.Has(model::kLastStartAnnotation));
  EXPECT_EQ(binds[0].annotations.Get(model::kStartedUnderAnnotation), "q");
  EXPECT_FALSE(binds[0].annotations.Has(model::kVerdictAnnotation));
  EXPECT_EQ(first.actions.size(), 1u);
  AnswerAll(first);
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).On("n", model::PodPhase::kPending).Build());
  EXPECT_FALSE(Step(2).decided);
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).On("n").Build());
  EXPECT_FALSE(Step(3).decided);
}

TEST_F(DecisionLoopTest, ABindingSaysUnderWhichQueueThePodWasStarted) {
  SyncAll();
  Put(MakeQueue("dept", "", kUnlimited, kUnlimited));
  Put(MakeQueue("team", "dept", kUnlimited, kUnlimited));
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "a").Queue("team").Gpus(1).Created(1).Build());
  Put(PodBuilder("ns", "b").Queue("q").Gpus(1).Created(2).Build());
  Put(PodBuilder("ns", "c").Queue("team").Gpus(1).Created(3).Build());
  std::map<std::string, std::string> started;
  for (const auto& bind : Of<model::BindPod>(Step(1))) {
    started[bind.name] = std::string(bind.annotations.Get(model::kStartedUnderAnnotation));
  }
  EXPECT_EQ(started, (std::map<std::string, std::string>{
                         {"a", "dept/team"}, {"b", "q"}, {"c", "dept/team"}}));
}

TEST_F(DecisionLoopTest, ABindingSaysWhetherThePodWasStartedAsPreemptible) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  for (const bool preemptible : {true, false}) {
    for (const char* name : {"a", "b"}) {
      Put(PodBuilder("ns", absl::StrCat(name, preemptible))
              .Queue("q")
              .Gpus(1)
              .Preemptible(preemptible)
              // Tenants may write it, and a binding removes nothing.
              .Annotation(model::kStartedAsAnnotation, "non-preemptible")
              .Build());
    }
  }
  std::map<std::string, std::string> started;
  for (const auto& bind : Of<model::BindPod>(Step(1))) {
    started[bind.name] = std::string(bind.annotations.Get(model::kStartedAsAnnotation));
  }
  EXPECT_EQ(started, (std::map<std::string, std::string>{{"a0", "non-preemptible"},
                                                         {"a1", "preemptible"},
                                                         {"b0", "non-preemptible"},
                                                         {"b1", "preemptible"}}));
}

TEST_F(DecisionLoopTest, TellsHowMuchWaitsInItsQueues) {
  options_.evictions.max_in_flight = 1;
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 4));
  for (int i = 0; i < 4; ++i)
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(1).Build());
  const StepResult bound = Step(1);
  EXPECT_EQ(loop_->queue_sizes().in_flight, 4u);
  AnswerThe<model::BindPod>(bound, absl::UnavailableError("no connection"));
  Step(1);
  EXPECT_EQ(loop_->queue_sizes().in_flight, 0u);
  EXPECT_EQ(loop_->queue_sizes().retries, 4u);
  for (int i = 0; i < 4; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(1).On("n").Build());
  }
  Put(PodBuilder("ns", "urgent").Queue("q").Gpus(2).Priority("urgent", 100).Build());
  const StepResult evicted = Step(10);
  EXPECT_EQ(Of<model::EvictPod>(evicted).size(), 1u);
  EXPECT_EQ(loop_->queue_sizes().evictions_waiting, 1u);
  EXPECT_EQ(loop_->queue_sizes().retries, 0u);
  AnswerThe<model::SetPodUnschedulable>(Step(12), absl::UnavailableError("no connection"));
  Step(12);
  EXPECT_EQ(loop_->queue_sizes().retries, 1u);
}

// Agents write heartbeats into annotations of nodes all the time, also of those from the hook.
TEST_F(DecisionLoopTest, ANodesHeartbeatCostsNoCycle) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::Node foreign = MakeNode("foreign", 1);
  Put(foreign);
  Put(PodBuilder("ns", "runs").Queue("q").Gpus(1).On("foreign").Build());
  Put(PodBuilder("ns", "asks").Queue("q").Gpus(1).Build());
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 1u);
  AnswerAll(result);
  model::NodeRequest request(*created[0].request);
  request.meta.uid = "uid-request";
  request.meta.creation = At(1);
  Put(request);
  AnswerAll(Step(2));
  model::Node own = MakeNode(request.meta.name, 1);
  own.meta.labels.Set(model::kNodeRequestLabel, request.meta.name);
  Put(own);
  for (int at = 3; at < 6; ++at) AnswerAll(Step(at));
  const uint64_t cycles = loop_->stats().cycles;
  for (int beat = 0; beat < 5; ++beat) {
    for (model::Node* node : {&foreign, &own}) {
      node->meta.annotations.Set("node.alpha.kubernetes.io/ttl", absl::StrCat(beat));
      node->meta.resource_version = absl::StrCat(100 + beat);
      Put(*node);
    }
    AnswerAll(Step(6));
  }
  EXPECT_EQ(loop_->stats().cycles, cycles);
}

TEST_F(DecisionLoopTest, RefusedBindingIsDecidedAnewAfterItsBackoff) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  const StepResult first = Step(1);
  Answer(first, 0, absl::FailedPreconditionError("409"));
  const StepResult second = Step(1);
  EXPECT_TRUE(Of<model::BindPod>(second).empty());
  EXPECT_LE(second.wake_at, At(2));
  EXPECT_EQ(Of<model::BindPod>(Step(2)).size(), 1u);
}

TEST_F(DecisionLoopTest, BindingOfUnknownOutcomeKeepsItsRoomAndIsAskedAgain) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).Build());
  Put(PodBuilder("ns", "other").Queue("q").Gpus(1).Created(2).Build());
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::BindPod>(result).size(), 1u);
  for (size_t i = 0; i < result.actions.size(); ++i) {
    const bool bind = std::holds_alternative<model::BindPod>(result.actions[i].what);
    Answer(result, i, bind ? absl::UnavailableError("no answer") : absl::OkStatus());
  }
  EXPECT_TRUE(Of<model::BindPod>(Step(1)).empty());  // the answer's own time: a pause begins
  result = Step(2);
  const auto again = Of<model::BindPod>(result);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].name, "p");
  EXPECT_EQ(again[0].node, "n");
}

TEST_F(DecisionLoopTest, VerdictIsWrittenOnChangeOnlyAndTakenOffByTheBinding) {
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  const StepResult first = Step(1);
  const auto writes = Of<model::SetPodUnschedulable>(first);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].reason, "QueueLimitReached");
  EXPECT_NE(writes[0].message.find('q'), std::string::npos);
  EXPECT_NE(writes[0].verdict_json.find("\"QueueLimitReached\""), std::string::npos);
  AnswerAll(first);
  // The echo of our own write, then an unrelated node: no new write.
  model::Pod echo = PodBuilder("ns", "p").Queue("q").Gpus(1).Annotation(model::kVerdictAnnotation,
                                                                        writes[0].verdict_json);
  echo.scheduled = {"False", "QueueLimitReached"};
  Put(echo);
  Put(MakeNode("n2", 8));
  EXPECT_TRUE(Step(2).actions.empty());
  // A restart knows from the annotation that it has been written.
  Restart();
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(MakeNode("n", 8));
  Put(echo);
  SyncAll();
  EXPECT_TRUE(Step(3).actions.empty());
  // The limit is raised: the binding removes the verdict in the same write.
  Put(MakeQueue("q", "", kUnlimited, 4));
  const StepResult bound = Step(4);
  ASSERT_EQ(bound.actions.size(), 1u);
  const auto binds = Of<model::BindPod>(bound);
  ASSERT_EQ(binds.size(), 1u);
  ASSERT_TRUE(binds[0].annotations.Has(model::kVerdictAnnotation));
  EXPECT_EQ(binds[0].annotations.Get(model::kVerdictAnnotation), "");
}

TEST_F(DecisionLoopTest, OneVerdictAGangAndItIsClearedWhenTheGangRuns) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 1));
  Put(MakeNode("n", 8));
  Put(MakeGroup("ns", "g", "q", 3));
  for (int i = 0; i < 3; ++i)
    Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Build());
  const StepResult first = Step(1);
  EXPECT_EQ(first.actions.size(), 4u);
  const auto writes = Of<model::SetPodGroupSchedulability>(first);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].reason, "QueueLimitReached");
  for (const auto& write : Of<model::SetPodUnschedulable>(first)) {
    EXPECT_EQ(write.reason, "QueueLimitReached") << "each pod has the condition";
    EXPECT_EQ(write.verdict_json, "") << "and the group the verdict";
  }
  AnswerAll(first);
  Put(MakeQueue("q", "", kUnlimited, 8));
  const StepResult second = Step(2);
  EXPECT_EQ(Of<model::BindPod>(second).size(), 3u);
  EXPECT_TRUE(Of<model::SetPodGroupSchedulability>(second).empty()) << "they may be refused";
  AnswerAll(second);
  for (int i = 0; i < 3; ++i) {
    Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).On("n").Build());
  }
  const auto cleared = Of<model::SetPodGroupSchedulability>(Step(3));
  ASSERT_EQ(cleared.size(), 1u);
  EXPECT_EQ(cleared[0].schedulability_json, "");
}

TEST_F(DecisionLoopTest, WithoutTheHookCapacityIsWhatOtherAutoscalersUnderstandAndPolicyIsNot) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("free", "", kUnlimited, kUnlimited));
  Put(MakeQueue("closed", "", kUnlimited, 0));
  Put(PodBuilder("ns", "a").Queue("free").Gpus(1).Build());
  Put(PodBuilder("ns", "b").Queue("closed").Gpus(1).Build());
  std::map<std::string, std::string> reasons;
  for (const auto& write : Of<model::SetPodUnschedulable>(Step(1)))
    reasons[write.name] = write.reason;
  EXPECT_EQ(reasons, (std::map<std::string, std::string>{{"a", "Unschedulable"},
                                                         {"b", "QueueLimitReached"}}));
}

// ---- the built-in default queue

// A pod that names no queue.
model::Pod Nameless(absl::string_view name) { return PodBuilder("ns", name).Gpus(1).Build(); }

TEST_F(DecisionLoopTest, WithoutTheBuiltInQueueAPodThatNamesNoneWaits) {
  options_.builtin_default_queue = false;
  Restart();
  SyncAll();
  Put(MakeNode("n", 8));
  Put(Nameless("p"));
  const StepResult result = Step(1);
  EXPECT_TRUE(Of<model::BindPod>(result).empty());
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "QueueNotFound");
}

TEST_F(DecisionLoopTest, FirstPodRunsWithoutAnyQueueObject) {
  SyncAll();
  Put(MakeNode("n", 8));
  model::Pod pod = Nameless("p");
  pod.meta.labels.Set("kai.scheduler/preemptibility", "non-preemptible");
  Put(pod);
  EXPECT_EQ(Of<model::BindPod>(Step(1)).size(), 1u);
}

TEST_F(DecisionLoopTest, BuiltInDefaultQueueComesAndGoesWithItsObject) {
  SyncAll();
  Put(MakeNode("n", 8));
  // An object of that name overrides it: closed.
  Put(MakeQueue("default-queue", "", kUnlimited, 0));
  Put(Nameless("p"));
  StepResult result = Step(1);
  EXPECT_TRUE(Of<model::BindPod>(result).empty());
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "QueueLimitReached");
  AnswerAll(result);
  // Events of other queues do not restore it over the object.
  Put(MakeQueue("research", "", 4, kUnlimited));
  EXPECT_TRUE(Of<model::BindPod>(Step(2)).empty());
  loop_->Apply(model::Delete{model::Kind::kQueue, "", "default-queue", ""});
  EXPECT_EQ(Of<model::BindPod>(Step(3)).size(), 1u);
}

TEST_F(DecisionLoopTest, BesideOthersTheBuiltInQueueHasNoQuota) {
  SyncAll();
  Put(MakeNode("n", 8));
  Put(MakeQueue("research", "", 4, kUnlimited));
  model::Pod firm = Nameless("firm");
  firm.meta.labels.Set("kai.scheduler/preemptibility", "non-preemptible");
  Put(firm);
  Put(Nameless("p"));
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::BindPod>(result).size(), 1u);
  EXPECT_EQ(Of<model::BindPod>(result)[0].name, "p");
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "NonPreemptibleOverQuota");
  AnswerAll(result);
  // The last other queue goes: it is the only queue again.
  loop_->Apply(model::Delete{model::Kind::kQueue, "", "research", ""});
  EXPECT_EQ(Of<model::BindPod>(Step(2)).size(), 1u);
}

// ---- history

TEST_F(DecisionLoopTest, UsageThatMakesNoSenseIsRefused) {
  options_.engine.usage.emplace();
  options_.engine.usage->sample_interval = absl::Hours(1);  // longer than the staleness period
  EXPECT_EQ(DecisionLoop::Make(options_, &catalog_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DecisionLoopTest, UsageWakesTheLoopForItsNextSampleAlone) {
  options_.engine.usage.emplace();
  Restart();
  SyncAll();
  EXPECT_EQ(Step(1).wake_at, At(61));
  const StepResult early = Step(60);
  EXPECT_FALSE(early.decided);
  EXPECT_EQ(early.wake_at, At(61));
  EXPECT_EQ(Step(61).wake_at, At(121));
  options_.engine.usage.reset();
  Restart();
  SyncAll();
  EXPECT_EQ(Step(1).wake_at, absl::InfiniteFuture());
}

}  // namespace
}  // namespace fairlead::core::testing
