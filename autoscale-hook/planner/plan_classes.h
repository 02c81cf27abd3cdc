// The pod classes of a demand as the packer sees them: pods with equal specs are one spec class.
// Pods that a topology confines to some of the offers, or to one node together, are plan classes
// besides; the spec classes come first. Pods with bonds (plan_bonds.h) fit nowhere here.
//
// Levels. Pods that name several GPU models in order (instance-gpu-skus) are bought the first of
// them that can be had. The models with offers on which the pods fit are the levels of their spec
// class, best first. A class with fewer levels than the item that asks stays at its last one; one
// without an order has a single level.
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
  // At least 1.
  [[nodiscard]] int Levels(int spec_class) const;
  // All pods of a spec class at a level.
  [[nodiscard]] int AtLevel(int spec_class, int level) const;
  // Some offer has this rank (WishRank) for pods of the class.
  [[nodiscard]] bool HasRank(int spec_class, int rank) const;
  // Some offer with the GPU model of this rank would hold pods of the class.
  [[nodiscard]] bool FitsRank(int spec_class, int rank) const;
  // Those of the offers (indexes, ascending) that may be bought for the spec class at the level.
  [[nodiscard]] std::vector<int> Admitted(int spec_class, int level, std::vector<int> offers) const;
  // Pods of a spec class on these offers alone (indexes, ascending), all of them Admitted(). The
  // same again: the same class.
  int Confined(int spec_class, const std::vector<int>& offers);
  // These pods on one node of these offers, counted as one. All offers are Admitted() for each.
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
  // A GPU model that is to be had: the offers with it, and the pods of the class on these.
  struct Level {
    int rank = 0;
    int plan_class = 0;
    std::vector<int> offers;
  };

  void AddSpec(const std::shared_ptr<const model::PodSpec>& spec);
  void ConfineToWishes(int spec_class);
  void AddLevels(int spec_class);
  int AddConfined(PackClass pack_class, const std::vector<int>& offers, int64_t pods);

  std::vector<std::shared_ptr<const model::PodSpec>> specs_;
  absl::flat_hash_map<const model::PodSpec*, int> by_address_;  // never iterated
  absl::flat_hash_map<size_t, std::vector<int>> by_hash_;       // never iterated
  std::vector<int> plan_of_;                                    // by pack class
  std::vector<int> variants_;     // by plan class: its pack class, -1 if that fits no offer
  std::vector<int64_t> pods_of_;  // by plan class
  // By spec class with wishes that offers are measured by: the rank of each offer (WishRank), and
  // its levels, if it names several models.
  std::map<int, std::vector<int>> ranks_;
  std::map<int, std::vector<Level>> levels_;
  // Plan classes by what they are made of: (spec class, pods) each, and the offers.
  std::map<std::pair<std::vector<std::pair<int, int64_t>>, std::vector<int>>, int> confined_;
  std::unique_ptr<Packer> packer_;
};

}  // namespace fairlead::hook
