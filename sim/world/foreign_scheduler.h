// Another scheduler in the same cluster: binds pods of schedulerName default-scheduler onto any
// node that is ready, without taints, and has room as far as it knows. It decides, and binds a
// moment later without looking again: also onto a node that has been tainted in between. It may
// race Fairlead's removal taint, and win: a pod is bound right before the taint is written.
//
// Ownership: borrows time and server. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"

namespace fairlead::sim::world {

// Binds the pod as another scheduler does, unless it terminates, or is not the one of that uid (if
// one is given).
void BindAs(ApiServer* server, absl::string_view actor, const std::string& ns,
            const std::string& name, absl::string_view uid, const std::string& node);

class ForeignScheduler {
 public:
  ForeignScheduler(EventQueue* time, ApiServer* server, uint64_t seed);
  // Between its decision and its binding, at most.
  void SetLag(absl::Duration lag) { lag_ = lag; }
  void RaceUntil(absl::Time until) { race_until_ = until; }

 private:
  void Race(const kube::HttpRequest& request);
  void Decide(const std::string& ns, const std::string& name);
  void Bind(const std::string& ns, const std::string& name, const std::string& node);

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  absl::Duration lag_ = absl::Milliseconds(20);
  absl::Time race_until_ = absl::InfinitePast();
  std::set<std::string> raced_;  // nodes
};

}  // namespace fairlead::sim::world
