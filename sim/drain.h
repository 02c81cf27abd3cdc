// Empties nodes as `kubectl drain` does: their pods are evicted, and refused evictions are
// repeated.
//
// Not asked to go: pods that belong to their node, pods that have ended, and pods that an
// annotation keeps (model::MustStay), which `kubectl drain` would evict. The nodes have to be
// cordoned.
//
// Ownership: borrows the queue and the server. Thread-safety: none, one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/api_server.h"
#include "sim/api_writes.h"
#include "sim/event_queue.h"

namespace fairlead::sim {

class Drain {
 public:
  static constexpr absl::Duration kRetry = absl::Seconds(5);  // as kubectl

  Drain(EventQueue* queue, ApiServer* server, std::vector<std::string> nodes);

  // What became of each pod that was asked to go, by key.
  struct Outcome {
    std::string node;
    bool evicted = false;
    std::string refusal;  // the last one, if it was not evicted
  };
  [[nodiscard]] const std::map<std::string, Outcome>& outcomes() const { return outcomes_; }

 private:
  void Go();

  EventQueue* queue_;
  ApiServer* server_;
  ApiWrites writes_;
  std::vector<std::string> nodes_;
  std::map<std::string, Outcome> outcomes_;
};

}  // namespace fairlead::sim
