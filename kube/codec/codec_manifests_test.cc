#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"

namespace fairlead::kube {
namespace {

constexpr char kManifest[] = R"(# a cluster
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  capacity: {cpu: 8, memory: 32Gi, nvidia.com/gpu: "4", pods: 110}
---
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a}
spec: {resources: {gpu: {quota: 0.5, limit: -1}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: p1}
  spec: {containers: [{resources: {requests: {cpu: 1.5}}}]}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata: {name: other}
)";

TEST(DecodeManifestsTest, MixedDocuments) {
  absl::StatusOr<Manifests> manifests = DecodeManifests(kManifest);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_EQ(manifests->objects.size(), 3u);
  const auto& node = std::get<model::Node>(manifests->objects[0]);
  EXPECT_EQ(model::Get(node.allocatable, "nvidia.com/gpu"), 4000);
  EXPECT_TRUE(node.ready);
  EXPECT_EQ(std::get<model::Queue>(manifests->objects[1]).gpu.quota, 500);
  const auto& pod = std::get<model::Pod>(manifests->objects[2]);
  EXPECT_EQ(pod.meta.ns, "default");
  EXPECT_EQ(pod.spec.ns, "default");
  EXPECT_EQ(model::Get(pod.spec.requests, "cpu"), 1500);
  EXPECT_EQ(manifests->skipped,
            (std::vector<std::string>{"apps/v1 Deployment default/web",
                                      "scheduling.volcano.sh/v1beta1 Queue other"}));
}

TEST(DecodeManifestsTest, JsonDocuments) {
  const std::string node = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"a}\"{"}})";
  for (const std::string& text :
       {node + node, "\n" + node + "\n" + node + "\n", node + "\n---\n" + node,
        absl::StrCat(R"({"kind":"NodeList","apiVersion":"v1","items":[)", node, ",", node, "]}")}) {
    absl::StatusOr<Manifests> manifests = DecodeManifests(text);
    ASSERT_TRUE(manifests.ok()) << text << manifests.status();
    ASSERT_EQ(manifests->objects.size(), 2u) << text;
    EXPECT_EQ(MetaOf(manifests->objects[1]).name, "a}\"{");
  }
}

TEST(DecodeManifestsTest, EveryKind) {
  std::string text;
  for (const char* row :
       {"v1 Pod", "v1 Node", "scheduling.run.ai/v2 Queue", "scheduling.run.ai/v2alpha2 PodGroup",
        "scheduling.k8s.io/v1 PriorityClass", "kai.scheduler/v1alpha1 Topology",
        "fairlead.dev/v1alpha1 NodeRequest", "fairlead.dev/v1alpha1 NodePool"}) {
    const std::string version(row, std::string(row).find(' '));
    absl::StrAppend(&text, "---\napiVersion: ", version, "\nkind: ", row + version.size() + 1,
                    "\nmetadata: {name: x}\n");
  }
  absl::StatusOr<Manifests> manifests = DecodeManifests(text);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  EXPECT_EQ(manifests->objects.size(), 8u);
  EXPECT_TRUE(manifests->skipped.empty());
}

TEST(DecodeManifestsTest, ErrorsNameTheDocument) {
  struct Case {
    const char *yaml, *want;
  };
  const Case cases[] = {
      {"a: 1\n---\nkind: Pod\n", "line 1, column 1: an object needs apiVersion and kind"},
      {"---\napiVersion: v1\nkind: Pod\n", "line 2, column 1: Pod: metadata.name is missing"},
      {"[1]", "line 1, column 1: malformed JSON: not an object"},
      {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: high\n",
       "line 1, column 1: PriorityClass p: value: must be a number, not a string"},
      {"apiVersion: v1\nkind: List\nitems: [{kind: Pod, apiVersion: v1}]",
       "line 1, column 1: items[0]: Pod: metadata.name is missing"},
      {"{\"kind\": \"Pod\", \"apiVersion\": ", "YAML: line 1, column "},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<Manifests> manifests = DecodeManifests(c.yaml);
    EXPECT_EQ(manifests.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(manifests.status().message(), c.want))
        << manifests.status().message();
  }
  EXPECT_TRUE(DecodeManifests("")->objects.empty());
  // An invalid value is the object's own problem.
  absl::StatusOr<Manifests> bad =
      DecodeManifests("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {priority: x}\n");
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_NE(std::get<model::Pod>(bad->objects[0]).invalid, "");
}

TEST(DecodeManifestsTest, DamageNeverCrashes) {
  const std::string text = kManifest;
  for (size_t i = 0; i < text.size(); i += 3) {
    static_cast<void>(DecodeManifests(text.substr(0, i)));
    for (char c : {'{', '}', '[', '"', ':', '\n', '&', '\xFF'}) {
      std::string damaged = text;
      damaged[i] = c;
      const absl::StatusOr<Manifests> manifests = DecodeManifests(damaged);
      if (!manifests.ok()) {
        ASSERT_EQ(manifests.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::kube
