// What the hook needs of the scheduler: would these pods really go there? Implemented by the
// engine's Hypothesis over ClusterState (core/engine_placement.h), so that the plan is made with
// the same filters and the same accounting as the binding will be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::hook {

// A whole plan tried out: planned nodes and the pods on them stand beside all that there is, until
// they are rolled back. A pod's labels are its spec's labels_for_affinity.
class Rehearsal {
 public:
  // Instead of the number of a planned node: one that there is or that is on order.
  static constexpr int kPresent = -1;

  virtual ~Rehearsal() = default;
  // A planned node; its number, counted from 0. It needs no name.
  virtual int AddNode(const model::Node& node) = 0;
  // As many of the pods as fit on the planned node one after another, at most `count`; they stay.
  virtual int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                        int64_t count) = 0;
  // The same on these planned nodes, and on all present ones if `present`: each pod takes the node
  // that the scheduler would choose for it. (node, pods), in the order of use.
  virtual std::vector<std::pair<int, int64_t>> PlaceBest(
      const std::shared_ptr<const model::PodSpec>& spec, int64_t count,
      const std::vector<int>& nodes, bool present) = 0;
  // Why the planned node takes no further pod, in the words of the filter that refuses; "" if it
  // does.
  virtual std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) = 0;
  // Back to a mark; nodes that were added since are gone.
  [[nodiscard]] virtual size_t Mark() const = 0;
  virtual void RollbackTo(size_t mark) = 0;
};

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
  // Null if whole plans cannot be tried out here: then nothing is planned for pods with bonds
  // (plan_bonds.h). Nothing may change while it is open.
  virtual std::unique_ptr<Rehearsal> Rehearse() = 0;
};

}  // namespace fairlead::hook
