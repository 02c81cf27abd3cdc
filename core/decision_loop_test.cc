#include "core/decision_loop.h"

#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core {
namespace {

using model::Action;
using model::kUnlimited;
using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

constexpr char kCatalog[] = R"(
as_of: "2026-11"
source: made for this test
types:
- name: gpu.small
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 1.00}
- name: gpu.large
  cpu: 32
  memory: 128Gi
  gpu: {model: Test-GPU, count: 4, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 4.50}
)";

template <typename T>
std::vector<T> Of(const StepResult& result) {
  std::vector<T> found;
  for (const Action& action : result.actions) {
    if (const T* what = std::get_if<T>(&action.what)) found.push_back(*what);
  }
  return found;
}

class DecisionLoopTest : public testing::Test {
 protected:
  DecisionLoopTest() {
    auto catalog = hook::Catalog::Parse(kCatalog, "test.yaml");
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
    options_ = DefaultOptions();
    options_.emit_events = false;
    Restart();
  }
  // A new process: it knows what the API server has, and nothing else.
  void Restart() {
    auto loop = DecisionLoop::Make(options_, &catalog_);
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
  }
  void SyncAll() {
    for (model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  }
  template <typename T>
  void Put(const T& object) {
    loop_->Apply(model::Upsert{object});
  }
  StepResult Step(int64_t at) {
    StepResult result = loop_->Step(At(at));
    EXPECT_EQ(loop_->CheckConsistency(), "");
    return result;
  }
  void Answer(const StepResult& result, size_t index, const absl::Status& status) {
    loop_->Apply(model::ActionResult{result.actions[index].id, status});
  }
  void AnswerAll(const StepResult& result) {
    for (size_t i = 0; i < result.actions.size(); ++i) Answer(result, i, absl::OkStatus());
  }

  hook::Catalog catalog_;
  Options options_;
  std::unique_ptr<DecisionLoop> loop_;
};

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
  EXPECT_FALSE(binds[0].annotations.Has(model::kVerdictAnnotation));
  EXPECT_EQ(first.actions.size(), 1u);
  AnswerAll(first);
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).On("n", model::PodPhase::kPending).Build());
  EXPECT_FALSE(Step(2).decided);
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).On("n").Build());
  EXPECT_FALSE(Step(3).decided);
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
  EXPECT_NE(writes[0].message.find("q"), std::string::npos);
  EXPECT_NE(writes[0].verdict_json.find("\"QueueLimitReached\""), std::string::npos);
  AnswerAll(first);
  // The echo of our own write, then an unrelated node: no new write.
  model::Pod echo = PodBuilder("ns", "p").Queue("q").Gpus(1).Annotation(
      model::kVerdictAnnotation, writes[0].verdict_json);
  echo.scheduled = {"False", "QueueLimitReached"};
  Put(echo);
  Put(MakeNode("n2", 8));
  EXPECT_TRUE(Step(2).actions.empty());
  // A restart knows from the annotation that it has been said.
  Restart();
  Put(MakeQueue("q", "", kUnlimited, 0));
  Put(MakeNode("n", 8));
  Put(echo);
  SyncAll();
  EXPECT_TRUE(Step(3).actions.empty());
  // The limit is raised: the binding takes the verdict off in the same write.
  Put(MakeQueue("q", "", kUnlimited, 4));
  const StepResult bound = Step(4);
  ASSERT_EQ(bound.actions.size(), 1u);
  const auto binds = Of<model::BindPod>(bound);
  ASSERT_EQ(binds.size(), 1u);
  ASSERT_TRUE(binds[0].annotations.Has(model::kVerdictAnnotation));
  EXPECT_EQ(binds[0].annotations.Get(model::kVerdictAnnotation), "");
}

TEST_F(DecisionLoopTest, OneWriteAGangAndItIsClearedWhenTheGangRuns) {
  options_.hook.enabled = false;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, 1));
  Put(MakeNode("n", 8));
  Put(MakeGroup("ns", "g", "q", 3));
  for (int i = 0; i < 3; ++i) Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Build());
  const StepResult first = Step(1);
  EXPECT_EQ(first.actions.size(), 1u);
  const auto writes = Of<model::SetPodGroupSchedulability>(first);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].reason, "QueueLimitReached");
  AnswerAll(first);
  Put(MakeQueue("q", "", kUnlimited, 8));
  const StepResult second = Step(2);
  EXPECT_EQ(Of<model::BindPod>(second).size(), 3u);
  const auto cleared = Of<model::SetPodGroupSchedulability>(second);
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
  for (const auto& write : Of<model::SetPodUnschedulable>(Step(1))) reasons[write.name] = write.reason;
  EXPECT_EQ(reasons, (std::map<std::string, std::string>{{"a", "Unschedulable"},
                                                         {"b", "QueueLimitReached"}}));
}

class PurchaseTest : public DecisionLoopTest {
 protected:
  void Morning() {
    SyncAll();
    Put(MakeQueue("research", "", 4, 2));
    for (int i = 0; i < 3; ++i) {
      Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("research").Gpus(1).Created(i).Build());
    }
  }
  // What the API server has of a request after our writes.
  static model::NodeRequest Stored(model::NodeRequest request) {
    request.meta.uid = "uid-" + request.meta.name;
    request.meta.creation = At(1);
    return request;
  }
};

TEST_F(PurchaseTest, BuysForTwoUnderTheLimitAndNothingForTheThird) {
  Morning();
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);  // two of $1.00, not one of $4.50
  for (const auto& create : created) EXPECT_EQ(create.request.instance_type, "gpu.small");
  std::map<std::string, std::string> reasons;
  std::map<std::string, std::string> nominated;
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    reasons[write.name] = write.reason;
    nominated[write.name] = write.nominated_node;
  }
  EXPECT_EQ(reasons.at("p0"), "NodesRequested");
  EXPECT_EQ(reasons.at("p1"), "NodesRequested");
  EXPECT_EQ(reasons.at("p2"), "QueueLimitReached");
  EXPECT_NE(nominated.at("p0"), "");
  EXPECT_NE(nominated.at("p0"), nominated.at("p1"));
  EXPECT_EQ(nominated.at("p2"), "");
  // Nothing more is bought while nothing changes (I4), nor when an unrelated pod comes.
  AnswerAll(result);
  for (int at = 2; at < 20; ++at) {
    EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(at)).empty());
  }
}

TEST_F(PurchaseTest, RestartBuysNothingTwice) {
  Morning();
  const StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  Restart();
  for (const auto& create : created) Put(Stored(create.request));
  Morning();
  const StepResult after = Step(2);
  EXPECT_TRUE(Of<model::CreateNodeRequest>(after).empty());
  // The provider may not have heard of them: it is told again, which is harmless.
  EXPECT_EQ(loop_->MakeView(At(2)).gpus_held, 2);
}

TEST_F(PurchaseTest, NodeIsUsedWhenItsDevicesAreThereAndGivenBackWhenEmpty) {
  Morning();
  StepResult result = Step(1);
  const auto created = Of<model::CreateNodeRequest>(result);
  ASSERT_EQ(created.size(), 2u);
  AnswerAll(result);
  for (const auto& create : created) Put(Stored(create.request));
  auto launches = Of<model::LaunchNode>(result);
  result = Step(2);
  for (const auto& launch : Of<model::LaunchNode>(result)) launches.push_back(launch);
  AnswerAll(result);
  ASSERT_EQ(launches.size(), 2u);
  model::Node expected = launches[0].node;
  const std::string name = launches[0].request.meta.name;
  EXPECT_EQ(expected.meta.name, name);
  expected.meta.uid = "uid-node";
  expected.meta.labels.Set(model::kNodeRequestLabel, name);
  expected.meta.labels.Set(model::kInstanceTypeLabel, "gpu.small");
  expected.allocatable = {{"cpu", 8000}, {"memory", 32 * model::testing::kGiB}, {"pods", 110}};
  Put(expected);  // no GPU yet
  EXPECT_TRUE(Of<model::BindPod>(Step(3)).empty());
  expected.taints.clear();
  model::Set(expected.allocatable, model::kGpuName, 1000);
  Put(expected);
  result = Step(4);
  const auto binds = Of<model::BindPod>(result);
  ASSERT_EQ(binds.size(), 1u);
  EXPECT_EQ(binds[0].node, name);
  AnswerAll(result);

  // Everything goes away: both nodes are given back, the registered one after its taint is seen.
  for (int i = 0; i < 3; ++i) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", i), ""});
  }
  bool tainted = false;
  bool terminated = false;
  absl::Time now = At(5);
  for (int round = 0; round < 50 && !terminated; ++round) {
    result = loop_->Step(now);
    for (const auto& taint : Of<model::SetNodeTaint>(result)) {
      EXPECT_EQ(taint.taint.key, model::kRemovalTaint);
      EXPECT_TRUE(taint.present);
      tainted = true;
      expected.taints = {taint.taint};
      Put(expected);
    }
    for (const auto& terminate : Of<model::TerminateNode>(result)) {
      if (terminate.request_name == name) {
        EXPECT_TRUE(tainted) << "removed before its taint was seen";
        terminated = true;
      }
    }
    AnswerAll(result);
    now = std::max(now + absl::Seconds(1), std::min(result.wake_at, now + absl::Minutes(10)));
  }
  EXPECT_TRUE(terminated);
}

TEST_F(PurchaseTest, GpuCapIsACodeOfItsOwn) {
  options_.hook.cluster_gpu_limit = 1;
  Restart();
  Morning();
  std::map<std::string, std::string> reasons;
  const StepResult result = Step(1);
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) reasons[write.name] = write.reason;
  EXPECT_EQ(Of<model::CreateNodeRequest>(result).size(), 1u);
  EXPECT_EQ(reasons.at("p0"), "NodesRequested");
  EXPECT_EQ(reasons.at("p1"), "GpuCapReached");
  EXPECT_EQ(reasons.at("p2"), "QueueLimitReached");
}

}  // namespace
}  // namespace fairlead::core
