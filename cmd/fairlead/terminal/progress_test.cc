#include "cmd/fairlead/terminal/progress.h"

#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

TEST(ProgressTest, TheBarGrows) {
  EXPECT_EQ(ProgressLine("reading", 0, 10), "reading [..............................] 0%");
  EXPECT_EQ(ProgressLine("reading", 3, 10), "reading [#########.....................] 30%");
  EXPECT_EQ(ProgressLine("reading", 10, 10), "reading [##############################] 100%");
}

TEST(ProgressTest, NumbersBeyondTheEndsAreNoDisaster) {
  EXPECT_EQ(ProgressLine("reading", 11, 10), ProgressLine("reading", 10, 10));
  EXPECT_EQ(ProgressLine("reading", -1, 10), ProgressLine("reading", 0, 10));
  EXPECT_EQ(ProgressLine("reading", 1, 0), "");
}

}  // namespace
}  // namespace fairlead::cmd
