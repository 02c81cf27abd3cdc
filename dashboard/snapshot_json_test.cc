#include "dashboard/snapshot_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "document/json.h"

namespace fairlead::dashboard {
namespace {

Json Parsed(const Snapshot& snapshot) {
  const std::string text = SnapshotJson(snapshot);
  absl::StatusOr<Json> json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << json.status() << "\n" << text.substr(0, 400);
  return json.ok() ? *json : Json();
}

NodeLine Node(const std::string& name, const std::string& pool, bool coming) {
  NodeLine node;
  node.name = name;
  node.pool = pool;
  node.status = coming ? "Ordered" : "Ready";
  node.ours = !pool.empty();
  node.coming = coming;
  node.gpu_milli = 8000;
  node.used_gpu_milli = coming ? 0 : 2500;
  node.micro_usd_per_hour = 1'000'000;
  return node;
}

TEST(SnapshotJsonTest, AnEmptyClusterIsWholeJson) {
  const Json json = Parsed({});
  EXPECT_EQ(json.TextAt({"totals", "nodes"}), "0");
  for (const char* key : {"queues", "waiting", "nodes", "purchases", "pools"}) {
    ASSERT_NE(json.Find(key), nullptr) << key;
    EXPECT_TRUE(json.Find(key)->items().empty()) << key;
  }
}

TEST(SnapshotJsonTest, NamesOfTheClusterStayWhatTheyAre) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"'\\\n\xE2\x80\xAE &amp; \xFF";
  Snapshot snapshot;
  snapshot.queues.resize(1);
  snapshot.queues[0].name = snapshot.queues[0].problem = hostile;
  snapshot.waiting.resize(1);
  snapshot.waiting[0].workload = snapshot.waiting[0].message = hostile;
  snapshot.waiting[0].helps = {hostile};
  snapshot.nodes = {Node(hostile, hostile, false)};
  snapshot.purchases.resize(1);
  snapshot.purchases[0].message = hostile;
  snapshot.purchases[0].workloads = {hostile};
  const Json json = Parsed(snapshot);
  const std::string valid = hostile.substr(0, hostile.size() - 1) + "\xEF\xBF\xBD";
  EXPECT_EQ(json.Find("queues")->items()[0].TextAt({"name"}), valid);
  EXPECT_EQ(json.Find("waiting")->items()[0].TextAt({"workload"}), valid);
  EXPECT_EQ(json.Find("waiting")->items()[0].Find("helps")->items()[0].text(), valid);
  EXPECT_EQ(json.Find("nodes")->items()[0].TextAt({"pool"}), valid);
  EXPECT_EQ(json.Find("pools")->items()[0].TextAt({"name"}), valid);
  EXPECT_EQ(json.Find("purchases")->items()[0].TextAt({"message"}), valid);
}

TEST(SnapshotJsonTest, UnlimitedAndUnknownAreNull) {
  Snapshot snapshot;
  snapshot.queues.resize(1);
  snapshot.queues[0].limit_gpu_milli = 0;
  snapshot.purchases.resize(1);
  const Json json = Parsed(snapshot);
  EXPECT_TRUE(json.Find("queues")->items()[0].Find("quota")->is_null());
  EXPECT_EQ(json.Find("queues")->items()[0].TextAt({"limit"}), "0");
  EXPECT_TRUE(json.Find("purchases")->items()[0].Find("price")->is_null());
}

TEST(SnapshotJsonTest, TimesThatAreNoneAreLeftOut) {
  Snapshot snapshot;
  snapshot.waiting.resize(2);
  snapshot.waiting[0].since = absl::InfinitePast();
  snapshot.waiting[1].since = absl::FromUnixSeconds(7);
  snapshot.waiting[1].expected_at = absl::InfiniteFuture();
  const Json json = Parsed(snapshot);
  EXPECT_EQ(json.Find("waiting")->items()[0].Find("since"), nullptr);
  EXPECT_EQ(json.Find("waiting")->items()[1].TextAt({"since"}), "7000");
  EXPECT_EQ(json.Find("waiting")->items()[1].Find("expected"), nullptr);
}

TEST(SnapshotJsonTest, TotalsCountWhatCanBeUsedAndPoolsCountTheirNodes) {
  Snapshot snapshot;
  snapshot.nodes = {Node("a", "big", false), Node("b", "big", true), Node("c", "", false)};
  snapshot.micro_usd_per_hour = 2'000'000;
  const Json json = Parsed(snapshot);
  EXPECT_EQ(json.TextAt({"totals", "nodes"}), "3");
  EXPECT_EQ(json.TextAt({"totals", "coming"}), "1");
  EXPECT_EQ(json.TextAt({"totals", "gpus"}), "16000") << "not what is still to come";
  EXPECT_EQ(json.TextAt({"totals", "used"}), "5000");
  EXPECT_EQ(json.TextAt({"totals", "bill"}), "2000000");
  const std::vector<Json>& pools = json.Find("pools")->items();
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].TextAt({"name"}), "big");
  EXPECT_EQ(pools[0].TextAt({"nodes"}), "2");
  EXPECT_EQ(pools[0].TextAt({"gpus"}), "8000");
  EXPECT_EQ(pools[1].TextAt({"nodes"}), "1");
}

// Control characters are the longest when escaped.
TEST(SnapshotJsonTest, ItIsBoundedWhateverTheClusterHas) {
  const std::string endless(100'000, '\x01');
  Snapshot snapshot;
  snapshot.queues.resize(kQueueRows + 7);
  snapshot.waiting.resize(5000);
  snapshot.purchases.resize(kPurchaseRows + 1);
  for (size_t i = 0; i < kNodeRows + 3; ++i) {
    snapshot.nodes.push_back(Node("n", absl::StrCat("pool-", i), false));
  }
  snapshot.queues[0].problem = snapshot.queues[0].name = endless;
  snapshot.waiting[0].message = endless;
  snapshot.waiting[0].helps.assign(50, endless);
  snapshot.purchases[0].message = endless;
  snapshot.purchases[0].workloads.assign(50, "a/b");
  snapshot.nodes[0].micro_usd_per_hour = std::numeric_limits<int32_t>::max();
  const Json json = Parsed(snapshot);
  const auto rows = [&](const char* key) { return json.Find(key)->items().size(); };
  EXPECT_EQ(rows("queues"), kQueueRows);
  EXPECT_EQ(json.TextAt({"queuesMore"}), "7");
  EXPECT_EQ(rows("waiting"), kWaitingRows);
  EXPECT_EQ(json.TextAt({"waitingMore"}), absl::StrCat(5000 - kWaitingRows));
  EXPECT_EQ(json.TextAt({"totals", "waiting"}), "5000");
  EXPECT_EQ(rows("nodes"), kNodeRows);
  EXPECT_EQ(json.TextAt({"nodesMore"}), "3");
  EXPECT_EQ(rows("purchases"), kPurchaseRows);
  EXPECT_EQ(rows("pools"), kPoolRows);
  const Json& purchase = json.Find("purchases")->items()[0];
  EXPECT_EQ(purchase.Find("workloads")->items().size(), kReasons);
  EXPECT_EQ(purchase.TextAt({"workloadsMore"}), absl::StrCat(50 - kReasons));
  EXPECT_EQ(json.Find("waiting")->items()[0].Find("helps")->items().size(), kHelps);
  EXPECT_LT(SnapshotJson(snapshot).size(), size_t{1} << 20);
}

}  // namespace
}  // namespace fairlead::dashboard
