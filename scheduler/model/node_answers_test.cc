#include "scheduler/model/node_answers.h"

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

NodeAnswer Refused(const std::string& node, const std::string& reason) {
  return {node, false, false, reason, 0};
}

TEST(NodeAnswersTest, OfEachNodeTheFirstAnswerCounts) {
  const NodeAnswers answers({Refused("b", "full"), {"a", true, false, "", 7}, {"b", true}});
  ASSERT_EQ(answers.list().size(), 2u);
  EXPECT_EQ(answers.Find("a")->score, 7);
  EXPECT_FALSE(answers.Find("b")->admitted);
  EXPECT_EQ(answers.Find(""), nullptr);
  EXPECT_EQ(answers.Find("c"), nullptr);
  EXPECT_TRUE(answers.AdmitsAny());
}

TEST(NodeAnswersTest, EqualAnswersAreEqual) {
  const NodeAnswers one({{"a", true}, Refused("b", "full")});
  const NodeAnswers same({Refused("b", "full"), {"a", true}});
  const NodeAnswers other({Refused("a", "full"), Refused("b", "full")});
  EXPECT_EQ(one, same);
  EXPECT_EQ(absl::HashOf(one), absl::HashOf(same));
  EXPECT_FALSE(one == other);
  EXPECT_FALSE(other.AdmitsAny());
  EXPECT_TRUE(NodeAnswers() == NodeAnswers(std::vector<NodeAnswer>()));
  EXPECT_TRUE(NodeAnswers().IsEmpty());
}

TEST(NodeAnswersTest, RefusalsAreCounted) {
  EXPECT_EQ(RefusalsOf(NodeAnswers({{"a", true}})), "");
  EXPECT_EQ(RefusalsOf(NodeAnswers({Refused("a", "x"), Refused("b", "y"), Refused("c", "y")})),
            "2 nodes: y; 1 node: x");
  EXPECT_EQ(RefusalsOf(NodeAnswers(
                {Refused("a", "1"), Refused("b", "2"), Refused("c", "3"), Refused("d", "4")})),
            "1 node: 1; 1 node: 2; 1 node: 3; and other reasons");
}

}  // namespace
}  // namespace fairlead::model
