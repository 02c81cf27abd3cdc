#include "core/config_tracing.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::core {
namespace {

absl::StatusOr<Configuration> ReadWithTracing(absl::string_view tracing) {
  return ReadConfiguration({absl::StrCat(
      R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration","tracing":)",
      tracing, "}")});
}

TEST(ConfigTracingTest, FaultsAreNamedByTheirPath) {
  struct Row {
    const char *json, *error;
  };
  const Row rows[] = {
      {"{}", "tracing.endpoint: must be set"},
      {"[]", "tracing: must be a mapping"},
      {R"({"samplingRatePerMillion":5})", "tracing.endpoint: must be set"},
      {R"({"endpoint":""})", "tracing.endpoint: must not be empty"},
      {R"({"endpoint":"collector:4317"})",
       "tracing.endpoint: must begin with http:// or https://: traces are sent as OTLP over HTTP, "
       "to port 4318 of most collectors"},
      {R"({"endpoint":"http://c:4318/v1/traces"})",
       "tracing.endpoint: must be the address before /v1/traces"},
      {R"({"endpoint":"http://c:4318/v1/traces/"})",
       "tracing.endpoint: must be the address before /v1/traces"},
      {R"({"endpoint":"http://c:4318","samplingRatePerMillion":1000001})",
       "tracing.samplingRatePerMillion: must be a whole number from 0 to 1000000"},
      {R"({"endpoint":"http://c:4318","samplingRatePerMillion":-1})",
       "tracing.samplingRatePerMillion: must be a whole number from 0 to 1000000"},
      {R"({"endpoint":"http://c:4318","timeout":"0s"})", "tracing.timeout: must be more than zero"},
      {R"({"endpoint":"http://c:4318","insecure":true})", "tracing.insecure: is not a known field"},
  };
  for (const Row& row : rows) {
    const absl::Status status = ReadWithTracing(row.json).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.json << ": " << status;
    EXPECT_EQ(status.message(), row.error) << row.json;
  }
}

TEST(ConfigTracingTest, ItIsOffUnlessItIsGiven) {
  const absl::StatusOr<Configuration> read = ReadConfiguration({});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tracing, TracingSettings());
  EXPECT_EQ(read->tracing.endpoint, "");
}

TEST(ConfigTracingTest, AllFields) {
  const absl::StatusOr<Configuration> read = ReadWithTracing(
      R"({"endpoint":"https://c:4318/otlp","samplingRatePerMillion":1000,"caFile":"ca.pem",)"
      R"("bearerTokenFile":"token","timeout":"3s"})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tracing,
            (TracingSettings{"https://c:4318/otlp", 1000, "ca.pem", "token", absl::Seconds(3)}));
  const absl::StatusOr<Configuration> least = ReadWithTracing(R"({"endpoint":"http://c:4318"})");
  ASSERT_TRUE(least.ok()) << least.status();
  EXPECT_EQ(least->tracing.sampling_rate_per_million, 1'000'000) << "all traces";
}

}  // namespace
}  // namespace fairlead::core
