// The gathering window: demand that comes in parts is planned together. Controllers create pods one
// after another; a plan per pod would provision many small nodes where a few large ones would be
// cheaper.
//
// An item is new if its workload is new, or if it requests more pods than before. New items wait
// until nothing new has come for `quiet`, at most `max` after the first of them; then all are
// planned. A complete gang does not wait, and holds nothing up: no more of its pods are to come. A
// released item stays released while it is demanded. Time comes in as an argument.
//
// Thread-safety: none. Complexity: of what comes and goes; Hold() O(n log n) for n items.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "autoscale-hook/demand.h"

namespace fairlead::hook {

class Gathering {
 public:
  Gathering(absl::Duration quiet, absl::Duration max) : quiet_(quiet), max_(max) {}

  // Brings up to date what is demanded, and closes the window if it is due.
  void Update(const DemandChanges& changes, absl::Time now);
  // The changes since the last call, if each item stands for one workload.
  [[nodiscard]] DemandChanges ChangesTo(const Demand& demand) const;
  // The workloads that are gathered still: (is_group, workload), in order.
  using Key = std::pair<bool, std::string>;
  [[nodiscard]] const std::set<Key>& held() const { return held_; }
  // True if the item must not be planned now. What it stands for is either held or not.
  [[nodiscard]] bool Holds(const DemandItem& item) const {
    return !held_.empty() && held_.contains({item.is_group, item.workload});
  }
  // When the window closes if nothing more comes; infinite future if none is open.
  [[nodiscard]] absl::Time closes_at() const;

 private:
  absl::Duration quiet_, max_;
  absl::flat_hash_map<Key, int64_t> known_;  // pods; never iterated where order is seen
  std::set<Key> held_;
  absl::Time first_ = absl::InfiniteFuture(), last_ = absl::InfinitePast();
};

}  // namespace fairlead::hook
