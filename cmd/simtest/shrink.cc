#include "cmd/simtest/shrink.h"

#include <algorithm>
#include <utility>

namespace fairlead::simtest {

using sim::world::Plan;

Plan Shrink(Plan plan, const std::function<bool(const Plan&)>& fails,
            const std::function<bool(int64_t tries)>& goes_on) {
  size_t pieces = 2;
  int64_t tries = 0;
  while (!plan.operations.empty() && goes_on(tries)) {
    const size_t size = plan.operations.size();
    const size_t piece = std::max<size_t>(1, (size + pieces - 1) / pieces);
    bool smaller = false;
    for (size_t from = 0; from < plan.operations.size() && goes_on(tries);) {
      Plan candidate = plan;
      const auto first = candidate.operations.begin() + static_cast<ptrdiff_t>(from);
      const size_t count = std::min(piece, candidate.operations.size() - from);
      candidate.operations.erase(first, first + static_cast<ptrdiff_t>(count));
      ++tries;
      if (fails(candidate)) {
        plan = std::move(candidate);
        smaller = true;
      } else {
        from += count;
      }
    }
    if (piece == 1 && !smaller) break;
    pieces = smaller ? std::max<size_t>(2, pieces) : pieces * 2;
  }
  return plan;
}

}  // namespace fairlead::simtest
