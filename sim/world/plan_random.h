// Plans made of a seed. A seed draws a cluster, its queues, the work of some minutes, and for each
// family of faults that may be used whether it is used; one seed in eight is tame.
//
//   network   lost, slow and refused requests           watch    GOAWAY, 410, watches that end
//   cloud     lies of the cloud, lost machines          foreign  another scheduler on our nodes
//   tenants   jobs and pods deleted, scaled, relabelled queues   changed, deleted, made again
//   groups    PodGroups changed, deleted, made late     hostile  amounts and names without sense
//   odd       pods that no node can ever take           nodes    cordoned, lost, unready, smaller
//   kubelet   pods that do not end, static pods         clock    wall clocks that jump, pauses
//   crash     processes that die, also at a write       lease    partitions of the leader
//   shares    parts of GPUs                             budgets  PodDisruptionBudgets
//   half-open dead connections that neither side closes
//   reload, stop, points, answers   plan_faults.h
//   names     names, texts and amounts at the limits of the API
//   labels    labels and GPUs of nodes change under pods that select them
//   bonds     pods that must be near others, apart, or spread
//   classes   PriorityClasses that come, go and change
//   devices   plan_devices.h; one world in four if many families are named
//   volumes   plan_volumes.h; one world in five if many families are named
//   capacity  plan_capacity.h; one world in four if many families are named
//   guests    plan_guests.h; one world in six if many families are named
//   shards    plan_shards.h; one world in eight if many families are named
//   kai-status  plan_kai.h; one world in five if many families are named
//   owners    plan_owners.h; one world in six if many families are named, not with guests or shards
//
// Thread-safety: pure functions. Determinism: same seed and families, same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

// All that there are, sorted.
const std::vector<std::string>& FaultFamilies();
// "network,watch", "all", "none", "all,-clock"; InvalidArgument names an unknown one.
absl::StatusOr<std::vector<std::string>> ParseFamilies(absl::string_view text);

Plan RandomPlan(uint64_t seed, const std::vector<std::string>& families);

}  // namespace fairlead::sim::world
