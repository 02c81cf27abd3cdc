// What nodes teach about the devices that DRA drivers publish for them.
#include <string>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/devices_testing.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using testing::Claiming;
using ::testing::Contains;
using testing::Devices;
using testing::DevicesOfNode;
using ::testing::HasSubstr;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using ::testing::SizeIs;
using testing::Spec;
using verdict::Code;

constexpr char kNic[] = "nic.io";

class LearnedDevicesTest : public HookTest {
 protected:
  // Of "g.4" the catalogue declares 4 GPUs by claim; of "n.1" it says nothing of devices.
  LearnedDevicesTest() {
    InstanceType gpus = testing::Type("g.4", 16, 64, 4, kDollar);
    gpus.devices = Devices(4);
    InstanceType dear = testing::Type("g.8", 16, 64, 8, 3 * kDollar);
    dear.devices = Devices(8);
    catalog_ = Catalog::FromTypes({gpus, dear, testing::Type("n.1", 4, 16, 0, kDollar / 10)});
    Restart();
  }
  // Provisions a node for the pods; it is ready with these devices.
  void BuyReadyWith(const Demand& demand, const DevicesOfNode& devices) {
    const StepOutput out = StepAndApply(demand);
    ASSERT_THAT(out.created, SizeIs(1));
    const std::string name = out.created[0].request.meta.name;
    for (const auto& launch : All<model::LaunchNode>(StepAndApply())) Launched(launch);
    now_ += absl::Seconds(60);
    NodeUse& node = nodes_.at(name);
    node.registered = node.ready = true;
    node.uid = "uid-" + name;
    node.devices = devices;
    StepAndApply();
    StepAndApply();
    ASSERT_EQ(requests_.at(name).phase, model::NodeRequestPhase::kReady);
  }
  std::string TypeBoughtFor(std::shared_ptr<const model::PodSpec> spec) {
    const StepOutput out = Step({Item(absl::StrCat("team/b", ++workloads_), std::move(spec), 1)});
    last_ = out.outcomes.empty() ? DemandOutcome() : out.outcomes.front();
    return out.created.empty() ? "" : out.created.front().request.instance_type;
  }
  int workloads_ = 0;
  DemandOutcome last_;
};

TEST_F(LearnedDevicesTest, WhatTheCatalogueDeclaresIsBoughtAndCounted) {
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 4)), "g.4");
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 5)), "g.8");
  const StepOutput out = Step({Item("team/c", Claiming(1000, 2), 1)});
  ASSERT_THAT(out.created, SizeIs(1));
  EXPECT_EQ(hook_->GpusOf(out.created[0].request), 4);
  // The ordered node has them, and no GPUs of a device plugin.
  EXPECT_TRUE(model::SameDevices(out.created[0].node.devices, Devices(4)));
  EXPECT_EQ(model::Get(out.created[0].node.allocatable, model::kGpuName), 0);
  options_.cluster_gpu_limit = 3;
  Restart();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 1)), "");
  EXPECT_EQ(last_.code, Code::kGpuCapReached);
}

TEST_F(LearnedDevicesTest, NoTypeHasThemAndTheVerdictSaysWhatTypesHave) {
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 1, "fpga.io")), "");
  EXPECT_EQ(last_.code, Code::kNoInstanceTypeFits);
  EXPECT_THAT(last_.details, Contains(HasSubstr("but for the devices that they bring: "
                                                "g.4 (4 x gpu.nvidia.com), "
                                                "g.8 (8 x gpu.nvidia.com), "
                                                "n.1 (no devices known)")));
  // A pod that joins a claim that nobody brings.
  EXPECT_EQ(TypeBoughtFor(testing::Joining("c", 1000)), "");
  EXPECT_THAT(last_.details, Contains(HasSubstr("ResourceClaim team/c is held on a node")));
  // A pod that is too large whatever its claims: nothing is said of devices.
  EXPECT_EQ(TypeBoughtFor(Claiming(64'000, 1)), "");
  EXPECT_THAT(last_.details, Not(Contains(HasSubstr("devices"))));
}

TEST_F(LearnedDevicesTest, FewerThanDeclaredAreNotBoughtAgainForPodsThatDoNotFit) {
  BuyReadyWith({Item("team/a", Claiming(1000, 4), 1)}, Devices(2));
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 3)), "g.8");
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 2)), "g.4") << "it has as many";
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 9)), "");
  // No other type is in the catalogue: why not is told.
  catalog_ = Catalog::FromTypes({catalog_.types()[0]});
  Reload();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 3)), "");
  EXPECT_EQ(last_.code, Code::kNoInstanceTypeFits);
  EXPECT_THAT(last_.details, Contains(HasSubstr("nodes of type g.4 have the devices 2 x "
                                                "gpu.nvidia.com instead of 4 x gpu.nvidia.com")));
  // A new process learns it again.
  Restart();
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 3)), "");
}

TEST_F(LearnedDevicesTest, WhatIsNotDeclaredIsLearned) {
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 1, kNic)), "");
  const uint64_t before = hook_->offers_version();
  BuyReadyWith({Item("team/a", Spec(1000, 1, 0), 1)}, Devices(2, kNic));
  EXPECT_NE(hook_->offers_version(), before);
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 2, kNic)), "n.1");
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 3, kNic)), "");
  Reload();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 2, kNic)), "n.1");
  Restart();
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 2, kNic)), "n.1");
}

TEST_F(LearnedDevicesTest, ANodeMayGetMoreAndLosesThemForItselfAlone) {
  BuyReadyWith({Item("team/a", Spec(1000, 1, 0), 1)}, Devices(2, kNic));
  NodeUse& node = nodes_.begin()->second;
  node.devices = Devices(4, kNic);
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 4, kNic)), "n.1");
  node.devices = Devices(1, kNic);
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 4, kNic)), "n.1") << "a broken card is no other type";
  node.devices = nullptr;
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 4, kNic)), "n.1");
}

TEST_F(LearnedDevicesTest, ANodeThatIsNotReadyTeachesNothing) {
  BuyReadyWith({Item("team/a", Spec(1000, 1, 0), 1)}, nullptr);
  NodeUse& node = nodes_.begin()->second;
  node.ready = false;
  node.devices = Devices(2, kNic);
  StepAndApply();
  EXPECT_EQ(TypeBoughtFor(Claiming(1000, 1, kNic)), "");
}

TEST_F(LearnedDevicesTest, GpusThatTheCatalogueDoesNotCountAreNotPlannedWith) {
  BuyReadyWith({Item("team/a", Spec(1000, 1, 0), 1)}, Devices(1));
  EXPECT_NE(TypeBoughtFor(Claiming(1000, 1)), "n.1") << "no cap would hold them";
}

}  // namespace
}  // namespace fairlead::hook
