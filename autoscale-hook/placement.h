// What the hook needs of the scheduler: whether pods would fit on a node. The engine implements it
// by hypothetical placement over ClusterState, so that planning uses the filters and the arithmetic
// of binding.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::hook {

class Placement {
 public:
  virtual ~Placement() = default;

  // How many pods of the class fit on an empty node like this beside `already` (pods of other
  // classes with their counts); 0 if the class may never use it. At most `limit`. The node needs no
  // name.
  struct Load {
    std::shared_ptr<const model::PodSpec> spec;
    int64_t count = 0;
  };
  virtual int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                               const std::shared_ptr<const model::PodSpec>& spec,
                               int64_t limit) = 0;
};

}  // namespace fairlead::hook
