#include "sim/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkloads[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: research}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: train}
value: 50
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: serving}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, kai.scheduler/queue: q}}
    spec:
      schedulerName: fairlead
      containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 500m}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: research}
spec:
  parallelism: 2
  completions: 3
  template:
    metadata: {annotations: {fairlead.dev/run-seconds: "60"}}
    spec:
      schedulerName: fairlead
      priorityClassName: train
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
)";

class ClusterTest : public ::testing::Test {
 protected:
  explicit ClusterTest() : cluster_(ClusterOptions(), absl::UnixEpoch()) {
    cluster_.Connect([this](const model::ClusterEvent& event) {
      if (const auto* result = std::get_if<model::ActionResult>(&event))
        results_.push_back(*result);
    });
  }
  void Apply(const std::string& yaml) {
    absl::StatusOr<Manifest> manifest = ReadManifest(yaml, "test.yaml");
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const absl::Status status = cluster_.Apply(*manifest);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Wait(absl::Duration time) { cluster_.queue().RunUntil(cluster_.queue().now() + time); }
  const model::Pod* Pod(const std::string& key) { return cluster_.server().Find<model::Pod>(key); }
  void AddNode(const std::string& name) {
    model::Node node;
    node.meta.name = name;
    ASSERT_TRUE(cluster_.server().Create(node).ok());
  }
  void Execute(decltype(model::Action::what) what) {
    cluster_.executor().Execute({{++last_id_, std::move(what)}});
  }
  void Bind(const std::string& ns, const std::string& name, const std::string& node) {
    Execute(model::BindPod{ns, name, Pod(ns + "/" + name)->meta.uid, node, {}});
  }
  // Of the last action.
  absl::StatusCode Result() {
    EXPECT_FALSE(results_.empty());
    EXPECT_EQ(results_.back().action_id, last_id_);
    return results_.back().status.code();
  }

  Cluster cluster_;
  std::vector<model::ActionResult> results_;
  uint64_t last_id_ = 0;
};

model::LaunchNode Launch(const std::string& name) {
  model::LaunchNode launch;
  launch.request.Own().meta.name = name;
  launch.request.Own().instance_type = "g5.xlarge";
  launch.request.Own().zone = "a";
  launch.node.Own().meta.name = name;
  launch.node.Own().allocatable = {{"cpu", 4000}, {"nvidia.com/gpu", 1000}, {"pods", 110}};
  launch.node.Own().taints = {{model::kStartupTaint, "", model::TaintEffect::kNoSchedule},
                              {"stays", "", model::TaintEffect::kNoSchedule}};
  return launch;
}

TEST_F(ClusterTest, ControllersMakeThePodsThatTheirObjectsAskFor) {
  Apply(kWorkloads);
  Wait(absl::Seconds(1));
  ASSERT_NE(Pod("serving/web-0"), nullptr);
  ASSERT_NE(Pod("serving/web-1"), nullptr);
  EXPECT_EQ(Pod("serving/web-2"), nullptr);
  EXPECT_EQ(Pod("serving/web-0")->meta.owners[0].kind, "ReplicaSet");
  EXPECT_EQ(Pod("serving/web-0")->meta.labels.Get("kai.scheduler/queue"), "q");
  EXPECT_EQ(model::Get(Pod("serving/web-0")->spec.requests, "nvidia.com/gpu"), 1000);
  EXPECT_EQ(model::Get(Pod("serving/web-0")->spec.requests, "cpu"), 500);
  ASSERT_NE(Pod("research/train-1"), nullptr);
  EXPECT_EQ(Pod("research/train-2"), nullptr) << "only two at a time";
  EXPECT_EQ(Pod("research/train-0")->meta.owners[0].kind, "Job");
  EXPECT_EQ(Pod("research/train-0")->priority, 50);
  EXPECT_NE(Pod("research/train-0")->meta.uid, Pod("research/train-1")->meta.uid);
}

TEST_F(ClusterTest, AJobRunsToItsEndAndReplacesWhatWasEvicted) {
  Apply(kWorkloads);
  AddNode("n");
  Wait(absl::Seconds(1));
  Bind("research", "train-0", "n");
  Bind("research", "train-1", "n");
  Wait(absl::Seconds(5));
  EXPECT_EQ(Pod("research/train-0")->phase, model::PodPhase::kRunning);
  Execute(model::EvictPod{"research", "train-1", Pod("research/train-1")->meta.uid, "r", "m"});
  Wait(absl::Seconds(1));
  EXPECT_TRUE(Pod("research/train-1")->meta.deletion.has_value());
  Wait(absl::Seconds(4));
  EXPECT_EQ(Pod("research/train-1"), nullptr);
  ASSERT_NE(Pod("research/train-2"), nullptr) << "the evicted pod is made anew";
  Wait(absl::Minutes(1));
  EXPECT_EQ(Pod("research/train-0")->phase, model::PodPhase::kSucceeded);
  ASSERT_NE(Pod("research/train-3"), nullptr);
  Bind("research", "train-2", "n");
  Bind("research", "train-3", "n");
  Wait(absl::Minutes(2));
  EXPECT_EQ(Pod("research/train-3")->phase, model::PodPhase::kSucceeded);
  EXPECT_EQ(Pod("research/train-4"), nullptr) << "three have succeeded";
}

TEST_F(ClusterTest, ReservationPodsGetDifferentGpusAndSayWhich) {
  AddNode("n");
  for (const char* name : {"r1", "r2"}) {
    Execute(model::CreateGpuReservation{
        model::kReservationNamespace, name, "n", name, "i", "", "", {}});
  }
  Wait(absl::Seconds(1));
  const auto device = [this](const std::string& name) {
    return std::string(Pod(absl::StrCat(model::kReservationNamespace, "/", name))
                           ->meta.annotations.Get(model::kGpuIndexAnnotation));
  };
  EXPECT_EQ(device("r1"), "");
  Wait(absl::Seconds(5));
  EXPECT_NE(device("r1"), "");
  EXPECT_NE(device("r2"), "");
  EXPECT_NE(device("r1"), device("r2"));
}

TEST_F(ClusterTest, ScalingDownTakesWaitingPodsFirst) {
  Apply(kWorkloads);
  AddNode("n");
  Wait(absl::Seconds(1));
  Bind("serving", "web-1", "n");
  Wait(absl::Seconds(5));
  ASSERT_TRUE(cluster_.Scale({"Deployment", "serving/web"}, 1).ok());
  Wait(absl::Seconds(10));
  EXPECT_EQ(Pod("serving/web-0"), nullptr);
  ASSERT_NE(Pod("serving/web-1"), nullptr);
  ASSERT_TRUE(cluster_.Delete({"Deployment", "serving/web"}).ok());
  Wait(absl::Seconds(10));
  EXPECT_EQ(Pod("serving/web-1"), nullptr);
  EXPECT_EQ(cluster_.Delete({"Deployment", "serving/web"}).code(), absl::StatusCode::kNotFound);
}

TEST_F(ClusterTest, APodOnANodeThatIsGoneIsCollectedAndReplaced) {
  Apply(kWorkloads);
  AddNode("n");
  Wait(absl::Seconds(1));
  Bind("serving", "web-0", "n");
  Bind("serving", "web-1", "never-was");
  Wait(absl::Seconds(5));
  ASSERT_TRUE(cluster_.Delete({"Node", "n"}).ok());
  Wait(absl::Seconds(30));
  EXPECT_NE(Pod("serving/web-0"), nullptr) << "not before its quarantine is over";
  Wait(absl::Seconds(30));
  EXPECT_EQ(Pod("serving/web-0"), nullptr);
  EXPECT_EQ(Pod("serving/web-1"), nullptr);
  EXPECT_NE(Pod("serving/web-2"), nullptr);
  EXPECT_NE(Pod("serving/web-3"), nullptr);
}

TEST_F(ClusterTest, AMachineBootsRegistersAndBecomesReadyWithItsGpus) {
  Execute(Launch("r1"));
  Wait(absl::Seconds(5));
  EXPECT_EQ(Result(), absl::StatusCode::kOk);
  EXPECT_EQ(cluster_.server().Find<model::Node>("r1"), nullptr);
  Wait(absl::Seconds(90));
  const auto* node = cluster_.server().Find<model::Node>("r1");
  ASSERT_NE(node, nullptr);
  EXPECT_FALSE(node->ready);
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 0) << "no device plugin yet";
  Wait(absl::Seconds(30));
  node = cluster_.server().Find<model::Node>("r1");
  EXPECT_TRUE(node->ready);
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 1000);
  ASSERT_EQ(node->taints.size(), 1u);
  EXPECT_EQ(node->taints[0].key, "stays");
  EXPECT_FALSE(node->provider_id.empty());
  Execute(Launch("r1"));
  Wait(absl::Minutes(5));
  EXPECT_EQ(cluster_.cloud().launched(), 1) << "idempotent by name";
  Execute(model::TerminateNode{"r1", "sim", "r1", node->provider_id});
  Wait(absl::Minutes(1));
  EXPECT_EQ(Result(), absl::StatusCode::kOk);
  EXPECT_EQ(cluster_.server().Find<model::Node>("r1"), nullptr);
  EXPECT_TRUE(cluster_.cloud().machines().empty());
}

TEST_F(ClusterTest, AMachineTerminatedWhileItBootsNeverRegisters) {
  Execute(Launch("r1"));
  Wait(absl::Seconds(30));
  Execute(model::TerminateNode{"r1", "sim", "r1", ""});
  Wait(absl::Minutes(10));
  EXPECT_EQ(cluster_.server().Find<model::Node>("r1"), nullptr);
}

TEST_F(ClusterTest, StockOutsEndAndLostLaunchesNeverArrive) {
  cluster_.cloud().AddStockout("g5.xlarge", "a", cluster_.queue().now() + absl::Minutes(10));
  Execute(Launch("r1"));
  Wait(absl::Minutes(9));
  EXPECT_EQ(Result(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cluster_.cloud().machines().empty());
  Wait(absl::Minutes(2));
  cluster_.cloud().LoseNextLaunches(1);
  Execute(Launch("r2"));
  Execute(Launch("r3"));
  Wait(absl::Hours(1));
  EXPECT_EQ(cluster_.server().Find<model::Node>("r2"), nullptr);
  EXPECT_NE(cluster_.server().Find<model::Node>("r3"), nullptr);
  EXPECT_EQ(cluster_.cloud().machines().size(), 2u) << "and it is paid for";
}

TEST_F(ClusterTest, WhatADeadProcessAskedForIsDoneAndNotAnswered) {
  Apply(kWorkloads);
  AddNode("n");
  Wait(absl::Seconds(1));
  Bind("serving", "web-0", "n");
  results_.clear();
  cluster_.Disconnect();
  EXPECT_EQ(Pod("serving/web-0")->node_name, "n");
  Wait(absl::Seconds(10));
  EXPECT_TRUE(results_.empty());
}

TEST(Manifests, ErrorsSayWhere) {
  const struct {
    const char* yaml;
    const char* expected;
  } cases[] = {
      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "no such kind"},
      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n",
       "spec.template.spec is missing"},
      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: -1}\n",
       "whole number"},
      {"apiVersion: v1\nkind: Pod\nmetadata: {name: p\n", "m.yaml"},
      {"apiVersion: v1\nkind: List\nitems: [{apiVersion: batch/v1, kind: Job, metadata: {name: "
       "j}}]\n",
       "document of its own"},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(c.yaml, "m.yaml");
    ASSERT_FALSE(manifest.ok()) << c.yaml;
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr(c.expected));
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("m.yaml"));
  }
}

TEST(ObjectRefs, AreKindAndKey) {
  EXPECT_EQ(ParseObjectRef("Job/ns/name")->key, "ns/name");
  EXPECT_EQ(ParseObjectRef("Queue/research")->key, "research");
  EXPECT_FALSE(ParseObjectRef("Queue/ns/research").ok());
  EXPECT_FALSE(ParseObjectRef("Job/name").ok());
  EXPECT_FALSE(ParseObjectRef("Secret/ns/name").ok());
}

}  // namespace
}  // namespace fairlead::sim
