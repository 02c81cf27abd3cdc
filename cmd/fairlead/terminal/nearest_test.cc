#include "cmd/fairlead/terminal/nearest.h"

#include <gtest/gtest.h>

namespace fairlead::cmd {
namespace {

TEST(NearestTest, FindsWhatWasMeant) {
  const std::vector<std::string> commands = {"run", "explain",  "queues", "nodes",
                                             "day", "simulate", "version"};
  EXPECT_EQ(Nearest("explian", commands), "explain");
  EXPECT_EQ(Nearest("queue", commands), "queues");
  EXPECT_EQ(Nearest("Run", commands), "run");
  EXPECT_EQ(Nearest("simluate", commands), "simulate");
  EXPECT_EQ(Nearest("node", commands), "nodes");
  EXPECT_EQ(Nearest("frobnicate", commands), "");
  EXPECT_EQ(Nearest("", commands), "");
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), commands), "");
}

TEST(NearestTest, Distance) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace fairlead::cmd
