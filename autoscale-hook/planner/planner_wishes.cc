// What a plan says about the wishes of pods (model/instance_wishes.h): why they get another GPU
// model than the first that they name, and that nothing is bought because of them.
#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/planner/planning.h"
#include "autoscale-hook/planner/wished_offers.h"
#include "scheduler/model/instance_facts.h"

namespace fairlead::hook {
namespace {

// Pods of these specs, and nothing else.
Demand DemandOf(const std::vector<std::shared_ptr<const model::PodSpec>>& specs) {
  Demand demand(1);
  for (const auto& spec : specs) demand.front().classes.push_back({spec, 1, 1});
  return demand;
}

}  // namespace

const std::string& Planning::WhyNotModel(const model::PodSpec& spec, int rank) {
  const int spec_class = classes_.IndexOf(spec);
  const auto [known, added] = why_not_model_.try_emplace({spec_class, rank});
  std::string& why = known->second;
  if (!added) return why;
  const bool bonds = model::HasBond(spec);
  if (classes_.FitsRank(spec_class, rank)) {
    return why = "the caps leave too little for it";
  }
  if (bonds && classes_.HasRank(spec_class, rank)) {
    return why = "no node with it suits the pods beside those that run, within the caps";
  }
  for (const PlanInput::UnavailableOffering& resting : input_.resting) {
    const model::Node node = UsableNode(resting.offer, "");
    if (WishRank(*spec.wishes, resting.offer, node.meta.labels) != rank) continue;
    const auto shared = std::make_shared<const model::PodSpec>(spec);
    if (!bonds && placement_.CountThatFit(node, {}, shared, 1) == 0) continue;
    return why = absl::StrCat("in backoff after ", FailureName(resting.failure), " of ",
                              resting.offer.type->name);
  }
  return why = "no instance type on offer with it suits the pods";
}

void Planning::NoteModels(const DemandItem& item, ItemOutcome& outcome) {
  for (const verdict::DemandClass& pods : item.classes) {
    if (pods.spec == nullptr || pods.spec->wishes->gpu_models.size() < 2) continue;
    const model::InstanceWishes& wishes = *pods.spec->wishes;
    int last = 0;
    for (const size_t node : outcome.nodes) {
      const Offer& offer = plan_.nodes[node].offer;
      last = std::max(last, WishRank(wishes, offer, UsableNode(offer, "").meta.labels));
    }
    if (last == 0) continue;
    std::vector<std::string> others;
    for (int rank = 0; rank < last; ++rank) {
      others.push_back(absl::StrCat(wishes.gpu_models[static_cast<size_t>(rank)], " (",
                                    WhyNotModel(*pods.spec, rank), ")"));
    }
    outcome.alternative = absl::StrCat("GPU model ", wishes.gpu_models[static_cast<size_t>(last)],
                                       " is provisioned instead of ", absl::StrJoin(others, ", "));
    return;
  }
}

// "" if pods of the spec fit some type, or would fit none without their wishes either.
std::string Planning::WhyWishesRefuse(const model::PodSpec& spec) {
  auto free = std::make_shared<model::PodSpec>(spec);
  free->wishes = {};
  auto dear = std::make_shared<model::PodSpec>(spec);
  dear->wishes.Own().max_micro_usd_per_hour.reset();
  const auto same = std::make_shared<model::PodSpec>(spec);
  // Bonds are left aside, as packing does.
  for (const auto& copy : {same, free, dear}) {
    copy->pod_affinity.clear();
    copy->pod_anti_affinity.clear();
    copy->topology_spread.clear();
  }
  const Demand demand = DemandOf({same, free, dear});
  const PlanClasses classes(demand, AllOffers(), placement_);
  if (classes.Fits(classes.IndexOf(*same)) || !classes.Fits(classes.IndexOf(*free))) return "";
  const Offer* cheapest = nullptr;
  const int dear_class = classes.IndexOf(*dear);
  const std::vector<Offer>& offers = classes.packer().offers();
  for (size_t o = 0; spec.wishes->max_micro_usd_per_hour.has_value() && o < offers.size(); ++o) {
    if (classes.packer().Fit(static_cast<int>(o), dear_class) == 0) continue;
    const bool cheaper = cheapest == nullptr ||
                         offers[o].price_micro_usd_per_hour < cheapest->price_micro_usd_per_hour;
    if (cheaper) cheapest = &offers[o];
  }
  if (cheapest != nullptr) {
    return absl::StrCat("the cheapest type that suits it (", cheapest->type->name, ") costs ",
                        FormatDollars(cheapest->price_micro_usd_per_hour),
                        " an hour, its instance-max-cost is ",
                        FormatDollars(*spec.wishes->max_micro_usd_per_hour));
  }
  return absl::StrCat("types on offer could run it but for its annotations: ",
                      WishNames(*spec.wishes));
}

void Planning::NoteWishes(const DemandItem& item, ItemOutcome& outcome) {
  for (const verdict::DemandClass& pods : item.classes) {
    if (pods.spec == nullptr || pods.count <= 0 || !pods.spec->wishes->Any()) continue;
    const int spec_class = classes_.IndexOf(*pods.spec);
    const auto [known, added] = refused_wishes_.try_emplace(spec_class);
    if (added && refused_wishes_.size() <= kMaxExplainedSelectors) {
      known->second = WhyWishesRefuse(*pods.spec);
    }
    if (known->second.empty()) continue;
    outcome.details.push_back(known->second);
    return;
  }
}

}  // namespace fairlead::hook
