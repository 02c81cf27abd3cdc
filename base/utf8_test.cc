#include "base/utf8.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(Utf8Test, InvalidSequencesBecomeReplacements) {
  struct Case {
    std::string in, out;
  };
  const std::string r = "\xEF\xBF\xBD";
  const Case cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"\x80", r},                          // continuation alone
      {"\xC0\xAF", r + r},                  // overlong
      {"\xE0\x80\xAF", r + r + r},          // overlong
      {"\xED\xA0\x80", r + r + r},          // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
      {"a\xE2\x82", "a" + r + r},           // cut
      {"\xFF"
       "b",
       r + "b"},
  };
  for (const Case& c : cases) EXPECT_EQ(ToValidUtf8(c.in), c.out);
}

TEST(Utf8Test, TruncatesOnCodePoints) {
  const std::string euro = "\xE2\x82\xAC";
  const std::string text = "a" + euro + euro;
  const size_t lengths[] = {0, 1, 1, 1, 4, 4, 4, 7, 7};
  for (size_t max = 0; max < std::size(lengths); ++max) {
    EXPECT_EQ(TruncateUtf8(text, max), text.substr(0, lengths[max])) << max;
  }
}

TEST(Utf8Test, WellFormedSequencesOnly) {
  struct Case {
    std::string in;
    size_t length;
  };
  const Case cases[] = {
      {"", 0},
      {"a", 1},
      {"\xC3\xA9", 2},
      {"\xE2\x82\xAC", 3},
      {"\xF0\x9F\x9A\x80", 4},
      {"\x80", 0},              // lone continuation
      {"\xC0\xAF", 0},          // overlong
      {"\xE0\x80\xAF", 0},      // overlong
      {"\xF0\x80\x80\xAF", 0},  // overlong
      {"\xED\xA0\x80", 0},      // surrogate
      {"\xF4\x90\x80\x80", 0},  // past U+10FFFF
      {"\xF5\x80\x80\x80", 0},
      {"\xE2\x82", 0},  // cut short
      {"\xC3", 0},
  };
  for (const Case& c : cases)
    EXPECT_EQ(Utf8SequenceLength(c.in), c.length) << ::testing::PrintToString(c.in);
  EXPECT_EQ(ToValidUtf8("a\xFFz\xE2\x82"), "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(TruncateUtf8("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(TruncateUtf8("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
}

}  // namespace
}  // namespace fairlead
