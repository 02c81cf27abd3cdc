#include "autoscale-hook/gathering.h"

#include <algorithm>

namespace fairlead::hook {
namespace {

int64_t PodsOf(const DemandItem& item) {
  int64_t pods = 0;
  for (const verdict::DemandClass& pod_class : item.classes) pods += pod_class.count;
  return pods;
}

}  // namespace

std::vector<bool> Gathering::Hold(const Demand& demand, absl::Time now) {
  std::vector<bool> held(demand.size(), false);
  if (quiet_ <= absl::ZeroDuration()) return held;
  ++round_;
  bool open = false;
  for (const DemandItem& item : demand) {
    Known& known = known_[(item.is_group ? "group/" : "pod/") + item.workload];
    const int64_t pods = PodsOf(item);
    if (pods > known.pods) {
      known.passed = false;
      first_ = std::min(first_, now);
      last_ = now;
    }
    known.pods = pods;
    known.seen_in = round_;
    open = open || !known.passed;
  }
  std::erase_if(known_, [this](const auto& entry) { return entry.second.seen_in != round_; });
  // A clock that was set back must not hold demand for longer than `max`.
  if (open && (now >= closes_at() || now < first_)) {
    for (auto& [workload, known] : known_) known.passed = true;
    open = false;
  }
  if (!open) {
    first_ = absl::InfiniteFuture();
    last_ = absl::InfinitePast();
    return held;
  }
  for (size_t i = 0; i < demand.size(); ++i) {
    held[i] = !known_.at((demand[i].is_group ? "group/" : "pod/") + demand[i].workload).passed;
  }
  return held;
}

absl::Time Gathering::closes_at() const {
  if (first_ == absl::InfiniteFuture()) return absl::InfiniteFuture();
  return std::min(last_ + quiet_, first_ + max_);
}

}  // namespace fairlead::hook
