#include "autoscale-hook/planner/plan_classes.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "autoscale-hook/planner/plan_bonds.h"
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
  for (size_t p = 0; p < pack_classes.size(); ++p) {
    // Packing does not see what they depend on.
    if (!BondOf(*specs_[p]).empty()) continue;
    const auto pack_class = static_cast<int>(p);
    for (size_t o = 0; o < offers.size(); ++o) {
      if (packer_->Fit(static_cast<int>(o), pack_class) > 0) {
        variants_[p] = pack_class;
        break;
      }
    }
  }
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
