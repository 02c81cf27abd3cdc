#include "sim/faults.h"

namespace fairlead::sim {

uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

int64_t Random::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
}

bool Faults::Hit(FaultPoint point) {
  const int32_t chance = options_.per_mille[static_cast<size_t>(point)];
  if (chance <= 0) return false;  // draws no random number: a world without faults draws none
  if (random_.Below(1000) >= static_cast<uint64_t>(chance)) return false;
  ++hits_[static_cast<size_t>(point)];
  return true;
}

}  // namespace fairlead::sim
