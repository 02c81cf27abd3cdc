#include "autoscale-hook/planner.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autoscale-hook/packing.h"
#include "autoscale-hook/plan_classes.h"
#include "autoscale-hook/plan_domains.h"

namespace fairlead::hook {
namespace {

using verdict::Code;

constexpr int kNoDomains = -1;
constexpr char kNextStep[] = "more nodes are requested in the next step";

struct Item {
  std::vector<Wish> wishes;
  bool open = true;  // still to be decided
  // Of an item with topology rules, its number in PlanDomains; its wishes are those of the domains
  // that were chosen last.
  int domains = kNoDomains;
  std::string signature;
};

// Made when it is first asked for: where no cap binds, never.
const std::string& SignatureOf(Item& item) {
  if (!item.signature.empty()) return item.signature;
  // Its wishes change with the domains.
  if (item.domains != kNoDomains) return item.signature = absl::StrCat("t/", item.domains);
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

class Planning {
 public:
  Planning(const PlanInput& input, Placement& placement)
      : input_(input),
        placement_(placement),
        classes_(*input.demand, input.offers, placement),
        domains_(classes_) {}

  Plan Make() {
    plan_.items.resize(input_.demand->size());
    ReadItems();
    ChooseDomains();
    DecideItems();
    Packing packing = Pack(taken_, input_.caps);
    EmitNodes(packing);
    left_ = input_.caps;
    for (const PlannedNode& node : plan_.nodes) TakeFrom(left_, node.offer);
    ExplainLeftOut();
    plan_.questions = classes_.packer().questions();
    return std::move(plan_);
  }

 private:
  using Counts = std::vector<int64_t>;
  enum class Verdict : uint8_t { kFits, kCap, kTooManyNodes };

  void ReadItems();
  void ChooseDomains();
  void DecideItems();
  bool ChooseAnew(size_t index);
  bool TakeWholeRun(size_t begin, size_t end);
  void TakePart(Item& item, Verdict why);
  void EmitNodes(const Packing& packing);
  void ExplainLeftOut();
  ItemOutcome ExplainUnfit(const DemandItem& item);
  ItemOutcome ExplainNoDomain(const DemandItem& item, int domains);
  void TellRest(ItemOutcome& outcome);
  ItemOutcome ExplainCapped(Item& item);
  bool ExplainGpuCap(const Packing& packing, ItemOutcome& outcome) const;
  bool ExplainCostCap(const Packing& packing, ItemOutcome& outcome) const;
  bool FitsResting(const verdict::DemandClass& pod_class);

  Counts With(size_t begin, size_t end) const {
    Counts counts = taken_;
    for (size_t i = begin; i < end; ++i) {
      if (!items_[i].open) continue;
      for (const Wish& wish : items_[i].wishes) counts[wish.plan_class] += wish.count;
    }
    return counts;
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
  Verdict Try(const Counts& counts, bool alone) {
    const Packing packing = Pack(counts, input_.caps);
    if (!packing.Complete()) return Verdict::kCap;
    return alone || packing.cost.nodes <= input_.max_nodes ? Verdict::kFits
                                                           : Verdict::kTooManyNodes;
  }
  [[nodiscard]] bool NothingTaken() const {
    return std::all_of(taken_.begin(), taken_.end(), [](int64_t n) { return n == 0; });
  }
  static void TakeFrom(CapsLeft& left, const Offer& offer) {
    if (left.nodes != kNoBound) --left.nodes;
    if (left.gpus != kNoBound) left.gpus -= offer.type->gpu_count;
    if (left.micro_usd_per_hour != kNoBound) {
      left.micro_usd_per_hour -= offer.price_micro_usd_per_hour;
    }
    auto model = left.gpus_by_model.find(offer.type->gpu_model);
    if (model != left.gpus_by_model.end()) model->second -= offer.type->gpu_count;
    auto pool = left.nodes_by_pool.find(offer.pool->meta.name);
    if (pool != left.nodes_by_pool.end()) --pool->second;
  }

  const PlanInput& input_;
  Placement& placement_;
  PlanClasses classes_;
  PlanDomains domains_;
  std::vector<Item> items_;
  Counts taken_;  // by plan class
  std::set<std::string> left_out_;
  CapsLeft left_;
  std::unique_ptr<PlanClasses> resting_classes_;
  Plan plan_;
};

void Planning::ReadItems() {
  for (size_t i = 0; i < input_.demand->size(); ++i) {
    const DemandItem& wanted = (*input_.demand)[i];
    Item item;
    if (!wanted.domains.empty()) {
      item.domains = domains_.Read(wanted);
      items_.push_back(std::move(item));
      continue;
    }
    bool unfit = false;
    for (const verdict::DemandClass& pod_class : wanted.classes) {
      if (pod_class.spec == nullptr || pod_class.count <= 0) continue;
      const int64_t min = wanted.atomic
                              ? pod_class.count
                              : std::clamp<int64_t>(pod_class.min_count, 0, pod_class.count);
      const int spec_class = classes_.IndexOf(*pod_class.spec);
      if (classes_.Fits(spec_class)) {
        item.wishes.push_back({spec_class, pod_class.count, min, 0});
      } else {
        unfit = unfit || min > 0;
      }
    }
    if (unfit || item.wishes.empty()) {
      item.open = false;
      item.wishes.clear();
    }
    items_.push_back(std::move(item));
  }
  taken_.assign(classes_.size(), 0);
}

// For every item with topology rules the domains that are the cheapest for it alone. Where no cap
// binds they are kept.
void Planning::ChooseDomains() {
  std::map<int, std::vector<Wish>> chosen;
  for (Item& item : items_) {
    if (item.domains == kNoDomains) continue;
    const auto [it, added] = chosen.try_emplace(item.domains);
    if (added) {
      auto wishes = Choose(item.domains, PlanDomains::Extent::kAll, taken_, input_.caps);
      // So that the cap that holds it can be told.
      if (!wishes.has_value()) {
        wishes = Choose(item.domains, PlanDomains::Extent::kAll, taken_, CapsLeft());
      }
      if (wishes.has_value()) it->second = *std::move(wishes);
    }
    item.wishes = it->second;
    item.open = !item.wishes.empty();
  }
}

// Other domains for an item that does not fit beside what is taken: for all of it, or else for its
// minimum. True if all of it fits now.
bool Planning::ChooseAnew(size_t index) {
  const int domains = items_[index].domains;
  const auto choose = [&](PlanDomains::Extent extent) {
    auto wishes = Choose(domains, extent, taken_, input_.caps);
    if (!wishes.has_value()) return false;
    // Those equal to it behind it would not fit where it did not.
    for (size_t i = index; i < items_.size(); ++i) {
      if (items_[i].open && items_[i].domains == domains) items_[i].wishes = *wishes;
    }
    return true;
  };
  if (choose(PlanDomains::Extent::kAll)) return true;
  choose(PlanDomains::Extent::kMinimum);
  return false;
}

// Takes every open item of the run if they fit together.
bool Planning::TakeWholeRun(size_t begin, size_t end) {
  Counts counts = With(begin, end);
  if (Try(counts, false) != Verdict::kFits) return false;
  taken_ = std::move(counts);
  for (size_t i = begin; i < end; ++i) {
    if (!items_[i].open) continue;
    items_[i].open = false;
    for (Wish& wish : items_[i].wishes) wish.taken = wish.count;
  }
  return true;
}

// As many of the item's pods as fit: first every minimum, then class by class.
void Planning::TakePart(Item& item, Verdict why) {
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
    return counts;
  };
  int64_t low = -1, high = extra;  // low fits (-1: nothing), high does not
  if (extra > 0 && Try(base, false) == Verdict::kFits) low = 0;
  while (low >= 0 && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (Try(with(middle), false) == Verdict::kFits ? low : high) = middle;
  }
  if (why == Verdict::kCap) left_out_.insert(SignatureOf(item));
  if (low < 0) return;
  taken_ = with(low);
  for (Wish& wish : item.wishes) {
    const int64_t more = std::min(low, wish.count - wish.min);
    wish.taken = wish.min + more;
    low -= more;
  }
}

void Planning::DecideItems() {
  size_t begin = 0;
  const size_t size = items_.size();
  for (int left_out = 0; begin < size && left_out <= kMaxLeftOut; ++left_out) {
    if (TakeWholeRun(begin, size)) return;
    // [begin, low) fits, [begin, high) does not.
    size_t low = begin, high = size;
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      (Try(With(begin, middle), false) == Verdict::kFits ? low : high) = middle;
    }
    if (low > begin) TakeWholeRun(begin, low);
    Item& item = items_[low];
    // Where all beyond was closed, or fits after all: nothing to leave out here.
    if (item.open) {
      const bool gang = item.domains != kNoDomains
                            ? (*input_.demand)[low].atomic
                            : std::all_of(item.wishes.begin(), item.wishes.end(),
                                          [](const Wish& wish) { return wish.min == wish.count; });
      const bool alone = gang && NothingTaken();
      Verdict why = Try(With(low, low + 1), alone);
      if (why == Verdict::kCap && item.domains != kNoDomains && ChooseAnew(low)) {
        why = Try(With(low, low + 1), alone);
      }
      if (why == Verdict::kFits) {
        taken_ = With(low, low + 1);
        item.open = false;
        for (Wish& wish : item.wishes) wish.taken = wish.count;
      } else {
        TakePart(item, why);
      }
      if (why == Verdict::kTooManyNodes) {
        plan_.more_next_step = true;
        return;
      }
    }
    begin = low + 1;
    for (size_t i = begin; i < size; ++i) {
      if (left_out_.contains(SignatureOf(items_[i]))) items_[i].open = false;
    }
  }
}

// Nodes one by one, and whose pods are on which: items in order take what their classes got.
void Planning::EmitNodes(const Packing& packing) {
  std::vector<std::vector<std::pair<size_t, int64_t>>> supply(classes_.size());
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
    std::vector<std::pair<size_t, int64_t>> pods_on;
    int64_t asked = 0, taken = 0;
    for (const verdict::DemandClass& pod_class : (*input_.demand)[i].classes) {
      asked += pod_class.count;
    }
    for (const Wish& wish : items_[i].wishes) {
      auto& nodes = supply[wish.plan_class];
      size_t& at = cursor[wish.plan_class];
      const int64_t pods_of_one = classes_.PodsOf(wish.plan_class);
      for (int64_t pods = wish.taken; pods > 0 && at < nodes.size();) {
        const int64_t here = std::min(pods, nodes[at].second);
        pods_on.push_back({nodes[at].first, here * pods_of_one});
        pods -= here;
        nodes[at].second -= here;
        if (nodes[at].second == 0) ++at;
      }
      taken += wish.taken * pods_of_one;
    }
    if (taken == 0) continue;
    ItemOutcome& outcome = plan_.items[i];
    outcome.code = Code::kNodesRequested;
    std::sort(pods_on.begin(), pods_on.end());
    for (const auto& [node, pods] : pods_on) {
      if (!outcome.nodes.empty() && outcome.nodes.back() == node) {
        plan_.nodes[node].pods_of_item.back().second += pods;  // another class of the same item
        continue;
      }
      outcome.nodes.push_back(node);
      plan_.nodes[node].pods_of_item.push_back({i, pods});
    }
    if (taken < asked) {
      outcome.details.push_back(absl::StrCat("nodes for ", taken, " of ", asked, " pods"));
    }
  }
}

void Planning::ExplainLeftOut() {
  std::map<std::string, ItemOutcome> by_signature;
  for (size_t i = 0; i < items_.size(); ++i) {
    ItemOutcome& outcome = plan_.items[i];
    if (outcome.code == Code::kNodesRequested) continue;
    if (items_[i].wishes.empty()) {
      const DemandItem& item = (*input_.demand)[i];
      outcome = items_[i].domains == kNoDomains ? ExplainUnfit(item)
                                                : ExplainNoDomain(item, items_[i].domains);
      continue;
    }
    auto [it, added] = by_signature.try_emplace(SignatureOf(items_[i]));
    if (added) it->second = ExplainCapped(items_[i]);
    outcome = it->second;
  }
}

bool Planning::FitsResting(const verdict::DemandClass& pod_class) {
  if (resting_classes_ == nullptr) {
    std::vector<Offer> offers;
    offers.reserve(input_.resting.size());
    for (const PlanInput::RestingOffer& resting : input_.resting) offers.push_back(resting.offer);
    resting_classes_ = std::make_unique<PlanClasses>(*input_.demand, offers, placement_);
  }
  return resting_classes_->Fits(resting_classes_->IndexOf(*pod_class.spec));
}

// Some class of it fits no node that can be bought now.
ItemOutcome Planning::ExplainUnfit(const DemandItem& item) {
  for (const verdict::DemandClass& pod_class : item.classes) {
    if (pod_class.spec == nullptr || pod_class.count <= 0) continue;
    if (classes_.Fits(classes_.IndexOf(*pod_class.spec))) continue;
    if (!FitsResting(pod_class)) {
      return {Code::kNoInstanceTypeFits, {}, {"no instance type on offer could ever run it"}};
    }
  }
  ItemOutcome outcome;
  TellRest(outcome);
  return outcome;
}

// It could be bought again once something that was refused has rested.
void Planning::TellRest(ItemOutcome& outcome) {
  const PlanInput::RestingOffer* first = nullptr;
  for (const PlanInput::RestingOffer& resting : input_.resting) {
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
ItemOutcome Planning::ExplainNoDomain(const DemandItem& item, int domains) {
  if (domains_.Refuses(domains)) return {ItemOutcome().code, {}, {domains_.WhyNone(domains)}};
  if (domains_.spent() && !plan_.nodes.empty()) {
    plan_.more_next_step = true;
    return {ItemOutcome().code, {}, {kNextStep}};
  }
  const Demand alone = {item};
  std::vector<Offer> offers = input_.offers;
  for (const PlanInput::RestingOffer& resting : input_.resting) offers.push_back(resting.offer);
  PlanClasses classes(alone, offers, placement_);
  PlanDomains rested(classes);
  const int number = rested.Read(alone.front());
  const auto pack = [&classes](const Counts& counts) {
    return classes.packer().Pack(classes.Split(counts), CapsLeft(), Objective::kPrice);
  };
  const Counts nothing(classes.size(), 0);
  if (rested.Choose(number, PlanDomains::Extent::kMinimum, nothing, pack).has_value()) {
    ItemOutcome outcome;
    TellRest(outcome);
    return outcome;
  }
  return {Code::kNoInstanceTypeFits, {}, {rested.WhyNone(number)}};
}

// False if these nodes are within the GPU caps.
bool Planning::ExplainGpuCap(const Packing& packing, ItemOutcome& outcome) const {
  std::map<std::string, int64_t> by_model;
  for (const NodeGroup& group : packing.groups) {
    const InstanceType& type = *classes_.packer().offers()[group.offer].type;
    by_model[type.gpu_model] += type.gpu_count * group.nodes;
  }
  std::string needed;
  int64_t left = 0;
  if (left_.gpus != kNoBound && packing.cost.gpus > left_.gpus) {
    needed = absl::StrCat(packing.cost.gpus, " GPUs");
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
  outcome.details.push_back(
      absl::StrCat("the cheapest nodes for it have ", needed, ", the cap leaves ", left));
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
                   FormatDollars(packing.price_micro_usd_per_hour), " an hour, the cap leaves ",
                   FormatDollars(left_.micro_usd_per_hour)));
  return true;
}

// It could be bought, were it not for a cap: which one?
ItemOutcome Planning::ExplainCapped(Item& item) {
  ItemOutcome outcome;
  Counts counts(classes_.size(), 0);
  for (const Wish& wish : item.wishes) counts[wish.plan_class] += wish.count;
  const bool unseen = item.domains != kNoDomains && domains_.spent();
  if (unseen || (plan_.more_next_step && !left_out_.contains(SignatureOf(item)))) {
    outcome.details.push_back(kNextStep);
    return outcome;
  }
  // The cap whose lifting alone would do; where several bind, the first that binds.
  const std::vector<int64_t> split = classes_.Split(counts);
  const CapsLeft open;
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
  if (!buys(no_pool_cap).Complete()) {
    if (ExplainGpuCap(packing, outcome) || ExplainCostCap(packing, outcome)) return outcome;
  }
  outcome.details.push_back("its node pools are at their maximum");
  return outcome;
}

}  // namespace

std::string FormatDollars(int64_t micro_usd) {
  // To the cent above a dollar, exact below: prices of small types differ in the fourth digit.
  const int64_t dollars = micro_usd / 1000000, rest = micro_usd % 1000000;
  if (dollars > 0 || rest == 0) return absl::StrFormat("$%d.%02d", dollars, rest / 10000);
  std::string digits = absl::StrFormat("%06d", rest);
  digits.erase(std::max<size_t>(2, digits.find_last_not_of('0') + 1));
  return absl::StrCat("$0.", digits);
}

Plan MakePlan(const PlanInput& input, Placement& placement) {
  Plan plan;
  if (input.demand == nullptr || input.demand->empty()) return plan;
  return Planning(input, placement).Make();
}

}  // namespace fairlead::hook
