#include "autoscale-hook/plan_classes.h"

#include <algorithm>
#include <set>

#include "absl/hash/hash.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

enum class ZoneRule : uint8_t { kAny, kSpread, kShared };

ZoneRule ZoneRuleOf(const model::PodSpec& spec) {
  for (const model::TopologySpreadConstraint& spread : spec.topology_spread) {
    if (spread.do_not_schedule && spread.topology_key == model::kZoneLabel)
      return ZoneRule::kSpread;
  }
  for (const model::PodAffinityTerm& term : spec.pod_affinity) {
    if (term.weight == 0 && term.topology_key == model::kZoneLabel &&
        term.selector.Matches(spec.labels_for_affinity)) {
      return ZoneRule::kShared;
    }
  }
  return ZoneRule::kAny;
}

}  // namespace

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
  for (const DemandItem& item : demand) {
    for (const verdict::DemandClass& pod_class : item.classes) {
      if (pod_class.spec != nullptr && pod_class.count > 0) AddSpec(pod_class.spec);
    }
  }
  std::set<std::string> zones;
  for (const Offer& offer : offers) zones.insert(offer.zone);
  std::vector<PackClass> pack_classes;
  for (size_t s = 0; s < specs_.size(); ++s) {
    if (ZoneRuleOf(*specs_[s]) == ZoneRule::kAny) {
      pack_classes.push_back({specs_[s], ""});
      spec_of_.push_back(static_cast<int>(s));
      continue;
    }
    for (const std::string& zone : zones) {
      pack_classes.push_back({specs_[s], zone});
      spec_of_.push_back(static_cast<int>(s));
    }
  }
  packer_ = std::make_unique<Packer>(pack_classes, offers, placement);
  variants_.resize(specs_.size());
  for (size_t p = 0; p < pack_classes.size(); ++p) {
    std::vector<int>& variants = variants_[spec_of_[p]];
    if (!variants.empty() && ZoneRuleOf(*pack_classes[p].spec) == ZoneRule::kShared) continue;
    for (size_t o = 0; o < offers.size(); ++o) {
      if (packer_->Fit(static_cast<int>(o), static_cast<int>(p)) > 0) {
        variants.push_back(static_cast<int>(p));
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

std::vector<int64_t> PlanClasses::Split(const std::vector<int64_t>& counts) const {
  std::vector<int64_t> split(spec_of_.size(), 0);
  for (size_t s = 0; s < counts.size(); ++s) {
    const auto parts = static_cast<int64_t>(variants_[s].size());
    for (int64_t i = 0; i < parts; ++i) {
      split[variants_[s][i]] = counts[s] / parts + (i < counts[s] % parts ? 1 : 0);
    }
  }
  return split;
}

}  // namespace fairlead::hook
