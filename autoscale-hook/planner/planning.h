// The inside of MakePlan: one plan. Not for other files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/planner/packing.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "autoscale-hook/planner/plan_classes.h"
#include "autoscale-hook/planner/plan_domains.h"
#include "autoscale-hook/planner/planner.h"

namespace fairlead::hook {

struct PlanItem {
  std::vector<Wish> wishes;  // of each member
  int64_t first = 0;         // place of its first member among those of all items
  int64_t members = 1;
  int64_t taken = 0;     // members that get all they ask for; the first ones
  bool partial = false;  // the next one gets Wish::taken
  bool open = true;      // the other members are still to be decided
  // Members that were taken at former levels, with what each of them got; before the others.
  struct Earlier {
    int64_t members = 0;
    std::vector<Wish> wishes;
  };
  std::vector<Earlier> earlier;
  // Which of the GPU models that its pods name in order (plan_classes.h) the wishes are for. It
  // goes up when the caps leave nothing of a model.
  int level = 0, levels = 1;
  // Of an item with topology rules, its number in PlanDomains by level; its wishes are those of the
  // domains that were chosen last.
  std::vector<int> domains_by_level;
  [[nodiscard]] bool HasDomains() const { return !domains_by_level.empty(); }
  [[nodiscard]] int Domains() const { return domains_by_level[static_cast<size_t>(level)]; }
  // Equal items are left out together. Empty: not made yet (SignatureOf).
  std::string signature;
  // Of an item with bonds: what it takes when it is planned alone. It has no wishes.
  std::optional<BondPlanner::Result> bonds;
  bool bonds_taken = false;
};

// Made when it is first asked for: where no cap binds, never.
const std::string& SignatureOf(PlanItem& item);
// Says that the item is decided in the next step.
void LeaveOpen(ItemOutcome& outcome);

class Planning {
 public:
  Planning(const PlanInput& input, Placement& placement)
      : input_(input),
        placement_(placement),
        classes_(*input.demand, input.offers, placement),
        domains_(classes_),
        taken_caps_(input.caps) {}

  Plan Make() {
    ReadItems();
    ChooseDomains();
    PlanBonds();
    DecideItems();
    Packing packing = Pack(taken_, taken_caps_);
    EmitNodes(packing);
    left_ = input_.caps;
    for (const PlannedNode& node : plan_.nodes) TakeFrom(left_, node.offer);
    EmitBonds(packing);
    ExplainLeftOut();
    plan_.questions = classes_.packer().questions();
    if (bonds_ != nullptr) plan_.questions += bonds_->questions();
    return std::move(plan_);
  }

 private:
  using Counts = std::vector<int64_t>;
  enum class Verdict : uint8_t { kFits, kCap, kTooManyNodes };

  // What is asked for together.
  struct Asked {
    Counts counts;
    CapsLeft caps;           // for the counts: without what items with bonds take
    int64_t bond_nodes = 0;  // of those items
  };

  void ReadItems();
  void PlanBonds();
  [[nodiscard]] bool NothingIsCapped() const;
  void ChooseDomains();
  void DecideItems();
  // The wishes of the item's classes at its level; empty if some class that has to be there fits
  // nowhere.
  [[nodiscard]] std::vector<Wish> WishesOf(const DemandItem& wanted, int level) const;
  // The level, and the wishes of the domains chosen there; none can be bought whole: absent.
  std::optional<std::pair<int, std::vector<Wish>>> ChooseLevel(const PlanItem& item,
                                                               PlanDomains::Extent extent,
                                                               const Counts& taken,
                                                               const CapsLeft& caps);
  bool ChooseAnew(size_t index);
  bool NextLevel(size_t index);
  bool DecideOne(size_t index, int64_t place, int& next_levels);
  bool TakeWholeRun(int64_t begin, int64_t end);
  void TakePart(PlanItem& item, Verdict why);
  void EmitNodes(const Packing& packing);
  // What the members of items get, out of pods by plan class: (node, pods) each.
  using Supply = std::vector<std::vector<std::pair<size_t, int64_t>>>;
  void EmitMember(size_t index, const std::vector<Wish>& wishes, bool whole, Supply& supply,
                  std::vector<size_t>& cursor);
  // Says why the nodes have another GPU model than the first that the pods name.
  void NoteModels(const DemandItem& item, ItemOutcome& outcome);
  const std::string& WhyNotModel(const model::PodSpec& spec, int rank);
  void EmitBonds(const Packing& packing);
  void RehearseBonds(CapsLeft& left, std::vector<int>& bought);
  void EmitBond(size_t index, const std::vector<size_t>& index_of);
  void ExplainLeftOut();
  ItemOutcome ExplainUnfit(const DemandItem& item);
  ItemOutcome ExplainNoDomain(const DemandItem& item, int domains, int levels);
  // Says so if types on offer could run pods of the item but for their wishes.
  void NoteWishes(const DemandItem& item, ItemOutcome& outcome);
  std::string WhyWishesRefuse(const model::PodSpec& spec);
  void TellRest(ItemOutcome& outcome);
  ItemOutcome ExplainBond(size_t index);
  ItemOutcome ExplainCapped(PlanItem& item);
  bool ExplainGpuCap(const Packing& packing, ItemOutcome& outcome) const;
  bool ExplainCostCap(const Packing& packing, ItemOutcome& outcome) const;
  [[nodiscard]] std::vector<Offer> RestingOffers() const;
  // Those that can be bought now, and behind them those that rest.
  [[nodiscard]] std::vector<Offer> AllOffers() const;
  PlanClasses& RestingClasses();
  bool SelectsNone(const model::PodSpec& spec);

  // The item of a member, by place.
  [[nodiscard]] size_t ItemAt(int64_t place) const {
    const auto behind =
        std::upper_bound(items_.begin(), items_.end(), place,
                         [](int64_t at, const PlanItem& item) { return at < item.first; });
    return static_cast<size_t>(behind - items_.begin()) - 1;
  }
  // Calls `use(item, members)` for each open item of which some members are in the run, by place.
  template <typename Items, typename Use>
  void ForEachOpen(Items& items, int64_t begin, int64_t end, const Use& use) const {
    if (begin >= end) return;
    for (size_t i = ItemAt(begin); i < items.size() && items[i].first < end; ++i) {
      auto& item = items[i];
      if (!item.open) continue;
      use(item, std::min(end, item.first + item.members) - std::max(begin, item.first));
    }
  }
  [[nodiscard]] Asked With(int64_t begin, int64_t end) const {
    Asked asked{taken_, taken_caps_, taken_bond_nodes_};
    ForEachOpen(items_, begin, end, [&](const PlanItem& item, int64_t members) {
      for (const Wish& wish : item.wishes) asked.counts[wish.plan_class] += wish.count * members;
      if (!item.bonds.has_value()) return;
      for (const int offer : item.bonds->bought) {
        TakeFrom(asked.caps, input_.offers[static_cast<size_t>(offer)]);
        ++asked.bond_nodes;
      }
    });
    return asked;
  }
  [[nodiscard]] Asked OfCounts(Counts counts) const {
    return {std::move(counts), taken_caps_, taken_bond_nodes_};
  }
  // Everything open of the run has what it asked for.
  void Take(Asked asked, int64_t begin, int64_t end) {
    taken_ = std::move(asked.counts);
    taken_caps_ = std::move(asked.caps);
    taken_bond_nodes_ = asked.bond_nodes;
    ForEachOpen(items_, begin, end, [](PlanItem& item, int64_t members) {
      item.taken += members;
      item.open = item.taken < item.members;
      item.bonds_taken = item.bonds.has_value();
    });
  }
  std::optional<std::vector<Wish>> Choose(int domains, PlanDomains::Extent extent,
                                          const Counts& taken, const CapsLeft& caps) {
    return domains_.Choose(domains, extent, taken,
                           [&](const Counts& counts) { return Pack(counts, caps); });
  }
  Packing Pack(const Counts& counts, const CapsLeft& caps) {
    const std::vector<int64_t> split = classes_.Split(counts);
    Packing packing = classes_.packer().Pack(split, caps, Objective::kPrice);
    // The cheapest nodes may hold more GPUs than a GPU cap allows where others do not.
    const bool gpu_caps = caps.gpus != kNoBound || !caps.gpus_by_model.empty();
    if (packing.Complete() || !gpu_caps) return packing;
    Packing fewer = classes_.packer().Pack(split, caps, Objective::kGpusThenPrice);
    return fewer.Complete() ? fewer : packing;
  }
  Verdict Try(const Asked& asked, bool alone) {
    if (Overdrawn(asked.caps)) return Verdict::kCap;
    const Packing packing = Pack(asked.counts, asked.caps);
    if (!packing.Complete()) return Verdict::kCap;
    return alone || packing.cost.nodes + asked.bond_nodes <= input_.max_nodes
               ? Verdict::kFits
               : Verdict::kTooManyNodes;
  }
  [[nodiscard]] bool NothingTaken() const {
    return taken_bond_nodes_ == 0 &&
           std::all_of(taken_.begin(), taken_.end(), [](int64_t n) { return n == 0; });
  }

  const PlanInput& input_;
  Placement& placement_;
  PlanClasses classes_;
  PlanDomains domains_;
  std::vector<PlanItem> items_;
  int64_t members_ = 0;             // of all items
  std::vector<size_t> outcome_of_;  // by item: the one in plan_ that is behind those of EmitMember
  // What is decided: counts by plan class, the caps less what items with bonds take, their nodes.
  Counts taken_;
  CapsLeft taken_caps_;
  int64_t taken_bond_nodes_ = 0;
  std::unique_ptr<Rehearsal> rehearsal_;
  std::unique_ptr<BondPlanner> bonds_;  // null: no item has bonds
  std::set<std::string> left_out_;
  CapsLeft left_;
  // How many items with bonds were planned once more to say why; each costs questions.
  static constexpr int kMaxExplainedBonds = 8;
  int explained_bonds_ = 0;
  std::unique_ptr<PlanClasses> resting_classes_;
  static constexpr size_t kMaxExplainedSelectors = 100;  // the others are told the code alone
  std::map<int, bool> selects_none_;                     // by spec class
  std::map<int, std::string> refused_wishes_;            // likewise; "" if they are not the reason
  std::map<std::pair<int, int>, std::string> why_not_model_;  // by spec class and rank
  Plan plan_;
};

}  // namespace fairlead::hook
