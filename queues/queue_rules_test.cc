// Rules that cross the parts of this module: a quota that shrinks, GPU models, the default queue,
// minimum runtimes by their options.
#include <gtest/gtest.h>

#include "queues/default_queue.h"
#include "queues/fair_share.h"
#include "queues/limits.h"
#include "queues/reclaim.h"
#include "queues/test_support.h"
#include "queues/variant.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;

class QueueRulesTest : public ::testing::Test {
 protected:
  QueueId Add(const std::string& name, model::QueueResource gpu, const std::string& parent = "") {
    model::Queue queue = MakeQueue(name, parent);
    queue.gpu = gpu;
    return tree_.Upsert(queue);
  }
  model::ResourceNames names_;
  QueueTree tree_{names_};
};

// --- a quota or a limit shrinks
// -------------------------------------------------------------------

TEST_F(QueueRulesTest, ShrunkQuotaEvictsNothingAndStopsNewNonPreemptibleWork) {
  const QueueId team = Add("team", {8000, kUnlimited, 0});
  QueueLedger ledger(tree_);
  ledger.Charge(team, Gpus(6000), false);
  ledger.Charge(team, Gpus(1000), true);
  const QueueLedger before = ledger;
  const uint64_t shape = tree_.shape_version();
  Add("team", {4000, kUnlimited, 0});
  EXPECT_EQ(tree_.shape_version(), shape) << "nothing is charged again";
  EXPECT_TRUE(ledger == before);
  const auto refused = CheckLimits(tree_, ledger, team, Gpus(1), false);
  EXPECT_EQ(refused, (LimitViolation{team, kGpu, LimitKind::kNonPreemptibleQuota, 4000, 6000, 1}));
  EXPECT_EQ(Headroom(tree_, ledger, team, false)[kGpu], 0);
  EXPECT_FALSE(CheckLimits(tree_, ledger, team, Gpus(1), true)) << "preemptible work may come";
  EXPECT_FALSE(CheckLimits(tree_, ledger, team, Amounts(100, 100, 0), false))
      << "what needs no GPU is not held up";
  // It returns below its quota only when work finishes.
  ledger.Release(team, Gpus(3000), false);
  EXPECT_FALSE(CheckLimits(tree_, ledger, team, Gpus(1000), false));
  EXPECT_TRUE(CheckLimits(tree_, ledger, team, Gpus(1001), false));
}

TEST_F(QueueRulesTest, ShrunkLimitStopsAllNewWorkOfThatResourceAtEveryLevel) {
  const QueueId dept = Add("dept", {0, 8000, 0});
  const QueueId team = Add("team", {0, kUnlimited, 0}, "dept");
  QueueLedger ledger(tree_);
  ledger.Charge(team, Gpus(6000), true);
  Add("dept", {0, 4000, 0});
  const auto refused = CheckLimits(tree_, ledger, team, Gpus(500), true);
  EXPECT_EQ(refused, (LimitViolation{dept, kGpu, LimitKind::kLimit, 4000, 6000, 500}));
  EXPECT_FALSE(CheckLimits(tree_, ledger, team, Amounts(1, 1, 0), true));
  EXPECT_EQ(Headroom(tree_, ledger, team, true)[kGpu], 0);
  ledger.Release(team, Gpus(2500), true);
  EXPECT_FALSE(CheckLimits(tree_, ledger, team, Gpus(500), true));
}

TEST_F(QueueRulesTest, WhatIsAboveTheShrunkShareCanBeReclaimedByQueuesBelowTheirs) {
  const QueueId big = Add("big", {8000, kUnlimited, 0});
  const QueueId small = Add("small", {2000, kUnlimited, 0});
  QueueLedger ledger(tree_);
  ledger.Charge(big, Gpus(8000), true);
  ledger.AddRequested(big, Gpus(8000));
  ledger.AddRequested(small, Gpus(6000));
  const auto may_reclaim = [&](int64_t gpus) {
    const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(8000));
    const ReclaimContext context{tree_, ledger, shares};
    const Reclaimer reclaimer{small, Gpus(gpus), true};
    return CanReclaim(context, reclaimer).allowed() &&
           Reclaimable(context, reclaimer, {{big, {Gpus(gpus)}}}).allowed();
  };
  EXPECT_FALSE(may_reclaim(2000)) << "within its quota no queue takes from it";
  Add("big", {4000, kUnlimited, 0});
  Add("small", {4000, kUnlimited, 0});
  EXPECT_TRUE(may_reclaim(2000));
  EXPECT_TRUE(may_reclaim(4000)) << "down to its new share";
  EXPECT_FALSE(may_reclaim(5000));
}

// --- GPU models
// -----------------------------------------------------------------------------------

TEST_F(QueueRulesTest, GpuModelsAreCountedInDevicesBesidesGpus) {
  EXPECT_EQ(model::BaseUnitsPerUnit(GpuModelResource("NVIDIA-H100-80GB-HBM3")), 1000);
  EXPECT_EQ(DivisionUnit(GpuModelResource("NVIDIA-L4")), 1000);
  Add("plain", {8000, kUnlimited, 0});
  EXPECT_FALSE(FindGpuModel(tree_, "NVIDIA-H100-80GB-HBM3")) << "no queue names it";
  EXPECT_EQ(WithVariant(Gpus(500), FindGpuModel(tree_, "NVIDIA-H100-80GB-HBM3")), Gpus(500));

  model::Queue team = MakeQueue("team");
  team.gpu = {kUnlimited, kUnlimited, 0};
  team.other = {{GpuModelResource("NVIDIA-H100-80GB-HBM3"), {1000, 2000, 0}}};
  const uint64_t shape = tree_.shape_version();
  const QueueId id = tree_.Upsert(team);
  EXPECT_GT(tree_.shape_version(), shape);
  const auto h100 = FindGpuModel(tree_, "NVIDIA-H100-80GB-HBM3");
  ASSERT_TRUE(h100.has_value());
  EXPECT_FALSE(FindGpuModel(tree_, "NVIDIA-L4"));
  EXPECT_FALSE(FindGpuModel(tree_, ""));

  QueueLedger ledger(tree_);
  const model::Resources one =
      WithVariant(Gpus(1000), FindGpuModel(tree_, "NVIDIA-H100-80GB-HBM3"));
  EXPECT_EQ(one[*h100], 1000);
  EXPECT_EQ(one[kGpu], 1000);
  ledger.Charge(id, one, false);
  EXPECT_EQ(CheckLimits(tree_, ledger, id, one, false)->resource, *h100)
      << "the quota of one is used up";
  EXPECT_FALSE(CheckLimits(tree_, ledger, id, one, true));
  ledger.Charge(id, one, true);
  EXPECT_EQ(CheckLimits(tree_, ledger, id, one, true),
            (LimitViolation{id, *h100, LimitKind::kLimit, 2000, 2000, 1000}));
  EXPECT_FALSE(CheckLimits(tree_, ledger, id,
                           WithVariant(Gpus(1000), FindGpuModel(tree_, "NVIDIA-L4")), true))
      << "other models are free";
  EXPECT_FALSE(CheckLimits(
      tree_, ledger, id, WithVariant(Amounts(4, 4, 0), FindGpuModel(tree_, "NVIDIA-H100")), true));

  const uint64_t named = tree_.shape_version();
  tree_.Remove("team");
  EXPECT_FALSE(FindGpuModel(tree_, "NVIDIA-H100-80GB-HBM3"));
  EXPECT_GT(tree_.shape_version(), named);
}

TEST_F(QueueRulesTest, GpuModelsHaveFairShares) {
  const std::string h100 = GpuModelResource("H100");
  const auto add = [&](const std::string& name, model::QueueResource bounds) {
    model::Queue queue = MakeQueue(name);
    queue.gpu = {0, kUnlimited, kMicro};
    queue.other = {{h100, bounds}};
    return tree_.Upsert(queue);
  };
  const QueueId a = add("a", {2000, kUnlimited, 3 * kMicro});
  const QueueId b = add("b", {0, kUnlimited, kMicro});
  QueueLedger ledger(tree_);
  const model::Resources many = WithVariant(Gpus(20'000), FindGpuModel(tree_, "H100"));
  ledger.AddRequested(a, many);
  ledger.AddRequested(b, many);
  model::Resources total = Gpus(20'000);
  total.Set(*FindGpuModel(tree_, "H100"), 10'000);
  const FairShares shares = ComputeFairShare(tree_, ledger, total);
  EXPECT_EQ(shares.Get(a, *FindGpuModel(tree_, "H100")), 8000) << "2, and 3/4 of 8";
  EXPECT_EQ(shares.Get(b, *FindGpuModel(tree_, "H100")), 2000);
  EXPECT_EQ(shares.Get(a, kGpu), 10'000);
}

// --- the default queue
// ----------------------------------------------------------------------------

TEST_F(QueueRulesTest, DefaultQueueRunsAnythingWhileItIsAloneAndGivesWayLater) {
  EXPECT_FALSE(KeepDefaultQueue(tree_, "", false));
  EXPECT_TRUE(KeepDefaultQueue(tree_, "default-queue", false));
  EXPECT_FALSE(KeepDefaultQueue(tree_, "default-queue", false)) << "nothing new";
  const QueueId id = *tree_.Find("default-queue");
  ASSERT_TRUE(tree_.Usable(id));
  QueueLedger ledger(tree_);
  EXPECT_FALSE(CheckLimits(tree_, ledger, id, Amounts(1000, 1000, 8000), false))
      << "a Deployment is not preemptible; it must run";

  const QueueId team = Add("team", {6000, kUnlimited, kMicro});
  EXPECT_TRUE(KeepDefaultQueue(tree_, "default-queue", false));
  ledger.Rebuild(tree_);
  ledger.AddRequested(id, Gpus(8000));
  ledger.AddRequested(team, Gpus(6000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(8000));
  EXPECT_EQ(shares.Get(team, kGpu), 6000);
  EXPECT_EQ(shares.Get(id, kGpu), 2000);
  EXPECT_TRUE(CheckLimits(tree_, ledger, id, Gpus(1000), false));
  EXPECT_FALSE(CheckLimits(tree_, ledger, id, Gpus(1000), true));
}

TEST_F(QueueRulesTest, DefaultQueueOfTheUserIsLeftAlone) {
  const QueueId id = Add("default-queue", {0, 2000, 0});
  EXPECT_FALSE(KeepDefaultQueue(tree_, "default-queue", true));
  EXPECT_EQ(tree_.BoundsOf(id, kGpu).limit, 2000);
  tree_.Remove("default-queue");
  EXPECT_TRUE(KeepDefaultQueue(tree_, "default-queue", false));
  EXPECT_EQ(*tree_.Find("default-queue"), id) << "what ran in it stays charged to it";
  EXPECT_EQ(tree_.BoundsOf(id, kGpu).limit, kUnlimited);
}

// --- minimum runtimes
// -----------------------------------------------------------------------------

TEST_F(QueueRulesTest, MinRuntimeOptions) {
  EXPECT_EQ(*ParseReclaimResolveMethod("lca"), ReclaimResolveMethod::kLowestCommonAncestor);
  EXPECT_EQ(*ParseReclaimResolveMethod("queue"), ReclaimResolveMethod::kQueue);
  EXPECT_EQ(ParseReclaimResolveMethod("LCA").status().code(), absl::StatusCode::kInvalidArgument);
  const auto add = [this](const std::string& name, const std::string& parent,
                          std::optional<absl::Duration> reclaim,
                          std::optional<absl::Duration> preempt) {
    model::Queue queue = MakeQueue(name, parent);
    queue.reclaim_min_runtime = reclaim;
    queue.preempt_min_runtime = preempt;
    return tree_.Upsert(queue);
  };
  add("left", "", absl::Minutes(10), std::nullopt);
  add("right", "", std::nullopt, std::nullopt);
  add("team", "left", absl::Minutes(20), absl::Minutes(3));
  const QueueId a = add("a", "team", absl::Minutes(30), std::nullopt);
  const QueueId b = add("b", "team", absl::ZeroDuration(), absl::ZeroDuration());
  const QueueId other = add("other", "left", std::nullopt, std::nullopt);
  const QueueId c = add("c", "right", std::nullopt, std::nullopt);
  struct Case {
    QueueId reclaimer, victim;
    absl::Duration lca, queue;
  };
  const absl::Duration otherwise = absl::Hours(1);
  const Case cases[] = {
      {b, a, absl::Minutes(30), absl::Minutes(30)},        // siblings: the victim's leaf
      {a, b, absl::ZeroDuration(), absl::ZeroDuration()},  // zero is set, not absent
      {other, a, absl::Minutes(20), absl::Minutes(30)},    // below `left`: the side is `team`
      {c, a, absl::Minutes(10), absl::Minutes(30)},        // no common ancestor: the top
      {a, other, absl::Minutes(10), absl::Minutes(10)},    // inherited
      {a, c, otherwise, otherwise},
      {c, b, absl::Minutes(10), absl::ZeroDuration()},
  };
  MinRuntimeOptions options;
  EXPECT_EQ(options.reclaim_resolve_method, ReclaimResolveMethod::kLowestCommonAncestor);
  options.default_reclaim = otherwise;
  options.default_preempt = absl::Minutes(7);
  for (const Case& test : cases) {
    options.reclaim_resolve_method = ReclaimResolveMethod::kLowestCommonAncestor;
    EXPECT_EQ(ReclaimMinRuntime(tree_, options, test.reclaimer, test.victim), test.lca);
    options.reclaim_resolve_method = ReclaimResolveMethod::kQueue;
    EXPECT_EQ(ReclaimMinRuntime(tree_, options, test.reclaimer, test.victim), test.queue);
  }
  EXPECT_EQ(PreemptMinRuntime(tree_, options, a), absl::Minutes(3));
  EXPECT_EQ(PreemptMinRuntime(tree_, options, b), absl::ZeroDuration());
  EXPECT_EQ(PreemptMinRuntime(tree_, options, c), absl::Minutes(7));
}

}  // namespace
}  // namespace fairlead::queues
