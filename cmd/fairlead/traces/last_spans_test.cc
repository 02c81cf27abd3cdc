#include "cmd/fairlead/traces/last_spans.h"

#include <gtest/gtest.h>

namespace fairlead::cmd {
namespace {

TEST(LastSpansTest, TheLeastRecentlyUsedSubjectIsForgotten) {
  LastSpans last(2);
  const tracing::Link first{{1, 1}, 1}, second{{1, 2}, 2}, third{{1, 3}, 3};
  EXPECT_EQ(last.Exchange("a", first), std::nullopt);
  EXPECT_EQ(last.Exchange("b", first), std::nullopt);
  EXPECT_EQ(last.Exchange("a", second), first);
  EXPECT_EQ(last.Exchange("c", first), std::nullopt);  // in the place of b
  EXPECT_EQ(last.size(), 2u);
  EXPECT_EQ(last.Exchange("a", third), second);
  EXPECT_EQ(last.Exchange("b", second), std::nullopt);
  LastSpans none(0);
  EXPECT_EQ(none.Exchange("a", first), std::nullopt);
  EXPECT_EQ(none.Exchange("a", first), std::nullopt);
}

}  // namespace
}  // namespace fairlead::cmd
