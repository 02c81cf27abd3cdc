#include "cmd/fairlead/run/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/fairlead/run/stats_testing.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

AppStats Healthy() { return testing::StatsOfSyncedKinds(absl::Seconds(70)); }

TEST(HealthTest, LiveAsLongAsTheOwnerAnswers) {
  AppStats stats = Healthy();
  EXPECT_EQ(LiveResponse(true, stats).status, 200);
  stats.owner_silent_for = absl::Seconds(45.5);
  const server::Response hung = LiveResponse(false, stats);
  EXPECT_EQ(hung.status, 500);
  EXPECT_THAT(hung.body, HasSubstr("has not answered for 45s"));
}

TEST(HealthTest, ReadyAsLeaderAndAsStandby) {
  AppStats stats = Healthy();
  EXPECT_EQ(ReadyResponse(true, stats).status, 200);
  EXPECT_THAT(ReadyResponse(true, stats).body, HasSubstr("[+]watch-Pod ok"));
  EXPECT_THAT(ReadyResponse(true, stats).body, HasSubstr("standby"));
  stats.leader = true;
  EXPECT_EQ(ReadyResponse(true, stats).status, 200);
  EXPECT_THAT(ReadyResponse(true, stats).body, HasSubstr("leader"));
}

TEST(HealthTest, NotReadyBeforeTheFirstListAndWhileStale) {
  EXPECT_EQ(ReadyResponse(true, AppStats{}).status, 503) << "not begun";
  EXPECT_EQ(ReadyResponse(false, Healthy()).status, 503);
  AppStats stats = Healthy();
  stats.kinds[0].synced = false;
  stats.kinds[0].last_error = "403 Forbidden: no";
  EXPECT_EQ(ReadyResponse(true, stats).status, 503);
  EXPECT_THAT(ReadyResponse(true, stats).body,
              HasSubstr("[-]watch-Node failed: not listed yet: 403 Forbidden: no"));
  stats = Healthy();
  stats.kinds[1].down_for = absl::Seconds(61);
  EXPECT_EQ(ReadyResponse(true, stats).status, 503);
  EXPECT_THAT(ReadyResponse(true, stats).body,
              HasSubstr("[-]watch-Queue failed: last heard of 1m10s ago"));
  EXPECT_THAT(ReadyResponse(true, stats).body, HasSubstr("[+]watch-Node ok"));
}

TEST(HealthTest, OneShardThatIsNotWellSpeaksForAll) {
  const server::Response well = ReadyResponse(true, Healthy()), ill = ReadyResponse(true, {});
  EXPECT_EQ(HealthOf({{std::nullopt, well}}).body, well.body);
  const server::Response all = HealthOf({{"", well}, {"gpu-a", ill}});
  EXPECT_EQ(all.status, 503);
  EXPECT_EQ(all.body, "shard \"\":\n" + well.body + "shard \"gpu-a\":\n" + ill.body);
  EXPECT_EQ(HealthOf({{"", well}, {"gpu-a", well}}).status, 200);
}

}  // namespace
}  // namespace fairlead::cmd
