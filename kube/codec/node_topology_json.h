// What KAI's annotations say about the NUMA nodes of a pod.
// Thread-safety: pure function.
#pragma once

#include <vector>

#include "scheduler/model/node_topology.h"

namespace fairlead::kube {

// The observed annotation if it can be read, else the predicted one. A text that is no list of
// {zone, amount} is none, as for KAI: it may be of an agent that we do not know.
std::vector<model::ZoneAmounts> ReadNumaZones(const model::StringMap& annotations);

}  // namespace fairlead::kube
