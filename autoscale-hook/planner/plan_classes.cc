#include "autoscale-hook/planner/plan_classes.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "autoscale-hook/planner/plan_bonds.h"
#include "autoscale-hook/planner/wished_offers.h"
#include "base/check.h"

namespace fairlead::hook {

void PlanClasses::AddSpec(const std::shared_ptr<const model::PodSpec>& spec) {
  auto [address, is_new] = by_address_.try_emplace(spec.get(), -1);
  if (!is_new) return;
  std::vector<int>& equals = by_hash_[absl::HashOf(*spec)];
  for (int known : equals) {
    if (*specs_[known] == *spec) {
      address->second = known;
      return;
    }
  }
  address->second = static_cast<int>(specs_.size());
  equals.push_back(address->second);
  specs_.push_back(spec);
}

PlanClasses::PlanClasses(const Demand& demand, const std::vector<Offer>& offers,
                         Placement& placement) {
  const auto add = [this](const std::vector<verdict::DemandClass>& classes) {
    for (const verdict::DemandClass& pod_class : classes) {
      if (pod_class.spec != nullptr && pod_class.count > 0) AddSpec(pod_class.spec);
    }
  };
  for (const DemandItem& item : demand) {
    add(item.classes);
    for (const verdict::DomainPart& part : item.domains.parts) add(part.classes);
  }
  std::vector<PackClass> pack_classes;
  for (const auto& spec : specs_) {
    plan_of_.push_back(static_cast<int>(pack_classes.size()));
    pack_classes.push_back({spec});
  }
  packer_ = std::make_unique<Packer>(pack_classes, offers, placement);
  variants_.resize(specs_.size(), -1);
  pods_of_.resize(specs_.size(), 1);
  for (size_t p = 0; p < specs_.size(); ++p) ConfineToWishes(static_cast<int>(p));
  for (size_t p = 0; p < pack_classes.size(); ++p) {
    // Packing does not see what they depend on.
    if (model::HasBond(*specs_[p])) continue;
    const auto pack_class = static_cast<int>(p);
    for (size_t o = 0; o < offers.size(); ++o) {
      if (packer_->Fit(static_cast<int>(o), pack_class) > 0) {
        variants_[p] = pack_class;
        break;
      }
    }
  }
  for (size_t p = 0; p < specs_.size(); ++p) AddLevels(static_cast<int>(p));
}

void PlanClasses::ConfineToWishes(int spec_class) {
  const model::InstanceWishes& wishes = *specs_[static_cast<size_t>(spec_class)]->wishes;
  if (!MeasuresOffers(wishes)) return;
  std::vector<int>& ranks = ranks_[spec_class];
  auto wished = std::make_shared<std::vector<bool>>();
  for (size_t o = 0; o < packer_->offers().size(); ++o) {
    ranks.push_back(WishRank(wishes, packer_->offers()[o], packer_->labels(static_cast<int>(o))));
    wished->push_back(ranks.back() != kNotWished);
  }
  packer_->Confine(spec_class, std::move(wished));
}

// One for each model with offers on which the pods fit.
void PlanClasses::AddLevels(int spec_class) {
  const std::vector<std::string>& models =
      specs_[static_cast<size_t>(spec_class)]->wishes->gpu_models;
  if (models.size() < 2 || !Fits(spec_class)) return;
  const std::vector<int>& ranks = ranks_.at(spec_class);
  std::vector<Level> levels;
  for (size_t rank = 0; rank < models.size(); ++rank) {
    Level level{static_cast<int>(rank), spec_class, {}};
    for (size_t o = 0; o < ranks.size(); ++o) {
      const auto offer = static_cast<int>(o);
      const bool fits = ranks[o] == level.rank && packer_->Fit(offer, spec_class) > 0;
      if (fits) level.offers.push_back(offer);
    }
    if (level.offers.empty()) continue;
    level.plan_class = Confined(spec_class, level.offers);
    levels.push_back(std::move(level));
  }
  levels_[spec_class] = std::move(levels);
}

int PlanClasses::Levels(int spec_class) const {
  const auto found = levels_.find(spec_class);
  return found == levels_.end() ? 1 : static_cast<int>(found->second.size());
}

int PlanClasses::AtLevel(int spec_class, int level) const {
  const auto found = levels_.find(spec_class);
  if (found == levels_.end()) return spec_class;
  return found->second[static_cast<size_t>(std::min(level, Levels(spec_class) - 1))].plan_class;
}

bool PlanClasses::HasRank(int spec_class, int rank) const {
  const auto ranks = ranks_.find(spec_class);
  if (ranks == ranks_.end()) return rank == 0 && !packer_->offers().empty();
  return std::find(ranks->second.begin(), ranks->second.end(), rank) != ranks->second.end();
}

bool PlanClasses::FitsRank(int spec_class, int rank) const {
  const auto found = levels_.find(spec_class);
  return found != levels_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [rank](const Level& level) { return level.rank == rank; });
}

std::vector<int> PlanClasses::Admitted(int spec_class, int level, std::vector<int> offers) const {
  const auto ranks = ranks_.find(spec_class);
  if (ranks == ranks_.end()) return offers;
  const auto levels = levels_.find(spec_class);
  std::erase_if(offers, [&](int offer) {
    if (levels == levels_.end()) return ranks->second[static_cast<size_t>(offer)] == kNotWished;
    const size_t at = static_cast<size_t>(std::min(level, Levels(spec_class) - 1));
    const std::vector<int>& of_level = levels->second[at].offers;
    return !std::binary_search(of_level.begin(), of_level.end(), offer);
  });
  return offers;
}

int PlanClasses::IndexOf(const model::PodSpec& spec) const {
  auto it = by_address_.find(&spec);
  FAIRLEAD_CHECK(it != by_address_.end(), "a pod class that is not of this demand");
  return it->second;
}

int PlanClasses::AddConfined(PackClass pack_class, const std::vector<int>& offers, int64_t pods) {
  auto allowed = std::make_shared<std::vector<bool>>(packer_->offers().size(), false);
  for (const int offer : offers) (*allowed)[static_cast<size_t>(offer)] = true;
  pack_class.offers = std::move(allowed);
  const auto plan_class = static_cast<int>(variants_.size());
  const int pack = packer_->AddClass(std::move(pack_class));
  plan_of_.push_back(plan_class);
  pods_of_.push_back(pods);
  const bool fits = std::any_of(offers.begin(), offers.end(),
                                [&](int offer) { return packer_->Fit(offer, pack) > 0; });
  variants_.push_back(fits ? pack : -1);
  return plan_class;
}

int PlanClasses::Confined(int spec_class, const std::vector<int>& offers) {
  // On every offer is not confined at all: it may share what others of its spec get.
  if (offers.size() == packer_->offers().size()) return spec_class;
  const auto [it, added] = confined_.try_emplace({{{spec_class, 0}}, offers}, 0);
  if (added) it->second = AddConfined({specs_[static_cast<size_t>(spec_class)]}, offers, 1);
  return it->second;
}

int PlanClasses::Unit(const std::vector<Placement::Load>& pods, const std::vector<int>& offers) {
  std::vector<std::pair<int, int64_t>> kinds;
  int64_t count = 0;
  for (const Placement::Load& load : pods) {
    kinds.emplace_back(IndexOf(*load.spec), load.count);
    count += load.count;
  }
  const auto [it, added] = confined_.try_emplace({std::move(kinds), offers}, 0);
  if (added) it->second = AddConfined({nullptr, nullptr, pods}, offers, count);
  return it->second;
}

std::vector<int64_t> PlanClasses::Split(const std::vector<int64_t>& counts) const {
  std::vector<int64_t> split(plan_of_.size(), 0);
  for (size_t s = 0; s < counts.size(); ++s) {
    if (variants_[s] >= 0) split[static_cast<size_t>(variants_[s])] = counts[s];
  }
  return split;
}

}  // namespace fairlead::hook
