#include "dashboard/cached_text.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::dashboard {
namespace {

class CachedTextTest : public ::testing::Test {
 protected:
  FakeClock clock_{absl::UnixEpoch()};
  int asked_ = 0;
  absl::Duration cost_;
  absl::Status failure_;
  CachedText cached_{[this]() -> absl::StatusOr<SourceText> {
                       ++asked_;
                       if (!failure_.ok()) return failure_;
                       return SourceText{absl::StrCat("text ", asked_), cost_};
                     },
                     absl::Seconds(1), &clock_};
};

TEST_F(CachedTextTest, ManyViewersAskTheSourceOnceASecond) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(**cached_.Get(), "text 1");
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(**cached_.Get(), "text 2");
  EXPECT_EQ(asked_, 2);
}

TEST_F(CachedTextTest, WhatCostsMuchIsAskedForSeldom) {
  cost_ = absl::Milliseconds(100);
  (void)cached_.Get();
  clock_.Advance(absl::Seconds(4));
  (void)cached_.Get();
  EXPECT_EQ(asked_, 1);
  clock_.Advance(absl::Seconds(1));
  (void)cached_.Get();
  EXPECT_EQ(asked_, 2) << "a fiftieth of the time";
}

TEST_F(CachedTextTest, AFailureShowsTheLastTextForAMinute) {
  failure_ = absl::UnavailableError("hangs");
  EXPECT_EQ(cached_.Get().status(), failure_) << "there is none yet";
  EXPECT_EQ(cached_.Get().status(), failure_);
  EXPECT_EQ(asked_, 1) << "and viewers do not wait one after the other";
  failure_ = absl::OkStatus();
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(**cached_.Get(), "text 2");
  failure_ = absl::UnavailableError("hangs again");
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(**cached_.Get(), "text 2");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(cached_.Get().status(), failure_) << "too old to be shown";
}

}  // namespace
}  // namespace fairlead::dashboard
