// What is learned from machines: what DaemonSets take of a node, and how long a boot takes.

#include <string>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_fixture_testing.h"
#include "autoscale-hook/machines/boot_times.h"
#include "autoscale-hook/planner/caps.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::HookTest;
using testing::Item;
using testing::kGiB;
using ::testing::SizeIs;
using testing::Spec;
using verdict::Code;

class OverheadTest : public HookTest {
 protected:
  OverheadTest() {
    catalog_ = Catalog::FromTypes({testing::Type("g.1", 4, 16, 1, testing::kDollar),
                                   testing::Type("g.2", 8, 32, 1, 2 * testing::kDollar),
                                   testing::Type("c.1", 4, 16, 0, testing::kDollar / 10)});
    Restart();
  }
  void SeeDaemons(int64_t cpu_milli) {
    nodes_.at(TheName()).daemon_requests = {{"cpu", cpu_milli}, {"memory", kGiB}, {"pods", 3}};
    StepAndApply();
  }
  std::string TypeBoughtFor(int64_t cpu_milli, int64_t gpus = 1) {
    // Another workload each time: nothing is bought twice for one.
    const StepOutput out =
        Step({Item(absl::StrCat("team/b", ++workloads_), Spec(cpu_milli, 1, gpus), 1)});
    return out.created.empty() ? "" : out.created.front().request.instance_type;
  }
  int workloads_ = 0;
};

TEST_F(OverheadTest, WhatDaemonSetsTakeIsNotPlannedWith) {
  BuyReady();
  EXPECT_EQ(TypeBoughtFor(4000), "g.1");
  SeeDaemons(500);
  EXPECT_EQ(TypeBoughtFor(3500), "g.1");
  EXPECT_EQ(TypeBoughtFor(3600), "g.2") << "of its pool: other types with GPUs have them too";
  const StepOutput out = Step({Item("team/huge", Spec(7600, 1, 1), 1)});
  EXPECT_EQ(out.outcomes.at(0).code, Code::kNoInstanceTypeFits)
      << static_cast<int>(out.outcomes.at(0).service) << out.outcomes.size();
  EXPECT_THAT(out.outcomes.at(0).details,
              Contains(HasSubstr("DaemonSets and static pods take 0.5 CPU cores, 1Gi of memory")));
  EXPECT_EQ(TypeBoughtFor(4000, 0), "c.1") << "nodes without GPUs have others";
}

TEST_F(OverheadTest, AnOrderedNodeHasItUntilItRegisters) {
  BuyReady();
  SeeDaemons(500);
  model::NodeRequest request = The();
  const auto cpu = [&](bool registered) {
    return model::Get(hook_->ExpectedNode(request, {}, registered)->allocatable, "cpu");
  };
  EXPECT_EQ(cpu(true) - cpu(false), 500);
}

TEST_F(OverheadTest, ItIsKeptWhenTheLastNodeGoesAndFollowsTheNodesThatAreThere) {
  BuyReady();
  SeeDaemons(500);
  SeeDaemons(200);
  EXPECT_EQ(TypeBoughtFor(3800), "g.1") << "a DaemonSet was deleted";
  requests_.clear();
  nodes_.clear();
  EXPECT_EQ(TypeBoughtFor(3900), "g.2");
}

TEST_F(OverheadTest, ANodeThatIsNotReadyTeachesNothing) {
  BuyReady();
  nodes_.at(TheName()).ready = false;
  SeeDaemons(500);
  EXPECT_EQ(TypeBoughtFor(4000), "g.1");
}

// ---- divided GPUs

class SharedPoolTest : public HookTest {
 protected:
  SharedPoolTest() {
    pools_.resize(1);
    pools_[0].meta.name = "p";
  }
  model::GpuPartition& sharing() { return pools_[0].gpu_sharing; }
  static std::shared_ptr<const model::PodSpec> Wants(const std::string& resource,
                                                     int64_t devices = 1) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "team";
    model::Set(spec->requests, resource, devices * 1000);
    return spec;
  }
};

TEST_F(SharedPoolTest, FourSlicesAreOneGpu) {
  sharing() = {model::GpuPartition::Strategy::kTimeSlicing, 4, false, {}};
  StepAndApply({Item("team/a", Wants("nvidia.com/gpu"), 4)});
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(OrderedGpus(The()), 1) << "caps count what is paid for";
  const absl::StatusOr<model::Node> node = hook_->ExpectedNode(The());
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 4000);
  EXPECT_EQ(node->meta.labels.Get("nvidia.com/gpu.product"), "H100-SHARED");
  EXPECT_EQ(node->meta.labels.Get("nvidia.com/gpu.replicas"), "4");
}

TEST_F(SharedPoolTest, ANodeOfSlicesIsNotMoreThanItsCap) {
  options_.cluster_gpu_limit = 2;
  Restart();
  sharing() = {model::GpuPartition::Strategy::kMps, 8, false, {}};
  StepAndApply({Item("team/a", Wants("nvidia.com/gpu"), 8)});
  ASSERT_THAT(requests_, SizeIs(1));
  Launched(All<model::LaunchNode>(StepAndApply()).at(0));
  NodeUse& node = nodes_.at(TheName());
  node.registered = node.ready = true;
  node.uid = "u";
  node.allocatable = {{"nvidia.com/gpu", 8000}};
  StepAndApply();
  const StepOutput out = Step({Item("team/b", Wants("nvidia.com/gpu"), 8)});
  EXPECT_THAT(out.created, SizeIs(1)) << "eight slices are one GPU of the two";
}

TEST_F(SharedPoolTest, RenamedSlicesAndMigInstancesAreResourcesOfTheirOwn) {
  sharing() = {model::GpuPartition::Strategy::kTimeSlicing, 4, true, {}};
  EXPECT_THAT(Step({Item("team/a", Wants("nvidia.com/gpu"), 1)}).created, SizeIs(0));
  EXPECT_THAT(Step({Item("team/a", Wants("nvidia.com/gpu.shared"), 5)}).created, SizeIs(2));
  sharing() = {model::GpuPartition::Strategy::kMigMixed, 1, false, {{"1g.5gb", 3}, {"2g.10gb", 2}}};
  pools_[0].meta.generation = 2;
  Restart();
  EXPECT_THAT(Step({Item("team/a", Wants("nvidia.com/mig-1g.5gb"), 4)}).created, SizeIs(2));
  sharing() = {model::GpuPartition::Strategy::kMigSingle, 1, false, {{"1g.5gb", 7}}};
  pools_[0].meta.generation = 3;
  Restart();
  EXPECT_THAT(Step({Item("team/a", Wants("nvidia.com/gpu"), 8)}).created, SizeIs(2));
}

TEST(BootTimesTest, NineOfTenOfTheLastOnes) {
  BootTimes times;
  const absl::Duration otherwise = absl::Minutes(3);
  EXPECT_EQ(times.Expect("t", "p", otherwise), otherwise);
  times.Learn("t", "p", absl::Seconds(-1));
  times.Learn("t", "p", absl::Hours(25));
  EXPECT_EQ(times.Expect("t", "p", otherwise), otherwise);
  times.Learn("t", "p", absl::Seconds(40));
  EXPECT_EQ(times.Expect("t", "p", otherwise), absl::Seconds(40));
  EXPECT_EQ(times.Expect("u", "p", otherwise), absl::Seconds(40)) << "of its pool";
  EXPECT_EQ(times.Expect("t", "q", otherwise), otherwise);
  for (int i = 1; i <= 20; ++i) times.Learn("t", "p", absl::Seconds(i));
  EXPECT_EQ(times.Expect("t", "p", otherwise), absl::Seconds(18));
}

TEST_F(HookTest, TheExpectedTimeIsThatOfFormerBoots) {
  BuyLaunched();
  now_ += absl::Seconds(70);
  nodes_.at(TheName()).registered = nodes_.at(TheName()).ready = true;
  nodes_.at(TheName()).uid = "u";
  nodes_.at(TheName()).allocatable = {{"cpu", 4000}};
  StepAndApply();
  const StepOutput out = Step({Item("team/b", Spec(1000, 1, 1), 1)});
  ASSERT_THAT(out.created, SizeIs(1));
  const absl::Duration took = *The().ready_at - *The().launched_at;
  EXPECT_EQ(out.outcomes.at(0).expected_at, now_ + took);
  EXPECT_EQ(hook_->ExpectedBoot(The()), took);
  Reload();
  EXPECT_EQ(hook_->ExpectedBoot(The()), took);
}

}  // namespace
}  // namespace fairlead::hook
