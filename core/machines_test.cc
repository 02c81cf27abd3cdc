// Machines through the whole decision loop: sent writes are not trusted, nodes have names of their
// own, other schedulers bind too, and demand comes in parts.
#include <string>

#include "core/machines_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using model::testing::kGiB;
using Phase = model::NodeRequestPhase;

// ---- caps

// While a machine ends, its node is closed, and then it is gone: what single nodes lack passes.
TEST_F(MachinesTest, EndOfAMachineIsNoNewsForWhatACapHolds) {
  options_.hook.cost_limit_micro_usd_per_hour = 2'000'000;
  options_.engine.reclaim = false;  // fair shares change with the capacity, and so may its reason
  Restart();
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  ASSERT_EQ(bound_.count("p0"), 1u);
  model::Pod large = PodBuilder("ns", "large").Queue("research").Gpus(4).Created(0).Build();
  AddPod(large);
  StepResult result = StepAt(now_);
  const auto told = Of<model::SetPodUnschedulable>(result);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].reason, "CostCapReached");
  Carry(result);
  EndPod("p0");
  for (const absl::Time end = now_ + absl::Minutes(20); now_ < end; now_ += absl::Seconds(5)) {
    result = StepAt(now_);
    for (const auto& again : Of<model::SetPodUnschedulable>(result)) {
      ADD_FAILURE() << again.name << " is told again: " << again.verdict_json;
    }
    Carry(result);
  }
  EXPECT_EQ(terminated_, 1);
}

// ---- nodes that differ from the requested ones

class OwnNamesTest : public MachinesTest {
 protected:
  void SetUp() override {
    MachinesTest::SetUp();
    own_names_ = true;
  }
  // A pod runs on the only node that is provisioned for it.
  void ExpectOneNodeThatStays() {
    Begin();
    AddPod(GpuPod("p0"));
    Play(absl::Minutes(60));
    EXPECT_EQ(bound_["p0"], "ip-10-0-0-1");
    EXPECT_EQ(created_, 1);
    EXPECT_EQ(terminated_, 0);
    ASSERT_EQ(requests_.size(), 1u);
  }
  void ExpectTheNodeEndsAfterItsPod() {
    EndPod("p0");
    Play(absl::Minutes(20));
    EXPECT_EQ(terminated_, 1);
    EXPECT_TRUE(requests_.empty());
  }
};

// The node is Ready, and its last programs are not. Karpenter, kubelets, cloud controllers and
// other autoscalers have taints of their own for that time, and so may a NodePool.
TEST_F(OwnNamesTest, NodeWithStartupTaintsIsOnItsWay) {
  model::NodePool pool;
  pool.meta.name = pool.meta.uid = "p";
  pool.startup_taints.push_back({"cni", "", model::TaintEffect::kNoSchedule});
  options_.hook.unneeded_after = absl::Seconds(1);
  for (const char* key :
       {"karpenter.sh/unregistered", "node.kubernetes.io/not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/network-unavailable",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu", "cni"}) {
    SCOPED_TRACE(key);
    const std::string pod = absl::StrCat("p", launched_);
    arrives_with_ = {{key, "", model::TaintEffect::kNoSchedule}};
    Restart();
    Begin();
    Put(pool);
    AddPod(GpuPod(pod));
    const int before = launched_;
    Play(absl::Minutes(3));
    ASSERT_EQ(launched_, before + 1) << "nothing is bought in its place";
    ASSERT_EQ(terminated_, before);
    ASSERT_EQ(bound_.count(pod), 0u);
    model::Node& node = nodes_.begin()->second;
    node.taints.clear();
    Put(node);
    Play(absl::Seconds(10));
    EXPECT_EQ(bound_[pod], node.meta.name);
    EndPod(pod);
    Play(absl::Minutes(2));
    ASSERT_TRUE(requests_.empty());
  }
}

TEST_F(OwnNamesTest, NodeIsFoundByItsLabel) {
  ASSERT_NO_FATAL_FAILURE(ExpectOneNodeThatStays());
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
  EXPECT_EQ(requests_.begin()->second.node_name, "ip-10-0-0-1");
  ExpectTheNodeEndsAfterItsPod();
}

// Nodes have names of their own, and no label of ours.
class LabelLessTest : public OwnNamesTest {
 protected:
  void SetUp() override {
    OwnNamesTest::SetUp();
    labels_ = false;
  }
  void ExpectOneNodeIsFoundByItsProviderId() {
    ASSERT_NO_FATAL_FAILURE(ExpectOneNodeThatStays());
    EXPECT_EQ(requests_.begin()->second.provider_id, "cloud:///ip-10-0-0-1");
  }
};

TEST_F(LabelLessTest, NodeIsFoundByItsProviderId) { ExpectOneNodeIsFoundByItsProviderId(); }

// It looks like a node of others, until the provider tells the machine's id.
TEST_F(LabelLessTest, NodeIsNotTerminatedUnderAPodAlsoIfItsIdIsUnknown) {
  lose_launch_answers_ = true;
  ASSERT_NO_FATAL_FAILURE(ExpectOneNodeIsFoundByItsProviderId());
  ExpectTheNodeEndsAfterItsPod();
}

TEST_F(LabelLessTest, NodeOfARequestThatIsDeletedByForceIsNotTerminatedUnderAPod) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Seconds(30));
  ASSERT_EQ(requests_.size(), 1u);
  const model::NodeRequest request = requests_.begin()->second;
  requests_.clear();
  loop_->Apply(model::Delete{model::Kind::kNodeRequest, "", request.meta.name, request.meta.uid});
  Play(absl::Minutes(10));
  EXPECT_EQ(terminated_, 1) << "it had no node";
  EXPECT_EQ(bound_["p0"], "ip-10-0-0-2");
  const model::NodeRequest second = requests_.begin()->second;
  requests_.clear();
  loop_->Apply(model::Delete{model::Kind::kNodeRequest, "", second.meta.name, second.meta.uid});
  Play(absl::Minutes(60));
  EXPECT_EQ(terminated_, 1);
  ASSERT_EQ(requests_.size(), 1u) << "it has a node, and gets its object back";
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
  EndPod("p0");
  Play(absl::Minutes(20));
  EXPECT_EQ(terminated_, 2);
  EXPECT_TRUE(machines_.empty());
}

TEST_F(MachinesTest, CatalogueThatAnnouncesMoreWhileANodeBootsDoesNotMakeItUseless) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Seconds(30));
  ASSERT_EQ(requests_.size(), 1u);
  catalog_ = *hook::Catalog::Parse(R"(
types:
- name: gpu.small
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1, memory_mib: 24576}
  extra: {example.com/fabric: 4}
  zones: [z1]
  price: {on_demand: 1.00}
)",
                                   "t.yaml");
  Restart();
  for (const auto& [name, request] : requests_) Put(request);
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(60));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(terminated_, 0);
  EXPECT_EQ(bound_.count("p0"), 1u);
}

// The only type comes with 29 GiB of memory instead of 32.
class SmallerNodesTest : public MachinesTest {
 protected:
  void SetUp() override {
    MachinesTest::SetUp();
    catalog_ = *hook::Catalog::Parse(R"(
types:
- name: gpu.small
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 1.00}
)",
                                     "t.yaml");
    memory_ = 29 * kGiB;
    Restart();
  }
};

TEST_F(SmallerNodesTest, TypeIsProvisionedOnceForAPod) {
  Begin();
  AddPod(GpuPod("p0", 31 * kGiB));
  Play(absl::Hours(2));
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(terminated_, 1);
  const View view = loop_->MakeView(now_);
  ASSERT_EQ(view.waiting.size(), 1u);
  EXPECT_EQ(view.waiting[0].verdict.code, verdict::Code::kNoInstanceTypeFits);
  EXPECT_NE(view.waiting[0].message.find("29Gi of memory instead of 32Gi of memory"),
            std::string::npos)
      << view.waiting[0].message;
}

// Nothing can be provisioned for p0 then, so it is not charged to its queue.
TEST_F(SmallerNodesTest, PodThatTheLearnedSizeDoesNotFitHoldsNoOtherBelowALimit) {
  SyncAll();
  Put(MakeQueue("research", "", 1, 1));
  AddPod(GpuPod("p0", 31 * kGiB));
  Play(absl::Minutes(30));
  ASSERT_EQ(created_, 1);
  ASSERT_EQ(terminated_, 1);
  AddPod(GpuPod("p1"));
  Play(absl::Minutes(5));
  EXPECT_EQ(bound_.count("p1"), 1u);
  EXPECT_EQ(created_, 2);
}

TEST_F(MachinesTest, ChangeOfTheCatalogueLeavesExistingNodesUsable) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  ASSERT_EQ(bound_.size(), 1u);
  EndPod("p0");
  // The row now has more GPUs; then it is removed.
  for (const char* row : {"gpu.small", "gpu.other"}) {
    catalog_ = *hook::Catalog::Parse(
        absl::StrCat("types:\n- name: ", row,
                     "\n  cpu: 8\n  memory: 32Gi\n  gpu: {model: Test-GPU, count: 2}\n"
                     "  zones: [z1]\n  price: {on_demand: 1.00}\n"),
        "t.yaml");
    Restart();
    for (const auto& [name, request] : requests_) Put(request);
    for (const auto& [name, node] : nodes_) Put(node);
    Begin();
    AddPod(GpuPod("again"));
    Play(absl::Minutes(1));
    EXPECT_EQ(created_, 1) << row;
    EXPECT_EQ(bound_.count("again"), 1u) << row;
    EndPod("again");
  }
}

// ---- sent writes are not trusted

TEST_F(MachinesTest, NothingIsTerminatedWhileItsStatusIsRefusedAndNothingIsBoundAfterARestart) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  ASSERT_EQ(bound_.size(), 1u);
  EndPod("p0");
  refuse_status_ = true;
  Play(absl::Minutes(20));
  EXPECT_EQ(terminated_, 0) << "a new process would bind to it";
  refuse_status_ = false;
  // The write arrives in the end, and the process ends as soon as the machine was told to go.
  for (int i = 0; i < 600 && requests_.begin()->second.phase != Phase::kDraining; ++i) {
    Play(absl::Seconds(1), absl::Seconds(1));
  }
  ASSERT_EQ(requests_.begin()->second.phase, Phase::kDraining);
  Restart();
  for (const auto& [name, request] : requests_) Put(request);
  for (const auto& [name, node] : nodes_) Put(node);
  Begin();
  AddPod(GpuPod("p1"));
  Play(absl::Seconds(30));
  EXPECT_EQ(bound_.count("p1"), 0u) << "bound to a node that is being terminated";
}

TEST_F(MachinesTest, RefusedStatusIsWrittenAgain) {
  refuse_status_ = true;
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  refuse_status_ = false;
  Play(absl::Minutes(6));
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
}

// ---- a pod of another scheduler, bound just before our taint

class FenceTest : public MachinesTest {
 protected:
  // A node that was used, and our taint on it at version 20.
  void Taint() {
    Begin();
    taint_version_ = "20";
    loop_->Apply(model::Progress{model::Kind::kPod, "10"});
    AddPod(GpuPod("p0"));
    Play(absl::Minutes(5));
    ASSERT_EQ(bound_.size(), 1u);
    EndPod("p0");
    for (int i = 0; i < 2000 && Tainted().empty(); ++i) Play(absl::Seconds(1), absl::Seconds(1));
    ASSERT_FALSE(Tainted().empty());
  }
  std::string Tainted() {
    for (const auto& [name, node] : nodes_) {
      if (!node.taints.empty()) return name;
    }
    return "";
  }
};

TEST_F(FenceTest, NodeStaysWhileTheWatchOfPodsIsBehindTheTaint) {
  Taint();
  Play(absl::Minutes(30));
  EXPECT_EQ(terminated_, 0);
  EXPECT_EQ(requests_.begin()->second.phase, Phase::kReady);
  loop_->Apply(model::Progress{model::Kind::kPod, "19"});
  Play(absl::Minutes(1));
  EXPECT_EQ(terminated_, 0);
  loop_->Apply(model::Progress{model::Kind::kPod, "20"});
  Play(absl::Minutes(1));
  EXPECT_EQ(terminated_, 1);
}

TEST_F(FenceTest, PodThatWasBoundBeforeTheTaintKeepsTheNode) {
  Taint();
  const std::string node = Tainted();
  Play(absl::Seconds(20));
  model::Pod foreign;
  foreign.meta.ns = "other";
  foreign.meta.name = foreign.meta.uid = "foreign";
  foreign.meta.resource_version = "19";
  foreign.node_name = node;
  foreign.phase = model::PodPhase::kRunning;
  Put(foreign);
  bound_["foreign"] = node;
  loop_->Apply(model::Progress{model::Kind::kPod, "30"});
  Play(absl::Minutes(30));
  EXPECT_EQ(terminated_, 0);
  EXPECT_TRUE(Tainted().empty()) << "needed again: the taint is taken off";
}

// A list of the node's pods does what a watch of all pods would.
TEST_F(FenceTest, AListOfTheNodesPodsIsEnoughIfItIsNotOlderThanTheTaint) {
  Taint();
  EXPECT_THAT(loop_->AwaitedNodes(), ::testing::ElementsAre(Tainted()));
  loop_->PodsListed("another", "99", {});
  loop_->PodsListed(Tainted(), "19", {});
  loop_->PodsListed(Tainted(), "opaque", {});
  loop_->PodsListed(Tainted(), "", {});
  Play(absl::Minutes(1));
  EXPECT_EQ(terminated_, 0);
  loop_->PodsListed(Tainted(), "20", {});
  EXPECT_THAT(loop_->AwaitedNodes(), ::testing::IsEmpty());
  Play(absl::Minutes(1));
  EXPECT_EQ(terminated_, 1);
}

TEST_F(FenceTest, AListedPodThatTheWatchHasNotShownKeepsTheNode) {
  Taint();
  const std::string node = Tainted();
  model::Pod foreign;
  foreign.meta.ns = "other";
  foreign.meta.name = foreign.meta.uid = "foreign";
  foreign.node_name = node;
  foreign.phase = model::PodPhase::kRunning;
  loop_->PodsListed(node, "25", {foreign});
  Play(absl::Minutes(5));
  EXPECT_EQ(terminated_, 0);
  // The watch has another pod of the name, then the pod before it was bound.
  model::Pod other = foreign;
  other.meta.uid = "former";
  Put(other);
  loop_->PodsListed(node, "25", {foreign});
  model::Pod unbound = foreign;
  unbound.node_name.clear();
  unbound.phase = model::PodPhase::kPending;
  Put(unbound);
  loop_->PodsListed(node, "25", {foreign});
  Play(absl::Minutes(1));
  EXPECT_EQ(terminated_, 0);
  EXPECT_THAT(loop_->AwaitedNodes(), ::testing::ElementsAre(node));
  Put(foreign);
  bound_["foreign"] = node;
  loop_->PodsListed(node, "25", {foreign});
  Play(absl::Minutes(30));
  EXPECT_EQ(terminated_, 0);
  EXPECT_TRUE(Tainted().empty()) << "needed again: the taint is taken off";
}

TEST_F(FenceTest, VersionsThatCannotBeComparedSettleByTime) {
  Begin();
  taint_version_ = "opaque-a";
  loop_->Apply(model::Progress{model::Kind::kPod, "opaque-b"});
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  EndPod("p0");
  for (int i = 0; i < 2000 && Tainted().empty(); ++i) Play(absl::Seconds(1), absl::Seconds(1));
  Play(absl::Seconds(8), absl::Seconds(1));
  EXPECT_EQ(terminated_, 0);
  Play(absl::Seconds(8), absl::Seconds(1));
  EXPECT_EQ(terminated_, 1);
}

TEST_F(MachinesTest, StaticPodsAndDaemonsDoNotKeepANode) {
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(5));
  const std::string node = bound_.at("p0");
  for (const char* name : {"kube-proxy", "kube-router", "agent"}) {
    model::Pod pod;
    pod.meta.ns = "kube-system";
    pod.meta.name = pod.meta.uid = name;
    pod.node_name = node;
    pod.phase = model::PodPhase::kRunning;
    model::OwnerReference owner;
    owner.kind = name == std::string("agent") ? "DaemonSet" : "Node";
    owner.name = node;
    owner.controller = true;
    if (name == std::string("kube-router")) {
      pod.meta.annotations.Set(model::kMirrorPodAnnotation, "hash");
    } else {
      pod.meta.owners.push_back(owner);
    }
    Put(pod);
  }
  EndPod("p0");
  Play(absl::Minutes(20));
  EXPECT_EQ(terminated_, 1);
}

// ---- demand

// A pod that the scheduler refuses on every node is no demand.
TEST_F(MachinesTest, NothingIsProvisionedForANamespaceSelectorThatCannotBeEvaluated) {
  Begin();
  loop_->Apply(model::Synced{model::Kind::kNamespace, /*missing=*/true});
  for (const bool anti : {false, true}) {
    model::Pod pod = GpuPod(anti ? "anti" : "affine");
    model::PodAffinityTerm term;
    term.topology_key = model::kHostnameLabel;
    term.selector.none = false;
    term.namespace_selector.emplace();
    term.namespace_selector->none = false;
    model::SelectorRequirement requirement;
    requirement.key = "kubernetes.io/metadata.name";
    requirement.values = {"team-a"};
    term.namespace_selector->requirements.push_back(requirement);
    (anti ? pod.spec.pod_anti_affinity : pod.spec.pod_affinity).push_back(term);
    AddPod(pod);
  }
  Play(absl::Minutes(10), absl::Seconds(1));
  EXPECT_EQ(created_, 0);
}

TEST_F(MachinesTest, PodsThatComeOneAfterAnotherCostWhatTheyCostTogether) {
  catalog_ = *hook::Catalog::Parse(R"(
types:
- name: gpu.small
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 1.00}
- name: gpu.large
  cpu: 64
  memory: 256Gi
  gpu: {model: Test-GPU, count: 8, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 5.00}
)",
                                   "t.yaml");
  options_.hook.gathering_quiet = absl::Milliseconds(300);
  Restart();
  Begin();
  for (int i = 0; i < 64; ++i) {
    AddPod(PodBuilder("ns", absl::StrCat("p", i)).Queue("research").Gpus(1).Created(i).Build());
    Play(absl::Milliseconds(20), absl::Milliseconds(20));
  }
  Play(absl::Seconds(2), absl::Milliseconds(50));
  int64_t price = 0;
  for (const auto& [name, request] : requests_) price += request.price_micro_usd_per_hour;
  EXPECT_EQ(price, 40'000'000);
}

TEST_F(MachinesTest, ACompleteGangDoesNotWaitForMoreDemand) {
  options_.hook.gathering_quiet = absl::Seconds(1);
  options_.hook.gathering_max = absl::Seconds(10);
  Restart();
  Begin();
  const auto member = [&](const std::string& gang, int i) {
    AddPod(PodBuilder("ns", absl::StrCat(gang, i))
               .Queue("research")
               .Gpus(1)
               .Created(1)
               .Group(gang)
               .Build());
  };
  Put(model::testing::MakeGroup("ns", "gang", "research", 3));
  Put(model::testing::MakeGroup("ns", "elastic", "research", 1));
  for (int i = 0; i < 2; ++i) member("gang", i);
  Play(absl::Seconds(3), absl::Milliseconds(100));
  EXPECT_EQ(created_, 0) << "it is not complete";
  for (int i = 0; i < 2; ++i) member("elastic", i);
  Play(absl::Milliseconds(100), absl::Milliseconds(100));
  EXPECT_EQ(created_, 0) << "more of its pods may come";
  member("gang", 2);
  Play(absl::Milliseconds(100), absl::Milliseconds(100));
  EXPECT_GT(created_, 0);
  const int for_gang = created_;
  Play(absl::Seconds(2), absl::Milliseconds(100));
  EXPECT_GT(created_, for_gang);
}

TEST_F(MachinesTest, UnknownProviderIsAnErrorAtTheStart) {
  options_.hook.provider = "aws";
  const auto loop = DecisionLoop::Make(options_, &catalog_);
  EXPECT_TRUE(absl::IsInvalidArgument(loop.status()));
  EXPECT_EQ(loop.status().message(),
            "hook.provider: \"aws\" is not a known provider; known providers: kwok");
  options_.hook.provider.clear();
  Restart();
  Begin();
  AddPod(GpuPod("p0"));
  Play(absl::Minutes(1));
  EXPECT_EQ(created_, 0) << "no provider: the hook is off";
}

}  // namespace
}  // namespace fairlead::core::testing
