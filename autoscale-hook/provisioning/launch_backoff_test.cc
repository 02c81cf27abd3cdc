#include "autoscale-hook/provisioning/launch_backoff.h"

#include <gtest/gtest.h>

namespace fairlead::hook {
namespace {

const absl::Time kBackoffStart = absl::FromUnixSeconds(1000000);

LaunchKey Key(const char* type = "p5.48xlarge", const char* zone = "a", bool spot = false) {
  return {"aws", "pool", type, zone, spot};
}

TEST(LaunchBackoffTest, WhatRestsAfterEachClass) {
  struct Case {
    FailureClass failure;
    LaunchKey key;
    bool rests;
  };
  LaunchKey other_pool = Key();
  other_pool.pool = "other";
  LaunchKey other_provider = Key();
  other_provider.provider = "gce";
  LaunchKey reserved = Key();
  reserved.reservation = "cr-1";
  const Case cases[] = {
      {FailureClass::kStockout, reserved, false},
      {FailureClass::kQuota, reserved, false},
      {FailureClass::kStockout, Key(), true},
      {FailureClass::kStockout, Key("p5.48xlarge", "b"), false},
      {FailureClass::kStockout, Key("p5.48xlarge", "a", true), false},
      {FailureClass::kStockout, Key("p5.4xlarge"), false},
      {FailureClass::kTimeout, Key(), true},
      {FailureClass::kOther, Key(), true},
      {FailureClass::kQuota, Key("p5.4xlarge", "b"), true},
      {FailureClass::kQuota, Key("p5.4xlarge", "b", true), false},
      {FailureClass::kQuota, Key("p5en.48xlarge"), false},
      {FailureClass::kAuth, Key("m5.large", "b", true), true},
      {FailureClass::kAuth, other_provider, false},
      {FailureClass::kConfig, Key("p5.48xlarge", "b", true), true},
      {FailureClass::kConfig, other_pool, false},
  };
  for (const Case& c : cases) {
    LaunchBackoff backoff({absl::Minutes(1), absl::Minutes(30)});
    backoff.Failed(Key(), c.failure, kBackoffStart);
    EXPECT_EQ(backoff.Resting(c.key, kBackoffStart).has_value(), c.rests)
        << FailureName(c.failure) << " " << c.key.type << " " << c.key.zone;
  }
}

TEST(LaunchBackoffTest, AReservationRestsAlone) {
  const auto of = [](const char* reservation, const char* zone) {
    LaunchKey key = Key("p5.48xlarge", zone);
    key.reservation = reservation;
    return key;
  };
  for (const FailureClass failure :
       {FailureClass::kStockout, FailureClass::kTimeout, FailureClass::kQuota}) {
    LaunchBackoff backoff({absl::Minutes(1), absl::Minutes(30)});
    backoff.Failed(of("cr-1", "a"), failure, kBackoffStart);
    EXPECT_TRUE(backoff.Resting(of("cr-1", "a"), kBackoffStart).has_value());
    EXPECT_FALSE(backoff.Resting(of("cr-2", "a"), kBackoffStart).has_value());
    EXPECT_FALSE(backoff.Resting(Key(), kBackoffStart).has_value());
    EXPECT_EQ(backoff.Resting(of("cr-1", "b"), kBackoffStart).has_value(),
              failure == FailureClass::kQuota);
  }
}

TEST(LaunchBackoffTest, DoublesUpToItsMaximumAndEchoesDoNotCount) {
  LaunchBackoff backoff({absl::Minutes(1), absl::Minutes(5)});
  absl::Time now = kBackoffStart;
  for (int minutes : {1, 2, 4, 5, 5}) {
    backoff.Failed(Key(), FailureClass::kStockout, now);
    backoff.Failed(Key(), FailureClass::kStockout, now + absl::Seconds(1));
    ASSERT_TRUE(backoff.Resting(Key(), now).has_value());
    EXPECT_EQ(backoff.Resting(Key(), now)->until, now + absl::Minutes(minutes));
    now += absl::Minutes(minutes);
    EXPECT_FALSE(backoff.Resting(Key(), now).has_value());
  }
  backoff.Succeeded(Key());
  backoff.Failed(Key(), FailureClass::kStockout, now);
  EXPECT_EQ(backoff.Resting(Key(), now)->until, now + absl::Minutes(1));
}

TEST(LaunchBackoffTest, AuthAndConfigRestLongUntilThePoolChanges) {
  for (FailureClass failure : {FailureClass::kAuth, FailureClass::kConfig}) {
    LaunchBackoff backoff({absl::Minutes(1), absl::Minutes(30)});
    backoff.Failed(Key(), failure, kBackoffStart);
    EXPECT_EQ(backoff.Resting(Key(), kBackoffStart)->until, kBackoffStart + absl::Minutes(30));
    backoff.PoolChanged("pool", "aws");
    EXPECT_FALSE(backoff.Resting(Key(), kBackoffStart).has_value());
  }
}

TEST(FailureTest, StatusesKeepTheirClass) {
  for (FailureClass failure :
       {FailureClass::kStockout, FailureClass::kQuota, FailureClass::kAuth, FailureClass::kConfig,
        FailureClass::kTimeout, FailureClass::kOther}) {
    EXPECT_EQ(ClassifyFailure(FailureStatus(failure, "x")), failure);
    EXPECT_EQ(ParseFailure(FailureName(failure)), failure);
  }
  EXPECT_EQ(ClassifyFailure(absl::UnauthenticatedError("")), FailureClass::kAuth);
  EXPECT_EQ(ClassifyFailure(absl::NotFoundError("")), FailureClass::kConfig);
  EXPECT_EQ(ClassifyFailure(absl::DataLossError("")), FailureClass::kOther);
  EXPECT_EQ(ClassifyFailure(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ClassifyFailure(absl::AlreadyExistsError("")), std::nullopt);
  EXPECT_EQ(ClassifyFailure(absl::UnavailableError("")), std::nullopt);
  EXPECT_TRUE(IsUnknownOutcome(absl::UnavailableError("")));
}

}  // namespace
}  // namespace fairlead::hook
