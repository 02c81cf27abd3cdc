// Signals as ordinary calls on an ordinary thread (signalfd), so that nothing runs inside a
// handler.
//
// Create one before any other thread starts: the signals are blocked in the creating thread and in
// all that it starts later. SIGPIPE is ignored for good.
//
// Thread-safety: one instance per process; `on_signal` runs on the watcher's thread, one call at a
// time. The second SIGINT or SIGTERM calls `on_second` (to restore the terminal) and ends the
// process at once.
#pragma once

#include <functional>
#include <thread>

namespace fairlead::cmd {

class SignalWatcher {
 public:
  using Handler = std::function<void(int signal_number)>;
  // SIGINT, SIGTERM, SIGHUP, SIGWINCH.
  SignalWatcher(Handler on_signal, std::function<void()> on_second);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Watch(const Handler& on_signal, const std::function<void()>& on_second) const;

  int signals_ = -1, stop_ = -1;  // descriptors
  std::thread thread_;
};

}  // namespace fairlead::cmd
