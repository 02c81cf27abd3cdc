#include "autoscale-hook/planner/plan_bonds.h"

#include <algorithm>
#include <set>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/wished_offers.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/pod_terms.h"

namespace fairlead::hook {
namespace {

constexpr int64_t kMaxPerNode = 1024;
constexpr size_t kMaxOfferSets = 16;
// Kinds of which the bounds are found together, so that nodes are added once for all of them.
constexpr size_t kKindsAtOnce = 64;

// Whether a bond of `spec` may select pods with these labels. Namespaces are left aside: it may say
// yes too often.
bool MaySelect(const model::PodSpec& spec, const model::StringMap& labels) {
  bool any = false;
  model::ForEachBond(spec, [&](const auto& bond) { any = any || bond.selector.Matches(labels); });
  return any;
}

bool Counts(const verdict::DemandClass& pods) { return pods.spec != nullptr && pods.count > 0; }

int64_t MinimumOf(const DemandItem& item, const verdict::DemandClass& pods) {
  return item.atomic ? pods.count : std::clamp<int64_t>(pods.min_count, 0, pods.count);
}

}  // namespace

std::string BondOf(const model::PodSpec& spec) {
  for (const model::TopologySpreadConstraint& spread : spec.topology_spread) {
    if (spread.do_not_schedule) return absl::StrCat("spread over ", spread.topology_key);
  }
  for (const model::PodAffinityTerm& term : spec.pod_affinity) {
    if (model::IsBond(term, false))
      return absl::StrCat("attract each other over ", term.topology_key);
  }
  for (const model::PodAffinityTerm& term : spec.pod_anti_affinity) {
    if (model::IsBond(term, true)) return absl::StrCat("avoid each other over ", term.topology_key);
  }
  return "";
}

std::vector<bool> ItemsWithBonds(const Demand& demand) {
  std::vector<bool> with(demand.size(), false);
  std::set<const model::PodSpec*> bonds;
  for (const DemandItem& item : demand) {
    for (const verdict::DemandClass& pods : item.classes) {
      if (Counts(pods) && model::HasBond(*pods.spec)) bonds.insert(pods.spec.get());
    }
  }
  if (bonds.empty()) return with;
  std::map<const model::PodSpec*, bool> selected;
  const auto is_selected = [&](const model::PodSpec& spec) {
    const auto [known, added] = selected.try_emplace(&spec, spec.selected_by_others);
    if (added && !spec.labels_for_affinity.empty()) {
      known->second = known->second || std::any_of(bonds.begin(), bonds.end(), [&](const auto* by) {
                        return MaySelect(*by, spec.labels_for_affinity);
                      });
    }
    return known->second;
  };
  for (size_t i = 0; i < demand.size(); ++i) {
    if (!demand[i].domains.empty()) continue;
    with[i] = std::any_of(
        demand[i].classes.begin(), demand[i].classes.end(), [&](const verdict::DemandClass& pods) {
          return Counts(pods) && (bonds.contains(pods.spec.get()) || is_selected(*pods.spec));
        });
  }
  return with;
}

bool Allows(const CapsLeft& left, const Offer& offer) {
  const auto leaves = [](const std::map<std::string, int64_t>& of, const std::string& name,
                         int64_t amount) {
    const auto found = of.find(name);
    return found == of.end() || found->second >= amount;
  };
  if (left.nodes < 1 || left.gpus < offer.type->gpu_count ||
      left.micro_usd_per_hour < offer.price_micro_usd_per_hour) {
    return false;
  }
  return leaves(left.gpus_by_model, offer.type->gpu_model, offer.type->gpu_count) &&
         leaves(left.nodes_by_pool, offer.pool->meta.name, 1) &&
         (offer.reservation == nullptr ||
          (left.nodes_by_reservation.contains(offer.reservation->name) &&
           leaves(left.nodes_by_reservation, offer.reservation->name, 1)));
}

void TakeFrom(CapsLeft& left, const Offer& offer) {
  if (left.nodes != kNoBound) --left.nodes;
  if (left.gpus != kNoBound) left.gpus -= offer.type->gpu_count;
  if (left.micro_usd_per_hour != kNoBound) {
    left.micro_usd_per_hour -= offer.price_micro_usd_per_hour;
  }
  auto model = left.gpus_by_model.find(offer.type->gpu_model);
  if (model != left.gpus_by_model.end()) model->second -= offer.type->gpu_count;
  auto pool = left.nodes_by_pool.find(offer.pool->meta.name);
  if (pool != left.nodes_by_pool.end()) --pool->second;
  if (offer.reservation != nullptr) --left.nodes_by_reservation[offer.reservation->name];
}

bool Overdrawn(const CapsLeft& left) {
  const auto below = [](const auto& entry) { return entry.second < 0; };
  return left.nodes < 0 || left.gpus < 0 || left.micro_usd_per_hour < 0 ||
         std::any_of(left.gpus_by_model.begin(), left.gpus_by_model.end(), below) ||
         std::any_of(left.nodes_by_pool.begin(), left.nodes_by_pool.end(), below) ||
         std::any_of(left.nodes_by_reservation.begin(), left.nodes_by_reservation.end(), below);
}

BondPlanner::BondPlanner(const Demand& demand, const std::vector<Offer>& offers,
                         const CapsLeft& caps, Rehearsal& rehearsal, int64_t max_work)
    : demand_(demand),
      offers_(offers),
      rehearsal_(rehearsal),
      work_before_(rehearsal.work()),
      max_work_(max_work),
      max_work_of_item_(max_work) {
  for (const Offer& offer : offers_) {
    by_price_.push_back(static_cast<int>(templates_.size()));
    templates_.push_back(UsableNode(offer, ""));
  }
  std::stable_sort(by_price_.begin(), by_price_.end(), [&](int a, int b) {
    const Offer& x = offers_[static_cast<size_t>(a)];
    const Offer& y = offers_[static_cast<size_t>(b)];
    if (x.PriceOfChoice() != y.PriceOfChoice()) return x.PriceOfChoice() < y.PriceOfChoice();
    return x.type->gpu_count < y.type->gpu_count;
  });
  const std::vector<bool> with = ItemsWithBonds(demand_);
  for (size_t i = 0; i < demand_.size(); ++i) {
    if (!with[i]) continue;
    for (const verdict::DemandClass& pods : demand_[i].classes) {
      if (!Counts(pods)) continue;
      if (!all_.contains(pods.spec.get())) kinds_.push_back(pods.spec);
      all_[pods.spec.get()] += pods.count;
    }
  }
  waiting_ = all_;
  FindDomains(caps);
  AddDomains();
}

void BondPlanner::FindDomains(const CapsLeft& caps) {
  std::set<std::string> keys;
  for (const auto& [spec, count] : all_) {
    for (const model::TopologySpreadConstraint& spread : spec->topology_spread) {
      // Every node is a domain of its own there, and more of them are always on offer.
      if (spread.topology_key == model::kHostnameLabel) continue;
      if (spread.do_not_schedule) keys.insert(spread.topology_key);
    }
  }
  if (keys.empty()) return;
  std::set<std::vector<std::string>> known;
  for (size_t i = 0; i < offers_.size(); ++i) {
    if (!Allows(caps, offers_[i])) continue;
    std::vector<std::string> values;
    values.reserve(keys.size());
    for (const std::string& key : keys) values.emplace_back(templates_[i].meta.labels.Get(key));
    if (!known.insert(std::move(values)).second) continue;
    domains_.push_back(templates_[i]);
    domains_.back().allocatable.clear();
  }
}

void BondPlanner::AddDomains() {
  for (const model::Node& node : domains_) rehearsal_.AddNode(node);
}

void BondPlanner::Clear() {
  changes_ = ++last_change_;
  rehearsal_.RollbackTo(0);
  for (const Spec& kind : kinds_) rehearsal_.Know(kind);
  AddDomains();
  nodes_.clear();
  waiting_ = all_;
}

void BondPlanner::Again() {
  changes_ = ++last_change_;
  rehearsal_.RollbackTo(kept_.first);
  nodes_.resize(kept_.second);
  waiting_ = all_;
}

int BondPlanner::AddNode(int offer, const std::vector<Placement::Load>& pods) {
  const int number = rehearsal_.AddNode(templates_[static_cast<size_t>(offer)]);
  for (const Placement::Load& load : pods) rehearsal_.Place(load.spec, number, load.count);
  nodes_.push_back(number);
  changes_ = ++last_change_;
  return static_cast<int>(nodes_.size()) - 1;
}

std::vector<std::vector<int>> BondPlanner::OffersByDomain(const DemandItem& item) const {
  std::vector<std::vector<int>> sets;
  std::set<std::string> keys;
  int64_t pods = 0;
  for (const verdict::DemandClass& pod_class : item.classes) {
    if (!Counts(pod_class)) continue;
    pods += pod_class.count;
    for (const model::PodAffinityTerm& term : pod_class.spec->pod_affinity) {
      if (term.weight == 0) keys.insert(term.topology_key);
    }
  }
  if (pods < 2) return sets;
  for (const std::string& key : keys) {
    std::map<std::string, std::vector<int>> by_value;
    for (const int offer : by_price_) {
      const auto& labels = templates_[static_cast<size_t>(offer)].meta.labels;
      if (const std::string* value = labels.Find(key)) by_value[*value].push_back(offer);
    }
    if (by_value.size() < 2) continue;
    for (auto& [value, offers] : by_value) {
      if (sets.size() < kMaxOfferSets) sets.push_back(std::move(offers));
    }
  }
  return sets;
}

BondPlanner::Result BondPlanner::Place(size_t item, CapsLeft& left) {
  const std::vector<std::vector<int>> by_domain = OffersByDomain(demand_[item]);
  std::vector<const std::vector<int>*> sets = {&by_price_};
  for (const std::vector<int>& offers : by_domain) sets.push_back(&offers);
  max_work_of_item_ = work() + std::max<int64_t>(1, max_work_ / 4);
  for (const verdict::DemandClass& pods : demand_[item].classes) {
    if (Counts(pods)) rehearsal_.Know(pods.spec);
  }
  const size_t start = rehearsal_.Mark();
  const size_t nodes = nodes_.size();
  const uint64_t unchanged = changes_;
  const auto back = [&] {
    changes_ = unchanged;
    rehearsal_.RollbackTo(start);
    nodes_.resize(nodes);
  };
  const auto better = [](const Result& a, const Result& b) {
    if (a.pods != b.pods) return a.pods > b.pods;
    if (a.later_models != b.later_models) return a.later_models < b.later_models;
    return a.price_of_choice < b.price_of_choice;
  };
  size_t best = 0;
  Result result;
  for (size_t i = 0; i < sets.size(); ++i) {
    CapsLeft after = left;
    Result here = Try(item, *sets[i], after);
    if (sets.size() == 1) {
      if (here.placed) left = std::move(after);
      if (!here.placed) back();
      result = std::move(here);
      break;
    }
    back();
    if (i == 0 || better(here, result)) {
      best = i;
      result = std::move(here);
    }
  }
  if (sets.size() > 1 && result.placed) result = Try(item, *sets[best], left);
  if (result.placed) {
    for (const verdict::DemandClass& pods : demand_[item].classes) {
      if (Counts(pods)) waiting_[pods.spec.get()] -= pods.count;
    }
  }
  return result;
}

BondPlanner::Result BondPlanner::Try(size_t index, const std::vector<int>& offers, CapsLeft& left) {
  const DemandItem& item = demand_[index];
  Attempt attempt{item, offers, left, {}, {}};
  for (const verdict::DemandClass& pods : item.classes) {
    attempt.remaining.push_back(Counts(pods) ? pods.count : 0);
  }
  // The pods of a gang are placed in their order, as the engine does it.
  while (Round(attempt) && !item.atomic) {
  }
  Result& result = attempt.result;
  result.placed = result.pods > 0;
  for (size_t c = 0; c < item.classes.size(); ++c) {
    const verdict::DemandClass& pods = item.classes[c];
    if (Counts(pods) && pods.count - attempt.remaining[c] < MinimumOf(item, pods)) {
      result.placed = false;
    }
  }
  if (result.placed) {
    left = std::move(attempt.left);
  } else {
    result.pods = 0;
    result.price_micro_usd_per_hour = result.price_of_choice = 0;
    result.on.clear();
  }
  std::sort(result.on.begin(), result.on.end());
  return std::move(result);
}

// Once through all classes; false if nothing was placed, or nothing is left.
bool BondPlanner::Round(Attempt& attempt) {
  const int64_t before = attempt.result.pods;
  bool any_left = false;
  for (size_t c = 0; c < attempt.remaining.size(); ++c) {
    if (attempt.remaining[c] > 0) PlaceOnKnown(attempt, c);
    while (attempt.remaining[c] > 0 && Buy(attempt, c)) {
    }
    any_left = any_left || attempt.remaining[c] > 0;
  }
  return any_left && attempt.result.pods > before;
}

void BondPlanner::Put(Attempt& attempt, size_t pod_class, int node, int64_t pods) {
  if (pods <= 0) return;
  changes_ = ++last_change_;
  attempt.remaining[pod_class] -= pods;
  attempt.result.pods += pods;
  if (node == Rehearsal::kPresent) return;
  auto known = std::find_if(attempt.result.on.begin(), attempt.result.on.end(),
                            [node](const auto& entry) { return entry.first == node; });
  if (known == attempt.result.on.end()) {
    attempt.result.on.emplace_back(node, pods);
  } else {
    known->second += pods;
  }
}

// On present nodes the engine has found no place as the cluster is; what is planned may have made
// one.
void BondPlanner::PlaceOnKnown(Attempt& attempt, size_t pod_class) {
  if (nodes_.empty() || Spent()) return;
  const Spec& spec = attempt.item.classes[pod_class].spec;
  Refusal& refusal = nowhere_[spec.get()];
  if (refusal.changes == changes_) return;
  ++questions_;
  const auto is_not_of_plan = [&](int number) {
    return !std::binary_search(nodes_.begin(), nodes_.end(), number);
  };
  for (const auto& [number, pods] :
       rehearsal_.PlaceBest(spec, attempt.remaining[pod_class], is_not_of_plan)) {
    if (number == Rehearsal::kPresent) {
      Put(attempt, pod_class, number, pods);
      continue;
    }
    const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), number);
    Put(attempt, pod_class, static_cast<int>(at - nodes_.begin()), pods);
  }
  if (attempt.remaining[pod_class] > 0) refusal.changes = changes_;
}

// ---- what to buy

BondPlanner::Answer BondPlanner::Ask(const Spec& spec, int offer, int64_t want) {
  ++questions_;
  const size_t mark = rehearsal_.Mark();
  const int node = rehearsal_.AddNode(templates_[static_cast<size_t>(offer)]);
  Answer answer;
  answer.fits = rehearsal_.Place(spec, node, want);
  if (answer.fits < want) answer.others_refuse = rehearsal_.OthersRefuse(spec, node);
  if (answer.fits == 0) answer.why = rehearsal_.WhyNot(spec, node);
  rehearsal_.RollbackTo(mark);
  return answer;
}

const std::vector<int64_t>& BondPlanner::BoundsFor(const Spec& spec) {
  const auto known = bounds_.find(spec.get());
  if (known != bounds_.end()) return known->second;
  std::vector<Spec> kinds = {spec};
  for (auto kind = std::find(kinds_.begin(), kinds_.end(), spec);
       kind != kinds_.end() && kinds.size() < kKindsAtOnce; ++kind) {
    if (*kind != spec && !bounds_.contains(kind->get())) kinds.push_back(*kind);
  }
  for (const Spec& kind : kinds) rehearsal_.Know(kind);
  for (const model::Node& empty : templates_) {
    const size_t before = rehearsal_.Mark();
    const int node = rehearsal_.AddNode(empty);
    for (const Spec& kind : kinds) {
      bounds_[kind.get()].push_back(rehearsal_.MostThatFit(kind, node, kMaxPerNode));
    }
    rehearsal_.RollbackTo(before);
  }
  return bounds_[spec.get()];
}

const std::vector<int>& BondPlanner::DomainsBy(const std::vector<std::string>& labels) {
  const auto [known, added] = domains_by_.try_emplace(labels);
  if (!added) return known->second;
  std::map<std::vector<std::string>, int> numbers;
  for (const model::Node& node : templates_) {
    std::vector<std::string> values;
    for (const std::string& label : labels) {
      const std::string* value = node.meta.labels.Find(label);
      values.push_back(value == nullptr ? "" : absl::StrCat("=", *value));
    }
    known->second.push_back(
        numbers.try_emplace(std::move(values), static_cast<int>(numbers.size())).first->second);
  }
  return known->second;
}

const std::string& BondPlanner::OwnReason(const Spec& spec, int offer) {
  std::vector<std::string>& reasons = own_reasons_[spec.get()];
  reasons.resize(offers_.size());
  std::string& reason = reasons[static_cast<size_t>(offer)];
  if (reason.empty()) reason = Ask(spec, offer, 1).why;
  return reason;
}

const std::vector<int>* BondPlanner::RanksFor(const model::PodSpec& spec) {
  const model::InstanceWishes& wishes = *spec.wishes;
  if (!MeasuresOffers(wishes)) return nullptr;
  const auto [known, added] = ranks_.try_emplace(&spec);
  for (size_t o = 0; added && o < offers_.size(); ++o) {
    known->second.push_back(WishRank(wishes, offers_[o], templates_[o].meta.labels));
  }
  return &known->second;
}

std::vector<BondPlanner::Candidate> BondPlanner::CandidatesFor(Attempt& attempt, const Spec& spec,
                                                               int64_t want, int rank) {
  const std::vector<int>* ranks = RanksFor(*spec);
  const std::vector<int64_t>& bounds = BoundsFor(spec);
  std::vector<Candidate> candidates;
  for (const int offer : attempt.offers) {
    const auto index = static_cast<size_t>(offer);
    if (ranks != nullptr && (*ranks)[index] != rank) continue;
    if (!Allows(attempt.left, offers_[index])) {
      attempt.result.capped = true;
      continue;
    }
    candidates.push_back({offer, std::min(want, bounds[index]), false});
  }
  return candidates;
}

void BondPlanner::Bound(std::vector<Candidate>& candidates, const Candidate& asked,
                        const Spec& spec, const Answer& answer,
                        std::map<std::string, int64_t>& reasons) {
  const auto labels = rehearsal_.DomainLabels(spec);
  if (!labels.has_value()) return;
  const std::vector<int>& domains = DomainsBy(*labels);
  const int domain = domains[static_cast<size_t>(asked.offer)];
  for (Candidate& other : candidates) {
    if (other.asked || other.most <= answer.fits) continue;
    if (domains[static_cast<size_t>(other.offer)] != domain) continue;
    other.most = answer.fits;
    if (other.most > 0) continue;
    other.asked = true;
    ++reasons[answer.why];
  }
}

// The best that can be bought now, of the offers with that rank; none: `reasons` has their words.
// The one that is asked about next would be the best of all if it took as many as its bound says;
// so the first that does is.
BondPlanner::Choice BondPlanner::ChooseOfRank(Attempt& attempt, const Spec& spec, int64_t want,
                                              int rank, std::map<std::string, int64_t>& reasons) {
  std::vector<Candidate> candidates = CandidatesFor(attempt, spec, want, rank);
  const auto price = [&](const Candidate& of) {
    return offers_[static_cast<size_t>(of.offer)].PriceOfChoice();
  };
  while (true) {
    Candidate* best = nullptr;
    for (Candidate& next : candidates) {
      if (next.most == 0) continue;
      if (best == nullptr ||
          absl::int128(price(next)) * best->most < absl::int128(price(*best)) * next.most) {
        best = &next;
      }
    }
    if (best == nullptr) break;
    if (best->asked) return {best->offer, best->most};
    if (Spent()) break;
    const Answer answer = Ask(spec, best->offer, best->most);
    const bool fewer = answer.fits < best->most;
    best->most = answer.fits;
    best->asked = true;
    if (answer.fits == 0) ++reasons[answer.why];
    if (fewer && answer.others_refuse) Bound(candidates, *best, spec, answer, reasons);
  }
  for (const Candidate& none : candidates) {
    if (!none.asked && !Spent()) ++reasons[OwnReason(spec, none.offer)];
  }
  attempt.result.spent = attempt.result.spent || Spent();
  return {};
}

BondPlanner::Choice BondPlanner::Choose(Attempt& attempt, size_t pod_class) {
  if (Spent()) {
    attempt.result.spent = true;
    return {};
  }
  const Spec& spec = attempt.item.classes[pod_class].spec;
  const int64_t want =
      std::min(kMaxPerNode, std::max(attempt.remaining[pod_class], waiting_[spec.get()]));
  // A smaller set of offers has no other answer; caps only become less.
  Refusal& refusal = nothing_to_buy_[spec.get()];
  if (refusal.changes == changes_) {
    attempt.result.capped = attempt.result.capped || refusal.capped;
    attempt.result.why = refusal.why;
    return {};
  }
  // The last choice again, if it is as good as it was.
  const auto last = last_choice_.find(spec.get());
  if (last != last_choice_.end() && want >= last->second.fits &&
      std::find(attempt.offers.begin(), attempt.offers.end(), last->second.offer) !=
          attempt.offers.end() &&
      Allows(attempt.left, offers_[static_cast<size_t>(last->second.offer)]) &&
      Ask(spec, last->second.offer, std::min(want, last->second.fits + 1)).fits ==
          last->second.fits) {
    return last->second;
  }
  Choice best;
  std::map<std::string, int64_t> reasons;
  const int ranks = std::max<int>(1, static_cast<int>(spec->wishes->gpu_models.size()));
  for (int rank = 0; rank < ranks && best.offer < 0 && !attempt.result.spent; ++rank) {
    best = ChooseOfRank(attempt, spec, want, rank, reasons);
  }
  if (best.offer >= 0) {
    last_choice_[spec.get()] = best;
  } else if (!reasons.empty()) {
    attempt.result.why =
        std::max_element(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
  }
  const bool of_all = attempt.offers.size() == offers_.size();
  if (best.offer < 0 && of_all && !attempt.result.spent) {
    refusal = {changes_, attempt.result.capped, attempt.result.why};
  }
  return best;
}

bool BondPlanner::Buy(Attempt& attempt, size_t pod_class) {
  const Choice choice = Choose(attempt, pod_class);
  if (choice.offer < 0) return false;
  const Offer& offer = offers_[static_cast<size_t>(choice.offer)];
  const int node = AddNode(choice.offer, {});
  const auto& spec = attempt.item.classes[pod_class].spec;
  TakeFrom(attempt.left, offer);
  attempt.result.bought.push_back(choice.offer);
  if (const std::vector<int>* ranks = RanksFor(*spec); ranks != nullptr) {
    attempt.result.later_models += (*ranks)[static_cast<size_t>(choice.offer)];
  }
  attempt.result.price_micro_usd_per_hour =
      model::SaturatingAdd(attempt.result.price_micro_usd_per_hour, offer.price_micro_usd_per_hour);
  attempt.result.price_of_choice =
      model::SaturatingAdd(attempt.result.price_of_choice, offer.PriceOfChoice());
  const int number = nodes_[static_cast<size_t>(node)];
  Put(attempt, pod_class, node, rehearsal_.Place(spec, number, attempt.remaining[pod_class]));
  return true;
}

}  // namespace fairlead::hook
