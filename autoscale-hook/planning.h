// The inside of MakePlan: one plan. Not for other files.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/packing.h"
#include "autoscale-hook/plan_bonds.h"
#include "autoscale-hook/plan_classes.h"
#include "autoscale-hook/plan_domains.h"
#include "autoscale-hook/planner.h"

namespace fairlead::hook {

inline constexpr int kNoDomains = -1;
inline constexpr char kNextStep[] = "more nodes are requested in the next step";

struct PlanItem {
  std::vector<Wish> wishes;
  bool open = true;  // still to be decided
  // Of an item with topology rules, its number in PlanDomains; its wishes are those of the domains
  // that were chosen last.
  int domains = kNoDomains;
  // Equal items are left out together. Empty: not made yet (SignatureOf).
  std::string signature;
  // Of an item with bonds: what it takes when it is planned alone. It has no wishes.
  std::optional<BondPlanner::Result> bonds;
  bool bonds_taken = false;
};

// Made when it is first asked for: where no cap binds, never.
const std::string& SignatureOf(PlanItem& item);

class Planning {
 public:
  Planning(const PlanInput& input, Placement& placement)
      : input_(input),
        placement_(placement),
        classes_(*input.demand, input.offers, placement),
        domains_(classes_),
        taken_caps_(input.caps) {}

  Plan Make() {
    plan_.items.resize(input_.demand->size());
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
  void ChooseDomains();
  void DecideItems();
  bool ChooseAnew(size_t index);
  bool TakeWholeRun(size_t begin, size_t end);
  void TakePart(PlanItem& item, Verdict why);
  void EmitNodes(const Packing& packing);
  void EmitBonds(const Packing& packing);
  void RehearseBonds(const Packing& packing, std::vector<int>& bought);
  void EmitBond(size_t index, const std::vector<size_t>& index_of);
  void ExplainLeftOut();
  ItemOutcome ExplainUnfit(const DemandItem& item);
  ItemOutcome ExplainNoDomain(const DemandItem& item, int domains);
  void TellRest(ItemOutcome& outcome);
  ItemOutcome ExplainBond(size_t index);
  ItemOutcome ExplainCapped(PlanItem& item);
  bool ExplainGpuCap(const Packing& packing, ItemOutcome& outcome) const;
  bool ExplainCostCap(const Packing& packing, ItemOutcome& outcome) const;
  bool FitsResting(const verdict::DemandClass& pod_class);

  [[nodiscard]] Asked With(size_t begin, size_t end) const {
    Asked asked{taken_, taken_caps_, taken_bond_nodes_};
    for (size_t i = begin; i < end; ++i) {
      const PlanItem& item = items_[i];
      if (!item.open) continue;
      for (const Wish& wish : item.wishes) asked.counts[wish.plan_class] += wish.count;
      if (!item.bonds.has_value()) continue;
      for (const int offer : item.bonds->bought) {
        TakeFrom(asked.caps, input_.offers[static_cast<size_t>(offer)]);
        ++asked.bond_nodes;
      }
    }
    return asked;
  }
  [[nodiscard]] Asked OfCounts(Counts counts) const {
    return {std::move(counts), taken_caps_, taken_bond_nodes_};
  }
  // Everything open of the run has what it asked for.
  void Take(Asked asked, size_t begin, size_t end) {
    taken_ = std::move(asked.counts);
    taken_caps_ = std::move(asked.caps);
    taken_bond_nodes_ = asked.bond_nodes;
    for (size_t i = begin; i < end; ++i) {
      PlanItem& item = items_[i];
      if (!item.open) continue;
      item.open = false;
      item.bonds_taken = item.bonds.has_value();
      for (Wish& wish : item.wishes) wish.taken = wish.count;
    }
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
  Plan plan_;
};

}  // namespace fairlead::hook
