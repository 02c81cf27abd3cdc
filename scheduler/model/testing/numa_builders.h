// NUMA nodes for tests. Header only; never part of the product.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/node_topology.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::model::testing {

// NUMA nodes "zone-0" and on, each with so many cores, aligned by pod.
inline NodeResourceTopology MakeNodeTopology(absl::string_view node,
                                             const std::vector<int64_t>& cores,
                                             NumaPolicy policy = NumaPolicy::kSingleNumaNode) {
  NodeResourceTopology topology;
  topology.meta.name = std::string(node);
  topology.meta.uid = absl::StrCat("uid-", node);
  topology.policy = policy;
  topology.scope = NumaScope::kPod;
  for (const int64_t count : cores) {
    const ResourceList amounts = {{"cpu", 1000 * count}};
    topology.zones.push_back({absl::StrCat("zone-", topology.zones.size()), amounts, amounts});
  }
  return topology;
}

// A pod of QoS class Guaranteed.
inline Pod MakeGuaranteed(PodBuilder pod, int64_t cores) {
  Pod made = pod.Cpu(1000 * cores);
  made.spec.guaranteed = true;
  return made;
}

// The same with so many cores of a NUMA node.
inline Pod OnZone(Pod pod, absl::string_view zone, int64_t cores) {
  pod.numa_zones.push_back({std::string(zone), {{"cpu", 1000 * cores}}});
  return pod;
}

}  // namespace fairlead::model::testing
