// Cheapest nodes for a multiset of pod classes: variable-cost vector bin packing on classes, never
// on single pods, so that 50,000 pods of five classes cost as much as 50.
//
// Three constructions are tried, the first two are improved, and the cheapest plan is taken:
//   per class  Classes in descending price per pod. Each first fills room left on chosen nodes,
//              then buys by an exact minimum-cost covering of its count (unbounded knapsack over
//              "this node holds f pods at price p"; past 4 fmax pods the bulk goes to the best
//              price per pod). Exact for one class: it sees that 8 small nodes may be cheaper than
//              one big, or equal.
//   mixed      Repeatedly the filling of a node with the greatest (sum of its pods' cheapest price
//              per pod) / price (Eva, EuroSys'25: reservation prices), replicated as often as the
//              counts allow.
//   prices     Fillings of nodes and prices of pods by column generation on the linear program of
//              all fillings (packing_prices.cc), then whole nodes by diving: what the program uses
//              once or more is bought, then what it uses most, and the rest is solved again.
//   improve    Take up to three nodes out and pack their pods again: into room left elsewhere, onto
//              one cheaper node, or by either construction. Kept if cheaper; repeated until nothing
//              helps or a fixed number of fit questions is spent (a count, not a time: the plan is
//              deterministic).
//
// Of a reservation only some machines are left. The linear program has no such bounds: what `per
// class` and `mixed` put onto reserved machines stays there, and the rest is planned by prices.
//
// Pods that have to share one node are a class of their own, counted in units: as many of a unit
// fit as Placement lets pods of all its kinds onto the node one after another. Only other
// units are planned beside a unit: a workload that is served before it might take its place, if it
// has no other. A class may be confined to some of the offers.
//
// Fit questions go to Placement::CountThatFit, remembered per (type, pool, zone where it can
// matter, load, class). Pods that ask for amounts of resources alone are counted by arithmetic
// (node_amounts.h) once the placement has said the same of them on an empty node; each kind of node
// of the finished plan is put to the placement, and if it refuses one, its classes are never
// reckoned again and the plan is made anew. Order among equals: price, GPUs, nodes, then the order
// of the offers.
// Sources: facts section 7. Complexity: O(classes * offers) fit questions to construct, then at
// most kImproveBudget to improve.
//
// Thread-safety: none. Ownership: keeps references to the placement and the offers' types and
// pools.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/planner/caps.h"
#include "autoscale-hook/planner/node_amounts.h"
#include "autoscale-hook/planner/placement.h"

namespace fairlead::hook {

struct PackClass {
  std::shared_ptr<const model::PodSpec> spec;
  // Offers that may be used, by index; null: all.
  std::shared_ptr<const std::vector<bool>> offers = nullptr;
  // Pods that share a node and are counted as one; then there is no `spec`.
  std::vector<Placement::Load> unit = {};
};

// (class, pods of it), ascending by class, no zero.
using Load = std::vector<std::pair<int, int64_t>>;

// Some equal nodes with equal loads.
struct NodeGroup {
  int offer = 0;
  Load load;
  int64_t nodes = 0;
};

enum class Objective : uint8_t { kPrice, kGpusThenPrice };

// Compared in this order. `weighted` is the price of choice (Offer), or GPUs and that price in one
// number.
struct PackCost {
  int64_t weighted = 0, gpus = 0, nodes = 0;
  friend auto operator<=>(const PackCost&, const PackCost&) = default;
};

struct Packing {
  std::vector<NodeGroup> groups;  // sorted by offer, then load
  std::vector<int64_t> unplaced;  // by class: no offer, or a cap
  PackCost cost;
  int64_t price_micro_usd_per_hour = 0;
  int64_t price_of_choice = 0;  // Offer::PriceOfChoice
  [[nodiscard]] bool Complete() const;
};

class Packer {
 public:
  Packer(std::vector<PackClass> classes, std::vector<Offer> offers, Placement& placement);
  ~Packer();

  // `counts` by class. Never buys more than `caps` allow.
  Packing Pack(const std::vector<int64_t>& counts, const CapsLeft& caps, Objective objective);

  // Pods of the class may use these offers alone. Before anything is asked about the class.
  void Confine(int pod_class, std::shared_ptr<const std::vector<bool>> offers) {
    classes_[static_cast<size_t>(pod_class)].offers = std::move(offers);
  }
  // One class more; its index. What was asked so far stays remembered.
  int AddClass(PackClass pod_class);

  [[nodiscard]] const std::vector<Offer>& offers() const { return offers_; }
  // Of the node that it would become; without those that come from its name.
  [[nodiscard]] const model::StringMap& labels(int offer) const {
    return nodes_[static_cast<size_t>(offer)].meta.labels;
  }
  // Pods of the class on an empty node of the offer.
  int64_t Fit(int offer, int pod_class) { return CountOn(offer, {}, pod_class, kPerNodeLimit); }
  // The pods of a load, as the placement knows them.
  [[nodiscard]] std::vector<Placement::Load> PodsOf(const Load& load) const;
  // How many of the pods, taken in their order, an empty node of the offer holds together.
  int64_t FitTogether(int offer, const std::vector<Placement::Load>& pods);
  // Questions that went to Placement, for tests of the cost.
  [[nodiscard]] int64_t questions() const { return questions_; }

 private:
  struct Budget;
  class Run;
  class Prices;
  static constexpr int64_t kPerNodeLimit = 1024;
  static constexpr int64_t kUnitsPerNode = 64;

  int64_t CountOn(int offer, const Load& load, int pod_class, int64_t limit);
  int64_t Ask(int offer, const Load& load, int pod_class);
  // Whether amounts say what fits of the class, on nodes with the taints, or labels, of the offer.
  bool Reckoned(int offer, int pod_class);
  void AddAmounts(const PackClass& pod_class);
  // False: the placement refuses a node of the packing. Its classes are not reckoned any more.
  bool Confirm(const Packing& packing);
  int64_t CountUnits(int offer, std::vector<Placement::Load> already,
                     const std::vector<Placement::Load>& unit);

  std::vector<PackClass> classes_;
  std::vector<Offer> offers_;
  Placement& placement_;
  std::vector<model::Node> nodes_;         // usable template by offer
  std::vector<int> shape_;                 // by offer: (type, pool)
  std::vector<bool> zone_matters_;         // by class
  std::vector<std::vector<int64_t>> fit_;  // [offer][class], -1: not asked yet
  NodeAmounts amounts_;
  std::vector<int> tainted_;     // by offer: which of the different lists of taints it has
  std::vector<FitsBy> fits_by_;  // by class
  enum class Reckoning : uint8_t { kUnknown, kYes, kNo };
  // [class][list of taints, or offer where labels decide]
  std::vector<std::vector<Reckoning>> reckoned_;

  struct Question {
    int64_t node = 0;  // a shape, or an offer where the zone can matter
    int pod_class = 0;
    Load load;
    friend bool operator==(const Question&, const Question&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Question& q) {
      return H::combine(std::move(h), q.node, q.pod_class, q.load);
    }
  };
  absl::flat_hash_map<Question, int64_t> answers_;  // never iterated
  struct LastPack {
    bool valid = false;
    std::vector<int64_t> counts;
    CapsLeft caps;
    Objective objective = Objective::kPrice;
    Packing packing;
  };
  LastPack last_pack_;
  bool has_units_ = false;
  int64_t questions_ = 0;
  int64_t lookups_ = 0;
};

}  // namespace fairlead::hook
