#include "queues/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "queues/exact.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;

// --- an oracle: the rules of fair_share.h in fractions of whole units, as they are written -------

class Fraction {
 public:
  Fraction(int64_t value = 0) : num_(value) {}  // NOLINT: numbers are fractions
  Fraction(Int128 num, Int128 den) : num_(num), den_(den) {
    Int128 a = num < 0 ? -num : num;
    Int128 b = den;
    while (b != 0) {
      const Int128 rest = a % b;
      a = b;
      b = rest;
    }
    num_ /= a;
    den_ /= a;
  }
  friend Fraction operator+(Fraction a, Fraction b) {
    return {a.num_ * b.den_ + b.num_ * a.den_, a.den_ * b.den_};
  }
  friend Fraction operator-(Fraction a, Fraction b) {
    return {a.num_ * b.den_ - b.num_ * a.den_, a.den_ * b.den_};
  }
  friend Fraction operator*(Fraction a, Fraction b) { return {a.num_ * b.num_, a.den_ * b.den_}; }
  friend Fraction operator/(Fraction a, Fraction b) {
    return b.num_ > 0 ? Fraction(a.num_ * b.den_, a.den_ * b.num_)
                      : Fraction(-a.num_ * b.den_, a.den_ * -b.num_);
  }
  friend bool operator<(Fraction a, Fraction b) { return a.num_ * b.den_ < b.num_ * a.den_; }
  friend bool operator==(Fraction a, Fraction b) { return !(a < b) && !(b < a); }
  friend bool operator<=(Fraction a, Fraction b) { return !(b < a); }
  [[nodiscard]] Fraction Floor() const { return Fraction(num_ / den_, 1); }  // not negative
  [[nodiscard]] int64_t TimesExactly(int64_t unit) const {
    EXPECT_EQ(static_cast<int64_t>(num_ * unit % den_), 0);
    return static_cast<int64_t>(num_ * unit / den_);
  }

 private:
  Int128 num_ = 0;
  Int128 den_ = 1;
};

struct OracleQueue {
  LevelQueue in;
  Fraction share, want, remainder;  // in units
  bool remembered = false;
};

// Returns what is left.
Fraction OracleDivide(Fraction total, int64_t unit, int64_t k_micro,
                      std::vector<OracleQueue>& queues) {
  const auto min = [](Fraction a, Fraction b) { return a < b ? a : b; };
  Fraction left = total;
  std::map<int32_t, std::vector<OracleQueue*>, std::greater<>> bands;
  for (OracleQueue& q : queues) {
    Fraction requestable = Fraction(q.in.requested, unit);
    if (q.in.limit != kUnlimited) requestable = min(requestable, Fraction(q.in.limit, unit));
    const Fraction quota = q.in.quota == kUnlimited ? total : Fraction(q.in.quota, unit);
    q.share = min(quota, requestable);
    q.want = requestable - q.share;
    left = left - q.share;
    bands[q.in.priority].push_back(&q);
  }
  if (left <= 0) return 0;

  for (auto& [priority, band] : bands) {
    for (bool again = true; again;) {
      again = false;
      Fraction weights = 0;
      for (OracleQueue* q : band) {
        if (Fraction(0) < q->want) weights = weights + Fraction(q->in.weight_micro, kMicro);
      }
      if (weights == 0) break;
      std::vector<std::pair<OracleQueue*, Fraction>> parts;
      Fraction sum = 0;
      for (OracleQueue* q : band) {
        if (q->want == 0 || q->in.weight_micro == 0) continue;
        const Fraction n = Fraction(q->in.weight_micro, kMicro) / weights;
        const Fraction k(k_micro, kMicro);
        Fraction w = n + k * (n - Fraction(q->in.usage_nano, kNano));
        if (w < 0) w = 0;
        parts.push_back({q, w});
        sum = sum + w;
      }
      if (sum == 0) break;
      const Fraction start = left;
      for (auto& [q, w] : parts) {
        const Fraction give = start * w / sum;
        Fraction given = give.Floor();
        q->remembered = give < q->want;
        q->remainder = give - given;
        if (q->want <= give) {
          again |= q->want < give;
          given = q->want;
        }
        q->share = q->share + given;
        q->want = q->want - given;
        left = left - given;
      }
    }
  }
  for (auto& [priority, band] : bands) {
    std::sort(band.begin(), band.end(), [](OracleQueue* a, OracleQueue* b) {
      if (!(a->remainder == b->remainder)) return b->remainder < a->remainder;
      return a->in.age_rank < b->in.age_rank;
    });
    for (OracleQueue* q : band) {
      // Nothing is owed to a queue whose history has used up its part.
      if (!q->remembered || q->remainder == 0 || left == 0) continue;
      const Fraction given = min(1, left);
      q->share = q->share + given;
      left = left - given;
    }
  }
  return left;
}

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
    bool somebody_wants = false;
    for (const LevelQueue& q : result.level) {
      over_quota += q.fair_share - QuotaShare(q, total);
      somebody_wants |= q.weight_micro > 0 && q.fair_share < Requestable(q);
    }
    ASSERT_EQ(over_quota + result.left, surplus);
    // A queue may stop short of a fractional request; not with a whole unit left.
    if (somebody_wants) {
      ASSERT_LT(result.left, unit);
    }
  });
}

TEST_F(DivideProperties, NobodyGetsMoreThanItCanUseRoundedUp) {
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
      // Lower ones get at most the units into which the fractions of the higher ones add up.
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

// Whole units are given by largest remainder, which is known to be monotonic only up to rounding
// (more to divide can move a unit from one queue to another); the bound is two units.
TEST_F(DivideProperties, MoreToDivideOrMoreWeightGivesNoLessUpToRounding) {
  ForRandomLevels([this](std::vector<LevelQueue> level, int64_t total, int64_t unit) {
    // An unlimited quota grows with the total, which takes from the others by intent.
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
  level[0].usage_nano = kNano;  // k large: nothing but quota for who used everything
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
    // The same fraction scaled beyond 64 bits takes the long way.
    const int shift = 61;
    const Quotient scaled = MultiplyDivide(amount, static_cast<Uint128>(part) << shift,
                                           static_cast<Uint128>(whole) << shift);
    ASSERT_EQ(scaled.floor, got.floor);
    ASSERT_TRUE(scaled.rest == got.rest << shift);
  }
}

// --- the tree -----------------------------------------------------------------------------------

class ComputeFairShareTest : public ::testing::Test {
 protected:
  QueueId Add(const std::string& name, const std::string& parent, model::QueueResource gpu) {
    model::Queue queue = MakeQueue(name, parent);
    queue.gpu = gpu;
    return tree_.Upsert(queue);
  }
  model::ResourceNames names_;
  QueueTree tree_{names_};
};

// The worked example of README.md.
TEST_F(ComputeFairShareTest, WorkedExample) {
  const QueueId research = Add("research", "", {8000, kUnlimited, 1 * kMicro});
  const QueueId product = Add("product", "", {4000, kUnlimited, 2 * kMicro});
  const QueueId vision = Add("vision", "research", {6000, kUnlimited, 1 * kMicro});
  const QueueId language = Add("language", "research", {2000, kUnlimited, 3 * kMicro});
  QueueLedger ledger(tree_);
  ledger.AddRequested(vision, Gpus(9000));
  ledger.AddRequested(language, Gpus(9000));
  ledger.AddRequested(product, Gpus(20'000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(20'000));
  EXPECT_EQ(shares.Get(research, kGpu), 11'000);
  EXPECT_EQ(shares.Get(product, kGpu), 9000);
  EXPECT_EQ(shares.Get(vision, kGpu), 7000);
  EXPECT_EQ(shares.Get(language, kGpu), 4000);
}

TEST_F(ComputeFairShareTest, UnusableQueuesGetNothingAndTakeNothing) {
  const QueueId good = Add("good", "", {0, kUnlimited, kMicro});
  const QueueId orphan = Add("orphan", "missing", {4000, kUnlimited, kMicro});
  const QueueId below = Add("below", "orphan", {4000, kUnlimited, kMicro});
  QueueLedger ledger(tree_);
  ledger.AddRequested(good, Gpus(8000));
  ledger.AddRequested(below, Gpus(8000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(8000));
  EXPECT_EQ(shares.Get(good, kGpu), 8000);
  EXPECT_EQ(shares.Get(orphan, kGpu), 0);
  EXPECT_EQ(shares.Get(below, kGpu), 0);
}

TEST_F(ComputeFairShareTest, ExtraResourcesAreSharedOnceNamed) {
  model::Queue queue = MakeQueue("named");
  queue.other = {{"example.com/licence", {2, kUnlimited, kMicro}}};
  const QueueId named = tree_.Upsert(queue);
  const QueueId silent = tree_.Upsert(MakeQueue("silent"));
  const model::ResourceIndex licence = *names_.Find("example.com/licence");
  QueueLedger ledger(tree_);
  model::Resources ten;
  ten.Set(licence, 10);
  ledger.AddRequested(named, ten);
  model::Resources three;
  three.Set(licence, 3);
  ledger.AddRequested(silent, three);
  const FairShares shares = ComputeFairShare(tree_, ledger, ten);
  EXPECT_EQ(shares.Get(named, licence), 7);
  EXPECT_EQ(shares.Get(silent, licence), 3) << "unlimited quota";
  EXPECT_EQ(shares.Get(named, model::kPods), 0);
}

TEST_F(ComputeFairShareTest, AgreesWithTheOracleOnRandomTrees) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 300; ++round) {
    model::ResourceNames names;
    QueueTree tree(names);
    for (const model::Queue& queue : RandomQueues(random, random.Between(1, 25)))
      tree.Upsert(queue);
    QueueLedger ledger(tree);
    FairShareOptions options;
    options.k_micro = random.Between(0, 4) * kMicro / 2;
    for (QueueId q = 0; q < tree.size(); ++q) {
      if (tree.IsLeaf(q)) {
        ledger.AddRequested(
            q, Amounts(random.Between(0, 90), random.Between(0, 90), random.Between(0, 24) * 500));
      }
      options.usage.push_back(Gpus(random.OneIn(2) ? 0 : random.Between(0, 10) * kNano / 10));
    }
    const model::Resources total =
        Amounts(random.Between(0, 200), random.Between(0, 200), random.Between(0, 40) * 1000);
    const FairShares shares = ComputeFairShare(tree, ledger, total, options);
    for (const model::ResourceIndex r : {model::kCpu, model::kMemory, kGpu}) {
      const int64_t unit = r == kGpu ? 1000 : 1;
      const std::function<void(std::vector<QueueId>, Fraction)> check =
          [&](std::vector<QueueId> siblings, Fraction amount) {
            std::sort(siblings.begin(), siblings.end(), [&](QueueId a, QueueId b) {
              const auto key = [&](QueueId q) {
                return std::pair(tree.Spec(q).meta.creation, tree.Name(q));
              };
              return key(a) < key(b);
            });
            std::vector<OracleQueue> level;
            for (const QueueId q : siblings) {
              const Bounds& bounds = tree.BoundsOf(q, r);
              level.push_back({{tree.Spec(q).priority, static_cast<uint32_t>(level.size()),
                                bounds.quota, bounds.limit, bounds.weight_micro,
                                ledger.requested(q, r), options.usage[q][r], 0},
                               0,
                               0,
                               0,
                               false});
            }
            OracleDivide(amount, unit, options.k_micro, level);
            for (size_t i = 0; i < siblings.size(); ++i) {
              ASSERT_EQ(shares.Get(siblings[i], r), level[i].share.TimesExactly(unit))
                  << tree.Name(siblings[i]) << " resource " << r << " round " << round;
              std::vector<QueueId> below;
              for (QueueId q = 0; q < tree.size(); ++q) {
                if (tree.Parent(q) == siblings[i]) below.push_back(q);
              }
              check(below, level[i].share);
            }
          };
      std::vector<QueueId> tops;
      for (QueueId q = 0; q < tree.size(); ++q) {
        if (!tree.Parent(q)) tops.push_back(q);
      }
      check(tops, Fraction(total[r], unit));
      if (HasFatalFailure()) return;
    }
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
