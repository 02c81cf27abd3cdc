// The filter and score of what scheduler extenders said.
#include "scheduler/plugins/extender.h"

#include <limits>

#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using model::NodeAnswers;

class ExtenderTest : public PluginTest {
 protected:
  ExtenderTest() {
    for (const char* name : {"a", "b", "c"}) AddNode(MakeNode(name, 0));
    Waiting({});
  }
  void Say(const NodeAnswers& answers) {
    state_.SetNodeAnswers(state_.FindPod("ns", "waiting"), answers);
    EXPECT_EQ(state_.CheckConsistency(), "");
  }
  const std::unique_ptr<framework::Framework> extender_ = Only("Extender");
};

TEST_F(ExtenderTest, ItAppliesToPodsWithAnswersOnly) {
  EXPECT_EQ(Why(*extender_, "a"), "");
  EXPECT_EQ(Score(*extender_, "a"), 0);
  Say(NodeAnswers({{"a", false, false, "no", 0}}));
  EXPECT_EQ(Why(*extender_, "a"), "U no");
  Say({});
  EXPECT_EQ(Why(*extender_, "a"), "");
}

TEST_F(ExtenderTest, RefusedNodesAreRefused) {
  Say(NodeAnswers({{"a", true}, {"b", false, true, "no such device", 0}}));
  EXPECT_EQ(Why(*extender_, "a"), "");
  EXPECT_EQ(Why(*extender_, "b"), "X no such device");
  EXPECT_EQ(Why(*extender_, "c"), "") << "not asked about, and another one is admitted";
}

TEST_F(ExtenderTest, IfNoNodeIsAdmittedOthersAreNot) {
  Say(NodeAnswers({{"a", false, false, "full", 0}, {"b", false, true, "no such device", 0}}));
  EXPECT_EQ(Why(*extender_, "a"), "U full");
  EXPECT_EQ(Why(*extender_, "b"), "X no such device");
  EXPECT_EQ(Why(*extender_, "c"), "U node(s) that the scheduler extenders were not asked about");
}

TEST_F(ExtenderTest, ScoresAreInPointsOfUpstreamsScale) {
  Say(NodeAnswers({{"a", true, false, "", 70}, {"b", true, false, "", 0}}));
  EXPECT_EQ(Score(*extender_, "a"), 70 * framework::kPreferenceStep);
  EXPECT_EQ(Score(*extender_, "b"), 0);
  EXPECT_EQ(Score(*extender_, "c"), 0);
}

TEST_F(ExtenderTest, AScoreWithoutBoundsIsBounded) {
  Say(NodeAnswers({{"a", true, false, "", std::numeric_limits<int64_t>::max()},
                   {"b", true, false, "", std::numeric_limits<int64_t>::min()}}));
  EXPECT_EQ(Score(*extender_, "a"),
            framework::kMaxNodeScore * framework::kMaxWeight * framework::kPreferenceStep);
  EXPECT_EQ(Score(*extender_, "b"), 0);
}

TEST_F(ExtenderTest, AnswersStayUntilThePodIsOnANode) {
  Say(NodeAnswers({{"a", false, false, "full", 0}}));
  model::Pod pod = PodBuilder("ns", "waiting");
  pod.spec.ns = "ns";
  pod.meta.labels.Set("app", "x");
  AddPod(pod);
  EXPECT_EQ(Why(*extender_, "a"), "U full") << "another version of the object";
  pod.node_name = "b";
  AddPod(pod);
  EXPECT_TRUE(Ctx().pod_class.spec->node_answers.IsEmpty());
  EXPECT_EQ(state_.CheckConsistency(), "");
}

TEST_F(ExtenderTest, ItHasNoArguments) {
  EXPECT_FALSE(Extender::Make(R"({"x":1})").ok());
  EXPECT_TRUE(Extender::Make("").ok());
}

}  // namespace
}  // namespace fairlead::plugins
