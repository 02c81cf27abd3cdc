// Compiled with -ffp-contract=off (CMakeLists.txt): see the header.
#include "autoscale-hook/planner/covering_lp.h"

#include <algorithm>
#include <cmath>

namespace fairlead::hook {
namespace {

constexpr double kTiny = 1e-9;
constexpr int kStalled = 60;  // pivots without gain, before Bland's rule

}  // namespace

CoveringLp::CoveringLp(const std::vector<int64_t>& counts, const std::vector<First>& first)
    : rows_(counts.size()),
      basic_(rows_, 0),
      duals_(rows_, 0),
      inverse_(rows_ * rows_, 0),
      surplus_basic_(rows_, false) {
  for (size_t r = 0; r < rows_; ++r) {
    rhs_.push_back(static_cast<double>(counts[r]));
    const auto pods = static_cast<double>(first[r].pods);
    const auto row = static_cast<int>(r);
    columns_.push_back({static_cast<double>(first[r].cost), {{row, pods}}, row});
    basis_.push_back(row);
    Inverse(r, r) = 1 / pods;
    basic_[r] = rhs_[r] / pods;
    duals_[r] = static_cast<double>(first[r].cost) / pods;
  }
}

int CoveringLp::Add(int64_t cost, const Column& column) {
  Stored stored{static_cast<double>(cost), {}, -1};
  for (const auto& [row, pods] : column)
    stored.entries.emplace_back(row, static_cast<double>(pods));
  columns_.push_back(std::move(stored));
  return static_cast<int>(columns_.size()) - 1;
}

void CoveringLp::SetCounts(const std::vector<int64_t>& counts) {
  for (size_t r = 0; r < rows_; ++r) rhs_[r] = static_cast<double>(counts[r]);
  for (size_t r = 0; r < rows_; ++r) {
    double sum = 0;
    for (size_t c = 0; c < rows_; ++c) sum += Inverse(r, c) * rhs_[c];
    basic_[r] = sum;
  }
}

double CoveringLp::Reduced(const Stored& column) const {
  double reduced = column.cost;
  for (const auto& [row, pods] : column.entries) reduced -= duals_[static_cast<size_t>(row)] * pods;
  return reduced;
}

std::vector<double> CoveringLp::Direction(int column) const {
  std::vector<double> direction(rows_, 0);
  const auto add = [&](size_t row, double value) {
    for (size_t i = 0; i < rows_; ++i) direction[i] += inverse_[i * rows_ + row] * value;
  };
  if (column < 0) {
    add(static_cast<size_t>(~column), -1);
    return direction;
  }
  for (const auto& [row, pods] : columns_[static_cast<size_t>(column)].entries) {
    add(static_cast<size_t>(row), pods);
  }
  return direction;
}

void CoveringLp::Pivot(size_t row, int column, const std::vector<double>& direction) {
  const auto mark = [this](int which, int basic_in) {
    if (which < 0) {
      surplus_basic_[static_cast<size_t>(~which)] = basic_in >= 0;
    } else {
      columns_[static_cast<size_t>(which)].basic_in = basic_in;
    }
  };
  const double reduced = column < 0 ? duals_[static_cast<size_t>(~column)]
                                    : Reduced(columns_[static_cast<size_t>(column)]);
  mark(basis_[row], -1);
  mark(column, static_cast<int>(row));
  basis_[row] = column;
  double* const pivot_row = &inverse_[row * rows_];
  for (size_t k = 0; k < rows_; ++k) pivot_row[k] /= direction[row];
  basic_[row] /= direction[row];
  for (size_t i = 0; i < rows_; ++i) {
    if (i == row || direction[i] == 0) continue;
    double* const other = &inverse_[i * rows_];
    for (size_t k = 0; k < rows_; ++k) other[k] -= direction[i] * pivot_row[k];
    basic_[i] -= direction[i] * basic_[row];
  }
  for (size_t k = 0; k < rows_; ++k) duals_[k] += reduced * pivot_row[k];
  ++pivots_;
}

// False: no column lowers the cost.
bool CoveringLp::PrimalPivot(bool bland) {
  int entering = 0;
  double best = 0;
  bool found = false;
  const auto offer = [&](int column, double reduced, double tolerance) {
    if (reduced >= best - tolerance || (bland && found)) return;
    best = reduced;
    entering = column;
    found = true;
  };
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].basic_in >= 0) continue;
    offer(static_cast<int>(c), Reduced(columns_[c]), kTiny * (1 + columns_[c].cost));
  }
  for (size_t r = 0; r < rows_; ++r) {
    if (!surplus_basic_[r]) offer(~static_cast<int>(r), duals_[r], 1e-3);
  }
  if (!found) return false;
  const std::vector<double> direction = Direction(entering);
  size_t leaving = rows_;
  double ratio = 0;
  for (size_t r = 0; r < rows_; ++r) {
    if (direction[r] <= 1e-8) continue;
    const double here = std::max(0.0, basic_[r]) / direction[r];
    if (leaving == rows_ || here < ratio - kTiny ||
        (here < ratio + kTiny && direction[r] > direction[leaving])) {
      ratio = here;
      leaving = r;
    }
  }
  if (leaving == rows_) return false;  // rounding errors only: costs are not below 0
  Pivot(leaving, entering, direction);
  return true;
}

// False: no basic amount is below 0, or none can be raised.
bool CoveringLp::DualPivot() {
  size_t leaving = rows_;
  double lowest = -1e-7;
  for (size_t r = 0; r < rows_; ++r) {
    if (basic_[r] < lowest) {
      lowest = basic_[r];
      leaving = r;
    }
  }
  if (leaving == rows_) return false;
  const double* const row = &inverse_[leaving * rows_];
  int entering = 0;
  double best = 0;
  bool found = false;
  const auto offer = [&](int column, double reduced, double alpha) {
    if (alpha >= -1e-8) return;
    const double ratio = std::max(0.0, reduced) / -alpha;
    if (found && ratio >= best) return;
    best = ratio;
    entering = column;
    found = true;
  };
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].basic_in >= 0) continue;
    double alpha = 0;
    for (const auto& [r, pods] : columns_[c].entries) alpha += row[static_cast<size_t>(r)] * pods;
    if (alpha < -1e-8) offer(static_cast<int>(c), Reduced(columns_[c]), alpha);
  }
  for (size_t r = 0; r < rows_; ++r) {
    if (!surplus_basic_[r]) offer(~static_cast<int>(r), duals_[r], -row[r]);
  }
  if (!found) return false;
  Pivot(leaving, entering, Direction(entering));
  return true;
}

bool CoveringLp::Solve(int max_pivots) {
  const int64_t end = pivots_ + max_pivots;
  while (pivots_ < end && DualPivot()) {
  }
  double last = value();
  int stalled = 0;
  while (pivots_ < end) {
    if (!PrimalPivot(stalled > kStalled)) return true;
    const double now = value();
    stalled = now < last - kTiny * (1 + last) ? 0 : stalled + 1;
    last = now;
  }
  return false;
}

std::vector<double> CoveringLp::Duals() const {
  std::vector<double> duals = duals_;
  for (double& dual : duals) dual = std::max(0.0, dual);
  return duals;
}

double CoveringLp::Amount(int column) const {
  const int row = columns_[static_cast<size_t>(column)].basic_in;
  return row < 0 ? 0 : std::max(0.0, basic_[static_cast<size_t>(row)]);
}

double CoveringLp::value() const {
  double sum = 0;
  for (size_t r = 0; r < rows_; ++r) {
    if (basis_[r] >= 0) sum += columns_[static_cast<size_t>(basis_[r])].cost * basic_[r];
  }
  return sum;
}

}  // namespace fairlead::hook
