// What is written about bindings: the event that tells of one, and the repetitions of one that was
// put off.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BindingWritesTest : public NoHookTest {
 protected:
  BindingWritesTest() {
    options_.emit_events = true;
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 8));
  }
  static PodBuilder Pod(const std::string& name = "p") {
    PodBuilder pod("ns", name);
    pod.Queue("q").Gpus(1).Created(1);
    return pod;
  }
  // The notes of the events "Scheduled", which are answered as all else but bindings.
  std::vector<std::string> Told(const StepResult& result) {
    std::vector<std::string> notes;
    for (const auto& event : Of<model::EmitEvent>(result)) {
      if (event.reason == "Scheduled") notes.push_back(event.note);
    }
    return notes;
  }
  // Steps in [begin, end), each with this answer to each binding.
  std::vector<std::string> ToldUntil(int64_t begin, int64_t end, const absl::Status& answer) {
    std::vector<std::string> notes;
    for (int64_t at = begin; at < end; ++at) {
      const StepResult result = Step(at);
      for (std::string& note : Told(result)) notes.push_back(std::move(note));
      AnswerThe<model::BindPod>(result, answer);
    }
    return notes;
  }
};

constexpr char kAssigned[] = "Successfully assigned ns/p to n";

TEST_F(BindingWritesTest, ABindingIsToldWhenItIsDone) {
  Put(Pod().Build());
  const StepResult result = Step(1);
  ASSERT_THAT(BoundIn(result), ElementsAre("p"));
  EXPECT_THAT(Told(result), IsEmpty());
  AnswerAll(result);
  EXPECT_THAT(ToldUntil(2, 10, absl::OkStatus()), ElementsAre(kAssigned));
  Put(Pod().On("n").Build());
  EXPECT_THAT(ToldUntil(10, 20, absl::OkStatus()), IsEmpty());
}

TEST_F(BindingWritesTest, ARefusedBindingIsNotTold) {
  Put(Pod().Build());
  EXPECT_THAT(ToldUntil(1, 200, absl::PermissionDeniedError("webhook says no")), IsEmpty());
}

TEST_F(BindingWritesTest, ABindingThatTheWatchShowsIsToldOnce) {
  for (const bool echo_first : {true, false}) {
    for (const absl::Status& answer :
         {absl::OkStatus(), absl::UnavailableError("lost"), absl::NotFoundError("no pod")}) {
      if (!echo_first && !absl::IsUnavailable(answer)) continue;
      SCOPED_TRACE(absl::StrCat(echo_first, " ", answer.ToString()));
      Begin();
      Put(Pod().Build());
      const StepResult result = Step(1);
      ASSERT_THAT(BoundIn(result), ElementsAre("p"));
      if (echo_first) Put(Pod().On("n").Build());
      AnswerThe<model::BindPod>(result, answer);
      std::vector<std::string> told;
      if (!echo_first) {
        EXPECT_THAT(Told(Step(1)), IsEmpty());
        Put(Pod().On("n").Build());
      }
      EXPECT_THAT(ToldUntil(2, 100, absl::OkStatus()), ElementsAre(kAssigned));
    }
  }
}

TEST_F(BindingWritesTest, ABindingByAnotherSchedulerIsNotTold) {
  Put(MakeNode("other", 8));
  Put(Pod().NodeSelector("a", "b").Build());
  model::Node node = MakeNode("n", 8);
  node.meta.labels.Set("a", "b");
  Put(node);
  const StepResult result = Step(1);
  ASSERT_THAT(BoundIn(result), ElementsAre("p"));
  Put(Pod().NodeSelector("a", "b").On("other").Build());
  AnswerThe<model::BindPod>(result, absl::FailedPreconditionError("bound to node other"));
  EXPECT_THAT(ToldUntil(2, 100, absl::OkStatus()), IsEmpty());
}

// ---- bindings that the API server did not judge

TEST_F(BindingWritesTest, ABindingThatWasPutOffKeepsItsPlaceAndIsRepeated) {
  for (const absl::Status& status :
       {absl::AbortedError("429"), absl::CancelledError("not sent in time")}) {
    SCOPED_TRACE(status.ToString());
    Begin();
    Put(MakeNode("n", 1));
    Put(Pod().Build());
    Put(Pod("next").Created(2).Build());
    const StepResult first = Step(1);
    ASSERT_THAT(BoundIn(first), ElementsAre("p"));
    AnswerThe<model::BindPod>(first, status);
    const bool sent = absl::IsAborted(status);
    EXPECT_THAT(BoundIn(StepAt(At(1) + absl::Milliseconds(1))), SizeIs(sent ? 0 : 1));
    int again = sent ? 0 : 1;
    for (int at = 2; at < 5 && again == 0; ++at) {
      const StepResult result = Step(at);
      for (const std::string& name : BoundIn(result)) {
        EXPECT_EQ(name, "p");
        ++again;
      }
      if (again == 1) AnswerAll(result);
    }
    EXPECT_EQ(again, 1);
    EXPECT_EQ(loop_->MakeView(At(5)).waiting.size(), 1u) << "next; no refusal is told";
  }
}

TEST_F(BindingWritesTest, ABindingThatWasPutOffIsDecidedAgainIfItsNodeHasChanged) {
  for (const bool cordoned : {true, false}) {
    SCOPED_TRACE(cordoned);
    Begin();
    Put(Pod().Build());
    const StepResult first = Step(1);
    ASSERT_THAT(BoundIn(first), ElementsAre("p"));
    AnswerThe<model::BindPod>(first, absl::AbortedError("429"));
    Step(1);
    model::Node node = MakeNode("n", 8);
    if (cordoned) {
      node.unschedulable = true;
    } else {
      node.taints.push_back({"out", "", model::TaintEffect::kNoSchedule});
    }
    Put(node);
    for (int at = 2; at < 20; ++at) EXPECT_THAT(BoundIn(Step(at)), IsEmpty()) << at;
    Put(MakeNode("n", 8));
    EXPECT_THAT(BoundIn(Step(20)), ElementsAre("p"));
  }
}

TEST_F(BindingWritesTest, APartOfAGangThatWasPutOffIsNotBoundBelowItsMinimum) {
  Put(MakeGroup("ns", "g", "q", 2));
  for (const char* name : {"a", "b"}) {
    Put(PodBuilder("ns", name).Group("g").Gpus(1).Created(1).Build());
  }
  const StepResult first = Step(1);
  ASSERT_THAT(BoundIn(first), SizeIs(2));
  AnswerThe<model::BindPod>(first, absl::AbortedError("429"));
  Step(1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "a", ""});
  for (int at = 2; at < 20; ++at) EXPECT_THAT(BoundIn(Step(at)), IsEmpty()) << at;
}

// Nothing else happens after the binding: the row would stay until something does.
TEST_F(BindingWritesTest, ARefusalIsNotToldOfAPodThatIsBound) {
  for (const bool answered : {true, false}) {
    SCOPED_TRACE(answered);
    Begin();
    Put(MakeGroup("ns", "g", "q", 1));
    Put(PodBuilder("ns", "p").Group("g").Gpus(1).Created(1).Build());
    const StepResult first = Step(1);
    ASSERT_THAT(BoundIn(first), ElementsAre("p"));
    AnswerThe<model::BindPod>(first, absl::PermissionDeniedError("a webhook"));
    StepResult repeated;
    for (int at = 2; at < 100 && BoundIn(repeated).empty(); ++at) {
      repeated = Step(at);
      if (BoundIn(repeated).empty()) AnswerAll(repeated);
    }
    ASSERT_THAT(BoundIn(repeated), ElementsAre("p"));
    AnswerAll(Step(100));
    ASSERT_EQ(loop_->MakeView(At(100)).waiting.size(), 1u) << "refused, for all that is known";
    if (answered) AnswerAll(repeated);
    if (!answered) Put(PodBuilder("ns", "p").Group("g").Gpus(1).Created(1).On("n").Build());
    const StepResult last = StepAt(At(100) + absl::Milliseconds(1));
    EXPECT_THAT(loop_->MakeView(At(100)).waiting, IsEmpty());
    EXPECT_EQ(last.decided, true);
  }
}

TEST_F(BindingWritesTest, ABindingThatIsPutOffAgainAndAgainIsRefused) {
  Put(Pod().Build());
  int attempts = 0;
  bool told = false;
  for (int at = 1; at < 120; ++at) {
    const StepResult result = Step(at);
    attempts += static_cast<int>(BoundIn(result).size());
    for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
      told = told || write.reason == "BindingRefused";
    }
    AnswerThe<model::BindPod>(result, absl::AbortedError("429: too many requests"));
  }
  EXPECT_THAT(attempts, ::testing::AllOf(::testing::Ge(5), ::testing::Le(30)));
  EXPECT_TRUE(told);
}

// The refusals may be due to the first attempt: the pod keeps its place. What it waits for is told.
// A webhook refuses for ever what was in doubt first: nothing is written while it is, but then.
TEST_F(BindingWritesTest, APodWhoseBindingIsRefusedInDoubtIsToldWhenTheDoubtEnds) {
  Put(MakeNode("n", 8));
  Put(PodBuilder("ns", "p").Queue("q").Build());
  StepResult step = Step(0);
  ASSERT_THAT(BoundIn(step), ElementsAre("p"));
  AnswerThe<model::BindPod>(step, absl::UnavailableError("lost"));
  std::string told;
  for (int64_t i = 0; i < 60 && told.empty(); ++i) {
    step = Step(2 + 5 * i);
    for (const auto& write : Of<model::SetPodUnschedulable>(step)) told = write.reason;
    AnswerThe<model::BindPod>(step, absl::PermissionDeniedError("403"));
  }
  EXPECT_EQ(told, "BindingRefused");
}

TEST_F(BindingWritesTest, AGangWhoseBindingIsRefusedInDoubtIsTold) {
  Put(MakeGroup("ns", "g", "q", 1));
  Put(PodBuilder("ns", "p").Group("g").Gpus(1).Created(1).Build());
  AnswerThe<model::BindPod>(Step(1), absl::UnavailableError("503"));
  Put(PodBuilder("ns", "large").Queue("q").Gpus(8).Created(1).Build());
  bool told = false;
  for (int at = 2; at < 60; ++at) {
    const StepResult result = Step(at);
    for (const auto& write : Of<model::SetPodGroupSchedulability>(result)) {
      told = told || absl::StrContains(write.schedulability_json, "BindingRefused");
    }
    for (const std::string& pod : BoundIn(result)) EXPECT_EQ(pod, "p");
    AnswerThe<model::BindPod>(result, absl::PermissionDeniedError("403: no"));
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace fairlead::core::testing
