// Pods with scheduling gates that want to know what they would cost (core/estimates.h).
#include "core/estimates.h"

#include <set>
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class EstimatesTest : public DecisionLoopTest {
 protected:
  EstimatesTest() {
    options_.emit_events = true;
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 1));  // one GPU
  }
  static PodBuilder Gated(const std::string& name, int64_t gpus) {
    return PodBuilder("ns", name)
        .Queue("q")
        .Gpus(gpus)
        .Gate("example.com/approval")
        .Annotation(model::kEstimateAnnotation, "true");
  }
  // The events of the step and the steps that it asks for at once.
  std::vector<std::string> Told(StepResult result) {
    std::vector<std::string> told;
    for (int i = 0; i < 10; ++i) {
      for (const auto& event : Of<model::EmitEvent>(result)) {
        if (event.reason != "NodeCostEstimate") continue;
        EXPECT_FALSE(event.warning);
        told.push_back(absl::StrCat(event.name, ": ", event.note));
      }
      EXPECT_THAT(Of<model::CreateNodeRequest>(result), IsEmpty());
      const auto writes = Of<model::SetPodUnschedulable>(result);
      for (const auto& write : writes) verdicts_[write.name] = write.verdict_json;
      AnswerAll(result);
      if (i == 9 || result.wake_at > now_) break;
      result = StepAt(now_);
    }
    return told;
  }
  std::vector<std::string> ToldAt(int64_t at) {
    now_ = At(at);
    return Told(StepAt(now_));
  }

  absl::Time now_;
  std::map<std::string, std::string> verdicts_;  // of pods, as written last
};

TEST_F(EstimatesTest, TheVerdictAndAnEventSayNodesAndPriceAndNothingIsBought) {
  Put(Gated("p", 4));
  EXPECT_THAT(ToldAt(1), ElementsAre("p: it would need 1 x gpu.large, $4.50 an hour"));
  EXPECT_THAT(verdicts_["p"], HasSubstr("\"code\":\"Gated\""));
  EXPECT_THAT(verdicts_["p"],
              HasSubstr("\"estimate\":\"it would need 1 x gpu.large, $4.50 an hour\""));
  // Said once.
  for (int at = 2; at < 300; at += 7) EXPECT_THAT(ToldAt(at), IsEmpty()) << at;
}

TEST_F(EstimatesTest, PodsThatDoNotAskAreToldNothing) {
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Gate("g"));
  Put(Gated("no", 1).Annotation(model::kEstimateAnnotation, "false"));
  EXPECT_THAT(ToldAt(1), IsEmpty());
  EXPECT_THAT(verdicts_["p"], Not(HasSubstr("estimate")));
}

TEST_F(EstimatesTest, WhatIsFreeCostsNothing) {
  Put(MakeNode("n", 1));
  Put(Gated("p", 1));
  EXPECT_THAT(ToldAt(1), ElementsAre("p: it would need no more nodes than there are"));
  // The room goes to another pod; the estimate follows within a minute.
  Put(PodBuilder("ns", "other").Scheduler("other").Gpus(1).On("n"));
  std::vector<std::string> told;
  for (int at = 2; at <= 70; ++at) {
    for (const std::string& text : ToldAt(at)) told.push_back(text);
  }
  EXPECT_THAT(told, ElementsAre("p: it would need 1 x gpu.small, $1.00 an hour"));
  EXPECT_THAT(verdicts_["p"], HasSubstr("it would need 1 x gpu.small"));
}

TEST_F(EstimatesTest, AChangeOfAmountsAloneIsWritten) {
  Put(Gated("p", 1));
  ToldAt(1);
  EXPECT_THAT(verdicts_["p"], HasSubstr("1 x gpu.small"));
  Put(MakeGroup("ns", "gang", "q", 3));
  for (int i = 0; i < 2; ++i) Put(Gated(absl::StrCat("g", i), 1).Group("gang"));
  EXPECT_THAT(ToldAt(2), IsEmpty());  // incomplete, and not gated
  Put(Gated("g2", 1).Group("gang"));
  EXPECT_THAT(ToldAt(3), ElementsAre("g0: it would need 3 x gpu.small, $3.00 an hour"));
  Put(Gated("g3", 1).Group("gang"));
  EXPECT_THAT(ToldAt(4), ElementsAre("g0: it would need 4 x gpu.small, $4.00 an hour"));
}

TEST_F(EstimatesTest, WishesAndTheirErrorsAreSaid) {
  Put(Gated("dear", 1).Annotation(model::kMaxCostAnnotation, "0.10"));
  model::Pod dear = Gated("dear", 1).Annotation(model::kMaxCostAnnotation, "0.10");
  std::vector<model::WishProblem> problems;
  dear.spec.wishes = model::ParseInstanceWishes(dear.meta.annotations, problems);
  Put(dear);
  EXPECT_THAT(ToldAt(1), ElementsAre(HasSubstr("dear: no nodes can be had for it now: the cheapest "
                                               "type that suits it (gpu.small) costs $1.00")));
  model::Pod wrong = Gated("wrong", 1);
  wrong.invalid = "metadata.annotations[x]: y";
  Put(wrong);
  EXPECT_THAT(ToldAt(2), IsEmpty());
  EXPECT_THAT(verdicts_["wrong"], HasSubstr("InvalidRequest"));
}

TEST_F(EstimatesTest, ThePodPricesCountAloneWhateverCapsAndLimitsSay) {
  options_.hook.cluster_gpu_limit = 0;
  Begin();
  for (int i = 0; i < 3; ++i) Put(Gated(absl::StrCat("p", i), 2));
  EXPECT_THAT(ToldAt(1), ElementsAre("p0: it would need 1 x gpu.large, $4.50 an hour",
                                     "p1: it would need 1 x gpu.large, $4.50 an hour",
                                     "p2: it would need 1 x gpu.large, $4.50 an hour"));
}

TEST_F(EstimatesTest, ManyDifferentPodsTakeSeveralSteps) {
  const int pods = 3 * Estimates::kMostPerStep;
  for (int i = 0; i < pods; ++i) Put(Gated(absl::StrCat("p", i), 1).Cpu(100 + i));
  now_ = At(1);
  StepResult result = StepAt(now_);
  EXPECT_LE(result.wake_at, now_);
  std::vector<std::string> told = Told(result);
  EXPECT_THAT(told, SizeIs(pods));
  EXPECT_EQ(std::set<std::string>(told.begin(), told.end()).size(), pods);
}

TEST_F(EstimatesTest, WithoutTheHookThereIsNone) {
  options_.hook.enabled = false;
  Begin();
  Put(Gated("p", 1));
  EXPECT_THAT(ToldAt(1), ElementsAre(HasSubstr("no estimate: the autoscaler is off")));
}

TEST_F(EstimatesTest, NodePoolsThatChangeAreReadAtOnce) {
  Put(Gated("p", 1));
  EXPECT_THAT(ToldAt(1), SizeIs(1));
  model::NodePool pool;
  pool.meta.name = "large";
  pool.meta.uid = "uid-pool";
  pool.instance_types = {"gpu.large"};
  Put(pool);
  EXPECT_THAT(ToldAt(2), ElementsAre("p: it would need 1 x gpu.large, $4.50 an hour"));
}

TEST_F(EstimatesTest, WithTheGateGoneThePodIsServedAsAnyOther) {
  Put(Gated("p", 1));
  ToldAt(1);
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Annotation(model::kEstimateAnnotation, "true"));
  EXPECT_THAT(Of<model::CreateNodeRequest>(Step(2)), SizeIs(1));
}

}  // namespace
}  // namespace fairlead::core::testing
