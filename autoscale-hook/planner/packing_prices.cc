// Compiled with -ffp-contract=off (CMakeLists.txt): see covering_lp.h.
#include "autoscale-hook/planner/packing_prices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "autoscale-hook/planner/node_filler.h"

namespace fairlead::hook {
namespace {

// About a nanosecond each. More classes need more rounds, each of which costs more. Classes with
// shares of GPUs have the most fillings.
constexpr int64_t kWork = 12'000'000, kWorkOfManyClasses = 150'000'000;
constexpr int64_t kWorkOfShares = 150'000'000, kWorkOfManyClassesAndShares = 300'000'000;
constexpr size_t kManyClasses = 100;
// Steps of a search for a filling: more where fewer find nothing.
constexpr int64_t kFillSteps[] = {0, 200, 4000};
constexpr int kMaxRounds = 80, kMaxRoundsOfShares = 400;
// Rounds of exchanges in one filling with shares: while a search is quick, and then.
constexpr int kFewExchanges = 2, kMoreExchanges = 5;
constexpr int kDiveRounds = 6;
constexpr int kMaxPivots = 2000;
constexpr size_t kMaxNewFillings = 60;  // of one round
constexpr size_t kMaxDives = 8;
constexpr double kWhole = 1e-6;

// Whole of an amount that rounding errors, or prices of 2^63, may have made absurd.
int64_t WholeOf(double amount) {
  constexpr double kMost = 9e18;
  return static_cast<int64_t>(std::min(kMost, std::max(0.0, amount)));
}

}  // namespace

Packer::Prices::Prices(Run& run) : run_(run), row_of_(run.counts_.size(), -1) {
  for (size_t c = 0; c < run_.counts_.size(); ++c) {
    if (run_.counts_[c] <= 0 || run_.value_milli_[c] <= 0) continue;
    row_of_[c] = static_cast<int>(classes_.size());
    classes_.push_back(static_cast<int>(c));
    counts_.push_back(run_.counts_[c]);
  }
  left_ = counts_;
  offers_ = run_.Active(run_.budget_);
  std::vector<CoveringLp::First> first(classes_.size(), {std::numeric_limits<int64_t>::max(), 1});
  std::vector<int> first_offer(classes_.size(), -1);
  for (const int offer : offers_) {
    NodeAmounts::Amounts capacity = run_.packer_.amounts_.capacity(offer);
    // The placement has let pods onto such a node, so it knows more of what the node lacks.
    for (int64_t& amount : capacity) {
      if (amount <= 0) amount = std::numeric_limits<int64_t>::max() / 4;
    }
    capacity_.push_back(std::move(capacity));
    std::vector<int64_t> fits;
    for (size_t r = 0; r < classes_.size(); ++r) {
      fits.push_back(std::min(counts_[r], run_.Count(offer, {}, classes_[r], kPerNodeLimit)));
      const int64_t cost = run_.weighted_[offer];
      if (fits[r] > 0 && (first_offer[r] < 0 ||
                          static_cast<double>(cost) * static_cast<double>(first[r].pods) <
                              static_cast<double>(first[r].cost) * static_cast<double>(fits[r]))) {
        first[r] = {cost, fits[r]};
        first_offer[r] = offer;
      }
    }
    fits_.push_back(std::move(fits));
  }
  if (std::count(first_offer.begin(), first_offer.end(), -1) > 0) {
    classes_.clear();  // a cap lets no node be bought for some class
    return;
  }
  lp_.emplace(counts_, first);
  for (size_t r = 0; r < classes_.size(); ++r) {
    const auto row = static_cast<int>(r);
    fillings_.push_back({first_offer[r], {{classes_[r], first[r].pods}}, {{row, first[r].pods}}});
  }
}

void Packer::Prices::AddFilling(int offer, Load load) {
  CoveringLp::Column column;
  for (const auto& [pod_class, count] : load) column.emplace_back(row_of_[pod_class], count);
  lp_->Add(run_.weighted_[offer], column);
  fillings_.push_back({offer, std::move(load), std::move(column)});
}

// Fillings of the offer at that place that are worth more than a node. The part of the duals at
// which none is, as far as was searched.
double Packer::Prices::FindFillings(size_t place, const std::vector<double>& duals,
                                    int64_t max_steps, std::vector<Found>& found) {
  const auto rows = static_cast<int64_t>(classes_.size());
  const size_t each =
      std::clamp<size_t>(kMaxNewFillings / std::max<size_t>(1, offers_.size()), 1, 8);
  Kinds kinds;
  for (size_t r = 0; r < classes_.size(); ++r) {
    const int64_t most = std::min(fits_[place][r], left_[r]);
    if (most <= 0 || duals[r] <= 0) continue;
    kinds.push_back({classes_[r], duals[r], most, &run_.packer_.amounts_.request(classes_[r])});
  }
  const auto price = static_cast<double>(run_.weighted_[offers_[place]]);
  const double floor = price * (1 + 1e-7);
  double scale = 1;
  // Several from each offer, the next ones without the class that the last was worth most by: the
  // program needs fillings for all classes.
  for (size_t n = 0; n < each && !kinds.empty() && !Spent(); ++n) {
    NodeFiller filler(kinds, capacity_[place]);
    Load load = filler.Fill(floor, n == 0 ? max_steps : 0);
    work_ += filler.work() + rows;
    if (load.empty()) break;
    scale = std::min(scale, price / filler.value());
    double worth = filler.value();
    if (HasShares(load)) {
      load = FitOntoDevices(place, load, filler.kinds(), duals,
                            max_steps > 0 ? kMoreExchanges : kFewExchanges);
      worth = WorthOf(load, duals);
      if (worth <= floor) break;
    }
    double most = 0;
    int without = 0;
    for (const auto& [pod_class, count] : load) {
      const double part =
          duals[static_cast<size_t>(row_of_[pod_class])] * static_cast<double>(count);
      if (part <= most) continue;
      most = part;
      without = pod_class;
    }
    std::erase_if(kinds, [&](const NodeFiller::Kind& kind) { return kind.id == without; });
    found.push_back({worth / std::max(1.0, price), offers_[place], std::move(load)});
  }
  return scale;
}

// One solution of the program, and the best new filling of each offer. False: none is better.
bool Packer::Prices::GenerateRound(int64_t max_steps) {
  const int64_t pivots = lp_->pivots();
  lp_->Solve(kMaxPivots);
  const auto rows = static_cast<int64_t>(classes_.size());
  work_ +=
      (lp_->pivots() - pivots + 1) * (rows * rows + 4 * static_cast<int64_t>(fillings_.size()));
  const std::vector<double> duals = lp_->Duals();
  std::vector<Found> found;
  double scale = 1;
  for (size_t o = 0; o < offers_.size() && !Spent(); ++o) {
    scale = std::min(scale, FindFillings(o, duals, max_steps, found));
  }
  if (max_steps > 0 && !Spent() && left_ == counts_) {
    estimate_ = std::max(estimate_, WholeOf(lp_->value() * scale * (1 - 1e-7)));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.gain > b.gain; });
  if (found.size() > kMaxNewFillings) found.resize(kMaxNewFillings);
  for (Found& filling : found) AddFilling(filling.offer, std::move(filling.load));
  return !found.empty();
}

void Packer::Prices::Generate(const Run::Draft& known) {
  if (classes_.empty()) return;
  for (const NodeGroup& group : known.groups) {
    Load load = group.load;
    // Pods that cost nothing somewhere (reserved capacity has a price of 0) are not priced.
    std::erase_if(load, [this](const auto& entry) { return row_of_[entry.first] < 0; });
    if (group.nodes > 0 && !load.empty()) AddFilling(group.offer, std::move(load));
  }
  const bool many = classes_.size() > kManyClasses;
  const bool shares = std::any_of(classes_.begin(), classes_.end(), [this](int pod_class) {
    return run_.packer_.amounts_.RequestsShare(pod_class);
  });
  const int64_t work = shares ? (many ? kWorkOfManyClassesAndShares : kWorkOfShares)
                              : (many ? kWorkOfManyClasses : kWork);
  const int max_rounds = shares ? kMaxRoundsOfShares : kMaxRounds;
  work_end_ = work_ + work;
  size_t level = 0;
  for (int round = 0; round < max_rounds && !Spent(); ++round) {
    if (!GenerateRound(kFillSteps[level]) && ++level == std::size(kFillSteps)) break;
    if (level > 0 && static_cast<double>(estimate_) >= lp_->value() * (1 - 5e-4)) break;
  }
  lp_->Solve(kMaxPivots);
  work_end_ = work_ + work;
}

bool Packer::Prices::HasShares(const Load& load) const {
  return std::any_of(load.begin(), load.end(), [this](const auto& entry) {
    return run_.packer_.amounts_.RequestsShare(entry.first);
  });
}

double Packer::Prices::WorthOf(const Load& load, const std::vector<double>& duals) const {
  double worth = 0;
  for (const auto& [pod_class, count] : load) {
    worth += duals[static_cast<size_t>(row_of_[pod_class])] * static_cast<double>(count);
  }
  return worth;
}

// The load itself if it fits; else a load that does. Never more of a class than its kind says.
Load Packer::Prices::FitOntoDevices(size_t place, const Load& wanted, const Kinds& kinds,
                                    const std::vector<double>& duals, int max_exchanges) {
  Load load;
  for (const NodeFiller::Kind& kind : kinds) {
    for (const auto& [pod_class, count] : wanted) {
      if (pod_class != kind.id) continue;
      const int64_t fits = run_.Count(offers_[place], load, pod_class, count);
      if (fits > 0) load = Plus(std::move(load), pod_class, fits);
    }
  }
  work_ += static_cast<int64_t>(4 * wanted.size() * wanted.size() * capacity_[place].size());
  if (load == wanted) return load;
  load = FillUp(place, std::move(load), kinds, -1);
  while (max_exchanges-- > 0 && !Spent() && ExchangeOne(place, load, kinds, duals)) {
  }
  return load;
}

// For each class on the node: one pod less, and what fits instead. False: nothing was gained.
bool Packer::Prices::ExchangeOne(size_t place, Load& load, const Kinds& kinds,
                                 const std::vector<double>& duals) {
  bool gained = false;
  double worth = WorthOf(load, duals);
  for (const auto& [pod_class, unused] : Load(load)) {
    Load other = load;
    const auto entry = std::find_if(other.begin(), other.end(),
                                    [&](const auto& e) { return e.first == pod_class; });
    if (entry == other.end()) continue;
    if (--entry->second == 0) other.erase(entry);
    other = FillUp(place, std::move(other), kinds, pod_class);
    const double then = WorthOf(other, duals);
    if (then <= worth * (1 + 1e-9)) continue;
    worth = then;
    load = std::move(other);
    gained = true;
  }
  return gained;
}

// Adds pods in the order of the kinds, but none of the class `without`.
Load Packer::Prices::FillUp(size_t place, Load load, const Kinds& kinds, int without) {
  NodeAmounts::Amounts left = capacity_[place];
  for (const auto& [pod_class, count] : load) {
    const NodeAmounts::Amounts& request = run_.packer_.amounts_.request(pod_class);
    for (size_t d = 0; d < left.size(); ++d) left[d] -= count * request[d];
  }
  work_ += static_cast<int64_t>((kinds.size() + load.size()) * left.size() / 2);
  for (const NodeFiller::Kind& kind : kinds) {
    if (kind.id == without) continue;
    int64_t most = kind.most;
    for (const auto& [pod_class, count] : load) {
      if (pod_class == kind.id) most = kind.most - count;
    }
    // The sums first: devices are asked about only if these have room.
    for (size_t d = 0; d < left.size() && most > 0; ++d) {
      const int64_t request = (*kind.request)[d];
      if (request > 0) most = left[d] < request ? 0 : std::min(most, left[d] / request);
    }
    if (most <= 0) continue;
    work_ += static_cast<int64_t>(20 + 4 * load.size() * left.size());
    const int64_t fits = run_.Count(offers_[place], load, kind.id, most);
    if (fits <= 0) continue;
    for (size_t d = 0; d < left.size(); ++d) left[d] -= fits * (*kind.request)[d];
    load = Plus(std::move(load), kind.id, fits);
  }
  return load;
}

// What of the load the placement lets onto an empty node of the offer.
Load Packer::Prices::Confirmed(int offer, const Load& load) const {
  Load confirmed;
  for (const int pod_class : run_.class_order_) {
    const auto it = std::find_if(load.begin(), load.end(),
                                 [&](const auto& entry) { return entry.first == pod_class; });
    if (it == load.end()) continue;
    const int64_t fits = run_.Count(offer, confirmed, pod_class, it->second);
    if (fits > 0) confirmed = Plus(std::move(confirmed), pod_class, fits);
  }
  return confirmed;
}

// Adds what is left to a node that is not full, dearest first.
Load Packer::Prices::Refill(int offer, Load load) {
  for (const int pod_class : run_.class_order_) {
    if (row_of_[pod_class] < 0) continue;
    int64_t rest = left_[static_cast<size_t>(row_of_[pod_class])];
    for (const auto& [loaded, count] : load) {
      if (loaded == pod_class) rest -= count;
    }
    if (rest <= 0) continue;
    const int64_t fits = run_.Count(offer, load, pod_class, rest);
    if (fits > 0) load = Plus(std::move(load), pod_class, fits);
  }
  return load;
}

// At most so many nodes, of no more pods than are left. How many were bought.
int64_t Packer::Prices::BuyUpTo(Run::Draft& draft, int offer, const Load& load, int64_t nodes) {
  nodes = std::min(nodes, run_.MaxNodes(draft.budget, offer));
  for (const auto& [pod_class, count] : load) {
    nodes = std::min(nodes, left_[static_cast<size_t>(row_of_[pod_class])] / count);
  }
  if (nodes <= 0 || load.empty()) return 0;
  for (const auto& [pod_class, count] : load) {
    left_[static_cast<size_t>(row_of_[pod_class])] -= count * nodes;
  }
  run_.Buy(draft, offer, load, nodes);
  return nodes;
}

bool Packer::Prices::BuyWhole(Run::Draft& draft) {
  std::vector<std::pair<size_t, int64_t>> whole;
  for (size_t f = 0; f < fillings_.size(); ++f) {
    const double amount = lp_->Amount(static_cast<int>(f));
    if (amount >= 1 - kWhole) whole.emplace_back(f, WholeOf(amount + kWhole));
  }
  int64_t bought = 0;
  for (const auto& [f, nodes] : whole) {
    const int offer = fillings_[f].offer;
    bought += BuyUpTo(draft, offer, Confirmed(offer, fillings_[f].load), nodes);
  }
  return bought > 0;
}

bool Packer::Prices::BuyOne(Run::Draft& draft, size_t skip) {
  std::vector<std::pair<double, size_t>> used;
  for (size_t f = 0; f < fillings_.size(); ++f) {
    const double amount = lp_->Amount(static_cast<int>(f));
    if (amount > kWhole) used.emplace_back(-amount, f);
  }
  std::sort(used.begin(), used.end());
  for (size_t u = std::min(skip, used.empty() ? 0 : used.size() - 1); u < used.size(); ++u) {
    const Filling& filling = fillings_[used[u].second];
    Load load;
    for (const auto& [pod_class, count] : filling.load) {
      const int64_t some = std::min(count, left_[static_cast<size_t>(row_of_[pod_class])]);
      if (some > 0) load.emplace_back(pod_class, some);
    }
    load = Refill(filling.offer, Confirmed(filling.offer, load));
    if (BuyUpTo(draft, filling.offer, load, 1) > 0) return true;
  }
  return false;
}

std::optional<Packer::Run::Draft> Packer::Prices::Dive() {
  if (classes_.empty() || dives_ >= kMaxDives || Spent()) return std::nullopt;
  const size_t skip = dives_++;
  Run::Draft draft;
  draft.unplaced.assign(run_.counts_.size(), 0);
  draft.budget = run_.budget_;
  left_ = counts_;
  lp_->SetCounts(left_);
  lp_->Solve(kMaxPivots);
  bool first = true;
  const auto none_left = [this] {
    return std::all_of(left_.begin(), left_.end(), [](int64_t n) { return n == 0; });
  };
  while (!none_left() && !Spent()) {
    if (!BuyWhole(draft)) {
      if (!BuyOne(draft, first ? skip : 0)) break;
      first = false;
    }
    lp_->SetCounts(left_);
    for (int round = 0; round < kDiveRounds && !none_left(); ++round) {
      if (!GenerateRound(kFillSteps[1])) break;
    }
  }
  Run::Counts rest(run_.counts_.size(), 0);
  for (size_t c = 0; c < rest.size(); ++c) {
    rest[c] = row_of_[c] < 0 ? run_.counts_[c] : left_[static_cast<size_t>(row_of_[c])];
  }
  run_.Construct(draft, rest, Run::Construction::kMixed);
  return draft;
}

}  // namespace fairlead::hook
