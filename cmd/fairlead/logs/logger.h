// One line per fact: in logfmt, time=... level=info msg="..." key=value; or as a JSON object with
// the same keys, in which numbers are numbers.
//
// Thread-safety: every method from any thread; the sink is called under a lock, with whole lines. A
// sink that blocks blocks all callers; log_writer.h has one that never blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"

namespace fairlead::cmd {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
// "debug", "info", "warning" ("warn"), "error", "off".
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view name);

enum class LogFormat : uint8_t { kLogfmt, kJson };
// "logfmt", "json".
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name);

class Logger {
 public:
  using Sink = std::function<void(absl::string_view line)>;
  // A value of a pair: text or number.
  struct Value {
    std::string text;
    bool is_number = false;
    Value(absl::string_view t) : text(t) {}   // NOLINT(google-explicit-constructor)
    Value(const char* t) : text(t) {}         // NOLINT(google-explicit-constructor)
    Value(const std::string& t) : text(t) {}  // NOLINT(google-explicit-constructor)
    // NOLINTNEXTLINE(google-explicit-constructor)
    Value(int64_t n) : text(absl::StrCat(n)), is_number(true) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Value(uint64_t n) : text(absl::StrCat(n)), is_number(true) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Value(int n) : text(absl::StrCat(n)), is_number(true) {}
  };
  using Pairs = std::initializer_list<std::pair<absl::string_view, Value>>;

  // The clock outlives the logger.
  Logger(const Clock* clock, LogLevel level, Sink sink, LogFormat format = LogFormat::kLogfmt);
  // One for the same sink whose lines also have these pairs. Each locks for itself, so the sink
  // then takes lines of several threads at once.
  [[nodiscard]] Logger With(Pairs always) const;
  [[nodiscard]] bool Enabled(LogLevel level) const { return level >= level_; }
  void Log(LogLevel level, absl::string_view message, Pairs pairs = {});
  void Debug(absl::string_view message, Pairs pairs = {}) { Log(LogLevel::kDebug, message, pairs); }
  void Info(absl::string_view message, Pairs pairs = {}) { Log(LogLevel::kInfo, message, pairs); }
  void Warning(absl::string_view message, Pairs pairs = {}) {
    Log(LogLevel::kWarning, message, pairs);
  }
  void Error(absl::string_view message, Pairs pairs = {}) { Log(LogLevel::kError, message, pairs); }

 private:
  using Always = std::vector<std::pair<std::string, Value>>;
  Logger(const Clock* clock, LogLevel level, Sink sink, LogFormat format, Always always);

  const Clock* clock_;
  const LogLevel level_;
  const Sink sink_;
  const LogFormat format_;
  const Always always_;
  std::mutex mutex_;
};

// The time as every log line has it: RFC 3339 in UTC, with milliseconds.
std::string LogTime(absl::Time at);

// Formats a line, with its newline.
std::string LogLine(absl::Time at, LogLevel level, absl::string_view message,
                    Logger::Pairs pairs = {}, LogFormat format = LogFormat::kLogfmt,
                    const std::vector<std::pair<std::string, Logger::Value>>& more = {});

}  // namespace fairlead::cmd
