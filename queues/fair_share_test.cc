#include "queues/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "queues/exact.h"
#include "queues/fair_share_oracle.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kUnlimited;

std::vector<LevelQueue> RandomLevel(Random& random, int64_t unit, bool history) {
  std::vector<LevelQueue> level(static_cast<size_t>(random.Between(1, 7)));
  for (size_t i = 0; i < level.size(); ++i) {
    LevelQueue& q = level[i];
    const auto amount = [&](int64_t most) {
      // Mostly whole units; sometimes fractions of them.
      return random.OneIn(4) ? random.Between(0, most * unit) : random.Between(0, most) * unit;
    };
    q.priority = static_cast<int32_t>(random.Between(1, 3));
    q.age_rank = static_cast<uint32_t>(i);
    q.quota = random.OneIn(12) ? kUnlimited : random.OneIn(2) ? 0 : amount(4);
    q.limit = random.OneIn(4) ? amount(12) : kUnlimited;
    q.weight_micro = random.Between(0, 4) * kMicro / 2;
    q.requested = amount(16);
    if (history) q.usage_nano = random.Between(0, 10) * kNano / 10;
  }
  return level;
}

TEST(DivideLevelTest, AgreesWithRationalOracle) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 20000; ++round) {
    const int64_t unit = random.OneIn(3) ? 1 : 1000;
    const bool history = random.OneIn(2);
    const int64_t k = history ? random.Between(0, 6) * kMicro / 2 : kMicro;
    std::vector<LevelQueue> level = RandomLevel(random, unit, history);
    const int64_t total =
        random.OneIn(4) ? random.Between(0, 40 * unit) : random.Between(0, 40) * unit;
    std::vector<OracleQueue> oracle;
    for (const LevelQueue& q : level) oracle.push_back({q, 0, 0, 0, false});
    const Fraction expected_left = OracleDivide(Fraction(total, unit), unit, k, oracle);
    const int64_t left = DivideLevel(total, unit, k, DivideMode::kFull, absl::MakeSpan(level));
    ASSERT_EQ(left, expected_left.TimesExactly(unit)) << "round " << round;
    for (size_t i = 0; i < level.size(); ++i) {
      ASSERT_EQ(level[i].fair_share, oracle[i].share.TimesExactly(unit))
          << "round " << round << ", queue " << i;
    }
  }
}

// --- properties ---------------------------------------------------------------------------------

int64_t Requestable(const LevelQueue& q) {
  return q.limit == kUnlimited ? q.requested : std::min(q.limit, q.requested);
}

int64_t QuotaShare(const LevelQueue& q, int64_t total) {
  return std::min(q.quota == kUnlimited ? total : q.quota, Requestable(q));
}

struct Divided {
  std::vector<LevelQueue> level;
  int64_t left;
};
Divided Divide(std::vector<LevelQueue> level, int64_t total, int64_t unit) {
  const int64_t left = DivideLevel(total, unit, kMicro, DivideMode::kFull, absl::MakeSpan(level));
  return {std::move(level), left};
}

class DivideProperties : public ::testing::Test {
 protected:
  void ForRandomLevels(const std::function<void(const std::vector<LevelQueue>&, int64_t total,
                                                int64_t unit)>& check) {
    SCOPED_TRACE(random_.Describe());
    for (int round = 0; round < 3000 && !HasFatalFailure(); ++round) {
      const int64_t unit = random_.OneIn(3) ? 1 : 1000;
      check(RandomLevel(random_, unit, false), random_.Between(0, 40) * unit, unit);
    }
  }
  Random random_;
};

TEST_F(DivideProperties, NothingIsMadeAndNothingIsWasted) {
  ForRandomLevels([](const std::vector<LevelQueue>& level, int64_t total, int64_t unit) {
    const Divided result = Divide(level, total, unit);
    int64_t surplus = total;
    for (const LevelQueue& q : level) surplus -= QuotaShare(q, total);
    surplus = std::max<int64_t>(0, surplus);
    int64_t over_quota = 0;
    bool more_is_wanted = false;
    for (const LevelQueue& q : result.level) {
      over_quota += q.fair_share - QuotaShare(q, total);
      more_is_wanted |= q.weight_micro > 0 && q.fair_share < Requestable(q);
    }
    ASSERT_EQ(over_quota + result.left, surplus);
    // A queue may stop short of a fractional request, but not while a whole unit is left.
    if (more_is_wanted) {
      ASSERT_LT(result.left, unit);
    }
  });
}

TEST_F(DivideProperties, NoQueueGetsMoreThanItCanUseRoundedUp) {
  ForRandomLevels([](const std::vector<LevelQueue>& level, int64_t total, int64_t unit) {
    for (const LevelQueue& q : Divide(level, total, unit).level) {
      ASSERT_GE(q.fair_share, QuotaShare(q, total));
      ASSERT_LT(q.fair_share, std::max(Requestable(q), QuotaShare(q, total)) + unit);
      if (q.fair_share % unit == 0 && Requestable(q) % unit == 0) {
        ASSERT_LE(q.fair_share, Requestable(q));
      }
      if (q.weight_micro == 0) {
        ASSERT_EQ(q.fair_share, QuotaShare(q, total));
      }
    }
  });
}

TEST_F(DivideProperties, EqualWeightsDifferByAtMostOneUnit) {
  ForRandomLevels([](const std::vector<LevelQueue>& level, int64_t total, int64_t unit) {
    const Divided result = Divide(level, total, unit);
    for (const LevelQueue& a : result.level) {
      if (a.fair_share >= Requestable(a)) continue;
      for (const LevelQueue& b : result.level) {
        if (a.priority != b.priority || a.weight_micro != b.weight_micro) continue;
        ASSERT_LE(b.fair_share - QuotaShare(b, total), a.fair_share - QuotaShare(a, total) + unit);
      }
    }
  });
}

TEST_F(DivideProperties, HigherPriorityIsServedFirst) {
  ForRandomLevels([](const std::vector<LevelQueue>& level, int64_t total, int64_t unit) {
    const Divided result = Divide(level, total, unit);
    for (const LevelQueue& a : result.level) {
      if (a.weight_micro == 0 || a.fair_share >= Requestable(a)) continue;
      // Queues of lower priority get at most the units into which the fractions of the higher ones
      // add up.
      for (const LevelQueue& b : result.level) {
        if (b.priority >= a.priority) continue;
        ASSERT_LT(b.fair_share - QuotaShare(b, total), static_cast<int64_t>(level.size()) * unit);
      }
    }
  });
}

TEST_F(DivideProperties, InputOrderDoesNotMatter) {
  ForRandomLevels([this](const std::vector<LevelQueue>& level, int64_t total, int64_t unit) {
    std::vector<LevelQueue> shuffled = level;
    std::shuffle(shuffled.begin(), shuffled.end(), random_.engine());
    const Divided a = Divide(level, total, unit);
    const Divided b = Divide(shuffled, total, unit);
    ASSERT_EQ(a.left, b.left);
    for (const LevelQueue& q : b.level) ASSERT_EQ(q.fair_share, a.level[q.age_rank].fair_share);
  });
}

// Whole units are given by largest remainder, which is monotonic only up to rounding: a larger
// total can move a unit from one queue to another. The bound is two units.
TEST_F(DivideProperties, MoreToDivideOrMoreWeightGivesNoLessUpToRounding) {
  ForRandomLevels([this](std::vector<LevelQueue> level, int64_t total, int64_t unit) {
    // An unlimited quota grows with the total, at the cost of the other queues, by intent.
    for (LevelQueue& q : level) {
      q.quota = std::max<int64_t>(0, q.quota);
      q.priority = 1;
    }
    const Divided before = Divide(level, total, unit);
    const Divided more = Divide(level, total + random_.Between(1, 5) * unit, unit);
    for (size_t i = 0; i < level.size(); ++i) {
      ASSERT_GE(more.level[i].fair_share, before.level[i].fair_share - 2 * unit);
    }
    const auto chosen =
        static_cast<size_t>(random_.Between(0, static_cast<int64_t>(level.size()) - 1));
    level[chosen].weight_micro += random_.Between(1, 4) * kMicro;
    const Divided heavier = Divide(level, total, unit);
    ASSERT_GE(heavier.level[chosen].fair_share, before.level[chosen].fair_share - 2 * unit);
  });
}

TEST(DivideLevelTest, HistoryMovesSharesAndKTurnsItOff) {
  // n = 1/2 each. usage 1/2 and 0, k = 1: w = 1/2 and 1, so 12 GPUs go 4 : 8.
  std::vector<LevelQueue> level(2);
  for (uint32_t i = 0; i < 2; ++i) {
    level[i] = {100, i, 0, kUnlimited, kMicro, 100'000, 0, 0};
  }
  level[0].usage_nano = kNano / 2;
  const auto run = [&](int64_t k) {
    DivideLevel(12'000, 1000, k, DivideMode::kFull, absl::MakeSpan(level));
    return std::pair(level[0].fair_share, level[1].fair_share);
  };
  EXPECT_EQ(run(kMicro), std::pair(int64_t{4000}, int64_t{8000}));
  EXPECT_EQ(run(0), std::pair(int64_t{6000}, int64_t{6000}));
  EXPECT_EQ(run(-kMicro), std::pair(int64_t{6000}, int64_t{6000}));
  level[0].usage_nano = kNano;  // k large: a queue that used everything gets only its quota
  EXPECT_EQ(run(100 * kMicro), std::pair(int64_t{0}, int64_t{12'000}));
}

TEST(DivideLevelTest, HugeNumbersDoNotOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  std::vector<LevelQueue> level(3);
  for (uint32_t i = 0; i < 3; ++i) level[i] = {100, i, 0, kUnlimited, most - i, most, kNano, 0};
  const int64_t left = DivideLevel(most, 1, most, DivideMode::kFull, absl::MakeSpan(level));
  Int128 sum = left;
  for (const LevelQueue& q : level) sum += q.fair_share;
  EXPECT_TRUE(sum == most);
  level[0].quota = level[1].quota = level[2].quota = most;
  EXPECT_EQ(DivideLevel(most, 1, kMicro, DivideMode::kFull, absl::MakeSpan(level)), 0);
  EXPECT_EQ(level[2].fair_share, most);
}

TEST(ExactTest, MultiplyDivideAgreesOnItsThreePaths) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int i = 0; i < 5000; ++i) {
    const auto amount = static_cast<uint64_t>(random.engine()()) >> random.Between(0, 63);
    const auto whole = (static_cast<uint64_t>(random.engine()()) >> random.Between(0, 62)) | 1;
    const uint64_t part = static_cast<uint64_t>(random.engine()()) % (whole + (whole != ~0ULL));
    const Quotient got = MultiplyDivide(amount, part, whole);
    const Uint128 product = static_cast<Uint128>(amount) * part;
    ASSERT_TRUE(static_cast<Uint128>(got.floor) * whole + got.rest == product && got.rest < whole);
    // The fraction scaled beyond 64 bits takes the slow path.
    const int shift = 61;
    const Quotient scaled = MultiplyDivide(amount, static_cast<Uint128>(part) << shift,
                                           static_cast<Uint128>(whole) << shift);
    ASSERT_EQ(scaled.floor, got.floor);
    ASSERT_TRUE(scaled.rest == got.rest << shift);
  }
}

TEST(AllocatableShareTest, FollowsTheRule) {
  EXPECT_EQ(AllocatableShare({kUnlimited, 5, 0}, 2), 5);
  EXPECT_EQ(AllocatableShare({kUnlimited, kUnlimited, 0}, 2), kUnlimited);
  EXPECT_EQ(AllocatableShare({3, kUnlimited, 0}, 2), 3);
  EXPECT_EQ(AllocatableShare({3, kUnlimited, 0}, 7), 7);
  EXPECT_EQ(AllocatableShare({3, 5, 0}, 7), 5);
  EXPECT_EQ(AllocatableShare({3, 1, 0}, 0), 1);
}

}  // namespace
}  // namespace fairlead::queues
