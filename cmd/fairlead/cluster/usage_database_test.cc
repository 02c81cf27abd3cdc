#include "cmd/fairlead/cluster/usage_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kube/transport/url.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

core::Configuration Reported(const std::string& address) {
  core::Configuration configuration;
  configuration.options.engine.usage.emplace();
  configuration.options.engine.usage->reported = true;
  configuration.usage_database.connection_string = address;
  return configuration;
}

TEST(UsageDatabaseTest, WhatCannotBeUsedIsNamed) {
  const RealClock clock;
  const auto error = [&clock](const core::Configuration& configuration) {
    return std::string(UsageDatabase::Open(configuration, clock).status().message());
  };
  EXPECT_THAT(error(Reported("http://")), HasSubstr("no URL"));
  const std::string secret = error(Reported("https://user:hunter2@prometheus"));
  EXPECT_THAT(secret, HasSubstr("must not hold a user or password"));
  EXPECT_THAT(secret, ::testing::Not(HasSubstr("hunter2")));
  core::Configuration configuration = Reported("https://prometheus");
  configuration.usage_database.ca_file = "/nowhere/ca.pem";
  EXPECT_THAT(error(configuration), HasSubstr("/nowhere/ca.pem"));
  configuration = Reported("");
  configuration.usage_database.connection_string_env_var = "FAIRLEAD_TEST_NO_SUCH_VARIABLE";
  EXPECT_THAT(error(configuration),
              HasSubstr("connectionStringEnvVar: the environment has no FAIRLEAD_TEST_NO_SUCH"));
}

TEST(UsageDatabaseTest, ThereIsNoneForTheOwnRecord) {
  const RealClock clock;
  core::Configuration configuration = Reported("http://prometheus");
  configuration.options.engine.usage->reported = false;
  const auto opened = UsageDatabase::Open(configuration, clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(*opened, nullptr);
}

TEST(UsageDatabaseTest, SettingsReachTheQuestions) {
  const RealClock clock;
  core::Configuration configuration = Reported("");
  core::UsageDatabaseSettings& settings = configuration.usage_database;
  ASSERT_EQ(setenv("FAIRLEAD_TEST_PROMETHEUS", "http://prometheus:9090", 1), 0);
  settings.connection_string_env_var = "FAIRLEAD_TEST_PROMETHEUS";
  settings.query_resolution = absl::Minutes(5);
  settings.query_timeout = absl::Seconds(3);
  settings.gpu.allocation = "gpus_held";
  settings.memory.capacity = "sum(memory_there)";
  const auto opened = UsageDatabase::Open(configuration, clock);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::vector<prometheus::Question> questions =
      (*opened)->queries().At(absl::FromUnixSeconds(1'767'268'800));
  ASSERT_EQ(questions.size(), 6u);
  EXPECT_THAT(questions[0].path, HasSubstr(kube::QueryEscape("(gpus_held)")));
  EXPECT_THAT(questions[0].path, HasSubstr(kube::QueryEscape(":300s]")));
  EXPECT_THAT(questions[0].path, HasSubstr("timeout=3000ms"));
  EXPECT_THAT(questions[2].path, HasSubstr("kai_queue_allocated_cpu_cores"));
  EXPECT_THAT(questions[5].path, HasSubstr(kube::QueryEscape("sum(memory_there)")));
}

}  // namespace
}  // namespace fairlead::cmd
