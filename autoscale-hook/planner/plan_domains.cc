#include "autoscale-hook/planner/plan_domains.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using verdict::DomainRule;
using Offers = std::vector<int>;  // indexes, ascending
using Loads = std::vector<Placement::Load>;

// Pods of one spec class under one rule.
struct Kind {
  int spec_class = 0;
  std::shared_ptr<const model::PodSpec> spec;
  struct Pods {
    int64_t count = 0, min = 0;
  };
  Pods pods;
  Pods without_room;  // in the domain with room (verdict::DomainRoom); elsewhere `pods`
};

// One of the domains in which a rule's pods could be.
struct Choice {
  Offers offers;
  bool narrow = false;     // of the preferred level
  bool has_room = false;   // for all but Kind::without_room, on nodes that are there
  std::vector<int> kinds;  // plan classes of the rule's own kinds; -1: does not fit, and need not
  // Everything at and below the rule on one node; -1: it is not one node.
  int unit_all = -1, unit_minimum = -1;
};

struct Node {
  const DomainRule* rule = nullptr;           // null: the item itself
  const verdict::DomainRoom* room = nullptr;  // null: nowhere
  std::vector<Kind> kinds;                    // of its own, without those of rules inside
  std::vector<int> inside;                    // nodes
  // Equal ones of `inside` together: the first of them, and how many.
  std::vector<std::pair<int, int64_t>> groups;
  std::string signature;
  std::map<Offers, std::vector<Choice>> choices;  // by the offers of the rule around it
  // For people, if it has none: of the pods that have to share a node, the most that one takes.
  bool shares_node = false;
  int64_t most_on_one = 0, needed_on_one = 0;
};

Kind::Pods NumbersOf(const verdict::DemandClass& pods) {
  return {pods.count, std::clamp<int64_t>(pods.min_count, 0, pods.count)};
}

Kind::Pods NumbersWithoutRoom(const verdict::DomainDemand& demand,
                              const verdict::DemandClass& all) {
  if (!demand.room.has_value()) return NumbersOf(all);
  for (const verdict::DemandClass& pods : demand.room->rest) {
    if (pods.spec == all.spec) return NumbersOf(pods);
  }
  return {};
}

int64_t CountOf(const Loads& loads) {
  int64_t count = 0;
  for (const Placement::Load& load : loads) count += load.count;
  return count;
}

// The first `count` pods.
Loads Prefix(const Loads& loads, int64_t count) {
  Loads prefix;
  for (const Placement::Load& load : loads) {
    const int64_t here = std::min(count, load.count);
    if (here > 0) prefix.push_back({load.spec, here});
    count -= here;
  }
  return prefix;
}

bool AnyNamesOneNode(const std::vector<std::string>& labels, int64_t depth) {
  return std::any_of(labels.begin(), labels.begin() + depth, verdict::NamesOneNode);
}

void AddWish(std::vector<Wish>& wishes, int plan_class, int64_t count, int64_t min) {
  if (count <= 0) return;
  const auto known = std::find_if(wishes.begin(), wishes.end(), [plan_class](const Wish& wish) {
    return wish.plan_class == plan_class;
  });
  if (known == wishes.end()) {
    wishes.push_back({plan_class, count, min, 0});
    return;
  }
  known->count += count;
  known->min += min;
}

}  // namespace

// ---- one item: its rules as a tree, and their choices

class PlanDomains::Tree {
 public:
  Tree(const DemandItem& item, PlanClasses& classes, int level) : classes_(classes), level_(level) {
    nodes_.resize(item.domains.rules.size() + 1);
    for (const verdict::DomainPart& part : item.domains.parts) {
      for (const verdict::DemandClass& pod_class : part.classes) {
        if (pod_class.spec == nullptr || pod_class.count <= 0) continue;
        if (refused_.empty()) refused_ = BondOf(*pod_class.spec);
        at(part.rule + 1)
            .kinds.push_back({classes_.IndexOf(*pod_class.spec), pod_class.spec,
                              NumbersOf(pod_class), NumbersWithoutRoom(item.domains, pod_class)});
      }
    }
    for (size_t i = item.domains.rules.size(); i > 0; --i) {
      Node& node = nodes_[i];
      node.rule = &item.domains.rules[i - 1];
      if (item.domains.room.has_value()) node.room = &*item.domains.room;
      const bool empty = node.kinds.empty() && node.inside.empty();
      if (!empty) {
        std::vector<int>& around = at(node.rule->around + 1).inside;
        around.insert(around.begin(), static_cast<int>(i));
      }
      Sign(node);
    }
    Sign(nodes_[0]);
    absl::StrAppend(&nodes_[0].signature, "@", level);
  }

  // Rules, pods, and how they hang together.
  [[nodiscard]] const std::string& signature() const { return nodes_[0].signature; }
  [[nodiscard]] const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  [[nodiscard]] const std::vector<Choice>& ChoicesOf(int index, const Offers& around) const {
    return node(index).choices.at(around);
  }
  // Finds all choices, and files their classes.
  void FindChoices() {
    for (size_t i = 0; i < classes_.packer().offers().size(); ++i) {
      all_.push_back(static_cast<int>(i));
    }
    if (refused_.empty()) {
      FindChoices(0, all_);
    } else {
      nodes_[0].choices[all_] = {};
    }
  }
  [[nodiscard]] const Offers& all() const { return all_; }
  [[nodiscard]] bool refuses() const { return !refused_.empty(); }
  [[nodiscard]] std::string WhyNone() const;

 private:
  [[nodiscard]] Node& at(int32_t index) { return nodes_[static_cast<size_t>(index)]; }
  void Sign(Node& node);
  void FindChoices(int index, const Offers& around);
  std::vector<Choice> MakeChoices(int index, const Offers& around);
  void AddShared(Node& node, Offers offers, bool narrow, std::vector<Choice>& choices);
  void AddOneNode(int index, Offers offers, bool narrow, std::vector<Choice>& choices);
  void Gather(int index, Offers& offers, Loads& required, Loads& extra) const;
  [[nodiscard]] bool IsInside(const DomainRule& rule, int offer) const;
  [[nodiscard]] std::vector<std::string> ValuesOf(const DomainRule& rule, int64_t depth,
                                                  int offer) const;
  [[nodiscard]] std::vector<Offers> ByDomain(const DomainRule& rule, int64_t depth,
                                             const Offers& offers) const;

  PlanClasses& classes_;
  const int level_;          // of the pods' GPU models
  std::vector<Node> nodes_;  // the item, then its rules
  std::string refused_;      // why it cannot be planned for
  Offers all_;
};

// After everything inside of it.
void PlanDomains::Tree::Sign(Node& node) {
  std::string& text = node.signature;
  if (node.rule != nullptr) {
    const DomainRule& rule = *node.rule;
    absl::StrAppend(&text, absl::StrJoin(rule.labels, ","), "|", rule.required, "|",
                    rule.preferred);
    for (const auto& values : rule.pinned) absl::StrAppend(&text, "|", absl::StrJoin(values, ","));
    if (node.room != nullptr) absl::StrAppend(&text, "+", absl::StrJoin(node.room->values, ","));
  }
  for (const Kind& kind : node.kinds) {
    absl::StrAppend(&text, ";", kind.spec_class, ":", kind.pods.count, ":", kind.pods.min);
    if (node.room == nullptr) continue;
    absl::StrAppend(&text, "+", kind.without_room.count, ":", kind.without_room.min);
  }
  for (const int inside : node.inside) {
    const std::string& inner = this->node(inside).signature;
    absl::StrAppend(&text, "(", inner, ")");
    const auto equal = std::find_if(node.groups.begin(), node.groups.end(), [&](const auto& group) {
      return this->node(group.first).signature == inner;
    });
    if (equal == node.groups.end()) {
      node.groups.emplace_back(inside, 1);
    } else {
      ++equal->second;
    }
  }
}

std::vector<std::string> PlanDomains::Tree::ValuesOf(const DomainRule& rule, int64_t depth,
                                                     int offer) const {
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(depth));
  const model::StringMap& labels = classes_.packer().labels(offer);
  for (int64_t i = 0; i < depth; ++i) {
    values.emplace_back(labels.Get(rule.labels[static_cast<size_t>(i)]));
  }
  return values;
}

// A node of it has all labels, and is where pods run already.
bool PlanDomains::Tree::IsInside(const DomainRule& rule, int offer) const {
  const model::StringMap& labels = classes_.packer().labels(offer);
  const bool all = std::all_of(rule.labels.begin(), rule.labels.end(), [&](const auto& label) {
    return verdict::NamesOneNode(label) || labels.Has(label);
  });
  if (!all || rule.pinned.empty()) return all;
  // A new node is a domain in which nothing runs yet.
  if (AnyNamesOneNode(rule.labels, rule.required)) return false;
  return std::find(rule.pinned.begin(), rule.pinned.end(), ValuesOf(rule, rule.required, offer)) !=
         rule.pinned.end();
}

// In the order of their first offers.
std::vector<Offers> PlanDomains::Tree::ByDomain(const DomainRule& rule, int64_t depth,
                                                const Offers& offers) const {
  std::map<std::vector<std::string>, size_t> index;
  std::vector<Offers> domains;
  for (const int offer : offers) {
    const auto [it, added] = index.try_emplace(ValuesOf(rule, depth, offer), domains.size());
    if (added) domains.emplace_back();
    domains[it->second].push_back(offer);
  }
  return domains;
}

void PlanDomains::Tree::FindChoices(int index, const Offers& around) {
  Node& node = at(index);
  const auto [it, added] = node.choices.try_emplace(around);
  if (!added) return;
  it->second = MakeChoices(index, around);
  for (const Choice& choice : it->second) {
    if (choice.unit_all >= 0) continue;
    for (const auto& [inside, times] : node.groups) FindChoices(inside, choice.offers);
  }
}

std::vector<Choice> PlanDomains::Tree::MakeChoices(int index, const Offers& around) {
  std::vector<Choice> choices;
  Node& node = at(index);
  if (node.rule == nullptr) {
    AddShared(node, around, /*narrow=*/false, choices);
    return choices;
  }
  const DomainRule& rule = *node.rule;
  Offers inside;
  std::copy_if(around.begin(), around.end(), std::back_inserter(inside),
               [&](int offer) { return IsInside(rule, offer); });
  if (inside.empty()) return choices;
  node.shares_node = AnyNamesOneNode(rule.labels, rule.required);
  if (node.shares_node) {
    AddOneNode(index, std::move(inside), /*narrow=*/false, choices);
    return choices;
  }
  for (const Offers& domain : ByDomain(rule, rule.required, inside)) {
    if (rule.preferred > rule.required) {
      if (AnyNamesOneNode(rule.labels, rule.preferred)) {
        AddOneNode(index, domain, /*narrow=*/true, choices);
      } else if (std::vector<Offers> parts = ByDomain(rule, rule.preferred, domain);
                 parts.size() > 1) {
        for (Offers& part : parts) AddShared(node, std::move(part), /*narrow=*/true, choices);
      }
    }
    AddShared(node, domain, /*narrow=*/false, choices);
  }
  return choices;
}

// Anywhere on these offers, if every kind that has to be there fits on some of them.
void PlanDomains::Tree::AddShared(Node& node, Offers offers, bool narrow,
                                  std::vector<Choice>& choices) {
  Choice choice;
  choice.narrow = narrow;
  choice.has_room = node.room != nullptr && !offers.empty() &&
                    ValuesOf(*node.rule, node.rule->required, offers.front()) == node.room->values;
  for (const Kind& kind : node.kinds) {
    const int plan_class =
        classes_.Confined(kind.spec_class, classes_.Admitted(kind.spec_class, level_, offers));
    const bool fits = classes_.Fits(plan_class);
    if (!fits && (choice.has_room ? kind.without_room : kind.pods).min > 0) return;
    choice.kinds.push_back(fits ? plan_class : -1);
  }
  choice.offers = std::move(offers);
  choices.push_back(std::move(choice));
}

// Everything at and below the node, and the offers that are inside all rules below.
void PlanDomains::Tree::Gather(int index, Offers& offers, Loads& required, Loads& extra) const {
  const Node& node = this->node(index);
  for (const Kind& kind : node.kinds) {
    const auto& [count, min] = kind.pods;
    if (min > 0) required.push_back({kind.spec, min});
    if (count > min) extra.push_back({kind.spec, count - min});
  }
  for (const int inside : node.inside) {
    const DomainRule& rule = *this->node(inside).rule;
    offers.erase(std::remove_if(offers.begin(), offers.end(),
                                [&](int offer) { return !IsInside(rule, offer); }),
                 offers.end());
    Gather(inside, offers, required, extra);
  }
}

// All of it on one node: at least what has to be, and as many of the others as the largest takes.
void PlanDomains::Tree::AddOneNode(int index, Offers offers, bool narrow,
                                   std::vector<Choice>& choices) {
  Node& node = at(index);
  Loads required, extra;
  Gather(index, offers, required, extra);
  Loads all = required;
  all.insert(all.end(), extra.begin(), extra.end());
  for (const Placement::Load& load : all) {
    offers = classes_.Admitted(classes_.IndexOf(*load.spec), level_, std::move(offers));
  }
  const int64_t needed = CountOf(required);
  int64_t most = 0;
  for (const int offer : offers) {
    most = std::max(most, classes_.packer().FitTogether(offer, all));
  }
  node.most_on_one = std::max(node.most_on_one, most);
  node.needed_on_one = needed;
  if (most == 0 || most < needed) return;
  Choice choice;
  choice.narrow = narrow;
  choice.unit_all = classes_.Unit(Prefix(all, most), offers);
  choice.unit_minimum = needed == 0 ? choice.unit_all : classes_.Unit(required, offers);
  choice.offers = std::move(offers);
  choices.push_back(std::move(choice));
}

std::string PlanDomains::Tree::WhyNone() const {
  if (!refused_.empty()) {
    return absl::StrCat("nodes for a topology cannot be planned for pods that ", refused_);
  }
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const DomainRule& rule = *nodes_[i].rule;
    Offers inside;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(inside),
                 [&](int offer) { return IsInside(rule, offer); });
    if (inside.empty()) {
      return rule.pinned.empty()
                 ? absl::StrCat(rule.what, ": no node on offer has the labels of all levels")
                 : absl::StrCat(rule.what,
                                ": no node is on offer in the domain of the pods that "
                                "run (",
                                absl::StrJoin(rule.pinned.front(), "/"), ")");
    }
    if (nodes_[i].shares_node && nodes_[i].most_on_one < nodes_[i].needed_on_one) {
      return absl::StrCat(rule.what, ": ", nodes_[i].needed_on_one,
                          " pods have to share a node, the largest that may be bought holds ",
                          nodes_[i].most_on_one);
    }
    const bool some = std::any_of(nodes_[i].choices.begin(), nodes_[i].choices.end(),
                                  [](const auto& entry) { return !entry.second.empty(); });
    if (!some && !nodes_[i].choices.empty()) {
      return absl::StrCat(rule.what, ": no domain has instance types on offer for all its pods");
    }
  }
  return "no instance type on offer could ever run it";
}

// ---- choosing

class PlanDomains::Search {
 public:
  Search(PlanDomains& domains, const Tree& tree, Extent extent, const Pack& pack)
      : domains_(domains), tree_(tree), extent_(extent), pack_(pack) {}

  // The node, `times` over and all in one domain, beside `counts`; adds to both on success.
  bool Place(int index, const Offers& around, int64_t times, Counts& counts,
             std::vector<Wish>& wishes);

 private:
  bool Fill(const Node& node, const Choice& choice, int64_t times, Counts& counts,
            std::vector<Wish>& wishes);
  void Add(int plan_class, int64_t count, int64_t min, Counts& counts, std::vector<Wish>& wishes);
  const Packing* Packed(const Counts& counts);

  PlanDomains& domains_;
  const Tree& tree_;
  const Extent extent_;
  const Pack& pack_;
  Counts last_;  // what was packed last, and what came of it
  Packing last_packing_;
};

void PlanDomains::Search::Add(int plan_class, int64_t count, int64_t min, Counts& counts,
                              std::vector<Wish>& wishes) {
  AddWish(wishes, plan_class, count, min);
  counts[static_cast<size_t>(plan_class)] += extent_ == Extent::kAll ? count : min;
}

// Null if not all of it can be bought, or nothing more may be tried.
const Packing* PlanDomains::Search::Packed(const Counts& counts) {
  if (last_ != counts) {
    if (domains_.packings_left_-- <= 0) return nullptr;
    last_packing_ = pack_(counts);
    last_ = counts;
  }
  return last_packing_.Complete() ? &last_packing_ : nullptr;
}

bool PlanDomains::Search::Fill(const Node& node, const Choice& choice, int64_t times,
                               Counts& counts, std::vector<Wish>& wishes) {
  if (choice.unit_all >= 0) {
    const bool required = node.needed_on_one > 0;
    const int unit = extent_ == Extent::kAll ? choice.unit_all : choice.unit_minimum;
    Add(unit, times, required ? times : 0, counts, wishes);
    return true;
  }
  for (size_t i = 0; i < node.kinds.size(); ++i) {
    if (choice.kinds[i] < 0) continue;
    const Kind& kind = node.kinds[i];
    const auto& [count, min] = choice.has_room ? kind.without_room : kind.pods;
    Add(choice.kinds[i], times * count, times * min, counts, wishes);
  }
  for (const auto& [inside, number] : node.groups) {
    if (Place(inside, choice.offers, times * number, counts, wishes)) continue;
    for (int64_t i = 0; i < times * number; ++i) {
      if (!Place(inside, choice.offers, 1, counts, wishes)) return false;
    }
  }
  return true;
}

bool PlanDomains::Search::Place(int index, const Offers& around, int64_t times, Counts& counts,
                                std::vector<Wish>& wishes) {
  const Node& node = tree_.node(index);
  const std::vector<Choice>& choices = tree_.ChoicesOf(index, around);
  // Whether the only one can be bought shows when what is around it is looked at.
  const bool look = choices.size() > 1 || index == 0;
  std::optional<std::tuple<int64_t, bool, int64_t, int64_t>> best;
  Counts best_counts;
  std::vector<Wish> best_wishes;
  for (const Choice& choice : choices) {
    Counts trial = counts;
    std::vector<Wish> wished = wishes;
    if (!Fill(node, choice, times, trial, wished)) continue;
    if (!look) {
      counts = std::move(trial);
      wishes = std::move(wished);
      return true;
    }
    const Packing* packing = Packed(trial);
    if (packing == nullptr) continue;
    const auto rank = std::make_tuple(packing->price_of_choice, !choice.narrow, packing->cost.gpus,
                                      packing->cost.nodes);
    if (best.has_value() && *best <= rank) continue;
    best = rank;
    best_counts = std::move(trial);
    best_wishes = std::move(wished);
  }
  if (!best.has_value()) return false;
  counts = std::move(best_counts);
  wishes = std::move(best_wishes);
  return true;
}

// ---- all items

PlanDomains::PlanDomains(PlanClasses& classes) : classes_(classes) {}
PlanDomains::~PlanDomains() = default;

int PlanDomains::Read(const DemandItem& item, int level) {
  auto tree = std::make_unique<Tree>(item, classes_, level);
  const auto [it, added] = numbers_.try_emplace(tree->signature(), static_cast<int>(trees_.size()));
  if (added) {
    tree->FindChoices();
    trees_.push_back(std::move(tree));
  }
  return it->second;
}

std::optional<std::vector<Wish>> PlanDomains::Choose(int number, Extent extent, const Counts& taken,
                                                     const Pack& pack) {
  const Tree& tree = *trees_[static_cast<size_t>(number)];
  Search search(*this, tree, extent, pack);
  Counts counts = taken;
  std::vector<Wish> wishes;
  if (!search.Place(0, tree.all(), 1, counts, wishes) || wishes.empty()) return std::nullopt;
  return wishes;
}

bool PlanDomains::Refuses(int number) const {
  return trees_[static_cast<size_t>(number)]->refuses();
}

std::string PlanDomains::WhyNone(int number) const {
  return trees_[static_cast<size_t>(number)]->WhyNone();
}

}  // namespace fairlead::hook
