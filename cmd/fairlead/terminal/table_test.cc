#include "cmd/fairlead/terminal/table.h"

#include <gtest/gtest.h>

namespace fairlead::cmd {
namespace {

TEST(DisplayWidthTest, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("Zürich"), 6u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);                 // e and a combining acute
  EXPECT_EQ(DisplayWidth("\xE7\xA0\x94\xE7\xA9\xB6"), 4u);  // two ideographs
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x9A\x80"), 2u);          // a rocket
  EXPECT_EQ(DisplayWidth("\xE2\x96\x88"), 1u);              // a block of a bar
  EXPECT_EQ(DisplayWidth("\xFF\xFE"), 2u);                  // shown as two replacements
}

TEST(PrintableTest, NothingOfItSteersTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(Printable("a\r\nb\tc"), "a??b?c");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "?31m");  // CSI as one C1 character
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b"),
            "a?b");  // right-to-left override
  EXPECT_EQ(Printable("\xFFz"), "\xEF\xBF\xBDz");
  EXPECT_EQ(Printable("Zürich \xF0\x9F\x9A\x80"), "Zürich \xF0\x9F\x9A\x80");
}

TEST(CutToWidthTest, NeverWiderAndNeverInsideACharacter) {
  const std::string text =
      "ab\xE7\xA0\x94"
      "cd\xF0\x9F\x9A\x80";
  EXPECT_EQ(CutToWidth(text, 100), text);
  EXPECT_EQ(CutToWidth(text, DisplayWidth(text)), text);
  for (size_t width = 0; width < DisplayWidth(text); ++width) {
    const std::string cut = CutToWidth(text, width);
    EXPECT_LE(DisplayWidth(cut), width);
    EXPECT_EQ(Printable(cut), cut) << "half a character at " << width;
  }
  EXPECT_EQ(CutToWidth("abcdef", 4), "abc\xE2\x80\xA6");
}

TEST(WrappedTest, FillsLines) {
  EXPECT_EQ(Wrapped("one two three four", 9, "  "), "one two\n  three\n  four");
  EXPECT_EQ(Wrapped("incomprehensibilities a", 5, ""), "incomprehensibilities\na");
  EXPECT_EQ(Wrapped("", 5, ""), "");
}

TEST(TableTest, LinesUpWhateverTheScript) {
  Table table({"NAME", ">GPUS", "NOTE", "EMPTY"});
  table.AddRow({"Zürich", "8", "x\x1b[31m"});
  table.AddRow({"\xE7\xA0\x94\xE7\xA9\xB6", "0.5"});
  table.AddRow({"a", "128", "last"});
  EXPECT_EQ(table.Text("  "),
            "  NAME    GPUS  NOTE\n"
            "  Zürich     8  x?[31m\n"
            "  \xE7\xA0\x94\xE7\xA9\xB6     0.5\n"
            "  a        128  last\n");
}

TEST(TableTest, WithoutRowsItIsItsHeader) { EXPECT_EQ(Table({"A", "B"}).Text(), "A  B\n"); }

}  // namespace
}  // namespace fairlead::cmd
