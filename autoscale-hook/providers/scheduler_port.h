// Time, as a port of the providers: they read no clock and start no thread.
//
// Thread-safety: one thread, the owner's; callbacks come on it too.
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace fairlead::hook {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Calls back once, after `delay`, never before it returns. A callback may come after the
  // destruction of the part that asked for it.
  virtual void After(absl::Duration delay, std::function<void()> callback) = 0;
};

}  // namespace fairlead::hook
