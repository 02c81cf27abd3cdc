// What could be: answers over nodes and pods that do not exist, and over real pods that are gone.
#include "scheduler/engine/hypothesis.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/affinity_builders.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using model::testing::AppSelector;
using model::testing::AppTerm;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using Spec = std::shared_ptr<const model::PodSpec>;

// As the hook has it: with its labels.
Spec Labelled(model::Pod pod, const std::string& app) {
  pod.spec.labels_for_affinity.Set("app", app);
  return std::make_shared<model::PodSpec>(pod.spec);
}

// Its host name is not known yet.
model::Node NewNode(int64_t gpus) {
  model::Node node = MakeNode("new", gpus);
  node.meta.labels.Erase(model::kHostnameLabel);
  return node;
}

model::Node InZone(const std::string& zone) {
  model::Node node = NewNode(8);
  node.meta.labels.Set(model::kZoneLabel, zone);
  return node;
}

class HypothesisTest : public testing::EngineFixture {
 protected:
  void SetUp() override { before_ = state_.Dump(); }
  // Of what was tried nothing is left.
  void TearDown() override {
    EngineFixture::TearDown();
    EXPECT_EQ(state_.Dump(), before_);
  }
  void Remember() { before_ = state_.Dump(); }
  std::string before_;
};

TEST_F(HypothesisTest, AmountsAndSharesOfGpusCountOnANodeThatDoesNotExist) {
  const auto what_if = engine_->WhatIf();
  const state::NodeId node = what_if->AddNode(NewNode(2));
  const auto half = what_if->ClassOf(Labelled(PodBuilder("ns", "a").GpuFraction(600), ""));
  const auto whole = what_if->ClassOf(Labelled(PodBuilder("ns", "b").Gpus(1), ""));
  EXPECT_EQ(what_if->HowManyFit(half, node, 10), 2);
  EXPECT_EQ(what_if->Place(half, node, 1), 1);
  EXPECT_EQ(what_if->HowManyFit(whole, node, 10), 1);
  EXPECT_EQ(what_if->HowManyFit(half, node, 10), 1);
  EXPECT_EQ(what_if->Place(whole, node, 10), 1);
  EXPECT_EQ(what_if->HowManyFit(half, node, 10), 0);
}

// No node offers the resource, and the profile says that an agent on the node deals it out.
TEST_F(HypothesisTest, ResourcesThatTheProfileIgnoresBoundNothing) {
  framework::Registry registry;
  ASSERT_TRUE(plugins::RegisterAll(registry).ok());
  framework::Profile profile = framework::DefaultProfile();
  for (framework::ProfilePlugin& plugin : profile.plugins) {
    if (plugin.name == "NodeResourcesFit") plugin.args_json = R"({"ignoredResources":["a.com/x"]})";
  }
  const auto framework = *framework::Framework::Make(profile, registry);
  state_.UpsertNode(MakeNode("n", 2));
  model::Pod pod = PodBuilder("ns", "p").Gpus(1);
  model::Set(pod.spec.requests, "a.com/x", 1);
  state_.UpsertPod(pod);
  Remember();
  const state::PodClassId wanted = state_.pod(state_.FindPod("ns", "p")).pod_class;
  const state::NodeId node = state_.FindNode("n");
  const Feasibility asked(state_, *framework);
  EXPECT_TRUE(asked.Fits(wanted, node, Capacity::kFuture));
  EXPECT_EQ(asked.MostThatFit(wanted, node, 5), 2);
}

TEST_F(HypothesisTest, HostPortsOfTwoKindsOfPodsCollide) {
  model::Pod one = PodBuilder("ns", "a").Cpu(100), two = PodBuilder("ns", "b").Cpu(200);
  one.spec.host_ports = {{8080, "TCP", ""}};
  two.spec.host_ports = {{8080, "TCP", "10.0.0.1"}};
  const auto what_if = engine_->WhatIf();
  const state::NodeId node = what_if->AddNode(NewNode(2));
  EXPECT_EQ(what_if->Place(what_if->ClassOf(Labelled(one, "")), node, 5), 1);
  EXPECT_EQ(what_if->HowManyFit(what_if->ClassOf(Labelled(two, "")), node, 5), 0);
}

TEST_F(HypothesisTest, AntiAffinityBetweenTwoKindsOfPodsHoldsInBothDirections) {
  model::Pod shy = PodBuilder("ns", "a").Cpu(100);
  shy.spec.pod_anti_affinity = {AppTerm("loud", model::kHostnameLabel)};
  const Spec shy_spec = Labelled(shy, "shy"),
             loud = Labelled(PodBuilder("ns", "b").Cpu(50), "loud");
  const auto what_if = engine_->WhatIf();
  const state::NodeId one = what_if->AddNode(NewNode(2));
  const state::NodeId two = what_if->AddNode(NewNode(2));
  EXPECT_EQ(what_if->Place(what_if->ClassOf(shy_spec), one, 1), 1);
  EXPECT_EQ(what_if->HowManyFit(what_if->ClassOf(loud), one, 5), 0);
  EXPECT_EQ(what_if->Place(what_if->ClassOf(loud), two, 3), 3);
  EXPECT_EQ(what_if->HowManyFit(what_if->ClassOf(shy_spec), two, 5), 0);
  EXPECT_EQ(what_if->HowManyFit(what_if->ClassOf(shy_spec), one, 3), 3);
}

TEST_F(HypothesisTest, AffinityByZoneSeesRealPodsAndPlannedOnes) {
  model::Node real = MakeNode("real", 1);
  real.meta.labels.Set(model::kZoneLabel, "z1");
  state_.UpsertNode(real);
  state_.UpsertPod(PodBuilder("ns", "web").Label("app", "web").On("real"));
  Remember();
  model::Pod near_web = PodBuilder("ns", "a").Cpu(100), near_db = PodBuilder("ns", "b").Cpu(100);
  near_web.spec.pod_affinity = {AppTerm("web", model::kZoneLabel)};
  near_db.spec.pod_affinity = {AppTerm("db", model::kZoneLabel)};
  const auto what_if = engine_->WhatIf();
  const state::NodeId z1 = what_if->AddNode(InZone("z1"));
  const state::NodeId z2 = what_if->AddNode(InZone("z2"));
  const auto web = what_if->ClassOf(Labelled(near_web, "a"));
  EXPECT_TRUE(what_if->Fits(web, z1, Capacity::kFuture));
  framework::Status why;
  EXPECT_FALSE(what_if->Fits(web, z2, Capacity::kFuture, &why));
  EXPECT_EQ(why.plugin, "InterPodAffinity");
  const auto db = what_if->ClassOf(Labelled(near_db, "b"));
  EXPECT_FALSE(what_if->Fits(db, z2, Capacity::kFuture));
  EXPECT_EQ(what_if->Place(what_if->ClassOf(Labelled(PodBuilder("ns", "d").Cpu(1), "db")), z2, 1),
            1);
  EXPECT_TRUE(what_if->Fits(db, z2, Capacity::kFuture));
  EXPECT_FALSE(what_if->Fits(db, z1, Capacity::kFuture));
}

TEST_F(HypothesisTest, SpreadCountsOverPlannedNodes) {
  model::Pod pod = PodBuilder("ns", "a").Cpu(100);
  pod.spec.topology_spread = {{1, model::kZoneLabel, true, AppSelector("a"), 1, true, false}};
  const auto what_if = engine_->WhatIf();
  const state::NodeId z1 = what_if->AddNode(InZone("z1"));
  const state::NodeId z2 = what_if->AddNode(InZone("z2"));
  const auto spread = what_if->ClassOf(Labelled(pod, "a"));
  EXPECT_EQ(what_if->Place(spread, z1, 5), 1);
  EXPECT_EQ(what_if->Place(spread, z2, 5), 2);
  EXPECT_EQ(what_if->Place(spread, z1, 5), 2);
}

TEST_F(HypothesisTest, TaintsAndAHostNameThatIsNotKnownYet) {
  model::Node node = NewNode(2);
  node.taints = {{"dedicated", "x", model::TaintEffect::kNoSchedule}};
  const auto what_if = engine_->WhatIf();
  const state::NodeId id = what_if->AddNode(node);
  EXPECT_TRUE(state_.node(id).object.meta.labels.Has(model::kHostnameLabel));
  model::Pod pod = PodBuilder("ns", "a").Cpu(100);
  EXPECT_FALSE(what_if->Fits(what_if->ClassOf(Labelled(pod, "")), id, Capacity::kEmpty));
  pod.spec.tolerations.push_back({"dedicated", true, "", std::nullopt});
  EXPECT_TRUE(what_if->Fits(what_if->ClassOf(Labelled(pod, "")), id, Capacity::kEmpty));
  pod.spec.node_selector.Set(model::kHostnameLabel, "new");
  EXPECT_FALSE(what_if->Fits(what_if->ClassOf(Labelled(pod, "")), id, Capacity::kEmpty));
}

TEST_F(HypothesisTest, PodsThatAreGoneLeaveTheirRoomAndAreBackAfterwards) {
  state_.UpsertNode(MakeNode("real", 2));
  state_.UpsertPod(PodBuilder("ns", "mine").Gpus(1).On("real"));
  state_.UpsertPod(PodBuilder("ns", "other").Gpus(1).Scheduler("other").On("real"));
  state_.UpsertPod(PodBuilder("ns", "waits").Gpus(2));
  Cycle();
  Remember();
  const state::NodeId real = state_.FindNode("real");
  const state::PodId waits = state_.FindPod("ns", "waits");
  const state::PodClassId wanted = state_.pod(waits).pod_class;
  const auto what_if = engine_->WhatIf();
  EXPECT_FALSE(what_if->Fits(wanted, real, Capacity::kFuture));
  what_if->Remove(state_.FindPod("ns", "other"));
  what_if->Evict(state_.FindPod("ns", "mine"));
  EXPECT_TRUE(what_if->Fits(wanted, real, Capacity::kFuture));
  EXPECT_FALSE(what_if->Fits(wanted, real, Capacity::kNow));
  EXPECT_TRUE(what_if->Promise(waits, real));
  EXPECT_FALSE(what_if->Fits(wanted, real, Capacity::kFuture));
}

TEST_F(HypothesisTest, OneInAnotherIsDroppedAloneAndKeptWhereItIsTold) {
  state_.UpsertNode(MakeNode("real", 2));
  state_.UpsertPod(PodBuilder("ns", "mine").Gpus(1).On("real"));
  const state::PodId mine = state_.FindPod("ns", "mine");
  Remember();
  state::Transaction txn(state_);
  {
    const auto outer = engine_->WhatIf();
    const auto inner = engine_->WhatIf();
    inner->AddNode(NewNode(1));
    EXPECT_EQ(state_.node_count(), 2u);
  }
  EXPECT_EQ(state_.node_count(), 1u);
  const auto framework = framework::Framework::Make({}, framework::Registry());
  {
    Hypothesis tried(txn, state_, **framework, state::GpuOrder::kPack);
    tried.Evict(mine);
  }
  EXPECT_EQ(state_.pod(mine).status, state::PodStatus::kRunning);
  {
    Hypothesis tried(txn, state_, **framework, state::GpuOrder::kPack);
    tried.Evict(mine);
    tried.Keep();
    tried.AddNode(NewNode(1));
  }
  EXPECT_EQ(state_.pod(mine).status, state::PodStatus::kReleasing);
  EXPECT_EQ(state_.node_count(), 1u);
}

}  // namespace
}  // namespace fairlead::engine
