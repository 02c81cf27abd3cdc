// Which faults occur, and when: fault points decided by a seed. With every probability at zero (the
// default) nothing is random and the seed is not used.
//
// Thread-safety: none, one thread. Determinism: same seed, same sequence of questions, same
// answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fairlead::sim {

enum class FaultPoint : uint8_t {
  kWatchBreak,          // a watch loses everything until it lists again
  kDuplicateEvent,      // an event is delivered twice
  kSlowWatch,           // an event comes seconds late (in order within its kind)
  kBindConflict,        // the API server answers a bind with 409 although nothing is wrong
  kLostReply,           // a write is done, its answer never arrives
  kLostRequest,         // a write is not done, and no answer says so
  kSlowApi,             // a write takes seconds
  kNodeGoneBeforeBind,  // the chosen node dies between decision and bind
  kStockout,            // a provider has no machine of the type
  kLaunchReplyLost,     // a provider launched it and the answer is lost
  kNeverArrives,        // a provider accepts and no machine comes
  kLateBoot,            // a node takes ten times as long
};
inline constexpr int kFaultPoints = static_cast<int>(FaultPoint::kLateBoot) + 1;

struct FaultOptions {
  uint64_t seed = 0;
  std::array<int32_t, kFaultPoints> per_mille{};  // 0..1000 for each point
  void Set(FaultPoint point, int32_t chance_per_mille) {
    per_mille[static_cast<size_t>(point)] = chance_per_mille;
  }
};

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // 0..bound-1, `bound` > 0. The bias of the modulo does not matter here.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // `low`..`high`, both included.
  int64_t Between(int64_t low, int64_t high);

 private:
  uint64_t state_;
};

class Faults {
 public:
  explicit Faults(const FaultOptions& options) : options_(options), random_(options.seed) {}

  bool Hit(FaultPoint point);
  Random& random() { return random_; }
  [[nodiscard]] uint64_t hits(FaultPoint point) const { return hits_[static_cast<size_t>(point)]; }
  // No fault occurs from now on.
  void Stop() { options_.per_mille.fill(0); }

 private:
  FaultOptions options_;
  Random random_;
  std::array<uint64_t, kFaultPoints> hits_{};
};

}  // namespace fairlead::sim
