// Starts a thread that receives no signals but those of its own faults: the others belong to the
// program's main thread, and SIGPIPE, which OpenSSL's writes to a closed connection raise, must end
// nothing.
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
  // Before the start, so that there is no instant in which the new thread could be chosen.
  pthread_sigmask(SIG_SETMASK, &others, &former);
  std::thread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return thread;
}

}  // namespace fairlead::kube
