#include "tests/bench/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/bench/harness.h"

namespace fairlead::bench {
namespace {

constexpr int kRuns = 5;
// docs/performance.md says how these were measured.
constexpr ReferenceTimes kQuiet = {0.0095, 0.0110, 0.0365};

// The results are kept, so that nothing is optimised away.
volatile uint64_t sink = 0;

uint64_t Next(uint64_t& state) {  // SplitMix64
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// FNV-1a over 8 MiB: one dependent multiplication a byte.
void Hash(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  sink = sink + hash;
}

// 200,000 random numbers: branches that cannot be foreseen.
void Sort(const std::vector<uint64_t>& values) {
  std::vector<uint64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sink = sink + sorted[sorted.size() / 2];
}

// 200,000 steps through a random circle over 32 MiB: memory's latency.
void Chase(const std::vector<uint32_t>& next) {
  uint32_t at = 0;
  for (int i = 0; i < 200'000; ++i) at = next[size_t{at} * 16];
  sink = sink + at;
}

// One circle through all lines of 64 bytes (Sattolo).
std::vector<uint32_t> MakeCircle() {
  constexpr uint32_t kLines = 512 * 1024;
  std::vector<uint32_t> order(kLines);
  std::iota(order.begin(), order.end(), 0u);
  uint64_t state = 7;
  for (uint32_t i = kLines - 1; i > 0; --i) std::swap(order[i], order[Next(state) % i]);
  std::vector<uint32_t> next(size_t{kLines} * 16);
  for (uint32_t i = 0; i < kLines; ++i) next[size_t{order[i]} * 16] = order[(i + 1) % kLines];
  return next;
}

template <typename Work>
double Time(const Work& work) {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i) {
    const Stopwatch watch;
    work();
    seconds.push_back(watch.Seconds());
  }
  return Median(std::move(seconds));
}

}  // namespace

ReferenceTimes MeasureReference() {
  static const std::string bytes(size_t{8} << 20, 'x');
  static const std::vector<uint64_t> values = [] {
    std::vector<uint64_t> all(200'000);
    uint64_t state = 1;
    for (uint64_t& value : all) value = Next(state);
    return all;
  }();
  static const std::vector<uint32_t> circle = MakeCircle();
  return {Time([] { Hash(bytes); }), Time([] { Sort(values); }), Time([] { Chase(circle); })};
}

double IndexOf(const ReferenceTimes& times) {
  return std::cbrt(times.hashing / kQuiet.hashing * (times.sorting / kQuiet.sorting) *
                   (times.chasing / kQuiet.chasing));
}

}  // namespace fairlead::bench
