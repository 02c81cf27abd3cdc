// Tests whether the status says that a group's one attempt has failed: KAI's rule, case by case.
#include "scheduler/model/workload_objects.h"

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::model {
namespace {

struct GroupCase {
  const char* title;
  int32_t backoff;
  const char* pool_label;  // "" for none
  std::vector<SchedulingCondition> conditions;
  const char* failed;  // the reason, or "" if it is to be tried
};

SchedulingCondition Entry(const char* pool, const char* id, const char* reason) {
  return {pool, id, "{}", reason, "m"};
}

TEST(FailedAttemptTest, TheNewestEntryDecidesAndOnlyForItsOwnPool) {
  const GroupCase cases[] = {
      {"nothing is stated", kTryOnce, "", {}, ""},
      {"tried for ever", kTryForEver, "", {Entry("default", "1", "R")}, ""},
      {"no label: the default pool", kTryOnce, "", {Entry("default", "1", "R")}, "R"},
      {"its pool", kTryOnce, "a", {Entry("a", "1", "R")}, "R"},
      {"another pool", kTryOnce, "b", {Entry("a", "1", "R")}, ""},
      {"back in a former pool", kTryOnce, "a", {Entry("a", "1", "R"), Entry("b", "2", "S")}, ""},
      {"the newest is not the last",
       kTryOnce,
       "b",
       {Entry("b", "9", "S"), Entry("a", "1", "R")},
       "S"},
      {"as numbers, not as text",
       kTryOnce,
       "a",
       {Entry("b", "9", "S"), Entry("a", "10", "R")},
       "R"},
      {"no number is the oldest", kTryOnce, "a", {Entry("b", "x", "S"), Entry("a", "0", "R")}, "R"},
      {"of equal ones the first", kTryOnce, "a", {Entry("a", "", "R"), Entry("b", "", "S")}, "R"},
  };
  for (const GroupCase& c : cases) {
    PodGroup group = testing::MakeGroup("ns", "g", "q", 1);
    group.scheduling_backoff = c.backoff;
    group.scheduling_conditions = c.conditions;
    if (*c.pool_label != '\0') group.meta.labels.Set(kNodePoolLabel, c.pool_label);
    const std::optional<FailedAttempt> failed = FailedAttemptOf(group);
    EXPECT_EQ(failed.has_value() ? failed->reason : "", c.failed) << c.title;
    if (failed.has_value()) {
      EXPECT_EQ(failed->node_pool, NodePoolOf(group)) << c.title;
    }
  }
}

}  // namespace
}  // namespace fairlead::model
