// The kubelets of all nodes, and two controllers that clean up after them. A bound pod starts, runs
// for as long as its annotation says, and terminates when it is deleted. A pod that reserves a
// shared GPU says which one it got (as its own program does). A pod on a node that does not exist
// is deleted (pod garbage collection, after its quarantine of 40 s).
//
// Ownership: borrows the queue and the server. Thread-safety: none, one thread.
#pragma once

#include <set>
#include <string>

#include "absl/time/time.h"
#include "sim/api_server.h"
#include "sim/event_queue.h"

namespace fairlead::sim {

// Whole seconds that the pod runs before it succeeds; absent: for ever.
inline constexpr char kRunSecondsAnnotation[] = "fairlead.dev/run-seconds";

struct KubeletOptions {
  absl::Duration start_delay = absl::Seconds(2);    // bound -> Running
  absl::Duration stop_delay = absl::Seconds(2);     // deleted -> gone
  absl::Duration orphan_delay = absl::Seconds(40);  // node gone -> pod gone
};

class Kubelets {
 public:
  Kubelets(EventQueue* queue, ApiServer* server, KubeletOptions options);

  // The pod runs already: it is not started again. Before the server has it.
  void Adopt(const model::Pod& pod);

 private:
  void OnPod(const model::Pod& pod);
  void OnNodeGone(const model::Node& node);
  void OnNodeReady(const model::Node& node);
  [[nodiscard]] std::string FreeDevice(const model::Pod& reservation) const;
  void Start(const std::string& key, const std::string& uid);
  void Finish(const std::string& key, const std::string& uid);
  void CollectOrphan(const std::string& key, const std::string& uid);

  EventQueue* queue_;
  ApiServer* server_;
  KubeletOptions options_;
  std::set<std::string> handled_, stopping_;  // uids of pods
  std::set<std::string> ready_nodes_;
};

}  // namespace fairlead::sim
