// A kube-scheduler that asks Fairlead about its pods, by the protocol of scheduler extenders (a
// stock one) or with Fairlead's plugin compiled in: the real kube-scheduler binds them, to the
// nodes that it is told, when their queue permits it.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kGuest[] = "team-scheduler";

class GuestsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    if (Plane::Get() != nullptr && !Plane::Get()->HasKubeScheduler()) {
      GTEST_SKIP() << "this control plane has no kube-scheduler";
    }
    IntegrationTest::SetUp();
  }
  void TearDown() override {
    kube_scheduler_.reset();
    IntegrationTest::TearDown();
  }
  enum class By : uint8_t { kNames, kNodes, kPlugin };
  // Both schedulers, as docs/guests.md has it.
  void StartBoth(By by) {
    by_ = by;
    fairlead_ = &Start(WithPort(0));
    const int port = PortOf(by == By::kPlugin ? "serving guests" : "serving /livez");
    ASSERT_NE(port, 0);
    std::string config = absl::StrCat(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: ",
        Plane::Get()->kubeconfig(),
        ", qps: 500, burst: 1000}\nleaderElection: {leaderElect: false}\n"
        "podMaxBackoffSeconds: 1\nprofiles:\n- schedulerName: ",
        kGuest, "\n");
    if (by == By::kPlugin) {
      absl::StrAppend(&config,
                      "  plugins:\n    multiPoint: {enabled: [{name: Fairlead}]}\n"
                      "    postFilter: {enabled: [{name: Fairlead}]}\n"
                      "  pluginConfig:\n  - name: Fairlead\n    args: {address: \"127.0.0.1:",
                      port, "\"}\n", plugin_config_);
    } else {
      absl::StrAppend(&config, "extenders:\n- urlPrefix: http://127.0.0.1:", port,
                      "/extender\n  filterVerb: filter\n  preemptVerb: preempt\n"
                      "  nodeCacheCapable: ",
                      by == By::kNames ? "true" : "false", "\n");
    }
    const std::string file = Plane::Get()->NewFile("kube-scheduler.yaml");
    std::ofstream(file) << config;
    kube_scheduler_ = std::make_unique<ChildProcess>(Plane::Get()->KubeScheduler(file),
                                                     Plane::Get()->NewFile("kube-scheduler.log"));
  }
  // For gRPC; 0: any.
  [[nodiscard]] Settings WithPort(int port) const {
    Settings settings;
    settings.election = election_;
    settings.more = absl::StrCat("metricsBindAddress: 127.0.0.1:0\nguests:\n  schedulerNames: [",
                                 kGuest, "]\n  bindTimeout: ", bind_timeout_,
                                 "\n  bindAddress: 127.0.0.1:", port, "\n");
    return settings;
  }
  // 0: it does not serve.
  int PortOf(const std::string& message) {
    int port = 0;
    EXPECT_TRUE(Eventually(message, [&] {
      const std::string log = fairlead_->Log();
      const size_t line = log.find(message);
      const size_t at = line == std::string::npos ? line : log.find(" port=", line);
      return at != std::string::npos &&
             absl::SimpleAtoi(log.substr(at + 6, log.find('\n', at) - at - 6), &port);
    }));
    return port;
  }
  void MakeGuest(const std::string& name, int gpus, const std::string& group = "") {
    MakePod({.name = name, .gpus = gpus, .group = group, .scheduler = kGuest});
  }
  // Why the pod waits: what kube-scheduler says, or Fairlead where the plugin keeps it out of the
  // queue of kube-scheduler, which says nothing then.
  std::string ConditionOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* const condition = FindCondition(object, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  }
  ::testing::AssertionResult IsTold(const std::string& pod, const std::string& text) {
    return Eventually(
        text, [&] { return absl::StrContains(ConditionOf(pod), text); },
        [&] { return absl::StrCat(ConditionOf(pod), "\n", kube_scheduler_->Log()); });
  }
  // kube-scheduler has found no node for the pod, and no victims.
  ::testing::AssertionResult Tried(const std::string& pod) {
    return Eventually("tried in vain", [&] {
      for (const Json& event : api().List("/apis/events.k8s.io/v1/namespaces/default/events")) {
        if (event.TextAt({"regarding", "name"}) == pod &&
            event.TextAt({"reason"}) == "FailedScheduling") {
          return true;
        }
      }
      return false;
    });
  }
  By by_ = By::kNames;
  std::string bind_timeout_ = "20s";
  std::string plugin_config_;  // entries of pluginConfig of kube-scheduler
  std::vector<int> election_;
  ChildProcess* fairlead_ = nullptr;
  std::unique_ptr<ChildProcess> kube_scheduler_;
};

class GuestsByTest : public GuestsTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    GuestsTest::SetUp();
    const bool plugin = static_cast<By>(GetParam()) == By::kPlugin;
    if (plugin && !IsSkipped() && !Plane::Get()->KubeSchedulerHasPlugin()) {
      GTEST_SKIP() << "this kube-scheduler has no plugin Fairlead";
    }
  }
  void StartBoth() { GuestsTest::StartBoth(static_cast<By>(GetParam())); }
};
std::string WayOf(const ::testing::TestParamInfo<int>& info) {
  static const std::vector<std::string> kWays = {"ExtenderByNames", "ExtenderByNodes", "Plugin"};
  return kWays[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(All, GuestsByTest, ::testing::Range(0, 3), WayOf);

TEST_P(GuestsByTest, KubeSchedulerBindsWhatTheQueuePermits) {
  MakeQueue("team", 2, 2);
  MakeNode("a", 4);
  StartBoth();
  MakeGuest("first", 2);
  EXPECT_TRUE(Bound({"first"})) << kube_scheduler_->Log();
  MakeGuest("second", 2);
  if (by_ != By::kPlugin) {
    // The verdict, in kube-scheduler's own words about nodes.
    EXPECT_TRUE(IsTold("second", "0/1 nodes are available: 1 QueueLimitReached: "));
  }
  EXPECT_TRUE(IsTold("second", "limit of 2 GPUs"));
  EXPECT_EQ(NodeOf("second"), "");
  // The queue's room comes back: kube-scheduler is woken.
  api().Delete(Path(kPods, "first") + "?gracePeriodSeconds=0");
  EXPECT_TRUE(Bound({"second"})) << kube_scheduler_->Log();
}

TEST_P(GuestsByTest, BothSchedulersShareQueuesAndNodes) {
  MakeQueue("team", -1, 3);
  MakeNode("a", 2);
  MakeNode("b", 2);
  StartBoth();
  MakeGuest("guest-0", 1);
  MakePod({.name = "own-0", .gpus = 1});
  MakeGuest("guest-1", 1);
  EXPECT_TRUE(Bound({"guest-0", "own-0", "guest-1"})) << kube_scheduler_->Log();
  MakePod({.name = "own-1", .gpus = 1});
  MakeGuest("guest-2", 1);
  EXPECT_TRUE(Eventually("told", [&] { return VerdictOf("own-1") == "QueueLimitReached"; }));
  EXPECT_TRUE(IsTold("guest-2", "limit of 3 GPUs"));
  ExpectNoNodeOvercommitted();
}

TEST_P(GuestsByTest, AGangStartsWholeOrNotAtAll) {
  MakeQueue("team", -1, -1);
  MakeNode("a", 1);
  StartBoth();
  MakeGroup("g", 3);
  for (const char* name : {"g-0", "g-1", "g-2"}) MakeGuest(name, 1, "g");
  EXPECT_TRUE(Eventually(
      "a verdict", [&] { return GroupVerdict("g").TextAt({"code"}) == "InsufficientCapacity"; }));
  if (by_ != By::kPlugin) {
    EXPECT_TRUE(IsTold("g-0", "InsufficientCapacity: "));
    EXPECT_TRUE(IsTold("g-2", "InsufficientCapacity: "));
  }
  for (const char* name : {"g-0", "g-1", "g-2"}) EXPECT_EQ(NodeOf(name), "");
  MakeNode("b", 2);
  EXPECT_TRUE(Bound({"g-0", "g-1", "g-2"})) << kube_scheduler_->Log();
  ExpectNoNodeOvercommitted();
}

TEST_P(GuestsByTest, PodsWithoutAQueueAreKubeSchedulersOwn) {
  MakeNode("a", 1);
  StartBoth();
  api().Create(kPods,
               absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"system"},)",
                            R"("spec":{"schedulerName":")", kGuest,
                            R"(","containers":[{"name":"c","image":"i"}]}})"));
  EXPECT_TRUE(Bound({"system"})) << kube_scheduler_->Log();
  EXPECT_EQ(VerdictOf("system"), "");
}

// kube-scheduler would evict for it: its preemption knows priorities, and no queues.
TEST_P(GuestsByTest, NothingIsEvictedForAPodThatItsQueueHolds) {
  MakePriorityClass("high", 1'000'000);
  MakeQueue("team", 0, 0);
  MakeQueue("other", -1, -1);
  MakeNode("a", 1);
  StartBoth();
  MakePod({.name = "low", .queue = "other", .gpus = 1, .scheduler = kGuest});
  EXPECT_TRUE(Bound({"low"}));
  PodSpec held{.name = absl::StrCat("held-", GetParam()), .gpus = 1, .scheduler = kGuest};
  held.more_spec = R"("priorityClassName":"high",)";
  MakePod(held);
  EXPECT_TRUE(Eventually("told", [&] { return VerdictOf(held.name) == "QueueLimitReached"; }));
  // The plugin keeps the pod out of kube-scheduler's queue.
  if (by_ != By::kPlugin) {
    EXPECT_TRUE(Tried(held.name));
  }
  EXPECT_TRUE(Pod("low").At({"metadata", "deletionTimestamp"}) == nullptr);
  EXPECT_EQ(NodeOf("low"), "a");
}

// Of a gang that kube-scheduler cannot bind whole, nothing is bound: Fairlead does not know what
// the guest's own configuration refuses.
TEST_F(GuestsTest, ThePluginHoldsAGangUntilAllAreReserved) {
  if (!Plane::Get()->KubeSchedulerHasPlugin()) GTEST_SKIP() << "it has no plugin Fairlead";
  MakeQueue("team", -1, -1);
  MakeNode("a", 1);
  MakeNode("b", 1);
  api().Merge(Path(kNodes, "a"), R"({"metadata":{"labels":{"ok":"yes"}}})");
  bind_timeout_ = "5s";
  plugin_config_ =
      "  - name: NodeAffinity\n    args: {addedAffinity: "
      "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
      "[{matchExpressions: [{key: ok, operator: Exists}]}]}}}\n";
  StartBoth(By::kPlugin);
  MakeGroup("g", 2);
  for (const char* name : {"g-0", "g-1"}) MakeGuest(name, 1, "g");
  EXPECT_TRUE(Eventually(
      "its grants have ended",
      [&] { return GroupVerdict("g").TextAt({"code"}) == "BindingRefused"; },
      [&] { return absl::StrCat(GroupVerdict("g").Compact(), kube_scheduler_->Log()); }));
  for (const char* name : {"g-0", "g-1"}) EXPECT_EQ(NodeOf(name), "");
  api().Merge(Path(kNodes, "b"), R"({"metadata":{"labels":{"ok":"yes"}}})");
  EXPECT_TRUE(Bound({"g-0", "g-1"})) << kube_scheduler_->Log();
}

// Pods that came while Fairlead was away are placed when it is there.
TEST_F(GuestsTest, ThePluginWaitsForFairlead) {
  if (!Plane::Get()->KubeSchedulerHasPlugin()) GTEST_SKIP() << "it has no plugin Fairlead";
  MakeQueue("team", -1, -1);
  MakeNode("a", 2);
  StartBoth(By::kPlugin);
  MakeGuest("first", 1);
  EXPECT_TRUE(Bound({"first"})) << kube_scheduler_->Log();
  const int port = PortOf("serving guests");
  fairlead_->Kill();
  MakeGuest("second", 1);
  fairlead_ = &Start(WithPort(port));
  EXPECT_TRUE(Bound({"second"})) << kube_scheduler_->Log();
}

// A standby does not listen: what the plugin asks is not lost there.
TEST_F(GuestsTest, ThePluginFindsTheNextLeader) {
  if (!Plane::Get()->KubeSchedulerHasPlugin()) GTEST_SKIP() << "it has no plugin Fairlead";
  MakeQueue("team", -1, -1);
  MakeNode("a", 2);
  election_ = {4, 3, 1};
  StartBoth(By::kPlugin);
  MakeGuest("first", 1);
  EXPECT_TRUE(Bound({"first"})) << kube_scheduler_->Log();
  Settings next = WithPort(PortOf("serving guests"));
  next.identity = "fairlead-b";
  ChildProcess* const leader = fairlead_;
  fairlead_ = &Start(next);
  EXPECT_FALSE(absl::StrContains(fairlead_->Log(), "serving guests"));
  leader->Kill();
  MakeGuest("second", 1);
  EXPECT_TRUE(Bound({"second"})) << kube_scheduler_->Log();
  EXPECT_TRUE(absl::StrContains(fairlead_->Log(), "serving guests"));
}

}  // namespace
}  // namespace fairlead::integration
