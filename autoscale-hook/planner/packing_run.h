// The inside of Packer: one Pack call. Not for other files.
#pragma once

#include <map>
#include <vector>

#include "autoscale-hook/planner/packing.h"

namespace fairlead::hook {

// What may still be bought, by indexes instead of names.
struct Packer::Budget {
  int64_t nodes = kNoBound, gpus = kNoBound, micro_usd_per_hour = kNoBound;
  std::vector<int64_t> by_model, by_pool, by_reservation;
};

class Packer::Run {
 public:
  Run(Packer& packer, const std::vector<int64_t>& counts, const CapsLeft& caps,
      Objective objective);
  Packing Solve();

 private:
  // A part of the pods, with that budget.
  Run(const Run& whole, const std::vector<int64_t>& counts, Budget budget);
  friend class Packer::Prices;
  using Counts = std::vector<int64_t>;
  struct Draft {
    std::vector<NodeGroup> groups;
    Counts unplaced;
    Budget budget;
    PackCost cost;
  };
  enum class Construction : uint8_t { kPerClass, kMixed };

  [[nodiscard]] int64_t ValueOf(int pod_class) const;
  // ---- buying
  [[nodiscard]] int64_t MaxNodes(const Budget& budget, int offer) const;
  void Buy(Draft& draft, int offer, Load load, int64_t nodes) const;
  void GiveBack(Draft& draft, size_t group, int64_t nodes) const;
  [[nodiscard]] std::vector<int> ActiveOffers(const Budget& budget) const;
  const std::vector<int>& Active(const Budget& budget);
  // ---- construction (packing_build.cc)
  void Fill(Draft& draft, int pod_class, int64_t& count) const;
  void Cover(Draft& draft, int pod_class, int64_t count);
  struct Choice {
    int offer;
    int64_t fits;
  };
  [[nodiscard]] std::vector<std::pair<int, int64_t>> CoverChoices(
      const std::vector<Choice>& choices, int64_t count) const;
  void Construct(Draft& draft, Counts counts, Construction how);
  void ConstructMixed(Draft& draft, Counts& counts);
  [[nodiscard]] Load FillOne(int offer, const Counts& counts, int first_class) const;
  // ---- construction (packing_prices.cc)
  void TryPrices(Draft& best);
  void TryPricesBesideReserved(Draft& best);
  // ---- improvement (packing_improve.cc)
  void Improve(Draft& draft);
  bool ImproveOnce(Draft& draft);
  bool TryReplace(Draft& draft, const std::vector<size_t>& chosen);
  bool TrySingleNode(const Draft& without, const Counts& counts, Draft& best, int& chosen);
  void Normalise(Draft& draft) const;

  [[nodiscard]] int64_t Count(int offer, const Load& load, int pod_class, int64_t limit) const {
    return packer_.CountOn(offer, load, pod_class, limit);
  }
  [[nodiscard]] bool Better(const Draft& a, const Draft& b) const;

  Packer& packer_;
  const Counts& counts_;
  Budget budget_;
  std::vector<int> model_of_, pool_of_;  // by offer
  std::vector<int> reservation_of_;      // by offer; -1: it is not reserved
  std::vector<int64_t> weighted_;        // by offer
  std::vector<int64_t> value_milli_;  // by class: its cheapest weighted price per pod, times 1000
  std::vector<int> class_order_;      // dearest first
  std::vector<int> active_;
  bool active_known_ = false;
  int64_t lookups_end_ = 0;
};

// load + count pods of a class.
Load Plus(Load load, int pod_class, int64_t count);

}  // namespace fairlead::hook
