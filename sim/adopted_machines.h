// The machines behind the NodeRequests of a real cluster, as the simulated provider takes them
// over.
//
// A request with a usable node has its machine. One whose node is not usable yet (launched, or
// registered and not ready) counts as ordered now: its node is left out and the request is pending
// again, so the provider brings it after the usual time. A request without a node that should have
// one has lost its machine.
//
// Thread-safety: none. Complexity: O(objects).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::sim {

class AdoptedMachines {
 public:
  AdoptedMachines(absl::Time now, const std::vector<model::Object>& objects);

  // False: the object is left out. Sets requests that are ordered anew back to pending.
  bool Keep(model::Object& object) const;

  struct Machine {
    std::string request, instance_type, node;
  };
  // By the names of their requests.
  [[nodiscard]] const std::vector<Machine>& machines() const { return machines_; }

 private:
  absl::Time now_;
  std::vector<Machine> machines_;
  std::set<std::string> reordered_, left_out_;  // requests; nodes
};

}  // namespace fairlead::sim
