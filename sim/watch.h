// Lists and watches over the simulated API server, with the contract of model::ClusterEvent: a list
// of every kind and its Synced first, then changes in order within a kind, delivered after a delay.
// A broken watch loses the changes meanwhile and then compares what it had sent with a new list.
// Pods also tell their Progress: after each list, and with each change of a node.
//
// Ownership: borrows everything. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "scheduler/model/cluster_event.h"
#include "sim/api_server.h"
#include "sim/event_queue.h"
#include "sim/faults.h"

namespace fairlead::sim {

class Watch {
 public:
  Watch(EventQueue* queue, ApiServer* server, Faults* faults, absl::Duration delay);

  using Sink = std::function<void(const model::ClusterEvent&)>;
  // Lists everything for a new consumer; events in flight to the former one are lost.
  void Start(Sink sink);
  void Stop();

  // The watch of one kind breaks now and lists again after `outage`.
  void Break(model::Kind kind, absl::Duration outage);
  // The answer to an action, delivered after `delay` unless the consumer is replaced before.
  void Answer(model::ActionResult result, absl::Duration delay);

  // Events in flight, and kinds with a broken watch.
  [[nodiscard]] size_t in_flight() const { return in_flight_; }

 private:
  struct Stream {
    bool broken = false;
    absl::Time last_delivery = absl::InfinitePast();
    struct Sent {
      std::string ns, name, uid, resource_version;
    };
    std::map<std::string, Sent> sent;  // by key: what the consumer has been told
  };

  void OnChange(ChangeType type, const Object& object);
  void List(model::Kind kind);
  void Upsert(Stream& stream, const Object& object);
  void Delete(Stream& stream, model::Kind kind, const std::string& key);
  void Deliver(Stream& stream, model::ClusterEvent event);
  void Post(absl::Time when, model::ClusterEvent event);

  EventQueue* queue_;
  ApiServer* server_;
  Faults* faults_;
  absl::Duration delay_;
  Sink sink_;
  uint64_t epoch_ = 0;  // of the consumer; events of an older one are dropped
  size_t in_flight_ = 0;
  std::map<model::Kind, Stream> streams_;
};

}  // namespace fairlead::sim
