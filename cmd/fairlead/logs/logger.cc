#include "cmd/fairlead/logs/logger.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/json_writer.h"

namespace fairlead::cmd {
namespace {

constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};

std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '=' && c != '\\';
  });
  return plain ? text : JsonQuoted(text);
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

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name) {
  if (name == "logfmt") return LogFormat::kLogfmt;
  if (name == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("log format \"", name, "\": must be logfmt or json"));
}

Logger::Logger(const Clock* clock, LogLevel level, Sink sink, LogFormat format)
    : Logger(clock, level, std::move(sink), format, {}) {}

Logger::Logger(const Clock* clock, LogLevel level, Sink sink, LogFormat format, Always always)
    : clock_(clock),
      level_(level),
      sink_(std::move(sink)),
      format_(format),
      always_(std::move(always)) {}

Logger Logger::With(Pairs always) const {
  Always all = always_;
  for (const auto& [key, value] : always) all.emplace_back(std::string(key), value);
  return Logger(clock_, level_, sink_, format_, std::move(all));
}

std::string LogTime(absl::Time at) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", at, absl::UTCTimeZone());
}

std::string LogLine(absl::Time at, LogLevel level, absl::string_view message, Logger::Pairs pairs,
                    LogFormat format,
                    const std::vector<std::pair<std::string, Logger::Value>>& more) {
  const std::string time = LogTime(at);
  const char* const level_name = kNames[static_cast<size_t>(level)];
  if (format == LogFormat::kJson) {
    JsonWriter json;
    json.BeginObject().Field("time", time).Field("level", level_name).Field("msg", message);
    const auto add = [&json](absl::string_view key, const Logger::Value& value) {
      json.Key(key);
      if (value.is_number) {
        json.Raw(value.text);
      } else {
        json.String(value.text);
      }
    };
    for (const auto& [key, value] : pairs) add(key, value);
    for (const auto& [key, value] : more) add(key, value);
    return json.EndObject().Take() + "\n";
  }
  std::string line =
      absl::StrCat("time=", time, " level=", level_name, " msg=", Quoted(std::string(message)));
  const auto add = [&line](absl::string_view key, const Logger::Value& value) {
    absl::StrAppend(&line, " ", key, "=", Quoted(value.text));
  };
  for (const auto& [key, value] : pairs) add(key, value);
  for (const auto& [key, value] : more) add(key, value);
  line += '\n';
  return line;
}

void Logger::Log(LogLevel level, absl::string_view message, Pairs pairs) {
  if (!Enabled(level)) return;
  const std::string line = LogLine(clock_->Now(), level, message, pairs, format_, always_);
  const std::lock_guard<std::mutex> lock(mutex_);
  sink_(line);
}

}  // namespace fairlead::cmd
