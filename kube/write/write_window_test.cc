#include "kube/write/write_window.h"

#include "gtest/gtest.h"
#include "kube/transport/backoff.h"
#include "kube/transport/url.h"

namespace fairlead::kube {
namespace {

constexpr absl::Duration kNoPause = absl::ZeroDuration();

class WriteWindowTest : public ::testing::Test {
 protected:
  // Fills the window, then ends every write after `latency` with `outcome`.
  void Round(absl::Duration latency, WriteOutcome outcome = WriteOutcome::kOk) {
    const absl::Duration start = now_;
    int started = 0;
    while (window_.MayStart(now_)) {
      window_.Started();
      ++started;
    }
    now_ += latency;
    for (int i = 0; i < started; ++i) window_.Finished(outcome, start, now_, kNoPause);
    now_ += absl::Microseconds(1);
  }
  void One(WriteOutcome outcome, absl::Duration latency, absl::Duration retry_after = kNoPause) {
    const absl::Duration start = now_;
    window_.Started();
    now_ += latency;
    window_.Finished(outcome, start, now_, retry_after);
  }

  absl::Duration now_ = absl::Hours(5);
  WriteWindow window_;
};

TEST_F(WriteWindowTest, BoundsWhatIsInFlight) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(window_.MayStart(now_)) << i;
    window_.Started();
  }
  EXPECT_FALSE(window_.MayStart(now_));
  window_.Finished(WriteOutcome::kOk, now_, now_, kNoPause);
  EXPECT_TRUE(window_.MayStart(now_));
  EXPECT_FALSE(window_.MayStart(now_, 1)) << "one place is reserved";
}

TEST_F(WriteWindowTest, OnePlaceIsOpenToEveryWrite) {
  EXPECT_TRUE(window_.MayStart(now_, 1000));
  window_.Started();
  EXPECT_FALSE(window_.MayStart(now_, 1000));
}

TEST_F(WriteWindowTest, GrowsByFullWindowsUpToTheMaximum) {
  Round(absl::Milliseconds(10));
  EXPECT_EQ(window_.size(), 104);
  Round(absl::Milliseconds(10));
  EXPECT_EQ(window_.size(), 108);
  for (int i = 0; i < 100; ++i) Round(absl::Milliseconds(10));
  EXPECT_EQ(window_.size(), 150);
}

TEST_F(WriteWindowTest, WritesThatNeverFillItProveNothing) {
  for (int i = 0; i < 1000; ++i) One(WriteOutcome::kOk, absl::Milliseconds(3));
  EXPECT_EQ(window_.size(), 100);
}

TEST_F(WriteWindowTest, HalvesOncePerRoundTripDownToTheMinimum) {
  Round(absl::Milliseconds(10), WriteOutcome::kThrottled);
  EXPECT_EQ(window_.size(), 50) << "100 refusals of one round are one signal";
  Round(absl::Milliseconds(10), WriteOutcome::kOverloaded);
  EXPECT_EQ(window_.size(), 25);
  for (int i = 0; i < 10; ++i) Round(absl::Milliseconds(10), WriteOutcome::kOverloaded);
  EXPECT_EQ(window_.size(), 4);
  EXPECT_GE(window_.decreases(), 4);
  Round(absl::Milliseconds(10));
  EXPECT_EQ(window_.size(), 8) << "and it recovers";
}

TEST_F(WriteWindowTest, NeutralOutcomesChangeNothing) {
  Round(absl::Milliseconds(10), WriteOutcome::kNeutral);
  EXPECT_EQ(window_.size(), 100);
  EXPECT_EQ(window_.in_flight(), 0);
}

TEST_F(WriteWindowTest, RetryAfterPausesEverything) {
  One(WriteOutcome::kThrottled, absl::Milliseconds(1), absl::Seconds(3));
  const absl::Duration until = window_.paused_until();
  EXPECT_EQ(until, now_ + absl::Seconds(3));
  EXPECT_FALSE(window_.MayStart(until - absl::Nanoseconds(1)));
  EXPECT_TRUE(window_.MayStart(until));
  One(WriteOutcome::kThrottled, absl::Milliseconds(1), absl::Seconds(1));
  EXPECT_EQ(window_.paused_until(), until) << "a shorter pause does not shorten it";
}

TEST_F(WriteWindowTest, LatencyFarAboveTheBestIsASignal) {
  Round(absl::Milliseconds(50));
  const int before = window_.size();
  Round(absl::Milliseconds(190));
  Round(absl::Milliseconds(190));
  EXPECT_GE(window_.size(), before) << "within four times the best";
  const int64_t decreases = window_.decreases();
  Round(absl::Milliseconds(900));
  EXPECT_EQ(window_.decreases(), decreases + 1);
}

TEST_F(WriteWindowTest, ABusyFastServerIsNotOverloaded) {
  One(WriteOutcome::kOk, absl::Milliseconds(1));
  for (int i = 0; i < 50; ++i) Round(absl::Milliseconds(60));
  EXPECT_EQ(window_.decreases(), 0);
  EXPECT_EQ(window_.size(), 150);
}

TEST_F(WriteWindowTest, OneSlowWriteIsNoSignal) {
  for (int i = 0; i < 20; ++i) One(WriteOutcome::kOk, absl::Milliseconds(30));
  One(WriteOutcome::kOk, absl::Milliseconds(600));
  EXPECT_EQ(window_.decreases(), 0);
}

TEST_F(WriteWindowTest, TheBestIsForgottenAfterTwoPeriods) {
  Round(absl::Milliseconds(30));
  now_ += absl::Minutes(3);
  // The server is slower permanently: after the faster periods have passed this latency is normal.
  for (int i = 0; i < 300; ++i) {
    Round(absl::Milliseconds(400));
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(window_.size(), 150);
}

TEST(JitteredBackoffTest, DoublesWithinBoundsAndStartsAgain) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    JitteredBackoff backoff({absl::Seconds(1), absl::Seconds(10)}, seed);
    for (int step : {1, 2, 4, 8, 10, 10}) {
      const absl::Duration delay = backoff.Next();
      EXPECT_GE(delay, absl::Seconds(step) / 2) << seed;
      EXPECT_LT(delay, absl::Seconds(step)) << seed;
    }
    backoff.Reset();
    EXPECT_LT(backoff.Next(), absl::Seconds(1));
  }
  EXPECT_EQ(JitteredBetween(absl::Seconds(2), absl::Seconds(2), 1, 1), absl::Seconds(2));
}

TEST(UrlTest, EscapesAllButUnreserved) {
  std::string path = "/x";
  AddQuery(path, "a", "b!=c,d e&f=/%\xC3\xA9");
  AddQuery(path, "g", "A-z.0_~");
  EXPECT_EQ(path, "/x?a=b%21%3Dc%2Cd%20e%26f%3D%2F%25%C3%A9&g=A-z.0_~");
}

}  // namespace
}  // namespace fairlead::kube
