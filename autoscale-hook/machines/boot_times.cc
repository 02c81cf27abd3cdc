#include "autoscale-hook/machines/boot_times.h"

#include <algorithm>
#include <vector>

namespace fairlead::hook {

void BootTimes::Add(Recent& recent, absl::Duration took) {
  recent.push_back(took);
  if (recent.size() > kKept) recent.pop_front();
}

void BootTimes::Learn(const std::string& type, const std::string& pool, absl::Duration took) {
  // A clock that was set back, or a status that was written by hand.
  if (took < absl::ZeroDuration() || took > absl::Hours(24)) return;
  Add(by_type_[{type, pool}], took);
  Add(by_pool_[pool], took);
}

absl::Duration BootTimes::Expect(const std::string& type, const std::string& pool,
                                 absl::Duration otherwise) const {
  const Recent* recent = nullptr;
  if (const auto known = by_type_.find({type, pool}); known != by_type_.end()) {
    recent = &known->second;
  } else if (const auto of_pool = by_pool_.find(pool); of_pool != by_pool_.end()) {
    recent = &of_pool->second;
  }
  if (recent == nullptr) return otherwise;
  std::vector<absl::Duration> sorted(recent->begin(), recent->end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() * 9 + 9) / 10 - 1];
}

}  // namespace fairlead::hook
