#include "queues/reclaim.h"

#include <gtest/gtest.h>

#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;

// Two departments; left has a and b, right has c. Quotas in GPUs are set by each test.
class ReclaimTest : public ::testing::Test {
 protected:
  QueueId Add(const std::string& name, const std::string& parent, int64_t quota) {
    model::Queue queue = MakeQueue(name, parent);
    queue.gpu = {quota, kUnlimited, 0};
    return tree_.Upsert(queue);
  }
  void SetUp() override {
    ledger_.Rebuild(tree_);
    shares_ = FairShares(tree_);
    for (QueueId q = 0; q < tree_.size(); ++q) {
      shares_.Set(q, model::kCpu, 1'000'000);
      shares_.Set(q, model::kMemory, 1'000'000);
    }
  }
  void Share(QueueId queue, int64_t gpus) { shares_.Set(queue, kGpu, gpus * 1000); }
  ReclaimContext Context(int64_t multiplier_micro = kMicro) {
    return {tree_, ledger_, shares_, multiplier_micro};
  }
  ReclaimAnswer Reclaim(const Reclaimer& reclaimer, std::vector<VictimQueue> victims,
                        int64_t multiplier_micro = kMicro) {
    return Reclaimable(Context(multiplier_micro), reclaimer, victims);
  }

  model::ResourceNames names_;
  QueueTree tree_{names_};
  QueueId left_ = Add("left", "", 4000);
  QueueId right_ = Add("right", "", 4000);
  QueueId a_ = Add("a", "left", 2000);
  QueueId b_ = Add("b", "left", 2000);
  QueueId c_ = Add("c", "right", 4000);
  QueueLedger ledger_{tree_};
  FairShares shares_;
};

TEST_F(ReclaimTest, PreCheckNamesTheResource) {
  Share(a_, 2);
  ledger_.Charge(a_, Gpus(1000), false);
  EXPECT_TRUE(CanReclaim(Context(), {a_, Gpus(1000), true}).allowed());
  const ReclaimAnswer over = CanReclaim(Context(), {a_, Gpus(1001), true});
  EXPECT_EQ(over.refusal, ReclaimRefusal::kOverFairShare);
  EXPECT_EQ(over.resource, kGpu);
  Share(a_, 9);
  EXPECT_TRUE(CanReclaim(Context(), {a_, Gpus(1001), true}).allowed());
  EXPECT_EQ(CanReclaim(Context(), {a_, Gpus(1001), false}).refusal,
            ReclaimRefusal::kNonPreemptibleQuota);
}

TEST_F(ReclaimTest, EachPieceIsTestedAgainstWhatIsLeft) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 4);
  Share(c_, 4);
  ledger_.Charge(c_, Gpus(6000), true);
  const Reclaimer reclaimer{a_, Gpus(2000), true};
  EXPECT_TRUE(Reclaim(reclaimer, {{c_, {Gpus(1000), Gpus(1000)}}}).allowed());
  const ReclaimAnswer third = Reclaim(reclaimer, {{c_, {Gpus(1000), Gpus(1000), Gpus(1000)}}});
  EXPECT_EQ(third.refusal, ReclaimRefusal::kVictimWithinItsShare);
  EXPECT_EQ(third.queue, right_) << "where the paths diverge";
  // A gang is one piece: it may reach below the share if its first GPU lies above.
  EXPECT_TRUE(Reclaim(reclaimer, {{c_, {Gpus(6000)}}}).allowed());
}

TEST_F(ReclaimTest, QuotaIsARightAgainstOverQuotaShares) {
  Share(left_, 4);
  Share(a_, 2);
  Share(right_, 8);
  Share(c_, 8);
  ledger_.Charge(c_, Gpus(8000), true);  // within its fair share, over its quota
  EXPECT_FALSE(MaintainFairShare(Context(), right_, ledger_.allocated(right_)));
  EXPECT_TRUE(MayEverReclaimFrom(Context(), {a_, Gpus(2000), true}, c_));
  EXPECT_TRUE(Reclaim({a_, Gpus(2000), true}, {{c_, {Gpus(2000)}}}).allowed());
  // Beyond the reclaimer's own quota the right ends.
  EXPECT_FALSE(MayEverReclaimFrom(Context(), {a_, Gpus(4001), true}, c_));
  EXPECT_EQ(Reclaim({a_, Gpus(4001), true}, {{c_, {Gpus(4001)}}}).refusal,
            ReclaimRefusal::kVictimWithinItsShare);
}

TEST_F(ReclaimTest, SaturationIsStrictPerLevelAndScaledByTheMultiplier) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 4);
  Share(c_, 4);
  ledger_.Charge(a_, Gpus(4000), true);
  ledger_.Charge(c_, Gpus(7000), true);
  // Afterwards 5/4 against 6/4.
  EXPECT_TRUE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}).allowed());
  // 5.5/4 against 5.5/4: equal refuses.
  const ReclaimAnswer equal = Reclaim({a_, Gpus(1500), true}, {{c_, {Gpus(1500)}}});
  EXPECT_EQ(equal.refusal, ReclaimRefusal::kMoreSaturated);
  EXPECT_EQ(equal.queue, left_) << "a itself has no sibling that gives";
  // 5/4 * 1.2 = 6/4.
  EXPECT_FALSE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}, 1'200'000).allowed());
  EXPECT_TRUE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}, 1'199'999).allowed());
  EXPECT_TRUE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}, 0).allowed()) << "at least 1";
  // A sibling without a share has no say.
  Share(right_, 0);
  EXPECT_TRUE(Reclaim({a_, Gpus(1500), true}, {{c_, {Gpus(1500)}}}).allowed());
}

TEST_F(ReclaimTest, UninvolvedResourcesAndQueuesDoNotBlock) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 4);
  Share(c_, 4);
  ledger_.Charge(a_, Amounts(2'000'000, 0, 0), true);  // twice its CPU share
  ledger_.Charge(b_, Gpus(1000), true);
  ledger_.Charge(c_, Gpus(6000), true);
  EXPECT_TRUE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}).allowed());
  EXPECT_EQ(Reclaim({a_, Amounts(1, 0, 1000), true}, {{c_, {Gpus(1000)}}}).refusal,
            ReclaimRefusal::kMoreSaturated);
}

TEST_F(ReclaimTest, NonPreemptibleStaysWithinQuotaAtEveryAncestor) {
  Share(left_, 8);
  Share(a_, 8);
  Share(right_, 1);
  Share(c_, 1);
  ledger_.Charge(b_, Gpus(4000), false);  // all of left's quota
  ledger_.Charge(c_, Gpus(6000), true);
  EXPECT_TRUE(Reclaim({a_, Gpus(1000), true}, {{c_, {Gpus(1000)}}}).allowed());
  const ReclaimAnswer answer = Reclaim({a_, Gpus(1000), false}, {{c_, {Gpus(1000)}}});
  EXPECT_EQ(answer.refusal, ReclaimRefusal::kNonPreemptibleQuota);
  EXPECT_EQ(answer.queue, left_);
}

TEST_F(ReclaimTest, DecidesOnTheLedgerItIsGiven) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 4);
  Share(c_, 4);
  ledger_.Charge(c_, Gpus(5000), true);
  const QueueLedger at_start = ledger_;
  ledger_.Release(c_, Gpus(1000), true);  // the simulation evicts
  const Reclaimer reclaimer{a_, Gpus(1000), true};
  EXPECT_FALSE(Reclaim(reclaimer, {{c_, {Gpus(1000)}}}).allowed());
  const std::vector<VictimQueue> victims = {{c_, {Gpus(1000)}}};
  EXPECT_TRUE(Reclaimable({tree_, at_start, shares_, kMicro}, reclaimer, victims).allowed());
}

TEST_F(ReclaimTest, ExtraResourcesCountWhereTheyAreAsked) {
  model::Queue c = tree_.Spec(c_);
  c.other = {{"example.com/licence", {1, kUnlimited, 0}}};
  tree_.Upsert(c);
  const model::ResourceIndex licence = *names_.Find("example.com/licence");
  SetUp();
  for (const QueueId q : {a_, left_, c_, right_}) Share(q, 4);
  shares_.Set(a_, licence, 1);
  model::Resources two;
  two.Set(licence, 2);
  EXPECT_EQ(CanReclaim(Context(), {a_, two, true}).resource, licence);
  ledger_.Charge(a_, two, true);
  EXPECT_TRUE(CanReclaim(Context(), {a_, Gpus(1000), true}).allowed());
}

// --- minimum runtimes ---------------------------------------------------------------------------

TEST_F(ReclaimTest, MinRuntimesAreFoundUpwards) {
  const absl::Duration otherwise = absl::Seconds(7);
  const auto set = [this](QueueId id, std::optional<absl::Duration> preempt,
                          std::optional<absl::Duration> reclaim) {
    model::Queue queue = tree_.Spec(id);
    queue.preempt_min_runtime = preempt;
    queue.reclaim_min_runtime = reclaim;
    tree_.Upsert(queue);
  };
  const auto by_lca = [&](QueueId reclaimer, QueueId victim) {
    return ReclaimMinRuntime(tree_, ReclaimResolveMethod::kLowestCommonAncestor, reclaimer, victim,
                             otherwise);
  };
  const auto by_queue = [&](QueueId reclaimer, QueueId victim) {
    return ReclaimMinRuntime(tree_, ReclaimResolveMethod::kQueue, reclaimer, victim, otherwise);
  };
  EXPECT_EQ(PreemptMinRuntime(tree_, a_, otherwise), otherwise);
  EXPECT_EQ(by_lca(c_, a_), otherwise);

  set(left_, absl::Minutes(10), absl::Minutes(20));
  set(a_, absl::Minutes(1), absl::Minutes(2));
  EXPECT_EQ(PreemptMinRuntime(tree_, a_, otherwise), absl::Minutes(1));
  EXPECT_EQ(PreemptMinRuntime(tree_, b_, otherwise), absl::Minutes(10));
  EXPECT_EQ(by_lca(c_, a_), absl::Minutes(20)) << "different tops: the victim's top queue";
  EXPECT_EQ(by_lca(b_, a_), absl::Minutes(2)) << "below the common ancestor";
  EXPECT_EQ(by_lca(a_, b_), absl::Minutes(20)) << "then up";
  EXPECT_EQ(by_queue(c_, a_), absl::Minutes(2));
  EXPECT_EQ(by_queue(a_, c_), otherwise);
  set(left_, std::nullopt, std::nullopt);
  EXPECT_EQ(by_lca(c_, a_), otherwise) << "the leaf's own value does not count across tops";
}

TEST(MinRuntimeTest, ProtectionEndsExactlyAtTheMinimum) {
  const absl::Time start = Age(0);
  EXPECT_TRUE(IsProtected(start + absl::Seconds(59), start, absl::Minutes(1)));
  EXPECT_FALSE(IsProtected(start + absl::Minutes(1), start, absl::Minutes(1)));
  EXPECT_FALSE(IsProtected(start, start, absl::ZeroDuration()));
  EXPECT_FALSE(IsProtected(start, absl::InfinitePast(), absl::Hours(1)));
}

}  // namespace
}  // namespace fairlead::queues
