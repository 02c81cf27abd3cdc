#include "base/write_attempts.h"

#include <vector>

#include "gtest/gtest.h"

namespace fairlead {
namespace {

absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

constexpr WriteAttempts::Rules kRules = {.backoff = {absl::Seconds(1), absl::Seconds(5)},
                                         .silence = {absl::Seconds(60), absl::Seconds(120)},
                                         .unseen = {absl::Seconds(10), absl::Seconds(30)}};

TEST(WriteAttemptsTest, RefusalsDoNothingAndPauseLongerEachTime) {
  for (const absl::Status& refusal :
       {absl::PermissionDeniedError("403"), absl::FailedPreconditionError("409"),
        absl::InvalidArgumentError("422"), absl::NotFoundError("404"),
        absl::AbortedError("not the leader"), absl::ResourceExhaustedError("429")}) {
    SCOPED_TRACE(refusal.ToString());
    WriteAttempts write;
    int64_t now = 0;
    for (const int64_t pause : {1, 2, 4, 5, 5}) {
      ASSERT_TRUE(write.MayGo(At(now)));
      write.Sent(At(now), kRules);
      EXPECT_FALSE(write.MayGo(At(now))) << "one attempt at a time";
      EXPECT_EQ(write.Answered(refusal, At(now), kRules), Outcome::kRefused);
      EXPECT_FALSE(write.open()) << "nothing was done";
      EXPECT_TRUE(write.failed());
      EXPECT_TRUE(write.Pauses(At(now)));
      EXPECT_FALSE(write.Pauses(At(now + pause)));
      EXPECT_EQ(write.due(), At(now + pause));
      now += pause;
    }
  }
}

TEST(WriteAttemptsTest, AfterAnUnknownOutcomeNoRefusalDecides) {
  WriteAttempts write;
  write.Sent(At(0), kRules);
  EXPECT_EQ(write.Answered(absl::DeadlineExceededError("no answer"), At(3), kRules),
            Outcome::kUnknown);
  EXPECT_TRUE(write.open());
  EXPECT_TRUE(write.started());
  EXPECT_EQ(write.due(), At(4));
  write.Sent(At(4), kRules);
  EXPECT_EQ(write.Answered(absl::PermissionDeniedError("403"), At(4), kRules), Outcome::kUnknown);
  EXPECT_TRUE(write.in_doubt());
  EXPECT_EQ(write.unknown_at(), At(3)) << "the refusal is known";
  write.Sent(At(6), kRules);
  EXPECT_EQ(write.Answered(absl::OkStatus(), At(6), kRules), Outcome::kDone);
  EXPECT_FALSE(write.in_doubt());
  EXPECT_EQ(write.failures(), 0);
}

TEST(WriteAttemptsTest, AFreshWatchEndsADoubt) {
  for (const bool fresh : {true, false}) {
    SCOPED_TRACE(fresh);
    WriteAttempts write;
    write.Sent(At(0), kRules);
    write.Answered(absl::DeadlineExceededError("no answer"), At(3), kRules, fresh);
    write.Sent(At(50), kRules);
    const absl::Status refusal = absl::PermissionDeniedError("403");
    EXPECT_EQ(write.Answered(refusal, At(92), kRules, fresh), Outcome::kUnknown);
    write.Sent(At(93), kRules);
    EXPECT_EQ(write.Answered(refusal, At(93), kRules, fresh),
              fresh ? Outcome::kRefused : Outcome::kUnknown);
    EXPECT_EQ(write.in_doubt(), !fresh);
    EXPECT_EQ(write.failures(), 3) << "they are failures of one write";
  }
}

TEST(WriteAttemptsTest, ARefusalThatMayBeWrongIsBelievedIfTheRulesSaySo) {
  WriteAttempts::Rules rules = kRules;
  rules.believes_refusals = true;
  WriteAttempts write;
  write.Sent(At(0), rules);
  write.Answered(absl::UnavailableError("503"), At(0), rules);
  write.Sent(At(1), rules);
  EXPECT_EQ(write.Answered(absl::PermissionDeniedError("403"), At(1), rules), Outcome::kRefused);
  EXPECT_FALSE(write.open());
}

TEST(WriteAttemptsTest, SilenceIsAnUnknownOutcome) {
  WriteAttempts write;
  write.Sent(At(0), kRules);
  EXPECT_FALSE(write.MayGo(At(59)));
  ASSERT_TRUE(write.MayGo(At(60)));
  write.Sent(At(60), kRules);
  EXPECT_TRUE(write.in_doubt());
  EXPECT_EQ(write.unknown_at(), At(60));
  EXPECT_EQ(write.due(), At(180));
  EXPECT_EQ(write.Answered(absl::AbortedError("fenced"), At(61), kRules), Outcome::kUnknown);
}

TEST(WriteAttemptsTest, AnOkWithoutEffectIsRepeatedEverLater) {
  WriteAttempts write;
  std::vector<absl::Time> sent;
  for (int64_t now = 0; now < 100; ++now) {
    if (!write.MayGo(At(now))) continue;
    sent.push_back(At(now));
    write.Sent(At(now), kRules);
    write.Answered(absl::OkStatus(), At(now), kRules);
  }
  EXPECT_EQ(sent, (std::vector<absl::Time>{At(0), At(10), At(30), At(60), At(90)}));
  EXPECT_TRUE(write.started());
  write.Settle();
  EXPECT_FALSE(write.started());
  EXPECT_TRUE(write.MayGo(At(91)));
  EXPECT_FALSE(write.open());
}

TEST(WriteAttemptsTest, AnAnswerToAnAttemptThatIsSettledChangesNothing) {
  WriteAttempts write;
  write.Sent(At(0), kRules);
  write.Settle(At(5));
  write.Answered(absl::UnavailableError("late"), At(1), kRules);
  EXPECT_FALSE(write.open());
  EXPECT_EQ(write.due(), At(5));
  write.Sent(At(5), kRules);
  write.EndPause();
  EXPECT_FALSE(write.MayGo(At(6))) << "in flight";
  write.Answered(absl::AbortedError("409"), At(6), kRules);
  write.EndPause();
  EXPECT_TRUE(write.MayGo(At(6)));
}

}  // namespace
}  // namespace fairlead
