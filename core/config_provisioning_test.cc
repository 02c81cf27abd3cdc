// Field `provisioningRequest`.
#include "core/config_provisioning.h"

#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<Configuration> ReadFields(const std::string& fields) {
  return ReadConfiguration({absl::StrCat(
      R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration",)", fields,
      "}")});
}
absl::StatusOr<Configuration> ReadSection(const std::string& section) {
  return ReadFields(absl::StrCat(R"("provisioningRequest":{)", section, "}"));
}
constexpr char kGroup[] =
    R"({"name":"a","maxSize":3,"instanceType":"t","nodeSelector":{"pool":"a"}})";

TEST(ConfigProvisioning, EveryField) {
  const auto read = ReadFields(absl::StrCat(
      R"("hook":{"provider":"provisioning-request"},"provisioningRequest":{"namespace":"n",
      "className":"queued-provisioning.gke.io","parameters":{"maxRunDurationSeconds":"86400"},
      "capacityWait":"2h","arrivalTimeout":"30m","groups":[{"name":"h100","maxSize":16,
      "zone":"z1","priceUSDPerHour":"88.5","nodeSelector":{"pool":"h100"},
      "template":{"cpu":"200","memory":"1800Gi","gpus":8,"taints":[{"key":"nvidia.com/gpu"}]}},)",
      kGroup, "]}"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->options.hook.known_providers, ElementsAre("provisioning-request"));
  const model::ProvisioningSettings& settings = read->provisioning;
  EXPECT_EQ(settings.ns, "n");
  EXPECT_EQ(settings.class_name, "queued-provisioning.gke.io");
  EXPECT_EQ(settings.parameters.Get("maxRunDurationSeconds"), "86400");
  EXPECT_EQ(settings.capacity_wait, absl::Hours(2));
  EXPECT_EQ(settings.arrival_timeout, absl::Minutes(30));
  ASSERT_THAT(settings.groups, SizeIs(2));
  const model::ProvisioningGroup& group = settings.groups[0];
  EXPECT_EQ(group.Id(), "ProvisioningRequest/h100");
  EXPECT_EQ(group.max_size, 16);
  EXPECT_EQ(group.zone, "z1");
  EXPECT_EQ(group.price_micro_usd_per_hour, 88'500'000);
  EXPECT_EQ(model::Get(group.allocatable, "nvidia.com/gpu"), 8'000);
  EXPECT_THAT(group.taints,
              ElementsAre(model::Taint{"nvidia.com/gpu", "", model::TaintEffect::kNoSchedule}));
  EXPECT_EQ(settings.groups[1].instance_type, "t");
}

TEST(ConfigProvisioning, Defaults) {
  const auto read = ReadSection(absl::StrCat(R"("groups":[)", kGroup, "]"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->provisioning.ns, "");
  EXPECT_EQ(read->provisioning.class_name, "best-effort-atomic-scale-up.autoscaling.x-k8s.io");
  EXPECT_EQ(read->provisioning.capacity_wait, absl::ZeroDuration());
  EXPECT_EQ(read->provisioning.arrival_timeout, absl::Minutes(20));
  EXPECT_TRUE(read->options.hook.known_providers.empty() ||
              read->options.hook.known_providers.back() == "provisioning-request")
      << "a section makes it known to NodePools";
}

TEST(ConfigProvisioning, WhatIsWrongNamesTheField) {
  const std::string groups = absl::StrCat(R"("groups":[)", kGroup, "]");
  const std::string many = [] {
    std::string text;
    for (int i = 0; i < 101; ++i) absl::StrAppend(&text, i > 0 ? "," : "", "\"", i, R"(":"v")");
    return text;
  }();
  const std::pair<std::string, const char*> cases[] = {
      {"", "provisioningRequest.groups: must have at least one"},
      {R"("groups":[])", "provisioningRequest.groups: must have at least one"},
      {R"("namespace":"A b",)" + groups, "provisioningRequest.namespace: \"A b\" is no name"},
      {R"("className":"check-capacity.autoscaling.x-k8s.io",)" + groups,
       "provisioningRequest.className: \"check-capacity.autoscaling.x-k8s.io\" only checks, and "
       "never adds a node"},
      {R"("className":"",)" + groups, "provisioningRequest.className: "},
      {absl::StrCat(R"("className":")", std::string(254, 'c'), "\",", groups),
       "provisioningRequest.className: must not be longer than 253"},
      {R"("parameters":{"a":1},)" + groups, "provisioningRequest.parameters.a: must be a string"},
      {R"("parameters":[],)" + groups, "provisioningRequest.parameters: must be a mapping"},
      {R"("parameters":{"a":"b","a":"c"},)" + groups, "parameters.a: is given twice"},
      {absl::StrCat(R"("parameters":{"a":")", std::string(256, 'v'), "\"},", groups),
       "provisioningRequest.parameters.a: must not be longer than 255"},
      {absl::StrCat(R"("parameters":{)", many, "},", groups),
       "provisioningRequest.parameters: must not have more than 100 entries"},
      {R"("capacityWait":"-1s",)" + groups, "provisioningRequest.capacityWait: "},
      {R"("arrivalTimeout":"0s",)" + groups,
       "provisioningRequest.arrivalTimeout: must be more than zero"},
      {R"("groups":[{"maxSize":1}])", "groups[0].name: must be set to at most 40"},
      {R"("groups":[{"name":"a.b","maxSize":1}])", "groups[0].name: must be set to at most 40"},
      {R"("groups":[{"name":"a"}])", "groups[0].maxSize: must be set"},
      {R"("groups":[{"name":"a","maxSize":0}])", "groups[0].maxSize: "},
      {R"("groups":[{"name":"a","maxSize":100001}])", "groups[0].maxSize: must not be more than"},
      {R"("groups":[{"name":"a","maxSize":1}])", "groups[0].instanceType: must be set, or"},
      {R"("groups":[{"name":"a","maxSize":1,"instanceType":"t"}])",
       "groups[0].nodeSelector: must have a label"},
      {R"("groups":[{"name":"a","minSize":1}])", "groups[0].minSize: is not a known field"},
      {absl::StrCat(R"("groups":[)", kGroup, ",", kGroup, "]"),
       "groups[1].name: ProvisioningRequest/a is given twice"},
      {absl::StrCat(R"("groups":[)", kGroup, R"(,{"name":"b","maxSize":3,"instanceType":"t",
          "nodeSelector":{"pool":"a"}}])"),
       "groups[1].nodeSelector: is that of ProvisioningRequest/a too"}};
  for (const auto& [section, problem] : cases) {
    EXPECT_THAT(ReadSection(section).status().message(), HasSubstr(problem)) << section;
  }
  EXPECT_THAT(ReadFields(R"("hook":{"provider":"provisioning-request"})").status().message(),
              HasSubstr("provisioningRequest.groups: must have at least one, because "
                        "hook.provider is provisioning-request"));
}

}  // namespace
}  // namespace fairlead::core
