// What the hook needs of the scheduler: would these pods really go there? Implemented by the
// engine's Hypothesis over ClusterState (core/engine_placement.h), so that the plan is made with
// the same filters and the same accounting as the binding will be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
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
  // From now on what was found out about such pods is kept until a mark before this is rolled back
  // to. Place() and the others keep it until a mark before their first call.
  virtual void Know(const std::shared_ptr<const model::PodSpec>& spec) = 0;
  // A planned node; its number, counted from 0. It needs no name.
  virtual int AddNode(const model::Node& node) = 0;
  // As many of the pods as fit on the planned node one after another, at most `count`; they stay.
  virtual int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                        int64_t count) = 0;
  // The same on all planned nodes but those that `passed_over` is true for, and on all present
  // ones: each pod takes the node that the scheduler would choose for it. (node, pods), in the
  // order of use.
  virtual std::vector<std::pair<int, int64_t>> PlaceBest(
      const std::shared_ptr<const model::PodSpec>& spec, int64_t count,
      absl::FunctionRef<bool(int)> passed_over) = 0;
  // Place() places no more than this on the planned node, at most `limit`: by the node and what is
  // on it alone.
  virtual int64_t MostThatFit(const std::shared_ptr<const model::PodSpec>& spec, int node,
                              int64_t limit) = 0;
  // What other nodes refuse a pod on a planned node they refuse on each with the same values of
  // these labels, as long as nothing is on it. Ascending. None: not known.
  virtual std::optional<std::vector<std::string>> DomainLabels(
      const std::shared_ptr<const model::PodSpec>& spec) = 0;
  // It is other nodes alone that refuse a further pod on the planned node.
  virtual bool OthersRefuse(const std::shared_ptr<const model::PodSpec>& spec, int node) = 0;
  // Why the planned node takes no further pod, in the words of the filter that refuses; "" if it
  // does.
  virtual std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) = 0;
  // Back to a mark; nodes that were added since are gone.
  [[nodiscard]] virtual size_t Mark() const = 0;
  virtual void RollbackTo(size_t mark) = 0;
  // What was asked so far has cost: evaluations of a pod's filters on a node, and what costs as
  // much. It depends on the questions alone.
  [[nodiscard]] virtual int64_t work() const = 0;
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
