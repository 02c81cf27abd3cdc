// What users watch, as kube-scheduler has it: events, the conditions of pods, and metrics of
// decisions.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class EventsTest : public NoHookTest {};

// What was tried in vain is a warning, as in kube-scheduler. What is held back before, or passes by
// itself, is none.
TEST_F(EventsTest, WhatCannotBeScheduledIsAWarningAndSaysWhy) {
  options_.emit_events = true;
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 1));
  Put(PodBuilder("ns", "running").Queue("q").Gpus(1).On("n"));
  Put(MakeQueue("free", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "limited").Queue("q").Gpus(1).Build());
  Put(PodBuilder("ns", "greedy").Queue("q").Gpus(2).Build());
  Put(PodBuilder("ns", "lost").Queue("nowhere").Gpus(2).Build());
  Put(PodBuilder("ns", "large").Queue("free").Gpus(2).Scheduler("kai-scheduler").Build());
  model::Pod gated = PodBuilder("ns", "gated").Queue("free").Gpus(1).Build();
  gated.scheduling_gates = {"example.com/wait"};
  Put(gated);
  std::map<std::string, model::EmitEvent> events;
  for (const auto& event : Of<model::EmitEvent>(Step(1))) events[event.name] = event;
  ASSERT_EQ(events.size(), 5u);
  for (const auto& [name, event] : events) {
    const bool expected = name == "gated" || name == "limited";
    EXPECT_EQ(event.warning, !expected) << name;
    EXPECT_EQ(event.reason, name == "gated"     ? "Gated"
                            : name == "limited" ? "QueueLimitReached"
                                                : "FailedScheduling")
        << name;
    EXPECT_EQ(event.action, model::EventAction::kScheduling) << name;
    EXPECT_EQ(event.reporter, name == "large" ? "kai-scheduler" : model::kDefaultSchedulerName);
  }
  EXPECT_THAT(events["limited"].note, StartsWith("Queue q "));
  EXPECT_THAT(events["lost"].note, StartsWith("QueueNotFound: Queue nowhere does not exist."));
  EXPECT_THAT(events["gated"].note, StartsWith("The pod is held by scheduling gates"));
  EXPECT_THAT(events["large"].note,
              StartsWith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "));
  EXPECT_GE(loop_->stats().attempts.at(model::kDefaultSchedulerName).unschedulable, 1u);
  EXPECT_GE(loop_->stats().attempts.at("kai-scheduler").unschedulable, 1u);
  const Totals totals = loop_->Count();
  EXPECT_THAT(totals.unschedulable_pods,
              UnorderedElementsAre(
                  Pair(Pair("NodeResourcesFit", "kai-scheduler"), 1),
                  Pair(Pair("SchedulingGates", std::string(model::kDefaultSchedulerName)), 1)));
}

// The condition of a lone pod has kube-scheduler's text, of the moment of the verdict. Other
// numbers alone are no reason to write it again.
TEST_F(EventsTest, TheConditionTellsNodesAndIsNotWrittenForTheirNumber) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::Node tainted = MakeNode("n0", 8);
  tainted.taints = {{"team", "x", model::TaintEffect::kNoSchedule}};
  Put(tainted);
  Put(MakeNode("n1", 1));
  Put(PodBuilder("ns", "large").Queue("q").Gpus(2).Build());
  StepResult result = Step(1);
  const auto writes = Of<model::SetPodUnschedulable>(result);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].reason, "Unschedulable");
  EXPECT_EQ(writes[0].message,
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated "
            "taint(s).");
  AnswerAll(result);
  for (int i = 2; i < 5; ++i) Put(MakeNode(absl::StrCat("n", i), 1));
  for (int at = 2; at < 20; ++at) {
    result = Step(at);
    EXPECT_THAT(Of<model::SetPodUnschedulable>(result), IsEmpty());
    AnswerAll(result);
  }
  EXPECT_THAT(loop_->MakeView(At(20)).waiting.at(0).message,
              StartsWith("0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 "
                         "Insufficient nvidia.com/gpu. Smallest shortage on a node: 1 GPU. "
                         "TaintToleration: {team: x}. "));
}

// From the first step that knew of the pod, without the time that gates held it.
TEST_F(EventsTest, TheTimeToSchedulePodsIsCountedWithoutGates) {
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 4));
  model::Pod gated = PodBuilder("ns", "gated").Queue("q").Gpus(1).Build();
  gated.scheduling_gates = {"example.com/wait"};
  Put(gated);
  Put(PodBuilder("ns", "plain").Queue("q").Gpus(1).Build());
  AnswerAll(Step(10));
  (void)Step(13);
  EXPECT_EQ(loop_->stats().scheduling_latency_us.sum, 3'000'000);
  gated.scheduling_gates.clear();
  Put(gated);
  AnswerAll(Step(100));
  (void)Step(101);
  EXPECT_EQ(loop_->stats().scheduling_latency_us.sum, 4'000'000);
  int64_t pods = 0;
  for (const int64_t count : loop_->stats().scheduling_latency_us.counts) pods += count;
  EXPECT_EQ(pods, 2);
}

using VictimEventsTest = FullNodeTest;

// Each pod's event is told by its own scheduler, as kube-scheduler's events are.
TEST_F(VictimEventsTest, TheEventOfAVictimNamesWhatItMakesWayFor) {
  options_.emit_events = true;
  for (const bool group : {false, true}) {
    SCOPED_TRACE(group);
    Start(1, 1);
    if (group) {
      (void)loop_->Apply(model::Delete{model::Kind::kPod, "ns", "high", ""});
      Put(MakeGroup("ns", "train", "q", 1));
      Put(PodBuilder("ns", "high").Group("train").Gpus(1).Priority("high", 60).Created(99).Build());
    }
    const StepResult result = Step(1);
    ASSERT_THAT(Of<model::EvictPod>(result), SizeIs(1));
    AnswerAll(result);
    const StepResult after = Step(1);
    model::EmitEvent preempted;
    for (const auto& event : Of<model::EmitEvent>(after)) {
      if (event.reason == "Preempted") preempted = event;
    }
    EXPECT_EQ(preempted.name, "v0");
    EXPECT_FALSE(preempted.warning);
    EXPECT_EQ(preempted.action, model::EventAction::kPreempting);
    EXPECT_EQ(preempted.reporter, model::kDefaultSchedulerName);
    EXPECT_EQ(preempted.related->kind, group ? model::Kind::kPodGroup : model::Kind::kPod);
    EXPECT_EQ(preempted.related->ns, "ns");
    EXPECT_EQ(preempted.related->name, group ? "train" : "high");
    EXPECT_THAT(preempted.note,
                StartsWith(absl::StrCat("Preempted by ", group ? "pod group " : "pod ",
                                        preempted.related->uid, " on node n. ")));
    EXPECT_FALSE(preempted.related->uid.empty());
  }
}

// The victims are as important as the workload, so a search is made in vain.
TEST_F(VictimEventsTest, TheMessageSaysThatNoVictimsWereFound) {
  Start(1, 1);
  Put(PodBuilder("ns", "high").Queue("q").Gpus(1).Priority("low", 10).Created(99).Build());
  const auto writes = Of<model::SetPodUnschedulable>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].message,
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod.");
  EXPECT_GE(loop_->stats().preemption_attempts, 1u);
  EXPECT_EQ(loop_->stats().preemption_victims.sum, 0);
}

TEST_F(VictimEventsTest, SearchesAndVictimsAreCounted) {
  Start(3, 2);
  (void)Step(1);
  EXPECT_GE(loop_->stats().preemption_attempts, 1u);
  EXPECT_EQ(loop_->stats().preemption_victims.sum, 2);
  EXPECT_EQ(loop_->stats().preemption_victims.counts[1], 1) << "two victims of one search";
}

}  // namespace
}  // namespace fairlead::core::testing
