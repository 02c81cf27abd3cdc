// How much work the walk over all that waits may cost in one cycle (actions/pending_pass.h). What
// is left has its turn in the next cycle, which follows at once: whatever tenants create, the owner
// of the engine is back in time for its lease, its events and its writes. A pod of a size that no
// pod had before is compared with every node, and nothing bounds how many sizes there are.
//
// Work is counted (Placer::work()), never measured in time, so that decisions do not depend on the
// speed of the machine. The walk ends at one place for all queues: nothing passes what was not
// looked at.
//
// Fairness: what a cycle has found out is remembered, so the next one comes further. If it does
// not, because what it finds out cannot be remembered, it may spend twice as much, and so on: the
// last in the order has its turn at some time.
//
// Ownership: the engine's; persists over cycles, not over restarts. Thread-safety: the owner's
// thread. Complexity: O(1).
#pragma once

#include <cstdint>

namespace fairlead::engine {

class WalkBudget {
 public:
  // Before the first turn of a walk. `work`: spent so far, by whatever.
  void Begin(int64_t max_walk_work, uint64_t work);
  // Whether one more workload has its turn. The first one always has.
  bool TakeTurn(uint64_t work);
  // Some workload had no turn. The next walk goes on from what this one has found out.
  [[nodiscard]] bool spent() const { return spent_; }
  void End();

 private:
  uint64_t allowance_ = 0;  // of each walk; 0: what is configured
  uint64_t end_of_work_ = 0;
  int64_t turns_ = 0;
  int64_t former_turns_ = 0;  // of the last walk, if it was spent
  bool spent_ = false;
};

}  // namespace fairlead::engine
