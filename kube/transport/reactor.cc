#include "kube/transport/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace fairlead::kube {
namespace {

constexpr int kEventsPerWait = 64;

uint64_t Pack(int fd, uint32_t tag) { return (uint64_t{tag} << 32) | static_cast<uint32_t>(fd); }

}  // namespace

Reactor::Reactor()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  FAIRLEAD_CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0, "no descriptors left for the I/O thread");
  Watch(wake_fd_, 0, EPOLLIN);
}

Reactor::~Reactor() {
  close(wake_fd_);
  close(epoll_fd_);
}

void Reactor::Watch(int fd, uint32_t tag, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = Pack(fd, tag);
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0) return;
  // Not registered yet, or closed meanwhile and its number reused.
  const int added = errno == ENOENT ? epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) : -1;
  FAIRLEAD_CHECK(added == 0, "epoll_ctl refused a socket");
}

void Reactor::Forget(int fd) { epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr); }

void Reactor::Wake() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the wait returns anyway.
  (void)!write(wake_fd_, &one, sizeof(one));
}

void Reactor::Wait(absl::Duration timeout, std::vector<Ready>& ready) {
  ready.clear();
  // Rounded up: waking before a timer is due would only cost another turn. At most a minute, so
  // that the arithmetic cannot overflow.
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Minutes(1));
  const int64_t timeout_ms = absl::ToInt64Milliseconds(absl::Ceil(bounded, absl::Milliseconds(1)));
  epoll_event events[kEventsPerWait];
  const int count = epoll_wait(epoll_fd_, events, kEventsPerWait, static_cast<int>(timeout_ms));
  FAIRLEAD_CHECK(count >= 0 || errno == EINTR, "epoll_wait failed");
  for (int i = 0; i < count; ++i) {
    const int fd = static_cast<int>(static_cast<uint32_t>(events[i].data.u64));
    if (fd == wake_fd_) {
      uint64_t value = 0;
      (void)!read(wake_fd_, &value, sizeof(value));
      continue;
    }
    ready.push_back({fd, static_cast<uint32_t>(events[i].data.u64 >> 32), events[i].events});
  }
}

}  // namespace fairlead::kube
