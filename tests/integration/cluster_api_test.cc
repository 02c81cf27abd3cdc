// Nodes by the provider cluster-api: the real process, the real API server with Cluster API's own
// CRDs, and a stand-in for Cluster API's controllers, which makes Machines and their nodes, and
// ends the marked ones first. Skips where the CRDs cannot be had (scripts/cluster-api-crds.sh).
#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"
#include "tests/integration/fixture.h"
#include "tests/integration/rounds.h"

namespace fairlead::integration {
namespace {

constexpr char kApi[] = "/apis/cluster.x-k8s.io/v1beta2";
constexpr char kMachineDeployments[] =
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments";
constexpr char kMachines[] = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";

// The folder that the script prints; empty if it cannot.
std::string DefinitionsFolder() {
  FILE* const pipe = popen("'" FAIRLEAD_SOURCE_DIR "/scripts/cluster-api-crds.sh'", "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[4096];
  while (fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  return pclose(pipe) == 0 ? std::string(absl::StripAsciiWhitespace(output)) : "";
}

class MachineControllers {
 public:
  explicit MachineControllers(const kube::ClientConfig& config) : api_(config) {}

 private:
  void Reconcile(const Json& deployment) {
    const std::string name = deployment.TextAt({"metadata", "name"});
    int replicas = 0;
    if (!absl::SimpleAtoi(deployment.TextAt({"spec", "replicas"}), &replicas)) return;
    std::vector<Json> machines;
    for (Json& machine : api_.List(kMachines)) {
      if (machine.TextAt({"metadata", "labels", "cluster.x-k8s.io/deployment-name"}) == name) {
        machines.push_back(std::move(machine));
      }
    }
    std::stable_sort(machines.begin(), machines.end(),
                     [](const Json& a, const Json& b) { return IsMarked(a) && !IsMarked(b); });
    for (int i = replicas; i < static_cast<int>(machines.size()); ++i) {
      End(machines[static_cast<size_t>(i - replicas)]);
    }
    for (int i = static_cast<int>(machines.size()); i < replicas; ++i) Make(name);
  }
  static bool IsMarked(const Json& machine) {
    return !machine.TextAt({"metadata", "annotations", "cluster.x-k8s.io/delete-machine"}).empty();
  }
  void End(const Json& machine) {
    const std::string node = machine.TextAt({"status", "nodeRef", "name"});
    if (!node.empty()) api_.Delete(absl::StrCat(kNodes, "/", node));
    api_.Delete(absl::StrCat(kMachines, "/", machine.TextAt({"metadata", "name"})));
  }
  void Make(const std::string& deployment) {
    const std::string name = absl::StrCat(deployment, "-", ++last_);
    const std::string node = absl::StrCat("host-", last_);
    const std::string id = absl::StrCat("metal:///", name);
    api_.Create(kMachines, absl::StrCat(R"({"apiVersion":"cluster.x-k8s.io/v1beta2",
      "kind":"Machine","metadata":{"name":")",
                                        name, R"(","labels":{"cluster.x-k8s.io/deployment-name":")",
                                        deployment, R"("},"ownerReferences":[{"apiVersion":
      "cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"set","uid":"set-1","controller":true}]},
      "spec":{"clusterName":"c","bootstrap":{"dataSecretName":"s"},"infrastructureRef":{
      "apiGroup":"infrastructure.cluster.x-k8s.io","kind":"MetalMachine","name":")",
                                        name, R"("}}})"));
    absl::SleepFor(absl::Milliseconds(500));
    const std::string path = absl::StrCat(kMachines, "/", name);
    api_.Merge(path, absl::StrCat(R"({"spec":{"providerID":")", id, R"("}})"));
    Register(node, id);
    api_.Merge(path + "/status", absl::StrCat(R"({"status":{"phase":"Running","nodeRef":{"name":")",
                                              node, R"("}}})"));
  }
  void Register(const std::string& name, const std::string& id) {
    model::Node node;
    node.meta.name = name;
    node.provider_id = id;
    node.meta.labels.Set(model::kHostnameLabel, name);
    model::Set(node.allocatable, model::kCpuName, 64'000);
    model::Set(node.allocatable, model::kMemoryName, int64_t{512} << 30);
    model::Set(node.allocatable, model::kPodsName, 110);
    model::Set(node.allocatable, model::kGpuName, 8'000);
    RegisterNode(api_, node);
  }

  Api api_;
  int last_ = 0;
  Rounds rounds_{[this] {
    for (const Json& deployment : api_.List(kMachineDeployments)) Reconcile(deployment);
  }};
};

class ClusterApiTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    static const std::string folder = DefinitionsFolder();
    if (folder.empty()) GTEST_SKIP() << "Cluster API's definitions cannot be had";
    for (const char* plural : {"machinedeployments", "machinepools", "machines"}) {
      Define(absl::StrCat(folder, "/cluster.x-k8s.io_", plural, ".yaml"),
             absl::StrCat(kApi, "/", plural));
    }
    Empty(kMachineDeployments);
    Empty(kMachines);
    controllers_ = std::make_unique<MachineControllers>(Plane::Get()->config());
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    controllers_.reset();
    if (api().Get(kMachineDeployments).ok()) Empty(kMachineDeployments);
    if (api().Get(kMachines).ok()) Empty(kMachines);
    IntegrationTest::TearDown();
  }
  void MakeDeployment(const std::string& name, int max_size) {
    api().Create(kMachineDeployments, absl::StrCat(R"({"apiVersion":"cluster.x-k8s.io/v1beta2",
      "kind":"MachineDeployment","metadata":{"name":")",
                                                   name, R"(","annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"0",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":")",
                                                   max_size, R"(",
      "capacity.cluster-autoscaler.kubernetes.io/cpu":"64",
      "capacity.cluster-autoscaler.kubernetes.io/memory":"512Gi",
      "capacity.cluster-autoscaler.kubernetes.io/gpu-count":"8",
      "fairlead.dev/price-usd-per-hour":"24"}},
      "spec":{"clusterName":"c","replicas":0,"selector":{"matchLabels":{"a":"b"}},"template":{
      "metadata":{"labels":{"a":"b"}},"spec":{"clusterName":"c","bootstrap":{"dataSecretName":"s"},
      "infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io",
      "kind":"MetalMachineTemplate","name":"t"}}}}})"));
  }
  ChildProcess& StartHook(const std::string& kubeconfig = "") {
    ChildProcess& process = Start({.kubeconfig = kubeconfig,
                                   .hook = true,
                                   .provider = "cluster-api",
                                   .unneeded_after = "1s",
                                   .more = "clusterApi: {namespace: default}\n"});
    EXPECT_TRUE(Says(process, "offers of a provider"));
    return process;
  }
  std::string Replicas(const std::string& deployment) {
    return api().Get(Path(kMachineDeployments, deployment)).body.TextAt({"spec", "replicas"});
  }
  ::testing::AssertionResult NothingIsLeft(const std::string& deployment) {
    return Eventually("every machine is given back", [&] {
      return Replicas(deployment) == "0" && api().List(kMachines).empty() &&
             api().List(kRequests).empty();
    });
  }

  std::unique_ptr<MachineControllers> controllers_;
};

// With the rights of the manifests.
TEST_F(ClusterApiTest, PodsRunOnMachinesAndTheUnneededOneIsRemoved) {
  MakeDeployment("gpus", 4);
  ChildProcess& process = StartHook(InstallRights({"base", "cluster-api"}));
  for (const char* name : {"p1", "p2", "p3"}) MakePod({.name = name, .gpus = 8});
  ASSERT_TRUE(Bound({"p1", "p2", "p3"})) << process.Log();
  EXPECT_EQ(Replicas("gpus"), "3");
  EXPECT_EQ(api().List(kMachines).size(), 3u);
  ASSERT_TRUE(Eventually("each request has the id of its machine", [this] {
    const std::vector<Json> requests = api().List(kRequests);
    return std::all_of(requests.begin(), requests.end(), [](const Json& request) {
      return absl::StartsWith(request.TextAt({"status", "providerID"}), "metal:///gpus-");
    });
  }));
  const std::string unneeded = NodeOf("p2"), first = NodeOf("p1"), third = NodeOf("p3");
  api().Delete(Path(kPods, "p2"));
  ASSERT_TRUE(Eventually(
      "the machine that nothing needs is gone",
      [&] { return !api().Get(Path(kNodes, unneeded)).ok(); }, [&] { return process.Log(); }));
  EXPECT_TRUE(Eventually("its request is gone", [&] { return api().List(kRequests).size() == 2; }));
  EXPECT_EQ(Replicas("gpus"), "2");
  EXPECT_TRUE(api().Get(Path(kNodes, first)).ok());
  EXPECT_TRUE(api().Get(Path(kNodes, third)).ok());
  for (const char* name : {"p1", "p3"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(NothingIsLeft("gpus")) << process.Log();
}

TEST_F(ClusterApiTest, ANewProcessGoesOnWithItsMachines) {
  MakeDeployment("gpus", 4);
  ChildProcess& process = StartHook();
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Bound({"pod"})) << process.Log();
  ASSERT_TRUE(Eventually("the request has the id of its machine", [this] {
    const std::vector<Json> requests = api().List(kRequests);
    return requests.size() == 1 && !requests[0].TextAt({"status", "providerID"}).empty();
  }));
  process.Kill();
  ChildProcess& next = StartHook();
  MakePod({.name = "second", .gpus = 8});
  ASSERT_TRUE(Bound({"second"})) << next.Log();
  EXPECT_EQ(Replicas("gpus"), "2");
  for (const char* name : {"pod", "second"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(NothingIsLeft("gpus")) << next.Log();
}

TEST_F(ClusterApiTest, AWrongAnnotationIsToldAndTheLastGoodValueStays) {
  MakeDeployment("gpus", 1);
  ChildProcess& process = StartHook();
  api().Merge(Path(kMachineDeployments, "gpus"), R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"many"}}})");
  EXPECT_TRUE(Says(process, "group-max-size]: \\\"many\\\" is not a whole number"));
  api().Merge(Path(kMachineDeployments, "gpus"), R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"1"}}})");
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Bound({"pod"})) << process.Log();
}

}  // namespace
}  // namespace fairlead::integration
