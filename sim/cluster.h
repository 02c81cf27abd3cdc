// A whole cluster in virtual time: API server, controllers, kubelets, provider, watches and the
// executor of the core's actions. It makes no decisions; core::DecisionLoop sees it like a real
// one.
//
//   cluster.Connect(sink);  loop: queue().RunUntil(t); Execute(loop.Step(t).actions)
//
// Ownership: owns all its parts. Thread-safety: none, one thread. Determinism: same calls, same
// seed, same events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sim/api_server.h"
#include "sim/cloud.h"
#include "sim/controllers.h"
#include "sim/event_queue.h"
#include "sim/executor.h"
#include "sim/faults.h"
#include "sim/kubelets.h"
#include "sim/manifests.h"
#include "sim/successors.h"
#include "sim/watch.h"

namespace fairlead::sim {

struct ClusterOptions {
  absl::Duration watch_delay = absl::Milliseconds(20);
  absl::Duration controller_delay = absl::Milliseconds(100);
  KubeletOptions kubelet;
  CloudOptions cloud;
  ExecutorOptions executor;
  FaultOptions faults;
};

// "Job/ns/name" or "Queue/name".
struct ObjectRef {
  std::string kind, key;
};
// InvalidArgument for an unknown kind or a wrong number of parts.
absl::StatusOr<ObjectRef> ParseObjectRef(absl::string_view text);

class Cluster {
 public:
  Cluster(const ClusterOptions& options, absl::Time start);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Takes over the objects of a real cluster, before anything else. Pods that run go on, bound ones
  // start; no pod ends by itself. A pod that is deleted comes back if the controller that owns it
  // would make it anew (successors.h). A machine without a usable node counts as ordered now, for
  // nothing tells how far it is. AlreadyExists if two objects have one name.
  absl::Status Adopt(std::vector<Object> objects);

  // Like `kubectl apply` and `kubectl delete`. AlreadyExists for a Pod or Node that exists.
  absl::Status Apply(const Manifest& manifest);
  absl::Status Delete(const ObjectRef& ref);
  absl::Status Scale(const ObjectRef& ref, int64_t replicas);

  // A decision loop (re)starts: requests of the former one happen now or never, and the new one is
  // sent everything.
  void Connect(Watch::Sink sink);
  // The process is dead: events go nowhere until Connect.
  void Disconnect();

  EventQueue& queue() { return queue_; }
  [[nodiscard]] const EventQueue& queue() const { return queue_; }
  ApiServer& server() { return server_; }
  [[nodiscard]] const ApiServer& server() const { return server_; }
  Cloud& cloud() { return cloud_; }
  [[nodiscard]] const Cloud& cloud() const { return cloud_; }
  Watch& watch() { return watch_; }
  Executor& executor() { return executor_; }
  Faults& faults() { return faults_; }
  // True if events or actions are in flight between the cluster and the loop.
  [[nodiscard]] bool Busy() const { return watch_.in_flight() + executor_.in_flight() > 0; }

 private:
  absl::Status ApplyObject(const Object& object);

  EventQueue queue_;
  Faults faults_;
  ApiServer server_;
  Controllers controllers_;
  Kubelets kubelets_;
  Successors successors_;
  Cloud cloud_;
  Watch watch_;
  Executor executor_;
};

}  // namespace fairlead::sim
