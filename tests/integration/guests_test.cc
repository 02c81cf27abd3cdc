// A stock kube-scheduler that asks Fairlead about its pods, by the protocol of scheduler extenders:
// the real kube-scheduler binds them, to the nodes that it is told, when their queue permits it.
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
  // Both, as docs/guests.md has it.
  void StartBoth(bool node_cache_capable = true) {
    Settings settings;
    settings.more = absl::StrCat("metricsBindAddress: 127.0.0.1:0\nguests:\n  schedulerNames: [",
                                 kGuest, "]\n  bindTimeout: 20s\n");
    ChildProcess& fairlead = Start(settings);
    int port = 0;
    ASSERT_TRUE(Eventually("it serves", [&] {
      const std::string log = fairlead.Log();
      const size_t at = log.find(" port=");
      return at != std::string::npos &&
             absl::SimpleAtoi(log.substr(at + 6, log.find('\n', at) - at - 6), &port);
    }));
    const std::string config = Plane::Get()->NewFile("kube-scheduler.yaml");
    std::ofstream(config) << absl::StrCat(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "clientConnection: {kubeconfig: ",
        Plane::Get()->kubeconfig(),
        ", qps: 500, burst: 1000}\nleaderElection: {leaderElect: false}\n",
        "podMaxBackoffSeconds: 1\nprofiles:\n- schedulerName: ", kGuest,
        "\nextenders:\n- urlPrefix: http://127.0.0.1:", port,
        "/extender\n  filterVerb: filter\n  preemptVerb: preempt\n  nodeCacheCapable: ",
        node_cache_capable ? "true" : "false", "\n");
    kube_scheduler_ = std::make_unique<ChildProcess>(Plane::Get()->KubeScheduler(config),
                                                     Plane::Get()->NewFile("kube-scheduler.log"));
  }
  void MakeGuest(const std::string& name, int gpus, const std::string& group = "") {
    MakePod({.name = name, .gpus = gpus, .group = group, .scheduler = kGuest});
  }
  // What kube-scheduler says of the pod.
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
  std::unique_ptr<ChildProcess> kube_scheduler_;
};

TEST_F(GuestsTest, KubeSchedulerBindsWhatTheQueuePermits) {
  for (const bool node_cache_capable : {true, false}) {
    SCOPED_TRACE(node_cache_capable);
    MakeQueue("team", 2, 2);
    MakeNode("a", 4);
    StartBoth(node_cache_capable);
    MakeGuest("first", 2);
    EXPECT_TRUE(Bound({"first"})) << kube_scheduler_->Log();
    MakeGuest("second", 2);
    // The verdict, in kube-scheduler's own words about nodes.
    EXPECT_TRUE(IsTold("second", "0/1 nodes are available: 1 QueueLimitReached: "));
    EXPECT_TRUE(IsTold("second", "limit of 2 GPUs"));
    EXPECT_EQ(NodeOf("second"), "");
    // The queue's room comes back: kube-scheduler is woken.
    api().Delete(Path(kPods, "first") + "?gracePeriodSeconds=0");
    EXPECT_TRUE(Bound({"second"})) << kube_scheduler_->Log();
    kube_scheduler_.reset();
    IntegrationTest::TearDown();
    IntegrationTest::SetUp();
  }
}

TEST_F(GuestsTest, BothSchedulersShareQueuesAndNodes) {
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
  EXPECT_TRUE(IsTold("guest-2", "QueueLimitReached: "));
  ExpectNoNodeOvercommitted();
}

TEST_F(GuestsTest, AGangStartsWholeOrNotAtAll) {
  MakeQueue("team", -1, -1);
  MakeNode("a", 1);
  StartBoth();
  MakeGroup("g", 3);
  for (const char* name : {"g-0", "g-1", "g-2"}) MakeGuest(name, 1, "g");
  EXPECT_TRUE(IsTold("g-0", "InsufficientCapacity: "));
  EXPECT_TRUE(IsTold("g-2", "InsufficientCapacity: "));
  for (const char* name : {"g-0", "g-1", "g-2"}) EXPECT_EQ(NodeOf(name), "");
  MakeNode("b", 2);
  EXPECT_TRUE(Bound({"g-0", "g-1", "g-2"})) << kube_scheduler_->Log();
  ExpectNoNodeOvercommitted();
}

TEST_F(GuestsTest, PodsWithoutAQueueAreKubeSchedulersOwn) {
  MakeNode("a", 1);
  StartBoth();
  api().Create(kPods,
               absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"system"},)",
                            R"("spec":{"schedulerName":")", kGuest,
                            R"(","containers":[{"name":"c","image":"i"}]}})"));
  EXPECT_TRUE(Bound({"system"})) << kube_scheduler_->Log();
  EXPECT_EQ(VerdictOf("system"), "");
}

}  // namespace
}  // namespace fairlead::integration
