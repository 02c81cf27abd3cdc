#include "tests/bench/node_filling.h"

#include <algorithm>

#include "tests/bench/dense_lp.h"

namespace fairlead::bench {
namespace {

int64_t Fits(const FillKind& kind, const std::vector<int64_t>& left) {
  int64_t fits = kind.most;
  for (size_t d = 0; d < left.size(); ++d) {
    if (kind.request[d] > 0) fits = std::min(fits, left[d] / kind.request[d]);
  }
  return fits;
}

// Prices of the dimensions: the duals of max value * a, request * a <= capacity. And its solution.
std::vector<double> Surrogate(const std::vector<FillKind>& kinds,
                              const std::vector<int64_t>& capacity,
                              std::vector<std::pair<int, double>>& in_parts) {
  const size_t dimensions = capacity.size();
  DenseLp relaxation(std::vector<double>(dimensions, 1.0), std::vector<double>(dimensions, 0.0));
  for (const FillKind& kind : kinds) {
    DenseLp::Entries entries;
    for (size_t d = 0; d < dimensions; ++d) {
      if (kind.request[d] == 0) continue;
      entries.push_back({static_cast<int>(d),
                         static_cast<double>(kind.request[d]) / static_cast<double>(capacity[d])});
    }
    relaxation.AddColumn(-kind.value, std::move(entries));
  }
  relaxation.Solve(200);
  const std::vector<double> solution = relaxation.Solution();
  for (size_t k = 0; k < kinds.size(); ++k) {
    if (solution[dimensions + k] > 0) in_parts.push_back({kinds[k].id, solution[dimensions + k]});
  }
  std::sort(in_parts.begin(), in_parts.end());
  std::vector<double> prices = relaxation.Duals();
  for (double& price : prices) price = std::max(0.0, -price);
  return prices;
}

class Search {
 public:
  Search(std::vector<FillKind> kinds, const std::vector<int64_t>& capacity, double floor,
         int64_t max_steps)
      : kinds_(std::move(kinds)),
        left_(capacity),
        best_(floor),
        max_steps_(max_steps),
        steps_left_(max_steps) {
    prices_ = Surrogate(kinds_, capacity, in_parts_);
    for (size_t d = 0; d < capacity.size(); ++d) {
      prices_[d] = capacity[d] > 0 ? prices_[d] / static_cast<double>(capacity[d]) : 0;
    }
    std::vector<std::pair<double, size_t>> order;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const double size = SizeOf(kinds_[k].request);
      order.push_back({size > 0 ? -kinds_[k].value / size : -1e300, k});
    }
    std::sort(order.begin(), order.end());
    std::vector<FillKind> sorted;
    for (const auto& [unused, k] : order) sorted.push_back(std::move(kinds_[k]));
    kinds_ = std::move(sorted);
    for (const FillKind& kind : kinds_) sizes_.push_back(SizeOf(kind.request));
    counts_.assign(kinds_.size(), 0);
  }

  Filling Run() {
    const double at_most = Bound(0);
    Try(0, 0);
    Filling filling;
    filling.value = best_;
    filling.steps = max_steps_ - steps_left_;
    // Branches that gain less than 1e-9 are not followed.
    filling.upper = (steps_left_ > 0 ? best_ : std::max(best_, at_most)) * (1 + 2e-9);
    if (steps_left_ <= 0) filling.in_parts = in_parts_;
    for (size_t k = 0; k < best_counts_.size(); ++k) {
      if (best_counts_[k] > 0) filling.counts.push_back({kinds_[k].id, best_counts_[k]});
    }
    std::sort(filling.counts.begin(), filling.counts.end());
    return filling;
  }

 private:
  template <typename Amounts>
  [[nodiscard]] double SizeOf(const Amounts& amounts) const {
    double size = 0;
    for (size_t d = 0; d < prices_.size(); ++d)
      size += prices_[d] * static_cast<double>(amounts[d]);
    return size;
  }
  // What the kinds from k on can add at most. The prices are some valid weights, so it does not
  // matter whether the relaxation was solved exactly.
  [[nodiscard]] double Bound(size_t k) const {
    double room = SizeOf(left_), worth = 0;
    for (; k < kinds_.size(); ++k) {
      const auto fits = static_cast<double>(Fits(kinds_[k], left_));
      const double size = sizes_[k] * fits;
      if (size <= room) {
        worth += kinds_[k].value * fits;
        room -= size;
      } else {
        return worth + kinds_[k].value * room / sizes_[k];
      }
    }
    return worth;
  }
  void Try(size_t k, double value) {
    if (value > best_ * (1 + 1e-12)) {
      best_ = value;
      best_counts_ = counts_;
    }
    if (k == kinds_.size() || --steps_left_ <= 0) return;
    if (value + Bound(k) <= best_ * (1 + 1e-9)) return;
    const FillKind& kind = kinds_[k];
    for (int64_t n = Fits(kind, left_); n >= 0 && steps_left_ > 0; --n) {
      for (size_t d = 0; d < left_.size(); ++d) left_[d] -= n * kind.request[d];
      counts_[k] = n;
      const double with = value + kind.value * static_cast<double>(n);
      if (with + Bound(k + 1) > best_ * (1 + 1e-9)) Try(k + 1, with);
      counts_[k] = 0;
      for (size_t d = 0; d < left_.size(); ++d) left_[d] += n * kind.request[d];
    }
  }

  std::vector<FillKind> kinds_;
  std::vector<double> prices_, sizes_;
  std::vector<std::pair<int, double>> in_parts_;
  std::vector<int64_t> left_, counts_, best_counts_;
  double best_;
  int64_t max_steps_, steps_left_;
};

}  // namespace

Filling BestFilling(std::vector<FillKind> kinds, const std::vector<int64_t>& capacity, double floor,
                    int64_t max_steps) {
  for (FillKind& kind : kinds) kind.most = Fits(kind, capacity);
  std::erase_if(kinds, [](const FillKind& kind) { return kind.most <= 0 || kind.value <= 0; });
  if (kinds.empty()) return {{}, floor, floor, 0, {}};
  return Search(std::move(kinds), capacity, floor, max_steps).Run();
}

}  // namespace fairlead::bench
