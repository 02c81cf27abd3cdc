#include "core/config_tracing.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "core/config_fields.h"

namespace fairlead::core {
namespace {

absl::Status CheckEndpoint(const std::string& endpoint, const std::string& path) {
  if (endpoint.empty()) return Bad(path, "must be set");
  if (!absl::StartsWith(endpoint, "http://") && !absl::StartsWith(endpoint, "https://")) {
    return Bad(path,
               "must begin with http:// or https://: traces are sent as OTLP over HTTP, to port "
               "4318 of most collectors");
  }
  if (absl::EndsWith(absl::StripSuffix(endpoint, "/"), "/v1/traces")) {
    return Bad(path, "must be the address before /v1/traces");
  }
  return absl::OkStatus();
}

absl::Status ReadSamplingRate(const simdjson::dom::element& value, const std::string& path,
                              int64_t& rate) {
  if (value.get(rate) == simdjson::SUCCESS && rate >= 0 && rate <= 1'000'000) {
    return absl::OkStatus();
  }
  return Bad(path, "must be a whole number from 0 to 1000000");
}

}  // namespace

absl::Status ReadTracing(const simdjson::dom::element& value, const std::string& path,
                         TracingSettings& tracing) {
  FAIRLEAD_RETURN_IF_ERROR(
      ReadObject(value, path,
                 {{"endpoint", Text(&tracing.endpoint)},
                  {"samplingRatePerMillion",
                   [&tracing](const simdjson::dom::element& rate, const std::string& at) {
                     return ReadSamplingRate(rate, at, tracing.sampling_rate_per_million);
                   }},
                  {"caFile", Text(&tracing.ca_file)},
                  {"bearerTokenFile", Text(&tracing.bearer_token_file)},
                  {"timeout", Span(&tracing.timeout)}}));
  FAIRLEAD_RETURN_IF_ERROR(CheckEndpoint(tracing.endpoint, absl::StrCat(path, ".endpoint")));
  if (tracing.timeout <= absl::ZeroDuration()) {
    return Bad(absl::StrCat(path, ".timeout"), "must be more than zero");
  }
  return absl::OkStatus();
}

}  // namespace fairlead::core
