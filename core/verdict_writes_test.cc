// Which verdicts are written when: how many are unanswered at once, which go first, and what the
// watch proves about a write that failed.
#include <map>
#include <set>
#include <string>
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

}  // namespace
}  // namespace fairlead::core::testing
