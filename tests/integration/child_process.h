// A program that a test runs, signals and observes. It is killed with the test.
//
// Ownership: of the process; the destructor kills and reaps it. Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::integration {

class ChildProcess {
 public:
  // Starts argv[0]. Standard output and error go to the file `log`, standard input is empty. The
  // environment is the test's without KUBECONFIG.
  ChildProcess(std::vector<std::string> argv, std::string log);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool Running();
  void Signal(int number) const;
  // kill -9, and waits for the end.
  void Kill();
  // The exit code, 128 + N for signal N; nothing if it still runs when the time is over.
  std::optional<int> Wait(absl::Duration patience);
  // Its output so far.
  [[nodiscard]] std::string Log() const;

 private:
  std::string log_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace fairlead::integration
