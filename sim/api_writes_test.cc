#include "sim/api_writes.h"

#include <gtest/gtest.h>

#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

using absl::StatusCode;

class ApiWritesTest : public ::testing::Test {
 protected:
  std::string AddPod(const std::string& name) {
    model::Pod pod;
    pod.meta.ns = "ns";
    pod.meta.name = name;
    EXPECT_TRUE(server_.Create(pod).ok());
    return Pod(name)->meta.uid;
  }
  const model::Pod* Pod(const std::string& name) { return server_.Find<model::Pod>("ns/" + name); }
  void AddNode(const std::string& name) {
    model::Node node;
    node.meta.name = name;
    EXPECT_TRUE(server_.Create(node).ok());
  }
  StatusCode Bind(const std::string& name, const std::string& uid, const std::string& node) {
    return writes_.Commit(model::BindPod{"ns", name, uid, node, {{"a", "b"}}, {{"l", "m"}}}).code();
  }

  EventQueue queue_{absl::UnixEpoch()};
  ApiServer server_{&queue_};
  ApiWrites writes_{&server_};
};

TEST_F(ApiWritesTest, BindRefusesWhatARealServerRefuses) {
  EXPECT_EQ(Bind("none", "", "n"), StatusCode::kNotFound);
  const std::string uid = AddPod("a");
  EXPECT_EQ(Bind("a", "another-uid", "n"), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Pod("a")->node_name.empty());
  server_.Modify<model::Pod>("ns/a", [](model::Pod& pod) { pod.scheduling_gates = {"gate"}; });
  EXPECT_EQ(Bind("a", uid, "n"), StatusCode::kFailedPrecondition);
  server_.Modify<model::Pod>("ns/a", [](model::Pod& pod) { pod.scheduling_gates.clear(); });
  EXPECT_EQ(Bind("a", uid, "n"), StatusCode::kOk) << "the server does not look at nodes";
  EXPECT_EQ(Pod("a")->node_name, "n");
  EXPECT_EQ(Pod("a")->meta.annotations.Get("a"), "b");
  EXPECT_EQ(Pod("a")->meta.labels.Get("l"), "m");
  EXPECT_EQ(Pod("a")->scheduled.status, "True");
  EXPECT_EQ(Bind("a", uid, "m"), StatusCode::kFailedPrecondition) << "bound twice";
  EXPECT_EQ(Pod("a")->node_name, "n");
}

TEST_F(ApiWritesTest, WhatABufferWasResolvedToIsWrittenWithoutAnotherCondition) {
  model::CapacityBuffer buffer;
  buffer.meta.ns = "ns";
  buffer.meta.name = "b";
  ASSERT_TRUE(server_.Create(buffer).ok());
  const auto found = [&] { return *server_.Find<model::CapacityBuffer>("ns/b"); };
  model::Condition ready;
  ready.type = "ReadyForProvisioning";
  ready.status = "True";
  model::SetConditions write{model::Kind::kCapacityBuffer, "ns", "b", found().meta.uid, {ready}};
  write.buffer = {"template", 1, 2};
  ASSERT_TRUE(writes_.Commit(write).ok());
  const std::string version = found().meta.resource_version;
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(found().meta.resource_version, version) << "it says the same";
  write.buffer->replicas = 3;
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(found().resolved_replicas, 3);
}

TEST_F(ApiWritesTest, CountsAreThoseOfTheObjectOfThatUid) {
  model::Queue queue;
  queue.meta.name = "q";
  ASSERT_TRUE(server_.Create(queue).ok());
  const auto found = [&] { return *server_.Find<model::Queue>("q"); };
  model::SetKaiStatus write{model::Kind::kQueue,    "",       "q", "wrong",
                            {{{"cpu", 1}}, {}, {}}, {"child"}};
  EXPECT_EQ(writes_.Commit(write).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(found().status.has_value());
  write.uid = found().meta.uid;
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(found().status, write.counts);
  EXPECT_EQ(found().child_queues, write.child_queues);
  const std::string version = found().meta.resource_version;
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(found().meta.resource_version, version) << "it says the same";
}

TEST_F(ApiWritesTest, BindRefusesATerminatingPod) {
  const std::string uid = AddPod("a");
  server_.Modify<model::Pod>("ns/a",
                             [](model::Pod& pod) { pod.meta.deletion = absl::UnixEpoch(); });
  EXPECT_EQ(Bind("a", uid, "n"), StatusCode::kFailedPrecondition);
}

TEST_F(ApiWritesTest, EvictionIsGracefulOnlyWhereSomethingRuns) {
  AddNode("n");
  const std::string pending = AddPod("pending"), bound = AddPod("bound");
  ASSERT_EQ(Bind("bound", bound, "n"), StatusCode::kOk);
  EXPECT_EQ(writes_.Commit(model::EvictPod{"ns", "bound", "wrong", "", ""}).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(writes_.Commit(model::EvictPod{"ns", "pending", pending, "r", "m"}).ok());
  EXPECT_EQ(Pod("pending"), nullptr);
  EXPECT_TRUE(writes_.Commit(model::EvictPod{"ns", "bound", bound, "r", "m"}).ok());
  ASSERT_NE(Pod("bound"), nullptr);
  EXPECT_TRUE(Pod("bound")->meta.deletion.has_value());
  EXPECT_EQ(writes_.Commit(model::EvictPod{"ns", "pending", pending, "r", "m"}).code(),
            StatusCode::kNotFound);
}

TEST_F(ApiWritesTest, VerdictsAreVisibleOnThePodAndRepeatedOnesAreCounted) {
  const std::string uid = AddPod("a");
  model::SetPodUnschedulable write{"ns", "a", uid, "QueueLimitReached", "text", "{}", "n1", 3};
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(Pod("a")->scheduled.status, "False");
  EXPECT_EQ(Pod("a")->scheduled.reason, "QueueLimitReached");
  EXPECT_EQ(Pod("a")->nominated_node_name, "n1");
  EXPECT_EQ(Pod("a")->meta.annotations.Get(model::kVerdictAnnotation), "{}");
  EXPECT_EQ(writes_.empty_writes(), 0u);
  const std::string version = Pod("a")->meta.resource_version;
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(writes_.empty_writes(), 1u);
  EXPECT_EQ(Pod("a")->meta.resource_version, version) << "no change, no event";
  write.message = "other text";
  write.verdict_json = "";
  ASSERT_TRUE(writes_.Commit(write).ok());
  EXPECT_EQ(writes_.empty_writes(), 1u);
  EXPECT_FALSE(Pod("a")->meta.annotations.Has(model::kVerdictAnnotation));
}

TEST_F(ApiWritesTest, GroupsCarryTheHashOfTheirVerdict) {
  model::PodGroup group;
  group.meta.ns = "ns";
  group.meta.name = "g";
  ASSERT_TRUE(server_.Create(group).ok());
  const std::string uid = server_.Find<model::PodGroup>("ns/g")->meta.uid;
  ASSERT_TRUE(writes_
                  .Commit(model::SetPodGroupSchedulability{
                      "ns", "g", uid, R"({"code":"GangIncomplete","hash":"abc"})", "r", "m"})
                  .ok());
  EXPECT_EQ(server_.Find<model::PodGroup>("ns/g")->schedulability_hash, "abc");
  ASSERT_TRUE(writes_.Commit(model::SetPodGroupSchedulability{"ns", "g", uid, "", "", ""}).ok());
  EXPECT_EQ(server_.Find<model::PodGroup>("ns/g")->schedulability_hash, "");
  ASSERT_TRUE(
      writes_.Commit(model::SetPodGroupAnnotations{"ns", "g", uid, {{"x", "1"}, {"y", "2"}}}).ok());
  ASSERT_TRUE(writes_.Commit(model::SetPodGroupAnnotations{"ns", "g", uid, {{"x", ""}}}).ok());
  EXPECT_FALSE(server_.Find<model::PodGroup>("ns/g")->meta.annotations.Has("x"));
  EXPECT_TRUE(server_.Find<model::PodGroup>("ns/g")->meta.annotations.Has("y"));
}

TEST_F(ApiWritesTest, NodeRequestsAreCreatedOnceAndOnlyTheirStatusIsWritten) {
  model::NodeRequest request;
  request.meta.name = "r";
  request.instance_type = "g5.xlarge";
  ASSERT_TRUE(writes_.Commit(model::CreateNodeRequest{request}).ok());
  EXPECT_EQ(writes_.Commit(model::CreateNodeRequest{request}).code(), StatusCode::kAlreadyExists);
  model::NodeRequest update = *server_.Find<model::NodeRequest>("r");
  update.phase = model::NodeRequestPhase::kLaunched;
  update.instance_type = "p5.48xlarge";
  ASSERT_TRUE(writes_.Commit(model::UpdateNodeRequestStatus{update}).ok());
  EXPECT_EQ(server_.Find<model::NodeRequest>("r")->phase, model::NodeRequestPhase::kLaunched);
  EXPECT_EQ(server_.Find<model::NodeRequest>("r")->instance_type, "g5.xlarge");
  EXPECT_EQ(writes_.Commit(model::DeleteNodeRequest{"r", "wrong"}).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(writes_.Commit(model::DeleteNodeRequest{"r", update.meta.uid}).ok());
  EXPECT_EQ(writes_.Commit(model::UpdateNodeRequestStatus{update}).code(), StatusCode::kNotFound);
}

TEST_F(ApiWritesTest, AReservationIsMadeOnceAndDeletedByItsUid) {
  AddNode("n");
  const model::CreateGpuReservation reserve{"ns", "r", "n", "g", "i", "", "", {}};
  EXPECT_EQ(writes_.Commit(reserve).code(), StatusCode::kOk);
  EXPECT_EQ(writes_.Commit(reserve).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Pod("r")->node_name, "n");
  EXPECT_EQ(Pod("r")->meta.labels.Get(model::kGpuGroupLabel), "g");
  EXPECT_EQ(model::Get(Pod("r")->spec.requests, model::kGpuName), 1000);
  const auto remove = [this](const std::string& uid) {
    return writes_.Commit(model::DeletePod{"ns", "r", uid}).code();
  };
  EXPECT_EQ(remove("another-uid"), StatusCode::kFailedPrecondition);
  EXPECT_EQ(remove(Pod("r")->meta.uid), StatusCode::kOk);
  EXPECT_TRUE(Pod("r")->meta.deletion.has_value()) << "its kubelet is waited for";
  server_.Remove<model::Pod>("ns/r");
  EXPECT_EQ(remove(""), StatusCode::kNotFound);
}

TEST_F(ApiWritesTest, AVolumeIsBoundAtTheVersionThatWasSeen) {
  model::BindVolume write{"pv", "", "", "ns", "c", "claim-uid"};
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kNotFound);
  model::PersistentVolume made;
  made.meta.name = "pv";
  ASSERT_TRUE(server_.Create(made).ok());
  const auto stored = [this] { return server_.Find<model::PersistentVolume>("pv"); };
  write.uid = "another-uid";
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kFailedPrecondition);
  write.uid = stored()->meta.uid;
  write.resource_version = stored()->meta.resource_version;
  server_.Modify<model::PersistentVolume>("pv",
                                          [](model::PersistentVolume& pv) { pv.available = true; });
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kFailedPrecondition) << "it has changed";
  EXPECT_FALSE(stored()->claim.has_value());
  write.resource_version = stored()->meta.resource_version;
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kOk);
  EXPECT_EQ(stored()->claim, (model::PersistentVolume::ClaimRef{"ns", "c", "claim-uid"}));
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(writes_.empty_writes(), 0u);
  write.resource_version = stored()->meta.resource_version;
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kOk);
  EXPECT_EQ(writes_.empty_writes(), 1u);
}

TEST_F(ApiWritesTest, TheNodeOfAVolumeIsSelectedAtTheVersionThatWasSeen) {
  model::SelectVolumeNode write{"ns", "c", "", "", "n1"};
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kNotFound);
  model::PersistentVolumeClaim made;
  made.meta.ns = "ns";
  made.meta.name = "c";
  ASSERT_TRUE(server_.Create(made).ok());
  const auto stored = [this] { return server_.Find<model::PersistentVolumeClaim>("ns/c"); };
  write.uid = "another-uid";
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kFailedPrecondition);
  write.uid = stored()->meta.uid;
  write.resource_version = stored()->meta.resource_version;
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kOk);
  EXPECT_EQ(stored()->selected_node, "n1");
  write.node = "n2";
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kFailedPrecondition) << "it has changed";
  EXPECT_EQ(stored()->selected_node, "n1");
  write.resource_version = stored()->meta.resource_version;
  write.node = "n1";
  EXPECT_EQ(writes_.Commit(write).code(), StatusCode::kOk);
  EXPECT_EQ(writes_.empty_writes(), 1u);
}

TEST_F(ApiWritesTest, TaintsOfOthersStay) {
  AddNode("n");
  const model::Taint theirs{"theirs", "", model::TaintEffect::kNoSchedule};
  const model::Taint ours{model::kRemovalTaint, "", model::TaintEffect::kNoSchedule};
  server_.Modify<model::Node>("n", [&](model::Node& node) { node.taints = {theirs}; });
  ASSERT_TRUE(writes_.Commit(model::SetNodeTaint{"n", "", ours, true}).ok());
  EXPECT_EQ(server_.Find<model::Node>("n")->taints.size(), 2u);
  ASSERT_TRUE(writes_.Commit(model::SetNodeTaint{"n", "", ours, false}).ok());
  ASSERT_EQ(server_.Find<model::Node>("n")->taints.size(), 1u);
  EXPECT_EQ(server_.Find<model::Node>("n")->taints[0], theirs);
  EXPECT_EQ(writes_.Commit(model::SetNodeTaint{"gone", "", ours, true}).code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace fairlead::sim
