#include "tests/conformance/isolate.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fairlead::conformance {
namespace {

// Written after the answer, so that half an answer does not pass for a whole.
constexpr char kEnd[] = "\nend";

[[noreturn]] void Child(int pipe, const std::function<std::string()>& work) {
  const std::string answer = work() + kEnd;
  size_t sent = 0;
  while (sent < answer.size()) {
    const ssize_t n = write(pipe, answer.data() + sent, answer.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    sent += static_cast<size_t>(n);
  }
  // The parent writes buffered output.
  _exit(0);
}

// Reads until the child closes the pipe. False after the deadline.
bool ReadAll(int pipe, absl::Time deadline, std::string& out) {
  char buffer[65536];
  while (true) {
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0) return false;
    pollfd waiting{pipe, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(pipe, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    out.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

absl::StatusOr<std::string> RunIsolated(absl::Duration limit,
                                        const std::function<std::string()>& work) {
  int pipes[2];
  if (pipe(pipes) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    close(pipes[0]);
    close(pipes[1]);
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (child == 0) {
    close(pipes[0]);
    Child(pipes[1], work);
  }
  close(pipes[1]);
  std::string answer;
  const bool in_time = ReadAll(pipes[0], absl::Now() + limit, answer);
  close(pipes[0]);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return absl::DeadlineExceededError(
        absl::StrCat("did not end within ", absl::FormatDuration(limit)));
  }
  if (WIFSIGNALED(status)) {
    return absl::AbortedError(absl::StrCat("crashed: ", strsignal(WTERMSIG(status))));
  }
  const size_t end = sizeof(kEnd) - 1;
  if (answer.size() < end || answer.compare(answer.size() - end, end, kEnd) != 0) {
    return absl::AbortedError(absl::StrCat("ended early, code ", WEXITSTATUS(status)));
  }
  answer.resize(answer.size() - end);
  return answer;
}

}  // namespace fairlead::conformance
