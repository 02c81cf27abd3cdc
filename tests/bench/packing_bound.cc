#include "tests/bench/packing_bound.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "tests/bench/dense_lp.h"
#include "tests/bench/node_filling.h"

namespace fairlead::bench {
namespace {

constexpr int kNodes = -1;  // instead of a class: the number of nodes of the type
constexpr double kSafety = 1e-7;
constexpr int64_t kFirstSteps = 5'000;  // of a search for a filling; more where nothing is found
constexpr int64_t kFewSteps = 100;
constexpr size_t kColumnsOfOneType = 10;
constexpr double kConverged = 2e-5;  // a gap between the linear program and its bound

struct Column {
  size_t type = 0;
  std::vector<std::pair<int, double>> counts;
  friend bool operator<(const Column& a, const Column& b) {
    return std::tie(a.type, a.counts) < std::tie(b.type, b.counts);
  }
};

struct Branch {
  size_t type = 0;
  int pod_class = kNodes;
  bool at_least = false;
  int64_t bound = 0;
};

double Coefficient(const Branch& branch, const Column& column) {
  if (branch.type != column.type) return 0;
  if (branch.pod_class == kNodes) return 1;
  for (const auto& [pod_class, count] : column.counts) {
    if (pod_class == branch.pod_class) return count;
  }
  return 0;
}

struct Relaxation {
  double bound = 0;
  std::optional<Branch> split;  // what is not whole; `bound` and `at_least` are of the lower side
};

class Solver {
 public:
  Solver(const PackingProblem& problem, const BoundEffort& effort)
      : problem_(problem), effort_(effort) {
    for (size_t c = 0; c < problem_.classes.size(); ++c) {
      for (size_t t = 0; t < problem_.types.size(); ++t) {
        const int64_t fits = std::min(FitsOn(problem_, c, t), problem_.classes[c].count);
        if (fits > 0) Keep({t, {{static_cast<int>(c), static_cast<double>(fits)}}});
      }
    }
    for (size_t t = 0; t < problem_.types.size(); ++t) Keep({t, {}});
  }

  PackingBound Run() {
    struct Open {
      double bound;
      std::vector<Branch> branches;
      std::optional<Branch> split;
    };
    const auto solve = [&](std::vector<Branch> branches, double parent) {
      Relaxation relaxed = Solve(branches, parent);
      return Open{relaxed.bound, std::move(branches), relaxed.split};
    };
    PackingBound result;
    std::vector<Open> open = {solve({}, 0)};
    result.linear = Rounded(open[0].bound);
    while (true) {
      auto lowest = std::min_element(
          open.begin(), open.end(), [](const Open& a, const Open& b) { return a.bound < b.bound; });
      result.cost = Rounded(lowest->bound);
      if (result.cost >= effort_.stop_at) break;
      if (!lowest->split.has_value() || result.branches + 2 > effort_.branches ||
          steps_ > effort_.all_steps) {
        break;
      }
      const Open parent = *lowest;
      open.erase(lowest);
      for (const bool at_least : {false, true}) {
        std::vector<Branch> branches = parent.branches;
        branches.push_back(*parent.split);
        branches.back().at_least = at_least;
        if (at_least) ++branches.back().bound;
        ++result.branches;
        open.push_back(solve(std::move(branches), parent.bound));
      }
    }
    result.cost = std::min(result.cost, effort_.stop_at);
    result.columns = columns_.size();
    return result;
  }

 private:
  static int64_t Rounded(double bound) {
    return static_cast<int64_t>(std::ceil(bound - kSafety * std::abs(bound)));
  }
  bool Keep(Column column) {
    if (!known_.insert(column).second) return false;
    columns_.push_back(std::move(column));
    return true;
  }
  void AddTo(DenseLp& lp, const Column& column, const std::vector<Branch>& branches) const {
    DenseLp::Entries entries;
    for (const auto& [pod_class, count] : column.counts) {
      entries.push_back({pod_class, count});
    }
    for (size_t b = 0; b < branches.size(); ++b) {
      const double value = Coefficient(branches[b], column);
      const auto row = static_cast<int>(problem_.classes.size() + b);
      if (value != 0) entries.push_back({row, value});
    }
    lp.AddColumn(static_cast<double>(problem_.types[column.type].price), std::move(entries));
  }
  // What a node of the type costs and each of its pods is worth, under these duals.
  struct Prices {
    double node = 0;
    std::vector<double> worth;
  };
  [[nodiscard]] Prices PricesOf(size_t type, const std::vector<double>& duals,
                                const std::vector<Branch>& branches) const {
    const size_t classes = problem_.classes.size();
    Prices prices{static_cast<double>(problem_.types[type].price),
                  {duals.begin(), duals.begin() + static_cast<std::ptrdiff_t>(classes)}};
    for (size_t b = 0; b < branches.size(); ++b) {
      if (branches[b].type != type) continue;
      const double dual = duals[classes + b];
      if (branches[b].pod_class == kNodes) {
        prices.node -= dual;
      } else {
        prices.worth[static_cast<size_t>(branches[b].pod_class)] += dual;
      }
    }
    return prices;
  }
  [[nodiscard]] Filling Price(size_t type, const Prices& prices, int64_t max_steps) {
    std::vector<FillKind> kinds;
    for (size_t c = 0; c < problem_.classes.size(); ++c) {
      const PackingProblem::Class& k = problem_.classes[c];
      if (!k.allowed[type] || prices.worth[c] <= 1e-9) continue;
      kinds.push_back({static_cast<int>(c), prices.worth[c], k.count, k.request});
    }
    Filling filling = BestFilling(std::move(kinds), problem_.types[type].capacity,
                                  std::max(0.0, prices.node), max_steps, effort_.tolerance);
    steps_ += filling.steps;
    return filling;
  }
  static Column Whole(size_t type, const Filling& filling) {
    Column column{type, {}};
    for (const auto& [c, count] : filling.counts) {
      column.counts.emplace_back(c, static_cast<double>(count));
    }
    return column;
  }
  // A good filling, and others without the classes that the former ones were worth most by: so the
  // linear program gets fillings for all classes in few rounds.
  [[nodiscard]] std::vector<Column> MoreColumns(size_t type, Prices prices, const Filling& first) {
    std::vector<Column> columns = {Whole(type, first)};
    while (columns.size() < kColumnsOfOneType) {
      int most = 0;
      double worth = -1;
      for (const auto& [c, count] : columns.back().counts) {
        const double all = prices.worth[static_cast<size_t>(c)] * count;
        if (all > worth) most = c;
        worth = std::max(worth, all);
      }
      prices.worth[static_cast<size_t>(most)] = 0;
      const Filling next = Price(type, prices, kFewSteps);
      if (next.counts.empty() || next.value <= prices.node * (1 + kSafety)) break;
      columns.push_back(Whole(type, next));
    }
    return columns;
  }
  Relaxation Solve(const std::vector<Branch>& branches, double parent);
  [[nodiscard]] std::optional<Branch> SplitOf(const std::vector<double>& solution,
                                              size_t first) const;

  const PackingProblem& problem_;
  const BoundEffort& effort_;
  std::vector<Column> columns_;
  std::set<Column> known_;
  int64_t steps_ = 0;  // of all searches so far
};

Relaxation Solver::Solve(const std::vector<Branch>& branches, double parent) {
  const size_t classes = problem_.classes.size();
  std::vector<double> rhs, unit;
  double everything = 0;  // more than any plan costs
  for (size_t c = 0; c < classes; ++c) {
    double one = 0;
    for (size_t t = 0; t < problem_.types.size(); ++t) {
      if (FitsOn(problem_, c, t) > 0) {
        one = std::max(one, static_cast<double>(problem_.types[t].price));
      }
    }
    everything += one * static_cast<double>(problem_.classes[c].count);
  }
  everything = 10 * everything + 1;
  for (const PackingProblem::Class& k : problem_.classes) {
    rhs.push_back(static_cast<double>(k.count));
    unit.push_back(everything);
  }
  for (const Branch& branch : branches) {
    rhs.push_back(static_cast<double>(branch.bound));
    unit.push_back(branch.at_least ? everything : 0);
  }
  DenseLp lp(rhs, unit);
  size_t first = rhs.size();
  const auto surplus = [&](size_t row) {
    lp.AddColumn(0, {{static_cast<int>(row), -1.0}});
    ++first;
  };
  for (size_t c = 0; c < classes; ++c) surplus(c);
  for (size_t b = 0; b < branches.size(); ++b) {
    if (branches[b].at_least) surplus(classes + b);
  }
  for (const Column& column : columns_) AddTo(lp, column, branches);

  Relaxation relaxed;
  relaxed.bound = parent;
  int64_t steps = std::min(kFirstSteps, effort_.filling_steps);
  for (int round = 0; round < effort_.rounds; ++round) {
    lp.Solve(20'000);
    std::vector<double> duals = lp.Duals();
    for (size_t r = 0; r < duals.size(); ++r) {
      const bool at_least = r < classes || branches[r - classes].at_least;
      duals[r] = at_least ? std::max(0.0, duals[r]) : std::min(0.0, duals[r]);
    }
    if (steps_ > effort_.all_steps) steps = std::min(steps, kFirstSteps);
    double scale = 1;
    bool added = false;
    std::vector<Column> in_parts;
    for (size_t t = 0; t < problem_.types.size(); ++t) {
      const Prices prices = PricesOf(t, duals, branches);
      const Filling filling = Price(t, prices, steps);
      // All duals together are scaled: scale * (worth of any filling + what branches take of the
      // price) <= price.
      const auto price = static_cast<double>(problem_.types[t].price);
      const double most = filling.upper + price - prices.node;
      if (most > price) scale = std::min(scale, price / most);
      if (filling.value <= prices.node * (1 + kSafety) || filling.counts.empty()) {
        if (!filling.in_parts.empty() && filling.upper > prices.node * (1 + kSafety)) {
          in_parts.push_back({t, filling.in_parts});
        }
        continue;
      }
      for (const Column& column : MoreColumns(t, prices, filling)) {
        if (!Keep(column)) continue;
        added = true;
        AddTo(lp, column, branches);
      }
    }
    double bound = 0;
    for (size_t r = 0; r < duals.size(); ++r) bound += scale * duals[r] * rhs[r];
    relaxed.bound = std::max(relaxed.bound, bound);
    if (relaxed.bound >= lp.value() * (1 - kConverged - effort_.tolerance)) break;
    if (added) continue;
    if (steps < effort_.filling_steps && steps_ < effort_.all_steps) {
      steps = std::min(4 * steps, effort_.filling_steps);
      continue;
    }
    // No search finds more, and some were cut short: their types get fillings in parts of pods.
    for (const Column& column : in_parts) {
      if (!Keep(column)) continue;
      added = true;
      AddTo(lp, column, branches);
    }
    if (!added) break;
  }
  relaxed.split = SplitOf(lp.Solution(), first);
  return relaxed;
}

// The number of nodes of the type whose part of a node costs most; if all are whole, the number of
// pods of a class on a type that is the least whole.
std::optional<Branch> Solver::SplitOf(const std::vector<double>& solution, size_t first) const {
  const size_t types = problem_.types.size(), classes = problem_.classes.size();
  std::vector<double> nodes(types, 0), pods(types * classes, 0);
  for (size_t i = first; i < solution.size(); ++i) {
    const Column& column = columns_[i - first];
    nodes[column.type] += solution[i];
    for (const auto& [pod_class, count] : column.counts) {
      pods[column.type * classes + static_cast<size_t>(pod_class)] += solution[i] * count;
    }
  }
  const auto most = [](const std::vector<double>& amounts, const auto& weight) {
    std::optional<size_t> best;
    double best_part = 0;
    for (size_t i = 0; i < amounts.size(); ++i) {
      const double above = amounts[i] - std::floor(amounts[i]), part = std::min(above, 1 - above);
      if (part < 1e-5 || part * weight(i) <= best_part) continue;
      best = i;
      best_part = part * weight(i);
    }
    return best;
  };
  const auto price = [this](size_t type) {
    return static_cast<double>(problem_.types[type].price);
  };
  if (const auto type = most(nodes, price)) {
    return Branch{*type, kNodes, false, static_cast<int64_t>(std::floor(nodes[*type]))};
  }
  if (const auto pair = most(pods, [&](size_t i) { return price(i / classes); })) {
    return Branch{*pair / classes, static_cast<int>(*pair % classes), false,
                  static_cast<int64_t>(std::floor(pods[*pair]))};
  }
  return std::nullopt;
}

}  // namespace

int64_t FitsOn(const PackingProblem& problem, size_t pod_class, size_t type) {
  const PackingProblem::Class& wanted = problem.classes[pod_class];
  if (!wanted.allowed[type]) return 0;
  int64_t fits = INT64_MAX;
  for (size_t d = 0; d < wanted.request.size(); ++d) {
    if (wanted.request[d] > 0) {
      fits = std::min(fits, problem.types[type].capacity[d] / wanted.request[d]);
    }
  }
  return fits;
}

bool FitsSomewhere(const PackingProblem& problem, size_t pod_class) {
  for (size_t t = 0; t < problem.types.size(); ++t) {
    if (FitsOn(problem, pod_class, t) > 0) return true;
  }
  return false;
}

PackingBound LowerBound(const PackingProblem& problem, const BoundEffort& effort) {
  return Solver(problem, effort).Run();
}

}  // namespace fairlead::bench
