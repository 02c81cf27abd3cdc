// What the nodes of a time cost at least, given when its pods ran: a lower bound of the integral of
// the cost over time, for every autoscaler, also for one that knows the future and may move running
// pods without loss.
//
// At any time the ready nodes hold the pods that run. A GPU of a node that holds a pod costs at
// least the least price of a GPU among the types on which the pod fits; so nodes that hold the
// running pods cost at least c(t), the sum of that over the GPUs that they use (the resource
// program LB0 of the facts' section 7, with GPUs as the one resource). And what is ready at time s
// was paid for since `boot` before, so at time t at least the most of c(s) for t <= s <= t + boot
// is paid. The bound is the integral of that.
//
// Units: micro-dollars per hour for rates, nanoseconds for time. Thread-safety: none. Complexity:
// O(n log n) in the changes. Rounding: Total() is rounded down once, to micro-dollars.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "scheduler/model/resources.h"

namespace fairlead::bench {

// The least that the GPUs of a pod with these requests cost; absent if it fits no type whose price
// is known. The pod has to request whole GPUs. `gpu_model`: of types with any other model no pod
// has a GPU; empty: any will do.
std::optional<int64_t> LeastRate(const hook::Catalog& catalog, const std::string& gpu_model,
                                 const model::ResourceList& requests);

// Rates times nanoseconds.
using MonthCost = absl::uint128;
inline MonthCost CostOf(int64_t rate, absl::Duration time) {
  return MonthCost(static_cast<uint64_t>(rate)) *
         static_cast<uint64_t>(absl::ToInt64Nanoseconds(time));
}
// In micro-dollars, rounded down.
inline int64_t MicroUsd(MonthCost cost) {
  return static_cast<int64_t>(cost / CostOf(1, absl::Hours(1)));
}

class MonthBound {
 public:
  explicit MonthBound(absl::Duration boot) : boot_(boot) {}

  // c(t) changes by so much from `at` on. In order of time.
  void Add(absl::Time at, int64_t rate);
  // Until `end`, at or after the last change.
  [[nodiscard]] int64_t Total(absl::Time end) const;
  // The same without boot times.
  [[nodiscard]] int64_t WithoutBoot(absl::Time end) const;

 private:
  struct Level {
    absl::Time since;
    int64_t rate = 0;
  };
  [[nodiscard]] int64_t Integral(absl::Time end, absl::Duration boot) const;

  absl::Duration boot_;
  std::vector<Level> levels_;  // by time; of one time the last
};

}  // namespace fairlead::bench
