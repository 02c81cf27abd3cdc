// The two constructions of Packer.
#include <algorithm>
#include <optional>

#include "absl/numeric/int128.h"
#include "autoscale-hook/planner/packing_run.h"

namespace fairlead::hook {

// Puts pods of the class into room that is left on chosen nodes, in the order of the groups.
void Packer::Run::Fill(Draft& draft, int pod_class, int64_t& count) const {
  const size_t groups = draft.groups.size();
  for (size_t i = 0; i < groups && count > 0; ++i) {
    const NodeGroup group = draft.groups[i];
    if (group.nodes == 0) continue;
    const int64_t each = Count(group.offer, group.load, pod_class, count);
    if (each <= 0) continue;
    const int64_t full = std::min(group.nodes, count / each);
    draft.groups[i].nodes -= full;
    if (full > 0) draft.groups.push_back({group.offer, Plus(group.load, pod_class, each), full});
    count -= full * each;
    if (count > 0 && draft.groups[i].nodes > 0) {
      const int64_t rest = std::min(count, each);
      --draft.groups[i].nodes;
      draft.groups.push_back({group.offer, Plus(group.load, pod_class, rest), 1});
      count -= rest;
    }
  }
}

// The cheapest nodes that hold at least `count` pods, without caps: (offer, nodes), largest fit
// first. Exact up to 4 fmax pods; beyond, the bulk is bought at the best price per pod, and only
// the end is searched (an optimum of an unbounded knapsack is periodic in the best item once it is
// long enough).
std::vector<std::pair<int, int64_t>> Packer::Run::CoverChoices(const std::vector<Choice>& choices,
                                                               int64_t count) const {
  int64_t fit_max = 0;
  const Choice* best = nullptr;
  for (const Choice& choice : choices) {
    fit_max = std::max(fit_max, choice.fits);
    if (best == nullptr) {
      best = &choice;
      continue;
    }
    const auto mine = absl::int128(weighted_[choice.offer]) * best->fits;
    const auto theirs = absl::int128(weighted_[best->offer]) * choice.fits;
    if (mine < theirs || (mine == theirs && choice.fits > best->fits)) best = &choice;
  }
  std::vector<std::pair<int, int64_t>> bought;
  if (best == nullptr) return bought;
  const int64_t exact = 4 * fit_max;
  int64_t bulk = 0;
  if (count > exact) bulk = (count - exact + best->fits - 1) / best->fits;
  const int64_t end = count - bulk * best->fits;

  std::vector<PackCost> cost(static_cast<size_t>(end) + 1);
  std::vector<size_t> via(cost.size(), 0);
  for (int64_t n = 1; n <= end; ++n) {
    std::optional<PackCost> cheapest;
    for (size_t i = 0; i < choices.size(); ++i) {
      PackCost c = cost[std::max<int64_t>(0, n - choices[i].fits)];
      c.weighted = model::SaturatingAdd(c.weighted, weighted_[choices[i].offer]);
      c.gpus += packer_.offers_[choices[i].offer].type->gpu_count;
      ++c.nodes;
      if (!cheapest.has_value() || c < *cheapest) {
        cheapest = c;
        via[n] = i;
      }
    }
    cost[n] = *cheapest;
  }
  std::vector<int64_t> nodes(choices.size(), 0);
  nodes[best - choices.data()] = bulk;
  for (int64_t n = end; n > 0; n -= choices[via[n]].fits) ++nodes[via[n]];
  std::vector<size_t> order;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (nodes[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return choices[a].fits > choices[b].fits; });
  for (size_t i : order) bought.push_back({choices[i].offer, nodes[i]});
  return bought;
}

// Buys for `count` pods of one class. What caps forbid stays unplaced.
void Packer::Run::Cover(Draft& draft, int pod_class, int64_t count) {
  while (count > 0) {
    std::vector<Choice> choices;
    for (int offer : Active(draft.budget)) {
      const int64_t fits = Count(offer, {}, pod_class, kPerNodeLimit);
      if (fits > 0) choices.push_back({offer, fits});
    }
    const auto bought = CoverChoices(choices, count);
    if (bought.empty()) break;
    for (const auto& [offer, wanted] : bought) {
      const int64_t nodes = std::min(wanted, MaxNodes(draft.budget, offer));
      const int64_t fits = Count(offer, {}, pod_class, kPerNodeLimit);
      const int64_t full = std::min(nodes, count / fits);
      Buy(draft, offer, {{pod_class, fits}}, full);
      count -= full * fits;
      if (full < nodes && count > 0) {
        Buy(draft, offer, {{pod_class, std::min(count, fits)}}, 1);
        count -= std::min(count, fits);
      }
      if (nodes < wanted) break;  // a cap: choose again within it
    }
  }
  draft.unplaced[pod_class] += count;
}

void Packer::Run::Construct(Draft& draft, Counts counts, Construction how) {
  for (int pod_class : class_order_) {
    if (counts[pod_class] > 0) Fill(draft, pod_class, counts[pod_class]);
  }
  if (how == Construction::kMixed) ConstructMixed(draft, counts);
  for (int pod_class : class_order_) {
    int64_t& count = counts[pod_class];
    if (count == 0) continue;
    Fill(draft, pod_class, count);
    if (count > 0) Cover(draft, pod_class, count);
  }
}

// One node of the offer filled from `counts`: first as many as possible of `first_class`, then the
// others, dearest first.
Load Packer::Run::FillOne(int offer, const Counts& counts, int first_class) const {
  Load load;
  const auto add = [&](int pod_class) {
    if (counts[pod_class] <= 0) return;
    const int64_t fits = Count(offer, load, pod_class, counts[pod_class]);
    if (fits > 0) load = Plus(std::move(load), pod_class, fits);
  };
  add(first_class);
  for (int pod_class : class_order_) {
    if (pod_class != first_class) add(pod_class);
  }
  return load;
}

void Packer::Run::ConstructMixed(Draft& draft, Counts& counts) {
  // Fewer tries among many classes: prices (packing_prices.cc) do better there.
  constexpr size_t kMaxFirstClasses = 6, kTries = 150;
  const auto wanted = static_cast<size_t>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  const size_t max_firsts =
      std::clamp<size_t>(kTries / std::max<size_t>(1, wanted), 1, kMaxFirstClasses);
  // Every turn uses up a class or a cap; the bound is for safety only.
  for (size_t turn = 0; turn < 8 * counts.size() + 64; ++turn) {
    std::vector<int> firsts;
    for (int pod_class : class_order_) {
      if (counts[pod_class] > 0 && firsts.size() < max_firsts) firsts.push_back(pod_class);
    }
    if (firsts.empty()) return;
    int best_offer = -1;
    Load best_load;
    int64_t best_value = 0;
    const std::vector<int> active = Active(draft.budget);
    for (int offer : active) {
      for (int first : firsts) {
        Load load = FillOne(offer, counts, first);
        int64_t value = 0;
        for (const auto& [pod_class, count] : load) {
          value = model::SaturatingAdd(value,
                                       model::SaturatingMultiply(value_milli_[pod_class], count));
        }
        if (load.empty()) continue;
        const bool better = best_offer < 0 || absl::int128(value) * weighted_[best_offer] >
                                                  absl::int128(best_value) * weighted_[offer];
        if (better) {
          best_offer = offer;
          best_load = std::move(load);
          best_value = value;
        }
      }
    }
    if (best_offer < 0) return;
    int64_t nodes = MaxNodes(draft.budget, best_offer);
    for (const auto& [pod_class, count] : best_load) {
      nodes = std::min(nodes, counts[pod_class] / count);
    }
    for (const auto& [pod_class, count] : best_load) counts[pod_class] -= nodes * count;
    Buy(draft, best_offer, std::move(best_load), nodes);
  }
}

}  // namespace fairlead::hook
