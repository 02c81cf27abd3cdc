// The numbers in Prometheus' answers: floating point as text ("80640.5", "1.2e+06"). They are
// parsed to exact decimals, because decisions compute in integers.
//
// Thread-safety: plain values and pure functions. Complexity: O(length of the text).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::prometheus {

// mantissa * 10^exponent; zero has the exponent 0.
struct Decimal {
  uint64_t mantissa = 0;
  int exponent = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

// Parses a finite number that is not negative. Significant digits after the nineteenth are cut off.
// InvalidArgument, with the text, for everything else: NaN, infinities, signs, no number at all.
absl::StatusOr<Decimal> ParseDecimal(absl::string_view text);

// part / whole in billionths, rounded down, at most 10^9 (a part above the whole counts as all of
// it). `whole` must not be zero.
int64_t NanoFraction(const Decimal& part, const Decimal& whole);

}  // namespace fairlead::prometheus
