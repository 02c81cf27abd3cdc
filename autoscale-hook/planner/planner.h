// Demand and offers -> the nodes to buy and what becomes of every item.
//
// Everything is bought for together at the lowest price (packing.h). Where a cap does not let all
// of it be bought, the queue order decides: the longest run of items that fits under the caps
// is taken, then the first item that does not is left out (a gang) or cut (single pods), and the
// rest is tried again behind it; a later item may so be served where an earlier, larger one cannot
// be. Atomic items are all or nothing; of others at least each class's min_count.
//
// Items whose pods depend on pods of other nodes (affinity, spread) are planned on a rehearsal of
// the whole plan (plan_bonds.h): first alone, for what they take of the caps in the order of
// service; then once more beside everything else that is bought, where they use what is left on
// those nodes. Where nothing is capped the first of the two is left out.
//
// Pods that a topology binds together are planned in the domains that are the cheapest for their
// item alone (plan_domains.h). An item that does not fit there under the caps, beside what is taken
// before it, is tried in others, whole or with its minimum, before it is left out.
//
// Pods that share a ResourceClaim are planned as pods that a topology binds to one node
// (shared_claims.h).
//
// An item of several members is tried as that many items of one member would be, without making
// them: members that get nodes are the first ones, and have an outcome each.
//
// Complexity: one packing where no cap binds, and those of plan_domains.h and the questions of
// plan_bonds.h for items with a topology or bonds; O(log items) packings per item that a cap leaves
// out, of which at most kMaxLeftOut are looked for (the rest is left out unseen). Deterministic.
// Thread-safety: pure but for the placement's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/planner/caps.h"
#include "autoscale-hook/planner/placement.h"
#include "autoscale-hook/provisioning/failure.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {

inline constexpr int kMaxLeftOut = 32;
// What a plan for items with bonds may cost (Rehearsal::work).
inline constexpr int64_t kMaxBondWork = 2'000'000;
inline constexpr char kNextStep[] = "more nodes are requested in the next step";

struct PlanInput {
  const Demand* demand = nullptr;
  std::vector<Offer> offers;  // may be bought now
  struct UnavailableOffering {
    Offer offer;
    absl::Time until;
    FailureClass failure;
    std::string message = {};  // of the provider
  };
  std::vector<UnavailableOffering> resting;  // may be bought again later
  CapsLeft caps;
  // Whose caps those of GPUs and cost are: "of queue q ", or nothing for those of the autoscaler.
  std::string gpu_cap_of, cost_cap_of;
  // At most so many nodes; a first gang that needs more gets them all the same.
  int64_t max_nodes = kNoBound;
  int64_t max_bond_work = kMaxBondWork;
};

struct PlannedNode {
  Offer offer;
  std::vector<std::pair<size_t, int64_t>> pods_of_item;  // (index in Plan::items, pods), ascending
};

struct ItemOutcome {
  verdict::Code code = verdict::Code::kInsufficientCapacity;
  std::vector<size_t> nodes;  // indexes in Plan::nodes
  std::vector<std::string> details;
  // Of nodes with another GPU model than the first that the pods name: which, and why. One clause.
  std::string alternative = {};
  size_t item = 0;      // index in the demand
  int64_t members = 1;  // of the item, behind those of the outcomes before; 1 if there are nodes
  bool selects_none = false;  // DemandOutcome::selects_none
  bool capped = false;  // it is a cap that leaves no nodes for it, beside the nodes of this plan
  bool open = false;    // whether there are nodes for it is decided in a later step
};

struct Plan {
  std::vector<PlannedNode> nodes;
  std::vector<ItemOutcome> items;      // as the demand; one for an item of one member
  bool more_next_step = false;         // max_nodes cut it
  std::optional<absl::Time> retry_at;  // unserved demand could be served then
  int64_t price_micro_usd_per_hour = 0;
  int64_t questions = 0;  // fit questions put to the placement
};

Plan MakePlan(const PlanInput& input, Placement& placement);

using model::FormatDollars;

}  // namespace fairlead::hook
