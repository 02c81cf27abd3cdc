// Compiled with -ffp-contract=off (CMakeLists.txt): see covering_lp.h.
#include "autoscale-hook/planner/node_filler.h"

#include <algorithm>

namespace fairlead::hook {
namespace {

// Maximise value * x, request * x <= capacity, 0 <= x <= most. A tableau whose rows are the
// dimensions; amounts are parts of the capacity.
class BoundedSimplex {
 public:
  BoundedSimplex(const std::vector<NodeFiller::Kind>& kinds, const std::vector<int64_t>& capacity)
      : rows_(capacity.size()), kinds_(kinds.size()), columns_(kinds_ + rows_) {
    table_.assign(rows_ * columns_, 0);
    profit_.assign(columns_, 0);
    upper_.assign(columns_, 1e300);
    at_upper_.assign(columns_, false);
    for (size_t k = 0; k < kinds_; ++k) {
      profit_[k] = kinds[k].value;
      upper_[k] = static_cast<double>(kinds[k].most);
    }
    for (size_t d = 0; d < rows_; ++d) {
      const auto has = static_cast<double>(capacity[d]);
      scale_.push_back(1 / has);
      for (size_t k = 0; k < kinds_; ++k) {
        At(d, k) = static_cast<double>((*kinds[k].request)[d]) / has;
      }
      At(d, kinds_ + d) = 1;
      basis_.push_back(kinds_ + d);
      basic_.push_back(1);
    }
  }

  int64_t Solve() {
    int64_t pivots = 0;
    for (; pivots < kMaxPivots && Step(); ++pivots) {
    }
    return (pivots + 2) * static_cast<int64_t>(rows_ * columns_);
  }
  [[nodiscard]] double value() const { return value_; }
  // By unit of the dimension; not below 0.
  [[nodiscard]] std::vector<double> Duals() const {
    std::vector<double> duals;
    for (size_t d = 0; d < rows_; ++d) {
      duals.push_back(std::max(0.0, -profit_[kinds_ + d]) * scale_[d]);
    }
    return duals;
  }
  [[nodiscard]] double Amount(size_t kind) const {
    for (size_t d = 0; d < rows_; ++d) {
      if (basis_[d] == kind) return basic_[d];
    }
    return at_upper_[kind] ? upper_[kind] : 0;
  }

 private:
  static constexpr int kMaxPivots = 200;
  static constexpr double kTiny = 1e-9;
  double& At(size_t row, size_t column) { return table_[row * columns_ + column]; }

  // One variable more to or from its bound. False: the optimum.
  bool Step() {
    size_t entering = columns_;
    double best = 0;
    for (size_t c = 0; c < columns_; ++c) {
      const double gain = at_upper_[c] ? -profit_[c] : profit_[c];
      const double worth = upper_[c] < 1e200 ? gain * upper_[c] : gain;
      if (gain > kTiny && worth > best && !IsBasic(c)) {
        best = worth;
        entering = c;
      }
    }
    if (entering == columns_) return false;
    const double sign = at_upper_[entering] ? -1 : 1;
    double step = upper_[entering];
    size_t leaving = rows_;
    bool leaves_at_upper = false;
    for (size_t d = 0; d < rows_; ++d) {
      const double slope = At(d, entering) * sign;
      if (slope > kTiny && basic_[d] / slope < step) {
        step = std::max(0.0, basic_[d] / slope);
        leaving = d;
        leaves_at_upper = false;
      } else if (slope < -kTiny && (upper_[basis_[d]] - basic_[d]) / -slope < step) {
        step = std::max(0.0, (upper_[basis_[d]] - basic_[d]) / -slope);
        leaving = d;
        leaves_at_upper = true;
      }
    }
    if (step > 1e200) return false;
    value_ += profit_[entering] * sign * step;
    for (size_t d = 0; d < rows_; ++d) basic_[d] -= At(d, entering) * sign * step;
    if (leaving == rows_) {
      at_upper_[entering] = !at_upper_[entering];
      return true;
    }
    const double now = (at_upper_[entering] ? upper_[entering] : 0) + sign * step;
    at_upper_[basis_[leaving]] = leaves_at_upper;
    at_upper_[entering] = false;
    basis_[leaving] = entering;
    basic_[leaving] = now;
    Eliminate(leaving, entering);
    return true;
  }
  [[nodiscard]] bool IsBasic(size_t column) const {
    return std::find(basis_.begin(), basis_.end(), column) != basis_.end();
  }
  void Eliminate(size_t row, size_t column) {
    const double pivot = At(row, column);
    for (size_t c = 0; c < columns_; ++c) At(row, c) /= pivot;
    for (size_t d = 0; d < rows_; ++d) {
      const double factor = At(d, column);
      if (d == row || factor == 0) continue;
      for (size_t c = 0; c < columns_; ++c) At(d, c) -= factor * At(row, c);
    }
    const double factor = profit_[column];
    for (size_t c = 0; c < columns_; ++c) profit_[c] -= factor * At(row, c);
  }

  size_t rows_, kinds_, columns_;
  std::vector<double> table_, profit_, upper_, scale_, basic_;
  std::vector<bool> at_upper_;
  std::vector<size_t> basis_;  // by row
  double value_ = 0;
};

}  // namespace

NodeFiller::NodeFiller(std::vector<Kind> kinds, const std::vector<int64_t>& capacity)
    : kinds_(std::move(kinds)), capacity_(capacity), left_(capacity), counts_(kinds_.size(), 0) {}

int64_t NodeFiller::Fits(const Kind& kind) const {
  int64_t fits = kind.most;
  const std::vector<int64_t>& request = *kind.request;
  for (size_t d = 0; d < left_.size() && fits > 0; ++d) {
    if (request[d] > 0) fits = std::min(fits, left_[d] / request[d]);
  }
  return fits;
}

void NodeFiller::Take(size_t kind, int64_t count) {
  const std::vector<int64_t>& request = *kinds_[kind].request;
  for (size_t d = 0; d < left_.size(); ++d) left_[d] -= count * request[d];
  counts_[kind] += count;
}

void NodeFiller::Note(double value) {
  best_ = value;
  best_counts_.clear();
  for (size_t k = 0; k < kinds_.size(); ++k) {
    if (counts_[k] > 0) best_counts_.emplace_back(kinds_[k].id, counts_[k]);
  }
}

double NodeFiller::Relax() {
  BoundedSimplex simplex(kinds_, capacity_);
  work_ += simplex.Solve();
  weights_ = simplex.Duals();
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const int64_t fits = Fits(kinds_[k]);
    // Not more than fits before it becomes an integer: amounts of 2^63 leave no digits behind.
    const auto count = static_cast<int64_t>(
        std::min(static_cast<double>(fits), std::max(0.0, simplex.Amount(k)) + 1e-9));
    if (count > 0) Take(k, count);
  }
  return simplex.value();
}

// By value per size, the best first.
void NodeFiller::Order() {
  std::vector<std::pair<double, size_t>> order;
  std::vector<double> sizes;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    double size = 0;
    for (size_t d = 0; d < weights_.size(); ++d) {
      size += weights_[d] * static_cast<double>((*kinds_[k].request)[d]);
    }
    sizes.push_back(size);
    order.emplace_back(size > 0 ? -kinds_[k].value / size : -1e300, k);
  }
  std::sort(order.begin(), order.end());
  std::vector<Kind> sorted;
  std::vector<int64_t> counts;
  sizes_.clear();
  for (const auto& [unused, k] : order) {
    sorted.push_back(kinds_[k]);
    counts.push_back(counts_[k]);
    sizes_.push_back(sizes[k]);
  }
  kinds_ = std::move(sorted);
  counts_ = std::move(counts);
}

void NodeFiller::Empty() {
  left_ = capacity_;
  std::fill(counts_.begin(), counts_.end(), 0);
}

void NodeFiller::FillUp() {
  double value = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const int64_t more = std::min(Fits(kinds_[k]), kinds_[k].most - counts_[k]);
    if (more > 0) Take(k, more);
    value += kinds_[k].value * static_cast<double>(counts_[k]);
  }
  work_ += static_cast<int64_t>(kinds_.size() * left_.size());
  if (value > best_) Note(value);
}

// What the kinds from this one on can add at most: by weighted size alone, the last in part.
double NodeFiller::Bound(size_t kind) {
  double room = 0, worth = 0;
  for (size_t d = 0; d < left_.size(); ++d) room += weights_[d] * static_cast<double>(left_[d]);
  size_t k = kind;
  for (; k < kinds_.size(); ++k) {
    const auto fits = static_cast<double>(Fits(kinds_[k]));
    const double size = sizes_[k] * fits;
    if (size > room) {
      worth += kinds_[k].value * room / sizes_[k];
      break;
    }
    worth += kinds_[k].value * fits;
    room -= size;
  }
  work_ += static_cast<int64_t>((k - kind + 1) * left_.size());
  return worth;
}

void NodeFiller::Search(size_t kind, double value) {
  if (value > best_ * (1 + 1e-9)) Note(value);
  if (kind == kinds_.size() || --steps_left_ <= 0) return;
  for (int64_t n = Fits(kinds_[kind]); n >= 0 && steps_left_ > 0; --n) {
    Take(kind, n);
    const double with = value + kinds_[kind].value * static_cast<double>(n);
    if (with + Bound(kind + 1) > best_ * (1 + 1e-9)) Search(kind + 1, with);
    Take(kind, -n);
  }
}

std::vector<std::pair<int, int64_t>> NodeFiller::Fill(double floor, int64_t max_steps) {
  best_ = floor;
  if (Relax() <= floor) return {};
  Order();
  FillUp();
  Empty();
  FillUp();
  Empty();
  steps_left_ = max_steps;
  if (max_steps > 0 && Bound(0) > best_ * (1 + 1e-9)) Search(0, 0);
  std::sort(best_counts_.begin(), best_counts_.end());
  return best_counts_;
}

}  // namespace fairlead::hook
