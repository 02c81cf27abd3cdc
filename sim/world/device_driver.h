// The driver of devices on all nodes: publishes a ResourceSlice for a node some moments after the
// node is there, and another generation of the slice when the devices change. The slice is removed
// some moments after its node, as garbage collection does.
//
// Ownership: borrows time and server. Thread-safety: none, one thread. Determinism: delays are
// drawn from the seed in the order of commits. Complexity: O(log n) a commit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

class DeviceDriver {
 public:
  DeviceDriver(EventQueue* time, ApiServer* server, uint64_t seed);

  // What the node has from now on; node "*": each node that is not named otherwise.
  void SetDevices(const std::string& node, int64_t count, std::vector<std::string> models);

 private:
  struct Devices {
    int64_t count = 0;
    std::vector<std::string> models;
  };
  void OnNode(const ApiServer::Commit& commit);
  void Wake(const std::string& node, absl::Duration delay);
  void Publish(const std::string& node);
  [[nodiscard]] const Devices* DevicesOf(const std::string& node) const;

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::map<std::string, Devices> devices_;      // by node, or "*"
  std::map<std::string, int64_t> generations_;  // by pool, also of nodes that are gone
};

}  // namespace fairlead::sim::world
