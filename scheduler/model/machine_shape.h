// Equal machines as the configuration describes them: what they have, what they cost, and by which
// labels their nodes are known. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

struct MachineShape {
  // What its nodes have: a type of the catalogue, or amounts.
  std::string instance_type;
  ResourceList allocatable;
  StringMap labels;
  std::vector<Taint> taints;
  std::string zone;
  std::optional<int64_t> price_micro_usd_per_hour;
  StringMap node_selector;  // its nodes have these labels, and no others have them all
  friend bool operator==(const MachineShape&, const MachineShape&) = default;
};

}  // namespace fairlead::model
