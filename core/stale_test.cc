// Kinds of objects with a watch that has been silent for too long: nothing is evicted, provisioned
// or removed because of data that may be out of date, and verdicts say so.
#include <string>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using StalePurchaseTest = PurchaseTest;

TEST_F(StalePurchaseTest, NothingIsBoughtUntilTheKindIsHeardOfAgain) {
  Morning();
  loop_->SetStale({model::Kind::kPod});
  StepResult result = Step(1);
  EXPECT_TRUE(result.decided);
  EXPECT_THAT(Of<model::CreateNodeRequest>(result), IsEmpty());
  std::string said;
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    if (write.name == "p0") said = write.verdict_json;
    if (write.name == "p2") {
      EXPECT_THAT(write.verdict_json, Not(HasSubstr("paused"))) << "policy holds it";
    }
  }
  EXPECT_THAT(said, HasSubstr("victions and provisioning are paused until the API server answers "
                              "again: Pod"));
  AnswerAll(result);
  for (int at = 2; at < 300; at += 10) {
    result = Step(at);
    EXPECT_THAT(Of<model::CreateNodeRequest>(result), IsEmpty());
    EXPECT_GT(result.wake_at, At(at)) << "it does not spin";
    AnswerAll(result);
  }
  loop_->SetStale({});
  result = Step(301);
  EXPECT_THAT(Of<model::CreateNodeRequest>(result), SizeIs(2));
}

TEST_F(StalePurchaseTest, NoNodeIsRemovedAndNoRequestRepeated) {
  Morning();
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_THAT(created, SizeIs(2));
  // The outcome of the creation stays open.
  AnswerThe<model::CreateNodeRequest>(result, absl::UnavailableError("no answer"));
  loop_->SetStale({model::Kind::kNode, model::Kind::kPod});
  for (int i = 0; i < 3; ++i) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", i), ""});
  }
  for (int at = 2; at < 1200; at += 20) {
    result = Step(at);
    EXPECT_THAT(Of<model::CreateNodeRequest>(result), IsEmpty());
    EXPECT_THAT(Of<model::DeleteNodeRequest>(result), IsEmpty());
    EXPECT_THAT(Of<model::LaunchNode>(result), IsEmpty());
    EXPECT_THAT(Of<model::TerminateNode>(result), IsEmpty());
    EXPECT_THAT(Of<model::SetNodeTaint>(result), IsEmpty());
    EXPECT_GT(result.wake_at, At(at)) << "it does not spin";
    AnswerAll(result);
  }
}

class StaleEvictionTest : public DecisionLoopTest {
 protected:
  // `poor` waits for two GPUs of its quota, which `rich` holds beyond its own.
  StaleEvictionTest() {
    options_.hook.enabled = false;
    Restart();
    SyncAll();
    Put(MakeQueue("rich", "", 2, kUnlimited));
    Put(MakeQueue("poor", "", 2, kUnlimited));
    Put(MakeNode("n1", 4));
    for (int i = 0; i < 4; ++i) {
      Put(PodBuilder("ns", absl::StrCat("r", i)).Queue("rich").Gpus(1).Created(i).On("n1").Build());
    }
    for (int i = 0; i < 2; ++i) {
      Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("poor").Gpus(1).Created(10 + i).Build());
    }
  }
};

TEST_F(StaleEvictionTest, NothingIsDecidedNorSent) {
  loop_->SetStale({model::Kind::kPod});
  for (int at = 20; at < 200; at += 20) {
    const StepResult result = Step(at);
    EXPECT_THAT(Of<model::EvictPod>(result), IsEmpty());
    AnswerAll(result);
  }
  loop_->SetStale({});
  EXPECT_THAT(Of<model::EvictPod>(Step(201)), SizeIs(2));
}

// Decided before, and waiting for their pace.
TEST_F(StaleEvictionTest, EvictionsThatWaitAreHeldBack) {
  options_.evictions.max_in_flight = 1;
  Restart();
  SyncAll();
  Put(MakeQueue("rich", "", 2, kUnlimited));
  Put(MakeQueue("poor", "", 2, kUnlimited));
  Put(MakeNode("n1", 4));
  for (int i = 0; i < 4; ++i) {
    Put(PodBuilder("ns", absl::StrCat("r", i)).Queue("rich").Gpus(1).Created(i).On("n1").Build());
  }
  for (int i = 0; i < 2; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("poor").Gpus(1).Created(10 + i).Build());
  }
  StepResult result = Step(20);
  ASSERT_THAT(Of<model::EvictPod>(result), SizeIs(1));
  AnswerAll(result);
  loop_->SetStale({model::Kind::kPod});
  for (int at = 21; at < 100; at += 10) {
    result = Step(at);
    EXPECT_THAT(Of<model::EvictPod>(result), IsEmpty());
    EXPECT_GT(result.wake_at, At(at)) << "it does not spin";
    AnswerAll(result);
  }
  loop_->SetStale({});
  EXPECT_THAT(Of<model::EvictPod>(Step(101)), SizeIs(1));
}

}  // namespace
}  // namespace fairlead::core::testing
