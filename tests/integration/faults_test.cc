// Faults of the network, the API server and other schedulers, with the real process.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/source.h"
#include "tests/integration/fixture.h"
#include "tests/integration/proxy.h"

namespace fairlead::integration {
namespace {

class FaultsTest : public IntegrationTest {
 protected:
  // 201 and 409 answers to bindings so far.
  double Bindings(int code) {
    return api().Metric("apiserver_request_total",
                        {"subresource=\"binding\"", absl::StrCat("code=\"", code, "\"")});
  }
  // A binding has left the process and is held: no other message is as long.
  static ::testing::AssertionResult OnTheWay(const Proxy& proxy) {
    return Eventually(
        "a binding is on the way", [&] { return proxy.held_requests() > 100; },
        [&] { return absl::StrCat(proxy.held_requests(), " bytes held"); });
  }
};

// The names of all pods that a source has reported.
std::set<std::string> Names(kube::EventQueue& queue, std::set<std::string> known) {
  std::vector<model::ClusterEvent> events;
  queue.DrainInto(events, absl::ZeroDuration());
  for (const model::ClusterEvent& event : events) {
    if (const auto* upsert = std::get_if<model::Upsert>(&event)) {
      if (const auto* pod = std::get_if<model::Pod>(&upsert->object)) known.insert(pod->meta.name);
    } else if (const auto* gone = std::get_if<model::Delete>(&event)) {
      if (gone->kind == model::Kind::kPod) known.erase(gone->name);
    }
  }
  return known;
}

kube::ReflectorStats PodStats(const kube::ClusterSource& source) {
  for (const kube::ReflectorStats& stats : source.GetStats()) {
    if (stats.kind == model::Kind::kPod) return stats;
  }
  return {};
}

// An API server that was restarted knows nothing older than its start: every earlier watch gets
// 410.
TEST_F(FaultsTest, AfterA410TheClusterIsReadAgainAndWhatWasMissedIsMadeUpFor) {
  Plane& plane = *Plane::Get();
  Proxy proxy(plane.port());
  MakeQueue("team", -1, -1);
  MakeNode("n1", 1);
  ChildProcess& process = Start({.kubeconfig = plane.KubeconfigThrough(proxy.port())});
  MakePod({.name = "old"});
  ASSERT_TRUE(Bound({"old"}));

  // A client of the project besides the process, to observe.
  kube::ClientConfig through = plane.config();
  through.server.url = absl::StrCat("https://127.0.0.1:", proxy.port());
  Api client(through);
  kube::EventQueue queue;
  kube::ClusterSource source(client.transport(), client.transport(), client.clock(), queue);
  source.Start();
  std::set<std::string> seen;
  ASSERT_TRUE(Eventually("the source has the pod", [&] {
    seen = Names(queue, seen);
    return source.Synced() && seen.contains("old");
  }));
  const kube::ReflectorStats before = PodStats(source);
  ASSERT_EQ(before.snapshots, 1);

  proxy.Cut();
  // While the line is cut, the known pod is deleted and others are created.
  api().Delete(Path(kPods, "old"));
  MakePod({.name = "new"});
  plane.StopApiServer();
  plane.StartApiServer();
  const Answer expired = api().Get(absl::StrCat(
      kPods, "?watch=true&timeoutSeconds=1&resourceVersion=", before.resource_version));
  ASSERT_TRUE(expired.status == 410 || absl::StrContains(expired.text, "\"code\":410"))
      << expired.status << " " << expired.text;
  proxy.Mend();

  ASSERT_TRUE(Bound({"new"}));
  EXPECT_TRUE(process.Running());
  ASSERT_TRUE(Eventually("the source has caught up", [&] {
    seen = Names(queue, seen);
    return seen == std::set<std::string>{"new"};
  }));
  EXPECT_EQ(PodStats(source).snapshots, 2);
  source.Stop();
  ExpectNoNodeOvercommitted();
}

TEST_F(FaultsTest, LostConnectionsAreMadeAgainWithoutReadingEverything) {
  Plane& plane = *Plane::Get();
  Proxy proxy(plane.port());
  kube::ClientConfig through = plane.config();
  through.server.url = absl::StrCat("https://127.0.0.1:", proxy.port());
  Api client(through);
  kube::EventQueue queue;
  kube::ClusterSource source(client.transport(), client.transport(), client.clock(), queue);
  source.Start();
  ASSERT_TRUE(Eventually("synced", [&] { return source.Synced(); }));
  std::set<std::string> seen;
  for (int round = 0; round < 3; ++round) {
    proxy.Cut();
    const std::string name = absl::StrCat("p", round);
    MakePod({.name = name});
    proxy.Mend();
    ASSERT_TRUE(Eventually(absl::StrCat(name, " is seen"), [&] {
      seen = Names(queue, seen);
      return seen.contains(name);
    }));
  }
  EXPECT_EQ(PodStats(source).snapshots, 1);
  source.Stop();
}

TEST_F(FaultsTest, TheApiServerMayStopAndStartAgain) {
  Plane& plane = *Plane::Get();
  MakeQueue("team", -1, -1);
  MakeNode("n1", 2);
  // A lease that outlasts the pause; with a shorter one the process ends, as it should.
  ChildProcess& process = Start({.election = {60, 40, 1}});
  MakePod({.name = "before"});
  ASSERT_TRUE(Bound({"before"}));
  const auto pid = process.pid();
  plane.StopApiServer();
  plane.StartApiServer();
  MakePod({.name = "after"});
  ASSERT_TRUE(Bound({"after"}));
  EXPECT_TRUE(process.Running());
  EXPECT_EQ(process.pid(), pid);
  ExpectNoNodeOvercommitted();
}

TEST_F(FaultsTest, ABindingThatAnotherSchedulerWonIsTakenAsItIs) {
  Plane& plane = *Plane::Get();
  Proxy proxy(plane.port());
  MakeQueue("team", -1, -1);
  MakeNode("n1", 2);
  ChildProcess& process = Start({.kubeconfig = plane.KubeconfigThrough(proxy.port())});
  MakePod({.name = "warm-up"});  // the connection for writes is open from here on
  ASSERT_TRUE(Bound({"warm-up"}));
  const double conflicts = Bindings(409);

  proxy.HoldRequests(true);
  MakePod({.name = "contended"});
  ASSERT_TRUE(OnTheWay(proxy));
  MakeNode("n2", 1);  // unknown to Fairlead when it decided
  ASSERT_EQ(BindPod("contended", "n2"), 201);
  proxy.HoldRequests(false);
  ASSERT_TRUE(Eventually("the conflict", [&] { return Bindings(409) > conflicts; }));

  // The capacity that was assumed on n1 is released; on n2 it is used.
  MakePod({.name = "on-n1"});
  ASSERT_TRUE(Bound({"on-n1"}));
  EXPECT_EQ(NodeOf("on-n1"), "n1");
  EXPECT_EQ(NodeOf("contended"), "n2");
  MakePod({.name = "too-many"});
  ASSERT_TRUE(Eventually("no room for more",
                         [&] { return VerdictOf("too-many") == "InsufficientCapacity"; }));
  ExpectNoNodeOvercommitted();
  EXPECT_TRUE(process.Running());
}

TEST_F(FaultsTest, ABindingOfUnknownOutcomeIsNeitherForgottenNorMadeElsewhere) {
  Plane& plane = *Plane::Get();
  Proxy proxy(plane.port());
  MakeQueue("team", -1, -1);
  for (const char* name : {"n1", "n2", "n3"}) MakeNode(name, 1);
  ChildProcess& process = Start({.kubeconfig = plane.KubeconfigThrough(proxy.port())});
  MakePod({.name = "first"});
  ASSERT_TRUE(Bound({"first"}));
  const double conflicts = Bindings(409);
  const auto history = api().Watch(kPods);

  // Done, but the answer never comes.
  proxy.HoldRequests(true);
  MakePod({.name = "answer-lost"});
  ASSERT_TRUE(OnTheWay(proxy));
  proxy.HoldAnswers(true);
  proxy.HoldRequests(false);
  ASSERT_TRUE(Bound({"answer-lost"}));
  proxy.Cut();
  proxy.HoldAnswers(false);
  proxy.Mend();
  // Sent, but it never arrives.
  MakePod({.name = "probe", .gpus = 9});  // answered with a verdict: the line works again
  ASSERT_TRUE(Eventually("a verdict", [&] { return !VerdictOf("probe").empty(); }));
  proxy.HoldRequests(true);
  MakePod({.name = "request-lost"});
  ASSERT_TRUE(OnTheWay(proxy));
  proxy.Cut();
  proxy.HoldRequests(false);
  proxy.Mend();
  ASSERT_TRUE(Bound({"request-lost"}));

  std::map<std::string, std::set<std::string>> nodes;
  for (const History::Event& event : history->events()) {
    const std::string node = event.object.TextAt({"spec", "nodeName"});
    if (!node.empty()) nodes[event.object.TextAt({"metadata", "name"})].insert(node);
  }
  for (const auto& [pod, places] : nodes) EXPECT_EQ(places.size(), 1u) << pod;
  EXPECT_EQ(Bindings(409), conflicts);
  ExpectNoNodeOvercommitted();
  EXPECT_TRUE(process.Running());
}

}  // namespace
}  // namespace fairlead::integration
