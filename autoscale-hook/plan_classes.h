// The pod classes of a demand as the packer sees them: pods with equal specs are one spec class; a
// spec class that is bound to zones becomes one pack class per zone.
//
// Thread-safety: none. Ownership: keeps the placement; the demand must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/packing.h"

namespace fairlead::hook {

class PlanClasses {
 public:
  PlanClasses(const Demand& demand, const std::vector<Offer>& offers, Placement& placement);

  [[nodiscard]] size_t size() const { return specs_.size(); }
  [[nodiscard]] int IndexOf(const model::PodSpec& spec) const;
  [[nodiscard]] int SpecClassOf(int pack_class) const { return spec_of_[pack_class]; }
  // On some offer.
  [[nodiscard]] bool Fits(int spec_class) const { return !variants_[spec_class].empty(); }
  // Pods by spec class -> pods by pack class.
  [[nodiscard]] std::vector<int64_t> Split(const std::vector<int64_t>& counts) const;
  [[nodiscard]] Packer& packer() const { return *packer_; }

 private:
  void AddSpec(const std::shared_ptr<const model::PodSpec>& spec);

  std::vector<std::shared_ptr<const model::PodSpec>> specs_;
  absl::flat_hash_map<const model::PodSpec*, int> by_address_;  // never iterated
  absl::flat_hash_map<size_t, std::vector<int>> by_hash_;       // never iterated
  std::vector<int> spec_of_;                                    // by pack class
  std::vector<std::vector<int>> variants_;  // by spec class: pack classes that fit some offer
  std::unique_ptr<Packer> packer_;
};

}  // namespace fairlead::hook
