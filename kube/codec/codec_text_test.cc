#include <gtest/gtest.h>

#include "kube/codec/field_problems.h"
#include "kube/codec/format_time.h"

namespace fairlead::kube {
namespace {

TEST(FormatTimeTest, Spellings) {
  const absl::Time time = absl::FromUnixMicros(1795226439000120);
  EXPECT_EQ(FormatSeconds(time), "2026-11-21T02:00:39Z");
  EXPECT_EQ(FormatMicros(time), "2026-11-21T02:00:39.000120Z");
  EXPECT_EQ(FormatExact(time), "2026-11-21T02:00:39.00012Z");
  EXPECT_EQ(FormatMicros(absl::FromUnixSeconds(0)), "1970-01-01T00:00:00.000000Z");
}

TEST(ProblemsTest, TextIsSortedAndBounded) {
  Problems problems;
  EXPECT_EQ(problems.Text(), "");
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  const FieldPath list = spec.Field("list");
  for (uint64_t i : {4, 2, 0, 2, 9}) problems.Add(list.Item(i), "bad");
  EXPECT_EQ(problems.Text(), "spec.list[0]: bad; spec.list[2]: bad; spec.list[4]: bad; and 1 more");
  Problems many;
  for (int i = 0; i < 100000; ++i) many.Add(spec.Key(std::string(100000, 'k')), "x");
  EXPECT_LT(many.Text().size(), 1000u);
  EXPECT_LT(Quoted(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace fairlead::kube
