// The third construction of Packer: fillings of nodes by column generation. Not for other files
// than packing*.cc.
//
// Prices of pods are the duals of a linear program over fillings (covering_lp.h); a filling that is
// worth more than its node costs joins the program, until none is found or the work is used up.
// Then a dive: whole nodes of the program's solution are bought, then one node of the filling that
// it uses most; the rest of the pods is solved again. Further dives begin with another filling.
//
// Shares of GPUs: the search for a filling knows sums of shares alone, and nearly half of the
// fillings that it finds for the Alibaba traces do not fit onto devices. A filling that does not
// fit is made to fit before the program gets it: what fits of it, filled up by value per size; then
// single pods are exchanged for others as long as the filling gains. Otherwise the program's prices
// follow fillings that no node can have, and a dive has to take them apart.
//
// The work is counted in elementary operations, not in time: the same input gives the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autoscale-hook/planner/covering_lp.h"
#include "autoscale-hook/planner/node_filler.h"
#include "autoscale-hook/planner/packing_run.h"

namespace fairlead::hook {

class Packer::Prices {
 public:
  explicit Prices(Run& run);

  // Until no better filling is found, from those of a plan that is known.
  void Generate(const Run::Draft& known);
  // Pods of a class that no filling holds stay out of it. The dives that the work allows, first
  // with the filling used most; null when there is no other, or no work left.
  std::optional<Run::Draft> Dive();
  // No plan costs less, as far as the fillings found say (they need not be all).
  [[nodiscard]] int64_t estimate() const { return estimate_; }

 private:
  struct Filling {
    int offer;
    Load load;
    CoveringLp::Column column;
  };
  void AddFilling(int offer, Load load);
  bool GenerateRound(int64_t max_steps);
  struct Found {
    double gain;
    int offer;
    Load load;
  };
  double FindFillings(size_t place, const std::vector<double>& duals, int64_t max_steps,
                      std::vector<Found>& found);
  // ---- fillings with shares of GPUs
  using Kinds = std::vector<NodeFiller::Kind>;
  [[nodiscard]] bool HasShares(const Load& load) const;
  [[nodiscard]] double WorthOf(const Load& load, const std::vector<double>& duals) const;
  Load FitOntoDevices(size_t place, const Load& wanted, const Kinds& kinds,
                      const std::vector<double>& duals, int max_exchanges);
  Load FillUp(size_t place, Load load, const Kinds& kinds, int without);
  bool ExchangeOne(size_t place, Load& load, const Kinds& kinds, const std::vector<double>& duals);
  [[nodiscard]] Load Refill(int offer, Load load);
  [[nodiscard]] Load Confirmed(int offer, const Load& load) const;
  bool BuyWhole(Run::Draft& draft);
  bool BuyOne(Run::Draft& draft, size_t skip);
  int64_t BuyUpTo(Run::Draft& draft, int offer, const Load& load, int64_t nodes);
  [[nodiscard]] bool Spent() const { return work_ >= work_end_; }

  Run& run_;
  std::vector<int> classes_;   // by row
  std::vector<int> row_of_;    // by class, -1: no row
  Run::Counts counts_, left_;  // by row
  std::vector<int> offers_;
  std::vector<NodeAmounts::Amounts> capacity_;  // by place in offers_
  std::vector<std::vector<int64_t>> fits_;      // by place in offers_, by row
  std::vector<Filling> fillings_;               // as the columns of lp_
  std::optional<CoveringLp> lp_;
  int64_t estimate_ = 0, work_ = 0, work_end_ = 0;
  size_t dives_ = 0;
};

}  // namespace fairlead::hook
