// Decisions of the real process on the real API server.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

using SchedulingTest = IntegrationTest;

TEST_F(SchedulingTest, AGangStartsAsAWholeOrNotAtAll) {
  MakeQueue("team", -1, -1);
  MakeNode("small", 3);
  const auto history = api().Watch(kPods);
  ChildProcess& process = Start({});
  MakeGroup("gang", 4);
  const std::vector<std::string> gang = {"g1", "g2", "g3", "g4"};
  for (const std::string& name : gang) MakePod({.name = name, .group = "gang"});
  ASSERT_TRUE(Eventually(
      "verdict of the gang",
      [&] { return GroupVerdict("gang").TextAt({"code"}) == "InsufficientCapacity"; },
      [&] { return GroupVerdict("gang").Compact(); }));
  EXPECT_EQ(GroupVerdict("gang").TextAt({"category"}), "capacity");
  EXPECT_EQ(GroupVerdict("gang").TextAt({"minMember"}), "4");
  // A later workload gets a place: the capacity for three of the gang was not used.
  MakePod({.name = "single", .gpus = 3});
  ASSERT_TRUE(Bound({"single"}));
  EXPECT_FALSE(history->Any([](const Json& pod) {
    return absl::StartsWith(pod.TextAt({"metadata", "name"}), "g") &&
           !pod.TextAt({"spec", "nodeName"}).empty();
  }));

  MakeNode("large", 4);
  ASSERT_TRUE(Bound(gang));
  EXPECT_TRUE(Eventually(
      "the verdict is gone", [&] { return GroupVerdict("gang").TextAt({"code"}).empty(); },
      [&] { return GroupVerdict("gang").Compact(); }));
  ExpectNoNodeOvercommitted();
  EXPECT_TRUE(process.Running());
}

TEST_F(SchedulingTest, NodesAreBoughtForAWholeGang) {
  MakeQueue("team", -1, -1);
  Start({.hook = true});
  const auto requests = api().Watch(kRequests);
  MakeGroup("gang", 2);
  for (const char* name : {"g1", "g2"}) MakePod({.name = name, .gpus = 8, .group = "gang"});
  ASSERT_TRUE(Bound({"g1", "g2"}));
  EXPECT_NE(NodeOf("g1"), NodeOf("g2"));
  EXPECT_EQ(requests->objects(), 2u);
  ExpectNoNodeOvercommitted();
}

TEST_F(SchedulingTest, WhatIsOverTheLimitIsToldSoAndBuysNothing) {
  MakeQueue("team", 1, 1);
  MakeQueue("other", 1, 1);
  Start({.hook = true});
  const auto requests = api().Watch(kRequests);
  MakePod({.name = "first"});
  ASSERT_TRUE(Bound({"first"}));
  ASSERT_EQ(requests->objects(), 1u);

  MakePod({.name = "second"});
  ASSERT_TRUE(Eventually("verdict of the second",
                         [&] { return VerdictOf("second") == "QueueLimitReached"; }));
  const Json pod = Pod("second");
  const Json* const condition = FindCondition(pod, "PodScheduled");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(condition->TextAt({"status"}), "False");
  // Not "Unschedulable": no other autoscaler provisions for it either.
  EXPECT_EQ(condition->TextAt({"reason"}), "QueueLimitReached");
  EXPECT_TRUE(absl::StrContains(condition->TextAt({"message"}), "team")) << condition->Compact();
  const absl::StatusOr<Json> verdict =
      Json::Parse(pod.TextAt({"metadata", "annotations", "fairlead.dev/verdict"}));
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->TextAt({"category"}), "policy");
  EXPECT_EQ(verdict->TextAt({"queueBlock", "queue"}), "team");
  EXPECT_EQ(verdict->TextAt({"queueBlock", "limit"}), "1");
  EXPECT_EQ(verdict->TextAt({"queueBlock", "used"}), "1");
  EXPECT_EQ(verdict->TextAt({"queueBlock", "requested"}), "1");

  // Later demand of another queue is provisioned for, and nothing else.
  MakePod({.name = "elsewhere", .queue = "other"});
  ASSERT_TRUE(Bound({"elsewhere"}));
  EXPECT_EQ(requests->objects(), 2u);
  EXPECT_EQ(api().List(kNodes).size(), 2u);
  EXPECT_EQ(NodeOf("second"), "");

  // The pod is not stuck.
  api().Merge(Path(kQueues, "team"), R"({"spec":{"resources":{"gpu":{"limit":2}}}})");
  ASSERT_TRUE(Bound({"second"}));
  EXPECT_EQ(VerdictOf("second"), "");
}

TEST_F(SchedulingTest, ABrokenQueueIsToldAndStopsNoOther) {
  MakeQueue("team", -1, -1);
  api().Create(kQueues, R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":)"
                        R"({"name":"orphan"},"spec":{"parentQueue":"missing","resources":{}}})");
  MakeNode("n1", 2);
  Start({});
  MakePod({.name = "lost", .queue = "no-such-queue"});
  MakePod({.name = "orphaned", .queue = "orphan"});
  MakePod({.name = "good"});
  ASSERT_TRUE(Bound({"good"}));
  for (const char* name : {"lost", "orphaned"}) {
    EXPECT_TRUE(Eventually(
        absl::StrCat("verdict of ", name), [&] { return VerdictOf(name) == "QueueNotFound"; },
        [&] { return VerdictOf(name); }));
  }
}

// The rights to read namespaces are those of a user of the test; claims_test.cc has the manifests'.
TEST_F(SchedulingTest, ANamespaceSelectorReadsTheLabelsOfNamespaces) {
  constexpr char kNamespace[] = "/api/v1/namespaces/default";
  MakeQueue("team", -1, -1);
  for (const char* node : {"n1", "n2"}) {
    MakeNode(node, 8);
    api().Merge(
        Path(kNodes, node),
        absl::StrCat(R"({"metadata":{"labels":{"kubernetes.io/hostname":")", node, R"("}}})"));
  }
  api().Merge(kNamespace, R"({"metadata":{"labels":{"example.com/apart":"yes"}}})");
  Start({});
  const std::string apart =
      R"("affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)"
      R"({"labelSelector":{},"namespaceSelector":{"matchLabels":{"example.com/apart":"yes"}},)"
      R"("topologyKey":"kubernetes.io/hostname"}]}},)";
  MakePod({.name = "first", .more_spec = apart});
  ASSERT_TRUE(Bound({"first"}));
  MakePod({.name = "second", .more_spec = apart});
  ASSERT_TRUE(Bound({"second"}));
  EXPECT_NE(NodeOf("first"), NodeOf("second"));
  MakePod({.name = "third", .more_spec = apart});
  ASSERT_TRUE(Eventually("verdict of the third", [&] { return !VerdictOf("third").empty(); }));
  EXPECT_EQ(NodeOf("third"), "");
  // Its namespace is selected no more.
  api().Merge(kNamespace, R"({"metadata":{"labels":{"example.com/apart":null}}})");
  EXPECT_TRUE(Bound({"third"}));
}

TEST_F(SchedulingTest, AnUnneededNodeIsGivenBackBehindItsTaintAndTheTaintsOfOthersStay) {
  MakeQueue("team", -1, -1);
  Start({.hook = true, .unneeded_after = "1s"});
  MakePod({.name = "p"});
  ASSERT_TRUE(Bound({"p"}));
  const std::string node = NodeOf("p");
  const std::string path = Path(kNodes, node);
  // The finalizer keeps it for inspection.
  Json before = api().Get(path).body;
  api().Merge(path, absl::StrCat(
                        R"({"metadata":{"finalizers":["example.com/keep"],"annotations":)",
                        R"({"example.com/note":"mine"}},"spec":{"taints":[{"key":"example.com/t",)",
                        R"("value":"v","effect":"PreferNoSchedule"}]}})"));
  api().Delete(Path(kPods, "p"));
  // A quiet watch of pods reports its progress with bookmarks alone, about one per minute.
  ASSERT_TRUE(Eventually(
      "the node is being deleted",
      [&] { return !api().Get(path).body.TextAt({"metadata", "deletionTimestamp"}).empty(); },
      nullptr, absl::Minutes(3)));
  const Json after = api().Get(path).body;
  const Json* const taints = after.At({"spec", "taints"});
  ASSERT_NE(taints, nullptr);
  EXPECT_TRUE(absl::StrContains(taints->Compact(), "example.com/t")) << taints->Compact();
  EXPECT_TRUE(absl::StrContains(taints->Compact(), "fairlead.dev/to-be-removed"));
  EXPECT_EQ(after.TextAt({"metadata", "annotations", "example.com/note"}), "mine");
  api().Merge(path, R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(Eventually("no request is left", [&] { return api().List(kRequests).empty(); }));
  EXPECT_TRUE(api().List(kNodes).empty());
}

}  // namespace
}  // namespace fairlead::integration
