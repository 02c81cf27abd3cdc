// Writes lines to a file descriptor that may block (a pipe that is not read, a terminal that is
// stopped) without ever blocking the callers: a bounded queue and a thread that writes.
//
// A line that finds the queue full is dropped. A line of its own reports the number of dropped
// lines as soon as the queue accepts lines again; so does dropped(). The destructor writes the
// queued lines, but waits for a blocked descriptor at most `patience`.
//
// Thread-safety: Write and dropped from any thread. Ownership: borrows descriptor and clock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cmd/fairlead/logs/logger.h"

namespace fairlead::cmd {

struct LogWriterOptions {
  size_t bytes_max = 4 << 20;             // queued
  LogFormat format = LogFormat::kLogfmt;  // of the line about dropped ones
  absl::Duration patience = absl::Seconds(1);
};

class LogWriter {
 public:
  LogWriter(int fd, const Clock* clock, LogWriterOptions options = {});
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void Write(absl::string_view line);
  [[nodiscard]] int64_t dropped() const;

 private:
  void Run();
  // False: stopped before everything was written.
  bool WriteAll(absl::string_view bytes);
  [[nodiscard]] bool GiveUp() const;

  const int fd_;
  const Clock* const clock_;
  const LogWriterOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;  // of lines_
  int64_t dropped_ = 0, told_ = 0;
  bool stopping_ = false;
  absl::Duration give_up_at_ = absl::InfiniteDuration();  // steady
  std::thread thread_;
};

}  // namespace fairlead::cmd
