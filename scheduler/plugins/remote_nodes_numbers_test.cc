// Answers of RemoteNodes that tell nodes by their numbers: beside names, wrong, and about nodes
// that were not asked about.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/plugins/remote_nodes.h"
#include "scheduler/plugins/remote_nodes_testing.h"

namespace fairlead::plugins {
namespace {

TEST_F(RemoteNodesTest, AnswersMayTellNodesByTheirNumbers) {
  for (const char* name : {"a", "b", "c", "d", "e"}) AddNode(name);
  Start();
  Question();
  // The score of number 0 is of no node; beyond the end of the scores it is 0.
  std::vector<uint32_t> scores(5, 50);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ASSERT_GT(NumberOf(name), 0u);
    ASSERT_LE(NumberOf(name), 5u);
  }
  ASSERT_EQ(NumberOf("e"), 5u);
  scores[NumberOf("a")] = 7;
  scores[NumberOf("b")] = 4'000'000'000;
  scores[NumberOf("c")] = 30;
  const uint32_t c = NumberOf("c"), d = NumberOf("d");
  AnswerByNumber({0, {}, scores, {{"too hot", {0, c, 4'294'967'295, 6, c}}, {"too cold", {c, d}}}});
  EXPECT_EQ(Changed(), 1u);
  EXPECT_EQ(Says("cad", "a"), "yes 7");
  EXPECT_EQ(Says("cad", "b"), "yes 100") << "scores end at 100";
  EXPECT_EQ(Says("cad", "c"), "too hot") << "the first one";
  EXPECT_EQ(Says("cad", "d"), "too cold");
  EXPECT_EQ(Says("cad", "e"), "yes 0") << "it has no score";
  EXPECT_EQ(Awaits("cad"), "");
}

TEST_F(RemoteNodesTest, WhatIsSaidOfANameGoesBeforeWhatIsSaidOfItsNumber) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Start();
  Question();
  const uint32_t a = NumberOf("a"), b = NumberOf("b"), c = NumberOf("c");
  ASSERT_THAT((std::vector{a, b, c}), ::testing::UnorderedElementsAre(1u, 2u, 3u));
  AnswerByNumber({0,
                  {{"a", "", 5}, {"b", "closed", 0}},
                  {60, 60, 60, 60},
                  {{"not a", {a}}, {"", {b}}, {"", {c}}, {"not c", {c}}}});
  EXPECT_EQ(Says("cad", "a"), "yes 5");
  EXPECT_EQ(Says("cad", "b"), "closed");
  EXPECT_EQ(Says("cad", "c"), "yes 60");
}

TEST_F(RemoteNodesTest, NumbersOfNodesThatWereNotAskedAboutHaveNoEffect) {
  AddNode("a");
  AddNode("b");
  Start();
  Question();
  const uint32_t a = NumberOf("a"), b = NumberOf("b");
  AddNode("late");
  state_.RemoveNode("b", "");
  AddNode("c");  // in its row
  std::vector<uint32_t> scores(8, 9);
  AnswerByNumber({0, {}, scores, {{"no", {b, 3, 4}}}});
  EXPECT_EQ(Says("cad", "a"), "yes 9");
  EXPECT_EQ(Says("cad", "c"), kNotYet);
  EXPECT_EQ(Says("cad", "late"), kNotYet);
  EXPECT_EQ(Question(), "change [c late] gone [b] cad these");
  EXPECT_EQ(NumberOf("c"), b) << "a number goes to another node";
  AnswerByNumber({0, {}, {}, {{"no", {a, NumberOf("late")}}}});
  EXPECT_EQ(Says("cad", "a"), "yes 9") << "not asked about";
  EXPECT_EQ(Says("cad", "c"), "yes 0");
  EXPECT_EQ(Says("cad", "late"), "no");
}

TEST_F(RemoteNodesTest, WhatIsWrongInTheAnswerAboutOneClassHarmsNoOther) {
  AddNode("a");
  waiting_ = {"cad", "sim"};
  Start();
  Question();
  ASSERT_EQ(question_->classes.size(), 2u);
  const uint32_t a = NumberOf("a");
  auto said = std::make_shared<model::NodeJudgements>();
  const uint64_t first = question_->classes[0].number, second = question_->classes[1].number;
  const std::vector<uint32_t> too_many(100'000, 77);
  said->classes.push_back({first, {}, too_many, {{"no", {0, 9, 4'294'967'295}}}});
  said->classes.push_back({second, {}, {0, 5}, {{"closed", {a}}}});
  said->classes.push_back({first, {}, {0, 1}, {{"the second answer", {a}}}});
  said->classes.push_back({second + first, {}, {0, 1}, {{"of no class", {a}}}});
  plugin_->Answered(number_, {absl::OkStatus(), "", said}, Time(0));
  EXPECT_EQ(Says("cad", "a"), "yes 77");
  EXPECT_EQ(Says("sim", "a"), "closed");
}

TEST_F(RemoteNodesTest, ReasonsByNumberHaveBoundsToo) {
  constexpr uint32_t kNodes = 80;
  for (uint32_t i = 0; i < kNodes; ++i) AddNode(absl::StrCat("n", i));
  Start();
  Question();
  model::NodeJudgements::OfClass of_class;
  for (uint32_t i = 0; i < kNodes; ++i) {
    of_class.refusals.push_back(
        {absl::StrCat(i, std::string(1000, 'x')), {NumberOf(absl::StrCat("n", i))}});
  }
  AnswerByNumber(std::move(of_class));
  EXPECT_EQ(Says("cad", "n0"),
            absl::StrCat("0", std::string(RemoteNodes::kMaxReasonBytes - 1, 'x')));
  EXPECT_EQ(Says("cad", "n79"), "node(s) that plugin Centres refuses");
}

}  // namespace
}  // namespace fairlead::plugins
