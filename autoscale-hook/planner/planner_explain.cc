// Why nothing is bought for an item of a plan.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autoscale-hook/planner/planning.h"
#include "autoscale-hook/planner/wished_offers.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::hook {

using verdict::Code;

void LeaveOpen(ItemOutcome& outcome) {
  outcome.open = true;
  outcome.details = {kNextStep};
}

// An item with bonds for which nothing is bought.
ItemOutcome Planning::ExplainBond(size_t index) {
  ItemOutcome outcome;
  PlanItem& item = items_[index];
  BondPlanner::Result needed = *item.bonds;
  if (bonds_ == nullptr || (item.bonds_taken && needed.placed)) {
    outcome.open = true;  // the engine finds its places on present nodes
    return outcome;
  }
  if (needed.spent || (plan_.more_next_step && !left_out_.contains(SignatureOf(item)))) {
    plan_.more_next_step = plan_.more_next_step || !plan_.nodes.empty();
    LeaveOpen(outcome);
    return outcome;
  }
  std::vector<Offer> offers = input_.offers;
  const bool could_be_had = needed.capped || !input_.resting.empty();
  if (!needed.placed && could_be_had) {
    if (explained_bonds_++ >= kMaxExplainedBonds) return outcome;
    // Alone, with all that could ever be bought and without caps.
    offers = AllOffers();
    CapsLeft open = input_.caps.WithoutCaps();
    const size_t mark = rehearsal_->Mark();
    {
      BondPlanner alone(*input_.demand, offers, open, *rehearsal_, input_.max_bond_work / 16);
      needed = alone.Place(index, open);
    }
    rehearsal_->RollbackTo(mark);
    if (!needed.placed && needed.spent) return outcome;  // not known
  }
  if (!needed.placed) {
    outcome.code = Code::kNoInstanceTypeFits;
    outcome.details.push_back(absl::StrCat("no node on offer suits it beside the pods that run",
                                           needed.why.empty() ? "" : ": ", needed.why));
    NoteWishes((*input_.demand)[index], outcome);
    return outcome;
  }
  const bool rests = std::any_of(needed.bought.begin(), needed.bought.end(), [&](int offer) {
    return static_cast<size_t>(offer) >= input_.offers.size();
  });
  if (rests) {
    TellRest(outcome);
    return outcome;
  }
  Packing packing;
  for (const int offer : needed.bought) {
    packing.groups.push_back({offer, {}, 1});
    packing.cost.gpus += offers[static_cast<size_t>(offer)].type->gpu_count;
  }
  packing.price_micro_usd_per_hour = needed.price_micro_usd_per_hour;
  outcome.capped = true;
  if (packing.groups.empty() || ExplainGpuCap(packing, outcome) ||
      ExplainCostCap(packing, outcome)) {
    return outcome;
  }
  outcome.details.push_back("its node pools, or all provisioned nodes, are at their maximum");
  return outcome;
}

void Planning::ExplainLeftOut() {
  std::map<std::string, ItemOutcome> by_signature;
  const auto explain = [&](size_t i) {
    if (items_[i].bonds.has_value()) return ExplainBond(i);
    if (items_[i].wishes.empty()) {
      const DemandItem& item = (*input_.demand)[i];
      return items_[i].HasDomains() ? ExplainNoDomain(item, items_[i].Domains(), items_[i].levels)
                                    : ExplainUnfit(item);
    }
    auto [it, added] = by_signature.try_emplace(SignatureOf(items_[i]));
    if (added) it->second = ExplainCapped(items_[i]);
    return it->second;
  };
  for (size_t i = 0; i < items_.size(); ++i) {
    // Of an item whose members all have nodes it is that of the next one.
    const size_t number = outcome_of_[i];
    if (number >= plan_.items.size() || plan_.items[number].item != i) continue;
    if (plan_.items[number].code == Code::kNodesRequested) continue;
    ItemOutcome outcome = explain(i);
    outcome.item = i;
    outcome.members = plan_.items[number].members;
    plan_.items[number] = std::move(outcome);
  }
}

std::vector<Offer> Planning::RestingOffers() const {
  std::vector<Offer> offers;
  offers.reserve(input_.resting.size());
  for (const PlanInput::UnavailableOffering& resting : input_.resting) {
    offers.push_back(resting.offer);
  }
  return offers;
}

std::vector<Offer> Planning::AllOffers() const {
  std::vector<Offer> offers = input_.offers;
  const std::vector<Offer> resting = RestingOffers();
  offers.insert(offers.end(), resting.begin(), resting.end());
  return offers;
}

PlanClasses& Planning::RestingClasses() {
  if (resting_classes_ == nullptr) {
    resting_classes_ = std::make_unique<PlanClasses>(*input_.demand, RestingOffers(), placement_);
  }
  return *resting_classes_;
}

// Some type could run a pod of the class if it selected no nodes.
bool Planning::SelectsNone(const model::PodSpec& spec) {
  if (spec.node_selector.empty() && !spec.has_required_node_affinity) return false;
  const auto [known, added] = selects_none_.try_emplace(classes_.IndexOf(spec), false);
  if (!added || selects_none_.size() > kMaxExplainedSelectors) return known->second;
  auto free = std::make_shared<model::PodSpec>(spec);
  free->node_selector = {};
  free->has_required_node_affinity = false;
  free->required_node_terms.clear();
  Demand demand(1);
  demand.front().classes.push_back({free, 1, 1});
  const PlanClasses classes(demand, AllOffers(), placement_);
  return known->second = classes.Fits(classes.IndexOf(*free));
}

// Some class of it fits no node that can be bought now.
ItemOutcome Planning::ExplainUnfit(const DemandItem& item) {
  for (const verdict::DemandClass& pod_class : item.classes) {
    if (pod_class.spec == nullptr || pod_class.count <= 0) continue;
    if (classes_.Fits(classes_.IndexOf(*pod_class.spec))) continue;
    if (!RestingClasses().Fits(RestingClasses().IndexOf(*pod_class.spec))) {
      ItemOutcome outcome;
      outcome.code = Code::kNoInstanceTypeFits;
      outcome.selects_none = SelectsNone(*pod_class.spec);
      NoteWishes(item, outcome);
      return outcome;
    }
  }
  ItemOutcome outcome;
  TellRest(outcome);
  return outcome;
}

// It could be bought again once something that was refused has rested.
void Planning::TellRest(ItemOutcome& outcome) {
  const PlanInput::UnavailableOffering* first = nullptr;
  for (const PlanInput::UnavailableOffering& resting : input_.resting) {
    if (first == nullptr || resting.until < first->until) first = &resting;
  }
  if (first == nullptr) return;
  if (!plan_.retry_at.has_value() || first->until < *plan_.retry_at) {
    plan_.retry_at = first->until;
  }
  outcome.details.push_back(absl::StrCat("in backoff after ", FailureName(first->failure), " of ",
                                         first->offer.type->name,
                                         first->message.empty() ? "" : " (", first->message,
                                         first->message.empty() ? "" : ")", "; will be retried"));
}

// No domain of its topology can be had for it.
ItemOutcome Planning::ExplainNoDomain(const DemandItem& item, int domains, int levels) {
  if (domains_.Refuses(domains)) return {ItemOutcome().code, {}, {domains_.WhyNone(domains)}};
  if (domains_.spent() && !plan_.nodes.empty()) {
    plan_.more_next_step = true;
    ItemOutcome outcome;
    LeaveOpen(outcome);
    return outcome;
  }
  const Demand alone = {item};
  PlanClasses classes(alone, AllOffers(), placement_);
  PlanDomains rested(classes);
  std::vector<int> numbers;
  for (int level = 0; level < levels; ++level) {
    numbers.push_back(rested.Read(alone.front(), level));
  }
  const CapsLeft open = input_.caps.WithoutCaps();
  const auto pack = [&](const Counts& counts) {
    return classes.packer().Pack(classes.Split(counts), open, Objective::kPrice);
  };
  const Counts nothing(classes.size(), 0);
  const bool rests = std::any_of(numbers.begin(), numbers.end(), [&](int number) {
    return rested.Choose(number, PlanDomains::Extent::kMinimum, nothing, pack).has_value();
  });
  if (rests) {
    ItemOutcome outcome;
    TellRest(outcome);
    return outcome;
  }
  ItemOutcome outcome{Code::kNoInstanceTypeFits, {}, {rested.WhyNone(numbers.front())}};
  NoteWishes(item, outcome);
  return outcome;
}

// False if these nodes are within the GPU caps.
bool Planning::ExplainGpuCap(const Packing& packing, ItemOutcome& outcome) const {
  std::map<std::string, int64_t> by_model;
  for (const NodeGroup& group : packing.groups) {
    const InstanceType& type = *classes_.packer().offers()[group.offer].type;
    int64_t& gpus = by_model[type.gpu_model];
    gpus = model::SaturatingAdd(gpus, model::SaturatingMultiply(type.gpu_count, group.nodes));
  }
  std::string needed;
  int64_t left = 0;
  if (left_.gpus != kNoBound && packing.cost.gpus > left_.gpus) {
    needed = verdict::Count(packing.cost.gpus, "GPU", "GPUs");
    left = left_.gpus;
  }
  for (const auto& [gpu_model, bound] : left_.gpus_by_model) {
    auto it = by_model.find(gpu_model);
    if (!needed.empty() || it == by_model.end() || it->second <= bound) continue;
    needed = absl::StrCat(it->second, " ", gpu_model);
    left = bound;
  }
  if (needed.empty()) return false;
  outcome.code = Code::kGpuCapReached;
  outcome.details.push_back(absl::StrCat("the cheapest nodes for it have ", needed, ", the cap ",
                                         input_.gpu_cap_of, "leaves ", left));
  return true;
}

bool Planning::ExplainCostCap(const Packing& packing, ItemOutcome& outcome) const {
  if (left_.micro_usd_per_hour == kNoBound ||
      packing.price_micro_usd_per_hour <= left_.micro_usd_per_hour) {
    return false;
  }
  const std::string& type = classes_.packer().offers()[packing.groups[0].offer].type->name;
  outcome.code = Code::kCostCapReached;
  outcome.details.push_back(
      absl::StrCat("the cheapest nodes for it (", packing.groups[0].nodes, " x ", type,
                   packing.groups.size() > 1 ? " and others" : "", ") cost ",
                   FormatDollars(packing.price_micro_usd_per_hour), " an hour, the cap ",
                   input_.cost_cap_of, "leaves ", FormatDollars(left_.micro_usd_per_hour)));
  return true;
}

// It could be bought, were it not for a cap: which one?
ItemOutcome Planning::ExplainCapped(PlanItem& item) {
  ItemOutcome outcome;
  Counts counts(classes_.size(), 0);
  for (const Wish& wish : item.wishes) counts[wish.plan_class] += wish.count;
  const bool unseen = item.HasDomains() && domains_.spent();
  if (unseen || (plan_.more_next_step && !left_out_.contains(SignatureOf(item)))) {
    LeaveOpen(outcome);
    return outcome;
  }
  outcome.capped = true;
  // The cap whose lifting alone would do; where several bind, the first that binds.
  const std::vector<int64_t> split = classes_.Split(counts);
  const CapsLeft open = left_.WithoutCaps();
  CapsLeft no_gpu_cap = left_, no_cost_cap = left_, no_pool_cap = left_;
  no_gpu_cap.gpus = kNoBound;
  no_gpu_cap.gpus_by_model.clear();
  no_cost_cap.micro_usd_per_hour = kNoBound;
  no_pool_cap.nodes_by_pool.clear();
  CapsLeft no_node_cap = left_;
  no_node_cap.nodes = kNoBound;
  const auto buys = [&](const CapsLeft& caps) {
    return classes_.packer().Pack(split, caps, Objective::kPrice);
  };
  Packing packing = buys(no_gpu_cap);
  if (packing.Complete() && ExplainGpuCap(packing, outcome)) return outcome;
  packing = buys(no_cost_cap);
  if (packing.Complete() && ExplainCostCap(packing, outcome)) return outcome;
  if (left_.nodes != kNoBound && buys(no_node_cap).Complete()) {
    outcome.details.push_back(
        absl::StrCat("the limit of provisioned nodes (hook.maxNodes) leaves: ", left_.nodes));
    return outcome;
  }
  packing = buys(open);
  if (!packing.Complete()) {
    outcome.details.push_back("all reserved machines that suit it are in use");
    return outcome;
  }
  if (!buys(no_pool_cap).Complete()) {
    if (ExplainGpuCap(packing, outcome) || ExplainCostCap(packing, outcome)) return outcome;
  }
  outcome.details.push_back("its node pools are at their maximum");
  return outcome;
}

}  // namespace fairlead::hook
