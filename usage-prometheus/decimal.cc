#include "usage-prometheus/decimal.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "queues/exact.h"
#include "queues/fair_share.h"

namespace fairlead::prometheus {
namespace {

using queues::Uint128;

constexpr int kMaxDigits = 19;         // a mantissa is below 10^19 and fits into 64 bits
constexpr int kMaxExponent = 100'000;  // of any text; a double ends at 308
// 10^28, more than the billionths of any mantissa.
constexpr Uint128 kBeyond = static_cast<Uint128>(10'000'000'000'000'000'000u) * 1'000'000'000u;

absl::Status Bad(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text.substr(0, 40), "\" ", what));
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

}  // namespace

absl::StatusOr<Decimal> ParseDecimal(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::EqualsIgnoreCase(text, "nan")) return Bad(text, "is no number");
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (!negative) absl::ConsumePrefix(&rest, "+");
  if (absl::EqualsIgnoreCase(rest, "inf")) return Bad(text, "is infinite");
  Decimal decimal;
  int digits = 0;
  int exponent = 0;
  bool any = false;
  bool point = false;
  for (; !rest.empty() && (IsDigit(rest[0]) || (rest[0] == '.' && !point)); rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (point) --exponent;
    if (digits == kMaxDigits) {
      ++exponent;
      continue;
    }
    decimal.mantissa = decimal.mantissa * 10 + static_cast<uint64_t>(rest[0] - '0');
    if (decimal.mantissa != 0) ++digits;
  }
  int written = 0;
  if (any && (absl::ConsumePrefix(&rest, "e") || absl::ConsumePrefix(&rest, "E"))) {
    // Atoi would accept spaces.
    const bool plain = !rest.empty() && IsDigit(rest[rest.size() - 1]) && rest[0] != ' ';
    if (!plain || !absl::SimpleAtoi(rest, &written)) return Bad(text, "is no number");
    rest = {};
  }
  if (!any || !rest.empty() || text.size() > kMaxExponent) return Bad(text, "is no number");
  if (decimal.mantissa == 0) return Decimal{};
  if (negative) return Bad(text, "is negative");
  if (written < -kMaxExponent || written > kMaxExponent) return Bad(text, "is out of range");
  decimal.exponent = exponent + written;
  return decimal;
}

int64_t NanoFraction(const Decimal& part, const Decimal& whole) {
  if (part.mantissa == 0) return 0;
  const int shift = part.exponent - whole.exponent;
  if (shift >= kMaxDigits) return queues::kNano;
  Uint128 p = part.mantissa;
  Uint128 w = whole.mantissa;
  for (int i = 0; i < shift; ++i) p *= 10;  // below 10^37
  for (int i = 0; i > shift; --i) {
    if (w > kBeyond) return 0;
    w *= 10;
  }
  return static_cast<int64_t>(
      queues::MultiplyDivide(static_cast<uint64_t>(queues::kNano), std::min(p, w), w).floor);
}

}  // namespace fairlead::prometheus
