#include "core/reconcile/due_times.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

absl::Time Second(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

TEST(DueTimesTest, IsDueNeverWhileNothingIsIn) {
  DueTimes<std::string> due;
  EXPECT_EQ(due.next(), absl::InfiniteFuture());
  EXPECT_TRUE(due.TakeDue(absl::InfiniteFuture()).empty());
}

TEST(DueTimesTest, TakesWhatIsDueAtTheVeryTime) {
  DueTimes<std::string> due;
  due.Add(Second(2), "b");
  due.Add(Second(1), "a");
  due.Add(Second(3), "c");
  EXPECT_EQ(due.next(), Second(1));
  EXPECT_EQ(due.TakeDue(Second(2)), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(due.size(), 1);
  EXPECT_EQ(due.next(), Second(3));
}

TEST(DueTimesTest, TakesEqualTimesInTheOrderInWhichTheyCame) {
  std::mt19937_64 random(7);
  DueTimes<std::string> due;
  std::map<absl::Time, std::vector<std::string>> expected;
  for (int i = 0; i < 2000; ++i) {
    const absl::Time at = Second(static_cast<int64_t>(random() % 20));
    const std::string key = absl::StrCat("a key too long to be kept in place ", random() % 100);
    due.Add(at, key);
    expected[at].push_back(key);
    if (random() % 3 != 0) continue;
    auto first = expected.begin();
    EXPECT_EQ(due.TakeFirst(), first->second.front());
    first->second.erase(first->second.begin());
    if (first->second.empty()) expected.erase(first);
  }
  std::vector<std::string> rest;
  for (const auto& [at, keys] : expected) rest.insert(rest.end(), keys.begin(), keys.end());
  EXPECT_EQ(due.TakeDue(Second(20)), rest);
  EXPECT_EQ(due.size(), 0);
}

}  // namespace
}  // namespace fairlead::core
