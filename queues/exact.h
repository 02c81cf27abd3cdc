// Exact arithmetic for fairness: products and quotients that do not fit in 64 bits. Shares and
// ratios are decided without floating point, so equal input gives equal answers everywhere.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace fairlead::queues {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// The sign of a*b - c*d: -1, 0 or 1. Exact for every input (the products have up to 192 bits).
int CompareProducts(Uint128 a, uint64_t b, Uint128 c, uint64_t d);

// amount * part / whole = floor + rest / whole, with rest < whole.
struct Quotient {
  uint64_t floor = 0;
  Uint128 rest = 0;
};
// Exact. Needs 0 < whole < 2^126 and part <= whole. One hardware division if the product fits in 64
// bits, one library division if it fits in 128, else 64 steps.
Quotient MultiplyDivide(uint64_t amount, Uint128 part, Uint128 whole);

// A non-negative fraction. den > 0; not reduced.
struct Ratio {
  Uint128 num = 0;
  uint64_t den = 1;
};
int Compare(const Ratio& a, const Ratio& b);

// The nearest value of 64 bits.
inline int64_t Saturate(Int128 value) {
  return static_cast<int64_t>(std::clamp<Int128>(value, std::numeric_limits<int64_t>::min(),
                                                 std::numeric_limits<int64_t>::max()));
}

}  // namespace fairlead::queues
