// The same random workload, decided by Fairlead and by the real kube-scheduler on a real API
// server, one pod after another. Each accepts the state in which the other ends: its filters admit
// every bound pod to its node, as the cluster was when the pod was bound, and refuse every node to
// every pod that waits at the end.
#include <gmock/gmock.h>

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/differential/judge.h"
#include "tests/differential/random_world.h"
#include "tests/integration/child_process.h"
#include "tests/integration/fixture.h"
#include "tests/integration/plane.h"
#include "tests/integration/waiting.h"

namespace fairlead::integration {
namespace {

using differential::RandomWorld;
using nlohmann::json;

constexpr int kFirstWorld = 20261128;
constexpr int kWorldNodes = 8;
constexpr int kWorldPods = 48;
constexpr char kAllPods[] = "/api/v1/pods";

std::string PathOf(const json& pod) {
  return absl::StrCat("/api/v1/namespaces/", pod["metadata"]["namespace"].get<std::string>(),
                      "/pods");
}

std::string KeyOf(const json& pod) {
  return absl::StrCat(pod["metadata"]["namespace"].get<std::string>(), "/",
                      pod["metadata"]["name"].get<std::string>());
}

// The answers of kube-scheduler's plugins, or of Fairlead's, about worlds.
using Judge = std::function<std::vector<json>(const std::vector<json>&)>;

std::vector<json> JudgeHere(const std::vector<json>& worlds) {
  std::vector<json> answers;
  for (const json& world : worlds) {
    const absl::StatusOr<json> answer = differential::Judge(world);
    EXPECT_TRUE(answer.ok()) << answer.status();
    answers.push_back(answer.ok() ? *answer : json::object());
  }
  return answers;
}

std::vector<json> JudgeByKubeScheduler(const std::vector<json>& worlds) {
  Plane& plane = *Plane::Get();
  const std::string questions = plane.NewFile("worlds"), answered = plane.NewFile("answers");
  std::ofstream out(questions);
  for (const json& world : worlds) out << world.dump() << "\n";
  out.close();
  ChildProcess oracle(plane.SchedulerOracle(questions), answered);
  EXPECT_EQ(oracle.Wait(kPatience), 0) << oracle.Log();
  std::vector<json> answers;
  std::ifstream in(answered);
  for (std::string line; std::getline(in, line);) {
    answers.push_back(json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  answers.resize(worlds.size());
  return answers;
}

// What a judge says of a node for the first pod that was asked about; empty: it admits the pod.
std::string RefusalBy(const json& answer, const std::string& node) {
  if (!answer.is_object() || answer["pods"].empty() || !answer["pods"][0].contains(node)) {
    return "no answer";
  }
  const json& refusal = answer["pods"][0][node];
  return refusal.value("plugin", "").empty() ? "" : refusal.dump();
}

// Bound pods in the order of their bindings, and those that wait.
struct End {
  std::vector<json> bound, waiting;
};

// Pods that wait although a node would take them. `cluster`: a world without pods.
std::set<std::string> WrongWaits(const json& cluster, const End& end, const Judge& judge) {
  std::vector<json> worlds;
  for (const json& pod : end.waiting) {
    worlds.push_back(cluster);
    worlds.back()["pods"] = end.bound;
    worlds.back()["ask"] = json::array({pod});
  }
  const std::vector<json> answers = judge(worlds);
  std::set<std::string> wrong;
  for (size_t i = 0; i < end.waiting.size(); ++i) {
    for (const json& node : cluster["nodes"]) {
      const std::string name = node["metadata"]["name"];
      if (!RefusalBy(answers[i], name).empty()) continue;
      wrong.insert(absl::StrCat(KeyOf(end.waiting[i]), " would fit ", name));
    }
  }
  return wrong;
}

// Pods on a node that refuses them, as the cluster was when they were bound. What one decision has
// placed is bound at once, so the API server may have seen up to kAtOnce pods in another order.
std::vector<std::string> WrongBindings(const json& cluster, const End& end, const Judge& judge) {
  constexpr size_t kAtOnce = 3;
  std::vector<std::string> refusals(end.bound.size(), "not judged");
  for (size_t later = 0; later <= kAtOnce; ++later) {
    std::vector<json> worlds;
    std::vector<size_t> asked;
    for (size_t i = 0; i < end.bound.size(); ++i) {
      if (refusals[i].empty() || i + later >= end.bound.size()) continue;
      json& world = worlds.emplace_back(cluster);
      world["pods"] = std::vector<json>(end.bound.begin(), end.bound.begin() + i + later + 1);
      world["pods"].erase(i);
      world["ask"] = json::array({end.bound[i]});
      world["ask"][0]["spec"].erase("nodeName");
      asked.push_back(i);
    }
    const std::vector<json> answers = judge(worlds);
    for (size_t k = 0; k < asked.size(); ++k) {
      refusals[asked[k]] = RefusalBy(answers[k], end.bound[asked[k]]["spec"]["nodeName"]);
    }
  }
  std::vector<std::string> wrong;
  for (size_t i = 0; i < end.bound.size(); ++i) {
    if (refusals[i].empty()) continue;
    wrong.push_back(absl::StrCat(KeyOf(end.bound[i]), " on ",
                                 end.bound[i]["spec"]["nodeName"].get<std::string>(), ": ",
                                 refusals[i]));
  }
  return wrong;
}

class EndStatesTest : public IntegrationTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    if (!Plane::Get()->HasKubeScheduler() || !Plane::Get()->HasSchedulerOracle()) {
      GTEST_SKIP() << "this control plane has no kube-scheduler that can be asked";
    }
  }
  void TearDown() override {
    if (HasFailure() && scheduler_ != nullptr) std::cerr << "---- log\n" << scheduler_->Log();
    scheduler_.reset();
    for (const Json& pod : api().List(kAllPods)) {
      api().Delete(absl::StrCat("/api/v1/namespaces/", pod.TextAt({"metadata", "namespace"}),
                                "/pods/", pod.TextAt({"metadata", "name"})));
    }
    IntegrationTest::TearDown();
  }

  void StartFairlead();
  void StartKubeScheduler();
  // Namespaces of the world, and those of its nodes that the API server takes.
  void MakeCluster(const json& world);
  // One pod after another, each of them decided on before the next is made; those that the API
  // server takes.
  void MakePods(const json& world);
  End See(const History& history);
  // The world as the API server has it, without pods.
  json ClusterOf(const json& world);
  // `forgetful`: the plugins of the scheduler that decided, if it may not have looked at a pod
  // again.
  void ExpectAccepted(const json& cluster, const History& history, const Judge& judge,
                      const Judge& forgetful, End& end);

 private:
  std::unique_ptr<ChildProcess> scheduler_;
};

void EndStatesTest::StartFairlead() {
  Plane& plane = *Plane::Get();
  const std::string config = plane.NewFile("scheduler.yaml");
  std::ofstream(config) << R"(apiVersion: config.fairlead.dev/v1alpha1
kind: FairleadConfiguration
leaderElection: {leaderElect: false}
---
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]
)";
  scheduler_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{FAIRLEAD_BINARY, "run", "--kubeconfig", plane.kubeconfig(),
                               "--config", config, "--log-level", "debug"},
      plane.NewFile("scheduler.log"));
}

void EndStatesTest::StartKubeScheduler() {
  Plane& plane = *Plane::Get();
  const std::string config = plane.NewFile("scheduler.yaml");
  std::ofstream(config) << "apiVersion: kubescheduler.config.k8s.io/v1\n"
                        << "kind: KubeSchedulerConfiguration\n"
                        << "clientConnection: {qps: 500, burst: 1000, kubeconfig: "
                        << plane.kubeconfig() << "}\n"
                        << "leaderElection: {leaderElect: false}\n"
                        << "podMaxBackoffSeconds: 1\n";
  scheduler_ =
      std::make_unique<ChildProcess>(plane.KubeScheduler(config), plane.NewFile("scheduler.log"));
}

void EndStatesTest::MakeCluster(const json& world) {
  for (json name_space : world["namespaces"]) {
    const std::string name = name_space["metadata"]["name"];
    if (!api().Get(absl::StrCat("/api/v1/namespaces/", name)).ok()) {
      name_space["metadata"].erase("uid");
      api().Create("/api/v1/namespaces", name_space.dump());
    }
    const json labels = {{"metadata", {{"labels", name_space["metadata"]["labels"]}}}};
    api().Merge(absl::StrCat("/api/v1/namespaces/", name), labels.dump());
  }
  for (json node : world["nodes"]) {
    node["metadata"].erase("uid");
    const std::string path = Path(kNodes, node["metadata"]["name"].get<std::string>());
    // Some have labels or taints that the API server refuses.
    if (!api().Call("POST", kNodes, node.dump()).ok()) continue;
    const json status = {{"status", node["status"]}};
    api().Merge(path + "/status", status.dump());
    // The API server has added one: the node was not ready.
    const json taints = {{"spec", {{"taints", node["spec"].value("taints", json())}}}};
    api().Merge(path, taints.dump());
  }
}

void EndStatesTest::MakePods(const json& world) {
  int made = 0;
  for (json pod : world["ask"]) {
    // No controller makes their volumes; a runtime class says the overhead, a priority class the
    // priority.
    for (const char* field : {"uid", "ownerReferences"}) pod["metadata"].erase(field);
    for (const char* field : {"volumes", "overhead", "priority"}) pod["spec"].erase(field);
    pod["spec"]["schedulerName"] = "default-scheduler";
    const Answer answer = api().Call("POST", PathOf(pod), pod.dump());
    if (!answer.ok()) continue;
    ++made;
    const std::string path =
        absl::StrCat(PathOf(pod), "/", answer.body.TextAt({"metadata", "name"}));
    ASSERT_TRUE(Eventually(absl::StrCat(path, " is decided on"), [&] {
      return FindCondition(api().Get(path).body, "PodScheduled") != nullptr;
    }));
  }
  EXPECT_GT(made, kWorldPods / 4) << "the API server takes too few of the world's pods";
}

End EndStatesTest::See(const History& history) {
  std::map<std::string, json> pods;
  for (const Json& pod : api().List(kAllPods)) {
    json object = json::parse(pod.Compact());
    object["spec"]["schedulerName"] = "fairlead";  // whose pods the judge of Fairlead's knows
    pods.try_emplace(KeyOf(object), object);
  }
  End end;
  for (const History::Event& event : history.events()) {
    if (event.object.TextAt({"spec", "nodeName"}).empty()) continue;
    const auto pod = pods.find(absl::StrCat(event.object.TextAt({"metadata", "namespace"}), "/",
                                            event.object.TextAt({"metadata", "name"})));
    if (pod == pods.end()) continue;
    end.bound.push_back(std::move(pod->second));
    pods.erase(pod);
  }
  for (auto& [key, pod] : pods) end.waiting.push_back(std::move(pod));
  return end;
}

json EndStatesTest::ClusterOf(const json& world) {
  json cluster = {{"plugins", world["plugins"]},
                  {"pluginConfig", json::object()},
                  {"namespaces", world["namespaces"]},
                  {"nodes", json::array()}};
  for (const Json& node : api().List(kNodes)) {
    cluster["nodes"].push_back(json::parse(node.Compact()));
  }
  return cluster;
}

void EndStatesTest::ExpectAccepted(const json& cluster, const History& history, const Judge& judge,
                                   const Judge& forgetful, End& end) {
  // What waits may still be tried again. kube-scheduler v1.36.3 leaves pods for minutes that its
  // own plugins would place: it does not look at a pod again when another one comes that a
  // namespaceSelector of it selects.
  std::set<std::string> wrong;
  EXPECT_TRUE(Eventually(
      "only pods wait that fit no node",
      [&] {
        end = See(history);
        wrong = WrongWaits(cluster, end, judge);
        if (!wrong.empty() && forgetful != nullptr) {
          for (const std::string& known : WrongWaits(cluster, end, forgetful)) wrong.erase(known);
        }
        return wrong.empty();
      },
      [&] { return absl::StrJoin(wrong, "; "); }));
  EXPECT_THAT(WrongBindings(cluster, end, judge), ::testing::IsEmpty());
  std::set<std::string> nodes;
  for (const json& pod : end.bound) nodes.insert(pod["spec"]["nodeName"].get<std::string>());
  EXPECT_GT(nodes.size(), 2U) << "a state in which little is placed proves little";
  EXPECT_FALSE(end.waiting.empty()) << "a state in which nothing waits proves half of it";
}

TEST_P(EndStatesTest, KubeSchedulerAcceptsFairleads) {
  const json world = RandomWorld(GetParam()).Make(kWorldNodes, kWorldPods);
  MakeCluster(world);
  const std::shared_ptr<History> history = api().Watch(kAllPods);
  StartFairlead();
  MakePods(world);
  End end;
  ExpectAccepted(ClusterOf(world), *history, JudgeByKubeScheduler, nullptr, end);
}

TEST_P(EndStatesTest, FairleadAcceptsKubeSchedulers) {
  const json world = RandomWorld(GetParam()).Make(kWorldNodes, kWorldPods);
  MakeCluster(world);
  const std::shared_ptr<History> history = api().Watch(kAllPods);
  StartKubeScheduler();
  MakePods(world);
  End end;
  ExpectAccepted(ClusterOf(world), *history, JudgeHere, JudgeByKubeScheduler, end);
  // Neither of two wrong states would be accepted: a pod that fits and waits, and one on a node
  // that refuses it.
  ASSERT_FALSE(end.bound.empty() || end.waiting.empty());
  End too_idle = end;
  too_idle.waiting.push_back(too_idle.bound.back());
  too_idle.bound.pop_back();
  too_idle.waiting.back()["spec"].erase("nodeName");
  EXPECT_THAT(WrongWaits(ClusterOf(world), too_idle, JudgeHere),
              ::testing::Not(::testing::IsEmpty()));
  End too_bold = end;
  too_bold.bound.push_back(end.waiting.front());
  too_bold.bound.back()["spec"]["nodeName"] = end.bound.front()["spec"]["nodeName"];
  EXPECT_THAT(WrongBindings(ClusterOf(world), too_bold, JudgeHere), ::testing::SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Worlds, EndStatesTest, ::testing::Range(kFirstWorld, kFirstWorld + 4));

}  // namespace
}  // namespace fairlead::integration
