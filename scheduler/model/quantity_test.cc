#include "scheduler/model/quantity.h"

#include <limits>

#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct QuantityCase {
  const char* text;
  int64_t units_per_one;
  int64_t want;
};

class QuantityTest : public ::testing::TestWithParam<QuantityCase> {};

TEST_P(QuantityTest, Parses) {
  const QuantityCase& c = GetParam();
  auto got = ParseQuantity(c.text, c.units_per_one);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, c.want) << c.text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, QuantityTest,
    ::testing::Values(QuantityCase{"0", 1, 0}, QuantityCase{"1", 1000, 1000},
                      QuantityCase{"1500m", 1000, 1500}, QuantityCase{"0.1m", 1000, 1},
                      QuantityCase{"-0.1m", 1000, -1}, QuantityCase{".5", 1000, 500},
                      QuantityCase{"1.", 1, 1}, QuantityCase{"80Gi", 1, int64_t{80} << 30},
                      QuantityCase{"1e3", 1, 1000}, QuantityCase{"1E3", 1, 1000},
                      QuantityCase{"1E", 1, 1000000000000000000}, QuantityCase{"1e-3", 1000, 1},
                      QuantityCase{"128974848000m", 1, 128974848}, QuantityCase{"1n", 1, 1},
                      QuantityCase{"100n", 1000, 1}, QuantityCase{"+3k", 1, 3000},
                      QuantityCase{"1.5Gi", 1, int64_t{3} << 29}, QuantityCase{"8Ei", 1, kMax},
                      QuantityCase{"99999999999999999999999999999999999999999999", 1, kMax},
                      QuantityCase{"-99999999999999999999", 1, -kMax},
                      QuantityCase{"1e999", 1, kMax}, QuantityCase{"1e-999", 1, 1},
                      QuantityCase{"0e999", 1, 0}, QuantityCase{"1.0000000001", 1000, 1001},
                      QuantityCase{"0.000000000000000000000000000000000000000000001", 1, 1}));

TEST(QuantityTest, RefusesWithTheTextInTheMessage) {
  for (const char* text : {"", "-", ".", "1..2", "1 Gi", "Gi", "1gi", "1e", "1ee3", "0x10", "1e+",
                           "NaN", "1e++3", "1_000", "inf"}) {
    auto got = ParseQuantity(text, 1);
    EXPECT_FALSE(got.ok()) << text;
    EXPECT_NE(std::string(got.status().message()).find(std::string("\"") + text + "\""),
              std::string::npos);
  }
}

TEST(DecimalTest, RoundsToNearest) {
  EXPECT_EQ(*ParseDecimal("0.7", 1000), 700);
  EXPECT_EQ(*ParseDecimal("-1", 1000), -1000);
  EXPECT_EQ(*ParseDecimal("0.0004", 1000), 0);
  EXPECT_EQ(*ParseDecimal("0.0005", 1000), 1);
  EXPECT_EQ(*ParseDecimal("0.00049999", 1000), 0);
  EXPECT_EQ(*ParseDecimal("1e2", 1), 100);
  EXPECT_EQ(*ParseDecimal("2.5e-1", 1000), 250);
  EXPECT_FALSE(ParseDecimal("1Ki", 1).ok());
  EXPECT_FALSE(ParseDecimal("1k", 1).ok());
  EXPECT_FALSE(ParseDecimal("", 1).ok());
}

}  // namespace
}  // namespace fairlead::model
