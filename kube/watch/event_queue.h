// The queue from the I/O threads to the thread that owns ClusterState: many producers, one
// consumer.
//
// It is bounded by merging: an Upsert or a Delete of an object replaces a queued Upsert of that
// object, if both have the same uid. So the queue never holds more than the objects that exist plus
// the answers to actions in flight, however slow the consumer. The consumer decides only after it
// has applied all it drained, so it needs no intermediate states. A Delete may therefore name an
// object that the consumer never saw.
//
// Thread-safety: every method may be called from any thread. Producers hold their own locks while
// they push: the wake callback must not call back into the module kube. Complexity: O(1) per push;
// a drain moves everything.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::kube {

// How long events are gathered after a decision that took so long. A decision costs what waits,
// not what has happened since the one before; and during a reclaim events come one by one, some
// thousand of them within seconds. So decisions take a fifth of the owner's time at most, unless
// they take more than 5 ms; and each wake-up of the owner takes what has come within 10 ms. Events
// that come later than that after a decision are not held up.
inline absl::Duration GatherAfter(absl::Duration decision) {
  return std::clamp(4 * decision, absl::Milliseconds(10), absl::Milliseconds(20));
}

class EventQueue {
 public:
  struct Stats {
    size_t queued = 0, peak = 0;
    int64_t pushed = 0, merged = 0;
  };

  void Push(model::ClusterEvent event);
  // Atomic for the consumer: one drain sees the whole batch, in its order.
  void PushAll(std::vector<model::ClusterEvent> events);

  // Appends all queued events, in order. If there is none, waits for the first at most `max_wait`,
  // and only until Wake(). Returns the number of appended events. If there are events before
  // `gather` has passed since the call, it waits until then for more, but only until Wake().
  size_t DrainInto(std::vector<model::ClusterEvent>& out, absl::Duration max_wait,
                   absl::Duration gather = absl::ZeroDuration());

  // Ends the current wait of DrainInto, or else the next one.
  void Wake();

  // Sets a callback that runs, outside the queue's lock, when the queue turns from empty to not
  // empty and on Wake(). For a consumer that sleeps elsewhere. Call it before the first producer
  // starts.
  void SetWakeCallback(std::function<void()> callback);

  [[nodiscard]] Stats GetStats() const;

 private:
  void PushLocked(model::ClusterEvent event);

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<model::ClusterEvent> events_;
  // Kind and key of an object -> the index of its queued Upsert.
  absl::flat_hash_map<std::string, size_t> upserts_;
  bool woken_ = false;
  std::function<void()> wake_callback_;
  Stats stats_;
};

}  // namespace fairlead::kube
