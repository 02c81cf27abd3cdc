#include "cmd/fairlead/forecast/change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cmd/fairlead/cluster/manifest_fields.h"
#include "document/yaml.h"
#include "sim/present_testing.h"

namespace fairlead::cmd {
namespace {

using sim::testing::NodeYaml;
using sim::testing::PodYaml;
using sim::testing::PresentOf;
using sim::testing::QueueYaml;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<Change> ReadText(const std::string& yaml,
                                const std::vector<std::string>& removed = {}) {
  return ReadChange(yaml.empty() ? std::vector<std::string>() : std::vector<std::string>{"f.yaml"},
                    removed, [&](const std::string&) { return yaml; });
}

std::string ChangeErrorOf(const std::string& yaml, const std::vector<std::string>& removed = {}) {
  const absl::StatusOr<Change> change = ReadText(yaml, removed);
  EXPECT_TRUE(absl::IsInvalidArgument(change.status())) << change.status() << "\n" << yaml;
  return std::string(change.status().message());
}

TEST(ChangeTest, EveryErrorNamesFilePlaceObjectAndField) {
  EXPECT_THAT(
      ChangeErrorOf("apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec:\n"
                    "  resources:\n    gpu: {limt: 3}\n"),
      ::testing::StrEq("f.yaml:6:11: Queue q: spec.resources.gpu.limt: unknown field; did "
                       "you mean limit?"));
  EXPECT_THAT(ChangeErrorOf(QueueYaml("a", 1, 1) + "---\napiVersion: v2\nmetadata: {name: b}\n"),
              HasSubstr("document b: kind is missing"));
  EXPECT_THAT(ChangeErrorOf("kind: Queue\nmetadata: {name: b}\n"),
              HasSubstr("apiVersion is missing"));
  EXPECT_THAT(
      ChangeErrorOf("apiVersion: scheduling.run.ai/v2\nkind: Queue\nspec: {resources: {}}\n"),
      ::testing::StrEq("f.yaml:1:1: Queue: metadata.name is missing"));
  EXPECT_THAT(ChangeErrorOf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"),
              HasSubstr("f.yaml:1:1: v1 Secret"));
  EXPECT_THAT(ChangeErrorOf("- 1\n"), HasSubstr("must be an object"));
  EXPECT_THAT(ChangeErrorOf("# nothing\n"), HasSubstr("f.yaml: has no object"));
  EXPECT_THAT(ChangeErrorOf("a: [\n"), StartsWith("f.yaml:"));
  EXPECT_THAT(ChangeErrorOf(QueueYaml("a", 1, 1) + QueueYaml("a", 2, 2)),
              HasSubstr("Queue a: is in the change already, at f.yaml:"));
  EXPECT_THAT(
      ChangeErrorOf("apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec:\n"
                    "  resources: {gpu: {limit: many}}\n"),
      HasSubstr("spec.resources.gpu.limit"));
  EXPECT_THAT(
      ChangeErrorOf("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n"
                    "  metadata: {name: p}\n  spec:\n    containers:\n    - {name: c, imag: i}\n"),
      HasSubstr("f.yaml:9:17: Pod p: spec.containers[0].imag: unknown field; did you mean "
                "image?"));
}

TEST(ChangeTest, WhatIsTakenAwayIsAKindAndAName) {
  EXPECT_THAT(ChangeErrorOf("", {"Qeue/a"}), HasSubstr("--delete Qeue/a: "));
  EXPECT_THAT(ChangeErrorOf("", {"Pod/a"}), HasSubstr("must be Pod/namespace/name"));
  EXPECT_THAT(ChangeErrorOf("", {"Queue/"}), HasSubstr("a name is empty"));
  EXPECT_THAT(ChangeErrorOf("", {"Queue/a", "queue/a"}), HasSubstr("deleted twice"));
  EXPECT_THAT(ChangeErrorOf(QueueYaml("a", 1, 1), {"Queue/a"}), HasSubstr("is also applied"));
  const absl::StatusOr<Change> change = ReadText("", {"queue/a", "POD/n/b", "job/n/c"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->removed[0].kind, "Queue");
  EXPECT_EQ(change->removed[1].key, "n/b");
  EXPECT_EQ(change->removed[2].kind, "Job");
}

TEST(ChangeTest, AMissingFileIsNamed) {
  const absl::StatusOr<Change> change = ReadChange({"/nonesuch.yaml"}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(change.status()));
  EXPECT_THAT(std::string(change.status().message()), HasSubstr("/nonesuch.yaml: No such file"));
}

absl::StatusOr<PlannedChange> PlanOf(const sim::Present& present, const std::string& yaml,
                                     const std::vector<std::string>& removed = {}) {
  const absl::StatusOr<Change> change = ReadText(yaml, removed);
  EXPECT_TRUE(change.ok()) << change.status();
  return PlanChange(*change, present);
}

TEST(ChangeTest, ItSaysWhatIsReplacedAddedAndDeleted) {
  const sim::Present present = PresentOf(QueueYaml("q", 1, 1) + NodeYaml("n", 1) +
                                         PodYaml("a", "q", "n") + PodYaml("b", "q", "n"));
  const auto planned =
      PlanOf(present,
             QueueYaml("q", 2, 2) + QueueYaml("r", 0, 0) + PodYaml("a", "q", "") + NodeYaml("n", 4),
             {"Pod/team/b"});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_THAT(planned->done, ElementsAre("deletes Pod team/b", "replaces Queue q", "adds Queue r",
                                         "replaces Pod team/a", "replaces Node n"));
  // The pod is created anew, and the node is another one under the same uid.
  ASSERT_EQ(planned->present.objects.size(), 2u);
  const auto& node = std::get<model::Node>(planned->present.objects[1]);
  EXPECT_EQ(node.meta.uid, "uid-102");
  EXPECT_EQ(model::Get(node.allocatable, "nvidia.com/gpu"), 4000);
  EXPECT_EQ(planned->applied.objects.size(), 3u);
}

TEST(ChangeTest, ADeploymentOrJobIsTakenAwayWithItsPodsAndNotAddedTwice) {
  std::string one = PodYaml("a", "q", ""), other = PodYaml("b", "q", "");
  one.replace(one.find("name: set"), 9, "name: web-5d9c");
  other.replace(other.find("name: set"), 9, "name: web-canary-77");
  const sim::Present present = PresentOf(one + other);
  const auto planned = PlanOf(present, "", {"Deployment/team/web"});
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->present.objects.size(), 1u);
  EXPECT_EQ(model::MetaOf(planned->present.objects[0]).name, "b");
  EXPECT_TRUE(absl::IsNotFound(PlanOf(present, "", {"Job/team/web"}).status()));
  const std::string deployment =
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: team}\nspec:\n"
      "  replicas: 1\n  template: {spec: {containers: [{name: c, image: i}]}}\n";
  const absl::Status twice = PlanOf(present, deployment).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(twice)) << twice;
  EXPECT_THAT(std::string(twice.message()), HasSubstr("team/a"));
}

TEST(ChangeTest, WhatIsNotThereCannotBeTakenAway) {
  const absl::Status status = PlanOf(PresentOf(QueueYaml("q", 1, 1)), "", {"Queue/r"}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--delete Queue/r: the cluster has no such"));
}

std::string ChildYaml(const std::string& name, const std::string& parent) {
  std::string yaml = QueueYaml(name, 1, 1);
  return yaml.replace(yaml.find("spec:\n"), 6, "spec:\n  parentQueue: " + parent + "\n");
}

TEST(ChangeTest, QueuesStayATree) {
  const sim::Present present =
      PresentOf(QueueYaml("top", 1, 1) + ChildYaml("leaf", "top") + ChildYaml("lost", "nowhere"));
  EXPECT_TRUE(PlanOf(present, ChildYaml("new", "leaf")).ok());  // what is wrong already is not told
  const absl::Status orphan = PlanOf(present, ChildYaml("new", "topp")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(orphan));
  EXPECT_EQ(std::string(orphan.message()),
            "f.yaml:2:1: Queue new: spec.parentQueue: there would be no queue topp");
  EXPECT_THAT(std::string(PlanOf(present, ChildYaml("top", "leaf")).status().message()),
              HasSubstr("would make a cycle"));
  EXPECT_THAT(std::string(PlanOf(present, "", {"Queue/top"}).status().message()),
              HasSubstr("Queue leaf: spec.parentQueue: there would be no queue top"));
}

// ---- manifest_fields

// The leaves of a schema, as KnownFields spells them.
void Leaves(const std::string& path, const Json& schema, std::set<std::string>& out) {
  if (schema.TextAt({"type"}) == "array") return Leaves(path + "[]", *schema.Find("items"), out);
  if (const Json* properties = schema.Find("properties"); properties != nullptr) {
    for (const auto& [key, value] : properties->fields()) Leaves(path + "." + key, value, out);
    return;
  }
  const Json* any = schema.Find("additionalProperties");
  if (any != nullptr && any->is_object()) return Leaves(path + ".*", *any, out);
  out.insert(path);
}

TEST(ManifestFieldsTest, TheyAreThoseOfTheDefinitions) {
  const std::map<std::string, std::string> kinds = {{"queue", "scheduling.run.ai/v2"},
                                                    {"nodepool", "fairlead.dev/v1alpha1"},
                                                    {"topology", "kai.scheduler/v1alpha1"},
                                                    {"podgroup", "scheduling.run.ai/v2alpha2"}};
  for (const auto& [file, api_version] : kinds) {
    const absl::StatusOr<std::string> text = ReadTextFile("crds/" + file + ".yaml");
    ASSERT_TRUE(text.ok()) << text.status();
    YamlOptions options;
    options.aliases = true;
    const absl::StatusOr<std::vector<Json>> documents = LoadYaml(*text, options);
    ASSERT_TRUE(documents.ok()) << documents.status();
    const Json& definition = documents->front();
    std::set<std::string> leaves;
    for (const Json& version : definition.At({"spec", "versions"})->items()) {
      const Json* spec = version.At({"schema", "openAPIV3Schema", "properties", "spec"});
      ASSERT_NE(spec, nullptr);
      Leaves("spec", *spec, leaves);
    }
    const std::vector<std::string> known =
        KnownFields(api_version, definition.TextAt({"spec", "names", "kind"}));
    EXPECT_EQ(std::set<std::string>(known.begin(), known.end()), leaves) << file;
  }
}

TEST(ManifestFieldsTest, MapsHaveAnyKeyAndOtherKindsAnyField) {
  const auto unknown = [](const std::string& yaml) {
    std::vector<std::string> paths;
    for (const UnknownField& field : UnknownFields(LoadYaml(yaml)->front())) {
      paths.push_back(field.path);
    }
    return paths;
  };
  EXPECT_THAT(unknown("apiVersion: fairlead.dev/v1alpha1\nkind: NodePool\nmetadata: {name: p, "
                      "lables: {}}\nspec:\n  labels: {a.b/c: d}\n  taints: [{key: a, efect: b}]\n"),
              ElementsAre("metadata.lables", "spec.taints[0].efect"));
  EXPECT_THAT(unknown("apiVersion: v1\nkind: Node\nmetadata: {nam: p}\nspec: {any: thing}\n"),
              ElementsAre("metadata.nam"));
  EXPECT_THAT(unknown("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {x: y}\nspec:\n"
                      "  nodeSelector: {k: v}\n  affinity: {nodeAffinty: {}}\n  initContainers:\n"
                      "  - {resources: {limit: {}}}\n"),
              ElementsAre("spec.affinity.nodeAffinty", "spec.initContainers[0].resources.limit"));
}

}  // namespace
}  // namespace fairlead::cmd
