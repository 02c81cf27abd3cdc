// Cluster::Adopt: the objects of a real cluster in a simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "sim/cluster.h"
#include "sim/drain.h"
#include "sim/present_testing.h"

namespace fairlead::sim {
namespace {

using ::testing::HasSubstr;
using testing::NodeYaml;
using testing::PodYaml;
using testing::PresentOf;
using testing::PresentTime;

class AdoptTest : public ::testing::Test {
 protected:
  AdoptTest() : cluster_(ClusterOptions(), PresentTime()) {}

  void Adopt(const std::string& yaml) {
    const absl::Status status = cluster_.Adopt(PresentOf(yaml).objects);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Run(absl::Duration time) { cluster_.queue().RunUntil(cluster_.queue().now() + time); }
  const model::Pod* Pod(const std::string& name) {
    return cluster_.server().Find<model::Pod>(absl::StrCat("team/", name));
  }
  absl::Status Evict(const std::string& name) {
    const model::Pod* pod = Pod(name);
    if (pod == nullptr) return absl::NotFoundError(name);
    return ApiWrites(&cluster_.server())
        .Commit(model::EvictPod{"team", name, pod->meta.uid, "", ""});
  }

  Cluster cluster_;
};

TEST_F(AdoptTest, ItKeepsIdentitiesAndCountsVersionsOn) {
  Adopt(NodeYaml("n", 1) + PodYaml("a", "q", "n"));
  EXPECT_EQ(Pod("a")->meta.uid, "uid-102");
  EXPECT_EQ(cluster_.server().version(), "102");
  Run(absl::Minutes(10));
  EXPECT_EQ(Pod("a")->meta.resource_version, "102");  // it runs: nothing is written
  ASSERT_TRUE(Evict("a").ok());
  EXPECT_EQ(Pod("a")->meta.resource_version, "103");
}

TEST_F(AdoptTest, TwoObjectsOfOneNameAreAnError) {
  const absl::Status status =
      cluster_.Adopt(PresentOf(NodeYaml("n", 1) + NodeYaml("n", 2)).objects);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

TEST_F(AdoptTest, ABoundPodStartsAndNoPodEndsByItself) {
  std::string bound = PodYaml("a", "q", "n");
  bound.replace(bound.find("Running"), 7, "Pending");
  bound.replace(bound.find("metadata:\n"), 10,
                "metadata:\n  annotations: {fairlead.dev/run-seconds: '1'}\n");
  Adopt(NodeYaml("n", 1) + bound);
  Run(absl::Minutes(10));
  EXPECT_EQ(Pod("a")->phase, model::PodPhase::kRunning);
}

TEST_F(AdoptTest, AnOwnedPodComesBackWithoutTracesOfItsFirstLife) {
  std::string yaml = PodYaml("a", "q", "n");
  yaml.replace(yaml.find("metadata:\n"), 10,
               "metadata:\n  annotations: {fairlead.dev/verdict: '{}', fairlead.dev/started-under: "
               "x, karpenter.sh/do-not-disrupt: 'true'}\n");
  Adopt(NodeYaml("n", 1) + yaml);
  ASSERT_TRUE(Evict("a").ok());
  EXPECT_TRUE(Pod("a")->meta.deletion.has_value());
  Run(absl::Seconds(10));
  ASSERT_NE(Pod("a"), nullptr);
  EXPECT_NE(Pod("a")->meta.uid, "uid-102");
  EXPECT_EQ(Pod("a")->node_name, "");
  EXPECT_EQ(Pod("a")->phase, model::PodPhase::kPending);
  EXPECT_FALSE(Pod("a")->meta.deletion.has_value());
  EXPECT_FALSE(Pod("a")->meta.annotations.Has(model::kVerdictAnnotation));
  EXPECT_FALSE(Pod("a")->meta.annotations.Has(model::kStartedUnderAnnotation));
  EXPECT_TRUE(Pod("a")->meta.annotations.Has(model::kKarpenterDoNotDisruptAnnotation));
  EXPECT_EQ(Pod("a")->meta.labels.Get(model::kQueueLabel), "q");
}

TEST_F(AdoptTest, APodWithoutAControllerAndOneOfADaemonSetDoNotComeBack) {
  std::string daemon = PodYaml("d", "q", "n");
  daemon.replace(daemon.find("ReplicaSet"), 10, "DaemonSet");
  std::string ended = PodYaml("e", "q", "n");
  ended.replace(ended.find("Running"), 7, "Succeeded");
  Adopt(NodeYaml("n", 1) + PodYaml("b", "q", "n", /*bare=*/true) + daemon + ended);
  for (const char* name : {"b", "d", "e"}) EXPECT_TRUE(Evict(name).ok());
  Run(absl::Minutes(1));
  for (const char* name : {"b", "d", "e"}) EXPECT_EQ(Pod(name), nullptr) << name;
}

constexpr char kBudget[] = R"(
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: one-at-a-time, namespace: team}
spec: {maxUnavailable: 1, selector: {}}
status: {observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1}
)";

TEST_F(AdoptTest, ABudgetAllowsTheNextEvictionOnceTheSuccessorIsReady) {
  Adopt(NodeYaml("n", 2) + PodYaml("a", "q", "n") + PodYaml("b", "q", "n") + kBudget);
  ASSERT_TRUE(Evict("a").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Evict("b")));
  Run(absl::Minutes(1));
  EXPECT_TRUE(absl::IsResourceExhausted(Evict("b")));  // the successor waits for a node
  model::BindPod bind;
  bind.ns = "team";
  bind.name = "a";
  bind.node = "n";
  ASSERT_TRUE(ApiWrites(&cluster_.server()).Commit(bind).ok());
  Run(absl::Minutes(1));
  EXPECT_TRUE(Pod("a")->ready);
  EXPECT_TRUE(Evict("b").ok());
}

TEST_F(AdoptTest, ADrainRepeatsWhatABudgetRefusesAndLeavesWhatBelongsToTheNode) {
  std::string daemon = PodYaml("d", "q", "n"), kept = PodYaml("k", "q", "n");
  daemon.replace(daemon.find("ReplicaSet"), 10, "DaemonSet");
  kept.replace(kept.find("metadata:\n"), 10,
               "metadata:\n  annotations: {fairlead.dev/do-not-evict: 'true'}\n");
  Adopt(NodeYaml("n", 2) + NodeYaml("other", 2) + PodYaml("a", "q", "n") + PodYaml("b", "q", "n") +
        PodYaml("c", "q", "other") + daemon + kept + kBudget);
  const Drain drain(&cluster_.queue(), &cluster_.server(), {"n"});
  Run(absl::Minutes(1));
  ASSERT_EQ(drain.outcomes().size(), 2u);
  EXPECT_TRUE(drain.outcomes().at("team/a").evicted);
  EXPECT_FALSE(drain.outcomes().at("team/b").evicted);
  EXPECT_THAT(drain.outcomes().at("team/b").refusal, HasSubstr("one-at-a-time"));
  EXPECT_EQ(Pod("d")->node_name, "n");
  EXPECT_EQ(Pod("k")->node_name, "n");
  EXPECT_EQ(Pod("c")->node_name, "other");
  cluster_.server().Remove<model::PodDisruptionBudget>("team/one-at-a-time");
  Run(absl::Minutes(1));
  EXPECT_TRUE(drain.outcomes().at("team/b").evicted);
  EXPECT_EQ(drain.outcomes().at("team/b").refusal, "");
}

std::string RequestYaml(const std::string& name, const std::string& phase) {
  return absl::StrCat(
      "---\napiVersion: fairlead.dev/v1alpha1\nkind: NodeRequest\nmetadata: {name: ", name,
      "}\nspec: {provider: kwok, instanceType: g5.xlarge, zone: z}\n", "status: {phase: ", phase,
      "}\n");
}

TEST_F(AdoptTest, AUsableNodeHasItsMachineAndOneUnderWayIsOrderedAnew) {
  std::string ready = NodeYaml("r", 1), booting = NodeYaml("b", 1);
  ready.replace(ready.find("labels: {"), 9, "labels: {fairlead.dev/node-request: r, ");
  booting.replace(booting.find("labels: {"), 9, "labels: {fairlead.dev/node-request: b, ");
  booting.replace(booting.find("'True'"), 6, "'False'");
  Adopt(ready + booting + RequestYaml("r", "Ready") + RequestYaml("b", "Registered") +
        RequestYaml("l", "Launched") + RequestYaml("lost", "Ready"));
  EXPECT_EQ(cluster_.cloud().machines().size(), 1u);
  EXPECT_EQ(cluster_.cloud().machines().at("r").node_name, "r");
  EXPECT_EQ(cluster_.server().Find<model::Node>("b"), nullptr);
  for (const char* name : {"b", "l"}) {
    const auto* request = cluster_.server().Find<model::NodeRequest>(name);
    EXPECT_EQ(request->phase, model::NodeRequestPhase::kPending) << name;
    EXPECT_EQ(request->meta.creation, PresentTime()) << name;
  }
  EXPECT_EQ(cluster_.server().Find<model::NodeRequest>("lost")->phase,
            model::NodeRequestPhase::kReady);
  ASSERT_TRUE(cluster_.cloud().Terminate({"r", "kwok", "r", ""}).ok());
  Run(absl::Minutes(1));
  EXPECT_EQ(cluster_.server().Find<model::Node>("r"), nullptr);
}

}  // namespace
}  // namespace fairlead::sim
