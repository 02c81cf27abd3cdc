// The most valuable filling of one node, by amounts: the pricing step of column generation.
//
// The linear relaxation first (the simplex method with bounds on the counts): if even that is not
// worth more than the floor, there is no such filling. Its duals say how scarce each dimension is,
// and so the size of a pod. Whole pods of its solution, filled up in order of value per size, are
// the first filling; then branch and bound in that order with a fixed number of steps. So the
// result is not always the best filling.
//
// Values are doubles (prices of packing_prices.cc, whose remarks on determinism hold here too).
// Thread-safety: none. Complexity: O(kinds * dimensions) a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairlead::hook {

class NodeFiller {
 public:
  struct Kind {
    int id = 0;
    double value = 0;                               // of one; above 0
    int64_t most = 0;                               // at most so many; above 0
    const std::vector<int64_t>* request = nullptr;  // by dimension
  };
  NodeFiller(std::vector<Kind> kinds, const std::vector<int64_t>& capacity);

  // (id, how many), ascending; empty if none is found that is worth more than `floor`.
  std::vector<std::pair<int, int64_t>> Fill(double floor, int64_t max_steps);
  [[nodiscard]] double value() const { return best_; }
  // After Fill: in descending order of value per size.
  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }
  [[nodiscard]] int64_t work() const { return work_; }  // amounts compared, about

 private:
  // The relaxation's value; sets weights_, and counts_ to its whole pods.
  double Relax();
  void Order();
  void Empty();
  void FillUp();
  void Search(size_t kind, double value);
  [[nodiscard]] int64_t Fits(const Kind& kind) const;
  [[nodiscard]] double Bound(size_t kind);
  void Take(size_t kind, int64_t count);
  void Note(double value);

  std::vector<Kind> kinds_;
  const std::vector<int64_t>& capacity_;
  std::vector<double> weights_, sizes_;
  std::vector<int64_t> left_, counts_;
  std::vector<std::pair<int, int64_t>> best_counts_;
  double best_ = 0;
  int64_t steps_left_ = 0, work_ = 0;
};

}  // namespace fairlead::hook
