// The pod classes of a demand as the packer sees them: pods with equal specs are one spec class.
// Pods that a topology confines to some of the offers, or to one node together, are plan classes
// besides; the spec classes come first. Pods with bonds (plan_bonds.h) fit nowhere here.
//
// Thread-safety: none. Ownership: keeps the placement; the demand must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/packing.h"

namespace fairlead::hook {

class PlanClasses {
 public:
  PlanClasses(const Demand& demand, const std::vector<Offer>& offers, Placement& placement);

  // Plan classes: what counts are given by.
  [[nodiscard]] size_t size() const { return variants_.size(); }
  // The spec class of the pods.
  [[nodiscard]] int IndexOf(const model::PodSpec& spec) const;
  // Pods of a spec class on these offers alone (indexes, ascending). The same again: the same
  // class.
  int Confined(int spec_class, const std::vector<int>& offers);
  // These pods on one node of these offers, counted as one.
  int Unit(const std::vector<Placement::Load>& pods, const std::vector<int>& offers);

  [[nodiscard]] int PlanClassOf(int pack_class) const { return plan_of_[pack_class]; }
  // How many pods one of the class is.
  [[nodiscard]] int64_t PodsOf(int plan_class) const { return pods_of_[plan_class]; }
  // On some offer.
  [[nodiscard]] bool Fits(int plan_class) const { return variants_[plan_class] >= 0; }
  // Counts by plan class -> counts by pack class.
  [[nodiscard]] std::vector<int64_t> Split(const std::vector<int64_t>& counts) const;
  [[nodiscard]] Packer& packer() const { return *packer_; }

 private:
  void AddSpec(const std::shared_ptr<const model::PodSpec>& spec);
  int AddConfined(PackClass pack_class, const std::vector<int>& offers, int64_t pods);

  std::vector<std::shared_ptr<const model::PodSpec>> specs_;
  absl::flat_hash_map<const model::PodSpec*, int> by_address_;  // never iterated
  absl::flat_hash_map<size_t, std::vector<int>> by_hash_;       // never iterated
  std::vector<int> plan_of_;                                    // by pack class
  std::vector<int> variants_;     // by plan class: its pack class, -1 if that fits no offer
  std::vector<int64_t> pods_of_;  // by plan class
  // Plan classes by what they are made of: (spec class, pods) each, and the offers.
  std::map<std::pair<std::vector<std::pair<int, int64_t>>, std::vector<int>>, int> confined_;
  std::unique_ptr<Packer> packer_;
};

}  // namespace fairlead::hook
