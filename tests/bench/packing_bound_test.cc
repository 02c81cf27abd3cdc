// The bound against the integer optimum of tiny problems, found by trying everything.
#include "tests/bench/packing_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "tests/bench/node_filling.h"

namespace fairlead::bench {
namespace {

// Every filling of the type, by trying all counts.
std::vector<std::vector<int64_t>> AllFillings(const PackingProblem& problem, size_t type) {
  std::vector<std::vector<int64_t>> all;
  std::vector<int64_t> counts(problem.classes.size(), 0), left = problem.types[type].capacity;
  const std::function<void(size_t)> extend = [&](size_t c) {
    if (c == counts.size()) {
      all.push_back(counts);
      return;
    }
    const PackingProblem::Class& k = problem.classes[c];
    for (int64_t n = 0; n <= k.count; ++n) {
      bool fits = n == 0 || k.allowed[type];
      for (size_t d = 0; d < left.size(); ++d) fits = fits && n * k.request[d] <= left[d];
      if (!fits) break;
      for (size_t d = 0; d < left.size(); ++d) left[d] -= n * k.request[d];
      counts[c] = n;
      extend(c + 1);
      counts[c] = 0;
      for (size_t d = 0; d < left.size(); ++d) left[d] += n * k.request[d];
    }
  };
  extend(0);
  return all;
}

// The cheapest nodes for all pods: shortest way over what is still to be placed.
int64_t Optimum(const PackingProblem& problem) {
  std::vector<std::pair<int64_t, std::vector<int64_t>>> fillings;
  for (size_t t = 0; t < problem.types.size(); ++t) {
    for (std::vector<int64_t>& counts : AllFillings(problem, t)) {
      fillings.push_back({problem.types[t].price, std::move(counts)});
    }
  }
  std::map<std::vector<int64_t>, int64_t> known;
  const std::function<int64_t(const std::vector<int64_t>&)> cheapest =
      [&](const std::vector<int64_t>& counts) -> int64_t {
    if (std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n == 0; })) return 0;
    const auto it = known.find(counts);
    if (it != known.end()) return it->second;
    int64_t best = INT64_MAX;
    for (const auto& [price, filling] : fillings) {
      std::vector<int64_t> rest = counts;
      bool takes = false;
      for (size_t c = 0; c < rest.size(); ++c) {
        const int64_t taken = std::min(rest[c], filling[c]);
        takes = takes || taken > 0;
        rest[c] -= taken;
      }
      if (!takes) continue;
      const int64_t behind = cheapest(rest);
      if (behind != INT64_MAX) best = std::min(best, price + behind);
    }
    return known[counts] = best;
  };
  std::vector<int64_t> all;
  for (const PackingProblem::Class& k : problem.classes) all.push_back(k.count);
  return cheapest(all);
}

PackingProblem RandomProblem(std::mt19937_64& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  PackingProblem problem;
  const int64_t types = pick(1, 3), classes = pick(1, 3), dimensions = pick(1, 3);
  for (int64_t t = 0; t < types; ++t) {
    PackingProblem::Type type{pick(50, 400), {}};
    for (int64_t d = 0; d < dimensions; ++d) type.capacity.push_back(pick(4, 16));
    problem.types.push_back(type);
  }
  for (int64_t c = 0; c < classes; ++c) {
    PackingProblem::Class k;
    k.count = pick(1, 5);
    for (int64_t d = 0; d < dimensions; ++d) k.request.push_back(pick(d == 0 ? 1 : 0, 7));
    for (int64_t t = 0; t < types; ++t) k.allowed.push_back(pick(0, 4) > 0);
    problem.classes.push_back(k);
  }
  std::vector<PackingProblem::Class> kept;
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    if (FitsSomewhere(problem, c)) kept.push_back(problem.classes[c]);
  }
  problem.classes = kept;
  return problem;
}

// Never above the optimum; with branches it is the optimum nearly always.
TEST(PackingBoundTest, AgreesWithTryingEverything) {
  constexpr uint64_t kSeed = 20261127;
  constexpr int kProblems = 300;
  std::mt19937_64 random(kSeed);
  int tight = 0, checked = 0, below_linear = 0;
  for (int i = 0; i < kProblems; ++i) {
    const PackingProblem problem = RandomProblem(random);
    if (problem.classes.empty()) continue;
    ++checked;
    const int64_t optimum = Optimum(problem);
    BoundEffort effort;
    const PackingBound linear = LowerBound(problem, effort);
    EXPECT_LE(linear.cost, optimum) << "seed " << kSeed << ", problem " << i;
    effort.branches = 200;
    const PackingBound branched = LowerBound(problem, effort);
    EXPECT_LE(branched.cost, optimum) << "seed " << kSeed << ", problem " << i;
    EXPECT_GE(branched.cost, linear.cost) << "seed " << kSeed << ", problem " << i;
    // Cut short in every way, it is still a bound.
    effort = {.branches = 6, .filling_steps = 3, .rounds = 3};
    const PackingBound poor = LowerBound(problem, effort);
    EXPECT_LE(poor.cost, optimum) << "seed " << kSeed << ", problem " << i;
    for (const int64_t steps : {1, 2, 5, 12, 30}) {
      effort = {.filling_steps = steps, .tolerance = 0.05};
      EXPECT_LE(LowerBound(problem, effort).cost, optimum)
          << "seed " << kSeed << ", problem " << i << ", " << steps << " steps";
    }
    tight += branched.cost == optimum ? 1 : 0;
    below_linear += linear.cost < optimum ? 1 : 0;
  }
  EXPECT_GE(checked, 200);
  EXPECT_GE(tight * 100, checked * 95) << tight << " of " << checked;
  EXPECT_GT(below_linear, 0) << "no problem needs a branch: the test shows less than it says";
}

TEST(PackingBoundTest, OnePodCostsTheCheapestNodeThatHoldsIt) {
  PackingProblem problem;
  problem.types = {{100, {4}}, {30, {1}}, {150, {8}}};
  problem.classes = {{1, {2}, {true, true, true}}};
  EXPECT_EQ(LowerBound(problem, {}).cost, 100);
}

// Three pods of half a node each and a little need three nodes; by amounts two would do.
TEST(PackingBoundTest, CountsWholePods) {
  PackingProblem problem;
  problem.types = {{100, {10}}};
  problem.classes = {{3, {6}, {true}}};
  EXPECT_EQ(LowerBound(problem, {}).cost, 300);
}

// Five pods, two a node: 2.5 nodes by the linear program, three in truth.
TEST(PackingBoundTest, BranchesCountWholeNodes) {
  PackingProblem problem;
  problem.types = {{100, {10}}};
  problem.classes = {{5, {5}, {true}}};
  EXPECT_EQ(LowerBound(problem, {}).cost, 250);
  EXPECT_EQ(LowerBound(problem, {.branches = 10}).cost, 300);
}

TEST(PackingBoundTest, StopsAtACostThatAPlanHas) {
  PackingProblem problem;
  problem.types = {{100, {10}}};
  problem.classes = {{5, {5}, {true}}};
  EXPECT_EQ(LowerBound(problem, {.branches = 10, .stop_at = 270}).cost, 270);
}

TEST(NodeFillingTest, ASearchThatIsCutShortOverestimates) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<FillKind> kinds;
    for (int k = 0; k < 6; ++k) {
      kinds.push_back(
          {k,
           1.0 + static_cast<double>(random() % 50),
           1 + static_cast<int64_t>(random() % 4),
           {static_cast<int64_t>(random() % 9), 1 + static_cast<int64_t>(random() % 9)}});
    }
    const std::vector<int64_t> capacity = {20, 24};
    const Filling exact = BestFilling(kinds, capacity, 0, 1'000'000);
    const Filling cut = BestFilling(kinds, capacity, 0, 4);
    EXPECT_GE(cut.upper, exact.value) << i;
    EXPECT_LE(cut.value, exact.value) << i;
    EXPECT_NEAR(exact.upper, exact.value, 1e-6) << i;
    for (int64_t steps = 1; steps < 200; steps *= 2) {
      EXPECT_GE(BestFilling(kinds, capacity, 0, steps).upper, exact.value) << i << ", " << steps;
      const Filling rough = BestFilling(kinds, capacity, 0, steps, 0.1);
      EXPECT_GE(rough.upper, exact.value) << i << ", " << steps;
    }
    const Filling rough = BestFilling(kinds, capacity, 0, 1'000'000, 0.1);
    EXPECT_GE(rough.value * 1.1, exact.value * (1 - 1e-6)) << i;
    EXPECT_LE(rough.upper, rough.value * 1.1 * (1 + 1e-6)) << i;
  }
}

}  // namespace
}  // namespace fairlead::bench
