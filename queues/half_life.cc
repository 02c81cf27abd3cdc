#include "queues/half_life.h"

#include <array>
#include <cstddef>

namespace fairlead::queues {
namespace {

constexpr int kScaleBits = 62;
constexpr int kFractionBits = 32;

constexpr uint64_t SquareRoot(Uint128 value) {
  uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t tried = root | uint64_t{1} << bit;
    if (static_cast<Uint128>(tried) * tried <= value) root = tried;
  }
  return root;
}

// Entry i: 0.5^(1 / 2^i), scaled by 2^kScaleBits. Each entry is the square root of the previous
// one.
constexpr std::array<uint64_t, kFractionBits + 1> MakeRoots() {
  std::array<uint64_t, kFractionBits + 1> roots = {};
  roots[0] = uint64_t{1} << (kScaleBits - 1);
  for (size_t i = 1; i < roots.size(); ++i) {
    roots[i] = SquareRoot(static_cast<Uint128>(roots[i - 1]) << kScaleBits);
  }
  return roots;
}
constexpr std::array<uint64_t, kFractionBits + 1> kRoots = MakeRoots();

}  // namespace

uint64_t DecayWeight(int64_t age_ms, int64_t half_life_ms) {
  if (half_life_ms <= 0 || age_ms <= 0) return kFullWeight;
  const int64_t halvings = age_ms / half_life_ms;
  if (halvings > kFractionBits) return 0;
  const auto fraction =
      static_cast<uint64_t>((static_cast<Uint128>(age_ms % half_life_ms) << kFractionBits) /
                            static_cast<Uint128>(half_life_ms));
  uint64_t weight = uint64_t{1} << kScaleBits;
  for (int i = 1; i <= kFractionBits; ++i) {
    if ((fraction >> (kFractionBits - i) & 1) == 0) continue;
    weight = static_cast<uint64_t>(static_cast<Uint128>(weight) * kRoots[static_cast<size_t>(i)] >>
                                   kScaleBits);
  }
  return weight >> halvings >> (kScaleBits - 32);
}

Uint128 Weighted(Uint128 amount, uint64_t weight) {
  const Uint128 low = amount & (kFullWeight - 1);
  return (amount >> 32) * weight + (low * weight >> 32);
}

}  // namespace fairlead::queues
