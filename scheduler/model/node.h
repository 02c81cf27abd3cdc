// A node as the scheduler sees it. Thread-safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

struct Node {
  ObjectMeta meta;
  std::string provider_id;
  ResourceList allocatable;  // base units, with "pods"
  std::vector<Taint> taints;
  bool unschedulable = false;
  bool ready = true;  // condition Ready is True
  // The conditions that keep pods away and are True (MemoryPressure, DiskPressure, PIDPressure,
  // NetworkUnavailable).
  std::vector<std::string> bad_conditions;
  std::string invalid;  // as in Pod; no pod is placed on such a node
};

}  // namespace fairlead::model
