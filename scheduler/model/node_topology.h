// Which NUMA nodes a machine has, and what pods have of them.
//
// NodeResourceTopology (topology.node.k8s.io/v1alpha2, cluster-scoped) is named as its Node. An
// exporter on the machine writes it: policy and scope of the kubelet's Topology Manager, and the
// amounts of each NUMA node. A pod has no field for the NUMA nodes that it is on. KAI writes them
// as annotations: kai.scheduler/numa-placement-observed by an agent on the machine,
// kai.scheduler/numa-placement-predicted by the scheduler.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

// Of the kubelet's Topology Manager.
enum class NumaPolicy : uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };
// What is aligned as one: each container, or the pod.
enum class NumaScope : uint8_t { kContainer, kPod };

struct NumaZone {
  std::string name;  // "node-0"
  ResourceList allocatable;
  ResourceList available;  // what the exporter saw free; it lags
  friend bool operator==(const NumaZone&, const NumaZone&) = default;
};

struct NodeResourceTopology {
  ObjectMeta meta;
  NumaPolicy policy = NumaPolicy::kNone;
  NumaScope scope = NumaScope::kContainer;
  // Those of type "Node", in the order of the number at the end of their names; names without a
  // number follow, by name.
  std::vector<NumaZone> zones;
  std::string invalid;  // what is wrong with it; such a topology is none
};

// What a pod has of one NUMA node.
struct ZoneAmounts {
  std::string zone;
  ResourceList amounts;
  friend bool operator==(const ZoneAmounts&, const ZoneAmounts&) = default;
};
// The text of KAI's annotations: [{"zone": "node-0", "amount": {"cpu": "3"}}]. Empty if there are
// none.
std::string FormatNumaZones(const std::vector<ZoneAmounts>& zones);

}  // namespace fairlead::model
