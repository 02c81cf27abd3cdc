#include "tests/replay/go_random.h"

namespace fairlead::replay {
namespace {

constexpr int64_t kLehmerModulus = 2147483647;
constexpr int64_t kLehmerFactor = 48271;
constexpr uint64_t kWarmUpSteps = 7'800'000'000'000;

}  // namespace

GoRandom::State GoRandom::Start(int64_t seed, int high_shift, int middle_shift) {
  int64_t x = seed % kLehmerModulus;
  if (x < 0) x += kLehmerModulus;
  if (x == 0) x = 89482311;
  const auto next = [&x] {
    x = x * kLehmerFactor % kLehmerModulus;
    return static_cast<uint64_t>(x);
  };
  for (int i = 0; i < 20; ++i) next();
  State state;
  for (uint64_t& word : state) {
    word = next() << high_shift;
    word ^= next() << middle_shift;
    word ^= next();
  }
  return state;
}

// Slot 333 - n (mod 607) holds x[n], last written at step n; the start is x[-607..-1].
GoRandom::State GoRandom::Warmed() {
  using Polynomial = std::vector<uint64_t>;
  const auto slot_of = [](uint64_t shifted) {  // of x[shifted - 607]
    return (kLength - kTap - 1 + kLength - shifted % kLength) % kLength;
  };
  // x^607 = x^334 + 1.
  const auto reduce = [](Polynomial& p) {
    for (size_t i = p.size(); i-- > kLength;) {
      p[i - kLength] += p[i];
      p[i - kTap] += p[i];
    }
    p.resize(kLength);
  };
  Polynomial power(kLength, 0);  // x^(the bits of the exponent so far)
  power[0] = 1;
  for (int bit = 63; bit >= 0; --bit) {
    Polynomial square(2 * kLength, 0);
    for (size_t i = 0; i < kLength; ++i) {
      if (power[i] == 0) continue;
      for (size_t j = 0; j < kLength; ++j) square[i + j] += power[i] * power[j];
    }
    if ((kWarmUpSteps >> bit & 1) != 0) {
      square.insert(square.begin(), 0);
      square.pop_back();
    }
    reduce(square);
    power = std::move(square);
  }
  const State start = Start(1, 20, 10);
  State warmed;
  for (uint64_t i = 0; i < kLength; ++i) {
    uint64_t word = 0;
    for (size_t j = 0; j < kLength; ++j) word += power[j] * start[slot_of(j)];
    warmed[slot_of(kWarmUpSteps + i)] = word;
    power.insert(power.begin(), 0);
    reduce(power);
  }
  return warmed;
}

GoRandom::GoRandom(int64_t seed) : state_(Start(seed, 40, 20)) {
  static const State warmed = Warmed();
  for (size_t i = 0; i < kLength; ++i) state_[i] ^= warmed[i];
}

uint64_t GoRandom::Uint64() {
  tap_ = (tap_ + kLength - 1) % kLength;
  feed_ = (feed_ + kLength - 1) % kLength;
  return state_[feed_] += state_[tap_];
}

int32_t GoRandom::Intn(int32_t n) {
  const auto draw = [this] { return static_cast<int32_t>(Int63() >> 32); };
  if ((n & (n - 1)) == 0) return draw() & (n - 1);
  const auto bound = static_cast<int32_t>((uint32_t{1} << 31) - 1 -
                                          (uint32_t{1} << 31) % static_cast<uint32_t>(n));
  int32_t value = draw();
  while (value > bound) value = draw();
  return value % n;
}

uint32_t GoRandom::Below(uint32_t n) {
  const auto draw = [this] { return static_cast<uint64_t>(Int63() >> 31 & 0xffffffff); };
  uint64_t product = draw() * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t threshold = (0U - n) % n;
    while (static_cast<uint32_t>(product) < threshold) product = draw() * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace fairlead::replay
