// Shared by the tests of the planner: inputs of a plan, and what a node of a type holds, reckoned
// apart from the code.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/hook_testing.h"
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/planner.h"

namespace fairlead::hook::testing {

// When what rests is offered again.
inline const absl::Time kRestsUntil = absl::FromUnixSeconds(100);

// All that the catalogue has in these pools is on offer; in the zones `resting` only after a
// stock-out. Demand and catalogue have to outlive the result.
inline PlanInput InputOf(const Catalog& catalog, const std::vector<const model::NodePool*>& pools,
                         const Demand& demand, const std::set<std::string>& resting = {}) {
  PlanInput input;
  input.demand = &demand;
  for (Offer& offer : MakeOffers(Catalogs(&catalog), pools)) {
    if (resting.contains(offer.zone)) {
      input.resting.push_back({offer, kRestsUntil, FailureClass::kStockout});
    } else {
      input.offers.push_back(offer);
    }
  }
  return input;
}

// Whether a whole node of the type has room for so many pods of each class.
inline bool Holds(const InstanceType& type, const std::vector<verdict::DemandClass>& classes,
                  const std::vector<int64_t>& counts) {
  int64_t cpu = 0, memory = 0, gpu = 0, pods = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    const model::ResourceList& requests = classes[c].spec->requests;
    cpu += counts[c] * model::Get(requests, model::kCpuName);
    memory += counts[c] * model::Get(requests, model::kMemoryName);
    gpu += counts[c] * model::Get(requests, model::kGpuName);
    pods += counts[c];
  }
  return cpu <= type.cpu_milli && memory <= type.memory_bytes && gpu <= type.gpu_count * 1000 &&
         pods <= type.max_pods;
}

}  // namespace fairlead::hook::testing
