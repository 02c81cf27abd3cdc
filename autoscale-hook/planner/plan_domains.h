// In which domains nodes are bought for pods that a topology binds together.
//
// What is known of a node before it exists are the labels of its template (catalog.h): zone,
// instance type, those of the type and of its pool. Offers with equal values of a rule's labels are
// one domain; an offer whose node would lack one of them is outside, as the engine has it. A label
// that only the node's name gives it (host name) makes one domain of each node: pods of such a rule
// are planned as one unit that has to fit on one node.
//
//   choices    Of each rule, inside the domain that was chosen for the rule around it: the domains
//   of
//              its preferred level (narrow), and those of its required level, or all offers inside
//              if there is none.
//   room       In the domain with room for some of the pods (verdict::DomainRoom) the others alone
//              are planned for.
//   choosing   The cheapest choice with which everything asked for can be bought beside what is
//              taken already; among equals the narrow one, then GPUs, nodes, the order of offers.
//              Rules inside a rule choose one after another; equal ones together if one domain can
//              take them all, else one by one. A choice is always right; it is the cheapest for one
//              rule, and a heuristic for several.
//
// An item that cannot be planned for exactly (its pods also attract, avoid or spread over other
// labels) has no choice, and WhyNone() says so.
//
// Thread-safety: none. Ownership: keeps the classes and points into the demand. Complexity: one
// packing a choice, kMaxPackings in all; equal items are read and chosen for once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/packing.h"
#include "autoscale-hook/planner/plan_classes.h"

namespace fairlead::hook {

// What an item asks for of one plan class.
struct Wish {
  int plan_class = 0;
  int64_t count = 0;  // still asked for: classes that fit nothing are taken out
  int64_t min = 0;
  int64_t taken = 0;
};

class PlanDomains {
 public:
  using Counts = std::vector<int64_t>;
  using Pack = std::function<Packing(const Counts&)>;
  enum class Extent : uint8_t { kAll, kMinimum };
  static constexpr int kMaxPackings = 2000;

  explicit PlanDomains(PlanClasses& classes);
  ~PlanDomains();

  // Files the classes that plans for the item can need, at a level of its pods (plan_classes.h);
  // equal items get equal numbers at a level. Every item is read before the first is chosen for.
  int Read(const DemandItem& item, int level = 0);
  // What to buy for the item beside `taken`. kMinimum: so that at least its minimum can be bought,
  // with as many of the others asked for as may join it there. Absent: no choice can be bought
  // whole.
  std::optional<std::vector<Wish>> Choose(int number, Extent extent, const Counts& taken,
                                          const Pack& pack);
  // Nothing can be planned for it, whatever is on offer.
  [[nodiscard]] bool Refuses(int number) const;
  // For an item that has no choice at all: one clause for people.
  [[nodiscard]] std::string WhyNone(int number) const;
  // kMaxPackings were made: items without a choice were not tried to the end.
  [[nodiscard]] bool spent() const { return packings_left_ <= 0; }

 private:
  class Tree;
  class Search;

  PlanClasses& classes_;
  std::vector<std::unique_ptr<Tree>> trees_;
  std::map<std::string, int> numbers_;  // by signature
  int packings_left_ = kMaxPackings;
};

}  // namespace fairlead::hook
