// Room for pods that are not there: what CapacityBuffers and ProvisioningRequests ask for, beside
// the pods that run and wait. It is looked for last, so that it takes nothing from a pod: on the
// nodes that there are and on those on order, with the pods that wait where they were promised to
// go. What finds none is the demand of the lowest order.
//
// Nodes on which it was found the last time are asked first, then all by name: so it stays where it
// is, and others can be emptied.
//
// Ownership: borrows the state; Step by step, no event and no cycle while Place() runs.
// Thread-safety: the owner's thread. Complexity: O(pods asked for), and O(nodes) filters for each
// class of pods that its former nodes do not hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscale-hook/demand.h"
#include "core/capacity_objects.h"
#include "core/engine_placement.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class Headroom {
 public:
  explicit Headroom(const state::ClusterState& state) : state_(state) {}

  // Looks for room anew.
  void Place(engine::Engine& engine, const EnginePlacement::Promises& promises,
             std::vector<CapacityAsk> asks);

  // Nodes that are not to be removed because of it.
  [[nodiscard]] const std::set<state::NodeId>& kept_nodes() const { return kept_; }
  // Appends what lacks room.
  void AppendDemand(hook::Demand& demand) const;
  // What the hook said about the demand (outcomes of it alone, in its order; none: it said nothing
  // new), for the objects.
  void Tell(const std::vector<hook::DemandOutcome>& outcomes, CapacityObjects& objects,
            absl::Time now);

  // Puts all pods that found room where they did, into a what-if that asks how much is free beside
  // them. False: not all of them fit there now.
  bool Occupy(engine::Hypothesis& what_if) const;

 private:
  struct Spot {
    std::shared_ptr<const model::PodSpec> spec;
    state::NodeId node;
    int64_t pods;
  };
  struct Placed {
    CapacityAsk ask;
    CapacityAnswer answer;
    std::vector<verdict::DemandClass> rest;
    std::vector<Spot> spots;
  };
  void PlaceOne(engine::Hypothesis& what_if, Placed& placed);
  // How many of `count` it places on the node.
  int64_t PutOn(engine::Hypothesis& what_if, const std::shared_ptr<const model::PodSpec>& spec,
                state::PodClassId pod_class, state::NodeId node, int64_t count,
                Placed& placed) const;

  const state::ClusterState& state_;
  std::vector<Placed> placed_;
  std::set<state::NodeId> kept_;
  std::map<std::string, std::set<std::string>> former_;  // by Name(): names of nodes
};

// The engine's demand and what lacks room, as the hook asks about its items.
class DemandWithHeadroom final : public hook::DemandMembers {
 public:
  // `engine_demand` has the first items.
  DemandWithHeadroom(const hook::DemandMembers& engine_demand, const hook::Demand& demand,
                     size_t engine_items)
      : engine_demand_(engine_demand), demand_(demand), engine_items_(engine_items) {}

  [[nodiscard]] std::vector<std::string> Names(size_t item, int64_t count) const override;
  [[nodiscard]] std::optional<size_t> Find(bool is_group,
                                           const std::string& workload) const override;

 private:
  const hook::DemandMembers& engine_demand_;
  const hook::Demand& demand_;
  const size_t engine_items_;
};

}  // namespace fairlead::core
