#include "tests/bench/month_bound.h"

#include <algorithm>
#include <deque>

#include "scheduler/model/api_names.h"

namespace fairlead::bench {

std::optional<int64_t> LeastRate(const hook::Catalog& catalog, const std::string& gpu_model,
                                 const model::ResourceList& requests) {
  const int64_t gpus = model::Get(requests, model::kGpuName) / 1000;
  std::optional<int64_t> least;
  for (const hook::InstanceType& type : catalog.types()) {
    if (!type.on_demand_micro_usd.has_value() || gpus == 0 || type.gpu_count < gpus ||
        type.cpu_milli < model::Get(requests, model::kCpuName) ||
        type.memory_bytes < model::Get(requests, model::kMemoryName) ||
        (!gpu_model.empty() && type.gpu_model != gpu_model)) {
      continue;
    }
    const int64_t rate = *type.on_demand_micro_usd * gpus / type.gpu_count;
    if (!least.has_value() || rate < *least) least = rate;
  }
  return least;
}

void MonthBound::Add(absl::Time at, int64_t rate) {
  const int64_t before = levels_.empty() ? 0 : levels_.back().rate;
  if (!levels_.empty() && levels_.back().since == at) {
    levels_.back().rate += rate;
  } else {
    levels_.push_back({at, before + rate});
  }
}

// The most of the levels that begin before t + boot and have not ended at t, swept over t: level i
// counts from its begin less `boot` to its end. Begins are in order, and so are ends: the most of a
// sliding window (a queue of falling rates).
int64_t MonthBound::Integral(absl::Time end, absl::Duration boot) const {
  const auto ends_at = [&](size_t level) {
    return level + 1 < levels_.size() ? levels_[level + 1].since : end;
  };
  MonthCost sum = 0;
  std::vector<absl::Time> turns;
  for (size_t i = 0; i < levels_.size(); ++i) {
    turns.push_back(levels_[i].since - boot);
    turns.push_back(ends_at(i));
  }
  std::sort(turns.begin(), turns.end());
  std::deque<size_t> highest;  // levels that count, each lower than the one before it
  size_t next = 0;
  for (size_t turn = 0; turn + 1 < turns.size(); ++turn) {
    const absl::Time at = turns[turn];
    for (; next < levels_.size() && levels_[next].since - boot <= at; ++next) {
      while (!highest.empty() && levels_[highest.back()].rate <= levels_[next].rate) {
        highest.pop_back();
      }
      highest.push_back(next);
    }
    while (!highest.empty() && ends_at(highest.front()) <= at) highest.pop_front();
    if (highest.empty()) continue;
    sum += CostOf(levels_[highest.front()].rate, turns[turn + 1] - at);
  }
  return MicroUsd(sum);
}

int64_t MonthBound::Total(absl::Time end) const { return Integral(end, boot_); }

int64_t MonthBound::WithoutBoot(absl::Time end) const {
  return Integral(end, absl::ZeroDuration());
}

}  // namespace fairlead::bench
