#include "cmd/fairlead/logger.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "scheduler/verdict/json.h"

namespace fairlead::cmd {
namespace {

constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};

std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '=' && c != '\\';
  });
  return plain ? text : verdict::JsonString(text);
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view name) {
  if (name == "warn") return LogLevel::kWarning;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log level \"", name, "\": must be debug, info, warning, error or off"));
}

Logger::Logger(const Clock* clock, LogLevel level, Sink sink)
    : clock_(clock), level_(level), sink_(std::move(sink)) {}

Logger::Sink Logger::StandardError() {
  return [](absl::string_view line) {
    while (!line.empty()) {
      const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
      if (written <= 0) return;
      line.remove_prefix(static_cast<size_t>(written));
    }
  };
}

void Logger::Log(LogLevel level, absl::string_view message, Pairs pairs) {
  if (!Enabled(level)) return;
  std::string line = absl::StrCat(
      "time=", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_->Now(), absl::UTCTimeZone()),
      " level=", kNames[static_cast<size_t>(level)], " msg=", Quoted(std::string(message)));
  for (const auto& [key, value] : pairs) {
    absl::StrAppend(&line, " ", key, "=", Quoted(value.text));
  }
  line += '\n';
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_(line);
}

}  // namespace fairlead::cmd
