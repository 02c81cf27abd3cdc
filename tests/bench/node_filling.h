// The most valuable filling of one node: a bounded knapsack in several dimensions. It is the
// pricing step of packing_bound.cc, so its `upper` has to be a true upper bound, also where the
// search is cut short.
//
// Branch and bound, the best value per surrogate size first. The surrogate size of a pod is its
// request times the dual prices of the knapsack's linear relaxation; what is left on the node is
// worth at most what fills its surrogate size best (Dantzig's bound on each kind's count). Near the
// root the relaxation is solved again for what is left, and its prices bound the branches below it.
// Any prices that are not negative give a valid bound (weak duality).
//
// Thread-safety: pure. Complexity: at most `max_steps` tries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::bench {

struct FillKind {
  int id = 0;                    // as the caller knows it
  double value = 0;              // of one; above 0
  int64_t most = 0;              // at most so many
  std::vector<int64_t> request;  // by dimension
};

struct Filling {
  std::vector<std::pair<int, int64_t>> counts;  // (id, how many), ascending; empty: none is better
  double value = 0;                             // of `counts`, or the floor
  double upper = 0;                             // no filling is worth more
  int64_t steps = 0;                            // used
  // If the search was cut short: of the branches that it left, the most valuable one, where the
  // relaxation decides the rest. A filling in parts of pods that is worth `upper`, about.
  std::vector<std::pair<int, double>> in_parts = {};
};

// Looks for fillings worth more than `floor`. What is worth a part of `tolerance` more than the
// best one found, or than the floor, need not be found: `upper` counts it.
Filling BestFilling(std::vector<FillKind> kinds, const std::vector<int64_t>& capacity, double floor,
                    int64_t max_steps, double tolerance = 1e-9);

}  // namespace fairlead::bench
