// The volume controller of a virtual cluster: a claim that a PersistentVolume refers to becomes
// bound to it (kube-controller-manager's persistentvolume-binder-controller, as far as statically
// made volumes and WaitForFirstConsumer need it). Binds at once, so that no pod is held in Reserve
// while nothing is in flight; the simulator's invariants know no such time.
//
// Ownership: borrows the queue and the server. Thread-safety: none, one thread.
#pragma once

#include "sim/api_server.h"
#include "sim/event_queue.h"

namespace fairlead::behaviours {

class VolumeBinder {
 public:
  VolumeBinder(sim::EventQueue* queue, sim::ApiServer* server);

 private:
  void BindAll();

  sim::EventQueue* queue_;
  sim::ApiServer* server_;
};

}  // namespace fairlead::behaviours
