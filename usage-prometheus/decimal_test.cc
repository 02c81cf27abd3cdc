#include "usage-prometheus/decimal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fairlead::prometheus {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNano = 1'000'000'000;

TEST(DecimalTest, WhatIsNoFiniteNumberAboveZeroIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"NaN", "no number"},    {"nan", "no number"},   {"+Inf", "infinite"},
      {"-Inf", "infinite"},    {"Inf", "infinite"},    {"-1", "negative"},
      {"-0.5e-3", "negative"}, {"", "no number"},      {" 1", "no number"},
      {"1 ", "no number"},     {"1.2.3", "no number"}, {".", "no number"},
      {"e5", "no number"},     {"1e", "no number"},    {"1e5.5", "no number"},
      {"1e 5", "no number"},   {"1e5 ", "no number"},  {"0x10", "no number"},
      {"1,000", "no number"},  {"+-1", "no number"},   {"one", "no number"},
      {"1e999999", "range"},   {"1e-999999", "range"}, {"1e99999999999", "no number"},
      {"-", "no number"},      {"+", "no number"},     {"1\n2", "no number"},
  };
  for (const auto& [text, why] : cases) {
    const auto parsed = ParseDecimal(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(why)) << text;
  }
  EXPECT_LT(ParseDecimal(std::string(1 << 20, 'x')).status().message().size(), 100u);
}

TEST(DecimalTest, NumbersAreExact) {
  const std::pair<const char*, Decimal> cases[] = {
      {"0", {0, 0}},
      {"-0", {0, 0}},
      {"0.000", {0, 0}},
      {"0e5", {0, 0}},
      {"80640", {80640, 0}},
      {"80640.5", {806405, -1}},
      {"+7", {7, 0}},
      {".5", {5, -1}},
      {"5.", {5, 0}},
      {"1.5e+06", {15, 5}},
      {"1.5E-3", {15, -4}},
      {"0.1", {1, -1}},
      {"007", {7, 0}},
      {"9999999999999999999", {9'999'999'999'999'999'999u, 0}},
      // The digits after the nineteenth become zeros.
      {"12345678901234567890", {1234567890123456789, 1}},
      {"1234567890.12345678901", {1234567890123456789, -9}},
  };
  for (const auto& [text, decimal] : cases) {
    const auto parsed = ParseDecimal(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, decimal) << text << ": " << parsed->mantissa << "e" << parsed->exponent;
  }
}

TEST(DecimalTest, FractionsAreRoundedDownAndBounded) {
  struct Case {
    const char *part, *whole;
    int64_t nano;
  };
  const Case cases[] = {
      {"0", "8", 0},
      {"2", "8", 250'000'000},
      {"1", "3", 333'333'333},
      {"2", "3", 666'666'666},
      {"8", "8", kNano},
      {"9", "8", kNano},  // more than the whole: all of it
      {"0.1", "0.3", 333'333'333},
      {"1e300", "1e-300", kNano},
      {"1e-300", "1e300", 0},
      {"9999999999999999999", "1e19", 999'999'999},
      {"1e-9", "1", 1},
      {"9.99e-10", "1", 0},
      {"1e19", "1e28", 1},
      {"9999999999999999999e-28", "1", 0},
      {"9999999999999999999e-27", "1", 9},
      {"1", "9999999999999999999e-19", kNano},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(NanoFraction(*ParseDecimal(c.part), *ParseDecimal(c.whole)), c.nano)
        << c.part << " / " << c.whole;
  }
}

// Doubles in Prometheus' format, against long double.
TEST(DecimalTest, FractionsAreThoseOfFloatingPoint) {
  std::mt19937_64 random(20'261'121);
  std::uniform_real_distribution<double> exponent(-12, 24);
  for (int i = 0; i < 20'000; ++i) {
    const double whole = std::pow(10.0, exponent(random));
    const double part = whole * std::uniform_real_distribution<double>(0, 1.2)(random);
    const std::string texts[] = {absl::StrFormat("%.17g", part), absl::StrFormat("%.17g", whole)};
    const auto p = ParseDecimal(texts[0]);
    const auto w = ParseDecimal(texts[1]);
    ASSERT_TRUE(p.ok() && w.ok()) << texts[0] << " " << texts[1];
    const long double expected =
        std::min(1.0L, static_cast<long double>(part) / static_cast<long double>(whole)) * kNano;
    EXPECT_NEAR(static_cast<double>(NanoFraction(*p, *w)), static_cast<double>(expected), 1.001)
        << texts[0] << " / " << texts[1];
  }
}

}  // namespace
}  // namespace fairlead::prometheus
