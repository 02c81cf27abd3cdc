// RemoteNodes, through the plugin: what is asked when, and what each answer does to filter and
// score. The loop around it is core/judged_nodes_test.cc's.
#include "scheduler/plugins/remote_nodes.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/plugins/remote_nodes_testing.h"

namespace fairlead::plugins {
namespace {

using model::NodeJudgement;
using model::NodeJudgements;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RemoteNodesTest, NothingIsAdmittedBeforeTheAnswer) {
  AddNode("a");
  Start();
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  EXPECT_EQ(Awaits("cad"), "it has not judged the nodes yet");
  EXPECT_EQ(Question(), "copy [a] gone [] cad all");
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  Answer({{"a", "", 7}});
  EXPECT_EQ(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 7");
  EXPECT_EQ(Awaits("cad"), "");
  EXPECT_EQ(Question(), "");
  EXPECT_EQ(plugin_->wake_at(), Time(60'000)) << "its answer is old by then";
}

TEST_F(RemoteNodesTest, WithoutPodsThatWaitNothingIsAsked) {
  AddNode("a");
  waiting_ = {};
  Start();
  EXPECT_EQ(Question(), "");
  EXPECT_EQ(plugin_->wake_at(), absl::InfiniteFuture());
}

TEST_F(RemoteNodesTest, WhatIsNotNamedIsAdmittedAndWhatWasNotAskedHasNoEffect) {
  AddNode("a");
  AddNode("b");
  Start();
  Question();
  AddNode("c");  // meanwhile
  Answer({{"a", "too hot", 3}, {"c", "", 9}, {"ghost", "", 9}, {"a", "", 50}});
  EXPECT_EQ(Says("cad", "a"), "too hot");
  EXPECT_EQ(Says("cad", "b"), "yes 0");
  EXPECT_EQ(Says("cad", "c"), kNotYet);
  EXPECT_EQ(Awaits("cad"), "it has not judged all nodes yet");
  EXPECT_EQ(Question(), "change [c] gone [] cad these");
  Answer({{"c", "", 900}, {"b", "no", 0}});
  EXPECT_EQ(Says("cad", "b"), "yes 0") << "not asked about";
  EXPECT_EQ(Says("cad", "c"), "yes 100") << "scores end at 100";
}

// Else a program that reads `gone` last would lose it.
TEST_F(RemoteNodesTest, ANodeThatCameBackUnderItsNameIsNotGone) {
  AddNode("a");
  AddNode("b");
  Start();
  Question();
  Answer({});
  state_.RemoveNode("a", "");
  state_.RemoveNode("b", "");
  AddNode("a");  // in the row of b
  AddNode("x");
  EXPECT_EQ(Question(), "change [x a] gone [b] cad these");
  Answer({{"a", "", 4}, {"x", "", 5}});
  EXPECT_EQ(Says("cad", "a"), "yes 4");
  EXPECT_EQ(Says("cad", "x"), "yes 5");
  EXPECT_EQ(plugin_->CheckConsistency(), "");
}

TEST_F(RemoteNodesTest, ANodeThatComesBackInALaterPartIsGoneUntilThen) {
  AddNode("a");
  for (size_t i = 0; i < RemoteNodes::kMaxNodes - 1; ++i) AddNode(absl::StrCat("n", i));
  Start();
  Question();
  Answer({});
  state_.RemoveNode("a", "");
  AddNode("x");  // in its row
  AddNode("a");
  for (size_t i = 0; i < RemoteNodes::kMaxNodes - 1; ++i) {
    model::Node changed = MakeNode(absl::StrCat("n", i), 8, 64, 64);
    changed.meta.labels.Set("changed", "yes");
    state_.UpsertNode(changed);
  }
  EXPECT_THAT(Question(), HasSubstr("] gone [a] "));
  EXPECT_EQ(question_->nodes.size(), RemoteNodes::kMaxNodes);
  Answer({});
  EXPECT_EQ(Question(), "change [a] gone [] cad all");
}

TEST_F(RemoteNodesTest, AnAnswerAboutAnotherClassHasNoEffect) {
  AddNode("a");
  Start();
  Question();
  auto said = std::make_shared<NodeJudgements>();
  said->classes.push_back({question_->classes[0].number + 77, {{"a", "no", 0}}});
  plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(0));
  EXPECT_EQ(Says("cad", "a"), "yes 0") << "nothing was said about it";
}

TEST_F(RemoteNodesTest, ANewClassIsAskedAboutAlone) {
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 1}});
  Changed();
  waiting_ = {"cad", "sim"};
  EXPECT_EQ(Question(), "change [] gone [] sim all");
  Answer({{"a", "not for sim", 0}});
  EXPECT_EQ(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 1");
  EXPECT_EQ(Says("sim", "a"), "not for sim");
}

TEST_F(RemoteNodesTest, AClassThatDidNotWaitMeanwhileIsAskedAboutAllNodes) {
  AddNode("a");
  waiting_ = {"cad", "sim"};
  Start();
  Question();
  Answer({});
  waiting_ = {"cad"};
  AddNode("b");
  EXPECT_EQ(Question(), "change [b] gone [] cad these");
  Answer({});
  waiting_ = {"cad", "sim"};
  EXPECT_EQ(Question(), "change [] gone [] sim all");
}

// Nothing was asked meanwhile, because none of its pods waited.
TEST_F(RemoteNodesTest, ANodeThatHasChangedIsJudgedAnew) {
  AddNode("a");
  AddNode("b");
  Start();
  Question();
  Answer({{"a", "", 5}, {"b", "", 5}});
  model::Node changed = MakeNode("a", 8, 64, 64);
  changed.meta.labels.Set("rack", "r2");
  state_.UpsertNode(changed);
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  EXPECT_EQ(Says("cad", "b"), "yes 5");
  EXPECT_EQ(Awaits("cad"), "it has not judged all nodes yet");
}

TEST_F(RemoteNodesTest, ChangesThatComeWhileItIsAskedAreInTheNextQuestion) {
  AddNode("a");
  Start();
  Question();
  model::Node changed = MakeNode("a", 8, 64, 64);
  changed.meta.labels.Set("rack", "r2");
  state_.UpsertNode(changed);
  EXPECT_EQ(Question(), "") << "one at a time";
  Answer({{"a", "", 5}});
  EXPECT_EQ(Says("cad", "a"), kNotYet) << "it was about the node as it was";
  EXPECT_EQ(Awaits("cad"), "it has not judged all nodes yet");
  EXPECT_EQ(Question(), "change [a] gone [] cad these");
  EXPECT_EQ(question_->nodes[0].node.meta.labels.Get("rack"), "r2");
  Answer({{"a", "", 6}});
  EXPECT_EQ(Says("cad", "a"), "yes 6");
}

TEST_F(RemoteNodesTest, AnotherNodeOfTheNameOrTheRowIsNotJudged) {
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 5}});
  state_.RemoveNode("a", "");
  AddNode("b");  // in its row
  EXPECT_EQ(Says("cad", "b"), kNotYet);
  EXPECT_EQ(Question(), "change [b] gone [a] cad these");
  state_.RemoveNode("b", "");
  AddNode("c");
  Answer({{"b", "", 9}, {"c", "", 9}});
  EXPECT_EQ(Says("cad", "c"), kNotYet) << "asked before it was there";
}

TEST_F(RemoteNodesTest, AClassThatTakesAnothersIdIsNotJudged) {
  AddNode("a");
  Start();
  const state::PodClassId id = Waits("cad");
  Question();
  Answer({{"a", "", 5}});
  state_.RemovePod("ns", "pod-cad", "");
  waiting_ = {"sim"};
  ASSERT_EQ(Waits("sim"), id);
  EXPECT_EQ(Says("sim", "a"), kNotYet);
  EXPECT_EQ(Question(), "change [] gone [] sim all");
  state_.RemovePod("ns", "pod-sim", "");
  waiting_ = {"cad"};
  ASSERT_EQ(Waits("cad"), id);
  Answer({{"a", "", 5}});
  EXPECT_EQ(Says("cad", "a"), kNotYet) << "the answer was about the other";
}

TEST_F(RemoteNodesTest, NodesThatTakeNoPodsYetAreAdmitted) {
  state_.UpsertOrderedNode(MakeNode("new", 8, 64, 64), "new");
  Start();
  EXPECT_EQ(Says("cad", "new"), "yes 0");
}

// ---- failures

TEST_F(RemoteNodesTest, WhileItFailsPodsWaitAndItIsAskedAgain) {
  AddNode("a");
  Start();
  Question();
  Fail(absl::UnavailableError("plugin at x: connection refused"));
  EXPECT_EQ(Changed(), 1u) << "for the verdict";
  EXPECT_EQ(Awaits("cad"), "plugin at x: connection refused");
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  EXPECT_EQ(Question(400), "");
  EXPECT_EQ(plugin_->wake_at(), Time(500));
  EXPECT_EQ(Question(500), "copy [a] gone [] cad all");
  Fail(absl::UnavailableError("plugin at x: connection refused"), 500);
  EXPECT_EQ(plugin_->wake_at(), Time(1500)) << "twice as long";
  Question(1500);
  Answer({}, 1500);
  EXPECT_EQ(Awaits("cad"), "");
}

TEST_F(RemoteNodesTest, WhatItHasSaidHoldsWhileItFails) {
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 5}});
  AddNode("b");
  Question();
  Fail(absl::DeadlineExceededError("late"));
  EXPECT_EQ(Says("cad", "a"), "yes 5");
  EXPECT_EQ(Says("cad", "b"), kNotYet);
  EXPECT_EQ(Awaits("cad"), "late");
  EXPECT_EQ(Question(500), "copy [a b] gone [] cad all");
}

TEST_F(RemoteNodesTest, PodsPassAnIgnorableOneThatFails) {
  config_.ignorable = true;
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "no", 0}});
  AddNode("b");
  Question();
  Changed();
  Fail(absl::DeadlineExceededError("late"));
  EXPECT_GE(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 0");
  EXPECT_EQ(Awaits("cad"), "");
  Question(500);
  Answer({{"a", "no", 0}}, 500);
  EXPECT_GE(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "no") << "it is back";
}

TEST_F(RemoteNodesTest, PodsPassOneThatDoesNotServeTheMethod) {
  AddNode("a");
  Start();
  Question();
  Fail(absl::UnimplementedError(""));
  EXPECT_EQ(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 0");
  EXPECT_EQ(plugin_->wake_at(), Time(30'000));
}

TEST_F(RemoteNodesTest, WithoutACopyItGetsAllNodes) {
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 5}});
  AddNode("b");
  EXPECT_EQ(Question(), "change [b] gone [] cad these");
  auto said = std::make_shared<NodeJudgements>();
  said->needs_snapshot = true;
  plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(0));
  EXPECT_EQ(Question(), "copy [a b] gone [] cad all");
  plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(0));
  EXPECT_THAT(Awaits("cad"), HasSubstr("asks for all nodes, and has got them"));
  EXPECT_EQ(Question(), "") << "after a pause";
}

TEST_F(RemoteNodesTest, ALateAnswerHasNoEffect) {
  AddNode("a");
  Start();
  Question();
  const uint64_t late = number_;
  Fail(absl::DeadlineExceededError("late"));
  Question(500);
  auto said = std::make_shared<NodeJudgements>();
  said->classes.push_back({question_->classes[0].number, {{"a", "no", 0}}});
  plugin_->Answered(late, {absl::OkStatus(), "", said}, Time(500));
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  Answer({}, 500);
  EXPECT_EQ(Says("cad", "a"), "yes 0");
}

TEST_F(RemoteNodesTest, LongAndManyReasonsAreCut) {
  for (int i = 0; i < 100; ++i) AddNode(absl::StrCat("n", i));
  Start();
  Question();
  std::vector<NodeJudgement> said;
  for (int i = 0; i < 100; ++i) {
    said.push_back({absl::StrCat("n", i), absl::StrCat(i, std::string(999, 'x')), 0});
  }
  Answer(said);
  EXPECT_EQ(Says("cad", "n0").size(), RemoteNodes::kMaxReasonBytes);
  EXPECT_EQ(Says("cad", "n99"), "node(s) that plugin Centres refuses");
}

// ---- age

TEST_F(RemoteNodesTest, AnswersAreAskedForAgainWhilePodsWait) {
  config_.max_age = absl::Seconds(10);
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "too hot", 0}});
  Changed();
  EXPECT_EQ(plugin_->wake_at(), Time(10'000));
  EXPECT_EQ(Question(9'999), "");
  EXPECT_EQ(Question(10'000), "change [] gone [] cad all");
  EXPECT_EQ(Says("cad", "a"), "too hot");
  Answer({}, 10'001);
  EXPECT_EQ(Changed(10'001), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 0");
  EXPECT_EQ(plugin_->wake_at(), Time(20'001));
}

TEST_F(RemoteNodesTest, OldAnswersEndBeforeADecision) {
  config_.max_age = absl::Seconds(10);
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 5}});
  Changed();
  waiting_ = {};
  EXPECT_EQ(Question(5'000), "");
  EXPECT_EQ(Changed(9'999), 0u);
  EXPECT_EQ(Says("cad", "a"), "yes 5");
  EXPECT_EQ(Changed(10'000), 1u);
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  EXPECT_EQ(Changed(20'000), 0u);
  waiting_ = {"cad"};
  EXPECT_EQ(Question(20'000), "change [] gone [] cad all");
}

TEST_F(RemoteNodesTest, AnAnswerAboutSomeNodesMakesTheOthersNoYounger) {
  config_.max_age = absl::Seconds(10);
  AddNode("a");
  Start();
  Question();
  Answer({});
  AddNode("b");
  EXPECT_EQ(Question(6'000), "change [b] gone [] cad these");
  Answer({}, 6'000);
  EXPECT_EQ(Question(10'000), "change [] gone [] cad all");
}

TEST_F(RemoteNodesTest, AnAnswerAboutSomeNodesComesAfterTheOthersAreTooOld) {
  config_.max_age = absl::Seconds(10);
  AddNode("a");
  Start();
  Question();
  Answer({});
  AddNode("b");
  EXPECT_EQ(Question(9'999), "change [b] gone [] cad these");
  Changed(10'000);
  Answer({}, 10'001);
  EXPECT_EQ(Says("cad", "a"), kNotYet);
  EXPECT_EQ(Awaits("cad"), "it has not judged the nodes yet");
  EXPECT_EQ(Question(10'001), "change [] gone [] cad all");
}

TEST_F(RemoteNodesTest, AnswersGetOldWithoutEndWhileItFails) {
  config_.max_age = absl::Seconds(10);
  AddNode("a");
  Start();
  Question();
  Answer({{"a", "", 5}});
  Question(10'000);
  Fail(absl::DeadlineExceededError("late"), 15'000);
  Changed(15'000);
  EXPECT_EQ(Says("cad", "a"), "yes 5");
  Changed(99'000);
  EXPECT_EQ(Says("cad", "a"), "yes 5");
}

// ---- what it is asked for

TEST_F(RemoteNodesTest, AtFilterItsScoresDoNotCountAndAtScoreItsRefusals) {
  AddNode("a");
  AddNode("b");
  Start(/*filter=*/true, /*score=*/false);
  Question();
  Answer({{"a", "", 5}, {"b", "no", 0}});
  EXPECT_EQ(Says("cad", "a"), "yes 0");
  Detach();
  Start(/*filter=*/false, /*score=*/true);
  EXPECT_EQ(Says("cad", "b"), kNotYet);
  Question();
  Answer({{"a", "", 5}, {"b", "no", 0}});
  EXPECT_EQ(Says("cad", "a"), "yes 5");
  EXPECT_EQ(Says("cad", "b"), "yes 0");
}

TEST_F(RemoteNodesTest, PodsWithoutItsLabelsAreNotAskedAbout) {
  config_.pod_labels = {"example.com/other"};
  AddNode("a");
  Start();
  EXPECT_EQ(Question(), "");
  EXPECT_FALSE(plugin_->FilterApplies(state_.pod_class(Waits("cad"))));
}

TEST_F(RemoteNodesTest, UsageIsToldIfItIsWantedAndNotAllTheTime) {
  config_.node_usage = true;
  AddNode("a");
  Start();
  Question();
  EXPECT_THAT(question_->nodes[0].requested, IsEmpty());
  Answer({});
  state_.UpsertPod(PodBuilder("ns", "runs").Queue("q").Gpus(2).On("a").Build());
  EXPECT_EQ(Awaits("cad"), "") << "no pod waits for that";
  EXPECT_EQ(Question(99), "");
  EXPECT_EQ(plugin_->wake_at(), Time(100));
  EXPECT_EQ(Question(100), "change [a] gone [] cad these");
  EXPECT_THAT(absl::StrJoin(question_->nodes[0].requested, " ",
                            [](std::string* out, const auto& amount) {
                              absl::StrAppend(out, amount.first, "=", amount.second);
                            }),
              HasSubstr("nvidia.com/gpu=2000"));
  Changed();
  Answer({}, 100);
  EXPECT_EQ(Changed(), 0u) << "it says the same";
}

TEST_F(RemoteNodesTest, ManyNodesComeInParts) {
  constexpr int kNodes = 2500;
  for (int i = 0; i < kNodes; ++i) AddNode(absl::StrCat("n", i));
  Start();
  size_t told = 0;
  std::string last;
  for (int part = 0; part < 3; ++part) {
    last = Question();
    ASSERT_NE(question_, nullptr);
    EXPECT_EQ(question_->base_version == 0, part == 0);
    EXPECT_EQ(question_->classes.empty(), part < 2);
    EXPECT_LE(question_->nodes.size(), RemoteNodes::kMaxNodes);
    told += question_->nodes.size();
    Answer({});
  }
  EXPECT_EQ(told, size_t{kNodes});
  EXPECT_THAT(last, HasSubstr("cad all"));
  EXPECT_EQ(Says("cad", "n2499"), "yes 0");
  EXPECT_EQ(plugin_->CheckConsistency(), "");
}

}  // namespace
}  // namespace fairlead::plugins
