// What `fairlead migrate check` finds: a table of changes to an installation that is ready.
#include "cmd/fairlead/migrate/migrate_check.h"

#include <gmock/gmock.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/migrate/migrate_testing.h"

namespace fairlead::cmd {
namespace {

using testing::FromYaml;
using ::testing::HasSubstr;

std::string Told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) {
    absl::StrAppend(&text, MatterName(f.matter), " ", f.subject, ": ", f.what, " -> ", f.to_do,
                    "\n");
  }
  return text;
}

TEST(MigrateCheckTest, AnInstallationOfDefaultsIsReady) {
  const KaiInstallation kai = ReadKaiInstallation(testing::Installed());
  ASSERT_EQ(kai.deployments.size(), 8U) << "not the user's own, nor Fairlead's";
  EXPECT_EQ(kai.deployments[0].component, KaiComponent::kOperator);
  EXPECT_EQ(kai.deployments[1].component, KaiComponent::kScheduler);
  EXPECT_EQ(kai.deployments[1].replicas, 2);
  EXPECT_EQ(kai.deployments[1].selector, "app=kai-scheduler-default");
  EXPECT_EQ(kai.fairlead.scheduler_names, std::vector<std::string>{"fairlead"});
  const std::vector<Finding> findings = ExamineKai(kai, /*controllers=*/false);
  EXPECT_TRUE(IsReady(findings)) << Told(findings);
  EXPECT_THAT(Told(findings), HasSubstr("same SchedulingShard default"));
  EXPECT_THAT(Told(findings), HasSubstr("differs operator: kai-scheduler/kai-operator sets"));
  EXPECT_THAT(FindingsText(findings), HasSubstr("Nothing is in the way"));
  const Json json = FindingsJson(findings);
  EXPECT_EQ(json.TextAt({"ready"}), "true");
  EXPECT_EQ(json.Find("findings")->items().size(), findings.size());
}

TEST(MigrateCheckTest, WithoutKaisControllersFairleadNeedsGroupingAndStatuses) {
  KaiObjects objects = testing::Installed();
  std::string told = Told(ExamineKai(ReadKaiInstallation(objects), /*controllers=*/true));
  EXPECT_THAT(told, HasSubstr("doFirst pod-grouper: "));
  EXPECT_THAT(told, HasSubstr("doFirst statuses: "));
  EXPECT_THAT(told, HasSubstr("differs webhook queue-validation.kai.scheduler: refuses"));
  objects.fairlead_configuration = testing::FileObject(
      absl::StrCat(testing::kFile, "grouping: {enabled: true}\nkaiStatus: true\n"));
  const std::vector<Finding> findings =
      ExamineKai(ReadKaiInstallation(objects), /*controllers=*/true);
  EXPECT_TRUE(IsReady(findings)) << Told(findings);
  EXPECT_THAT(Told(ExamineKai(ReadKaiInstallation(objects), /*controllers=*/false)),
              HasSubstr("differs kaiStatus: "))
      << "two writers of one field";
}

TEST(MigrateCheckTest, AnEmptyClusterIsNoInstallation) {
  const std::vector<Finding> findings = ExamineKai(ReadKaiInstallation({}), false);
  EXPECT_FALSE(IsReady(findings));
  EXPECT_THAT(Told(findings), HasSubstr("differs Deployments of KAI: none in namespace"));
}

struct CheckCase {
  const char* name;
  std::function<void(KaiObjects&)> change;
  const char* expected;  // the beginning of a line of Told()
  friend void PrintTo(const CheckCase& c, std::ostream* out) { *out << c.name; }
};

class MigrateCheckCases : public ::testing::TestWithParam<CheckCase> {};

TEST_P(MigrateCheckCases, IsTold) {
  KaiObjects objects = testing::Installed();
  const std::string before = Told(ExamineKai(ReadKaiInstallation(objects), /*controllers=*/false));
  EXPECT_THAT(before, ::testing::Not(HasSubstr(GetParam().expected)));
  GetParam().change(objects);
  const std::vector<Finding> findings =
      ExamineKai(ReadKaiInstallation(objects), /*controllers=*/false);
  EXPECT_THAT(Told(findings), HasSubstr(GetParam().expected));
  const bool first = absl::StartsWith(GetParam().expected, "doFirst");
  EXPECT_EQ(IsReady(findings), !first) << Told(findings);
}

void Annotate(Json& object, const char* map, const char* key, const char* value) {
  Json entries = Json::Object();
  entries.Set(key, value);
  object.Find("metadata")->Set(map, std::move(entries));
}

INSTANTIATE_TEST_SUITE_P(
    Changes, MigrateCheckCases,
    ::testing::Values(
        CheckCase{"NoFairlead", [](KaiObjects& o) { o.deployments.pop_back(); },
                  "doFirst Fairlead: no Deployment"},
        CheckCase{"TwoSchedulersOfOneName",
                  [](KaiObjects& o) {
                    o.fairlead_configuration = testing::FileObject(
                        "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n");
                  },
                  "doFirst Fairlead fairlead/fairlead: schedulerNames has kai-scheduler while"},
        CheckCase{
            "AFileThatCannotBeRead",
            [](KaiObjects& o) { o.fairlead_configuration = testing::FileObject("hook: [\n"); },
            "doFirst Fairlead fairlead/fairlead: its configuration cannot be read"},
        CheckCase{"NoFile", [](KaiObjects& o) { o.fairlead_configuration = Json(); },
                  "doFirst Fairlead fairlead/fairlead: its configuration was not found"},
        CheckCase{"KaisDefinition",
                  [](KaiObjects& o) {
                    o.definitions[1] = FromYaml("metadata: {name: podgroups.scheduling.run.ai}\n");
                  },
                  "doFirst CRD podgroups.scheduling.run.ai: is KAI's"},
        CheckCase{"APartition",
                  [](KaiObjects& o) {
                    o.shards[0] =
                        FromYaml("metadata: {name: a}\nspec: {partitionLabelValue: pool-a}\n");
                  },
                  "doFirst SchedulingShard a: has only the pool pool-a; Fairlead schedules the "
                  "whole cluster -> run Fairlead with --partition-label-value=pool-a, and"},
        CheckCase{"APartitionThatFairleadHas",
                  [](KaiObjects& o) {
                    o.shards[0] =
                        FromYaml("metadata: {name: a}\nspec: {partitionLabelValue: pool-a}\n");
                    o.deployments.back() = testing::FairleadDeploymentObject(
                        "[--partition-label-value=, --partition-label-value, pool-a]");
                  },
                  "same SchedulingShard a: has the pool pool-a, as a shard of Fairlead's"},
        CheckCase{"APartitionThatOneOfFairleadsLacks",
                  [](KaiObjects& o) {
                    o.fairlead_configuration = testing::FileObject(
                        "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n"
                        "shard: {partitionLabelValue: pool-a}\n");
                  },
                  "doFirst SchedulingShard default: has only the nodes without a pool; Fairlead "
                  "has no such shard"},
        CheckCase{"Spread",
                  [](KaiObjects& o) {
                    o.shards[0] =
                        FromYaml("metadata: {name: a}\nspec: {placementStrategy: {gpu: spread}}\n");
                  },
                  "differs SchedulingShard a: spreads pods"},
        CheckCase{
            "Depth",
            [](KaiObjects& o) {
              o.shards[0] =
                  FromYaml("metadata: {name: a}\nspec: {queueDepthPerAction: {reclaim: 5}}\n");
            },
            "differs SchedulingShard a: sets queueDepthPerAction, which Fairlead does not read "
            "-> set queueDepth"},
        CheckCase{"AnotherQueueLabel",
                  [](KaiObjects& o) {
                    o.configs[0] = FromYaml("spec: {global: {queueLabelKey: team}}\n");
                  },
                  "doFirst Config: global.queueLabelKey is team"},
        CheckCase{"ASelector",
                  [](KaiObjects& o) {
                    o.configs[0] = FromYaml("spec: {global: {namespaceLabelSelector: {a: b}}}\n");
                  },
                  "differs Config: global.namespaceLabelSelector is set"},
        CheckCase{"ArgoCd",
                  [](KaiObjects& o) {
                    Annotate(o.deployments[1], "annotations", "argocd.argoproj.io/tracking-id",
                             "x");
                  },
                  "doFirst Argo CD: "},
        CheckCase{"Helm",
                  [](KaiObjects& o) {
                    Annotate(o.deployments[2], "annotations", "meta.helm.sh/release-name", "kai");
                  },
                  "differs Helm: "},
        CheckCase{"AnInvalidQueue",
                  [](KaiObjects& o) {
                    o.queues[0] = FromYaml(
                        "kind: Queue\nmetadata: {name: team}\nspec: {resources: "
                        "{gpu: {quota: -3}}}\n");
                  },
                  "doFirst Queue team: runs nothing in Fairlead: spec.resources.gpu.quota"},
        CheckCase{"ACycle",
                  [](KaiObjects& o) {
                    o.queues[0] = FromYaml(
                        "kind: Queue\nmetadata: {name: team}\nspec: {parentQueue: "
                        "team, resources: {}}\n");
                  },
                  "doFirst Queue team: is its own ancestor"},
        CheckCase{"AnOrphan",
                  [](KaiObjects& o) {
                    o.queues[0] = FromYaml(
                        "kind: Queue\nmetadata: {name: team}\nspec: {parentQueue: "
                        "away, resources: {}}\n");
                  },
                  "same Queues without their parent: team run nothing, as in KAI"},
        CheckCase{"AGroupOfAnotherBackoff",
                  [](KaiObjects& o) {
                    o.pod_groups = {
                        FromYaml("kind: PodGroup\nmetadata: {name: g, namespace: a}\nspec: "
                                 "{schedulingBackoff: 7}\n")};
                  },
                  "differs PodGroup a/g: its pods would wait with InvalidRequest"},
        CheckCase{"EqualNames",
                  [](KaiObjects& o) {
                    for (const char* ns : {"a", "b"}) {
                      o.pod_groups.push_back(FromYaml(absl::StrCat(
                          "kind: PodGroup\nmetadata: {name: g, namespace: ", ns, "}\nspec: {}\n")));
                    }
                  },
                  "differs PodGroups of equal names: g are in several"},
        CheckCase{"OpenBindRequests",
                  [](KaiObjects& o) {
                    o.bind_requests = {
                        FromYaml("metadata: {name: p, namespace: a}\nstatus: {phase: Pending}\n"),
                        FromYaml(
                            "metadata: {name: d, namespace: a}\nstatus: {phase: Succeeded}\n")};
                  },
                  "differs BindRequests: 1 are not done: a/p"},
        CheckCase{"PodsWithATopology",
                  [](KaiObjects& o) {
                    o.pods = {
                        FromYaml("metadata: {annotations: {kai.scheduler/topology: t}}\nstatus: "
                                 "{phase: Pending}\n")};
                  },
                  "differs kai.scheduler/topology: is ignored on pods; pods that have it: 1"}));

}  // namespace
}  // namespace fairlead::cmd
