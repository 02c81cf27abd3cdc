#include "scheduler/plugins/gpu_fragmentation.h"

#include <limits>
#include <string>

#include "scheduler/framework/score_tiers.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kHalves[] = R"({"typicalPods":[{"cpu":"4","gpuFractionMilli":500}]})";
constexpr char kWhole[] = R"({"typicalPods":[{"cpu":"4"}]})";

TypicalPod Shape(int64_t cpu, int64_t devices, int64_t milli, int64_t weight = kTypicalWeight) {
  TypicalPod pod;
  pod.cpu = cpu;
  pod.devices = devices;
  pod.milli = milli;
  pod.weight = weight;
  return pod;
}

GpuCapacityOfNode RoomWith(int64_t cpu, std::initializer_list<int64_t> devices) {
  GpuCapacityOfNode capacity;
  capacity.cpu = cpu;
  capacity.devices.assign(devices);
  return capacity;
}

int64_t F(const GpuCapacityOfNode& capacity, const TypicalPod& pod, bool accepts = true) {
  return FragmentationOf(capacity, {pod}, {accepts}) / kTypicalWeight;
}

// By hand from the definition: 30 x unusable + unfilled, in milli-GPU.
TEST(FragmentationTest, IsWhatTypicalPodsCannotUse) {
  const auto two = RoomWith(8000, {1000, 400});
  EXPECT_EQ(F(two, Shape(1000, 1, 500)), 30 * 400 + 400);
  EXPECT_EQ(F(two, Shape(1000, 1, 1000)), 30 * 400 + 400);
  EXPECT_EQ(F(two, Shape(1000, 1, 400)), 0 + (1400 - 3 * 400));
  EXPECT_EQ(F(two, Shape(1000, 2, 1000)), 31 * 1400) << "two devices are not there";
  EXPECT_EQ(F(two, Shape(8001, 1, 400)), 31 * 1400) << "no CPU for it";
  EXPECT_EQ(F(two, Shape(8000, 1, 400)), 0 + 1000) << "CPU for one of them";
  EXPECT_EQ(F(two, Shape(0, 1, 400), false), 31 * 1400) << "not on this node";
  EXPECT_EQ(F(RoomWith(8000, {}), Shape(8001, 1, 400)), 0) << "nothing idle, nothing lost";
}

TEST(FragmentationTest, CommonShapesWeighByTheirShare) {
  std::vector<TypicalPod> shapes = {Shape(1000, 1, 500, 1), Shape(1000, 1, 1000, 60),
                                    Shape(1000, 0, 1000, 39)};
  const std::vector<TypicalPod> kept = Commonest(shapes);
  ASSERT_THAT(kept, SizeIs(1)) << "the rare one is beyond 95 %, the one without GPUs is counted";
  EXPECT_EQ(kept[0].milli, 1000);
  EXPECT_EQ(kept[0].weight, kTypicalWeight * 60 / 99);
  shapes[2].weight = 100'000;
  EXPECT_THAT(Commonest(shapes), SizeIs(1)) << "though hardly any pod has GPUs";
  EXPECT_THAT(Commonest({Shape(0, 1, 1000, 1)}), SizeIs(1));
}

TEST(FragmentationTest, SmallShapesWeighMore) {
  // Equal counts: half a device weighs four times as much as a device, two devices half as much.
  const std::vector<TypicalPod> weighed = WeighBySize(
      {Shape(0, 1, 500, 100'000), Shape(0, 1, 1000, 100'000), Shape(0, 2, 1000, 100'000)});
  EXPECT_EQ(weighed[0].weight, kTypicalWeight * 8 / 11);
  EXPECT_EQ(weighed[1].weight, kTypicalWeight * 2 / 11);
  EXPECT_EQ(weighed[2].weight, kTypicalWeight / 11);
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(WeighBySize({Shape(0, kHuge, kHuge, kHuge)}).size(), 1u);
  EXPECT_THAT(WeighBySize({}), SizeIs(0));
}

TEST_F(PluginTest, ArgumentsOfTypicalPodsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"typicalPods":{}})", "args.typicalPods: must be a list"},
      {R"({"typicalPods":[]})", "args.typicalPods: must have a pod with GPUs"},
      {R"({"typicalPods":[{"gpu":0}]})", "args.typicalPods: must have a pod with GPUs"},
      {R"({"typicalPods":[{},1]})", "args.typicalPods[1]: must be an object"},
      {R"({"typicalPods":[{"count":0}]})", "args.typicalPods[0].count: must be a whole number"},
      {R"({"typicalPods":[{"cpu":4}]})", "args.typicalPods[0].cpu: must be a quantity"},
      {R"({"typicalPods":[{"cpu":"-4"}]})", "args.typicalPods[0].cpu: "},
      {R"({"typicalPods":[{"gpuFractionMilli":1000}]})",
       "gpuFractionMilli: must be a whole number"},
      {R"({"typicalPods":[{"gpuProducts":"A100"}]})", "gpuProducts: must be a list of strings"},
      {R"({"typicalPods":[{"gpus":1}]})", "args.typicalPods[0].gpus: is not a field"},
  };
  for (const auto& [args, text] : cases) {
    const auto made = registry_.Make("GpuFragmentation", args);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << args;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(text)) << args;
  }
}

// Bin packing would fill the node that is nearly out of CPU, and strand its other GPU.
TEST_F(PluginTest, FragmentationKeepsCpuForTheGpusThatAreLeft) {
  AddNode(MakeNode("tight", 2, 6));
  AddNode(MakeNode("wide", 2, 64));
  Waiting(PodBuilder("ns", "w").Gpus(1).Cpu(4000).Build().spec);
  const auto plugin = Only("GpuFragmentation", kWhole);
  EXPECT_GT(Score(*plugin, "wide"), Score(*plugin, "tight"));
}

TEST_F(PluginTest, FragmentationFillsTheDeviceWhoseRestIsOfNoUse) {
  AddNode(MakeNode("free", 1));
  AddNode(MakeNode("odd", 1));
  AddPod(PodBuilder("ns", "runs").GpuFraction(600).On("odd"));
  Waiting(PodBuilder("ns", "w").GpuFraction(400).Build().spec);
  const auto plugin = Only("GpuFragmentation", kHalves);
  EXPECT_GT(Score(*plugin, "odd"), Score(*plugin, "free"));
}

TEST_F(PluginTest, FragmentationBreaksTiesByTheLeastIdleGpu) {
  AddNode(MakeNode("large", 8));
  AddNode(MakeNode("small", 2));
  Waiting(PodBuilder("ns", "w").Gpus(1).Build().spec);
  const auto plugin = Only("GpuFragmentation", kWhole);
  EXPECT_GT(Score(*plugin, "small"), Score(*plugin, "large"));
}

TEST_F(PluginTest, FragmentationOfAProductCountsOnItsNodesOnly) {
  model::Node node = MakeNode("wanted", 2);
  node.meta.labels.Set(model::kGpuProductLabel, "rare");
  AddNode(node);
  node = MakeNode("other", 2);
  node.meta.labels.Set(model::kGpuProductLabel, "common");
  AddNode(node);
  Waiting(PodBuilder("ns", "w").GpuFraction(700).Build().spec);
  const auto plugin = Only("GpuFragmentation", R"({"typicalPods":[{"gpuProducts":["rare"]}]})");
  EXPECT_GT(Score(*plugin, "other"), Score(*plugin, "wanted"));
}

// Scores are kept by node version: after any change they are those of a plugin that never looked.
TEST_F(PluginTest, FragmentationRemembersNothingThatHasChanged) {
  for (const char* args : {kHalves, ""}) {
    SCOPED_TRACE(args);
    const auto old = Only("GpuFragmentation", args);
    AddNode(MakeNode("n", 4, 32));
    Waiting(PodBuilder("ns", "w").GpuFraction(300).Build().spec);
    for (int i = 0; i < 6; ++i) {
      Score(*old, "n");
      AddPod(PodBuilder("ns", absl::StrCat("p", i)).GpuFraction(100 + 150 * i).Cpu(3000).On("n"));
      EXPECT_EQ(Score(*old, "n"), Score(*Only("GpuFragmentation", args), "n")) << i;
    }
    model::Node smaller = MakeNode("n", 3, 20);
    AddNode(smaller);
    EXPECT_EQ(Score(*old, "n"), Score(*Only("GpuFragmentation", args), "n"));
    for (int i = 0; i < 6; ++i) {
      state_.RemovePod("ns", absl::StrCat("p", i), absl::StrCat("uid-ns-p", i));
    }
  }
}

TEST_F(PluginTest, TypicalPodsAreLearnedFromWhatWaitsAndRuns) {
  AddNode(MakeNode("n", 4));
  AddPod(PodBuilder("ns", "a").GpuFraction(250).Cpu(2000).Scheduler("fairlead").On("n"));
  AddPod(PodBuilder("ns", "b").GpuFraction(250).Cpu(2000).Scheduler("fairlead"));
  AddPod(PodBuilder("ns", "c").Gpus(2).Cpu(3000).Scheduler("fairlead"));
  AddPod(PodBuilder("ns", "d").Gpus(4).Scheduler("another-scheduler").On("n"));
  AddPod(PodBuilder("ns", "e").Gpus(4).Scheduler("fairlead").On("n", model::PodPhase::kSucceeded));
  std::vector<std::string> shapes;
  for (const TypicalPod& pod : LearnTypicalPods(state_, CountPods(state_))) {
    shapes.push_back(absl::StrCat(pod.cpu, " ", pod.devices, "x", pod.milli, " ", pod.weight));
  }
  EXPECT_THAT(shapes, ElementsAre("2000 1x250 666666", "3000 2x1000 333333"));
}

TEST_F(PluginTest, FragmentationStaysInItsTier) {
  AddNode(MakeNode("huge", 64, 100'000));
  AddNode(MakeNode("full", 0, 1));
  for (const char* args : {kHalves, kWhole, ""}) {
    for (const int64_t gpus : {0, 1, 64}) {
      Waiting(PodBuilder("ns", "w").Gpus(gpus).Build().spec);
      const auto plugin = Only("GpuFragmentation", args);
      for (const char* node : {"huge", "full"}) {
        EXPECT_GE(Score(*plugin, node), 0);
        EXPECT_LE(Score(*plugin, node), framework::kPlacementRange);
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::plugins
