// markUnschedulable and schedulingBackoff of KAI's PodGroup, by the real process on the real API
// server, over a restart.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

class AttemptsTest : public IntegrationTest {
 protected:
  void MakeGangOf(const std::string& group, const std::string& field) {
    std::string text = GroupText(group, 2);
    const std::string spec = R"("spec":{)";
    text.insert(text.find(spec) + spec.size(), field + ",");
    api().Create(kGroups, text);
    for (const char* pod : {"-0", "-1"}) MakePod({.name = group + pod, .group = group});
  }
  Json Group(const std::string& name) { return api().Get(Path(kGroups, name)).body; }
  // Null if the group has no entry of that pool.
  static const Json* EntryOf(const Json& group, const std::string& pool) {
    const Json* const entries = group.At({"status", "schedulingConditions"});
    if (entries == nullptr) return nullptr;
    for (const Json& entry : entries->items()) {
      if (entry.TextAt({"nodePool"}) == pool) return &entry;
    }
    return nullptr;
  }
  ::testing::AssertionResult IsTold(const std::string& group, const std::string& code) {
    return Eventually(
        absl::StrCat("verdict ", code, " of ", group),
        [&] { return GroupVerdict(group).TextAt({"code"}) == code; },
        [&] { return GroupVerdict(group).Compact(); });
  }
  static bool IsMarked(const Json& pod) {
    const Json* const condition = FindCondition(pod, "PodScheduled");
    return condition != nullptr && condition->TextAt({"reason"}) == "Unschedulable";
  }
};

TEST_F(AttemptsTest, PodsOfAGroupThatIsNotToBeMarkedAreLeftAlone) {
  MakeQueue("team", -1, -1);
  const auto history = api().Watch(kPods);
  MakeGangOf("quiet", R"("markUnschedulable":false)");
  MakeGangOf("loud", R"("markUnschedulable":true)");
  ChildProcess& process = Start({});
  ASSERT_TRUE(IsTold("quiet", "InsufficientCapacity"));
  for (const char* pod : {"loud-0", "loud-1"}) {
    ASSERT_TRUE(Eventually("others' autoscalers see it", [&] { return IsMarked(Pod(pod)); }));
  }
  // All other writes of the step come before this one.
  MakePod({.name = "later", .queue = "no-such-queue"});
  ASSERT_TRUE(Eventually("a verdict", [&] { return VerdictOf("later") == "QueueNotFound"; }));
  EXPECT_FALSE(history->Any([](const Json& pod) {
    return absl::StartsWith(pod.TextAt({"metadata", "name"}), "quiet") &&
           FindCondition(pod, "PodScheduled") != nullptr;
  }));

  Plane* const plane = Plane::Get();
  ChildProcess explain({FAIRLEAD_BINARY, "explain", "quiet-0", "-n", "default", "-o", "json",
                        "--kubeconfig", plane->kubeconfig()},
                       plane->NewFile("explain.log"));
  EXPECT_EQ(explain.Wait(kPatience), 0) << explain.Log();
  EXPECT_TRUE(absl::StrContains(explain.Log(), "InsufficientCapacity")) << explain.Log();

  MakeNode("n", 4);
  ASSERT_TRUE(Bound({"quiet-0", "quiet-1", "loud-0", "loud-1"}));
  EXPECT_TRUE(process.Running());
}

TEST_F(AttemptsTest, AGroupWithOneAttemptIsNotTriedAgainUntilItIsMovedAlsoByANewProcess) {
  MakeQueue("team", -1, -1);
  MakeGangOf("once", R"("schedulingBackoff":1)");
  // Another pool's scheduler has had it before.
  const std::string theirs =
      R"({"type":"UnschedulableOnNodePool","nodePool":"pool-b","reason":"Unschedulable",)"
      R"("message":"theirs","transitionID":"4","status":"True",)"
      R"("lastTransitionTime":"2026-01-01T00:00:00Z"})";
  api().Merge(Path(kGroups, "once") + "/status",
              absl::StrCat(R"({"status":{"schedulingConditions":[)", theirs, "]}}"));
  ChildProcess& first = Start({});
  ASSERT_TRUE(IsTold("once", "SchedulingBackoff"));
  const Json told = Group("once");
  const Json* const entry = EntryOf(told, "default");
  ASSERT_NE(entry, nullptr) << told.Compact();
  EXPECT_TRUE(absl::StartsWith(entry->TextAt({"message"}), "Node-Pool 'default': "));
  ASSERT_NE(entry->Find("reasons"), nullptr);
  ASSERT_EQ(entry->Find("reasons")->items().size(), 1u);
  EXPECT_EQ(entry->Find("reasons")->items()[0].TextAt({"reason"}), "InsufficientCapacity");
  ASSERT_NE(EntryOf(told, "pool-b"), nullptr);
  EXPECT_EQ(EntryOf(told, "pool-b")->TextAt({"message"}), "theirs");

  // Capacity exists now, for other pods.
  MakeNode("n", 8);
  MakePod({.name = "witness"});
  ASSERT_TRUE(Bound({"witness"}));
  EXPECT_EQ(NodeOf("once-0"), "");
  const std::string version = Group("once").TextAt({"metadata", "resourceVersion"});
  first.Kill();
  ChildProcess& second = Start({.identity = "fairlead-b"});
  MakePod({.name = "witness-2"});
  ASSERT_TRUE(Bound({"witness-2"}));
  MakePod({.name = "witness-3", .queue = "no-such-queue"});
  ASSERT_TRUE(Eventually("a verdict", [&] { return VerdictOf("witness-3") == "QueueNotFound"; }));
  EXPECT_EQ(NodeOf("once-0"), "");
  EXPECT_EQ(Group("once").TextAt({"metadata", "resourceVersion"}), version) << "nothing to say";

  api().Merge(Path(kGroups, "once"),
              R"({"metadata":{"labels":{"kai.scheduler/node-pool":"pool-c"}}})");
  ASSERT_TRUE(Bound({"once-0", "once-1"}));
  ASSERT_TRUE(IsTold("once", ""));
  for (const char* pool : {"default", "pool-b"}) {
    EXPECT_NE(EntryOf(Group("once"), pool), nullptr) << pool;
  }
  EXPECT_TRUE(second.Running());
}

}  // namespace
}  // namespace fairlead::integration
