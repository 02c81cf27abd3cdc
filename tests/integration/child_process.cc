#include "tests/integration/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {

ChildProcess::ChildProcess(std::vector<std::string> argv, std::string log) : log_(std::move(log)) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int output = open(log_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  FAIRLEAD_CHECK(output >= 0 && input >= 0, log_);
  pid_ = fork();
  FAIRLEAD_CHECK(pid_ >= 0, "fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    unsetenv("KUBECONFIG");
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  close(output);
  close(input);
}

ChildProcess::~ChildProcess() { Kill(); }

bool ChildProcess::Running() {
  if (code_.has_value()) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return false;
}

void ChildProcess::Signal(int number) const {
  if (!code_.has_value()) kill(pid_, number);
}

void ChildProcess::Kill() {
  if (!Running()) return;
  kill(pid_, SIGKILL);
  Wait(kPatience);
}

std::optional<int> ChildProcess::Wait(absl::Duration patience) {
  if (!Eventually("end of the process", [this] { return !Running(); }, nullptr, patience)) {
    return std::nullopt;
  }
  return code_;
}

std::string ChildProcess::Log() const {
  std::ifstream in(log_);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace fairlead::integration
