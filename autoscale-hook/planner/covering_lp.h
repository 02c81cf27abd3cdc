// The linear program behind the prices of pods: minimise the cost of fillings (columns) that cover
// the counts of all classes (rows), fillings in fractions. Its duals are what one more pod of a
// class costs in the best mix; its solution says how often to use each filling.
//
// The revised simplex method with an explicit inverse: primal while columns are added, dual after
// the counts became less. Doubles, but nothing of the plan's accounting: a plan is made of whole
// fillings, which are checked and priced elsewhere. covering_lp.cc is compiled without fused
// operations, in one fixed order of them, so each machine with IEEE 754 doubles gets the same.
//
// Sources: Gilmore and Gomory, 1961; facts section 7 (LB1). Complexity: a pivot costs O(rows^2 +
// entries). Thread-safety: none. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::hook {

class CoveringLp {
 public:
  // (row, pods), ascending by row.
  using Column = std::vector<std::pair<int, int64_t>>;

  // The first columns are one for each row, which covers that row alone.
  struct First {
    int64_t cost = 0, pods = 1;
  };
  CoveringLp(const std::vector<int64_t>& counts, const std::vector<First>& first);

  int Add(int64_t cost, const Column& column);  // its number; those of `first` are 0, 1, ...
  void SetCounts(const std::vector<int64_t>& counts);
  // To the optimum, or until so many pivots are made. False: not the optimum.
  bool Solve(int max_pivots);

  [[nodiscard]] std::vector<double> Duals() const;  // by row, not below 0
  [[nodiscard]] double Amount(int column) const;    // in the solution
  [[nodiscard]] double value() const;
  [[nodiscard]] int64_t pivots() const { return pivots_; }

 private:
  struct Stored {
    double cost = 0;
    std::vector<std::pair<int, double>> entries;
    int basic_in = -1;  // its row in the basis
  };
  [[nodiscard]] double Reduced(const Stored& column) const;
  [[nodiscard]] std::vector<double> Direction(int column) const;
  bool PrimalPivot(bool bland);
  bool DualPivot();
  void Pivot(size_t row, int column, const std::vector<double>& direction);
  [[nodiscard]] double& Inverse(size_t row, size_t column) {
    return inverse_[row * rows_ + column];
  }

  size_t rows_;
  std::vector<double> rhs_, basic_, duals_, inverse_;
  std::vector<Stored> columns_;  // of fillings; then the surplus of row r is ~r
  std::vector<int> basis_;       // by row: a column, or ~r
  std::vector<bool> surplus_basic_;
  int64_t pivots_ = 0;
};

}  // namespace fairlead::hook
