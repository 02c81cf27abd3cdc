#include "scheduler/framework/extenders.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/framework/config.h"
#include "scheduler/framework/config_testing.h"

namespace fairlead::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<SchedulerConfiguration> ReadExtenders(absl::string_view extenders,
                                                     absl::string_view more = "") {
  static const auto& registry = *new Registry(testing::DefaultPlugins());
  return ReadSchedulerConfiguration(
      absl::StrCat(R"({"apiVersion":"kubescheduler.config.k8s.io/v1",)"
                   R"("kind":"KubeSchedulerConfiguration","extenders":)",
                   extenders, more, "}"),
      registry);
}

std::string FitArgs(const Profile& profile) {
  for (const ProfilePlugin& plugin : profile.plugins) {
    if (plugin.name == "NodeResourcesFit") return plugin.args_json;
  }
  return "no such plugin";
}

TEST(ExtendersTest, AllFieldsAreRead) {
  const auto config = ReadExtenders(R"([{
      "urlPrefix": "https://devices.example:8888/scheduler/", "filterVerb": "filter",
      "prioritizeVerb": "prioritize", "bindVerb": "bind", "weight": 5, "enableHTTPS": true,
      "tlsConfig": {"insecure": false, "serverName": "devices", "certFile": "/c", "keyFile": "/k",
                    "caFile": "/a", "certData": "Y2VydA==", "keyData": "a2V5", "caData": "Y2E="},
      "httpTimeout": "250ms", "nodeCacheCapable": true, "ignorable": true,
      "managedResources": [{"name": "example.com/fpga", "ignoredByScheduler": true},
                           {"name": "example.com/nic"}]},
      {"urlPrefix": "http://other:1", "filterVerb": "f"}])");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->extenders.size(), 2u);
  const model::ExtenderConfig& read = config->extenders[0];
  EXPECT_EQ(read.url_prefix, "https://devices.example:8888/scheduler");
  EXPECT_EQ(read.filter_verb, "filter");
  EXPECT_EQ(read.prioritize_verb, "prioritize");
  EXPECT_EQ(read.bind_verb, "bind");
  EXPECT_EQ(read.weight, 5);
  EXPECT_TRUE(read.enable_https);
  const model::ExtenderConfig::Tls tls{false, "devices", "/c", "/k", "/a", "cert", "key", "ca"};
  EXPECT_EQ(read.tls, tls);
  EXPECT_EQ(read.http_timeout, absl::Milliseconds(250));
  EXPECT_TRUE(read.node_cache_capable);
  EXPECT_TRUE(read.ignorable);
  const model::ExtenderConfig::ManagedResource fpga{"example.com/fpga", true};
  const model::ExtenderConfig::ManagedResource nic{"example.com/nic", false};
  EXPECT_THAT(read.managed_resources, ElementsAre(fpga, nic));
  model::ExtenderConfig plain;
  plain.url_prefix = "http://other:1";
  plain.filter_verb = "f";
  EXPECT_EQ(config->extenders[1], plain);
  EXPECT_EQ(plain.http_timeout, absl::Seconds(5));
}

TEST(ExtendersTest, IgnoredResourcesAreThoseOfTheProfilesToo) {
  constexpr char kExtender[] = R"([{"urlPrefix": "http://x", "managedResources":
      [{"name": "a.io/x", "ignoredByScheduler": true}, {"name": "a.io/y"},
       {"name": "a.io/z", "ignoredByScheduler": true}]}])";
  const auto none = ReadExtenders(kExtender);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(FitArgs(none->profiles[0]), R"({"ignoredResources":["a.io/x","a.io/z"]})");
  const auto some =
      ReadExtenders(kExtender, R"(,"profiles":[{"pluginConfig":[{"name":"NodeResourcesFit",
      "args":{"ignoredResources":["b.io/w","a.io/z"],"ignoredResourceGroups":["c.io"]}}]}])");
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(
      FitArgs(some->profiles[0]),
      R"({"ignoredResourceGroups":["c.io"],"ignoredResources":["b.io/w","a.io/z","a.io/x"]})");
}

TEST(ExtendersTest, WithoutThemTheArgumentsStay) {
  const auto config = ReadExtenders("[]");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->extenders.empty());
  EXPECT_EQ(FitArgs(config->profiles[0]), "");
}

TEST(ExtendersTest, WhatIsWrongIsNamed) {
  struct Case {
    std::string extenders, message;
  };
  const std::string url = R"("urlPrefix":"http://x")";
  const std::vector<Case> cases = {
      {"{}", "extenders: must be a list"},
      {"[1]", "extenders[0]: must be an object"},
      {"[{}]", "extenders[0].urlPrefix: must begin with http:// or https://"},
      {R"([{"urlPrefix":"x:80"}])", "extenders[0].urlPrefix: must begin with"},
      {R"([{"urlPrefix":"http://u:p@x"}])", "extenders[0].urlPrefix: must be an address"},
      {absl::StrCat("[{", url, R"(,"prioritizeVerb":"p"}])"),
       "extenders[0].weight: must have a positive weight applied to it"},
      {absl::StrCat("[{", url, R"(,"weight":100001}])"), "extenders[0].weight: must be at most"},
      {absl::StrCat("[{", url, R"(,"verb":"p"}])"), "extenders[0].verb: is not a known field"},
      {absl::StrCat("[{", url, R"(,"httpTimeout":5}])"),
       "extenders[0].httpTimeout: must be a string"},
      {absl::StrCat("[{", url, R"(,"httpTimeout":"-1s"}])"),
       "extenders[0].httpTimeout: must be a duration"},
      {absl::StrCat("[{", url, R"(,"tlsConfig":{"keyData":"!secret!"}}])"),
       "extenders[0].tlsConfig.keyData: is not base64"},
      {absl::StrCat("[{", url, R"(,"managedResources":[{"name":"cpu"}]}])"),
       R"(extenders[0].managedResources[0].name: "cpu" is an invalid extended resource name)"},
      {absl::StrCat("[{", url, R"(,"managedResources":[{"name":"node.kubernetes.io/x"}]}])"),
       "is an invalid extended resource name"},
      {absl::StrCat("[{", url, R"(,"managedResources":[{"name":"a.io/x"}]},{)", url,
                    R"(,"managedResources":[{"name":"a.io/x"}]}])"),
       R"(extenders[1].managedResources[0].name: "a.io/x" is managed by two extenders)"},
      {absl::StrCat("[{", url, R"(,"bindVerb":"b"},{)", url, R"(,"bindVerb":"b"}])"),
       "extenders: 2 extenders have a bindVerb: only one can bind"},
  };
  for (const Case& each : cases) {
    const auto config = ReadExtenders(each.extenders);
    EXPECT_FALSE(config.ok()) << each.extenders;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(each.message)) << each.extenders;
    EXPECT_THAT(std::string(config.status().message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace fairlead::framework
