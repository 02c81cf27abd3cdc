// Pods that share a ResourceClaim have to share a node: one of them brings its devices along, the
// others join it there (model::PodSpec::claims_to_join). For a plan, items of which pods share an
// open claim are one item, at the place of the first of them, in which these pods are under a rule
// of one node (verdict::DomainRule), the one that brings the claim first.
//
// Left as they are: pods that join a claim that nobody of the demand brings (it is held on some
// node, or its pod is not demanded), which fit on no new node; and items that a topology binds.
//
// Thread-safety: none. Ownership: points into the demand. Complexity: O(pod classes), and for pods
// that join claims O(claims x pod classes).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/planner.h"

namespace fairlead::hook {

class SharedClaims {
 public:
  explicit SharedClaims(const Demand& demand);

  // Whether any pods share one.
  [[nodiscard]] bool any() const { return any_; }
  // As it is to be planned for.
  [[nodiscard]] const Demand& demand() const { return joined_; }
  // The plan for that, as one for the demand: what became of an item became of all that it stands
  // for, as far as there was room.
  [[nodiscard]] Plan Divide(Plan plan) const;

 private:
  struct Place {
    size_t item = 0, pod_class = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  // Pods that share claims: their classes, those that bring one first.
  struct Set {
    std::string claim;  // one of them, "ns/name"
    std::vector<Place> classes;
  };
  void FindSets();
  void Join();
  [[nodiscard]] DemandItem MakeItem(const std::vector<size_t>& items) const;
  [[nodiscard]] const verdict::DemandClass& At(const Place& place) const {
    return demand_[place.item].classes[place.pod_class];
  }

  const Demand& demand_;
  bool any_ = false;
  std::vector<Set> sets_;
  Demand joined_;
  // By item of the demand: the item of `joined_` that stands for it.
  std::vector<size_t> stands_for_;
};

}  // namespace fairlead::hook
