#include "queues/exact.h"

#include "base/check.h"

namespace fairlead::queues {
namespace {

struct Uint192 {
  Uint128 high = 0;  // the upper 128 bits
  uint64_t low = 0;
};

Uint192 Multiply(Uint128 a, uint64_t b) {
  const Uint128 low = static_cast<Uint128>(static_cast<uint64_t>(a)) * b;
  const Uint128 high = (a >> 64) * b + (low >> 64);
  return {high, static_cast<uint64_t>(low)};
}

}  // namespace

int CompareProducts(Uint128 a, uint64_t b, Uint128 c, uint64_t d) {
  const Uint192 x = Multiply(a, b);
  const Uint192 y = Multiply(c, d);
  if (x.high != y.high) return x.high < y.high ? -1 : 1;
  if (x.low != y.low) return x.low < y.low ? -1 : 1;
  return 0;
}

Quotient MultiplyDivide(uint64_t amount, Uint128 part, Uint128 whole) {
  FAIRLEAD_CHECK(whole > 0 && part <= whole && (whole >> 126) == 0, "quotient out of range");
  constexpr Uint128 kMax64 = ~static_cast<uint64_t>(0);
  if (part <= kMax64) {
    const Uint128 product = static_cast<Uint128>(amount) * part;
    if (product <= kMax64 && whole <= kMax64) {
      const auto small = static_cast<uint64_t>(product);
      const auto divisor = static_cast<uint64_t>(whole);
      return {small / divisor, small % divisor};
    }
    const Uint128 floor = product / whole;
    return {static_cast<uint64_t>(floor), product - floor * whole};
  }
  // Schoolbook: the quotient of the bits of amount seen so far, doubled and extended by one bit.
  Quotient result;
  for (int bit = 63; bit >= 0; --bit) {
    result.floor <<= 1;
    result.rest <<= 1;
    if ((amount >> bit & 1) != 0) result.rest += part;
    while (result.rest >= whole) {
      result.rest -= whole;
      ++result.floor;
    }
  }
  return result;
}

int Compare(const Ratio& a, const Ratio& b) { return CompareProducts(a.num, b.den, b.num, a.den); }

}  // namespace fairlead::queues
