#include "cmd/fairlead/run/dashboard_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;

TEST(DashboardFlagsTest, WithoutAnAddressThereIsNoDashboard) {
  EXPECT_FALSE(ParseDashboardFlags("", "")->has_value());
  EXPECT_FALSE(ParseDashboardFlags("0", "none")->has_value());
}

TEST(DashboardFlagsTest, OnlyALoopbackAddressNeedsNoToken) {
  EXPECT_FALSE((*ParseDashboardFlags("127.0.0.1:8082", ""))->needs_token);
  EXPECT_FALSE((*ParseDashboardFlags("[::1]:8082", ""))->needs_token);
  for (const char* open : {":8082", "0.0.0.0:8082", "[::]:8082", "10.0.0.1:8082"}) {
    EXPECT_TRUE((*ParseDashboardFlags(open, ""))->needs_token) << open;
  }
}

TEST(DashboardFlagsTest, TheFlagDecidesWhereItIsGiven) {
  EXPECT_TRUE((*ParseDashboardFlags("127.0.0.1:8082", "token"))->needs_token);
  EXPECT_FALSE((*ParseDashboardFlags(":8082", "none"))->needs_token);
}

TEST(DashboardFlagsTest, ErrorsNameTheFlag) {
  EXPECT_THAT(std::string(ParseDashboardFlags("localhost:1", "").status().message()),
              HasSubstr("--dashboard-bind-address"));
  EXPECT_THAT(std::string(ParseDashboardFlags("", "basic").status().message()),
              HasSubstr("--dashboard-auth basic: must be token or none"));
}

}  // namespace
}  // namespace fairlead::cmd
