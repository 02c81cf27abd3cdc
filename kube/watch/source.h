// The cluster as a source of events: one reflector per kind, all into one queue.
//
// Of the pods that have ended, only those arrive that succeeded and name a PodGroup: a gang of
// which a pod has succeeded may run below its minimum (scheduler/engine/gang.h). The server leaves
// out those that failed (KindTraits::field_selector), the source drops the others as they come
// (IsWatched). So a pod that fails, or that succeeds and names no PodGroup, arrives as a Delete.
//
// Thread-safety: every method from any thread. Nothing is pushed after Stop returned. Transport,
// timers, clock and queue must outlive the source.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "kube/transport/http.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/reflector.h"
#include "scheduler/model/kind.h"

namespace fairlead::kube {

// False for a pod that has succeeded and names no PodGroup. True for all else.
bool IsWatched(const model::Object& object);

struct SourceOptions {
  // Options for every reflector; kind, keeps and seed are set per reflector.
  ReflectorOptions reflector;
  uint64_t seed = 0;  // different in every replica, so that replicas do not send requests together
  // Kinds that no decision needs: not requested, and nothing is said about them.
  std::vector<model::Kind> unread;
};

class ClusterSource {
 public:
  ClusterSource(HttpTransport& transport, Timers& timers, const Clock& clock, EventQueue& queue,
                const SourceOptions& options = {});

  void Start();
  void Stop();
  // Requests new snapshots of every kind, to learn everything written so far. Fresh says when all
  // are complete and their events are in the queue; the queue's consumer is woken then.
  void Refresh();
  [[nodiscard]] bool Fresh() const;

  // Every kind has been synced once.
  [[nodiscard]] bool Synced() const;
  // In the order of model::kAllKinds, without the unread ones.
  [[nodiscard]] std::vector<ReflectorStats> GetStats() const;
  // The kinds that were synced once and may now be out of date by more than `bound`
  // (ReflectorStats::IsStale).
  [[nodiscard]] std::vector<ReflectorStats> Stale(absl::Duration bound) const;
  // OK, or Unavailable naming each kind that is not synced or is stale, with its last error. For a
  // readiness probe.
  [[nodiscard]] absl::Status Health(absl::Duration bound) const;

 private:
  ServerFeatures features_;
  std::vector<std::unique_ptr<Reflector>> reflectors_;
};

}  // namespace fairlead::kube
