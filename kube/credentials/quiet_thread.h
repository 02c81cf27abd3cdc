// Starts a thread that receives only the signals of its own faults. Other signals belong to the
// program's main thread. SIGPIPE, which OpenSSL's writes to a closed connection raise, must not end
// the process.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace fairlead::kube {

template <typename Function>
std::thread StartQuietThread(Function function) {
  sigset_t others;
  sigset_t former;
  sigfillset(&others);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&others, fault);
  }
  // Set before the start, so that no signal can reach the new thread in between.
  pthread_sigmask(SIG_SETMASK, &others, &former);
  std::thread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return thread;
}

}  // namespace fairlead::kube
