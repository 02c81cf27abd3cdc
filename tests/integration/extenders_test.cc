// Scheduler extenders beside a real API server: Fairlead asks an HTTP server of this test about
// nodes, as kube-scheduler would, and lets it bind.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/transport/loopback_server.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

using kube::LoopbackServer;

constexpr char kPort[] = "example.com/port";

// The names of the nodes of a request, in either form.
std::vector<std::string> NodesOf(const Json& request) {
  std::vector<std::string> names;
  if (const Json* list = request.Find("NodeNames"); list != nullptr && list->is_array()) {
    for (const Json& name : list->items()) names.push_back(name.text());
    return names;
  }
  if (const Json* list = request.At({"Nodes", "items"}); list != nullptr) {
    for (const Json& node : list->items()) names.push_back(node.TextAt({"metadata", "name"}));
  }
  return names;
}

class ExtendersTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    MakeQueue("team", -1, -1);
    server_ = std::make_unique<LoopbackServer>(
        [this](const LoopbackServer::Request& request, LoopbackServer::Connection& connection) {
          const auto body = Json::Parse(request.body);
          const auto answer = answers_.find(request.target);
          if (!body.ok() || answer == answers_.end()) return connection.Answer(404, "");
          {
            const std::lock_guard<std::mutex> lock(mutex_);
            last_[request.target] = *body;
          }
          connection.Answer(200, answer->second(*body), "Content-Type: application/json\r\n");
        });
  }
  // The configuration with one extender at the server, with these fields of it.
  Settings With(const std::string& fields, const std::string& url = "") const {
    Settings settings;
    settings.more = absl::StrCat(
        "---\napiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders:\n- urlPrefix: ",
        url.empty() ? absl::StrCat(server_->url(), "/s") : url, "\n", fields);
    return settings;
  }
  // An address where no server is.
  std::string DeadUrl() {
    const std::string url = server_->url();
    server_.reset();
    return url;
  }
  Json LastAsked(const std::string& target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_[target];
  }
  // A filter that admits the nodes of admitted_ and says "no free port" of the others.
  void Filter() {
    answers_["/s/filter"] = [this](const Json& request) {
      std::string names;
      std::string failed;
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const std::string& node : NodesOf(request)) {
        if (admitted_.contains(node)) {
          absl::StrAppend(&names, names.empty() ? "" : ",", "\"", node, "\"");
        } else {
          absl::StrAppend(&failed, failed.empty() ? "" : ",", "\"", node, "\":\"no free port\"");
        }
      }
      return absl::StrCat("{\"NodeNames\":[", names, "],\"FailedNodes\":{", failed, "}}");
    };
  }
  void Admit(const std::set<std::string>& nodes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    admitted_ = nodes;
  }
  std::string MessageOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* const condition = FindCondition(object, "PodScheduled");
    return condition == nullptr
               ? ""
               : absl::StrCat(condition->TextAt({"reason"}), ": ", condition->TextAt({"message"}));
  }
  ::testing::AssertionResult Waits(const std::string& pod, const std::string& text) {
    return Eventually(
        text, [&] { return absl::StrContains(MessageOf(pod), text); },
        [&] { return MessageOf(pod); });
  }

  std::map<std::string, std::function<std::string(const Json&)>> answers_;  // by path
  std::mutex mutex_;  // guards the rest; the server's threads use it
  std::map<std::string, Json> last_;
  std::set<std::string> admitted_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(ExtendersTest, FiltersAndScoresWholeNodes) {
  for (const char* name : {"a", "b", "c"}) MakeNode(name, 1);
  answers_["/s/filter"] = [](const Json& request) {
    std::string items;
    for (const Json& node : request.At({"Nodes", "items"})->items()) {
      if (node.TextAt({"metadata", "name"}) == "a") continue;
      absl::StrAppend(&items, items.empty() ? "" : ",", R"({"metadata":{"name":")",
                      node.TextAt({"metadata", "name"}), "\"}}");
    }
    return absl::StrCat(R"({"Nodes":{"items":[)", items,
                        R"(]},"FailedAndUnresolvableNodes":{"a":"no such device"}})");
  };
  answers_["/s/prioritize"] = [](const Json&) {
    return R"([{"Host":"b","Score":1},{"Host":"c","Score":9}])";
  };
  Start(With("  filterVerb: filter\n  prioritizeVerb: prioritize\n  weight: 2\n"));
  MakePod({.name = "p", .more_metadata = R"("annotations":{"for-the-extender":"x"},)"});
  EXPECT_TRUE(Bound({"p"}));
  EXPECT_EQ(NodeOf("p"), "c");
  const Json asked = LastAsked("/s/filter");
  EXPECT_EQ(asked.TextAt({"Pod", "metadata", "annotations", "for-the-extender"}), "x");
  EXPECT_EQ(NodesOf(asked).size(), 3u);
  EXPECT_NE(asked.At({"Nodes", "items"})->items()[0].At({"status", "allocatable"}), nullptr);
  EXPECT_EQ(NodesOf(LastAsked("/s/prioritize")), (std::vector<std::string>{"b", "c"}));
}

TEST_F(ExtendersTest, APodThatNoNodeIsAdmittedForWaitsAndIsAskedAboutAgain) {
  for (const char* name : {"a", "b"}) MakeNode(name, 1);
  Filter();
  Start(With("  filterVerb: filter\n  nodeCacheCapable: true\n"));
  MakePod({.name = "p"});
  EXPECT_TRUE(Waits("p", "BindingRefused"));
  EXPECT_TRUE(Waits("p", "the scheduler extenders admit it to no node (2 nodes: no free port)"));
  Admit({"b"});
  EXPECT_TRUE(Bound({"p"}));
  EXPECT_EQ(NodeOf("p"), "b");
}

TEST_F(ExtendersTest, TheOtherPodsOfAGangWait) {
  for (const char* name : {"a", "b", "c"}) MakeNode(name, 1);
  Filter();
  Admit({"a"});
  Start(With("  filterVerb: filter\n  nodeCacheCapable: true\n"));
  MakeGroup("g", 2);
  for (const char* name : {"g-0", "g-1"}) MakePod({.name = name, .group = "g"});
  EXPECT_TRUE(Eventually("a verdict",
                         [&] { return GroupVerdict("g").TextAt({"code"}) == "BindingRefused"; }));
  EXPECT_EQ(NodeOf("g-0"), "");
  EXPECT_EQ(NodeOf("g-1"), "");
  Admit({"a", "c"});
  EXPECT_TRUE(Bound({"g-0", "g-1"}));
}

TEST_F(ExtendersTest, OnlyPodsWithItsResourceAreItsOwnAndItBindsThem) {
  MakeNode("a", 4);
  answers_["/s/bind"] = [this](const Json& request) {
    const int status = BindPod(request.TextAt({"PodName"}), request.TextAt({"Node"}));
    return status == 201 ? std::string("{}") : absl::StrCat("{\"Error\":\"", status, "\"}");
  };
  Start(With(absl::StrCat("  bindVerb: bind\n  managedResources:\n  - name: ", kPort,
                          "\n    ignoredByScheduler: true\n")));
  MakePod({.name = "plain"});
  EXPECT_TRUE(Bound({"plain"}));
  EXPECT_TRUE(LastAsked("/s/bind").is_null());
  api().Create(kPods, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"special",
      "labels":{"kai.scheduler/queue":"team"}},"spec":{"schedulerName":"fairlead","containers":
      [{"name":"c","image":"i","resources":{"limits":{"example.com/port":"1"}}}]}})");
  EXPECT_TRUE(Bound({"special"}));
  EXPECT_EQ(LastAsked("/s/bind").TextAt({"PodName"}), "special");
}

// Of the two nodes the extender lets pods be evicted on one alone.
TEST_F(ExtendersTest, PodsAreEvictedWhereItAgrees) {
  MakePriorityClass("low", 10);
  MakePriorityClass("high", 60);
  for (const char* name : {"a", "b"}) MakeNode(name, 1);
  answers_["/s/preempt"] = [](const Json& request) -> std::string {
    const Json* const victims = request.At({"NodeNameToVictims", "a", "Pods"});
    if (victims == nullptr || victims->items().empty()) return R"({"NodeNameToMetaVictims":{}})";
    return absl::StrCat(R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":")",
                        victims->items()[0].TextAt({"metadata", "uid"}), R"("}]}}})");
  };
  Start(With("  preemptVerb: preempt\n"));
  for (const char* name : {"low-0", "low-1"}) {
    PodSpec pod{.name = name};
    pod.more_spec = R"("priorityClassName":"low",)";
    MakePod(pod);
  }
  ASSERT_TRUE(Bound({"low-0", "low-1"}));
  const bool zero_is_on_a = NodeOf("low-0") == "a";
  PodSpec urgent{.name = "urgent"};
  urgent.more_spec = R"("priorityClassName":"high",)";
  MakePod(urgent);
  // No kubelet ends the pod.
  const auto terminates = [&](const char* name) {
    return Pod(name).At({"metadata", "deletionTimestamp"}) != nullptr;
  };
  EXPECT_TRUE(Eventually("evicted", [&] { return terminates(zero_is_on_a ? "low-0" : "low-1"); }));
  EXPECT_FALSE(terminates(zero_is_on_a ? "low-1" : "low-0"));
  EXPECT_EQ(LastAsked("/s/preempt").TextAt({"Pod", "metadata", "name"}), "urgent");
}

TEST_F(ExtendersTest, ADeadExtenderFailsItsPodsAndSaysSo) {
  MakeNode("a", 1);
  const std::string url = DeadUrl();
  Start(With("  filterVerb: filter\n", url));
  MakePod({.name = "p"});
  EXPECT_TRUE(Waits("p", url));
  EXPECT_EQ(NodeOf("p"), "");
}

TEST_F(ExtendersTest, ADeadExtenderThatIsIgnorableIsLeftOut) {
  MakeNode("a", 1);
  Start(With("  filterVerb: filter\n  ignorable: true\n", DeadUrl()));
  MakePod({.name = "p"});
  EXPECT_TRUE(Bound({"p"}));
}

}  // namespace
}  // namespace fairlead::integration
