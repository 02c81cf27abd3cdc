#include "scheduler/engine/walk_budget.h"

#include <algorithm>

namespace fairlead::engine {

void WalkBudget::Begin(int64_t max_walk_work, uint64_t work) {
  allowance_ = std::max(allowance_, static_cast<uint64_t>(std::max<int64_t>(0, max_walk_work)));
  end_of_work_ = work + allowance_;
  turns_ = 0;
  spent_ = false;
}

bool WalkBudget::TakeTurn(uint64_t work) {
  if (!spent_ && (turns_ == 0 || work < end_of_work_)) {
    ++turns_;
    return true;
  }
  spent_ = true;
  return false;
}

void WalkBudget::End() {
  constexpr uint64_t kMost = uint64_t{1} << 60;
  if (!spent_) {
    allowance_ = 0;
    former_turns_ = 0;
    return;
  }
  if (turns_ <= former_turns_) allowance_ = std::min(kMost, std::max<uint64_t>(1, 2 * allowance_));
  former_turns_ = turns_;
}

}  // namespace fairlead::engine
