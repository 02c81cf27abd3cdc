#include "cmd/fairlead/run/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace fairlead::cmd {

SignalWatcher::SignalWatcher(Handler on_signal, std::function<void()> on_second) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&watched, number);
  FAIRLEAD_CHECK(pthread_sigmask(SIG_BLOCK, &watched, nullptr) == 0, "signals cannot be blocked");
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  FAIRLEAD_CHECK(signals_ >= 0 && stop_ >= 0, "no file descriptors for signals");
  thread_ = std::thread(
      [this, signal_handler = std::move(on_signal), second_handler = std::move(on_second)] {
        Watch(signal_handler, second_handler);
      });
}

SignalWatcher::~SignalWatcher() {
  const uint64_t one = 1;
  const ssize_t written = write(stop_, &one, sizeof(one));
  (void)written;  // an eventfd takes it
  thread_.join();
  close(signals_);
  close(stop_);
}

void SignalWatcher::Watch(const Handler& on_signal, const std::function<void()>& on_second) const {
  bool asked = false;
  while (true) {
    pollfd waited[] = {{signals_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0) continue;  // EINTR
    if (waited[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGINT || number == SIGTERM) {
      if (asked) {
        if (on_second) on_second();
        _exit(128 + number);
      }
      asked = true;
    }
    if (on_signal) on_signal(number);
  }
}

}  // namespace fairlead::cmd
