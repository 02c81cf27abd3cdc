// What befalls nodes that were provisioned, demand that changes meanwhile, and users who change
// their minds: the cases of docs/edge-cases.md that no other test plays, through the whole decision
// loop.
#include <string>

#include "core/machines_testing.h"
#include "core/volumes_testing.h"
#include "gmock/gmock.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kZonesAndReserved[] = R"(
types:
- name: gpu.one
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1}
  zones: [z1, z2]
  price: {on_demand: 1.00}
- name: gpu.paid
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1}
  zones: [z1, z2]
  price: {on_demand: 0.00}
)";

class EdgeCasesTest : public MachinesTest {
 protected:
  void SetUp() override { Begin(); }
  // Pod "p" runs on the only node, which was provisioned for it.
  void RunOne() {
    AddPod(GpuPod("p"));
    Play(absl::Minutes(3));
    ASSERT_THAT(bound_, SizeIs(1));
  }
  model::Node& TheNode() { return nodes_.begin()->second; }
  void BeginInTwoZones(bool with_reserved) {
    auto catalog = hook::Catalog::Parse(kZonesAndReserved, "test.yaml");
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    std::vector<hook::InstanceType> types = catalog->types();
    if (!with_reserved) {
      std::erase_if(types, [](const auto& type) { return type.name == "gpu.paid"; });
    }
    catalog_ = hook::Catalog::FromTypes(std::move(types));
    Restart();
    Begin();
  }
};

TEST_F(EdgeCasesTest, ANodeThatFlapsIsNeitherReplacedNorRemoved) {
  RunOne();
  for (int i = 0; i < 20; ++i) {
    TheNode().ready = i % 2 == 1;
    Put(TheNode());
    Play(absl::Seconds(25));
  }
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(terminated_, 0);
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(EdgeCasesTest, ANodeThatLosesItsGpuIsReplacedOnceAndGivenBack) {
  RunOne();
  EndPod("p");
  model::Set(TheNode().allocatable, model::kGpuName, 0);
  Put(TheNode());
  AddPod(GpuPod("next"));
  Play(absl::Minutes(20));
  EXPECT_EQ(bound_.count("next"), 1u);
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(terminated_, 1);
}

// The volume of the pod is in the zone that comes second.
TEST_F(EdgeCasesTest, AVolumeSaysInWhichZoneTheNodeIsBought) {
  BeginInTwoZones(/*with_reserved=*/false);
  Put(MakeStorageClass("cloud", "csi.example"));
  const PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud");
  Put(OfClaim(Where(MakeVolume("v", "cloud"), model::kZoneLabel, {"z2"}), claim));
  Put(BoundTo(claim, "v"));
  AddPod(WithClaims(GpuPod("p"), {"c"}));
  Play(absl::Minutes(3));
  EXPECT_EQ(bound_.count("p"), 1u);
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(TheNode().meta.labels.Get(model::kZoneLabel), "z2");
}

TEST_F(EdgeCasesTest, ALimitThatIsLoweredGivesBackTheNodesOnTheirWay) {
  AddPod(GpuPod("a"));
  AddPod(GpuPod("b"));
  Play(absl::Seconds(10));
  ASSERT_EQ(created_, 2);
  Put(MakeQueue("research", "", 1, 1));
  Play(absl::Minutes(10));
  EXPECT_THAT(bound_, SizeIs(1));
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(terminated_, 1) << "the second node could not run anything";
}

TEST_F(EdgeCasesTest, AQueueThatGoesGivesBackTheNodesOfItsPods) {
  AddPod(GpuPod("a"));
  Play(absl::Seconds(10));
  ASSERT_EQ(created_, 1);
  loop_->Apply(model::Delete{model::Kind::kQueue, "", "research", ""});
  Play(absl::Minutes(10));
  EXPECT_THAT(bound_, IsEmpty());
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(machines_, IsEmpty());
}

TEST_F(EdgeCasesTest, APodOfHigherPriorityTakesTheNodeAndOneMoreIsBoughtAtOnce) {
  AddPod(PodBuilder("ns", "low").Queue("research").Gpus(1).Created(0).Priority("low", 10).Build());
  Play(absl::Seconds(30));
  ASSERT_EQ(created_, 1);
  AddPod(
      PodBuilder("ns", "high").Queue("research").Gpus(1).Created(9).Priority("high", 90).Build());
  Play(absl::Seconds(10));
  EXPECT_EQ(created_, 2);
  Play(absl::Minutes(10));
  EXPECT_THAT(bound_, SizeIs(2));
  EXPECT_EQ(created_, 2);
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(EdgeCasesTest, AGangWhoseMinimumIsRaisedGetsWhatIsLackingToIt) {
  Put(MakeGroup("ns", "g", "research", 2));
  for (const char* name : {"a", "b"}) {
    AddPod(PodBuilder("ns", name).Queue("research").Group("g").Gpus(1).Created(0).Build());
  }
  Play(absl::Seconds(10));
  ASSERT_EQ(created_, 2);
  Put(MakeGroup("ns", "g", "research", 3));
  Play(absl::Seconds(10));
  EXPECT_EQ(created_, 2) << "no node helps before the third pod is there";
  AddPod(PodBuilder("ns", "c").Queue("research").Group("g").Gpus(1).Created(9).Build());
  Play(absl::Minutes(10));
  EXPECT_THAT(bound_, SizeIs(3));
  EXPECT_LE(created_, 5) << "those of two pods may have been given back meanwhile";
  EXPECT_THAT(machines_, SizeIs(3));
}

TEST_F(EdgeCasesTest, WhatIsPaidForAlreadyIsUsedFirst) {
  BeginInTwoZones(/*with_reserved=*/true);
  AddPod(GpuPod("p"));
  Play(absl::Minutes(3));
  ASSERT_EQ(created_, 1);
  EXPECT_EQ(TheNode().meta.labels.Get(model::kInstanceTypeLabel), "gpu.paid");
}

// An object of etcd has 1.5 MB at most.
TEST_F(EdgeCasesTest, TheRequestsOfALargeGangAreSmall) {
  constexpr int kPods = 400;
  Put(MakeGroup("ns", "g", "research", kPods));
  const std::string long_name(200, 'x');
  for (int i = 0; i < kPods; ++i) {
    AddPod(PodBuilder("ns", absl::StrCat(long_name, i))
               .Queue("research")
               .Group("g")
               .Gpus(1)
               .Cpu(100 + i)
               .Created(0)
               .Build());
  }
  const StepResult step = StepAt(now_);
  const auto created = Of<model::CreateNodeRequest>(step);
  ASSERT_THAT(created, Not(IsEmpty()));
  for (const model::CreateNodeRequest& create : created) {
    EXPECT_LT(kube::EncodeCreateNodeRequest(create.request).body.size(), 16'384u);
  }
}

// Two pods that have to be in two zones are not moved together, although there is room for both.
TEST_F(EdgeCasesTest, NodesAreNotEmptiedWhereThatBreaksASpread) {
  options_.hook.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
  options_.engine.reclaim = options_.engine.consolidation = false;
  BeginInTwoZones(/*with_reserved=*/false);
  for (const char* name : {"a", "b"}) {
    model::Pod pod = PodBuilder("ns", name).Queue("research").Gpus(1).Label("app", "web").Build();
    model::OwnerReference owner;
    owner.kind = "ReplicaSet";
    owner.name = owner.uid = "web";
    owner.controller = true;
    pod.meta.owners.push_back(owner);
    model::TopologySpreadConstraint spread;
    spread.topology_key = model::kZoneLabel;
    spread.selector.none = false;
    spread.selector.requirements.push_back({"app", model::SelectorOperator::kIn, {"web"}});
    pod.spec.topology_spread.push_back(spread);
    pod.spec.labels_for_affinity = pod.meta.labels;
    AddPod(pod);
  }
  Play(absl::Minutes(5));
  ASSERT_THAT(bound_, SizeIs(2));
  model::Node room = MakeNode("static", 4);
  room.meta.labels.Set(model::kZoneLabel, "z1");
  nodes_["static"] = room;
  Put(room);
  Play(absl::Hours(1));
  EXPECT_LE(evicted_.size(), 1u) << "that of the zone where there is room may move";
  EXPECT_THAT(machines_, SizeIs(1));
  EXPECT_THAT(bound_, SizeIs(2));
}

}  // namespace
}  // namespace fairlead::core::testing
