#include "scheduler/model/selector.h"

#include "gtest/gtest.h"
#include "scheduler/model/pod.h"

namespace fairlead::model {
namespace {

using Op = SelectorOperator;

TEST(SelectorTest, AbsentKeyMatchesOnlyTheNegativeOperators) {
  const StringMap labels = {{"zone", "a"}};
  EXPECT_TRUE(Matches({"x", Op::kNotIn, {"1"}}, labels));
  EXPECT_TRUE(Matches({"x", Op::kDoesNotExist, {}}, labels));
  EXPECT_FALSE(Matches({"x", Op::kIn, {"1"}}, labels));
  EXPECT_FALSE(Matches({"x", Op::kExists, {}}, labels));
  EXPECT_FALSE(Matches({"x", Op::kGt, {"1"}}, labels));
}

TEST(SelectorTest, GtAndLtCompareIntegers) {
  const StringMap labels = {{"n", "10"}, {"text", "many"}};
  EXPECT_TRUE(Matches({"n", Op::kGt, {"9"}}, labels));
  EXPECT_FALSE(Matches({"n", Op::kGt, {"10"}}, labels));
  EXPECT_TRUE(Matches({"n", Op::kLt, {"11"}}, labels));
  EXPECT_FALSE(Matches({"text", Op::kLt, {"11"}}, labels));
  EXPECT_FALSE(Matches({"n", Op::kLt, {"11", "12"}}, labels));
}

TEST(SelectorTest, NoneMatchesNothingEmptyMatchesAll) {
  LabelSelector none;
  EXPECT_FALSE(none.Matches({}));
  LabelSelector all;
  all.none = false;
  EXPECT_TRUE(all.Matches({{"a", "b"}}));
}

TEST(NodeSelectorTermTest, EmptyTermMatchesNoNode) {
  EXPECT_FALSE(NodeSelectorTerm{}.Matches({}, "n1"));
  NodeSelectorTerm by_name;
  by_name.match_fields = {{"metadata.name", Op::kIn, {"n1"}}};
  EXPECT_TRUE(by_name.Matches({}, "n1"));
  EXPECT_FALSE(by_name.Matches({}, "n2"));
}

TEST(TolerationTest, KeyValueEffect) {
  const Taint taint{"gpu", "a100", TaintEffect::kNoSchedule};
  EXPECT_TRUE((Toleration{"", true, "", {}}.Tolerates(taint)));
  EXPECT_TRUE((Toleration{"gpu", true, "", {}}.Tolerates(taint)));
  EXPECT_TRUE((Toleration{"gpu", false, "a100", TaintEffect::kNoSchedule}.Tolerates(taint)));
  EXPECT_FALSE((Toleration{"gpu", false, "h100", {}}.Tolerates(taint)));
  EXPECT_FALSE((Toleration{"gpu", true, "", TaintEffect::kNoExecute}.Tolerates(taint)));
  EXPECT_FALSE((Toleration{"", false, "", {}}.Tolerates(taint)));
}

}  // namespace
}  // namespace fairlead::model
