// Demands for nodes that the planner's costs are judged by: generated ones, and the pods of the
// Alibaba traces. As the planner takes them, and as a problem for packing_bound.h.
//
// Generated demands follow from a seed alone. Their pods are of eight mixes (kMixes), their
// catalogue is the built-in one or, every third, a generated one.
//
// Shares of GPUs: the real rule is that pods fit on a device if their shares are one device at
// most. The bound uses consequences of it, which are amounts: the sum of the shares, and the sums
// of Fekete and Schepers' dual feasible functions of them (2001): u1 to u4 (a share above a half
// counts as a device, above a third as a half, and so on), and U with each threshold that tells the
// demand's shares apart (what is above the rest of a device counts as one, what is below the
// threshold as nothing). So the bound is valid for shares too.
//
// Thread-safety: pure but for files. Ownership: a demand keeps its catalogue and pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/planner/planner.h"
#include "tests/bench/packing_bound.h"

namespace fairlead::bench {

struct CostPods {  // equal pods
  int64_t cpu_milli = 0, memory_mib = 0;
  int64_t gpus = 0;                 // whole ones
  int64_t gpu_milli = 0;            // a share of one; 0: none
  std::vector<std::string> models;  // accepted GPU models; empty: every one
  int64_t count = 0;
  int64_t gang = 1;  // pods of one all-or-nothing unit
  friend auto operator<=>(const CostPods&, const CostPods&) = default;
};

struct CostDemand {
  std::string name, mix;
  std::shared_ptr<const hook::Catalog> catalog;
  std::shared_ptr<const model::NodePool> pool;
  std::vector<CostPods> pods;  // each fits some type
  int64_t left_out = 0;        // pods that fit no type
  [[nodiscard]] int64_t Pods() const;
};

inline constexpr int64_t kMib = int64_t{1} << 20;
inline constexpr const char* kMixes[] = {"services", "training", "inference", "memory",
                                         "models",   "large",    "batch",     "everything"};

CostDemand GeneratedDemand(uint64_t seed);

// The pods of a trace on the built-in catalogue: all, and in pieces of so many by arrival. Accepted
// models of the trace are mapped to models of the catalogue. Empty if the file cannot be read.
std::vector<CostDemand> TraceDemands(const std::string& file, const std::string& name,
                                     int64_t piece);
// $FAIRLEAD_SHARED/data/openb, or ../shared/data/openb; nullopt if there is no such folder.
std::optional<std::string> TraceFolder();

// What the planner plans for; the offers point into the demand's catalogue and pool.
hook::Demand DemandOf(const CostDemand& demand);
std::vector<hook::Offer> OffersOf(const CostDemand& demand);

// One type per instance type with a price, in the catalogue's order; classes as `pods`.
PackingProblem ProblemOf(const CostDemand& demand);
std::vector<const hook::InstanceType*> TypesOf(const CostDemand& demand);

}  // namespace fairlead::bench
