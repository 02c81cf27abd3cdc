// Two shards of one cluster, each with a process of its own (core/shard.h).
#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kLeaseOfA[] =
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead-a";
constexpr char kInA[] = R"({"metadata":{"labels":{"kai.scheduler/node-pool":"a"}}})";
constexpr char kInNone[] = R"({"metadata":{"labels":{"kai.scheduler/node-pool":null}}})";

class ShardsTest : public IntegrationTest {
 protected:
  // Both lead at once.
  void StartShards(bool hook) {
    for (const std::string value : {"", "a"}) {
      Start({.identity = absl::StrCat("shard-", value),
             .hook = hook,
             .election = {15, 10, 1},
             .flags = {absl::StrCat("--partition-label-value=", value)}});
    }
    ASSERT_TRUE(Eventually("each leads its shard", [&] {
      return HolderOf(kLease) == "shard-" && HolderOf(kLeaseOfA) == "shard-a";
    }));
  }
  std::string HolderOf(const std::string& lease) {
    return api().Get(lease).body.TextAt({"spec", "holderIdentity"});
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    api().Delete(kLeaseOfA);
  }
  void MoveToA(const std::string& path) { api().Merge(path, kInA); }
  void MakePlaces() {
    MakeNode("n", 4);
    MakeNode("n-a", 4);
    MoveToA(Path(kNodes, "n-a"));
    MakeQueue("team", 4, 4);
    MakeQueue("team-a", 4, 4);
    MoveToA(Path(kQueues, "team-a"));
  }
  static std::string LabelA() { return R"("kai.scheduler/node-pool":"a",)"; }
};

TEST_F(ShardsTest, EachSchedulesItsPodsOnItsNodes) {
  MakePlaces();
  StartShards(/*hook=*/false);
  MakePod({.name = "p"});
  MakePod({.name = "p-a", .queue = "team-a", .more_labels = LabelA()});
  // Its group's label counts, and not that of the pods.
  api().Create(kGroups, GroupText("g", 2, "team-a"));
  MoveToA(Path(kGroups, "g"));
  for (const char* name : {"g-0", "g-1"}) MakePod({.name = name, .queue = "team-a", .group = "g"});
  ASSERT_TRUE(Bound({"p", "p-a", "g-0", "g-1"}));
  EXPECT_EQ(NodeOf("p"), "n");
  for (const char* name : {"p-a", "g-0", "g-1"}) EXPECT_EQ(NodeOf(name), "n-a") << name;
  ExpectNoNodeOvercommitted();
}

// One process leads both, and its samples and lines say which.
TEST_F(ShardsTest, OneProcessHasSeveral) {
  MakePlaces();
  ChildProcess& process = Start({.identity = "both",
                                 .election = {15, 10, 1},
                                 .flags = {"--partition-label-value=", "--partition-label-value=a",
                                           "--metrics-bind-address=127.0.0.1:0"}});
  ASSERT_TRUE(Eventually("it leads both shards", [&] {
    return HolderOf(kLease) == "both" && HolderOf(kLeaseOfA) == "both";
  }));
  MakePod({.name = "p"});
  MakePod({.name = "p-a", .queue = "team-a", .more_labels = LabelA()});
  ASSERT_TRUE(Bound({"p", "p-a"}));
  EXPECT_EQ(NodeOf("p"), "n");
  EXPECT_EQ(NodeOf("p-a"), "n-a");
  EXPECT_TRUE(Says(process, "msg=\"became leader\" identity=both shard=a"));
  EXPECT_TRUE(Says(process, "msg=\"became leader\" identity=both shard=\"\""));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(absl::Seconds(10)), 0);
  EXPECT_TRUE(Eventually("both Leases are released",
                         [&] { return HolderOf(kLease).empty() && HolderOf(kLeaseOfA).empty(); }));
}

// A pod that waits has the verdict of its shard, and goes with its group.
TEST_F(ShardsTest, AGroupThatWaitsMovesToAnotherShard) {
  MakePlaces();
  StartShards(/*hook=*/false);
  api().Create(kGroups, GroupText("g", 2, "team"));
  MoveToA(Path(kGroups, "g"));
  for (const char* name : {"g-0", "g-1"}) MakePod({.name = name, .queue = "team", .group = "g"});
  ASSERT_TRUE(Eventually("the group waits for its queue",
                         [&] { return GroupVerdict("g").TextAt({"code"}) == "QueueNotFound"; }));
  api().Merge(Path(kGroups, "g"), kInNone);
  ASSERT_TRUE(Bound({"g-0", "g-1"}));
  for (const char* name : {"g-0", "g-1"}) EXPECT_EQ(NodeOf(name), "n") << name;
}

TEST_F(ShardsTest, WhatOneProvisionsTheOtherLeavesAlone) {
  MakeQueue("team-a", -1, -1);
  MoveToA(Path(kQueues, "team-a"));
  MakeQueue("team", -1, -1);
  StartShards(/*hook=*/true);
  MakePod({.name = "p-a", .queue = "team-a", .more_labels = LabelA()});
  MakePod({.name = "p"});
  ASSERT_TRUE(Bound({"p-a", "p"}));
  const std::vector<Json> requests = api().List(kRequests);
  ASSERT_EQ(requests.size(), 2u);
  for (const char* pod : {"p", "p-a"}) {
    const bool in_a = std::string(pod) == "p-a";
    const std::string node = NodeOf(pod);
    const Json object = api().Get(Path(kNodes, node)).body;
    EXPECT_EQ(object.TextAt({"metadata", "labels", "kai.scheduler/node-pool"}), in_a ? "a" : "");
    const Json request = api().Get(Path(kRequests, node)).body;
    EXPECT_EQ(request.TextAt({"metadata", "labels", "kai.scheduler/node-pool"}), in_a ? "a" : "");
  }
}

}  // namespace
}  // namespace fairlead::integration
