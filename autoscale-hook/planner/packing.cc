#include "autoscale-hook/planner/packing.h"

#include <algorithm>
#include <limits>
#include <map>

#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/packing_prices.h"
#include "autoscale-hook/planner/packing_run.h"

namespace fairlead::hook {
namespace {

// One GPU outweighs every price, under Objective::kGpusThenPrice.
constexpr int64_t kGpuWeight = 1000000000000;
constexpr int64_t kImproveBudget = 20000;
constexpr int64_t kDiveImproveBudget = 6000;

// Whether two nodes that differ in nothing but zone and capacity type can differ for these pods.
bool ZoneCanMatter(const model::PodSpec& spec) {
  return !spec.node_selector.empty() || spec.has_required_node_affinity || LooksAtOtherPods(spec) ||
         !(*spec.volume_needs == model::VolumeNeeds()) || !spec.resource_claims.empty() ||
         !spec.claim_templates.empty() || spec.wishes->ReadsOffering();
}

bool ZoneCanMatter(const PackClass& pod_class) {
  if (pod_class.unit.empty()) return ZoneCanMatter(*pod_class.spec);
  return std::any_of(pod_class.unit.begin(), pod_class.unit.end(),
                     [](const Placement::Load& pods) { return ZoneCanMatter(*pods.spec); });
}

// What the placement has to know of so many of a class.
void Append(const PackClass& pod_class, int64_t count, std::vector<Placement::Load>& loads) {
  if (pod_class.unit.empty()) {
    loads.push_back({pod_class.spec, count});
    return;
  }
  for (const Placement::Load& pods : pod_class.unit) {
    loads.push_back({pods.spec, pods.count * count});
  }
}

bool CoversResources(const model::ResourceList& big, const model::ResourceList& small) {
  return std::all_of(small.begin(), small.end(), [&](const auto& entry) {
    return model::Get(big, entry.first) >= entry.second;
  });
}

int64_t Times(int64_t amount, int64_t nodes) { return model::SaturatingMultiply(amount, nodes); }
void Add(int64_t& sum, int64_t amount) { sum = model::SaturatingAdd(sum, amount); }
void Take(int64_t& left, int64_t amount) {
  if (left != kNoBound) Add(left, -amount);
}

}  // namespace

Load Plus(Load load, int pod_class, int64_t count) {
  auto it = std::lower_bound(load.begin(), load.end(), pod_class,
                             [](const auto& entry, int wanted) { return entry.first < wanted; });
  if (it != load.end() && it->first == pod_class) {
    it->second += count;
  } else {
    load.insert(it, {pod_class, count});
  }
  return load;
}

bool Packing::Complete() const {
  return std::all_of(unplaced.begin(), unplaced.end(), [](int64_t n) { return n == 0; });
}

std::vector<model::Node> TemplatesOf(const std::vector<Offer>& offers) {
  std::vector<model::Node> nodes;
  nodes.reserve(offers.size());
  for (const Offer& offer : offers) nodes.push_back(UsableNode(offer, ""));
  return nodes;
}

Packer::Packer(std::vector<PackClass> classes, std::vector<Offer> offers, Placement& placement)
    : classes_(std::move(classes)),
      offers_(std::move(offers)),
      placement_(placement),
      nodes_(TemplatesOf(offers_)),
      amounts_(nodes_) {
  std::map<std::pair<std::string, std::string>, int> shapes;
  std::vector<const std::vector<model::Taint>*> taints;
  for (size_t o = 0; o < offers_.size(); ++o) {
    const Offer& offer = offers_[o];
    const auto same = std::find_if(taints.begin(), taints.end(),
                                   [&](const auto* known) { return *known == nodes_[o].taints; });
    tainted_.push_back(static_cast<int>(same - taints.begin()));
    if (same == taints.end()) taints.push_back(&nodes_[o].taints);
    auto [it, added] = shapes.try_emplace({offer.type->name, offer.pool->meta.name},
                                          static_cast<int>(shapes.size()));
    shape_.push_back(it->second);
  }
  for (const PackClass& pod_class : classes_) {
    zone_matters_.push_back(ZoneCanMatter(pod_class));
    AddAmounts(pod_class);
  }
  fit_.assign(offers_.size(), std::vector<int64_t>(classes_.size(), -1));
}

Packer::~Packer() = default;

void Packer::AddAmounts(const PackClass& pod_class) {
  std::vector<Placement::Load> pods;
  Append(pod_class, 1, pods);
  const bool known = amounts_.AddClass(pods);
  fits_by_.push_back(known && pod_class.unit.empty() ? WhatDecides(*pod_class.spec)
                                                     : FitsBy::kOther);
  size_t places = offers_.size();
  if (fits_by_.back() == FitsBy::kAmounts && !tainted_.empty()) {
    places = static_cast<size_t>(*std::max_element(tainted_.begin(), tainted_.end())) + 1;
  }
  const bool never = fits_by_.back() == FitsBy::kOther;
  reckoned_.emplace_back(places, never ? Reckoning::kNo : Reckoning::kUnknown);
}

bool Packer::Reckoned(int offer, int pod_class) {
  const bool by_amounts = fits_by_[pod_class] == FitsBy::kAmounts;
  Reckoning& known = reckoned_[pod_class][by_amounts ? tainted_[offer] : offer];
  if (known != Reckoning::kUnknown) return known == Reckoning::kYes;
  const int64_t fits = amounts_.Count(offer, {}, pod_class, kPerNodeLimit);
  if (fits == 0) return true;  // the placement cannot say more
  const int64_t asked = Ask(offer, {}, pod_class);
  known = asked == fits ? Reckoning::kYes : Reckoning::kNo;
  return known == Reckoning::kYes;
}

bool Packer::Confirm(const Packing& packing) {
  bool confirmed = true;
  for (const NodeGroup& group : packing.groups) {
    const auto reckoned = [&](const auto& entry) { return Reckoned(group.offer, entry.first); };
    if (!std::all_of(group.load.begin(), group.load.end(), reckoned)) continue;
    const auto& [last, count] = group.load.back();
    if (Ask(group.offer, {group.load.begin(), group.load.end() - 1}, last) >= count) continue;
    confirmed = false;
    for (const auto& [pod_class, unused] : group.load) {
      std::fill(reckoned_[pod_class].begin(), reckoned_[pod_class].end(), Reckoning::kNo);
      for (std::vector<int64_t>& row : fit_) row[pod_class] = -1;
    }
  }
  return confirmed;
}

std::vector<Placement::Load> Packer::PodsOf(const Load& load) const {
  std::vector<Placement::Load> pods;
  for (const auto& [pod_class, count] : load) Append(classes_[pod_class], count, pods);
  return pods;
}

int Packer::AddClass(PackClass pod_class) {
  zone_matters_.push_back(ZoneCanMatter(pod_class));
  has_units_ = has_units_ || !pod_class.unit.empty();
  AddAmounts(pod_class);
  classes_.push_back(std::move(pod_class));
  for (std::vector<int64_t>& row : fit_) row.push_back(-1);
  return static_cast<int>(classes_.size()) - 1;
}

int64_t Packer::FitTogether(int offer, const std::vector<Placement::Load>& pods) {
  const model::Node& node = nodes_[static_cast<size_t>(offer)];
  int64_t left = model::Get(node.allocatable, model::kPodsName);
  std::vector<Placement::Load> already;
  int64_t together = 0;
  for (const Placement::Load& more : pods) {
    ++questions_;
    const int64_t limit = std::min(left, more.count);
    const int64_t fits =
        limit <= 0 ? 0
                   : std::clamp<int64_t>(placement_.CountThatFit(node, already, more.spec, limit),
                                         0, limit);
    together += fits;
    left -= fits;
    if (fits < more.count) break;
    already.push_back(more);
  }
  return together;
}

int64_t Packer::CountUnits(int offer, std::vector<Placement::Load> already,
                           const std::vector<Placement::Load>& unit) {
  const model::Node& node = nodes_[static_cast<size_t>(offer)];
  for (int64_t units = 0; units < kUnitsPerNode; ++units) {
    for (const Placement::Load& pods : unit) {
      ++questions_;
      if (placement_.CountThatFit(node, already, pods.spec, pods.count) < pods.count) return units;
      already.push_back(pods);
    }
  }
  return kUnitsPerNode;
}

int64_t Packer::CountOn(int offer, const Load& load, int pod_class, int64_t limit) {
  ++lookups_;
  int64_t& empty_fit = fit_[offer][pod_class];
  if (load.empty() && empty_fit >= 0) return std::min(empty_fit, limit);
  const PackClass& wanted = classes_[pod_class];
  if (wanted.offers != nullptr && !(*wanted.offers)[offer]) return empty_fit = 0;
  if (has_units_ && std::any_of(load.begin(), load.end(), [&](const auto& entry) {
        return classes_[entry.first].unit.empty() != wanted.unit.empty();
      })) {
    return 0;
  }

  // Where labels refuse the class, the placement is asked once, about an empty node.
  if (fits_by_[pod_class] == FitsBy::kLabels && !load.empty() &&
      CountOn(offer, {}, pod_class, 1) == 0) {
    return 0;
  }
  const auto reckoned = [&](const auto& entry) { return Reckoned(offer, entry.first); };
  if (Reckoned(offer, pod_class) && std::all_of(load.begin(), load.end(), reckoned)) {
    const int64_t fits = amounts_.Count(offer, load, pod_class, kPerNodeLimit);
    if (load.empty()) empty_fit = fits;
    return std::min(fits, limit);
  }
  const int64_t fits = Ask(offer, load, pod_class);
  if (load.empty()) empty_fit = fits;
  return std::min(fits, limit);
}

// The placement's answer, remembered.
int64_t Packer::Ask(int offer, const Load& load, int pod_class) {
  const PackClass& wanted = classes_[pod_class];
  Question question;
  bool zone = zone_matters_[pod_class];
  for (const auto& [loaded, count] : load) zone = zone || zone_matters_[loaded];
  question.node = zone ? -1 - static_cast<int64_t>(offer) : shape_[offer];
  question.pod_class = pod_class;
  question.load = load;
  auto [it, added] = answers_.try_emplace(std::move(question), 0);
  if (added) {
    std::vector<Placement::Load> already = PodsOf(load);
    const int64_t room =
        std::min(kPerNodeLimit, model::Get(nodes_[offer].allocatable, model::kPodsName));
    if (!wanted.unit.empty()) {
      it->second = CountUnits(offer, std::move(already), wanted.unit);
    } else if (room > 0) {
      ++questions_;
      it->second = std::clamp<int64_t>(
          placement_.CountThatFit(nodes_[offer], already, wanted.spec, room), 0, room);
    }
  }
  return it->second;
}

Packing Packer::Pack(const std::vector<int64_t>& counts, const CapsLeft& caps,
                     Objective objective) {
  // A plan is asked for again once it is decided.
  LastPack& last = last_pack_;
  if (last.valid && last.counts == counts && last.objective == objective && last.caps == caps) {
    return last.packing;
  }
  Packing packing = Run(*this, counts, caps, objective).Solve();
  while (!Confirm(packing)) packing = Run(*this, counts, caps, objective).Solve();
  last = {true, counts, caps, objective, packing};
  return packing;
}

Packer::Run::Run(Packer& packer, const std::vector<int64_t>& counts, const CapsLeft& caps,
                 Objective objective)
    : packer_(packer), counts_(counts) {
  std::map<std::string, int> models, pools, reservations;
  budget_.nodes = caps.nodes;
  budget_.gpus = caps.gpus;
  budget_.micro_usd_per_hour = caps.micro_usd_per_hour;
  const auto index_of = [](const std::string& name, const std::map<std::string, int64_t>& bounds,
                           std::map<std::string, int>& indexes, std::vector<int64_t>& left) {
    auto [it, added] = indexes.try_emplace(name, static_cast<int>(indexes.size()));
    if (added) {
      auto bound = bounds.find(name);
      left.push_back(bound == bounds.end() ? kNoBound : bound->second);
    }
    return it->second;
  };
  for (const Offer& offer : packer_.offers_) {
    model_of_.push_back(
        index_of(offer.type->gpu_model, caps.gpus_by_model, models, budget_.by_model));
    pool_of_.push_back(index_of(offer.pool->meta.name, caps.nodes_by_pool, pools, budget_.by_pool));
    reservation_of_.push_back(-1);
    if (offer.reservation != nullptr) {
      const std::string& name = offer.reservation->name;
      reservation_of_.back() =
          index_of(name, caps.nodes_by_reservation, reservations, budget_.by_reservation);
      if (!caps.nodes_by_reservation.contains(name)) {
        budget_.by_reservation[static_cast<size_t>(reservation_of_.back())] = 0;
      }
    }
    const int64_t gpus = objective == Objective::kPrice ? 0 : offer.type->gpu_count;
    weighted_.push_back(model::SaturatingAdd(offer.PriceOfChoice(), Times(gpus, kGpuWeight)));
  }
  for (size_t c = 0; c < counts_.size(); ++c) {
    value_milli_.push_back(ValueOf(static_cast<int>(c)));
    class_order_.push_back(static_cast<int>(c));
  }
  std::stable_sort(class_order_.begin(), class_order_.end(),
                   [&](int a, int b) { return value_milli_[a] > value_milli_[b]; });
}

Packer::Run::Run(const Run& whole, const std::vector<int64_t>& counts, Budget budget)
    : packer_(whole.packer_),
      counts_(counts),
      budget_(std::move(budget)),
      model_of_(whole.model_of_),
      pool_of_(whole.pool_of_),
      reservation_of_(whole.reservation_of_),
      weighted_(whole.weighted_),
      value_milli_(whole.value_milli_),
      class_order_(whole.class_order_) {}

// What a pod of the class costs where nothing is reserved: the more that is, the more a reserved
// machine saves that it runs on.
int64_t Packer::Run::ValueOf(int pod_class) const {
  const int64_t count = counts_[static_cast<size_t>(pod_class)];
  std::optional<int64_t> cheapest, cheapest_reserved;
  for (size_t o = 0; count > 0 && o < weighted_.size(); ++o) {
    const int64_t fits = Count(static_cast<int>(o), {}, pod_class, count);
    if (fits <= 0) continue;
    std::optional<int64_t>& known = reservation_of_[o] < 0 ? cheapest : cheapest_reserved;
    const int64_t each = Times(weighted_[o], 1000) / fits;
    known = std::min(known.value_or(each), each);
  }
  return cheapest.value_or(cheapest_reserved.value_or(0));
}

Packing Packer::Run::Solve() {
  Draft empty;
  empty.unplaced.assign(counts_.size(), 0);
  empty.budget = budget_;
  lookups_end_ = packer_.lookups_ + kImproveBudget;

  Draft best = empty;
  Construct(best, counts_, Construction::kPerClass);
  Improve(best);
  const auto wanted =
      std::count_if(counts_.begin(), counts_.end(), [](int64_t n) { return n > 0; });
  if (wanted > 1) {
    Draft mixed = empty;
    Construct(mixed, counts_, Construction::kMixed);
    lookups_end_ = packer_.lookups_ + kImproveBudget;
    Improve(mixed);
    if (Better(mixed, best)) best = std::move(mixed);
    TryPricesBesideReserved(best);
  }
  Normalise(best);

  Packing packing;
  packing.groups = std::move(best.groups);
  packing.unplaced = std::move(best.unplaced);
  packing.cost = best.cost;
  for (const NodeGroup& group : packing.groups) {
    packing.price_micro_usd_per_hour = model::SaturatingAdd(
        packing.price_micro_usd_per_hour,
        Times(packer_.offers_[group.offer].price_micro_usd_per_hour, group.nodes));
    packing.price_of_choice = model::SaturatingAdd(
        packing.price_of_choice, Times(packer_.offers_[group.offer].PriceOfChoice(), group.nodes));
  }
  return packing;
}

// What is on reserved machines stays there; plans by prices of pods for the rest.
void Packer::Run::TryPricesBesideReserved(Draft& best) {
  if (std::all_of(budget_.by_reservation.begin(), budget_.by_reservation.end(),
                  [](int64_t left) { return left <= 0; })) {
    return TryPrices(best);
  }
  Draft reserved, others;
  reserved.unplaced.assign(counts_.size(), 0);
  reserved.budget = budget_;
  Counts rest = counts_;
  for (const NodeGroup& group : best.groups) {
    if (reservation_of_[group.offer] < 0) continue;
    Buy(reserved, group.offer, group.load, group.nodes);
    for (const auto& [pod_class, count] : group.load) rest[pod_class] -= count * group.nodes;
  }
  others.unplaced = best.unplaced;
  others.budget = reserved.budget;
  std::fill(others.budget.by_reservation.begin(), others.budget.by_reservation.end(), 0);
  Run run(*this, rest, others.budget);
  for (const NodeGroup& group : best.groups) {
    if (reservation_of_[group.offer] < 0) run.Buy(others, group.offer, group.load, group.nodes);
  }
  run.TryPrices(others);
  for (const NodeGroup& group : others.groups) {
    Buy(reserved, group.offer, group.load, group.nodes);
  }
  reserved.unplaced = others.unplaced;
  if (Better(reserved, best)) best = std::move(reserved);
}

// Plans by prices of pods, as long as they can be cheaper.
void Packer::Run::TryPrices(Draft& best) {
  Prices prices(*this);
  prices.Generate(best);
  // A part in 5,000 is not worth another dive.
  while (best.cost.weighted - best.cost.weighted / 5000 > prices.estimate()) {
    std::optional<Draft> draft = prices.Dive();
    if (!draft.has_value()) return;
    lookups_end_ = packer_.lookups_ + kDiveImproveBudget;
    Improve(*draft);
    if (Better(*draft, best)) best = *std::move(draft);
  }
}

bool Packer::Run::Better(const Draft& a, const Draft& b) const {
  int64_t left_a = 0, left_b = 0;
  for (int64_t n : a.unplaced) left_a += n;
  for (int64_t n : b.unplaced) left_b += n;
  if (left_a != left_b) return left_a < left_b;
  return a.cost < b.cost;
}

int64_t Packer::Run::MaxNodes(const Budget& budget, int offer) const {
  const Offer& o = packer_.offers_[offer];
  int64_t nodes = budget.by_pool[pool_of_[offer]];
  if (const int reservation = reservation_of_[offer]; reservation >= 0) {
    nodes = std::min(nodes, std::max<int64_t>(0, budget.by_reservation[reservation]));
  }
  const auto bound = [&nodes](int64_t left, int64_t each) {
    if (left != kNoBound && each > 0) nodes = std::min(nodes, std::max<int64_t>(0, left / each));
  };
  bound(budget.nodes, 1);
  bound(budget.gpus, o.type->gpu_count);
  bound(budget.by_model[model_of_[offer]], o.type->gpu_count);
  bound(budget.micro_usd_per_hour, o.price_micro_usd_per_hour);
  return nodes;
}

void Packer::Run::Buy(Draft& draft, int offer, Load load, int64_t nodes) const {
  if (nodes <= 0) return;
  const Offer& o = packer_.offers_[offer];
  const int64_t gpus = Times(o.type->gpu_count, nodes);
  Take(draft.budget.nodes, nodes);
  Take(draft.budget.gpus, gpus);
  Take(draft.budget.by_model[model_of_[offer]], gpus);
  Take(draft.budget.by_pool[pool_of_[offer]], nodes);
  if (const int reservation = reservation_of_[offer]; reservation >= 0) {
    Take(draft.budget.by_reservation[reservation], nodes);
  }
  Take(draft.budget.micro_usd_per_hour, Times(o.price_micro_usd_per_hour, nodes));
  Add(draft.cost.weighted, Times(weighted_[offer], nodes));
  Add(draft.cost.gpus, gpus);
  draft.cost.nodes += nodes;
  for (NodeGroup& group : draft.groups) {
    if (group.offer == offer && group.load == load) {
      group.nodes += nodes;
      return;
    }
  }
  draft.groups.push_back({offer, std::move(load), nodes});
}

void Packer::Run::GiveBack(Draft& draft, size_t group, int64_t nodes) const {
  NodeGroup& g = draft.groups[group];
  const Offer& o = packer_.offers_[g.offer];
  const int64_t gpus = Times(o.type->gpu_count, nodes);
  Take(draft.budget.nodes, -nodes);
  Take(draft.budget.gpus, -gpus);
  Take(draft.budget.by_model[model_of_[g.offer]], -gpus);
  Take(draft.budget.by_pool[pool_of_[g.offer]], -nodes);
  if (const int reservation = reservation_of_[g.offer]; reservation >= 0) {
    Take(draft.budget.by_reservation[reservation], -nodes);
  }
  Take(draft.budget.micro_usd_per_hour, -Times(o.price_micro_usd_per_hour, nodes));
  Add(draft.cost.weighted, -Times(weighted_[g.offer], nodes));
  Add(draft.cost.gpus, -gpus);
  draft.cost.nodes -= nodes;
  g.nodes -= nodes;
}

// Offers within the budget that are not beaten in everything by another one: no dearer, no more
// GPUs, no less of any resource, and at least as many pods of every class.
std::vector<int> Packer::Run::ActiveOffers(const Budget& budget) const {
  std::vector<int> candidates;
  for (size_t i = 0; i < packer_.offers_.size(); ++i) {
    const int offer = static_cast<int>(i);
    if (MaxNodes(budget, offer) <= 0) continue;
    for (size_t c = 0; c < counts_.size(); ++c) {
      if (counts_[c] > 0 && Count(offer, {}, static_cast<int>(c), 1) > 0) {
        candidates.push_back(offer);
        break;
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) {
    if (weighted_[a] != weighted_[b]) return weighted_[a] < weighted_[b];
    return packer_.offers_[a].type->gpu_count < packer_.offers_[b].type->gpu_count;
  });
  const auto beats = [&](int a, int b) {
    if (packer_.offers_[a].type->gpu_count > packer_.offers_[b].type->gpu_count) return false;
    for (size_t c = 0; c < counts_.size(); ++c) {
      const int pod_class = static_cast<int>(c);
      if (counts_[c] > 0 &&
          Count(a, {}, pod_class, kPerNodeLimit) < Count(b, {}, pod_class, kPerNodeLimit)) {
        return false;
      }
    }
    return CoversResources(packer_.nodes_[a].allocatable, packer_.nodes_[b].allocatable);
  };
  std::vector<int> kept;
  for (int offer : candidates) {
    if (std::none_of(kept.begin(), kept.end(), [&](int k) { return beats(k, offer); })) {
      kept.push_back(offer);
    }
  }
  return kept;
}

const std::vector<int>& Packer::Run::Active(const Budget& budget) {
  // The list stands while every offer on it can be bought: those that it beats are not needed.
  const auto spent = [&](int offer) { return MaxNodes(budget, offer) <= 0; };
  if (!active_known_ || std::any_of(active_.begin(), active_.end(), spent)) {
    active_ = ActiveOffers(budget);
    active_known_ = true;
  }
  return active_;
}

}  // namespace fairlead::hook
