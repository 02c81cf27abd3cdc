// The format: what is read, and what is refused with file, line and column.
#include "tests/behaviours/behaviour.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fairlead::behaviours {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kManifests[] = R"(---
apiVersion: v1
kind: Node
metadata: {name: a}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
)";

// The error of a story whose last lines, from the third on, are these.
std::string ErrorOf(absl::string_view lines) {
  const absl::StatusOr<Behaviour> read =
      ParseBehaviour(absl::StrCat("name: x\nwhy: y\n", lines, kManifests), "dir/x.yaml");
  return read.ok() ? "" : std::string(read.status().message());
}

constexpr char kSteps[] = "steps: [{apply: [Node/a, Pod/web], expect: {pods: {web: {node: a}}}}]\n";

TEST(BehaviourFormatTest, ReadsAStory) {
  constexpr char kStory[] = R"(
name: x
why: y
steps:
- apply: [Node/a, Pod/web]
  expect:
    pods: {web: {nodeIn: [a]}}
    spread: [{pods: [web], by: zone, counts: [2, 1]}]
- patch: {Node/a: {spec: {unschedulable: true}}}
  delete: [Pod/web]
  expect:
    pods: {web: {waits: {code: Gated, reasonContains: r, messageContains: m}}}
    evicted: [web]
)";
  const absl::StatusOr<Behaviour> read =
      ParseBehaviour(absl::StrCat(kStory, kManifests), "dir/x.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->for_kube_scheduler);
  EXPECT_THAT(read->manifests, SizeIs(2));
  ASSERT_THAT(read->steps, SizeIs(2));
  const Step& first = read->steps[0];
  EXPECT_EQ(first.apply[1].Text(), "Pod/default/web");
  EXPECT_THAT(first.evicted, IsEmpty());
  ASSERT_THAT(first.pods, SizeIs(1));
  EXPECT_EQ(first.pods[0].pod, "default/web");
  EXPECT_THAT(first.pods[0].nodes, ElementsAre("a"));
  EXPECT_EQ(first.pods[0].place.line, 7);
  EXPECT_THAT(first.spread.at(0).counts, ElementsAre(1, 2)) << "in ascending order";
  const Step& second = read->steps[1];
  EXPECT_EQ(second.patch.at(0).second.Compact(), R"({"spec":{"unschedulable":true}})");
  EXPECT_EQ(second.remove.at(0).Text(), "Pod/default/web");
  EXPECT_THAT(second.pods.at(0).nodes, IsEmpty());
  EXPECT_EQ(second.pods.at(0).code, "Gated");
  EXPECT_EQ(second.pods.at(0).reason, "r");
  EXPECT_EQ(second.pods.at(0).message, "m");
  EXPECT_THAT(second.evicted, ElementsAre("default/web"));
}

TEST(BehaviourFormatTest, AddsAProfileOfTheDefaultSchedulerUnlessTheFileHasOne) {
  EXPECT_EQ(ErrorOf(kSteps), "");
  const auto parse = [](absl::string_view config) {
    return *ParseBehaviour(absl::StrCat("name: x\nwhy: y\n", config, kSteps, kManifests), "x.yaml");
  };
  const Behaviour plain = parse("");
  EXPECT_EQ(plain.SchedulerName(), "default-scheduler");
  ASSERT_THAT(plain.CompleteConfig(), SizeIs(1));
  EXPECT_EQ(plain.CompleteConfig()[0].TextAt({"kind"}), "KubeSchedulerConfiguration");
  const Behaviour named =
      parse("config: [{kind: KubeSchedulerConfiguration, profiles: [{schedulerName: mine}]}]\n");
  EXPECT_EQ(named.SchedulerName(), "mine");
  EXPECT_THAT(named.CompleteConfig(), SizeIs(1));
}

TEST(BehaviourFormatTest, RefusesUnknownFieldsWithTheirPlace) {
  EXPECT_EQ(ErrorOf(absl::StrCat("whose: z\n", kSteps)), "dir/x.yaml:3:1: whose: unknown field");
  EXPECT_EQ(ErrorOf("steps:\n- aply: [Node/a]\n  expect: {evicted: []}\n"),
            "dir/x.yaml:4:3: steps[0].aply: unknown field");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {evicts: []}\n"),
            "dir/x.yaml:4:12: steps[0].expect.evicts: unknown field");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {on: a}}}\n"),
            "dir/x.yaml:4:25: steps[0].expect.pods.web.on: unknown field");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {waits: {why: a}}}}\n"),
            "dir/x.yaml:4:33: steps[0].expect.pods.web.waits.why: unknown field");
}

TEST(BehaviourFormatTest, RefusesAStepThatExpectsNothing) {
  EXPECT_EQ(ErrorOf("steps:\n- apply: [Node/a]\n"), "dir/x.yaml:4:3: steps[0].expect: is missing");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {}\n"), "dir/x.yaml:4:11: steps[0].expect: expects nothing");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {}}}\n"),
            "dir/x.yaml:4:24: steps[0].expect.pods.web: must have one of node, nodeIn, waits "
            "and ignored");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {ignored: false}}}\n"),
            "dir/x.yaml:4:34: steps[0].expect.pods.web.ignored: must be true");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {nodeIn: []}}}\n"),
            "dir/x.yaml:4:24: steps[0].expect.pods.web: names no node");
}

TEST(BehaviourFormatTest, RefusesWhatHasNoManifestAndManifestsThatNothingApplies) {
  EXPECT_EQ(ErrorOf("steps:\n- apply: [Pod/other]\n  expect: {evicted: []}\n"),
            "dir/x.yaml:4:11: steps[0].apply[0]: the file has no manifest of Pod/default/other");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {other: {node: a}}}\n"),
            "dir/x.yaml:4:19: steps[0].expect.pods.other: the file has no manifest of "
            "Pod/default/other");
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {node: b}}}\n"),
            "dir/x.yaml:4:24: steps[0].expect.pods.web: the file has no manifest of Node/b");
  EXPECT_EQ(ErrorOf("steps:\n- apply: [Node/a]\n  expect: {evicted: []}\n"),
            "dir/x.yaml:11:1: Pod/default/web: is not applied by any step");
}

TEST(BehaviourFormatTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(ErrorOf("steps:\n- expect: {pods: {web: {waits: {code: Lazy}}}}\n"),
            "dir/x.yaml:4:39: steps[0].expect.pods.web.waits.code: is not a code of "
            "docs/verdict.md");
  EXPECT_EQ(ErrorOf("steps: []\n"), "dir/x.yaml:3:8: steps: there are none");
  EXPECT_EQ(ErrorOf(absl::StrCat(kSteps, "kubeScheduler: perhaps\n")),
            "dir/x.yaml:4:16: kubeScheduler: must be true or false");
  EXPECT_EQ(ParseBehaviour(absl::StrCat("name: other\nwhy: y\n", kSteps, kManifests), "x.yaml")
                .status()
                .message(),
            "x.yaml:1:7: name: must be the file's name without its ending");
  EXPECT_EQ(ErrorOf(absl::StrCat(kSteps, kManifests, "---\napiVersion: v1\nkind: Pod\n")),
            "dir/x.yaml:13:1: metadata.name is missing");
}

TEST(BehaviourFormatTest, ReadsTheFilesOfAFolderByName) {
  EXPECT_THAT(BehaviourFiles("tests/behaviours/testdata"),
              ElementsAre("tests/behaviours/testdata/applied-twice.yaml",
                          "tests/behaviours/testdata/wrong-config.yaml",
                          "tests/behaviours/testdata/wrong-node.yaml",
                          "tests/behaviours/testdata/wrong-victim.yaml",
                          "tests/behaviours/testdata/wrong-wait.yaml"));
  EXPECT_THAT(BehaviourFiles("no/such"), IsEmpty());
  EXPECT_EQ(TestNameOf("a/b/host-port.yaml"), "host_port");
  EXPECT_EQ(ReadBehaviour("no/such.yaml").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fairlead::behaviours
