// The gathering window: demand that comes in parts is planned together. Controllers create pods one
// after another; a plan per pod would provision many small nodes where a few large ones would be
// cheaper.
//
// An item is new if its workload is new, or if it requests more pods than before. New items wait
// until nothing new has come for `quiet`, at most `max` after the first of them; then all are
// planned. So does a complete gang: others of its kind may follow. A released item stays released
// while it is demanded. Time comes in as an argument.
//
// Thread-safety: none. Complexity: O(n log n) for n items.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/demand.h"

namespace fairlead::hook {

class Gathering {
 public:
  Gathering(absl::Duration quiet, absl::Duration max) : quiet_(quiet), max_(max) {}

  // For each item: true if it is still being gathered and must not be planned now.
  std::vector<bool> Hold(const Demand& demand, absl::Time now);
  // When the window closes if nothing more comes; infinite future if none is open.
  [[nodiscard]] absl::Time closes_at() const;

 private:
  struct Known {
    int64_t pods = 0;
    bool passed = false;
    uint64_t seen_in = 0;
  };
  absl::Duration quiet_, max_;
  std::map<std::string, Known> known_;  // by workload
  absl::Time first_ = absl::InfiniteFuture(), last_ = absl::InfinitePast();
  uint64_t round_ = 0;
};

}  // namespace fairlead::hook
