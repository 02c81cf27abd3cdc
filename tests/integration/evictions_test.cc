// Evictions by the real process on the real API server: PodDisruptionBudgets, refusals, condition
// and event. No controller and no kubelet runs: the test's own patches start pods and set what
// budgets allow.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kBudgets[] = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/default/events";

class EvictionsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    RemoveBudgets();
  }
  void TearDown() override {
    RemoveBudgets();
    IntegrationTest::TearDown();
  }
  void RemoveBudgets() {
    for (const Json& budget : api().List(kBudgets)) {
      api().Delete(Path(kBudgets, budget.TextAt({"metadata", "name"})));
    }
  }

  // Queue "rich" has quota 0 and uses everything, "poor" has the whole quota.
  void RichAndPoor(int gpus) {
    MakeQueue("rich", 0, -1);
    MakeQueue("poor", gpus, -1);
    MakeNode("n1", gpus);
  }
  // Runs a pod that we bind, then marks it running and ready as a kubelet would; app: "" or a
  // label's value.
  void Run(const PodSpec& pod, const std::string& app) {
    MakePod(pod);
    if (!app.empty()) {
      api().Merge(Path(kPods, pod.name),
                  absl::StrCat(R"({"metadata":{"labels":{"app":")", app, R"("}}})"));
    }
    ASSERT_TRUE(Bound({pod.name}));
    api().Merge(
        Path(kPods, pod.name) + "/status",
        R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  }
  // Selects pods with that app; empty: all.
  void MakeBudget(const std::string& name, const std::string& app, int allowed) {
    const std::string labels = app.empty() ? "" : absl::StrCat(R"("app":")", app, R"(")");
    api().Create(kBudgets,
                 absl::StrCat(R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget",)",
                              R"("metadata":{"name":")", name, R"("},"spec":{"minAvailable":1,)",
                              R"("selector":{"matchLabels":{)", labels, "}}}}"));
    Allow(name, allowed);
  }
  void Allow(const std::string& budget, int allowed) {
    api().Merge(
        Path(kBudgets, budget) + "/status",
        absl::StrCat(R"({"status":{"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,)",
                     R"("expectedPods":1,"disruptionsAllowed":)", allowed, "}}"));
  }
  bool Leaving(const std::string& pod) {
    return !Pod(pod).TextAt({"metadata", "deletionTimestamp"}).empty();
  }
  // Requests to evict that the server has answered so far.
  double AskedForEvictions() {
    return api().Metric("apiserver_request_total", {R"(subresource="eviction")"});
  }
  // The server counts a request when it has answered it.
  ::testing::AssertionResult Asked(double before, double times) {
    return Eventually(
        absl::StrCat("evictions asked for ", times, " times"),
        [&] { return AskedForEvictions() - before == times; },
        [&] { return absl::StrCat(AskedForEvictions() - before); });
  }
  // The rest of the message after its first sentence.
  std::string MessageOf(const std::string& pod) {
    return Pod(pod).TextAt({"metadata", "annotations", "fairlead.dev/verdict"});
  }
};

TEST_F(EvictionsTest, AProtectedPodIsSparedWhereAnotherChoiceExists) {
  RichAndPoor(3);
  MakeBudget("web", "web", 0);
  Start({});
  // A gang above its minimum would lose its extra pod first.
  api().Create(kGroups, GroupText("gang", 1, "rich"));
  Run({.name = "plain", .queue = "rich"}, "");
  Run({.name = "g1", .queue = "rich", .group = "gang"}, "web");
  Run({.name = "g2", .queue = "rich", .group = "gang"}, "web");
  const double before = AskedForEvictions();
  MakePod({.name = "needy", .queue = "poor"});
  ASSERT_TRUE(Eventually(
      "the plain one leaves", [&] { return Leaving("plain"); },
      [&] { return MessageOf("needy"); }));
  EXPECT_FALSE(Leaving("g1"));
  EXPECT_FALSE(Leaving("g2"));
  EXPECT_TRUE(Asked(before, 1));

  // The condition that the server sets with the eviction has our words, and so has an event.
  ASSERT_TRUE(Eventually("the condition", [&] {
    const Json pod = Pod("plain");
    const Json* const condition = FindCondition(pod, "DisruptionTarget");
    return condition != nullptr && condition->TextAt({"reason"}) == "PreemptionByScheduler";
  }));
  const Json pod = Pod("plain");
  const Json* const condition = FindCondition(pod, "DisruptionTarget");
  EXPECT_EQ(condition->TextAt({"status"}), "True");
  const std::string message = condition->TextAt({"message"});
  EXPECT_TRUE(absl::StrContains(
      message,
      "Evicted (reclaim) for workload default/needy of queue poor: GPUs held/fair share: "
      "queue rich 3/2"))
      << message;
  const std::string uid = pod.TextAt({"metadata", "uid"});
  EXPECT_TRUE(Eventually("the event", [&] {
    for (const Json& event : api().List(kEvents)) {
      if (event.TextAt({"regarding", "uid"}) == uid && event.TextAt({"reason"}) == "Preempted") {
        return event.TextAt({"action"}) == "Preempting" &&
               event.TextAt({"related", "name"}) == "needy" &&
               absl::StartsWith(event.TextAt({"note"}), "Preempted by ") &&
               absl::EndsWith(event.TextAt({"note"}), message);
      }
    }
    return false;
  }));
}

TEST_F(EvictionsTest, ABudgetThatSaysNoIsAskedOnceAndGoneToWhenItMoves) {
  RichAndPoor(1);
  MakeBudget("all", "", 0);
  Start({});
  Run({.name = "only", .queue = "rich"}, "");
  const double before = AskedForEvictions();
  MakePod({.name = "needy", .queue = "poor"});
  ASSERT_TRUE(Eventually(
      "the verdict names the budget",
      [&] {
        return absl::StrContains(MessageOf("needy"), "refused by PodDisruptionBudget default/all");
      },
      [&] { return MessageOf("needy"); }));
  // Decisions continue: each of these is at least one.
  for (int i = 0; i < 10; ++i) {
    const std::string name = absl::StrCat("other", i);
    MakePod({.name = name, .queue = "poor"});
    ASSERT_TRUE(Eventually("verdict", [&] { return !VerdictOf(name).empty(); }));
  }
  EXPECT_EQ(AskedForEvictions() - before, 1);
  EXPECT_EQ(VerdictOf("needy"), "InsufficientCapacity");
  EXPECT_FALSE(Leaving("only"));
  const Json spared = Pod("only");
  EXPECT_EQ(FindCondition(spared, "DisruptionTarget"), nullptr)
      << "a pod that is not evicted must not look as if it were";

  Allow("all", 1);
  ASSERT_TRUE(Eventually("it goes now", [&] { return Leaving("only"); }));
  EXPECT_TRUE(Asked(before, 2));
  const Json budget = api().Get(Path(kBudgets, "all")).body;
  EXPECT_EQ(budget.TextAt({"status", "disruptionsAllowed"}), "0");
  EXPECT_NE(budget.At({"status", "disruptedPods", "only"}), nullptr) << budget.Compact();
}

TEST_F(EvictionsTest, APodOfSeveralBudgetsIsNotAskedFor) {
  RichAndPoor(1);
  MakeBudget("one", "", 1);
  MakeBudget("two", "", 1);
  Start({});
  Run({.name = "only", .queue = "rich"}, "");
  const double before = AskedForEvictions();
  MakePod({.name = "needy", .queue = "poor"});
  ASSERT_TRUE(Eventually(
      "the verdict tells why",
      [&] { return absl::StrContains(MessageOf("needy"), "several PodDisruptionBudgets"); },
      [&] { return MessageOf("needy"); }));
  EXPECT_EQ(AskedForEvictions(), before);
  // The server's behaviour on which the search and the write protocol depend.
  const Answer answer =
      api().Call("POST", Path(kPods, "only") + "/eviction",
                 R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"only"}})");
  EXPECT_EQ(answer.body.TextAt({"kind"}), "Status") << answer.text;
  EXPECT_EQ(answer.body.TextAt({"status"}), "Failure") << answer.text;
  EXPECT_EQ(answer.body.TextAt({"code"}), "500") << answer.text;
  EXPECT_FALSE(Leaving("only"));
}

TEST_F(EvictionsTest, VictimsBeyondWhatMayBeInFlightFollow) {
  constexpr int kOnNodes = 5, kVictims = 300;  // the window is 256
  RichAndPoor(kVictims / kOnNodes);
  for (int n = 2; n <= kOnNodes; ++n) MakeNode(absl::StrCat("n", n), kVictims / kOnNodes);
  Start({});
  for (int i = 0; i < kVictims; ++i) MakePod({.name = absl::StrCat("v", i), .queue = "rich"});
  ASSERT_TRUE(Eventually("all of them run", [&] {
    int bound = 0;
    for (const Json& pod : api().List(kPods)) {
      bound += pod.TextAt({"spec", "nodeName"}).empty() ? 0 : 1;
    }
    return bound == kVictims;
  }));
  api().Merge(Path(kQueues, "poor"), R"({"spec":{"resources":{"gpu":{"quota":300}}}})");
  api().Create(kGroups, GroupText("needy", kOnNodes, "poor"));
  for (int i = 0; i < kOnNodes; ++i) {
    MakePod({.name = absl::StrCat("needy", i),
             .queue = "poor",
             .gpus = kVictims / kOnNodes,
             .group = "needy"});
  }
  EXPECT_TRUE(Eventually("all of them leave", [&] {
    int leaving = 0;
    for (const Json& pod : api().List(kPods)) {
      leaving += pod.TextAt({"metadata", "deletionTimestamp"}).empty() ? 0 : 1;
    }
    return leaving == kVictims;
  }));
}

}  // namespace
}  // namespace fairlead::integration
