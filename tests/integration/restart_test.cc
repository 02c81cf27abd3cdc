// Processes that end, are killed or stand still, and their successors.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/integration/proxy.h"

namespace fairlead::integration {
namespace {

// ---- in the middle of a purchase
// -------------------------------------------------------------------

struct KillPoint {
  const char* name;
  bool lose_answers;  // the request object is written, and the process never learns it
  // The state at which the process is killed.
  const char* phase;  // of the request; "" any
  bool node;
  friend void PrintTo(const KillPoint& point, std::ostream* out) { *out << point.name; }
};

class PurchaseTest : public IntegrationTest, public ::testing::WithParamInterface<KillPoint> {};

INSTANTIATE_TEST_SUITE_P(
    KilledWhen, PurchaseTest,
    ::testing::Values(KillPoint{"RequestIsWrittenAndTheAnswerLost", true, "", false},
                      KillPoint{"RequestIsWritten", false, "", false},
                      KillPoint{"NodeIsLaunched", false, "Launched", false},
                      KillPoint{"NodeIsThere", false, "", true}),
    [](const ::testing::TestParamInfo<KillPoint>& point) { return point.param.name; });

TEST_P(PurchaseTest, ExactlyOneNodeComes) {
  Plane& plane = *Plane::Get();
  const KillPoint& point = GetParam();
  Proxy proxy(plane.port());
  MakeQueue("team", -1, -1);
  ChildProcess& first = Start({.kubeconfig = plane.KubeconfigThrough(proxy.port()),
                               .hook = true,
                               .boot_delay = point.node ? "300ms" : "2s"});
  const auto requests = api().Watch(kRequests);
  const auto nodes = api().Watch(kNodes);
  if (point.lose_answers) {
    // The connection for writes is open from here on.
    MakePod({.name = "warm-up", .queue = "nowhere"});
    ASSERT_TRUE(Eventually("a verdict", [&] { return !VerdictOf("warm-up").empty(); }));
    proxy.HoldRequests(true);
  }
  MakePod({.name = "p"});
  if (point.lose_answers) {
    ASSERT_TRUE(
        Eventually("the request is on the way", [&] { return proxy.held_requests() > 100; }));
    proxy.HoldAnswers(true);
    proxy.HoldRequests(false);
  }
  ASSERT_TRUE(Eventually(point.name, [&] {
    const std::vector<Json> there = api().List(kRequests);
    return there.size() == 1 &&
           (*point.phase == '\0' || there[0].TextAt({"status", "phase"}) == point.phase) &&
           (!point.node || !api().List(kNodes).empty());
  }));
  first.Kill();
  ASSERT_EQ(NodeOf("p"), "");
  if (!point.node) {
    ASSERT_EQ(nodes->objects(), 0u) << "the machine was too fast for this test";
  }

  Start({.identity = "fairlead-b", .hook = true});
  ASSERT_TRUE(Bound({"p"}));
  EXPECT_EQ(requests->objects(), 1u);
  EXPECT_EQ(nodes->objects(), 1u);
  EXPECT_TRUE(Eventually("the request is ready", [&] {
    const std::vector<Json> there = api().List(kRequests);
    return there.size() == 1 && there[0].TextAt({"status", "phase"}) == "Ready";
  }));
}

// ---- the journal of a process
// ----------------------------------------------------------------------

class JournalTest : public IntegrationTest {};

// A queue's limit, a purchase, a pod that is deleted: whatever was decided is decided again, also
// by what a killed process leaves.
TEST_F(JournalTest, ReplayDecidesTheSame) {
  Plane& plane = *Plane::Get();
  MakeQueue("team", -1, 3);
  for (const bool kill : {false, true}) {
    SCOPED_TRACE(kill ? "killed" : "stopped");
    const std::string folder = plane.NewFile("journals");
    ChildProcess& process = Start({.hook = true, .journal = folder});
    const std::string prefix = kill ? "k" : "s";
    for (int i = 0; i < 3; ++i) MakePod({.name = absl::StrCat(prefix, i)});
    ASSERT_TRUE(Bound({prefix + "0", prefix + "1", prefix + "2"}));
    MakePod({.name = prefix + "late"});
    ASSERT_TRUE(Eventually("a verdict", [&] { return !VerdictOf(prefix + "late").empty(); }));
    api().Delete(Path(kPods, prefix + "0"));
    ASSERT_TRUE(Bound({prefix + "late"}));
    if (kill) {
      process.Kill();
    } else {
      process.Signal(SIGTERM);
      ASSERT_EQ(process.Wait(absl::Seconds(30)), 0);
    }
    std::string journal;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) journal = entry.path();
    ChildProcess replay({FAIRLEAD_BINARY, "replay", journal}, plane.NewFile("replay.txt"));
    EXPECT_EQ(replay.Wait(absl::Seconds(60)), 0);
    EXPECT_TRUE(absl::StrContains(replay.Log(), "Every decision is the same.")) << replay.Log();
    ChildProcess redact(
        {FAIRLEAD_BINARY, "journal", "redact", journal, "--to", plane.NewFile("redacted")},
        plane.NewFile("redact.txt"));
    EXPECT_EQ(redact.Wait(absl::Seconds(60)), 0) << redact.Log();
    EXPECT_TRUE(absl::StrContains(redact.Log(), "Every decision is the same.")) << redact.Log();
    for (const Json& pod : api().List(kPods)) {
      api().Delete(Path(kPods, pod.TextAt({"metadata", "name"})));
    }
  }
}

// The recorded decisions are played once more with another limit, where no cluster can be reached.
TEST_F(JournalTest, WhatIfTellsWhatAnotherLimitWouldHaveChanged) {
  Plane& plane = *Plane::Get();
  MakeQueue("team", -1, 1);
  MakeNode("n", 4);
  const std::string folder = plane.NewFile("journals");
  ChildProcess& process = Start({.journal = folder});
  MakePod({.name = "first"});
  ASSERT_TRUE(Bound({"first"}));
  MakePod({.name = "second"});
  ASSERT_TRUE(Eventually("a verdict", [&] { return !VerdictOf("second").empty(); }));
  // What is recorded has to be longer than a kubelet of the play takes to start a pod.
  const absl::Time recorded = absl::Now() + absl::Seconds(4);
  ASSERT_TRUE(Eventually("a recording of some length", [&] { return absl::Now() > recorded; }));
  api().Delete(Path(kPods, "first"));
  ASSERT_TRUE(Bound({"second"}));
  process.Signal(SIGTERM);
  ASSERT_EQ(process.Wait(absl::Seconds(30)), 0);

  const std::string change = plane.NewFile("limit.yaml");
  std::ofstream(change) << R"(apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  resources: {gpu: {quota: -1, limit: 2}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}}
)";
  ChildProcess what_if({"/usr/bin/env", "KUBECONFIG=/nowhere", FAIRLEAD_BINARY, "what-if",
                        "--journal", folder, "-f", change},
                       plane.NewFile("what-if.txt"));
  EXPECT_EQ(what_if.Wait(absl::Seconds(60)), 0) << what_if.Log();
  const std::string text = what_if.Log();
  EXPECT_TRUE(absl::StrContains(text, "2 pods. Played twice in a simulated cluster.")) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("QueueLimitReached +1 +0\n"))) << text;
}

// ---- leadership
// ------------------------------------------------------------------------------------

class LeaderTest : public IntegrationTest {
 protected:
  std::string Holder() { return api().Get(kLease).body.TextAt({"spec", "holderIdentity"}); }
  std::vector<std::string> MakePods(const std::string& prefix, int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back(absl::StrCat(prefix, i));
      MakePod({.name = names.back()});
    }
    return names;
  }
  void ExpectNoPodMoved(const History& history) {
    std::map<std::string, std::string> first;
    for (const History::Event& event : history.events()) {
      const std::string node = event.object.TextAt({"spec", "nodeName"});
      if (node.empty()) continue;
      const auto [place, is_new] =
          first.try_emplace(event.object.TextAt({"metadata", "uid"}), node);
      EXPECT_EQ(place->second, node) << event.object.TextAt({"metadata", "name"});
    }
    ExpectNoNodeOvercommitted();
  }
  double Conflicts() {
    return api().Metric("apiserver_request_total", {"subresource=\"binding\"", "code=\"409\""});
  }
};

TEST_F(LeaderTest, WhenTheLeaderIsKilledTheOtherGoesOnAndBindsNothingTwice) {
  MakeQueue("team", -1, -1);
  for (int i = 0; i < 4; ++i) MakeNode(absl::StrCat("n", i), 8);
  ChildProcess& a = Start({.identity = "a", .election = {3, 2, 1}});
  ASSERT_TRUE(Says(a, "msg=\"became leader\""));
  ChildProcess& b = Start({.identity = "b", .election = {3, 2, 1}});
  const auto history = api().Watch(kPods);
  const double conflicts = Conflicts();
  const std::vector<std::string> before = MakePods("before-", 12);
  ASSERT_TRUE(Bound({before.front()}));
  a.Kill();  // perhaps with bindings in flight
  const std::vector<std::string> after = MakePods("after-", 4);
  ASSERT_TRUE(Bound(before));
  ASSERT_TRUE(Bound(after));
  EXPECT_TRUE(Says(b, "msg=\"became leader\""));
  EXPECT_EQ(Holder(), "b");
  EXPECT_EQ(Conflicts(), conflicts);
  ExpectNoPodMoved(*history);
}

TEST_F(LeaderTest, AStandbyDecidesNothing) {
  MakeQueue("team", -1, -1);
  MakeNode("n1", 8);
  ChildProcess& a = Start({.identity = "a", .election = {3, 2, 1}});
  ASSERT_TRUE(Says(a, "msg=\"became leader\""));
  ChildProcess& b = Start({.identity = "b", .election = {3, 2, 1}});
  ASSERT_TRUE(Bound(MakePods("p", 3)));
  EXPECT_FALSE(absl::StrContains(b.Log(), "msg=decision"));
  EXPECT_FALSE(absl::StrContains(b.Log(), "msg=\"became leader\""));
}

TEST_F(LeaderTest, AReplicaThatIsAskedToEndHandsOverAtOnce) {
  MakeQueue("team", -1, -1);
  MakeNode("n1", 8);
  // No process could take this lease by waiting for its end.
  ChildProcess& a = Start({.identity = "a", .election = {3600, 1800, 1}});
  ASSERT_TRUE(Says(a, "msg=\"became leader\""));
  ChildProcess& b = Start({.identity = "b", .election = {3600, 1800, 1}});
  a.Signal(SIGTERM);
  EXPECT_EQ(a.Wait(kPatience), 0);
  ASSERT_TRUE(Says(b, "msg=\"became leader\""));
  ASSERT_TRUE(Bound(MakePods("p", 2)));
}

TEST_F(LeaderTest, ALeaderThatStoodStillWritesNothingMoreAndEnds) {
  MakeQueue("team", -1, -1);
  MakeNode("n1", 8);
  ChildProcess& a = Start({.identity = "a", .election = {3, 2, 1}});
  ASSERT_TRUE(Says(a, "msg=\"became leader\""));
  ChildProcess& b = Start({.identity = "b", .election = {3, 2, 1}});
  const auto history = api().Watch(kPods);
  const double conflicts = Conflicts();
  a.Signal(SIGSTOP);
  const std::vector<std::string> pods = MakePods("p", 6);
  ASSERT_TRUE(Says(b, "msg=\"became leader\""));
  a.Signal(SIGCONT);
  // A supervisor would start it again.
  EXPECT_EQ(a.Wait(kPatience), 1) << a.Log();
  ASSERT_TRUE(Bound(pods));
  EXPECT_EQ(Holder(), "b");
  EXPECT_EQ(Conflicts(), conflicts);
  ExpectNoPodMoved(*history);
}

}  // namespace
}  // namespace fairlead::integration
