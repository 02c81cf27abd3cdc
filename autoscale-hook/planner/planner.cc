#include "autoscale-hook/planner/planner.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/planner/planning.h"
#include "autoscale-hook/planner/shared_claims.h"

namespace fairlead::hook {

using verdict::Code;

namespace {

// Says so if the nodes are for some of the item's pods only.
void NotePart(int64_t pods, const DemandItem& item, ItemOutcome& outcome) {
  int64_t requested = PodsOf(item.classes);
  // The others have room in the domain that these are for.
  if (item.domains.room.has_value() && pods <= PodsOf(item.domains.room->rest)) {
    requested = PodsOf(item.domains.room->rest);
  }
  if (pods >= requested) return;
  outcome.details.push_back(absl::StrCat("nodes for ", pods, " of ", requested, " pods"));
}

}  // namespace

// Made when it is first asked for: where no cap binds, never.
const std::string& SignatureOf(PlanItem& item) {
  if (!item.signature.empty()) return item.signature;
  // Its wishes change with the domains.
  if (item.HasDomains()) return item.signature = absl::StrCat("t/", item.Domains());
  const bool divisible = std::all_of(item.wishes.begin(), item.wishes.end(),
                                     [](const Wish& wish) { return wish.min == 0; });
  std::string& text = item.signature;
  text = divisible ? "d" : "g";
  for (const Wish& wish : item.wishes) {
    absl::StrAppend(&text, "/", wish.plan_class);
    // Of a divisible item not even one more pod had room, so its size does not matter.
    if (!divisible) absl::StrAppend(&text, ":", wish.count, ":", wish.min);
  }
  return text;
}

void Planning::ReadItems() {
  const std::vector<bool> bonds = ItemsWithBonds(*input_.demand);
  for (size_t i = 0; i < input_.demand->size(); ++i) {
    const DemandItem& wanted = (*input_.demand)[i];
    PlanItem item;
    item.first = members_;
    item.members = wanted.members;
    members_ += wanted.members;
    if (bonds[i]) {
      item.open = false;
      item.bonds.emplace();
      // Where one of them does not fit, an equal one may.
      item.signature = absl::StrCat("b/", i);
      items_.push_back(std::move(item));
      continue;
    }
    const auto count_levels = [&](const std::vector<verdict::DemandClass>& classes) {
      for (const verdict::DemandClass& pods : classes) {
        if (pods.spec == nullptr || pods.count <= 0) continue;
        item.levels = std::max(item.levels, classes_.Levels(classes_.IndexOf(*pods.spec)));
      }
    };
    count_levels(wanted.classes);
    if (!wanted.domains.empty()) {
      for (const verdict::DomainPart& part : wanted.domains.parts) count_levels(part.classes);
      for (int level = 0; level < item.levels; ++level) {
        item.domains_by_level.push_back(domains_.Read(wanted, level));
      }
      items_.push_back(std::move(item));
      continue;
    }
    item.wishes = WishesOf(wanted, 0);
    item.open = !item.wishes.empty();
    items_.push_back(std::move(item));
  }
  taken_.assign(classes_.size(), 0);
}

std::vector<Wish> Planning::WishesOf(const DemandItem& wanted, int level) const {
  std::vector<Wish> wishes;
  for (const verdict::DemandClass& pod_class : wanted.classes) {
    if (pod_class.spec == nullptr || pod_class.count <= 0) continue;
    const int64_t min = wanted.atomic
                            ? pod_class.count
                            : std::clamp<int64_t>(pod_class.min_count, 0, pod_class.count);
    const int spec_class = classes_.IndexOf(*pod_class.spec);
    if (classes_.Fits(spec_class)) {
      wishes.push_back({classes_.AtLevel(spec_class, level), pod_class.count, min, 0});
    } else if (min > 0) {
      return {};
    }
  }
  return wishes;
}

// The first level of which the domains can be bought whole.
std::optional<std::pair<int, std::vector<Wish>>> Planning::ChooseLevel(const PlanItem& item,
                                                                       PlanDomains::Extent extent,
                                                                       const Counts& taken,
                                                                       const CapsLeft& caps) {
  for (int level = item.level; level < item.levels; ++level) {
    auto wishes = Choose(item.domains_by_level[static_cast<size_t>(level)], extent, taken, caps);
    if (wishes.has_value()) return std::pair(level, *std::move(wishes));
  }
  return std::nullopt;
}

// For every item with topology rules the domains that are the cheapest for it alone. Where no cap
// binds they are kept.
void Planning::ChooseDomains() {
  std::map<int, std::pair<int, std::vector<Wish>>> chosen;
  for (PlanItem& item : items_) {
    if (!item.HasDomains()) continue;
    const auto [it, added] = chosen.try_emplace(item.Domains());
    if (added) {
      auto choice = ChooseLevel(item, PlanDomains::Extent::kAll, taken_, input_.caps);
      // So that the cap that holds it can be told.
      if (!choice.has_value()) {
        choice = ChooseLevel(item, PlanDomains::Extent::kAll, taken_, input_.caps.WithoutCaps());
      }
      if (choice.has_value()) it->second = *std::move(choice);
    }
    item.level = it->second.first;
    item.wishes = it->second.second;
    item.open = !item.wishes.empty();
  }
}

bool Planning::NothingIsCapped() const {
  return input_.caps == CapsLeft() && input_.max_nodes == kNoBound;
}

// Every item with bonds beside those before it, and nothing else.
void Planning::PlanBonds() {
  const bool any = std::any_of(items_.begin(), items_.end(),
                               [](const PlanItem& item) { return item.bonds.has_value(); });
  if (!any) return;
  rehearsal_ = placement_.Rehearse();
  if (rehearsal_ == nullptr) return;
  bonds_ = std::make_unique<BondPlanner>(*input_.demand, input_.offers, input_.caps, *rehearsal_,
                                         input_.max_bond_work / 3);
  if (NothingIsCapped()) {
    for (PlanItem& item : items_) {
      if (item.bonds.has_value()) item.open = item.bonds->placed = true;
    }
    return;
  }
  CapsLeft left = input_.caps;
  // One that needs a later one is tried again behind it.
  for (bool placed = true; std::exchange(placed, false);) {
    for (size_t i = 0; i < items_.size(); ++i) {
      PlanItem& item = items_[i];
      if (!item.bonds.has_value() || item.open) continue;
      item.bonds = bonds_->Place(i, left);
      item.open = item.bonds->placed;
      placed = placed || item.open;
    }
  }
  bonds_->Clear();
}

// Other domains for an item that does not fit beside what is taken: for all of it, or else for its
// minimum. True if all of it fits now.
bool Planning::ChooseAnew(size_t index) {
  const int domains = items_[index].Domains();
  const auto choose = [&](PlanDomains::Extent extent) {
    const auto choice = ChooseLevel(items_[index], extent, taken_, input_.caps);
    if (!choice.has_value()) return false;
    // Those equal to it behind it would not fit where it did not.
    for (size_t i = index; i < items_.size(); ++i) {
      PlanItem& item = items_[i];
      if (!item.open || !item.HasDomains() || item.Domains() != domains) continue;
      std::tie(item.level, item.wishes) = *choice;
      item.signature.clear();
    }
    return true;
  };
  if (choose(PlanDomains::Extent::kAll)) return true;
  choose(PlanDomains::Extent::kMinimum);
  return false;
}

// The next GPU model for the item, and for those equal to it behind it: the caps leave nothing of
// this one. False if it has no other, or got a part.
bool Planning::NextLevel(size_t index) {
  if (items_[index].HasDomains() || items_[index].level + 1 >= items_[index].levels) return false;
  const std::string signature = SignatureOf(items_[index]);
  for (size_t i = index; i < items_.size(); ++i) {
    PlanItem& item = items_[i];
    if (i != index && (!item.open || SignatureOf(item) != signature)) continue;
    // Its other pods ask again in the next step.
    if (item.partial) continue;
    int64_t members = item.taken;
    for (const PlanItem::Earlier& earlier : item.earlier) members -= earlier.members;
    if (members > 0) item.earlier.push_back({members, item.wishes});
    item.open = true;
    item.wishes = WishesOf((*input_.demand)[i], ++item.level);
    item.signature.clear();
  }
  return !items_[index].partial;
}

// Takes every open item of the run if they fit together.
bool Planning::TakeWholeRun(int64_t begin, int64_t end) {
  Asked asked = With(begin, end);
  if (Try(asked, false) != Verdict::kFits) return false;
  Take(std::move(asked), begin, end);
  return true;
}

// As many of the item's pods as fit: first every minimum, then class by class.
void Planning::TakePart(PlanItem& item, Verdict why) {
  item.open = false;
  int64_t extra = 0;
  Counts base = taken_;
  for (const Wish& wish : item.wishes) {
    base[wish.plan_class] += wish.min;
    extra += wish.count - wish.min;
  }
  const auto with = [&](int64_t pods) {
    Counts counts = base;
    for (const Wish& wish : item.wishes) {
      const int64_t more = std::min(pods, wish.count - wish.min);
      counts[wish.plan_class] += more;
      pods -= more;
    }
    return OfCounts(std::move(counts));
  };
  int64_t low = -1, high = extra;  // low fits (-1: nothing), high does not
  if (extra > 0 && Try(OfCounts(base), false) == Verdict::kFits) low = 0;
  while (low >= 0 && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (Try(with(middle), false) == Verdict::kFits ? low : high) = middle;
  }
  if (why == Verdict::kCap) left_out_.insert(SignatureOf(item));
  if (low < 0) return;
  taken_ = with(low).counts;
  for (Wish& wish : item.wishes) {
    const int64_t more = std::min(low, wish.count - wish.min);
    wish.taken = wish.min + more;
    low -= more;
    item.partial = item.partial || wish.taken > 0;
  }
}

// The member at this place, which does not fit as the ones before it did. True: it is to be tried
// once more, with another GPU model.
bool Planning::DecideOne(size_t index, int64_t place, int& next_levels) {
  PlanItem& item = items_[index];
  const bool gang = item.HasDomains() || item.bonds.has_value()
                        ? (*input_.demand)[index].atomic
                        : std::all_of(item.wishes.begin(), item.wishes.end(),
                                      [](const Wish& wish) { return wish.min == wish.count; });
  const bool alone = gang && NothingTaken();
  Verdict why = Try(With(place, place + 1), alone);
  if (why == Verdict::kCap && item.HasDomains() && ChooseAnew(index)) {
    why = Try(With(place, place + 1), alone);
  }
  if (why == Verdict::kFits) {
    Take(With(place, place + 1), place, place + 1);
    return false;
  }
  TakePart(item, why);
  if (why == Verdict::kTooManyNodes) {
    plan_.more_next_step = true;
    return false;
  }
  return next_levels-- > 0 && NextLevel(index);
}

// `begin` and its like are places of members.
void Planning::DecideItems() {
  int64_t begin = 0;
  const int64_t size = members_;
  int next_levels = kMaxLeftOut;  // each costs as much as an item that is left out
  for (int left_out = 0; begin < size && left_out <= kMaxLeftOut; ++left_out) {
    if (TakeWholeRun(begin, size)) return;
    // [begin, low) fits, [begin, high) does not.
    int64_t low = begin, high = size;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (Try(With(begin, middle), false) == Verdict::kFits ? low : high) = middle;
    }
    if (low > begin) TakeWholeRun(begin, low);
    const size_t index = ItemAt(low);
    // Where all beyond was closed, or fits after all: nothing to leave out here.
    if (items_[index].open) {
      if (DecideOne(index, low, next_levels)) {
        --left_out;
        begin = low;
        continue;
      }
      if (plan_.more_next_step) return;
    }
    begin = low + 1;
    if (begin >= size) return;
    for (size_t i = ItemAt(begin); i < items_.size(); ++i) {
      if (items_[i].open && left_out_.contains(SignatureOf(items_[i]))) items_[i].open = false;
    }
  }
}

// The next member of the item takes what it gets. Nothing is emitted if that is nothing.
void Planning::EmitMember(size_t index, const std::vector<Wish>& wishes, bool whole, Supply& supply,
                          std::vector<size_t>& cursor) {
  std::vector<std::pair<size_t, int64_t>> pods_on;
  int64_t taken = 0;
  for (const Wish& wish : wishes) {
    auto& nodes = supply[wish.plan_class];
    size_t& at = cursor[wish.plan_class];
    const int64_t pods_of_one = classes_.PodsOf(wish.plan_class);
    const int64_t gets = whole ? wish.count : wish.taken;
    for (int64_t pods = gets; pods > 0 && at < nodes.size();) {
      const int64_t here = std::min(pods, nodes[at].second);
      pods_on.push_back({nodes[at].first, here * pods_of_one});
      pods -= here;
      nodes[at].second -= here;
      if (nodes[at].second == 0) ++at;
    }
    taken += gets * pods_of_one;
  }
  if (taken == 0) return;
  ItemOutcome outcome;
  outcome.item = index;
  outcome.code = Code::kNodesRequested;
  std::sort(pods_on.begin(), pods_on.end());
  for (const auto& [node, pods] : pods_on) {
    if (!outcome.nodes.empty() && outcome.nodes.back() == node) {
      plan_.nodes[node].pods_of_item.back().second += pods;  // another class of the same item
      continue;
    }
    outcome.nodes.push_back(node);
    plan_.nodes[node].pods_of_item.push_back({plan_.items.size(), pods});
  }
  NotePart(taken, (*input_.demand)[index], outcome);
  NoteModels((*input_.demand)[index], outcome);
  plan_.items.push_back(std::move(outcome));
}

// Nodes one by one, and whose pods are on which: items in order take what their classes got.
void Planning::EmitNodes(const Packing& packing) {
  Supply supply(classes_.size());
  for (const NodeGroup& group : packing.groups) {
    for (int64_t n = 0; n < group.nodes; ++n) {
      const size_t index = plan_.nodes.size();
      plan_.nodes.push_back({classes_.packer().offers()[group.offer], {}});
      for (const auto& [pack_class, count] : group.load) {
        supply[classes_.PlanClassOf(pack_class)].push_back({index, count});
      }
    }
  }
  plan_.price_micro_usd_per_hour = packing.price_micro_usd_per_hour;
  std::vector<size_t> cursor(classes_.size(), 0);
  for (size_t i = 0; i < items_.size(); ++i) {
    const PlanItem& item = items_[i];
    const size_t before = plan_.items.size();
    const auto emit = [&](int64_t members, bool whole, const std::vector<Wish>& wishes) {
      for (int64_t m = 0; m < members; ++m) EmitMember(i, wishes, whole, supply, cursor);
    };
    int64_t members = item.taken;
    for (const PlanItem::Earlier& earlier : item.earlier) {
      emit(earlier.members, /*whole=*/true, earlier.wishes);
      members -= earlier.members;
    }
    if (!item.wishes.empty()) {
      emit(members, /*whole=*/true, item.wishes);
      if (item.partial) emit(1, /*whole=*/false, item.wishes);
    }
    outcome_of_.push_back(plan_.items.size());
    const int64_t others = item.members - static_cast<int64_t>(plan_.items.size() - before);
    if (others == 0) continue;
    ItemOutcome rest;
    rest.item = i;
    rest.members = others;
    plan_.items.push_back(std::move(rest));
  }
}

// Everything is rehearsed: nodes that are packed with their pods on them, then the items with
// bonds; and again with what was bought for these, until nothing more is needed.
void Planning::EmitBonds(const Packing& packing) {
  if (bonds_ == nullptr) return;
  constexpr int kMaxRounds = 6;
  bonds_->Clear();
  for (const NodeGroup& group : packing.groups) {
    const std::vector<Placement::Load> pods = classes_.packer().PodsOf(group.load);
    for (int64_t n = 0; n < group.nodes; ++n) bonds_->AddNode(group.offer, pods);
  }
  std::vector<int> bought;  // offers
  CapsLeft left = left_;
  bonds_->LimitWork(input_.max_bond_work);
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t before = bought.size();
    const int64_t work = bonds_->work();
    RehearseBonds(left, bought);
    if (bought.size() == before) break;
    // A round that comes to the limit would take back what this one has placed.
    const bool last = round + 1 == kMaxRounds ||
                      input_.max_bond_work - bonds_->work() < 2 * (bonds_->work() - work);
    if (last) break;
    bonds_->Again();
    for (size_t i = before; i < bought.size(); ++i) bonds_->AddNode(bought[i], {});
  }
  // Nodes on which nothing stands in the end are not bought.
  const size_t packed = plan_.nodes.size();
  std::vector<bool> used(packed + bought.size(), false);
  for (const PlanItem& item : items_) {
    if (!item.bonds_taken) continue;
    for (const auto& [node, pods] : item.bonds->on) used[static_cast<size_t>(node)] = true;
  }
  std::vector<size_t> index_of(used.size(), 0);
  for (size_t n = 0; n < used.size(); ++n) {
    index_of[n] = n < packed ? n : plan_.nodes.size();
    if (n < packed || !used[n]) continue;
    const Offer& offer = input_.offers[static_cast<size_t>(bought[n - packed])];
    plan_.nodes.push_back({offer, {}});
    TakeFrom(left_, offer);
    plan_.price_micro_usd_per_hour =
        model::SaturatingAdd(plan_.price_micro_usd_per_hour, offer.price_micro_usd_per_hour);
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].bonds_taken && items_[i].bonds->placed) EmitBond(i, index_of);
  }
}

// `bought`: for items with bonds so far; grows by what is needed besides.
void Planning::RehearseBonds(CapsLeft& left, std::vector<int>& bought) {
  bonds_->Keep();
  std::vector<size_t> waiting;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].bonds_taken) waiting.push_back(i);
  }
  // One that needs a later one is tried again behind it.
  const auto is_placed = [&](size_t index) {
    items_[index].bonds = bonds_->Place(index, left);
    const BondPlanner::Result& result = *items_[index].bonds;
    if (!result.placed) return false;  // its nodes are taken back
    bought.insert(bought.end(), result.bought.begin(), result.bought.end());
    return true;
  };
  while (std::erase_if(waiting, is_placed) > 0) {
  }
}

void Planning::EmitBond(size_t index, const std::vector<size_t>& index_of) {
  const BondPlanner::Result& result = *items_[index].bonds;
  const size_t number = outcome_of_[index];
  ItemOutcome& outcome = plan_.items[number];
  // All on present nodes: the engine finds them there when the others run.
  if (!result.on.empty()) outcome.code = Code::kNodesRequested;
  for (const auto& [node, pods] : result.on) {
    const size_t at = index_of[static_cast<size_t>(node)];
    outcome.nodes.push_back(at);
    auto& of_item = plan_.nodes[at].pods_of_item;
    of_item.insert(std::upper_bound(of_item.begin(), of_item.end(), std::pair(number, int64_t{0})),
                   {number, pods});
  }
  NotePart(result.pods, (*input_.demand)[index], outcome);
  NoteModels((*input_.demand)[index], outcome);
}

Plan MakePlan(const PlanInput& input, Placement& placement) {
  Plan plan;
  if (input.demand == nullptr || input.demand->empty()) return plan;
  const SharedClaims shared(*input.demand);
  if (!shared.any()) return Planning(input, placement).Make();
  PlanInput joined = input;
  joined.demand = &shared.demand();
  return shared.Divide(Planning(joined, placement).Make());
}

}  // namespace fairlead::hook
