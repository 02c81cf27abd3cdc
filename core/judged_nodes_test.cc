// Plugins in other programs that filter and score nodes, in the loop: pods wait for the answer and
// go where it says, nothing is bought or evicted meanwhile, and nothing of it is told if it comes
// soon.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/plugins/remote_plugin.h"

namespace fairlead::core::testing {
namespace {

using model::NodeJudgement;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JudgedNodesTest : public DecisionLoopTest {
 protected:
  JudgedNodesTest() {
    config_.name = "Racks";
    Begin();
  }
  void Begin(bool hook = false) {
    options_.plugins = *plugins::WithBuiltIn({plugins::RemotePlugin::For(config_)});
    if (options_.profiles[0].plugins.back().name != "Racks") {
      framework::ProfilePlugin racks{"Racks"};
      racks.reserve = racks.permit = racks.pre_bind = racks.post_bind = false;
      options_.profiles[0].plugins.push_back(racks);
    }
    options_.hook.enabled = hook;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
  static model::Pod Pod(const std::string& name, int gpus = 1) {
    return PodBuilder("ns", name).Queue("q").Gpus(gpus).Build();
  }
  // The question in the step; null if there is none.
  static std::shared_ptr<const model::NodeQuestion> QuestionIn(const StepResult& step,
                                                               uint64_t* id = nullptr) {
    std::shared_ptr<const model::NodeQuestion> question;
    for (const Action& action : step.actions) {
      const auto* const call = std::get_if<model::CallPlugin>(&action.what);
      if (call == nullptr || call->call->question == nullptr) continue;
      EXPECT_EQ(question, nullptr) << "one at a time";
      question = call->call->question;
      if (id != nullptr) *id = action.id;
    }
    return question;
  }
  // Answers the question of the step: the same for each class of it.
  void Judge(const StepResult& step, const std::vector<NodeJudgement>& nodes) {
    uint64_t id = 0;
    const auto question = QuestionIn(step, &id);
    ASSERT_NE(question, nullptr);
    auto said = std::make_shared<model::NodeJudgements>();
    for (const auto& asked : question->classes) said->classes.push_back({asked.number, nodes});
    model::ActionResult result{id, absl::OkStatus()};
    result.judgements = said;
    loop_->Apply(result);
  }
  void FailQuestion(const StepResult& step, const absl::Status& status) {
    uint64_t id = 0;
    ASSERT_NE(QuestionIn(step, &id), nullptr);
    loop_->Apply(model::ActionResult{id, status});
  }
  static std::map<std::string, std::string> Bindings(const StepResult& step) {
    std::map<std::string, std::string> nodes;
    for (const model::BindPod& bind : Of<model::BindPod>(step)) nodes[bind.name] = bind.node;
    return nodes;
  }
  std::string ToldOf(const std::string& name) {
    for (const auto& entry : loop_->MakeView(At(0)).waiting) {
      if (entry.workload == absl::StrCat("ns/", name)) return entry.message;
    }
    return "";
  }
  model::RemotePluginConfig config_;
};

TEST_F(JudgedNodesTest, PodsGoWhereTheAnswerSays) {
  for (const char* name : {"a", "b", "c"}) Put(MakeNode(name, 8));
  Put(Pod("p"));
  const StepResult asked = Step(1);
  EXPECT_THAT(BoundIn(asked), IsEmpty());
  EXPECT_THAT(Of<model::SetPodUnschedulable>(asked), IsEmpty()) << "it may be answered soon";
  EXPECT_THAT(ToldOf("p"), HasSubstr("plugin Racks: it has not judged the nodes yet"));
  Judge(asked, {{"a", "too hot", 0}, {"b", "", 10}, {"c", "", 90}});
  const StepResult step = Step(1);
  EXPECT_THAT(Bindings(step), ElementsAre(std::pair("p", "c")));
  // The next one of the class is not asked about.
  AnswerAll(step);
  Put(Pod("p2"));
  const StepResult next = Step(2);
  EXPECT_THAT(Bindings(next), ElementsAre(std::pair("p2", "c")));
  EXPECT_EQ(QuestionIn(next), nullptr);
}

TEST_F(JudgedNodesTest, WhatItRefusesIsCountedInTheVerdict) {
  for (const char* name : {"a", "b", "c"}) Put(MakeNode(name, 8));
  Put(Pod("p"));
  Judge(Step(1), {{"a", "too hot", 0}, {"b", "too hot", 0}, {"c", "too dark", 0}});
  const StepResult step = Step(1);
  const auto told = Of<model::SetPodUnschedulable>(step);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].message, HasSubstr("0/3 nodes are available: 1 too dark, 2 too hot"));
}

TEST_F(JudgedNodesTest, AnotherAnswerIsFollowed) {
  for (const char* name : {"a", "b"}) Put(MakeNode(name, 8));
  Put(Pod("p"));
  Judge(Step(1), {{"a", "too hot", 0}, {"b", "too hot", 0}});
  EXPECT_THAT(BoundIn(Step(1)), IsEmpty());
  model::Node cooler = MakeNode("a", 8);
  cooler.meta.labels.Set("rack", "cool");
  Put(cooler);
  const StepResult asked = Step(2);
  ASSERT_NE(QuestionIn(asked), nullptr);
  EXPECT_THAT(QuestionIn(asked)->nodes, SizeIs(1));
  Judge(asked, {});
  EXPECT_THAT(Bindings(Step(2)), ElementsAre(std::pair("p", "a")));
}

TEST_F(JudgedNodesTest, NothingIsBoughtBeforeItHasJudgedAllNodes) {
  Begin(/*hook=*/true);
  Put(MakeNode("full", 0));
  Put(Pod("p"));
  const StepResult asked = Step(1);
  EXPECT_THAT(Of<model::CreateNodeRequest>(asked), IsEmpty());
  Judge(asked, {});
  const StepResult bought = Step(1);
  const auto requests = Of<model::CreateNodeRequest>(bought);
  ASSERT_THAT(requests, SizeIs(1)) << "now nothing but capacity is lacking";
  AnswerAll(bought);
  // The node comes. Until it has been judged nothing else is bought.
  model::NodeRequest request = requests[0].request;
  request.meta.uid = "uid-" + request.meta.name;
  Put(request);
  const StepResult launched = Step(2);
  AnswerAll(launched);
  const auto launches = Of<model::LaunchNode>(launched);
  ASSERT_THAT(launches, SizeIs(1));
  model::Node came = launches[0].node;
  came.meta.name = request.meta.name;
  came.meta.uid = "node";
  came.ready = true;
  came.taints.clear();
  Put(came);
  const StepResult seen = Step(60);
  EXPECT_THAT(Of<model::CreateNodeRequest>(seen), IsEmpty());
  ASSERT_NE(QuestionIn(seen), nullptr);
  Judge(seen, {});
  StepResult step = StepAt(seen.wake_at);
  for (int i = 0; i < 20 && BoundIn(step).empty(); ++i) {
    EXPECT_THAT(Of<model::CreateNodeRequest>(step), IsEmpty());
    if (QuestionIn(step) != nullptr) Judge(step, {});
    step = StepAt(step.wake_at);
  }
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
}

TEST_F(JudgedNodesTest, NothingIsEvictedBeforeItHasJudgedAllNodes) {
  Put(MakeNode("a", 1));
  Put(PodBuilder("ns", "low").Queue("q").Gpus(1).Priority("low", 10).On("a").Build());
  Put(PodBuilder("ns", "high").Queue("q").Gpus(1).Priority("high", 60).Build());
  const StepResult asked = Step(1);
  EXPECT_THAT(EvictedIn(asked), IsEmpty());
  Judge(asked, {});
  EXPECT_THAT(EvictedIn(Step(1)), ElementsAre("low"));
}

TEST_F(JudgedNodesTest, VictimsAreSoughtWhereItAdmits) {
  for (const char* name : {"a", "b"}) {
    Put(MakeNode(name, 1));
    Put(PodBuilder("ns", absl::StrCat("low-", name))
            .Queue("q")
            .Gpus(1)
            .Priority("low", 10)
            .On(name)
            .Build());
  }
  Put(PodBuilder("ns", "high").Queue("q").Gpus(1).Priority("high", 60).Build());
  Judge(Step(1), {{"a", "too hot", 0}});
  EXPECT_THAT(EvictedIn(Step(1)), ElementsAre("low-b"));
}

TEST_F(JudgedNodesTest, WhileItIsAwayItsPodsWaitAndAreTold) {
  Put(MakeNode("a", 8));
  Put(Pod("p"));
  FailQuestion(Step(1), absl::UnavailableError("plugin at x: connection refused"));
  StepResult step = Step(1);
  EXPECT_THAT(Of<model::SetPodUnschedulable>(step), IsEmpty());
  EXPECT_THAT(ToldOf("p"), HasSubstr("plugin Racks: plugin at x: connection refused"));
  // It is asked again by itself, and told of if it stays away.
  int asked = 0;
  std::vector<std::string> reasons;
  for (absl::Time now = step.wake_at; now < At(4); now = step.wake_at) {
    step = StepAt(now);
    for (const auto& told : Of<model::SetPodUnschedulable>(step)) reasons.push_back(told.reason);
    if (QuestionIn(step) == nullptr) continue;
    ++asked;
    FailQuestion(step, absl::UnavailableError("plugin at x: connection refused"));
    step = StepAt(now);
  }
  EXPECT_GE(asked, 2);
  EXPECT_THAT(reasons, ElementsAre("Gated"));
}

TEST_F(JudgedNodesTest, IgnorableOnesAreNotWaitedForWhenTheyFail) {
  config_.ignorable = true;
  Begin();
  Put(MakeNode("a", 8));
  Put(Pod("p"));
  FailQuestion(Step(1), absl::UnavailableError("away"));
  EXPECT_THAT(BoundIn(Step(1)), ElementsAre("p"));
}

TEST_F(JudgedNodesTest, AGangGoesWhenAllItsClassesAreJudged) {
  config_.pod_labels = {"role"};
  Begin();
  Put(MakeNode("a", 8));
  Put(MakeGroup("ns", "g", "q", 2));
  Put(PodBuilder("ns", "driver").Queue("q").Gpus(1).Label("role", "driver").Group("g").Build());
  Put(PodBuilder("ns", "other").Queue("q").Gpus(1).Group("g").Build());
  const StepResult asked = Step(1);
  ASSERT_NE(QuestionIn(asked), nullptr);
  EXPECT_THAT(QuestionIn(asked)->classes, SizeIs(1)) << "the other one has none of its labels";
  Judge(asked, {});
  EXPECT_THAT(BoundIn(Step(1)), ElementsAre("driver", "other"));
}

TEST_F(JudgedNodesTest, EqualPodsAreOneQuestion) {
  for (int i = 0; i < 50; ++i) Put(MakeNode(absl::StrCat("n", i), 8));
  for (int i = 0; i < 300; ++i) Put(Pod(absl::StrCat("p", i)));
  const StepResult asked = Step(1);
  ASSERT_NE(QuestionIn(asked), nullptr);
  EXPECT_THAT(QuestionIn(asked)->classes, SizeIs(1));
  EXPECT_THAT(QuestionIn(asked)->nodes, SizeIs(50));
  Judge(asked, {});
  EXPECT_THAT(BoundIn(Step(1)), SizeIs(300));
}

// A node that changes is a question; the answer changes nothing, and nothing is written.
TEST_F(JudgedNodesTest, WhatWasToldStaysWhileItIsAsked) {
  Put(MakeNode("a", 1));
  for (int i = 0; i < 50; ++i) Put(Pod(absl::StrCat("p", i), 2));
  Judge(Step(1), {});
  StepResult step = Step(1);
  EXPECT_THAT(Of<model::SetPodUnschedulable>(step), SizeIs(50));
  AnswerAll(step);
  model::Node changed = MakeNode("a", 1);
  for (const char* rack : {"r1", "r2"}) {
    changed.meta.labels.Set("rack", rack);
    Put(changed);
    Put(Pod(absl::StrCat("new-", rack), 2));  // behind the others
    step = Step(2);
    EXPECT_THAT(Of<model::SetPodUnschedulable>(step), IsEmpty());
    Judge(step, {});
    step = Step(2);
    const auto told = Of<model::SetPodUnschedulable>(step);
    ASSERT_THAT(told, SizeIs(1));
    EXPECT_EQ(told[0].name, absl::StrCat("new-", rack));
    AnswerAll(step);
  }
  // It stays away: all are told.
  changed.meta.labels.Set("rack", "r3");
  Put(changed);
  FailQuestion(Step(3), absl::UnavailableError("away"));
  std::vector<std::string> reasons;
  step = Step(3);
  for (absl::Time now = step.wake_at; now < At(6); now = step.wake_at) {
    step = StepAt(now);
    for (const auto& told : Of<model::SetPodUnschedulable>(step)) reasons.push_back(told.reason);
    if (QuestionIn(step) == nullptr) continue;
    FailQuestion(step, absl::UnavailableError("away"));
    step = StepAt(now);
    for (const auto& told : Of<model::SetPodUnschedulable>(step)) reasons.push_back(told.reason);
  }
  EXPECT_THAT(reasons, SizeIs(52));
  EXPECT_THAT(reasons, ::testing::Each("Gated"));
}

TEST_F(JudgedNodesTest, AFirstQuestionIsNotToldAtAll) {
  for (int i = 0; i < 4; ++i) Put(MakeNode(absl::StrCat("n", i), 8));
  for (int i = 0; i < 40; ++i) Put(Pod(absl::StrCat("p", i)));
  const StepResult asked = Step(1);
  Judge(asked, {});
  const StepResult step = Step(1);
  EXPECT_THAT(BoundIn(step), SizeIs(32));
  EXPECT_THAT(Of<model::SetPodUnschedulable>(step), SizeIs(8)) << "those that do not fit";
}

}  // namespace
}  // namespace fairlead::core::testing
