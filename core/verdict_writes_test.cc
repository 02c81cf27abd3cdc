// Which verdicts are written when: how many are unanswered at once, which go first, and what the
// watch proves about a write that failed.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
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

class VerdictWritesTest : public DecisionLoopTest {
 protected:
  VerdictWritesTest() {
    options_.hook.enabled = false;
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 1));
  }
  static model::Pod Waiting(int number) {
    return PodBuilder("ns", absl::StrCat("p", number)).Queue("q").Gpus(2).Created(number).Build();
  }
  void ForgetQueue() { loop_->Apply(model::Delete{model::Kind::kQueue, "", "q", ""}); }
  // The pod as the API server has it after the write.
  static model::Pod Written(model::Pod pod, const model::SetPodUnschedulable& write) {
    pod.meta.annotations.Set(model::kVerdictAnnotation, write.verdict_json);
    pod.scheduled = {"False", write.reason};
    return pod;
  }
};

TEST_F(VerdictWritesTest, SoManyAreUnansweredAndAnswersMakePlace) {
  options_.verdicts_in_flight = 10;
  Begin();
  for (int i = 0; i < 35; ++i) Put(Waiting(i));
  std::map<std::string, int> written;
  std::vector<size_t> sent;
  StepResult result = Step(1);
  while (!result.actions.empty()) {
    const auto writes = Of<model::SetPodUnschedulable>(result);
    sent.push_back(writes.size());
    for (const auto& write : writes) ++written[write.name];
    EXPECT_EQ(loop_->queue_sizes().in_flight, writes.size());
    EXPECT_EQ(loop_->queue_sizes().verdicts_waiting, 35 - written.size());
    EXPECT_THAT(Step(1).actions, IsEmpty()) << "no place is free";
    AnswerAll(result);
    result = Step(1);
  }
  EXPECT_THAT(sent, ElementsAre(10, 10, 10, 5));
  EXPECT_THAT(written, SizeIs(35));
  EXPECT_EQ(loop_->queue_sizes().in_flight, 0u);
}

TEST_F(VerdictWritesTest, ANewPodIsToldBeforeTheVerdictsOfManyHaveChanged) {
  options_.verdicts_in_flight = 4;
  Begin();
  for (int i = 0; i < 100; ++i) Put(Waiting(i));
  StepResult result;
  for (int i = 0; i < 30; ++i) {
    result = Step(1);
    AnswerAll(result);
  }
  ForgetQueue();
  result = Step(2);
  EXPECT_THAT(Of<model::SetPodUnschedulable>(result), SizeIs(4));
  Put(PodBuilder("ns", "new").Queue("nowhere").Gpus(1).Build());
  AnswerAll(result);
  result = Step(3);
  std::set<std::string> names;
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) names.insert(write.name);
  EXPECT_THAT(names, SizeIs(4));
  EXPECT_TRUE(names.contains("new"));
}

TEST_F(VerdictWritesTest, AVerdictThatChangesBackWhileItWaitsIsNotWritten) {
  options_.verdicts_in_flight = 1;
  Begin();
  for (int i = 0; i < 3; ++i) Put(Waiting(i));
  for (int i = 0; i < 5; ++i) AnswerAll(Step(1));
  ForgetQueue();
  StepResult result = Step(2);
  ASSERT_THAT(Of<model::SetPodUnschedulable>(result), SizeIs(1));
  Put(MakeQueue("q", "", kUnlimited, 1));
  int writes = 0;
  for (int at = 3; at < 10; ++at) {
    AnswerAll(result);
    result = Step(at);
    writes += static_cast<int>(Of<model::SetPodUnschedulable>(result).size());
  }
  EXPECT_EQ(writes, 1) << "the one that was written";
}

TEST_F(VerdictWritesTest, WhatTheWatchShowsOfAFailedWriteIsNotWrittenAgain) {
  Put(Waiting(0));
  StepResult result = Step(1);
  ASSERT_THAT(Of<model::SetPodUnschedulable>(result), SizeIs(1));
  AnswerAll(result);  // the watch has not shown it yet
  ForgetQueue();
  result = Step(2);
  const auto second = Of<model::SetPodUnschedulable>(result);
  ASSERT_THAT(second, SizeIs(1));
  AnswerThe<model::SetPodUnschedulable>(result, absl::UnavailableError("lost"));
  Step(2);
  Put(Written(Waiting(0), second[0]));
  for (int at = 2; at < 100; ++at) EXPECT_THAT(Step(at).actions, IsEmpty()) << at;
}

TEST_F(VerdictWritesTest, AFailedWriteOfAnEarlierValueIsRepeatedAlthoughTheWatchShowsThatValue) {
  Put(Waiting(0));
  StepResult result = Step(1);
  const auto first = Of<model::SetPodUnschedulable>(result);
  ASSERT_THAT(first, SizeIs(1));
  AnswerAll(result);
  ForgetQueue();
  result = Step(2);
  ASSERT_THAT(Of<model::SetPodUnschedulable>(result), SizeIs(1));
  AnswerAll(result);
  Put(MakeQueue("q", "", kUnlimited, 1));
  result = Step(3);
  ASSERT_THAT(Of<model::SetPodUnschedulable>(result), SizeIs(1));
  AnswerThe<model::SetPodUnschedulable>(result, absl::UnavailableError("lost"));
  Step(3);
  Put(Written(Waiting(0), first[0]));  // the watch is late: the second write is to follow
  int again = 0;
  for (int at = 3; at < 10; ++at) {
    result = Step(at);
    again += static_cast<int>(Of<model::SetPodUnschedulable>(result).size());
    AnswerAll(result);
  }
  EXPECT_EQ(again, 1);
}

// The former verdict is the desired one again while the write of another is in flight.
class FormerVerdictTest : public VerdictWritesTest {
 protected:
  // Waits with one verdict, whose write is answered so, and is shown if `shown`; then a write of
  // another is in flight.
  void WriteTwo(const absl::Status& answer, bool shown) {
    Begin();
    Put(Waiting(0));
    StepResult result = Step(1);
    const auto writes = Of<model::SetPodUnschedulable>(result);
    ASSERT_THAT(writes, SizeIs(1));
    former_ = writes[0];
    AnswerThe<model::SetPodUnschedulable>(result, answer);
    if (shown) Put(Written(Waiting(0), former_));
    ForgetQueue();
    in_flight_ = Step(2);
    for (int at = 3; Of<model::SetPodUnschedulable>(in_flight_).empty() && at < 9; ++at) {
      in_flight_ = Step(at);
    }
    ASSERT_THAT(Of<model::SetPodUnschedulable>(in_flight_), SizeIs(1));
  }
  // The writes that bring the former verdict back after this answer.
  int WritesAfter(const absl::Status& answer) {
    Put(MakeQueue("q", "", kUnlimited, 1));
    for (int at = 10; at < 20; ++at) EXPECT_THAT(Step(at).actions, IsEmpty());
    AnswerThe<model::SetPodUnschedulable>(in_flight_, answer);
    int writes = 0;
    for (int at = 20; at < 100; ++at) {
      const StepResult result = Step(at);
      for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
        EXPECT_EQ(write.verdict_json, former_.verdict_json);
        ++writes;
      }
      AnswerAll(result);
    }
    return writes;
  }
  model::SetPodUnschedulable former_;
  StepResult in_flight_;
};

TEST_F(FormerVerdictTest, IsWrittenAgainUnlessTheOtherWasRefused) {
  const std::vector<std::pair<absl::Status, int>> cases = {
      {absl::OkStatus(), 1},
      {absl::UnavailableError("lost"), 1},
      {absl::CancelledError("not sent in time"), 0},
      {absl::InternalError("refused"), 0},
  };
  for (const auto& [answer, writes] : cases) {
    for (const bool shown : {true, false}) {
      SCOPED_TRACE(absl::StrCat(answer.ToString(), shown ? ", shown" : ", not shown yet"));
      WriteTwo(absl::OkStatus(), shown);
      EXPECT_EQ(WritesAfter(answer), writes);
    }
  }
}

TEST_F(FormerVerdictTest, IsWrittenAgainIfItsOwnWriteIsInDoubt) {
  WriteTwo(absl::UnavailableError("lost"), /*shown=*/false);
  EXPECT_EQ(WritesAfter(absl::InternalError("refused")), 1);
}

TEST_F(VerdictWritesTest, TheFirstVerdictIsRepeatedUntilItIsAccepted) {
  Put(Waiting(0));
  int writes = 0;
  for (int at = 1; at < 100; ++at) {
    const StepResult result = Step(at);
    const bool sent = !Of<model::SetPodUnschedulable>(result).empty();
    if (sent) {
      AnswerThe<model::SetPodUnschedulable>(
          result, ++writes < 4 ? absl::InternalError("refused") : absl::OkStatus());
    }
  }
  EXPECT_EQ(writes, 4);
}

// ---- conditions of groups' pods: 32 at once, then 100 a second

class GroupConditionsTest : public VerdictWritesTest {
 protected:
  void PutGroup(const std::string& name, int64_t created, const std::string& queue = "q") {
    Put(MakeGroup("ns", absl::StrCat("g-", name), queue, 1));
    Put(PodBuilder("ns", name).Group(absl::StrCat("g-", name)).Gpus(2).Created(created).Build());
  }
  // The pods whose conditions are written until `end`, in order; `between` runs before each step.
  std::vector<std::string> WrittenUntil(absl::Time end, const std::function<void()>& between) {
    std::vector<std::string> written;
    for (; now_ < end; now_ += absl::Milliseconds(50)) {
      between();
      const StepResult result = StepAt(now_);
      for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
        written.push_back(write.name);
        reasons_[write.name] = write.reason;
      }
      AnswerAll(result);
    }
    return written;
  }
  absl::Time now_ = At(1);
  std::map<std::string, std::string> reasons_;
};

TEST_F(GroupConditionsTest, ThoseThatWaitForTheirPaceComeBeforeThoseThatArriveLater) {
  for (int i = 0; i < 150; ++i) PutGroup(absl::StrCat("old", i), i);
  int arrived = 0;
  // More arrive than may be written.
  const std::vector<std::string> written = WrittenUntil(At(4), [&] {
    for (int i = 0; i < 10; ++i, ++arrived) PutGroup(absl::StrCat("late", arrived), 1000 + arrived);
  });
  EXPECT_THAT(written, SizeIs(::testing::AllOf(::testing::Ge(300u), ::testing::Le(332u))));
  size_t old = 0, last_old = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    if (!written[i].starts_with("old")) continue;
    ++old;
    last_old = i;
  }
  EXPECT_EQ(old, 150u);
  EXPECT_LT(last_old, 160u) << "ten came with the last of them";
  EXPECT_THAT(std::set<std::string>(written.begin(), written.end()), SizeIs(written.size()));
}

TEST_F(GroupConditionsTest, OneThatOtherAutoscalersActOnGoesAtOnce) {
  Put(MakeQueue("free", "", kUnlimited, kUnlimited));
  for (int i = 0; i < 300; ++i) PutGroup(absl::StrCat("p", i), i);
  EXPECT_LE(WrittenUntil(At(2), [] {}).size(), 132u);
  ASSERT_FALSE(reasons_.contains("p299")) << "it waits for its pace";
  PutGroup("p299", 299, "free");  // no limit holds it now: a node is missing
  const std::vector<std::string> written = WrittenUntil(now_ + absl::Milliseconds(100), [] {});
  EXPECT_THAT(written, ::testing::Contains("p299"));
  EXPECT_EQ(reasons_["p299"], "Unschedulable");
  WrittenUntil(At(6), [] {});
  EXPECT_THAT(reasons_, SizeIs(300)) << "no other is forgotten";
}

// The retry of another condition of its group found nothing to do.
TEST_F(GroupConditionsTest, AConditionThatFailsAfterTheRetryOfAnotherIsWrittenAgain) {
  Put(MakeGroup("ns", "g", "q", 1));
  for (const char* name : {"a", "b"}) {
    Put(PodBuilder("ns", name).Group("g").Gpus(2).Created(1).Build());
  }
  const StepResult first = Step(1);
  ASSERT_THAT(Of<model::SetPodUnschedulable>(first), SizeIs(2));
  size_t late = first.actions.size();
  for (size_t i = 0; i < first.actions.size(); ++i) {
    const auto* write = std::get_if<model::SetPodUnschedulable>(&first.actions[i].what);
    const bool gone = write != nullptr && write->name == "a";
    if (write != nullptr && !gone) late = i;
    if (late != i) Answer(first, i, gone ? absl::NotFoundError("a") : absl::OkStatus());
  }
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "a", "uid-ns-a"});
  for (int at = 1; at < 10; ++at) {
    const StepResult result = Step(at);
    EXPECT_THAT(Of<model::SetPodUnschedulable>(result), IsEmpty()) << at;
    AnswerAll(result);
  }
  Answer(first, late, absl::DeadlineExceededError("no answer"));
  std::vector<std::string> written;
  for (int at = 16; at < 30; ++at) {
    const StepResult result = Step(at);
    for (const auto& write : Of<model::SetPodUnschedulable>(result)) written.push_back(write.name);
    AnswerAll(result);
  }
  EXPECT_THAT(written, ElementsAre("b"));
}

// What the watch shows before the answer calls for no decision, and for a look at the conditions.
TEST_F(GroupConditionsTest, AnAnswerAfterAChangeThatCallsForNoDecisionLeavesNothingBehind) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  Put(group);
  Put(PodBuilder("ns", "p").Group("g").Gpus(2).Created(1).Build());
  const StepResult first = Step(1);
  ASSERT_THAT(Of<model::SetPodGroupSchedulability>(first), SizeIs(1));
  group.meta.annotations.Set(model::kLastStartAnnotation, "2026-11-01T00:00:00Z");
  Put(group);
  AnswerAll(first);
  const StepResult result = Step(2);
  EXPECT_FALSE(result.decided);
  EXPECT_EQ(loop_->queue_sizes().verdicts_waiting, 0u);
}

// A job that fails is made again and again, in a group that waits for days.
TEST_F(GroupConditionsTest, PodsThatAreGoneAreForgotten) {
  for (const bool group_exists : {true, false}) {
    SCOPED_TRACE(group_exists);
    Begin();
    if (group_exists) Put(MakeGroup("ns", "g", "q", 1));
    now_ = At(1);
    for (int i = 0; i < 300; ++i) {
      const std::string name = absl::StrCat("p", i);
      Put(PodBuilder("ns", name).Group("g").Gpus(2).Created(1).Build());
      EXPECT_THAT(WrittenUntil(now_ + absl::Seconds(1), [] {}), ::testing::Contains(name));
      if (i > 0) {
        loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", i - 1), ""});
      }
      EXPECT_LE(loop_->queue_sizes().conditions_known, 9u) << i;
    }
  }
}

// Pods come and go while the others wait for their turn.
TEST_F(GroupConditionsTest, EveryPodOfALargeGangHasItsConditionOnce) {
  Put(MakeGroup("ns", "g", "q", 1));
  const auto put = [&](int number) {
    Put(PodBuilder("ns", absl::StrCat("p", number)).Group("g").Gpus(2).Created(number % 7).Build());
  };
  for (int i = 0; i < 1000; ++i) put(i);
  int changes = 0;
  const std::vector<std::string> written = WrittenUntil(At(16), [&] {
    if (now_ > At(5) || ++changes % 10 != 0) return;
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", 500 + changes / 10), ""});
    put(1000 + changes / 10);
  });
  const std::set<std::string> names(written.begin(), written.end());
  EXPECT_EQ(names.size(), written.size()) << "none is written twice";
  for (int i = 0; i < 1000; ++i) {
    if (i > 500 && i <= 500 + changes / 10) continue;
    EXPECT_TRUE(names.contains(absl::StrCat("p", i))) << i;
  }
  for (int i = 1; i <= changes / 10; ++i) {
    EXPECT_TRUE(names.contains(absl::StrCat("p", 1000 + i))) << i;
  }
}

// ---- repetitions

// A webhook refuses all of them.
TEST_F(VerdictWritesTest, RepetitionsOfRefusedWritesHaveTheirPace) {
  for (int i = 0; i < 300; ++i) Put(Waiting(i));
  std::map<std::string, int> written;
  for (absl::Time now = At(0); now < At(600);) {
    const StepResult result = StepAt(now);
    const auto writes = Of<model::SetPodUnschedulable>(result);
    for (const auto& write : writes) ++written[write.name];
    if (now > At(60)) {
      EXPECT_LE(writes.size(), 6u) << now;
    }
    AnswerThe<model::SetPodUnschedulable>(result, absl::InvalidArgumentError("422"));
    now += absl::Milliseconds(100);
  }
  EXPECT_THAT(written, SizeIs(300));
  for (const auto& [name, count] : written) EXPECT_GE(count, 12) << name;
}

// ---- refreshes

TEST_F(GroupConditionsTest, RefreshesOfLonePodsTakeTurnsWithThoseOfGroups) {
  Put(MakeGroup("ns", "g", "q", 1));
  for (int i = 0; i < 40; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Group("g").Gpus(2).Created(i).Build());
  }
  Put(PodBuilder("ns", "lone").Queue("q").Gpus(2).Created(1000).Build());
  WrittenUntil(At(3), [] {});
  model::Queue queue = MakeQueue("q", "", kUnlimited, 1);
  queue.gpu.limit = 1500;  // the code stays, the limit in the message does not
  Put(queue);
  const std::vector<std::string> written = WrittenUntil(At(13), [] {});
  EXPECT_THAT(written, SizeIs(::testing::Ge(36u)));
  const auto lone = std::find(written.begin(), written.end(), "lone");
  EXPECT_LE(lone - written.begin(), 4);
}

// Sentences change again and again while those before them wait for the pace.
TEST_F(GroupConditionsTest, WhatWaitsForItsPaceWaitsOnceHoweverOftenItChanges) {
  constexpr int64_t kGroups = 40;
  Put(MakeQueue("first", "", kUnlimited, 1));
  for (int64_t i = 0; i < kGroups; ++i) {
    PutGroup(absl::StrCat("first", i), i, "first");
    PutGroup(absl::StrCat("p", i), 100 + i);
  }
  WrittenUntil(At(5), [] {});
  model::Queue queue = MakeQueue("first", "", kUnlimited, 1);
  queue.gpu.limit = 1500;
  Put(queue);
  queue.meta.name = "q";
  WrittenUntil(At(8), [&] {
    queue.gpu.limit = queue.gpu.limit == 1000 ? 1500 : 1000;
    Put(queue);
    // The verdict of each group, and its pod's condition in two lanes.
    EXPECT_LE(loop_->queue_sizes().verdicts_waiting, 2 * kGroups * 3) << now_;
  });
  WrittenUntil(At(60), [] {});
  EXPECT_EQ(loop_->queue_sizes().verdicts_waiting, 0u);
}

// Other autoscalers provision for a pod that is promised no node.
TEST_F(VerdictWritesTest, AnotherPromisedNodeIsToldAtOnce) {
  for (int i = 0; i < 40; ++i) Put(Waiting(i));
  Put(MakeQueue("free", "", kUnlimited, kUnlimited));
  for (const char* node : {"a", "b"}) {
    Put(MakeNode(node, 1));
    Put(PodBuilder("ns", absl::StrCat("on-", node))
            .Queue("free")
            .Gpus(1)
            .On(node)
            .Deleting()
            .Build());
  }
  Put(PodBuilder("ns", "promised").Queue("free").Gpus(1).Build());
  const auto nominated = [](const StepResult& result) {
    std::string node = "none is written";
    for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
      if (write.name == "promised") node = write.nominated_node;
    }
    return node;
  };
  AnswerAll(Step(1));
  StepResult result = Step(3);
  const std::string first = nominated(result);
  ASSERT_THAT(first, ::testing::AnyOf("a", "b"));
  AnswerAll(result);
  model::Queue queue = MakeQueue("q", "", kUnlimited, 1);
  queue.gpu.limit = 1500;
  Put(queue);
  AnswerAll(Step(4));  // of 40 refreshes one goes
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("on-", first), ""});
  loop_->Apply(model::Delete{model::Kind::kNode, "", first, ""});
  EXPECT_EQ(nominated(Step(4)), first == "a" ? "b" : "a");
}

// A pod goes, and a group waits for its place: its verdict would be cleared at once.
class PutOffTest : public VerdictWritesTest {
 protected:
  PutOffTest() {
    Put(MakeQueue("free", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 1));
    Put(PodBuilder("ns", "goes").Queue("free").Gpus(1).On("n").Deleting().Build());
    Put(MakeGroup("ns", "g", "free", 1));
    Put(PodBuilder("ns", "waits").Group("g").Gpus(1).Build());
  }
  // How often it was written in a step.
  size_t Writes(int64_t at) {
    const StepResult result = Step(at);
    AnswerAll(result);
    return Of<model::SetPodGroupSchedulability>(result).size() +
           Of<model::SetPodUnschedulable>(result).size();
  }
};

TEST_F(PutOffTest, VerdictOfAGroupThatStartsSoonIsNotWritten) {
  EXPECT_EQ(Writes(1), 0u);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "goes", ""});
  const StepResult bound = Step(2);
  EXPECT_THAT(BoundIn(bound), SizeIs(1));
  AnswerAll(bound);
  Put(PodBuilder("ns", "waits").Group("g").Gpus(1).On("n").Build());
  for (int64_t at = 2; at < 30; ++at) EXPECT_EQ(Writes(at), 0u) << at;
}

TEST_F(PutOffTest, ItIsWrittenOnceItsTimeIsOver) {
  EXPECT_EQ(Writes(1), 0u);
  EXPECT_EQ(Step(2).wake_at, At(3));
  EXPECT_EQ(Writes(3), 2u);
  for (int64_t at = 4; at < 30; ++at) EXPECT_EQ(Writes(at), 0u) << at;
}

// The group had a verdict that was cleared, and waits again for the place of a pod of its own.
class PutOffAgainTest : public PutOffTest {
 protected:
  // `clear`: the answer to the removal of the verdict.
  void StartAndWaitAgain(const absl::Status& clear) {
    EXPECT_EQ(Writes(1), 0u);
    EXPECT_EQ(Writes(3), 2u) << "the verdict, and the condition of the pod";
    Start("goes", "waits", 4);
    const StepResult cleared = Step(5);
    ASSERT_THAT(Of<model::SetPodGroupSchedulability>(cleared), SizeIs(1));
    AnswerThe<model::SetPodGroupSchedulability>(cleared, clear);
    Put(PodBuilder("ns", "waits").Group("g").Gpus(1).On("n").Deleting().Build());
    Put(PodBuilder("ns", "again").Group("g").Gpus(1).Build());
  }
  // `pod` gets the place of the one that goes.
  void Start(const char* goes, const char* pod, int64_t at) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", goes, ""});
    const StepResult bound = Step(at);
    EXPECT_THAT(BoundIn(bound), SizeIs(1));
    AnswerAll(bound);
    Put(PodBuilder("ns", pod).Group("g").Gpus(1).On("n").Build());
  }
};

TEST_F(PutOffAgainTest, ItIsNotClearedTwice) {
  ASSERT_NO_FATAL_FAILURE(StartAndWaitAgain(absl::OkStatus()));
  EXPECT_EQ(Writes(5), 0u);
  Start("waits", "again", 6);
  for (int64_t at = 6; at < 30; ++at) EXPECT_EQ(Writes(at), 0u) << at;
}

TEST_F(PutOffAgainTest, ItIsClearedOnceMoreIfTheClearIsInDoubt) {
  ASSERT_NO_FATAL_FAILURE(StartAndWaitAgain(absl::UnavailableError("lost")));
  EXPECT_EQ(Writes(5), 0u);
  Start("waits", "again", 6);
  size_t writes = 0;
  for (int64_t at = 6; at < 30; ++at) writes += Writes(at);
  EXPECT_EQ(writes, 1u);
}

// What users have to mend is told at once.
TEST_F(PutOffTest, AnotherReasonIsNotPutOff) {
  EXPECT_EQ(Writes(1), 0u);
  Put(MakeQueue("free", "", kUnlimited, 0));
  EXPECT_EQ(Writes(2), 2u);
}

}  // namespace
}  // namespace fairlead::core::testing
