#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "queues/fair_share.h"
#include "queues/half_life.h"
#include "queues/test_support.h"
#include "queues/usage_record.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;
using ::testing::HasSubstr;

constexpr size_t kPlenty = 10'000'000;

absl::Time Start() { return absl::FromUnixSeconds(1'767'225'600); }  // 2026-01-01, a Thursday

UsageRecord Make(const UsageOptions& options) {
  auto record = UsageRecord::Create(options);
  EXPECT_TRUE(record.ok()) << record.status();
  return *std::move(record);
}

class UsageTest : public ::testing::Test {
 protected:
  UsageTest() { ledger_.Rebuild(tree_); }
  // From `at` on, a and b hold so many GPUs of eight.
  void Hold(UsageRecord& record, absl::Time at, int64_t a, int64_t b, int64_t capacity = 8) {
    QueueLedger ledger(tree_);
    ledger.Charge(a_, Gpus(a * 1000), true);
    ledger.Charge(b_, Gpus(b * 1000), false);
    record.Record(at, tree_, ledger, Gpus(capacity * 1000));
  }
  // Sampled each minute until `end`.
  void HoldUntil(UsageRecord& record, absl::Time from, absl::Time end, int64_t a, int64_t b) {
    for (absl::Time at = from; at < end; at += absl::Minutes(1)) Hold(record, at, a, b);
    Hold(record, end, a, b);
  }
  int64_t UsageNano(const UsageRecord& record, QueueId queue, absl::Time now) {
    const auto usage = record.UsageOf(tree_, now);
    EXPECT_TRUE(usage.ok()) << usage.status();
    return usage.ok() ? (*usage)[queue][kGpu] : -1;
  }

  model::ResourceNames names_;
  QueueTree tree_{names_};
  QueueId top_ = tree_.Upsert(MakeQueue("top"));
  QueueId a_ = tree_.Upsert(MakeQueue("a", "top"));
  QueueId b_ = tree_.Upsert(MakeQueue("b", "top"));
  QueueLedger ledger_{tree_};
};

TEST_F(UsageTest, NothingIsKnownBeforeTheFirstSampleNorFromStaleOnes) {
  UsageRecord record = Make({});
  EXPECT_EQ(record.UsageOf(tree_, Start()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(record.NextSample(), absl::InfinitePast());
  Hold(record, Start(), 4, 0);
  EXPECT_EQ(record.NextSample(), Start() + absl::Minutes(1));
  EXPECT_EQ(UsageNano(record, a_, Start()), 0) << "no time has passed";
  EXPECT_TRUE(record.UsageOf(tree_, Start() + absl::Minutes(5)).ok());
  const auto stale = record.UsageOf(tree_, Start() + absl::Minutes(5) + absl::Seconds(1));
  EXPECT_THAT(std::string(stale.status().message()), HasSubstr("the last sample is 5m1s old"));
}

TEST_F(UsageTest, IsTheIntegralOverTheCapacityOfTheSameTime) {
  UsageRecord record = Make({});
  const absl::Time t = Start();
  Hold(record, t, 4, 2);
  Hold(record, t + absl::Minutes(2), 0, 8);
  Hold(record, t + absl::Minutes(3), 0, 8, 16);
  Hold(record, t + absl::Minutes(4), 1, 1);
  // GPU minutes: a 4*2; b 2*2 + 8 + 8; capacity 8*2 + 8 + 16.
  EXPECT_EQ(UsageNano(record, a_, t + absl::Minutes(4)), kNano * 8 / 40);
  EXPECT_EQ(UsageNano(record, b_, t + absl::Minutes(4)), kNano * 20 / 40);
  EXPECT_EQ(UsageNano(record, top_, t + absl::Minutes(4)), kNano * 28 / 40) << "with its children";
}

TEST_F(UsageTest, UnseenTimeCountsNeitherWay) {
  UsageRecord record = Make({});
  HoldUntil(record, Start(), Start() + absl::Minutes(4), 8, 0);
  // No sample for an hour; b has held everything since.
  const absl::Time later = Start() + absl::Minutes(64);
  HoldUntil(record, later, later + absl::Minutes(4), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, later + absl::Minutes(4)), kNano / 2);
  EXPECT_EQ(UsageNano(record, b_, later + absl::Minutes(4)), kNano / 2);
}

TEST_F(UsageTest, ClockThatGoesBackCountsNoTimeTwice) {
  UsageRecord record = Make({});
  const absl::Time t = Start();
  Hold(record, t, 8, 0);
  Hold(record, t + absl::Minutes(3), 0, 8);
  Hold(record, t + absl::Minutes(1), 0, 8);  // a little late: the last sample is still valid
  Hold(record, t + absl::Minutes(6), 0, 0);
  EXPECT_EQ(UsageNano(record, a_, t + absl::Minutes(6)), kNano / 2);
  EXPECT_EQ(UsageNano(record, b_, t + absl::Minutes(6)), kNano / 2);
  // A year ago: the recorded samples are in the future and are dropped; recording continues at
  // once.
  const absl::Time past = t - absl::Hours(24 * 365);
  Hold(record, past, 2, 0);
  Hold(record, past + absl::Minutes(1), 2, 0);
  EXPECT_EQ(UsageNano(record, a_, past + absl::Minutes(1)), kNano / 4);
  EXPECT_EQ(UsageNano(record, b_, past + absl::Minutes(1)), 0);
}

TEST_F(UsageTest, SlidingWindowDropsWholeBuckets) {
  UsageRecord record = Make({.window = absl::Minutes(168)});  // buckets of a minute
  const absl::Time t = Start();
  HoldUntil(record, t, t + absl::Minutes(84), 8, 0);
  HoldUntil(record, t + absl::Minutes(84), t + absl::Minutes(168), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, t + absl::Minutes(168)), kNano / 2);
  HoldUntil(record, t + absl::Minutes(168), t + absl::Minutes(210), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, t + absl::Minutes(210)), kNano / 4);
  HoldUntil(record, t + absl::Minutes(210), t + absl::Minutes(252), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, t + absl::Minutes(252)), 0);
  EXPECT_LE(record.bucket_count(), 169u);
}

TEST_F(UsageTest, TumblingWindowStartsAfreshExactlyAtItsBoundary) {
  UsageOptions options;
  options.window_type = WindowType::kTumbling;
  options.window = absl::Hours(1);
  options.tumbling_start = Start() + absl::Seconds(90) + absl::Hours(1000);  // also ahead of now
  UsageRecord record = Make(options);
  const absl::Time boundary = Start() + absl::Seconds(90) + absl::Hours(2);
  HoldUntil(record, boundary - absl::Minutes(30), boundary - absl::Minutes(1), 8, 0);
  EXPECT_EQ(UsageNano(record, a_, boundary - absl::Minutes(1)), kNano);
  // One sample from a minute before the boundary to three after it: only the part after it counts.
  Hold(record, boundary + absl::Minutes(3), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, boundary + absl::Minutes(3)), kNano);
  Hold(record, boundary + absl::Minutes(6), 0, 8);
  EXPECT_EQ(UsageNano(record, a_, boundary + absl::Minutes(6)), kNano / 2);
  EXPECT_EQ(UsageNano(record, b_, boundary + absl::Minutes(6)), kNano / 2);
}

TEST_F(UsageTest, CronWindowStartsAfreshWhenItFires) {
  UsageOptions options;
  options.window_type = WindowType::kCron;
  options.cron = "0 6 * * mon-fri";
  UsageRecord record = Make(options);
  const absl::Time boundary = Start() + absl::Hours(6);
  HoldUntil(record, boundary - absl::Hours(3), boundary - absl::Minutes(2), 8, 0);
  Hold(record, boundary + absl::Minutes(2), 0, 4);
  Hold(record, boundary + absl::Minutes(4), 0, 4);
  EXPECT_EQ(UsageNano(record, a_, boundary + absl::Minutes(4)), kNano / 2);
  EXPECT_EQ(UsageNano(record, b_, boundary + absl::Minutes(4)), kNano / 4);
}

TEST_F(UsageTest, BucketsStayBoundedInALongCronWindow) {
  UsageOptions options;
  options.window_type = WindowType::kCron;
  options.cron = "@yearly";
  options.window = absl::Hours(14);  // buckets of five minutes
  UsageRecord record = Make(options);
  absl::Time at = Start();
  for (int i = 0; i < 6000; ++i, at += absl::Minutes(5)) Hold(record, at, i % 2 == 0 ? 8 : 0, 2);
  EXPECT_LE(record.bucket_count(), UsageRecord::kMaxBuckets);
  Hold(record, at, 0, 0);
  EXPECT_EQ(UsageNano(record, a_, at), kNano / 2) << "merging loses no sum";
  EXPECT_EQ(UsageNano(record, b_, at), kNano / 4);
}

TEST_F(UsageTest, QueuesThatComeAndGoDoNotPileUp) {
  UsageRecord record = Make({.window = absl::Minutes(168)});
  for (int i = 0; i < 2000; ++i) {
    model::ResourceNames names;
    QueueTree tree(names);
    const QueueId queue = tree.Upsert(MakeQueue(absl::StrCat("queue", i)));
    QueueLedger ledger(tree);
    ledger.Charge(queue, Amounts(1, 1, 1000), true);
    record.Record(Start() + i * absl::Minutes(1), tree, ledger, Amounts(8, 8, 8000));
    ASSERT_LE(record.cell_count(), 2u * 3 * 171);
  }
}

TEST_F(UsageTest, HistoryBelongsToTheName) {
  UsageRecord record = Make({});
  HoldUntil(record, Start(), Start() + absl::Minutes(3), 6, 0);
  tree_.Remove("a");
  model::ResourceNames names;
  QueueTree later(names);  // another process: other ids
  for (const char* name : {"x", "y", "b", "a", "top"}) later.Upsert(MakeQueue(name));
  const auto usage = record.UsageOf(later, Start() + absl::Minutes(3));
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ((*usage)[*later.Find("a")][kGpu], kNano * 6 / 8);
  EXPECT_EQ((*usage)[*later.Find("top")][kGpu], kNano * 6 / 8);
  EXPECT_EQ((*usage)[*later.Find("x")][kGpu], 0);
}

TEST_F(UsageTest, HalfLifeHalvesWhatIsThatOld) {
  // 168 buckets of an hour; a held everything for the first 84 hours, b since.
  UsageRecord record = Make({.half_life = absl::Hours(84)});
  HoldUntil(record, Start(), Start() + absl::Hours(84), 8, 0);
  HoldUntil(record, Start() + absl::Hours(84), Start() + absl::Hours(168), 0, 8);
  const absl::Time end = Start() + absl::Hours(168);
  // The first half counts half of the second: 1/3 and 2/3.
  EXPECT_NEAR(static_cast<double>(UsageNano(record, a_, end)), 1e9 / 3, 2);
  EXPECT_NEAR(static_cast<double>(UsageNano(record, b_, end)), 2e9 / 3, 2);
}

TEST(HalfLifeTest, AgreesWithThePowerAndNeverGrows) {
  Random random;
  SCOPED_TRACE(random.Describe());
  uint64_t last = kFullWeight;
  for (int64_t age = 0; age < 40'000; age += 7) {
    const uint64_t weight = DecayWeight(age, 1000);
    ASSERT_LE(weight, last);
    last = weight;
  }
  EXPECT_EQ(last, 0u);
  for (int i = 0; i < 3000; ++i) {
    const int64_t half_life = random.Between(1, int64_t{1} << random.Between(1, 40));
    const int64_t age = random.Between(0, half_life * 8);
    const double expected =
        std::exp2(32 - static_cast<double>(age) / static_cast<double>(half_life));
    ASSERT_NEAR(static_cast<double>(DecayWeight(age, half_life)), expected, 5 + expected * 1e-8);
  }
  EXPECT_EQ(DecayWeight(1000, 1000), kFullWeight / 2);
  EXPECT_EQ(DecayWeight(5, 0), kFullWeight);
  EXPECT_EQ(DecayWeight(-5, 1000), kFullWeight);
  EXPECT_EQ(DecayWeight(std::numeric_limits<int64_t>::max(), 1), 0u);
  const Uint128 huge = static_cast<Uint128>(1) << 102;
  EXPECT_TRUE(Weighted(huge, kFullWeight) == huge);
  EXPECT_TRUE(Weighted(huge + 1, kFullWeight / 2) == huge / 2);
}

// The oracle sums every millisecond-exact piece of every sample, weighted in floating point.
TEST_F(UsageTest, AgreesWithAListOfAllSamples) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 60; ++round) {
    UsageOptions options;
    const int64_t width_ms = random.Between(1, 30) * 60'000;
    options.window = absl::Milliseconds(168 * width_ms);
    if (random.OneIn(2)) options.half_life = options.window / random.Between(1, 20);
    options.staleness = options.window / 20;
    const bool tumbling = random.OneIn(3);
    if (tumbling) {
      options.window_type = WindowType::kTumbling;
      options.tumbling_start = absl::UnixEpoch() + absl::Milliseconds(random.Between(0, 1 << 30));
    }
    UsageRecord record = Make(options);
    struct Piece {
      int64_t start, end, a, capacity;
    };
    std::vector<Piece> pieces;
    int64_t now = absl::ToUnixMillis(Start()), a = 0, capacity = 0;
    bool first = true;
    for (int step = 0; step < 300; ++step) {
      const int64_t dt =
          random.OneIn(40) ? random.Between(1, 60) * width_ms : random.Between(0, 2 * width_ms);
      if (!first && dt <= absl::ToInt64Milliseconds(options.staleness)) {
        pieces.push_back({now, now + dt, a, capacity});
      }
      now += dt;
      first = false;
      a = random.Between(0, 8), capacity = random.Between(8, 12);
      Hold(record, absl::FromUnixMillis(now), a, 0, capacity);
    }
    const int64_t window_ms = 168 * width_ms;
    const int64_t origin = tumbling ? absl::ToUnixMillis(options.tumbling_start) : 0;
    const int64_t start = tumbling ? origin + (now - origin) / window_ms * window_ms
                                   : (now - window_ms) / width_ms * width_ms;
    // The bucket of the newest piece, from which decay is counted.
    const auto bucket_of = [&](int64_t at) { return (at - origin) / width_ms; };
    int64_t newest = 0;
    for (const Piece& piece : pieces) {
      if (piece.end > piece.start) newest = bucket_of(piece.end - 1);
    }
    double used = 0, had = 0;
    for (const Piece& piece : pieces) {
      for (int64_t at = std::max(piece.start, start); at < piece.end;) {
        const int64_t until = std::min(piece.end, origin + (bucket_of(at) + 1) * width_ms);
        const double age = static_cast<double>((newest - bucket_of(at)) * width_ms);
        const double weight = options.half_life == absl::ZeroDuration()
                                  ? 1
                                  : std::exp2(-age / absl::ToDoubleMilliseconds(options.half_life));
        used += weight * static_cast<double>((until - at) * piece.a);
        had += weight * static_cast<double>((until - at) * piece.capacity);
        at = until;
      }
    }
    const double expected = had == 0 ? 0 : used / had;
    const double got = static_cast<double>(UsageNano(record, a_, absl::FromUnixMillis(now))) / 1e9;
    ASSERT_NEAR(got, expected, 1e-6) << "round " << round;
  }
}

TEST_F(UsageTest, AbsurdAmountsDoNotOverflow) {
  UsageRecord record = Make({.half_life = absl::Hours(1)});
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 3000; ++i) {
    QueueLedger ledger(tree_);
    ledger.Charge(a_, Gpus(most), true);
    ledger.Charge(b_, Gpus(most), true);
    record.Record(Start() + i * absl::Minutes(4), tree_, ledger, Gpus(most));
  }
  const absl::Time end = Start() + 2999 * absl::Minutes(4);
  EXPECT_EQ(UsageNano(record, a_, end), kNano);
  EXPECT_EQ(UsageNano(record, top_, end), kNano) << "more than all is all";
}

TEST(UsageOptionsTest, NamesTheFieldThatIsWrong) {
  const auto why = [](auto change) {
    UsageOptions options;
    change(options);
    return std::string(UsageRecord::Create(options).status().message());
  };
  EXPECT_EQ(why([](UsageOptions&) {}), "");
  EXPECT_THAT(why([](UsageOptions& o) { o.window = absl::Seconds(1); }), HasSubstr("windowSize"));
  EXPECT_THAT(why([](UsageOptions& o) { o.window = absl::InfiniteDuration(); }),
              HasSubstr("windowSize"));
  EXPECT_THAT(why([](UsageOptions& o) { o.half_life = -absl::Hours(1); }),
              HasSubstr("halfLifePeriod"));
  EXPECT_THAT(why([](UsageOptions& o) { o.staleness = absl::Hours(24 * 8); }),
              HasSubstr("stalenessPeriod"));
  EXPECT_THAT(why([](UsageOptions& o) { o.sample_interval = absl::Minutes(6); }),
              HasSubstr("fetchInterval"));
  EXPECT_THAT(why([](UsageOptions& o) { o.tumbling_start = absl::InfinitePast(); }),
              HasSubstr("tumblingWindowStartTime"));
  EXPECT_THAT(why([](UsageOptions& o) {
                o.window_type = WindowType::kCron;
                o.cron = "bad";
              }),
              HasSubstr("cron"));
  EXPECT_EQ(*ParseWindowType("tumbling"), WindowType::kTumbling);
  EXPECT_EQ(ParseWindowType("Sliding").status().code(), absl::StatusCode::kInvalidArgument);
}

// --- through text
// ---------------------------------------------------------------------------------

TEST_F(UsageTest, RecordGoesOnAfterTextAsItWouldHaveWithout) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 20; ++round) {
    UsageOptions options;
    options.window = absl::Hours(random.Between(3, 30));
    if (random.OneIn(2)) options.half_life = absl::Minutes(random.Between(10, 1000));
    UsageRecord record = Make(options);
    absl::Time now = Start();
    for (int step = 0; step < 400; ++step) {
      now += absl::Seconds(random.OneIn(50) ? 3000 : random.Between(1, 300));
      Hold(record, now, random.Between(0, 4), random.Between(0, 4));
      if (!random.OneIn(20)) continue;
      const auto text = record.Encode(kPlenty);
      ASSERT_TRUE(text.ok()) << text.status();
      auto read = UsageRecord::Decode(*text, options);
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(*read->Encode(kPlenty), *text);
      ASSERT_EQ(*read->UsageOf(tree_, now), *record.UsageOf(tree_, now));
      // One record continues in the new process, the other where it was.
      const int64_t a = random.Between(0, 4);
      now += absl::Minutes(2);
      Hold(*read, now, a, 0);
      Hold(record, now, a, 0);
      ASSERT_EQ(*read->Encode(kPlenty), *record.Encode(kPlenty));
      record = *std::move(read);
    }
  }
}

TEST_F(UsageTest, TextIsCoarsenedUntilItFits) {
  UsageRecord record = Make({.window = absl::Hours(168)});
  HoldUntil(record, Start(), Start() + absl::Hours(100), 3, 1);
  const absl::Time end = Start() + absl::Hours(100);
  const std::string whole = *record.Encode(kPlenty);
  const auto smaller = record.Encode(whole.size() / 5);
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_LE(smaller->size(), whole.size() / 5);
  const auto read = UsageRecord::Decode(*smaller, {.window = absl::Hours(168)});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_LT(read->bucket_count(), record.bucket_count() / 4);
  EXPECT_EQ(UsageNano(*read, a_, end), kNano * 3 / 8) << "sums stay exact";
  EXPECT_EQ(record.Encode(60).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Make({}).Encode(kPlenty).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(UsageTest, EveryDamageToTheTextIsFound) {
  UsageRecord record = Make({});
  HoldUntil(record, Start(), Start() + absl::Minutes(90), 3, 1);
  const std::string text = *record.Encode(kPlenty);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(UsageRecord::Decode(text.substr(0, size), {}).ok()) << "cut to " << size;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = damaged[i] == 'B' ? 'C' : 'B';
    EXPECT_FALSE(UsageRecord::Decode(damaged, {}).ok()) << "byte " << i;
  }
  EXPECT_FALSE(UsageRecord::Decode(text + "A", {}).ok());
  EXPECT_FALSE(UsageRecord::Decode(text + "=", {}).ok());
  EXPECT_EQ(UsageRecord::Decode("fairlead-usage/2:x:y", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UsageRecord::Decode("", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// Well-formed envelopes around contents that no record writes.
std::string Forge(const std::string& bytes) {
  return absl::StrCat("fairlead-usage/1:", StableHash().Add(bytes).Hex(), ":",
                      absl::Base64Escape(bytes));
}

TEST_F(UsageTest, ContentsThatMakeNoSenseAreRefused) {
  // last = 5 ms; column "c", queue "q"; one cell; holds 1 of 2; one bucket [1, 3) ms of 4, 2.
  const std::string good(
      "\x0a\x01\x01"
      "c"
      "\x01\x01"
      "q"
      "\x01\x00\x00\x01\x02\x01\x02\x02\x04\x02",
      17);
  ASSERT_TRUE(UsageRecord::Decode(Forge(good), {}).ok())
      << UsageRecord::Decode(Forge(good), {}).status();
  const auto why = [&](size_t at, const std::string& instead) {
    std::string bytes = good;
    bytes.replace(at, 1, instead);
    return std::string(UsageRecord::Decode(Forge(bytes), {}).status().message());
  };
  EXPECT_THAT(why(0, std::string("\x8a\x00", 2)), HasSubstr("longer than it need be"));
  EXPECT_THAT(why(0, std::string(20, '\xff')), HasSubstr("too long"));
  EXPECT_THAT(why(0, std::string(16, '\xff') + "\x01"), HasSubstr("out of range"));
  EXPECT_THAT(why(1, "\x7f"), HasSubstr("out of range"));
  EXPECT_THAT(why(1, std::string(1, '\0')), HasSubstr("usage record"));
  EXPECT_THAT(why(2, std::string(1, '\0')), HasSubstr("a name is empty"));
  EXPECT_THAT(why(8, "\x01"), HasSubstr("out of range")) << "a queue that is not there";
  EXPECT_EQ(why(13, std::string(1, '\0')), "") << "starts at the epoch: fine";
  EXPECT_THAT(why(13, "\x0c"), HasSubstr("in the future"));
  EXPECT_THAT(why(14, std::string(1, '\0')), HasSubstr("empty"));
  const std::string trailing = good + std::string(1, '\0');
  EXPECT_THAT(std::string(UsageRecord::Decode(Forge(trailing), {}).status().message()),
              HasSubstr("goes on after its end"));
  // Random damage under a correct checksum never crashes, and any accepted record is usable.
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int64_t n = random.Between(1, 4); n > 0; --n) {
      const auto at =
          static_cast<size_t>(random.Between(0, static_cast<int64_t>(bytes.size()) - 1));
      bytes[at] = static_cast<char>(random.Between(0, 255));
    }
    auto record = UsageRecord::Decode(Forge(bytes), {});
    if (!record.ok()) continue;
    Hold(*record, Start(), 1, 1);
    Hold(*record, Start() + absl::Minutes(1), 1, 1);
    ASSERT_TRUE(record->UsageOf(tree_, Start() + absl::Minutes(1)).ok());
    ASSERT_TRUE(UsageRecord::Decode(*record->Encode(kPlenty), {}).ok());
  }
}

// --- into fair share
// ------------------------------------------------------------------------------

TEST_F(UsageTest, AQueueThatUsedMoreGetsLessUntilThatIsForgotten) {
  for (const char* name : {"a", "b"}) {
    model::Queue queue = MakeQueue(name, "top");
    queue.gpu = {0, kUnlimited, kMicro};
    tree_.Upsert(queue);
  }
  ledger_.AddRequested(a_, Gpus(8000));
  ledger_.AddRequested(b_, Gpus(8000));
  UsageRecord record = Make({.window = absl::Minutes(168)});
  const auto shares = [&](absl::Time now) {
    FairShareOptions options;
    options.usage = *record.UsageOf(tree_, now);
    const FairShares result = ComputeFairShare(tree_, ledger_, Gpus(8000), options);
    return std::pair(result.Get(a_, kGpu), result.Get(b_, kGpu));
  };
  HoldUntil(record, Start(), Start() + absl::Minutes(60), 4, 0);
  // u = 1/2 and 0: w = 1/2 and 1, so 8/3 and 16/3 of eight; the last GPU to the larger fraction.
  EXPECT_EQ(shares(Start() + absl::Minutes(60)), std::pair(int64_t{3000}, int64_t{5000}));
  HoldUntil(record, Start() + absl::Minutes(60), Start() + absl::Minutes(230), 0, 0);
  EXPECT_EQ(shares(Start() + absl::Minutes(230)), std::pair(int64_t{4000}, int64_t{4000}));
}

}  // namespace
}  // namespace fairlead::queues
