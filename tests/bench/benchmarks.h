// The benchmarks, one function each; main.cc names them, docs/performance.md describes them.
#pragma once

#include "tests/bench/harness.h"

namespace fairlead::bench {

// decisions_bench.cc
void Placements1k(Run& run);
void Placements20k(Run& run);
void Fill500x8(Run& run);
void Queued320k(Run& run);
void IdleCycle(Run& run);
void PendingFull2000(Run& run);
void PendingDepth5000(Run& run);

// affinity_bench.cc
void Affinity5k(Run& run);
void AntiAffinity5k(Run& run);
void ZoneSpread5k(Run& run);
void HostSpread5k(Run& run);

// upstream_bench.cc
void Upstream5k(Run& run);

// many_sizes_bench.cc
void ManySizes5k(Run& run);
void ManySizesReclaim(Run& run);

// remote_plugin_bench.cc
void RemotePlugin1k(Run& run);

// heaps_bench.cc
void Heaps(Run& run);

// growth_bench.cc
void GrowthWithNodes(Run& run);
void GrowthWithFill(Run& run);

// reclaim_bench.cc
void ReclaimCycle500(Run& run);
void ReclaimPaced1000(Run& run);
void ReclaimGang100Nodes(Run& run);
void HopelessGang(Run& run);

// memory_bench.cc
// Starts itself again: `fairlead-bench --child memory_5k_100k`; the child prints the figures that
// the parent reads. `groups`: of the twin, `--child memory_5k_100k/groups`.
void Memory5k100k(Run& run);
void Memory5k100kChild(bool groups);
void DecodePods100k(Run& run);  // the same way
void DecodePods100kChild(bool groups);

// scale_bench.cc
void Scale100k(Run& run);  // the same way
void Scale100kChild(bool groups);

// hook_bench.cc
void VerdictToRequest(Run& run);
void DemandCapped20k(Run& run);
void Plan51k(Run& run);

// hook_step_bench.cc
void HookStep10kNodes(Run& run);

// plan_bound_bench.cc
void PlanCostOverBound(Run& run);
void PlanCostOverBoundOfTraces(Run& run);

// plan_month_bench.cc
void PlanMonth(Run& run);

// plan_speed_bench.cc
void Plan50kPods1000Types(Run& run);
void Plan20kMixed400Types(Run& run);

// Against a real API server: bind_rate_bench.cc, live_reclaim_bench.cc, api_bench.cc
void BindRate(Run& run);
void EndToEndReclaim(Run& run);
void EndToEndVerdictToRequest(Run& run);

}  // namespace fairlead::bench
