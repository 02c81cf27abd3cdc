// What the hook needs of the scheduler before it empties a node that has pods: may they go, what is
// lost if they do, and would they find room? Implemented over ClusterState and the engine's
// Hypothesis (core/engine_evacuation.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/node.h"
#include "scheduler/model/resources.h"

namespace fairlead::hook {

// The pods of a node, without those that do not keep it (DaemonSets, static pods).
struct Occupants {
  std::string blocked_by;  // why they may not be moved now, in words; empty: they may
  int64_t staying = 0;     // that do not terminate yet
  // What evicting them costs, as time of the whole node: by pod, the part of the node that it takes
  // times what it would have to do again, and the time until it runs again.
  absl::Duration lost_work = absl::ZeroDuration();
};

class Evacuation {
 public:
  virtual ~Evacuation() = default;
  [[nodiscard]] virtual Occupants OccupantsOf(const std::string& node) = 0;
  // Whether the pods of these nodes, all together, would be placed on other nodes that are there,
  // with what is free now. False also if that is too much work to find out.
  [[nodiscard]] virtual bool FindRoom(const std::vector<std::string>& nodes) = 0;
  // What the pods of these nodes request together.
  [[nodiscard]] virtual model::ResourceList RequestsOf(const std::vector<std::string>& nodes) = 0;
  // Whether all pods of these nodes would be placed on one node like this, which does not exist and
  // has nothing else on it. False also if that is too much work to find out.
  [[nodiscard]] virtual bool FitOn(const std::vector<std::string>& nodes,
                                   const model::Node& node) = 0;
};

}  // namespace fairlead::hook
