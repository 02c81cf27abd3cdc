// A small linear program, for bounds that benchmarks and tests compare the planner with:
//   minimise cost * x   so that   A x = rhs,   x >= 0,   rhs >= 0.
// Each row begins with a unit column of its own (a slack, or an artificial column with a high
// cost), and these are the first basis. Columns are added at any time, also between solutions; the
// last basis is then kept.
//
// The revised simplex method with an explicit inverse of the basis (Dantzig's rule; Bland's rule
// after many pivots that do not improve). Doubles: whatever relies on a result has to check it, as
// packing_bound.cc does with the duals. O(rows^2 + entries) per pivot.
//
// Ownership: values. Thread-safety: none. Errors: none; Solve says whether it ended in time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fairlead::bench {

class DenseLp {
 public:
  using Entries = std::vector<std::pair<int, double>>;  // (row, coefficient)

  // The unit column of row i is column i and costs unit_costs[i].
  DenseLp(std::vector<double> rhs, const std::vector<double>& unit_costs);

  int AddColumn(double cost, Entries entries);  // its number
  // False after max_pivots: then the present basis is feasible and not the best one.
  bool Solve(int max_pivots);

  [[nodiscard]] double value() const;
  [[nodiscard]] std::vector<double> Duals() const;     // by row
  [[nodiscard]] std::vector<double> Solution() const;  // by column

 private:
  struct Column {
    double cost = 0;
    Entries entries;
    bool basic = false;
  };
  [[nodiscard]] int Entering(const std::vector<double>& duals, bool bland) const;
  [[nodiscard]] std::vector<double> Direction(int column) const;
  [[nodiscard]] int Leaving(const std::vector<double>& direction, bool bland) const;
  void Pivot(int row, int column, const std::vector<double>& direction);
  void Refactor();  // the inverse anew, against the errors of many pivots

  size_t rows_;
  std::vector<double> rhs_;
  std::vector<Column> columns_;
  std::vector<int> basis_;                    // by row
  std::vector<std::vector<double>> inverse_;  // of the basis
  std::vector<double> basic_;                 // values of the basic columns
};

}  // namespace fairlead::bench
