#include "cmd/fairlead/cluster/usage_database.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/cluster/connection.h"
#include "cmd/fairlead/cluster/version.h"
#include "kube/credentials/client_config.h"
#include "kube/credentials/credentials.h"

namespace fairlead::cmd {
namespace {

absl::StatusOr<std::string> AddressOf(const core::UsageDatabaseSettings& settings) {
  const std::string& variable = settings.connection_string_env_var;
  if (variable.empty()) return settings.connection_string;
  const char* value = std::getenv(variable.c_str());
  if (value != nullptr && *value != '\0') return std::string(value);
  return absl::InvalidArgumentError(
      absl::StrCat("usage.connectionStringEnvVar: the environment has no ", variable));
}

void Override(prometheus::Metric& metric, const core::UsageDatabaseSettings::Metric& given) {
  if (!given.allocation.empty()) metric.allocation = given.allocation;
  if (!given.capacity.empty()) metric.capacity = given.capacity;
}

prometheus::QueryOptions QueriesOf(const core::UsageDatabaseSettings& settings,
                                   const queues::UsageOptions& usage) {
  prometheus::QueryOptions queries;
  queries.usage = usage;
  queries.resolution = settings.query_resolution;
  queries.timeout = settings.query_timeout;
  for (prometheus::Metric& metric : queries.metrics) {
    Override(metric, metric.name == "gpu"   ? settings.gpu
                     : metric.name == "cpu" ? settings.cpu
                                            : settings.memory);
  }
  return queries;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UsageDatabase>> UsageDatabase::Open(
    const core::Configuration& configuration, const Clock& clock) {
  const auto& usage = configuration.options.engine.usage;
  if (!usage.has_value() || !usage->reported) return std::unique_ptr<UsageDatabase>();
  const core::UsageDatabaseSettings& settings = configuration.usage_database;
  FAIRLEAD_ASSIGN_OR_RETURN(std::string url, AddressOf(settings));
  FAIRLEAD_ASSIGN_OR_RETURN(prometheus::Queries queries,
                            prometheus::Queries::Create(QueriesOf(settings, *usage)));
  kube::CurlTransportOptions options;
  options.max_body_bytes = kMaxAnswerBytes;
  FAIRLEAD_ASSIGN_OR_RETURN(
      std::unique_ptr<kube::CurlTransport> transport,
      OpenService({std::move(url), settings.ca_file, settings.bearer_token_file}, options, clock,
                  "usage: Prometheus"));
  return std::unique_ptr<UsageDatabase>(
      new UsageDatabase(std::move(queries), std::move(transport)));
}

}  // namespace fairlead::cmd
