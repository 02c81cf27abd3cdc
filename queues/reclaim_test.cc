#include "queues/reclaim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
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
  EXPECT_EQ(CanReclaim(Context(), {a_, Gpus(1001), false}).refusal, ReclaimRefusal::kOverQuota);
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
  // A gang is one piece: it may go below the share if its first GPU is above.
  EXPECT_TRUE(Reclaim(reclaimer, {{c_, {Gpus(6000)}}}).allowed());
}

TEST_F(ReclaimTest, QuotaIsARightAgainstOverQuotaShares) {
  Share(left_, 4);
  Share(a_, 2);
  Share(right_, 8);
  Share(c_, 8);
  ledger_.Charge(c_, Gpus(8000), true);  // within its fair share, over its quota
  EXPECT_FALSE(MaintainFairShare(Context(), right_, ledger_.allocated(right_), Gpus(1)));
  EXPECT_TRUE(MayEverReclaimFrom(Context(), {a_, Gpus(2000), true}, c_));
  EXPECT_TRUE(Reclaim({a_, Gpus(2000), true}, {{c_, {Gpus(2000)}}}).allowed());
  // The right ends beyond the reclaimer's own quota.
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
  // A sibling without a share does not count.
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

// Otherwise two queues that are above their shares of GPUs take turns at pods without GPUs.
TEST_F(ReclaimTest, AnExcessOfWhatNeitherRequestNorPieceHasIsNoRight) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 4);
  Share(c_, 4);
  ledger_.Charge(c_, Amounts(2000, 0, 6000), true);
  const model::Resources cpu = Amounts(1000, 0, 0);
  EXPECT_EQ(Reclaim({a_, cpu, true}, {{c_, {cpu}}}).refusal, ReclaimRefusal::kGivesNoExcess);
  EXPECT_EQ(Reclaim({a_, cpu, true}, {{c_, {Gpus(2000), cpu}}}).refusal,
            ReclaimRefusal::kVictimWithinItsShare)
      << "no piece of it has a right against it any more";
  EXPECT_TRUE(MayEverReclaimFrom(Context(), {a_, cpu, true}, c_));
  EXPECT_TRUE(Reclaim({a_, cpu, true}, {{c_, {Amounts(1000, 0, 1000)}}}).allowed());
  EXPECT_TRUE(Reclaim({a_, Amounts(1000, 0, 1000), true}, {{c_, {cpu}}}).allowed());
}

// Otherwise a pod without GPUs evicts a GPU pod of a queue within its share, and is evicted by that
// queue when idle GPUs have brought its own queue above its share.
TEST_F(ReclaimTest, QuotaIsARightOnlyForWhatIsRequested) {
  Share(left_, 4);
  Share(a_, 4);
  Share(right_, 8);
  Share(c_, 8);
  ledger_.Charge(c_, Amounts(2000, 0, 6000), true);  // within its fair share, over its quota
  const model::Resources cpu = Amounts(1000, 0, 0);
  const model::Resources both = Amounts(1000, 0, 1000);
  EXPECT_FALSE(MayEverReclaimFrom(Context(), {a_, cpu, true}, c_));
  EXPECT_EQ(Reclaim({a_, cpu, true}, {{c_, {both}}}).refusal,
            ReclaimRefusal::kVictimWithinItsShare);
  EXPECT_TRUE(MayEverReclaimFrom(Context(), {a_, both, true}, c_));
  EXPECT_TRUE(Reclaim({a_, both, true}, {{c_, {cpu}}}).allowed());
  Share(right_, 4);
  Share(c_, 4);
  EXPECT_TRUE(Reclaim({a_, cpu, true}, {{c_, {both}}}).allowed()) << "it gives back an excess";
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
  EXPECT_EQ(answer.refusal, ReclaimRefusal::kOverQuota);
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

// --- rounding to the nearest gang ---------------------------------------------------------------

// Shares: left 8 (a 4, b 4), right 8 (c 8).
class RoundingTest : public ReclaimTest {
 protected:
  void SetUp() override {
    ReclaimTest::SetUp();
    for (const QueueId department : {left_, right_, c_}) Share(department, 8);
    for (const QueueId team : {a_, b_}) Share(team, 4);
  }
  void Hold(QueueId leaf, int64_t gpus) { ledger_.Charge(leaf, Gpus(gpus * 1000), true); }
  ReclaimContext Rounding() { return {tree_, ledger_, shares_, kMicro, true}; }
  ReclaimAnswer Round(const Reclaimer& reclaimer, const std::vector<VictimQueue>& victims) {
    return Reclaimable(Rounding(), reclaimer, victims);
  }
  // A gang of so many GPUs of a.
  Reclaimer Gang(int64_t gpus) { return {a_, Gpus(gpus * 1000), true}; }
  static std::vector<VictimQueue> From(QueueId leaf, const std::vector<int64_t>& gpus) {
    VictimQueue victim{leaf, {}};
    for (const int64_t gang : gpus) victim.pieces.push_back(Gpus(gang * 1000));
    return {victim};
  }
};

TEST_F(RoundingTest, OffItIsRefusedAsInKai) {
  Hold(a_, 3);
  EXPECT_EQ(CanReclaim(Context(), Gang(2)).refusal, ReclaimRefusal::kOverFairShare);
  EXPECT_TRUE(CanReclaim(Rounding(), Gang(2)).allowed());
}

TEST_F(RoundingTest, AQueueThatHasItsShareGetsNoMore) {
  Hold(a_, 4);
  EXPECT_EQ(CanReclaim(Rounding(), Gang(1)).refusal, ReclaimRefusal::kOverFairShare);
  Hold(a_, 1);
  EXPECT_EQ(CanReclaim(Rounding(), Gang(1)).refusal, ReclaimRefusal::kOverFairShare);
  Share(b_, 0);
  EXPECT_FALSE(CanReclaim(Rounding(), {b_, Gpus(1000), true}).allowed()) << "no share, no rounding";
}

TEST_F(RoundingTest, EveryResourceThatIsAskedForMustBeLacking) {
  shares_.Set(a_, model::kCpu, 3000);
  Hold(a_, 3);
  ledger_.Charge(a_, Amounts(3000, 0, 0), true);
  const Reclaimer with_cpu{a_, Amounts(1000, 0, 2000), true};
  EXPECT_EQ(CanReclaim(Rounding(), with_cpu).resource, model::kCpu) << "it has all its CPU";
  EXPECT_TRUE(CanReclaim(Rounding(), Gang(2)).allowed());
  shares_.Set(a_, model::kCpu, 3500);
  EXPECT_TRUE(CanReclaim(Rounding(), with_cpu).allowed()) << "rounded in both";
}

TEST_F(RoundingTest, NonPreemptibleStaysWithinQuota) {
  Share(a_, 1);
  EXPECT_TRUE(CanReclaim(Rounding(), {a_, Gpus(2000), false}).allowed());
  EXPECT_EQ(CanReclaim(Rounding(), {a_, Gpus(2001), false}).refusal, ReclaimRefusal::kOverQuota);
}

TEST_F(RoundingTest, GiversGiveSurplusOnly) {
  struct Case {
    const char* why;
    int64_t a, b, c;  // what they hold
    int64_t gang;     // what a asks for
    bool from_b;      // else from c
    std::vector<int64_t> pieces;
    bool allowed;
  };
  const std::vector<Case> cases = {
      // a is one short, and asks for two or four.
      {"b has its share", 3, 4, 9, 2, true, {2}, false},
      {"b would lack as much as a lacked", 3, 5, 8, 2, true, {2}, false},
      {"b would lack more than a lacked", 3, 5, 8, 4, true, {4}, false},
      {"no right to the second piece", 3, 5, 8, 2, true, {1, 1}, false},
      {"right has its share", 3, 4, 8, 2, false, {2}, false},
      {"right would lack what left gains", 3, 4, 9, 2, false, {2}, false},
      {"left has its share: it would be as saturated as right", 3, 5, 10, 2, false, {2}, false},
      {"b keeps its share", 3, 6, 7, 2, true, {2}, true},
      {"the piece is larger than the step, and b keeps its share", 3, 8, 5, 2, true, {4}, true},
      {"the piece is larger than the step, and b does not", 3, 7, 6, 2, true, {4}, false},
      {"part of the room was free", 3, 5, 7, 4, true, {1}, true},
      {"right keeps its share", 3, 4, 10, 2, false, {2}, true},
      {"left has its share, and right is more saturated still", 3, 5, 16, 2, false, {2}, true},
      // a lacks three.
      {"b comes to lack less than a lacked", 1, 6, 9, 4, true, {4}, true},
      {"likewise, but it gives more than a takes", 1, 7, 8, 4, true, {5}, false},
      {"right comes to lack less than left gains", 1, 3, 10, 4, false, {4}, true},
      {"right comes to lack as much as left gains", 1, 4, 9, 4, false, {4}, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    ledger_ = QueueLedger(tree_);
    Hold(a_, c.a);
    Hold(b_, c.b);
    Hold(c_, c.c);
    ASSERT_TRUE(CanReclaim(Rounding(), Gang(c.gang)).allowed());
    EXPECT_FALSE(CanReclaim(Context(), Gang(c.gang)).allowed()) << "a rounding";
    const ReclaimAnswer answer = Round(Gang(c.gang), From(c.from_b ? b_ : c_, c.pieces));
    EXPECT_EQ(answer.allowed(), c.allowed) << static_cast<int>(answer.refusal);
  }
}

TEST_F(RoundingTest, TheVictimsLeafMustBeOverItsShareToo) {
  const QueueId d = Add("d", "right", 0);
  shares_ = FairShares(tree_);
  SetUp();
  Share(c_, 4);
  Share(d, 4);
  Hold(a_, 3);
  Hold(b_, 4);
  Hold(c_, 4);
  Hold(d, 7);
  const ReclaimAnswer from_c = Round(Gang(2), From(c_, {2}));
  EXPECT_EQ(from_c.refusal, ReclaimRefusal::kVictimWithinItsShare);
  EXPECT_EQ(from_c.queue, c_) << "right has three too much, but it is d that has them";
  EXPECT_EQ(from_c.resource, kGpu);
  EXPECT_TRUE(Round(Gang(2), From(d, {2})).allowed());
  EXPECT_TRUE(Round(Gang(2), From(d, {1, 1})).allowed());
}

TEST_F(RoundingTest, AQueueAboveIsRoundedWhereItCompetes) {
  // a is within its share with the step, left is one short and would be one over.
  Share(a_, 6);
  Hold(a_, 3);
  Hold(b_, 4);
  Hold(c_, 10);
  const std::vector<VictimQueue> victims = From(c_, {2});
  EXPECT_TRUE(CanReclaim(Context(), Gang(2)).allowed());
  EXPECT_EQ(Reclaimable(Context(), Gang(2), victims).refusal, ReclaimRefusal::kMoreSaturated);
  EXPECT_TRUE(Round(Gang(2), victims).allowed());
  ledger_.Release(c_, Gpus(1000), true);
  EXPECT_EQ(Round(Gang(2), victims).refusal, ReclaimRefusal::kVictimWithinItsShare);
}

TEST_F(RoundingTest, ResourcesThatNoQueueLacksDoNotBlock) {
  // CPU is plentiful: each queue's share is what it requests, and its allocation is far below.
  Hold(a_, 3);
  Hold(b_, 6);
  const Reclaimer gang{a_, Amounts(8000, 100, 2000), true};
  ASSERT_TRUE(CanReclaim(Rounding(), gang).allowed());
  EXPECT_TRUE(Round(gang, {{b_, {Amounts(8000, 100, 2000)}}}).allowed());
  // If a is rounded in CPU too, b must have CPU to give.
  shares_.Set(a_, model::kCpu, 4000);
  ASSERT_TRUE(CanReclaim(Rounding(), gang).allowed());
  const ReclaimAnswer answer = Round(gang, {{b_, {Amounts(8000, 100, 2000)}}});
  EXPECT_EQ(answer.refusal, ReclaimRefusal::kVictimWithinItsShare);
  EXPECT_EQ(answer.resource, model::kCpu);
}

// The sum of all shortages, in milli-GPUs.
int64_t LackOf(const QueueLedger& ledger, const FairShares& shares,
               absl::Span<const QueueId> queues) {
  int64_t lack = 0;
  for (const QueueId queue : queues) {
    lack += std::max<int64_t>(0, shares.Get(queue, kGpu) - ledger.allocated(queue, kGpu));
  }
  return lack;
}
// The sum of squared distances to the shares, in GPUs.
int64_t SquaredDistance(const QueueLedger& ledger, const FairShares& shares,
                        absl::Span<const QueueId> queues) {
  int64_t sum = 0;
  for (const QueueId queue : queues) {
    const int64_t gpus = (shares.Get(queue, kGpu) - ledger.allocated(queue, kGpu)) / 1000;
    sum += gpus * gpus;
  }
  return sum;
}

// Siblings with random gang sizes and random allocations: every permitted rounding lowers the total
// lack. If the amount taken equals the amount given, it also lowers the sum of squared distances.
TEST(RoundingProperty, EveryRoundingLowersTheLackOfTheLevel) {
  Random random;
  SCOPED_TRACE(random.Describe());
  int64_t rounded = 0, put_below = 0;
  for (int round = 0; round < 20'000; ++round) {
    model::ResourceNames names;
    QueueTree tree(names);
    std::vector<QueueId> queues;
    for (int q = 0; q < 4; ++q) {
      model::Queue queue = MakeQueue(absl::StrCat("q", q));
      queue.gpu = {0, kUnlimited, kMicro};
      queues.push_back(tree.Upsert(queue));
    }
    QueueLedger ledger(tree);
    FairShares shares(tree);
    for (const QueueId queue : queues) {
      shares.Set(queue, kGpu, random.Between(0, 12) * 1000);
      ledger.Charge(queue, Gpus(random.Between(0, 16) * 1000), true);
    }
    const Reclaimer reclaimer{queues[0], Gpus(random.Between(1, 8) * 1000), true};
    std::vector<VictimQueue> victims;
    QueueLedger after = ledger;
    for (size_t q = 1; q < queues.size(); ++q) {
      if (random.OneIn(2)) continue;
      const int64_t gang = random.Between(1, 8) * 1000;
      const int64_t pieces =
          std::min(random.Between(1, 3), after.allocated(queues[q], kGpu) / gang);
      if (pieces == 0) continue;
      victims.push_back({queues[q], {}});
      for (int64_t i = 0; i < pieces; ++i) {
        victims.back().pieces.push_back(Gpus(gang));
        after.Release(queues[q], Gpus(gang), true);
      }
    }
    int64_t freed = 0;
    for (const QueueId q : queues) freed += ledger.allocated(q, kGpu) - after.allocated(q, kGpu);
    after.Charge(queues[0], reclaimer.request, true);
    const ReclaimContext context{tree, ledger, shares, kMicro, true};
    if (after.allocated(queues[0], kGpu) <= shares.Get(queues[0], kGpu) ||
        !CanReclaim(context, reclaimer).allowed() ||
        !Reclaimable(context, reclaimer, victims).allowed()) {
      continue;
    }
    ++rounded;
    EXPECT_LT(LackOf(after, shares, queues), LackOf(ledger, shares, queues)) << "round " << round;
    if (freed == reclaimer.request[kGpu]) {
      EXPECT_LT(SquaredDistance(after, shares, queues), SquaredDistance(ledger, shares, queues));
    }
    for (const VictimQueue& victim : victims) {
      put_below += after.allocated(victim.leaf, kGpu) < shares.Get(victim.leaf, kGpu);
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(rounded, 100) << "or nothing was tested";
  EXPECT_GT(put_below, 10);
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

// Piece by piece a trial says what is said of all pieces together, whatever was refused before.
TEST(ReclaimTrialTest, SaysWhatIsSaidOfAllPieces) {
  int64_t allowed = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    model::ResourceNames names;
    QueueTree tree(names);
    std::vector<QueueId> leaves;
    for (int64_t d = 0; d < 2 + below(2); ++d) {
      const std::string parent = absl::StrCat("d", d);
      const auto add = [&](const std::string& name, const std::string& above) {
        model::Queue queue = MakeQueue(name, above);
        queue.gpu = {below(3) == 0 ? kUnlimited : 1000 * below(9), kUnlimited, 1};
        queue.cpu = {below(2) == 0 ? kUnlimited : 1000 * below(9), kUnlimited, 1};
        return tree.Upsert(queue);
      };
      add(parent, "");
      for (int64_t l = 0; l < 1 + below(3); ++l) {
        leaves.push_back(add(absl::StrCat(parent, "-", l), parent));
      }
    }
    QueueLedger ledger(tree);
    ledger.Rebuild(tree);
    FairShares shares(tree);
    for (QueueId q = 0; q < tree.size(); ++q) {
      shares.Set(q, kGpu, 1000 * below(9));
      shares.Set(q, model::kCpu, 1000 * below(9));
      shares.Set(q, model::kMemory, 1'000'000);
    }
    const auto amounts = [&] {
      model::Resources some;
      if (below(3) > 0) some.Set(kGpu, 500 * (1 + below(3)));
      if (below(2) > 0) some.Set(model::kCpu, 500 * (1 + below(3)));
      return some;
    };
    for (const QueueId leaf : leaves) {
      for (int64_t i = 0; i < below(8); ++i) ledger.Charge(leaf, amounts(), true);
    }
    const ReclaimContext context{tree, ledger, shares, kMicro + 250'000 * below(3), below(4) == 0};
    const Reclaimer reclaimer{leaves[0], amounts(), below(3) > 0};
    ReclaimTrial trial(context, reclaimer);
    std::vector<VictimQueue> victims;
    for (int i = 0; i < 30; ++i) {
      const QueueId leaf = leaves[static_cast<size_t>(1 + below(leaves.size() - 1))];
      const model::Resources piece = amounts();
      std::vector<VictimQueue> with = victims;
      auto at = std::find_if(with.begin(), with.end(),
                             [&](const VictimQueue& victim) { return victim.leaf == leaf; });
      if (at == with.end()) at = with.insert(with.end(), {leaf, {}});
      at->pieces.push_back(piece);
      const ReclaimAnswer expected = Reclaimable(context, reclaimer, with);
      const ReclaimAnswer answer = trial.Add(leaf, piece);
      ASSERT_EQ(answer.refusal, expected.refusal) << "piece " << i;
      ASSERT_EQ(answer.queue, expected.queue) << "piece " << i;
      ASSERT_EQ(answer.resource, expected.resource) << "piece " << i;
      ++(answer.allowed() ? allowed : refused);
      if (answer.allowed()) victims = std::move(with);
    }
  }
  EXPECT_GT(allowed, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace fairlead::queues
