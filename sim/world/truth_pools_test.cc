#include "sim/world/truth_pools.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/world/pool_objects.h"

namespace fairlead::sim::world {
namespace {

class TruthPoolsTest : public ::testing::Test {
 protected:
  TruthPoolsTest() {
    server_.Listen([this](const ApiServer::Commit& commit) { pools_.OnCommit(commit); });
  }
  static Json Pool(const std::vector<std::pair<const char*, const char*>>& fields) {
    Operation operation;
    operation.With("name", "p");
    for (const auto& [key, value] : fields) operation.With(key, value);
    return MakePool(operation);
  }
  void Create(const Json& pool) {
    ASSERT_TRUE(server_.Create(ResourceType::kNodePools, pool, "test").ok());
  }
  void Change(const Json& pool) {
    const auto change = [&](Json& object) {
      object["spec"] = pool["spec"];
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kNodePools, "", "p", change, "test").ok());
  }
  void Remove() { ASSERT_TRUE(server_.Remove(ResourceType::kNodePools, "", "p", "test").ok()); }
  void Wait(int64_t seconds) { time_.RunUntil(time_.now() + absl::Seconds(seconds)); }
  size_t InForce(int64_t seconds_ago) {
    return pools_.InForceSince("p", time_.now() - absl::Seconds(seconds_ago)).size();
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  TruthPools pools_{&time_};
};

TEST_F(TruthPoolsTest, ReadsWhatAPoolPermits) {
  const PoolFacts pool = ReadPool(Pool({{"types", "gpu1,gpu8"},
                                        {"zones", "zone-a"},
                                        {"max", "3"},
                                        {"policy", "WhenEmpty"},
                                        {"after", "Never"},
                                        {"budget", "0%"}}));
  EXPECT_EQ(pool.fault, "");
  EXPECT_TRUE(pool.Permits("gpu8", "zone-a"));
  EXPECT_FALSE(pool.Permits("gpu4", "zone-a"));
  EXPECT_FALSE(pool.Permits("gpu8", "zone-b"));
  EXPECT_EQ(pool.max_nodes, 3);
  EXPECT_EQ(pool.empties, false);
  EXPECT_EQ(pool.removal, absl::InfiniteDuration());
  EXPECT_EQ(pool.empties_at_once, 0);
}

TEST_F(TruthPoolsTest, KnowsWhatIsWrong) {
  for (const char* wrong : {"provider", "after", "schedule", "sharing"}) {
    EXPECT_NE(ReadPool(Pool({{"wrong", wrong}})).fault, "") << wrong;
  }
  EXPECT_EQ(ReadPool(Pool({{"label_zone", "zone-z"}})).fault, "");
  EXPECT_EQ(ReadPool(Pool({{"label_zone", "zone-z"}, {"zones", "zone-z"}})).fault, "");
  EXPECT_NE(ReadPool(Pool({{"label_zone", "zone-z"}, {"zones", "zone-a"}})).fault, "");
  EXPECT_NE(ReadPool(Pool({{"label_zone", "zone-a"}, {"zones", "zone-a,zone-b"}})).fault, "");
}

TEST_F(TruthPoolsTest, ABudgetForOtherReasonsHoldsNoEmptyNode) {
  const PoolFacts pool = ReadPool(Pool({{"budget", "0"}, {"budget_reason", "Underutilized"}}));
  EXPECT_FALSE(pool.empties_at_once.has_value());
}

TEST_F(TruthPoolsTest, AVersionIsInForceUntilItMayHaveBeenForgotten) {
  EXPECT_TRUE(pools_.NoneSince(time_.now()));
  Create(Pool({{"max", "1"}}));
  Wait(20);
  EXPECT_FALSE(pools_.NoneSince(time_.now() - absl::Seconds(10)));
  EXPECT_TRUE(pools_.NoneSince(time_.now() - absl::Seconds(30)));
  Change(Pool({{"max", "2"}}));
  EXPECT_EQ(InForce(10), 2U);
  Wait(20);
  EXPECT_EQ(InForce(10), 1U);
  Remove();
  EXPECT_TRUE(pools_.LapsedSince("p", time_.now()));
  EXPECT_TRUE(pools_.NoneSince(time_.now()));
  Wait(20);
  EXPECT_EQ(InForce(10), 0U);
}

TEST_F(TruthPoolsTest, TheLastRightVersionMayStayWhileTheObjectIsWrong) {
  Create(Pool({{"max", "1"}}));
  Wait(20);
  EXPECT_FALSE(pools_.LapsedSince("p", time_.now() - absl::Seconds(10)));
  Change(Pool({{"wrong", "after"}}));
  Wait(100);
  EXPECT_EQ(InForce(10), 1U);
  EXPECT_TRUE(pools_.LapsedSince("p", time_.now() - absl::Seconds(10)));
  Change(Pool({{"max", "2"}}));
  Wait(100);
  EXPECT_EQ(InForce(10), 1U);
  EXPECT_FALSE(pools_.LapsedSince("p", time_.now() - absl::Seconds(10)));
  // Another object of the name has nothing of the former.
  Remove();
  Create(Pool({{"wrong", "provider"}}));
  Wait(100);
  EXPECT_EQ(InForce(10), 0U);
}

}  // namespace
}  // namespace fairlead::sim::world
