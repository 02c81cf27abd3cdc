#include "scheduler/model/quantity.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {
namespace {

constexpr int64_t kMostUnits = std::numeric_limits<int64_t>::max();

// A decimal number as digits * 10^-fraction_digits. Digits past 36 would overflow: they are cut
// (with a sticky bit for rounding) or, before the point, make the value saturate.
struct Decimal {
  bool negative = false;
  absl::uint128 digits = 0;
  int fraction_digits = 0;
  bool inexact = false;    // non-zero digits were cut
  bool saturated = false;  // too large to hold
};

constexpr int kMaxDigits = 36;

// Reads [+-]digits[.digits] from the front; false if there is no digit.
bool ConsumeDecimal(absl::string_view& text, Decimal& out) {
  if (absl::ConsumePrefix(&text, "-")) {
    out.negative = true;
  } else {
    absl::ConsumePrefix(&text, "+");
  }
  bool any = false;
  bool point = false;
  int used = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text[0];
    if (c == '.') {
      if (point) return false;
      point = true;
      continue;
    }
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) break;
    any = true;
    if (used == 0 && c == '0' && !point) continue;  // leading zeros are free
    if (used == kMaxDigits) {
      if (!point) {
        out.saturated = true;
      } else if (c != '0') {
        out.inexact = true;
      }
      continue;
    }
    out.digits = out.digits * 10 + static_cast<unsigned>(c - '0');
    ++used;
    if (point) ++out.fraction_digits;
  }
  return any;
}

enum class Rounding { kAwayFromZero, kHalfAwayFromZero };

// value * 10^exponent10 * multiplier, rounded to an integer, saturated.
int64_t Scale(const Decimal& value, int exponent10, absl::uint128 multiplier, Rounding rounding) {
  const absl::uint128 kHuge = absl::Uint128Max() / 10;
  absl::uint128 n = value.digits;
  bool saturated = value.saturated;
  if (n != 0 && multiplier > absl::Uint128Max() / n) saturated = true;
  if (!saturated) n *= multiplier;
  int shift = exponent10 - value.fraction_digits;
  for (; shift > 0 && n != 0 && !saturated; --shift) {
    if (n > kHuge) saturated = true;
    n *= 10;
  }
  bool sticky = value.inexact;
  unsigned last = 0;
  for (; shift < 0 && n != 0 && !saturated; ++shift) {
    sticky = sticky || last != 0;
    last = static_cast<unsigned>(absl::Uint128Low64(n % 10));
    n /= 10;
    if (shift < -60 && n == 0) break;
  }
  if (shift < 0 && last != 0 && n == 0 && shift != 0) {
    // The digit removed last was not the first one after the point.
    sticky = true;
    last = 0;
  }
  if (!saturated) {
    const bool up = rounding == Rounding::kAwayFromZero ? (last != 0 || sticky) : last >= 5;
    if (up) n += 1;
    if (n > static_cast<absl::uint128>(static_cast<uint64_t>(kMostUnits))) saturated = true;
  }
  const int64_t magnitude = saturated ? kMostUnits : static_cast<int64_t>(absl::Uint128Low64(n));
  return value.negative ? -magnitude : magnitude;
}

struct Suffix {
  int exponent10 = 0;
  int exponent2 = 0;
};

std::optional<Suffix> ParseSuffix(absl::string_view text) {
  struct Row {
    absl::string_view text;
    Suffix suffix;
  };
  static constexpr Row kRows[] = {
      {"", {0, 0}},    {"n", {-9, 0}},  {"u", {-6, 0}},  {"m", {-3, 0}},
      {"k", {3, 0}},   {"M", {6, 0}},   {"G", {9, 0}},   {"T", {12, 0}},
      {"P", {15, 0}},  {"E", {18, 0}},  {"Ki", {0, 10}}, {"Mi", {0, 20}},
      {"Gi", {0, 30}}, {"Ti", {0, 40}}, {"Pi", {0, 50}}, {"Ei", {0, 60}},
  };
  for (const Row& row : kRows) {
    if (row.text == text) return row.suffix;
  }
  if (text.size() >= 2 && (text[0] == 'e' || text[0] == 'E')) {
    int exponent = 0;
    absl::string_view digits = text.substr(1);
    absl::ConsumePrefix(&digits, "+");
    if (!digits.empty() && digits[0] != '+' && absl::SimpleAtoi(digits, &exponent) &&
        exponent >= -1000 && exponent <= 1000) {
      return Suffix{exponent, 0};
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(absl::string_view text, int64_t units_per_one) {
  absl::string_view rest = text;
  Decimal value;
  if (ConsumeDecimal(rest, value)) {
    if (std::optional<Suffix> suffix = ParseSuffix(rest)) {
      const absl::uint128 multiplier =
          (absl::uint128(1) << suffix->exponent2) * static_cast<uint64_t>(units_per_one);
      return Scale(value, suffix->exponent10, multiplier, Rounding::kAwayFromZero);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a quantity (like 2, 500m, 80Gi or 1e3)"));
}

absl::StatusOr<int64_t> ParseResourceQuantity(absl::string_view resource_name,
                                              absl::string_view text) {
  return ParseQuantity(text, BaseUnitsPerUnit(resource_name));
}

absl::StatusOr<int64_t> ParseDecimal(absl::string_view text, int64_t units_per_one) {
  absl::string_view rest = text;
  Decimal value;
  if (ConsumeDecimal(rest, value)) {
    std::optional<Suffix> suffix = ParseSuffix(rest);
    if (suffix.has_value() && suffix->exponent2 == 0 && (rest.empty() || rest.size() > 1)) {
      return Scale(value, suffix->exponent10, static_cast<uint64_t>(units_per_one),
                   Rounding::kHalfAwayFromZero);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number"));
}

absl::StatusOr<int64_t> ParseDollars(absl::string_view text) {
  absl::StatusOr<int64_t> micro_usd = ParseDecimal(text, kMicroUsdPerUsd);
  if (micro_usd.ok() && *micro_usd < 0) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is negative"));
  }
  return micro_usd;
}

std::string FormatDollars(int64_t micro_usd) {
  // To the cent above a dollar, exact below: prices of small types differ in the fourth digit.
  const int64_t dollars = micro_usd / 1000000, rest = micro_usd % 1000000;
  if (dollars > 0 || rest == 0) return absl::StrFormat("$%d.%02d", dollars, rest / 10000);
  std::string digits = absl::StrFormat("%06d", rest);
  digits.erase(std::max<size_t>(2, digits.find_last_not_of('0') + 1));
  return absl::StrCat("$0.", digits);
}

}  // namespace fairlead::model
