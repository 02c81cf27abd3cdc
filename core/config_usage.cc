#include "core/config_usage.h"

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "core/config_fields.h"
#include "queues/usage_window.h"
#include "scheduler/model/quantity.h"

namespace fairlead::core {
namespace {

namespace dom = simdjson::dom;

constexpr char kPrometheus[] = "prometheus";

absl::Status ReadTime(const dom::element& value, const std::string& path, absl::Time& out) {
  std::string_view text;
  std::string problem;
  if (value.get(text) != simdjson::SUCCESS ||
      !absl::ParseTime(absl::RFC3339_full, ToAbsl(text), &out, &problem)) {
    return Bad(path, "must be a time such as \"2026-01-05T00:00:00Z\"");
  }
  return absl::OkStatus();
}

// The weight of history. Exact: a decimal in quotes, or a whole number.
absl::Status ReadKValue(const dom::element& value, const std::string& path, int64_t& out) {
  constexpr int64_t kMost = 1000;
  int64_t whole = 0;
  std::string_view text;
  absl::StatusOr<int64_t> micro = absl::InvalidArgumentError("");
  if (value.get(whole) == simdjson::SUCCESS) {
    if (whole >= 0 && whole <= kMost) micro = whole * kMicro;
  } else if (value.get(text) == simdjson::SUCCESS) {
    micro = model::ParseDecimal(ToAbsl(text), kMicro);
  }
  if (!micro.ok() || *micro < 0 || *micro > kMost * kMicro) {
    return Bad(path, "must be a whole number or a quoted decimal such as \"0.5\", from 0 to 1000");
  }
  out = *micro;
  return absl::OkStatus();
}

absl::Status ReadExtraParams(const dom::element& value, const std::string& path,
                             UsageDatabaseSettings& database) {
  return ReadObject(value, path,
                    {{"usageQueryTimeout", Span(&database.query_timeout)},
                     {"queryResolution", Span(&database.query_resolution)},
                     {"gpuAllocationMetric", Text(&database.gpu.allocation)},
                     {"cpuAllocationMetric", Text(&database.cpu.allocation)},
                     {"memoryAllocationMetric", Text(&database.memory.allocation)},
                     {"gpuCapacityMetric", Text(&database.gpu.capacity)},
                     {"cpuCapacityMetric", Text(&database.cpu.capacity)},
                     {"memoryCapacityMetric", Text(&database.memory.capacity)}});
}

// Checks the combination of a database's fields.
absl::Status CheckDatabase(const std::string& path, const std::string& client_type,
                           const UsageDatabaseSettings& database, bool any_field) {
  const auto at = [&path](absl::string_view field) { return absl::StrCat(path, ".", field); };
  if (client_type.empty()) {
    if (!any_field) return absl::OkStatus();
    return Bad(at("clientType"),
               "is missing: connectionString, connectionStringEnvVar, caFile, bearerTokenFile, "
               "waitTimeout and extraParams are for \"prometheus\"");
  }
  if (client_type != kPrometheus) {
    return Bad(at("clientType"),
               "must be \"prometheus\", or left out: Fairlead then keeps a record of its own");
  }
  const std::string& address = database.connection_string;
  if (address.empty() == database.connection_string_env_var.empty()) {
    return Bad(at("connectionString"), "one of connectionString and connectionStringEnvVar");
  }
  if (!address.empty() && !absl::StartsWith(address, "http://") &&
      !absl::StartsWith(address, "https://")) {
    return Bad(at("connectionString"), "must begin with http:// or https://");
  }
  const absl::Duration step = database.query_resolution;
  if (step < absl::Seconds(1) || step % absl::Seconds(1) != absl::ZeroDuration()) {
    return Bad(at("extraParams.queryResolution"), "must be whole seconds, at least one");
  }
  if (database.query_timeout < absl::Milliseconds(1)) {
    return Bad(at("extraParams.usageQueryTimeout"), "must be more than zero");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadUsage(const dom::element& value, const std::string& path,
                       engine::EngineOptions& engine, UsageDatabaseSettings& database) {
  queues::UsageOptions usage;
  bool enabled = true;
  bool database_field = false;
  std::string window_type = "sliding";
  std::string client_type;
  const auto noted = [&database_field](const Handler& handler) -> Handler {
    return [&database_field, handler](const dom::element& field, const std::string& at) {
      database_field = true;
      return handler(field, at);
    };
  };
  FAIRLEAD_RETURN_IF_ERROR(ReadObject(
      value, path,
      {{"enabled", Flag(&enabled)},
       {"kValue", [&engine](const dom::element& k,
                            const std::string& at) { return ReadKValue(k, at, engine.k_micro); }},
       {"halfLifePeriod", Span(&usage.half_life)},
       {"windowSize", Span(&usage.window)},
       {"windowType", Text(&window_type)},
       {"tumblingWindowStartTime",
        [&usage](const dom::element& start, const std::string& at) {
          return ReadTime(start, at, usage.tumbling_start);
        }},
       {"cronString", Text(&usage.cron)},
       {"fetchInterval", Span(&usage.sample_interval)},
       {"stalenessPeriod", Span(&usage.staleness)},
       {"clientType", Text(&client_type)},
       {"connectionString", noted(Text(&database.connection_string))},
       {"connectionStringEnvVar", noted(Text(&database.connection_string_env_var))},
       {"caFile", noted(Text(&database.ca_file))},
       {"bearerTokenFile", noted(Text(&database.bearer_token_file))},
       {"waitTimeout", noted(Span(&database.wait_timeout))},
       {"extraParams", noted([&database](const dom::element& params, const std::string& at) {
          return ReadExtraParams(params, at, database);
        })}}));
  const absl::StatusOr<queues::WindowType> type = queues::ParseWindowType(window_type);
  if (!type.ok()) return Bad(absl::StrCat(path, ".windowType"), type.status().message());
  usage.window_type = *type;
  usage.reported = client_type == kPrometheus;
  FAIRLEAD_RETURN_IF_ERROR(CheckDatabase(path, client_type, database, database_field));
  // UsageWindow checks the combination of the fields.
  const absl::Status valid = queues::UsageWindow::Create(usage).status();
  if (!valid.ok()) return Bad(path, valid.message());
  if (enabled) engine.usage = usage;
  return absl::OkStatus();
}

}  // namespace fairlead::core
