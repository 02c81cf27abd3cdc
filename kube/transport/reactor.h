// epoll with an eventfd: the wait of the transport's I/O thread.
//
// Thread-safety: Wake from any thread, all else from the I/O thread. Complexity: O(1) per
// descriptor.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::kube {

class Reactor {
 public:
  struct Ready {
    int fd;
    uint32_t tag;     // as given to Watch
    uint32_t events;  // EPOLL*
  };

  Reactor();
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Adds the descriptor or changes the awaited events.
  void Watch(int fd, uint32_t tag, uint32_t events);
  // Unknown or closed descriptors are ignored.
  void Forget(int fd);
  // Makes the current or next Wait return.
  void Wake();
  // Fills `ready` with the readable and writable descriptors; empty after the time-out or a Wake.
  void Wait(absl::Duration timeout, std::vector<Ready>& ready);

 private:
  const int epoll_fd_;
  const int wake_fd_;
};

}  // namespace fairlead::kube
