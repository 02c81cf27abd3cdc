#include "dashboard/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::dashboard {
namespace {

class AccessTest : public ::testing::Test {
 protected:
  absl::Status Check(const std::string& token) {
    return access_.Check(absl::StrCat("Bearer ", token));
  }

  FakeClock clock_{absl::UnixEpoch()};
  std::vector<std::string> asked_;
  absl::Status answer_;
  Access access_{[this](const std::string& token) {
                   asked_.push_back(token);
                   return answer_;
                 },
                 &clock_};
};

TEST_F(AccessTest, WithoutATokenNobodyIsAsked) {
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer  "), std::string("Basic YTpi"),
        std::string("token"), absl::StrCat("Bearer ", std::string(Access::kTokenBytes + 1, 't'))}) {
    EXPECT_TRUE(absl::IsUnauthenticated(access_.Check(header))) << header.substr(0, 20);
  }
  EXPECT_TRUE(asked_.empty());
}

TEST_F(AccessTest, AnAnswerIsKeptForAMinute) {
  EXPECT_TRUE(Check("good").ok());
  answer_ = absl::PermissionDeniedError("no");
  clock_.Advance(absl::Seconds(59));
  EXPECT_TRUE(access_.Check("bearer good").ok()) << "the scheme has no case";
  EXPECT_EQ(asked_.size(), 1u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(absl::IsPermissionDenied(Check("good"))) << "a right that was withdrawn ends";
  EXPECT_TRUE(absl::IsPermissionDenied(Check("good")));
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(AccessTest, EveryTokenHasItsOwnAnswer) {
  EXPECT_TRUE(Check("good").ok());
  answer_ = absl::UnauthenticatedError("whose?");
  EXPECT_TRUE(absl::IsUnauthenticated(Check("goo")));
  EXPECT_TRUE(absl::IsUnauthenticated(Check("good2")));
  EXPECT_TRUE(Check("good").ok());
}

TEST_F(AccessTest, IfNothingCouldBeFoundOutItIsAskedAgainSoon) {
  answer_ = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(Check("good")));
  EXPECT_TRUE(absl::IsUnavailable(Check("good")));
  EXPECT_EQ(asked_.size(), 1u);
  answer_ = absl::OkStatus();
  clock_.Advance(Access::kRetried);
  EXPECT_TRUE(Check("good").ok());
}

TEST_F(AccessTest, AGuesserIsSlowedDownAndShutsNobodyOut) {
  EXPECT_TRUE(Check("good").ok());
  answer_ = absl::UnauthenticatedError("whose?");
  absl::Status last;
  for (int i = 0; i < 1000; ++i) last = Check(absl::StrCat("guess-", i));
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  EXPECT_LE(asked_.size(), static_cast<size_t>(Access::kBurst) + 1);
  EXPECT_TRUE(Check("good").ok()) << "its answer is kept";
  const size_t before = asked_.size();
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 10; ++i) (void)Check(absl::StrCat("more-", i));
  EXPECT_EQ(asked_.size() - before, static_cast<size_t>(Access::kReviewsPerSecond));
}

}  // namespace
}  // namespace fairlead::dashboard
