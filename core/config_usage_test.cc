// Field `usage` with a database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/configuration.h"

namespace fairlead::core {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Configuration> Read(const std::string& usage) {
  return ReadConfiguration(
      {absl::StrCat(R"({"apiVersion":"config.fairlead.dev/v1alpha1",)",
                    R"("kind":"FairleadConfiguration","usage":)", usage, "}")});
}

TEST(ConfigUsageTest, TheOwnRecordIsTheDefault) {
  const auto read = Read("{}");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->options.engine.usage->reported);
}

TEST(ConfigUsageTest, KaisFieldsReachTheirOptions) {
  const auto minimal =
      Read(R"({"clientType":"prometheus","connectionString":"http://prometheus:9090"})");
  ASSERT_TRUE(minimal.ok()) << minimal.status();
  EXPECT_TRUE(minimal->options.engine.usage->reported);
  EXPECT_EQ(minimal->usage_database.connection_string, "http://prometheus:9090");
  EXPECT_EQ(minimal->usage_database.wait_timeout, absl::Minutes(1));
  EXPECT_EQ(minimal->usage_database.query_timeout, absl::Seconds(10));
  EXPECT_EQ(minimal->usage_database.query_resolution, absl::Minutes(1));

  const auto all = Read(R"({"clientType":"prometheus","connectionStringEnvVar":"PROM_URL",
      "caFile":"/ca.pem","bearerTokenFile":"/token","waitTimeout":"7s","fetchInterval":"30s",
      "stalenessPeriod":"2m","extraParams":{"usageQueryTimeout":"3s","queryResolution":"5m",
      "gpuAllocationMetric":"ga","cpuAllocationMetric":"ca","memoryAllocationMetric":"ma",
      "gpuCapacityMetric":"gc","cpuCapacityMetric":"cc","memoryCapacityMetric":"mc"}})");
  ASSERT_TRUE(all.ok()) << all.status();
  const UsageDatabaseSettings& database = all->usage_database;
  EXPECT_EQ(database.connection_string, "");
  EXPECT_EQ(database.connection_string_env_var, "PROM_URL");
  EXPECT_EQ(database.ca_file, "/ca.pem");
  EXPECT_EQ(database.bearer_token_file, "/token");
  EXPECT_EQ(database.wait_timeout, absl::Seconds(7));
  EXPECT_EQ(database.query_timeout, absl::Seconds(3));
  EXPECT_EQ(database.query_resolution, absl::Minutes(5));
  EXPECT_EQ(database.gpu.allocation + database.cpu.allocation + database.memory.allocation,
            "gacama");
  EXPECT_EQ(database.gpu.capacity + database.cpu.capacity + database.memory.capacity, "gcccmc");
  EXPECT_EQ(all->options.engine.usage->sample_interval, absl::Seconds(30));
  EXPECT_EQ(all->options.engine.usage->staleness, absl::Minutes(2));
}

TEST(ConfigUsageTest, WhatMakesNoSenseIsNamed) {
  const auto with = [](const char* fields) {
    return absl::StrCat(R"({"clientType":"prometheus","connectionString":"http://p")",
                        *fields == '\0' ? "" : ",", fields, "}");
  };
  const std::pair<std::string, const char*> cases[] = {
      {R"({"clientType":"fake"})", "usage.clientType: must be \"prometheus\""},
      {R"({"clientType":7})", "usage.clientType: must be a string"},
      {R"({"clientType":"prometheus"})", "usage.connectionString: one of"},
      {with(R"("connectionStringEnvVar":"X")"), "usage.connectionString: one of"},
      {R"({"clientType":"prometheus","connectionString":"prometheus:9090"})",
       "usage.connectionString: must begin with http"},
      {R"({"connectionString":"http://p"})", "usage.clientType: is missing"},
      {R"({"waitTimeout":"1s"})", "usage.clientType: is missing"},
      {R"({"extraParams":{}})", "usage.clientType: is missing"},
      {with(R"("waitTimeout":"-1s")"), "usage.waitTimeout: must be a duration"},
      {with(R"("extraParams":[])"), "usage.extraParams: must be a mapping"},
      {with(R"("extraParams":{"gpuMetric":"x"})"),
       "usage.extraParams.gpuMetric: is not a known field"},
      {with(R"("extraParams":{"queryResolution":"1500ms"})"),
       "usage.extraParams.queryResolution: must be whole seconds"},
      {with(R"("extraParams":{"queryResolution":"soon"})"),
       "usage.extraParams.queryResolution: must be a duration"},
      {with(R"("extraParams":{"usageQueryTimeout":"0s"})"),
       "usage.extraParams.usageQueryTimeout: must be more than zero"},
      {with(R"("fetchInterval":"1h")"), "fetchInterval"},
  };
  for (const auto& [usage, message] : cases) {
    const absl::Status status = Read(usage).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << usage;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << usage;
  }
  EXPECT_TRUE(Read(with("")).ok());
}

}  // namespace
}  // namespace fairlead::core
