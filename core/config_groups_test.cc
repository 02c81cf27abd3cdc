// Fields `clusterApi` and `scaleSubresource`.
#include "core/config_groups.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<Configuration> ReadWith(const std::string& fields) {
  return ReadConfiguration({absl::StrCat(
      R"({"apiVersion":"config.fairlead.dev/v1alpha1","kind":"FairleadConfiguration",)", fields,
      "}")});
}
absl::StatusOr<Configuration> ReadGroups(const std::string& groups) {
  return ReadWith(absl::StrCat(R"("scaleSubresource":{"groups":[)", groups, "]}"));
}
constexpr char kUsual[] =
    R"({"apiVersion":"g/v1","kind":"Set","namespace":"n","name":"a","maxSize":3,)"
    R"("instanceType":"t","nodeSelector":{"pool":"a"})";

TEST(ConfigGroups, ClusterApi) {
  const auto read = ReadWith(
      R"("hook":{"provider":"cluster-api"},"clusterApi":{"kubeconfig":"m","namespace":"n",
      "clusterName":"c"})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster_api, (ClusterApiSettings{"m", "n", "c"}));
  EXPECT_THAT(read->options.hook.known_providers, ElementsAre("cluster-api"));
  EXPECT_TRUE(ReadWith(R"("hook":{"provider":"cluster-api"})").ok()) << "it needs no settings";
  EXPECT_THAT(ReadWith(R"("clusterApi":{"namespace":7})").status().message(),
              HasSubstr("clusterApi.namespace: must be a string"));
  EXPECT_THAT(
      ReadWith(R"("hook":{"provider":"kwok"},"clusterApi":{})")->options.hook.known_providers,
      ElementsAre("kwok", "cluster-api"));
}

TEST(ConfigGroups, EveryFieldOfAGroup) {
  const auto read = ReadGroups(R"({"apiVersion":"machine.openshift.io/v1beta1",
      "kind":"MachineSet","namespace":"openshift-machine-api","name":"workers","minSize":1,
      "maxSize":8,"zone":"z1","priceUSDPerHour":"1.25",
      "template":{"cpu":"16","memory":"64Gi","pods":200,"gpus":2,"resources":{"a.b/c":"3"},
        "labels":{"nvidia.com/gpu.product":"L4"},
        "taints":[{"key":"k","value":"v","effect":"NoExecute"},{"key":"l"}]},
      "nodeSelector":{"pool":"workers"},
      "deleteAnnotation":{"key":"machine.openshift.io/delete-machine","value":"yes",
        "apiVersion":"machine.openshift.io/v1beta1","resource":"machines",
        "namespace":"openshift-machine-api","nameAnnotation":"machine.openshift.io/machine"}})");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->scale_groups, SizeIs(1));
  const model::ScaleGroup& group = read->scale_groups[0];
  EXPECT_EQ(group.Id(), "MachineSet/openshift-machine-api/workers");
  EXPECT_EQ(group.min_size, 1);
  EXPECT_EQ(group.max_size, 8);
  EXPECT_EQ(group.zone, "z1");
  EXPECT_EQ(group.price_micro_usd_per_hour, 1'250'000);
  const model::ResourceList amounts = {{"a.b/c", 3},
                                       {"cpu", 16'000},
                                       {"memory", int64_t{64} << 30},
                                       {"nvidia.com/gpu", 2'000},
                                       {"pods", 200}};
  EXPECT_EQ(group.allocatable, amounts);
  EXPECT_EQ(group.labels.Get("nvidia.com/gpu.product"), "L4");
  EXPECT_THAT(group.taints, ElementsAre(model::Taint{"k", "v", model::TaintEffect::kNoExecute},
                                        model::Taint{"l", "", model::TaintEffect::kNoSchedule}));
  EXPECT_EQ(group.node_selector.Get("pool"), "workers");
  EXPECT_EQ(group.mark,
            (model::ScaleMark{"machine.openshift.io/delete-machine", "yes",
                              "machine.openshift.io/v1beta1", "", "machines",
                              "openshift-machine-api", "machine.openshift.io/machine"}));
}

TEST(ConfigGroups, WrongGroupsNameTheField) {
  const std::string usual(kUsual);
  const std::pair<std::string, const char*> cases[] = {
      {R"({"kind":"Set","name":"a"})", "groups[0].apiVersion: must be set"},
      {R"({"apiVersion":"v1","name":"a"})", "groups[0].kind: must be set, or resource"},
      {R"({"apiVersion":"v1","kind":"A","resource":"as","name":"a"})", "groups[0].kind: must be"},
      {R"({"apiVersion":"a/b/c","kind":"A","name":"a"})", "groups[0].apiVersion: \"a/b/c\""},
      {R"({"apiVersion":"v1","resource":"a/scale","name":"a"})", "groups[0].resource: \"a/scale\""},
      {R"({"apiVersion":"v1","kind":"A"})", "groups[0].name: must be set"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","minSize":2,"maxSize":1})",
       "groups[0].maxSize: must be set, and not be less than minSize"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","maxSize":999999999})",
       "groups[0].maxSize: must not be more than 100000"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","minSize":-1})", "groups[0].minSize: must be a"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","maxSize":1})",
       "groups[0].instanceType: must be set, or template"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","maxSize":1,"instanceType":"t",
          "template":{"cpu":1,"memory":1}})",
       "groups[0].instanceType: must be set, or template"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","maxSize":1,"instanceType":"t"})",
       "groups[0].nodeSelector: must have a label"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"memory":"1Gi"}})",
       "groups[0].template.cpu: must be more than zero"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":"-1","memory":"1Gi"}})",
       "groups[0].template.cpu: must be an amount"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":"x","memory":"1Gi"}})",
       "groups[0].template.cpu: "},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":[],"memory":"1Gi"}})",
       "groups[0].template.cpu: must be a quantity"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":"9e18","memory":"1Gi"}})",
       "groups[0].template.cpu: must be an amount"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":1,"memory":1,
          "labels":{"a b":"c"}}})",
       "groups[0].template.labels.a b: is no key of a label"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":1,"memory":1,
          "labels":{"a":"b/c"}}})",
       "groups[0].template.labels.a: is no value of a label"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":1,"memory":1,
          "taints":[{"key":"k","effect":"Never"}]}})",
       "groups[0].template.taints[0].effect: must be NoSchedule"},
      {R"({"apiVersion":"v1","kind":"A","name":"a","template":{"cpu":1,"memory":1,
          "taints":[{}]}})",
       "groups[0].template.taints[0].key: must be set"},
      {usual + R"(,"deleteAnnotation":{}})", "groups[0].deleteAnnotation.key: must be set"},
      {usual + R"(,"deleteAnnotation":{"key":"k","namespace":"n"}})",
       "groups[0].deleteAnnotation.namespace: without apiVersion"},
      {usual + R"(,"deleteAnnotation":{"key":"k","apiVersion":"v1"}})",
       "groups[0].deleteAnnotation.kind: must be set"},
      {usual + R"(,"zone":"a b"})", "groups[0].zone: is no value"},
      {usual + R"(,"priceUSDPerHour":"free"})", "groups[0].priceUSDPerHour: must be dollars"},
      {usual + R"(,"size":1})", "groups[0].size"},
      {absl::StrCat(kUsual, "},", kUsual, "}"), "groups[1].name: Set/n/a is given twice"},
      {absl::StrCat(kUsual, R"(},{"apiVersion":"g/v1","kind":"Set","name":"b","maxSize":3,
          "instanceType":"t","nodeSelector":{"pool":"a"}})"),
       "groups[1].nodeSelector: is that of Set/n/a too"},
      {"", "scaleSubresource.groups: must have at least one"}};
  for (const auto& [groups, problem] : cases) {
    EXPECT_THAT(ReadGroups(groups).status().message(), HasSubstr(problem)) << groups;
  }
  EXPECT_TRUE(ReadGroups(usual + "}").ok());
  EXPECT_THAT(ReadWith(R"("hook":{"provider":"scale-subresource"})").status().message(),
              HasSubstr("scaleSubresource.groups: must have at least one, because hook.provider"));
}

}  // namespace
}  // namespace fairlead::core
