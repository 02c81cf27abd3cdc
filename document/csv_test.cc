#include "document/csv.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvTest, CellsAreFoundByColumn) {
  const auto csv = Csv::Parse("name,size\r\n a ,1\n\nb,2", "f.csv");
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_THAT(csv->header(), ElementsAre("name", "size"));
  ASSERT_EQ(csv->size(), 2);
  EXPECT_EQ(*csv->Text(0, "name"), "a");
  int64_t size = 0;
  EXPECT_TRUE(csv->Number(1, "size", size).ok());
  EXPECT_EQ(size, 2);
  EXPECT_FALSE(csv->Has("price"));
}

TEST(CsvTest, QuotedCellsMayContainAnything) {
  const auto csv = Csv::Parse("a,b\n\"x,\n\"\"y\"\"\",2\n3,\"\"\n", "f.csv");
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_EQ(*csv->Text(0, "a"), "x,\n\"y\"");
  EXPECT_EQ(*csv->Text(1, "b"), "");
  // The line of a row counts those within quotes.
  EXPECT_THAT(std::string(csv->Bad(1, "wrong").message()), HasSubstr("f.csv line 4: wrong"));
}

TEST(CsvTest, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "f.csv: there is no header line"},
      {"\n\n", "f.csv: there is no header line"},
      {"a,b\n1,\"x", "f.csv line 2: a quote that does not end"},
      {"a,b\n1,x\"y\n", "f.csv line 2: a quote in the middle of a cell"},
      {"a,b\n\n1,\"x\"y\n", "f.csv line 3: text follows a closing quote"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(std::string(Csv::Parse(text, "f.csv").status().message()), HasSubstr(error));
  }
  const auto csv = Csv::Parse("a,b\n-1\n", "f.csv");
  ASSERT_TRUE(csv.ok());
  EXPECT_THAT(std::string(csv->Text(0, "b").status().message()), HasSubstr("has no column b"));
  int64_t number = 0;
  EXPECT_THAT(std::string(csv->Number(0, "a", number).message()),
              HasSubstr("line 2: a \"-1\" is no amount"));
}

}  // namespace
}  // namespace fairlead
