#include "scheduler/model/object_meta.h"

#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

TEST(StringMapTest, SortedUniqueAndFindable) {
  StringMap m = {{"b", "2"}, {"a", "1"}, {"b", "3"}};
  EXPECT_EQ(m.size(), 2u);
  EXPECT_EQ(m.Get("b"), "3");
  m.Erase("b");
  EXPECT_FALSE(m.Has("b"));
}

TEST(StringMapTest, ACopyIsItsOwn) {
  const StringMap former = {{"a", "1"}, {"b", "2"}};
  StringMap changed = former;
  EXPECT_EQ(former.Find("a"), changed.Find("a")) << "nothing is copied before it is changed";
  changed.Set("a", "3");
  changed.Erase("b");
  EXPECT_EQ(former, (StringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(changed, (StringMap{{"a", "3"}}));
}

TEST(StringMapTest, TakesViewsIntoItself) {
  StringMap m = {{"a", "b"}, {"b", "a"}};
  m.Set(m.Get("b"), m.Get("a"));
  m.Set("b", m.Get("b"));
  m.Erase(m.Get("a"));
  EXPECT_EQ(m, (StringMap{{"a", "b"}}));
}

// Against std::map, with copies that are changed apart from each other.
TEST(StringMapTest, IsAMap) {
  constexpr uint32_t kSeed = 20261122;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937 random(kSeed);
  TextPool pool;
  struct Pair {
    StringMap map;
    std::map<std::string, std::string> want;
  };
  std::vector<Pair> pairs(4);
  for (int i = 0; i < 20'000; ++i) {
    Pair& pair = pairs[random() % pairs.size()];
    const std::string key = absl::StrCat("key-", random() % 12);
    switch (random() % 8) {
      case 0:
        pair = Pair(pairs[random() % pairs.size()]);
        break;
      case 1:
      case 2:
        pair.map.Erase(key);
        pair.want.erase(key);
        break;
      case 3:
        pair.map.Intern(pool);
        break;
      default: {
        const std::string value = absl::StrCat("a value that is not short: ", random() % 5);
        pair.map.Set(key, value, random() % 2 == 0 ? &pool : nullptr);
        pair.want[key] = value;
        break;
      }
    }
    for (const Pair& each : pairs) {
      ASSERT_EQ(each.map.size(), each.want.size());
      auto want = each.want.begin();
      for (const auto& [name, value] : each.map) {
        ASSERT_EQ(name, want->first);
        ASSERT_EQ(value, (want++)->second);
      }
      ASSERT_EQ(each.map == pairs[0].map, each.want == pairs[0].want);
      if (each.map == pairs[0].map) {
        ASSERT_EQ(absl::HashOf(each.map), absl::HashOf(pairs[0].map));
      }
    }
  }
}

TEST(TextPoolTest, EqualTextsAreOne) {
  TextPool pool;
  StringMap a = {{"key", "value"}}, b = {{"key", "value"}};
  EXPECT_NE(a.Find("key"), b.Find("key"));
  a.Intern(pool);
  b.Intern(pool);
  EXPECT_EQ(a.Find("key"), b.Find("key"));
  StringMap c;
  c.Set("key", "value", &pool);
  EXPECT_EQ(&(*a.begin()).first, &(*c.begin()).first);
}

// Tenants choose the texts of labels: what nothing has any more does not stay.
TEST(TextPoolTest, ForgetsWhatNothingHolds) {
  TextPool pool;
  StringMap kept;
  kept.Set("kept", "for ever", &pool);
  for (int i = 0; i < 100'000; ++i) {
    StringMap gone;
    gone.Set(absl::StrCat("key ", i), "value", &pool);
  }
  EXPECT_LT(pool.size(), 3000u);
  EXPECT_EQ(kept.Get("kept"), "for ever");
}

}  // namespace
}  // namespace fairlead::model
