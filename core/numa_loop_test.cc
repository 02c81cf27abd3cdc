// NUMA nodes through the whole decision loop: bindings say which, victims are those that have them,
// and nodes of a type that cannot align a pod are not bought for it.
#include <string>
#include <vector>

#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/testing/numa_builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeGuaranteed;
using model::testing::MakeNodeTopology;
using model::testing::OnZone;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NumaLoopTest : public DecisionLoopTest {
 protected:
  NumaLoopTest() {
    options_.profiles[0].plugins.push_back({"Numa"});
    options_.hook.enabled = false;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
  static model::Pod Guaranteed(const std::string& name, int64_t cores, int64_t created) {
    return MakeGuaranteed(PodBuilder("ns", name).Queue("q").Created(created), cores);
  }
  static model::Pod Running(const std::string& name, const std::string& zone, int32_t priority) {
    PodBuilder pod("ns", name);
    pod.Queue("q").On("n").Priority(absl::StrCat("p", priority), priority);
    return OnZone(MakeGuaranteed(pod, 3), zone, 3);
  }
};

TEST_F(NumaLoopTest, ABindingSaysWhichNumaNodes) {
  Put(MakeNode("n", 0));
  Put(MakeNodeTopology("n", {4, 4}));
  for (int i = 0; i < 3; ++i) Put(Guaranteed(absl::StrCat("p", i), 3, i));
  const StepResult step = Step(0);
  std::vector<std::string> zones;
  for (const model::BindPod& bind : Of<model::BindPod>(step)) {
    zones.emplace_back(bind.annotations.Get(model::kNumaPredictedAnnotation));
  }
  EXPECT_THAT(zones, ElementsAre(R"([{"zone":"zone-0","amount":{"cpu":"3"}}])",
                                 R"([{"zone":"zone-1","amount":{"cpu":"3"}}])"));
  const auto told = Of<model::SetPodUnschedulable>(step);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].name, "p2");
  EXPECT_THAT(told[0].message, HasSubstr("NUMA nodes"));
}

TEST_F(NumaLoopTest, TheVictimIsWhoHasTheNumaNode) {
  Put(MakeNode("n", 0));
  Put(MakeNodeTopology("n", {4, 8}));
  // Evicting the pod of the lowest priority would free zone-0, which is too small for the new one.
  Put(Running("low", "zone-0", 1));
  Put(Running("high", "zone-1", 2));
  model::Pod pod = MakeGuaranteed(PodBuilder("ns", "new").Queue("q").Priority("p90", 90), 7);
  Put(pod);
  EXPECT_THAT(EvictedIn(Step(0)), ElementsAre("high"));
}

TEST_F(NumaLoopTest, NobodyIsEvictedInVain) {
  Put(MakeNode("n", 0));
  Put(MakeNodeTopology("n", {4, 4}));
  Put(Running("low", "zone-0", 1));
  Put(Running("high", "zone-1", 2));
  Put(MakeGuaranteed(PodBuilder("ns", "new").Queue("q").Priority("p90", 90), 5));
  EXPECT_THAT(EvictedIn(Step(0)), IsEmpty());
}

TEST_F(NumaLoopTest, ANodeOfATypeThatCannotAlignThePodIsNotBought) {
  options_.hook.enabled = true;
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  // gpu.small has 8 cores: 4 on each of two NUMA nodes, as this one shows. It is full.
  model::Node small = MakeNode("n", 1, 8, 32);
  small.meta.labels.Set(model::kInstanceTypeLabel, "gpu.small");
  Put(small);
  Put(MakeNodeTopology("n", {4, 4}));
  Put(MakeGuaranteed(PodBuilder("ns", "full").Queue("q").On("n").Gpus(1), 8));
  Put(MakeGuaranteed(PodBuilder("ns", "new").Queue("q").Gpus(1), 6));
  std::vector<std::string> types;
  for (const auto& create : Of<model::CreateNodeRequest>(Step(0))) {
    types.push_back(create.request->instance_type);
  }
  EXPECT_THAT(types, ElementsAre("gpu.large"));
}

}  // namespace
}  // namespace fairlead::core::testing
