#include "tests/bench/node_filling.h"

#include <algorithm>

#include "tests/bench/dense_lp.h"

namespace fairlead::bench {
namespace {

constexpr int kRelaxedDepth = 12;           // relaxations above one another
constexpr int64_t kStepsOfRelaxation = 10;  // what one costs, about

int64_t Fits(const FillKind& kind, const std::vector<int64_t>& left) {
  int64_t fits = kind.most;
  for (size_t d = 0; d < left.size(); ++d) {
    if (kind.request[d] > 0) fits = std::min(fits, left[d] / kind.request[d]);
  }
  return fits;
}

// Prices of amounts, and which kinds the relaxation behind them uses.
struct FillingInParts {
  std::vector<double> prices;                    // by dimension, of one unit
  std::vector<std::pair<size_t, double>> used;   // (kind, how many), ascending
  std::vector<std::pair<size_t, double>> gains;  // kinds worth more than their amounts
};

// The duals of max value * a, request * a <= left, over the kinds from `first` on that fit.
FillingInParts FillInParts(const std::vector<FillKind>& kinds, size_t first,
                           const std::vector<int64_t>& left) {
  constexpr int kMaxPivots = 200;
  const size_t dimensions = left.size();
  DenseLp relaxation(std::vector<double>(dimensions, 1.0), std::vector<double>(dimensions, 0.0));
  std::vector<size_t> column;
  for (size_t k = first; k < kinds.size(); ++k) {
    if (Fits(kinds[k], left) == 0) continue;
    DenseLp::Entries entries;
    for (size_t d = 0; d < dimensions; ++d) {
      if (kinds[k].request[d] == 0) continue;
      entries.push_back({static_cast<int>(d),
                         static_cast<double>(kinds[k].request[d]) / static_cast<double>(left[d])});
    }
    relaxation.AddColumn(-kinds[k].value, std::move(entries));
    column.push_back(k);
  }
  relaxation.Solve(kMaxPivots);
  FillingInParts result;
  const std::vector<double> solution = relaxation.Solution(), duals = relaxation.Duals();
  for (size_t c = 0; c < column.size(); ++c) {
    if (solution[dimensions + c] > 0) result.used.emplace_back(column[c], solution[dimensions + c]);
  }
  for (size_t d = 0; d < dimensions; ++d) {
    result.prices.push_back(left[d] > 0 ? std::max(0.0, -duals[d]) / static_cast<double>(left[d])
                                        : 0.0);
  }
  // None at the optimum, because counts have no limit there; some if it was not reached.
  for (const size_t k : column) {
    double gain = kinds[k].value;
    for (size_t d = 0; d < dimensions; ++d) {
      gain -= result.prices[d] * static_cast<double>(kinds[k].request[d]);
    }
    if (gain > 0) result.gains.emplace_back(k, gain);
  }
  return result;
}

class Search {
 public:
  Search(std::vector<FillKind> kinds, const std::vector<int64_t>& capacity, double floor,
         int64_t max_steps, double tolerance)
      : kinds_(std::move(kinds)),
        left_(capacity),
        best_(floor),
        tolerance_(tolerance),
        max_steps_(max_steps),
        steps_left_(max_steps) {
    const FillingInParts root = FillInParts(kinds_, 0, capacity);
    prices_ = root.prices;
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
    Try(0, 0, FillInParts(kinds_, 0, left_), 0, false);
    Filling filling;
    filling.value = best_;
    filling.steps = max_steps_ - steps_left_;
    // Branches that gain less than the tolerance are not followed.
    filling.upper = std::max(best_ * (1 + tolerance_), open_) * (1 + 1e-9);
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
  // The same by other prices: amounts that are left at their prices, and what kinds gain over them.
  [[nodiscard]] double BoundBy(const FillingInParts& relaxed, size_t k) const {
    double worth = 0;
    for (size_t d = 0; d < left_.size(); ++d) {
      worth += relaxed.prices[d] * static_cast<double>(left_[d]);
    }
    for (const auto& [kind, gain] : relaxed.gains) {
      if (kind >= k) worth += gain * static_cast<double>(Fits(kinds_[kind], left_));
    }
    return worth;
  }
  [[nodiscard]] bool Enough(double worth) const { return worth <= best_ * (1 + tolerance_); }
  void Take(size_t k, int64_t count) {
    for (size_t d = 0; d < left_.size(); ++d) left_[d] -= count * kinds_[k].request[d];
  }
  // `relaxed` is of a node above, `depth` relaxations are above it, and it is `stale` if a kind
  // that it uses was decided since.
  void Try(size_t k, double value, const FillingInParts& relaxed, int depth, bool stale) {
    if (value > best_ * (1 + 1e-12)) {
      best_ = value;
      best_counts_ = counts_;
    }
    if (k == kinds_.size()) return;
    const double at_most = value + std::min(BoundBy(relaxed, k), Bound(k));
    if (Enough(at_most)) return;
    if (--steps_left_ <= 0) return Leave(k, value, at_most);
    if (stale && depth < kRelaxedDepth) {
      const FillingInParts own = FillInParts(kinds_, k, left_);
      steps_left_ -= kStepsOfRelaxation;
      if (!Enough(value + BoundBy(own, k))) Branch(k, value, own, depth + 1);
      return;
    }
    Branch(k, value, relaxed, depth);
  }
  // A branch that is not followed any more.
  void Leave(size_t k, double value, double at_most) {
    if (Enough(at_most) || at_most <= open_) return;
    const FillingInParts own = FillInParts(kinds_, k, left_);
    at_most = std::min(at_most, value + BoundBy(own, k));
    if (at_most <= open_) return;
    open_ = at_most;
    in_parts_.clear();
    for (size_t c = 0; c < k; ++c) {
      if (counts_[c] > 0) in_parts_.emplace_back(kinds_[c].id, static_cast<double>(counts_[c]));
    }
    for (const auto& [c, count] : own.used) in_parts_.emplace_back(kinds_[c].id, count);
    std::sort(in_parts_.begin(), in_parts_.end());
  }
  void Branch(size_t k, double value, const FillingInParts& relaxed, int depth) {
    const bool used = std::any_of(relaxed.used.begin(), relaxed.used.end(),
                                  [k](const auto& entry) { return entry.first == k; });
    for (int64_t n = Fits(kinds_[k], left_); n >= 0; --n) {
      Take(k, n);
      counts_[k] = n;
      const double with = value + kinds_[k].value * static_cast<double>(n);
      if (steps_left_ > 0) {
        Try(k + 1, with, relaxed, depth, used || n > 0);
      } else {
        Leave(k + 1, with, with + std::min(BoundBy(relaxed, k + 1), Bound(k + 1)));
      }
      counts_[k] = 0;
      Take(k, -n);
    }
  }

  std::vector<FillKind> kinds_;
  std::vector<double> prices_, sizes_;
  std::vector<std::pair<int, double>> in_parts_;
  std::vector<int64_t> left_, counts_, best_counts_;
  double best_, tolerance_, open_ = 0;  // open_: no branch that was left holds more
  int64_t max_steps_, steps_left_;
};

}  // namespace

Filling BestFilling(std::vector<FillKind> kinds, const std::vector<int64_t>& capacity, double floor,
                    int64_t max_steps, double tolerance) {
  for (FillKind& kind : kinds) kind.most = Fits(kind, capacity);
  std::erase_if(kinds, [](const FillKind& kind) { return kind.most <= 0 || kind.value <= 0; });
  if (kinds.empty()) return {{}, floor, floor, 0, {}};
  return Search(std::move(kinds), capacity, floor, max_steps, tolerance).Run();
}

}  // namespace fairlead::bench
