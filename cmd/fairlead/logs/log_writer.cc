#include "cmd/fairlead/logs/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

namespace fairlead::cmd {
namespace {

constexpr int kPoll_ms = 100;

}  // namespace

LogWriter::LogWriter(int fd, const Clock* clock, LogWriterOptions options)
    : fd_(fd), clock_(clock), options_(options) {
  thread_ = std::thread([this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    Run();
  });
}

LogWriter::~LogWriter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    give_up_at_ = clock_->Steady() + options_.patience;
  }
  changed_.notify_one();
  thread_.join();
}

void LogWriter::Write(absl::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes_ + line.size() > options_.bytes_max) {
    ++dropped_;
    return;
  }
  if (const int64_t untold = dropped_ - std::exchange(told_, dropped_); untold > 0) {
    lines_.push_back(LogLine(clock_->Now(), LogLevel::kWarning, "log lines dropped",
                             {{"count", untold}}, options_.format));
    bytes_ += lines_.back().size();
  }
  bytes_ += line.size();
  lines_.emplace_back(line);
  changed_.notify_one();
}

int64_t LogWriter::dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

void LogWriter::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    const bool written = WriteAll(line);
    lock.lock();
    bytes_ -= line.size();  // the bytes that are being written count as queued
    if (!written) return;
  }
}

bool LogWriter::GiveUp() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return clock_->Steady() >= give_up_at_;
}

// A writable pipe takes PIPE_BUF bytes without blocking. Errors of the descriptor are ignored: a
// log that cannot be written must not stop a scheduler.
bool LogWriter::WriteAll(absl::string_view bytes) {
  while (!bytes.empty()) {
    pollfd waited = {fd_, POLLOUT, 0};
    if (poll(&waited, 1, kPoll_ms) <= 0) {
      if (GiveUp()) return false;
      continue;
    }
    const ssize_t written = write(fd_, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return true;
    }
  }
  return true;
}

}  // namespace fairlead::cmd
