#include "journal/renaming.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::journal {
namespace {

std::string Of(const Renaming& renaming, absl::string_view text) {
  std::string out;
  EXPECT_TRUE(renaming.Of(text, out)) << text;
  return out;
}

TEST(RenamingTest, EqualWordsGetEqualNamesAndOthersOthers) {
  Renaming renaming({"fl"});
  renaming.Collect("research/train-7");
  renaming.Collect("fl-train");
  renaming.Assign();
  const std::string train = Of(renaming, "train");
  EXPECT_NE(train, "train");
  EXPECT_EQ(Of(renaming, "fl-train"), "fl-" + train);
  EXPECT_EQ(Of(renaming, "research/train-7"),
            absl::StrCat(Of(renaming, "research"), "/", train, "-", Of(renaming, "7")));
  EXPECT_NE(Of(renaming, "research"), train);
  std::string out;
  EXPECT_FALSE(renaming.Of("never", out));
}

TEST(RenamingTest, APortStays) {
  Renaming renaming({"https"});
  renaming.Collect("https://cloud.example:8086/v1");
  renaming.Assign();
  const std::string renamed = Of(renaming, "https://cloud.example:8086/v1");
  EXPECT_THAT(renamed, ::testing::StartsWith("https://"));
  EXPECT_THAT(renamed, ::testing::HasSubstr(":8086/"));
  EXPECT_THAT(renamed, ::testing::Not(::testing::HasSubstr("cloud")));
}

TEST(RenamingTest, SomethingFitsBetweenAnyTwoWords) {
  const std::vector<std::string> words = {"",   "0",  "00", "1",    "9",     "a",
                                          "a0", "az", "fl", "fla",  "gpu",   "gpus",
                                          "pg", "zz", "Z9", "NVID", "NVIDIA"};
  for (const std::string& low : words) {
    for (const std::string& high : words) {
      if (!high.empty() && high <= low) continue;
      const std::string between = BetweenWords(low, high);
      // Between "a" and "a0" there is no word.
      if (between.empty()) {
        EXPECT_TRUE(high == low + "0" || high == low + "00") << low << " " << high;
        continue;
      }
      EXPECT_LT(low, between);
      if (!high.empty()) {
        EXPECT_LT(between + "zzz", high) << low;
      }
    }
  }
}

// Names put together of words, as Kubernetes has them.
TEST(RenamingTest, TheOrderOfNamesStays) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 20; ++round) {
    const std::string letters = "09AZaflgpu\xc3";
    std::set<std::string> texts;
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (uint64_t parts = 1 + below(4); parts > 0; --parts) {
        for (uint64_t size = 1 + below(4); size > 0; --size) text += letters[below(letters.size())];
        if (parts > 1) text += "-./ "[below(4)];
      }
      texts.insert(text);
    }
    Renaming renaming({"fl", "gpu", "0", "9"});
    for (const std::string& text : texts) renaming.Collect(text);
    renaming.Assign();
    std::string last;
    for (const std::string& text : texts) {
      const std::string renamed = Of(renaming, text);
      EXPECT_LT(last, renamed) << text;
      last = renamed;
    }
  }
}

TEST(RenamingTest, NoNewNameIsAnOldOne) {
  Renaming renaming(std::vector<std::string>{});
  renaming.Collect("00 01 02 0 1 2 x y z");
  renaming.Assign();
  const std::set<std::string> words = {"00", "01", "02", "0", "1", "2", "x", "y", "z"};
  for (const std::string& word : words) EXPECT_FALSE(words.contains(Of(renaming, word))) << word;
}

TEST(RenamingTest, AWordIsOverriddenByAFreeOneAlone) {
  Renaming renaming({"fl"});
  renaming.Collect("a b");
  renaming.Assign();
  EXPECT_FALSE(renaming.Override("a", Of(renaming, "b")));
  EXPECT_FALSE(renaming.Override("a", "fl"));
  EXPECT_TRUE(renaming.Override("a", "free"));
  EXPECT_EQ(Of(renaming, "a-b"), "free-" + Of(renaming, "b"));
}

}  // namespace
}  // namespace fairlead::journal
