#include "tests/bench/dense_lp.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fairlead::bench {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kRefactorEvery = 250;
constexpr int kStalledPivots = 400;  // before Bland's rule

}  // namespace

DenseLp::DenseLp(std::vector<double> rhs, const std::vector<double>& unit_costs)
    : rows_(rhs.size()), rhs_(std::move(rhs)), basic_(rhs_) {
  inverse_.assign(rows_, std::vector<double>(rows_, 0));
  for (size_t row = 0; row < rows_; ++row) {
    columns_.push_back({unit_costs[row], {{static_cast<int>(row), 1.0}}, true});
    basis_.push_back(static_cast<int>(row));
    inverse_[row][row] = 1;
  }
}

int DenseLp::AddColumn(double cost, Entries entries) {
  columns_.push_back({cost, std::move(entries), false});
  return static_cast<int>(columns_.size()) - 1;
}

double DenseLp::value() const {
  double sum = 0;
  for (size_t row = 0; row < rows_; ++row) {
    sum += columns_[static_cast<size_t>(basis_[row])].cost * basic_[row];
  }
  return sum;
}

std::vector<double> DenseLp::Duals() const {
  std::vector<double> duals(rows_, 0);
  for (size_t row = 0; row < rows_; ++row) {
    const double cost = columns_[static_cast<size_t>(basis_[row])].cost;
    if (cost == 0) continue;
    for (size_t i = 0; i < rows_; ++i) duals[i] += cost * inverse_[row][i];
  }
  return duals;
}

std::vector<double> DenseLp::Solution() const {
  std::vector<double> x(columns_.size(), 0);
  for (size_t row = 0; row < rows_; ++row) {
    x[static_cast<size_t>(basis_[row])] = std::max(0.0, basic_[row]);
  }
  return x;
}

int DenseLp::Entering(const std::vector<double>& duals, bool bland) const {
  int best = -1;
  double best_reduced = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].basic) continue;
    double reduced = columns_[c].cost;
    for (const auto& [row, value] : columns_[c].entries) {
      reduced -= duals[static_cast<size_t>(row)] * value;
    }
    if (reduced >= best_reduced - kTolerance * (1 + std::abs(columns_[c].cost))) continue;
    best = static_cast<int>(c);
    if (bland) return best;
    best_reduced = reduced;
  }
  return best;
}

std::vector<double> DenseLp::Direction(int column) const {
  std::vector<double> direction(rows_, 0);
  for (const auto& [row, value] : columns_[static_cast<size_t>(column)].entries) {
    for (size_t i = 0; i < rows_; ++i) {
      direction[i] += inverse_[i][static_cast<size_t>(row)] * value;
    }
  }
  return direction;
}

int DenseLp::Leaving(const std::vector<double>& direction, bool bland) const {
  int best = -1;
  double best_ratio = std::numeric_limits<double>::infinity();
  for (size_t row = 0; row < rows_; ++row) {
    if (direction[row] <= 1e-8) continue;
    const double ratio = std::max(0.0, basic_[row]) / direction[row];
    const bool tie = best >= 0 && std::abs(ratio - best_ratio) <= kTolerance * (1 + ratio);
    const bool better = tie ? (bland ? basis_[row] < basis_[static_cast<size_t>(best)]
                                     : direction[row] > direction[static_cast<size_t>(best)])
                            : ratio < best_ratio;
    if (!better) continue;
    best = static_cast<int>(row);
    best_ratio = ratio;
  }
  return best;
}

void DenseLp::Pivot(int row, int column, const std::vector<double>& direction) {
  const auto r = static_cast<size_t>(row);
  columns_[static_cast<size_t>(basis_[r])].basic = false;
  columns_[static_cast<size_t>(column)].basic = true;
  basis_[r] = column;
  std::vector<double>& pivot_row = inverse_[r];
  for (double& value : pivot_row) value /= direction[r];
  basic_[r] = std::max(0.0, basic_[r]) / direction[r];
  for (size_t i = 0; i < rows_; ++i) {
    if (i == r || direction[i] == 0) continue;
    for (size_t k = 0; k < rows_; ++k) inverse_[i][k] -= direction[i] * pivot_row[k];
    basic_[i] -= direction[i] * basic_[r];
  }
}

void DenseLp::Refactor() {
  // Gauss and Jordan on [B | I] with partial pivoting.
  std::vector<std::vector<double>> work(rows_, std::vector<double>(2 * rows_, 0));
  for (size_t c = 0; c < rows_; ++c) {
    for (const auto& [row, value] : columns_[static_cast<size_t>(basis_[c])].entries) {
      work[static_cast<size_t>(row)][c] = value;
    }
    work[c][rows_ + c] = 1;
  }
  for (size_t c = 0; c < rows_; ++c) {
    size_t pivot = c;
    for (size_t r = c + 1; r < rows_; ++r) {
      if (std::abs(work[r][c]) > std::abs(work[pivot][c])) pivot = r;
    }
    if (std::abs(work[pivot][c]) < 1e-12) return;  // keeps the old inverse
    std::swap(work[c], work[pivot]);
    const double scale = 1 / work[c][c];
    for (double& value : work[c]) value *= scale;
    for (size_t r = 0; r < rows_; ++r) {
      const double factor = work[r][c];
      if (r == c || factor == 0) continue;
      for (size_t k = c; k < 2 * rows_; ++k) work[r][k] -= factor * work[c][k];
    }
  }
  for (size_t r = 0; r < rows_; ++r) {
    basic_[r] = 0;
    for (size_t k = 0; k < rows_; ++k) {
      inverse_[r][k] = work[r][rows_ + k];
      basic_[r] += inverse_[r][k] * rhs_[k];
    }
  }
}

bool DenseLp::Solve(int max_pivots) {
  int stalled = 0;
  double last = value();
  for (int pivot = 0; pivot < max_pivots; ++pivot) {
    if (pivot % kRefactorEvery == kRefactorEvery - 1) Refactor();
    const bool bland = stalled > kStalledPivots;
    const int entering = Entering(Duals(), bland);
    if (entering < 0) return true;
    const std::vector<double> direction = Direction(entering);
    const int row = Leaving(direction, bland);
    if (row < 0) return false;  // unbounded: rounding errors only, costs are not negative
    Pivot(row, entering, direction);
    const double now = value();
    stalled = now < last - kTolerance * (1 + std::abs(last)) ? 0 : stalled + 1;
    last = now;
  }
  return false;
}

}  // namespace fairlead::bench
