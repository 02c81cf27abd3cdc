// What the hook needs of the scheduler: would these pods really go there? Implemented by the
// engine's hypothetical placement over ClusterState, so that the plan is made with the same filters
// and the same arithmetic as the binding will be.
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
