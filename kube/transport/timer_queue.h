// Callbacks by due time, for one thread that runs them and any number that set them.
//
// Ownership: holds the callbacks; callbacks that never run are destroyed with the queue.
// Thread-safety: any thread may call any method, but only the running thread TakeDue. Complexity:
// O(log n) each.
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

  // `due` is on the scale of Clock::Steady. `earliest`, if not null, tells whether this timer is
  // now the first to be due, so that the running thread has to be woken.
  Id Add(absl::Duration due, Callback callback, bool* earliest);
  // False if the callback already ran, or is running.
  bool Remove(Id id);
  // Infinite if there is none.
  [[nodiscard]] absl::Duration NextDue() const;
  // The first callback that is due at `now`, in order of (due, Add); null if there is none.
  Callback TakeDue(absl::Duration now);

 private:
  using Key = std::pair<absl::Duration, Id>;
  mutable std::mutex mutex_;
  Id last_id_ = 0;
  std::map<Key, Callback> timers_;
  absl::flat_hash_map<Id, absl::Duration> due_by_id_;
};

}  // namespace fairlead::kube
