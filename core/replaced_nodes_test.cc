// Nodes whose pods move onto a cheaper one that is provisioned for that, through the whole decision
// loop.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/machines_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReplacedNodesTest : public MachinesTest {
 protected:
  void SetUp() override {
    options_.hook.disruption.consolidation = model::ConsolidationPolicy::kWhenEmptyOrUnderutilized;
    options_.engine.reclaim = options_.engine.consolidation = false;  // nothing else evicts
    Restart();
    Begin();
  }
  // Another process begins, and sees what the API server has.
  void Another() {
    Restart();
    for (const auto& [name, node] : nodes_) Put(node);
    for (const auto& [name, request] : requests_) Put(request);
    for (const auto& [name, pod] : pods_) Put(pod);
    Begin();
  }
  static model::Pod Owned(model::Pod pod) {
    model::OwnerReference owner;
    owner.kind = "ReplicaSet";
    owner.name = owner.uid = "owner-of-" + pod.meta.name;
    owner.controller = true;
    pod.meta.owners.push_back(owner);
    return pod;
  }
  // "p" is left alone on a node of gpu.large.
  void LeaveAlone(const model::Pod& pod) {
    AddPod(PodBuilder("ns", "big").Queue("research").Gpus(3).Created(0).Build());
    Play(absl::Minutes(3));
    AddPod(pod);
    Play(absl::Minutes(1));
    ASSERT_THAT(bound_, SizeIs(2));
    ASSERT_EQ(bound_["big"], bound_["p"]);
    large_ = bound_["p"];
    EndPod("big");
  }
  std::string TypeOf(const std::string& pod) const {
    const auto node = bound_.find(pod);
    if (node == bound_.end()) return "";
    return std::string(nodes_.at(node->second).meta.labels.Get(model::kInstanceTypeLabel));
  }
  // Until a request that replaces another one was created.
  void PlayUntilRequested() {
    while (created_ < 2 && now_ < At(3600)) Play(absl::Seconds(5));
    ASSERT_EQ(created_, 2);
  }

  std::string large_;
};

TEST_F(ReplacedNodesTest, ThePodMovesOntoACheaperNode) {
  LeaveAlone(Owned(GpuPod("p")));
  Play(options_.hook.unneeded_after - absl::Seconds(30));
  EXPECT_EQ(created_, 1);
  PlayUntilRequested();
  EXPECT_THAT(evicted_, IsEmpty()) << "the new node comes first";
  Play(absl::Minutes(5));
  ASSERT_THAT(evicted_, SizeIs(1));
  EXPECT_THAT(evicted_.front().message, HasSubstr("takes its place, for $1.00 an hour"));
  EXPECT_EQ(TypeOf("pi"), "gpu.small");
  EXPECT_EQ(terminated_, 1);
  Play(absl::Hours(4));
  EXPECT_THAT(evicted_, SizeIs(1)) << "and that is all";
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(terminated_, 1);
}

TEST_F(ReplacedNodesTest, WhatMayNotBeMovedOrFitsNoCheaperNodeStays) {
  struct Case {
    const char* why;
    std::function<void(model::Pod&)> change;
  };
  const Case cases[] = {
      {"no controller", [](model::Pod& pod) { pod.meta.owners.clear(); }},
      {"do not evict",
       [](model::Pod& pod) { pod.meta.annotations.Set(model::kDoNotEvictAnnotation, "true"); }},
      {"selects the type",
       [](model::Pod& pod) { pod.spec.node_selector.Set(model::kInstanceTypeLabel, "gpu.large"); }},
      {"too large for it", [](model::Pod& pod) { model::Set(pod.spec.requests, "cpu", 9000); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    requests_.clear();
    nodes_.clear();
    bound_.clear();
    pods_.clear();
    machines_.clear();
    created_ = 0;
    Restart();
    Begin();
    model::Pod pod = Owned(GpuPod("p"));
    c.change(pod);
    LeaveAlone(pod);
    Play(absl::Hours(1));
    EXPECT_EQ(created_, 1);
    EXPECT_THAT(evicted_, IsEmpty());
  }
}

TEST_F(ReplacedNodesTest, AGangThatNeedsAllOfItsPodsMovesAsOne) {
  Put(MakeGroup("ns", "g", "research", 1));
  model::Pod pod = Owned(GpuPod("p"));
  pod.meta.annotations.Set(model::kPodGroupAnnotation, "g");
  LeaveAlone(pod);
  Play(options_.hook.unneeded_after + absl::Minutes(5));
  EXPECT_EQ(created_, 2);
  EXPECT_THAT(evicted_, SizeIs(1));
}

TEST_F(ReplacedNodesTest, APodThatComesMeanwhileMayHaveTheNewNode) {
  LeaveAlone(Owned(GpuPod("p")));
  PlayUntilRequested();
  model::Pod small = GpuPod("q");
  small.spec.node_selector.Set(model::kInstanceTypeLabel, "gpu.small");
  AddPod(small);
  Play(absl::Minutes(3));
  EXPECT_EQ(TypeOf("q"), "gpu.small");
  EXPECT_EQ(created_, 2) << "nothing was bought for it besides";
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_EQ(TypeOf("p"), "gpu.large");
  Play(absl::Minutes(10));
  EXPECT_EQ(terminated_, 0);
}

TEST_F(ReplacedNodesTest, ANodeThatTurnsOutTooSmallIsGivenBackAndNotBoughtAgain) {
  LeaveAlone(Owned(GpuPod("p", int64_t{20} << 30)));
  memory_ = int64_t{10} << 30;  // of nodes that come from now on
  Play(options_.hook.unneeded_after + absl::Minutes(10));
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(terminated_, 1);
  EXPECT_EQ(TypeOf("p"), "gpu.large");
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_THAT(nodes_.at(large_).taints, IsEmpty());
  Play(absl::Hours(4));
  EXPECT_EQ(created_, 2) << "such nodes are known to be smaller";
}

TEST_F(ReplacedNodesTest, AnotherProcessGoesOnAtAnyTime) {
  for (int seconds = 0; seconds <= 300; seconds += 10) {
    SCOPED_TRACE(seconds);
    requests_.clear();
    nodes_.clear();
    bound_.clear();
    pods_.clear();
    machines_.clear();
    booting_.clear();
    evicted_.clear();
    created_ = terminated_ = 0;
    now_ = At(1);
    Restart();
    Begin();
    LeaveAlone(Owned(GpuPod("p")));
    while (created_ < 2 && now_ < At(3600)) Play(absl::Seconds(5));
    Play(absl::Seconds(seconds));
    Another();
    Play(absl::Minutes(20));
    EXPECT_EQ(created_, 2);
    EXPECT_EQ(terminated_, 1);
    EXPECT_THAT(evicted_, SizeIs(1));
    EXPECT_EQ(TypeOf("pi"), "gpu.small");
  }
}

}  // namespace
}  // namespace fairlead::core::testing
