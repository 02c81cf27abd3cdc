// Callbacks by due time, for one thread that runs them and any number that set them.
//
// Ownership: holds the callbacks; those never run are destroyed with the queue.
// Thread-safety: all methods may be called from any thread; TakeDue from the running thread only.
// Complexity: O(log n) each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace fairlead::kube {

class TimerQueue {
 public:
  using Id = uint64_t;
  using Callback = std::function<void()>;

  // `due` is on the scale of Clock::Steady. `earliest`, if not null, tells whether this is now the
  // first to come due, and the running thread has to be woken.
  Id Add(absl::Duration due, Callback callback, bool* earliest);
  // False if it ran already, or is being run.
  bool Remove(Id id);
  // Infinite if there is none.
  [[nodiscard]] absl::Duration NextDue() const;
  // The first that is due at `now`, in order of (due, Add); null if there is none.
  Callback TakeDue(absl::Duration now);

 private:
  using Key = std::pair<absl::Duration, Id>;
  mutable std::mutex mutex_;
  Id last_id_ = 0;
  std::map<Key, Callback> timers_;
  absl::flat_hash_map<Id, absl::Duration> due_by_id_;
};

}  // namespace fairlead::kube
