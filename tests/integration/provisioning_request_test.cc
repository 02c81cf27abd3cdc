// Nodes by the provider provisioning-request: the real process with the rights of the manifests,
// the real API server with the definition of ProvisioningRequest, and a stand-in for
// cluster-autoscaler, which answers with conditions in its order, makes nodes for all pods of a
// request or for none, and removes empty nodes that are not kept.
#include <algorithm>
#include <set>

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

constexpr char kBought[] = "/apis/autoscaling.x-k8s.io/v1/namespaces/fairlead/provisioningrequests";
constexpr char kTheirs[] = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests";
constexpr char kTemplates[] = "/api/v1/namespaces/fairlead/podtemplates";
constexpr char kKeeps[] = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
constexpr char kAnswer[] = "by the stand-in";

class Autoscaler {
 public:
  Autoscaler(const kube::ClientConfig& config, int machines) : api_(config), machines_(machines) {}

 private:
  void Answer(const Json& request) {
    const std::string uid = request.TextAt({"metadata", "uid"});
    if (!answered_.insert(uid).second) return;
    const Json& set = request.At({"spec", "podSets"})->items()[0];
    int count = 0;
    if (!absl::SimpleAtoi(set.TextAt({"count"}), &count)) return;
    const Json pods =
        api_.Get(absl::StrCat(kTemplates, "/", set.TextAt({"podTemplateRef", "name"}))).body;
    const std::string pool = pods.TextAt({"template", "spec", "nodeSelector", "pool"});
    if (pool.empty()) return;
    const std::string name = request.TextAt({"metadata", "name"});
    const std::string accepted = Condition("Accepted", "True", "Accepted");
    Say(name, accepted);
    if (count > machines_) {
      return Say(name, absl::StrCat(accepted, ",",
                                    Condition("Provisioned", "False", "CapacityIsNotFound")));
    }
    machines_ -= count;
    Say(name,
        absl::StrCat(accepted, ",", Condition("Provisioned", "True", "CapacityIsProvisioned")));
    // Times are whole seconds, and a node is younger than its request.
    absl::SleepFor(absl::Milliseconds(1100));
    for (int i = 0; i < count; ++i) Register(absl::StrCat("host-", ++last_), pool);
  }
  static std::string Condition(const std::string& type, const std::string& status,
                               const std::string& reason) {
    return absl::StrCat(R"({"type":")", type, R"(","status":")", status, R"(","reason":")", reason,
                        R"(","message":")", kAnswer,
                        R"(","lastTransitionTime":"2026-01-01T00:00:00Z"})");
  }
  // It may have been taken back meanwhile.
  void Say(const std::string& name, const std::string& conditions) {
    api_.Call("PATCH", absl::StrCat(kBought, "/", name, "/status"),
              absl::StrCat(R"({"status":{"conditions":[)", conditions, "]}}"), kube::kMergePatch);
  }
  // As a node that is underused for long enough.
  void RemoveIfEmpty(const Json& node) {
    const std::string name = node.TextAt({"metadata", "name"});
    if (!absl::StartsWith(name, "host-")) return;
    if (!node.TextAt({"metadata", "annotations", kKeeps}).empty()) {
      kept_.insert(name);
      return;
    }
    if (!kept_.contains(name)) return;
    for (const Json& pod : api_.List(kPods)) {
      if (pod.TextAt({"spec", "nodeName"}) == name) return;
    }
    api_.Delete(absl::StrCat(kNodes, "/", name));
    ++machines_;
  }
  void Register(const std::string& name, const std::string& pool) {
    model::Node node;
    node.meta.name = name;
    node.provider_id = "metal:///" + name;
    node.meta.labels.Set(model::kHostnameLabel, name);
    node.meta.labels.Set("pool", pool);
    model::Set(node.allocatable, model::kCpuName, 64'000);
    model::Set(node.allocatable, model::kMemoryName, int64_t{512} << 30);
    model::Set(node.allocatable, model::kPodsName, 110);
    model::Set(node.allocatable, model::kGpuName, 8'000);
    RegisterNode(api_, node);
  }

  Api api_;
  int machines_, last_ = 0;
  std::set<std::string> answered_, kept_;  // uids; names of nodes
  Rounds rounds_{[this] {
    for (const Json& request : api_.List(kBought)) Answer(request);
    for (const Json& node : api_.List(kNodes)) RemoveIfEmpty(node);
  }};
};

class ProvisioningRequestTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    Define(FAIRLEAD_SOURCE_DIR "/manifests/capacity-apis/provisioningrequest.yaml", kTheirs);
    kubeconfig_ = InstallRights({"base", "provisioning-request"});
    for (const char* collection : {kBought, kTheirs, kTemplates}) Empty(collection);
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    autoscaler_.reset();
    for (const char* collection : {kBought, kTheirs, kTemplates}) {
      if (api().Get(collection).ok()) Empty(collection);
    }
    IntegrationTest::TearDown();
  }
  void StartAutoscaler(int machines) {
    autoscaler_ = std::make_unique<Autoscaler>(Plane::Get()->config(), machines);
  }
  ChildProcess& StartHook() {
    ChildProcess& process = Start({.kubeconfig = kubeconfig_,
                                   .hook = true,
                                   .provider = "provisioning-request",
                                   .unneeded_after = "1s",
                                   .more = R"(
provisioningRequest:
  namespace: fairlead
  groups:
    - name: gpus
      maxSize: 8
      priceUSDPerHour: "24"
      nodeSelector: {pool: gpus}
      template: {cpu: "64", memory: 512Gi, gpus: 8}
)"});
    EXPECT_TRUE(Says(process, "offers of a provider"));
    return process;
  }
  void MakeGang(const std::string& name, int members) {
    MakeGroup(name, members);
    for (int i = 0; i < members; ++i) {
      MakePod({.name = absl::StrCat(name, i), .gpus = 8, .group = name});
    }
  }
  ::testing::AssertionResult NothingIsLeft(ChildProcess& process) {
    return Eventually(
        "every machine is given back, with its request",
        [&] {
          return api().List(kBought).empty() && api().List(kNodes).empty() &&
                 api().List(kRequests).empty();
        },
        [&] { return process.Log(); });
  }

  std::string kubeconfig_;
  std::unique_ptr<Autoscaler> autoscaler_;
};

TEST_F(ProvisioningRequestTest, AGangIsOneRequestAndItsMachinesAreGivenBack) {
  StartAutoscaler(3);
  ChildProcess& process = StartHook();
  // Of a tenant: Fairlead answers it, and leaves its own alone.
  api().Create(kTheirs, R"({"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest",
      "metadata":{"name":"theirs"},"spec":{"provisioningClassName":
      "check-capacity.autoscaling.x-k8s.io","podSets":[{"count":1,"podTemplateRef":
      {"name":"none"}}]}})");
  MakeGang("g", 3);
  ASSERT_TRUE(Bound({"g0", "g1", "g2"})) << process.Log();
  ASSERT_TRUE(Eventually("each request has the id of its machine", [this] {
    const std::vector<Json> requests = api().List(kRequests);
    return std::all_of(requests.begin(), requests.end(), [](const Json& request) {
      return absl::StartsWith(request.TextAt({"status", "providerID"}), "metal:///host-");
    });
  })) << process.Log();
  const std::vector<Json> bought = api().List(kBought);
  ASSERT_EQ(bought.size(), 1u);
  EXPECT_EQ(bought[0].TextAt({"metadata", "annotations", "fairlead.dev/places"}), "+++");
  EXPECT_EQ(bought[0].At({"metadata", "ownerReferences"})->items().size(), 3u);
  EXPECT_EQ(bought[0].At({"status", "conditions"})->items().size(), 2u);
  for (const Json& condition : bought[0].At({"status", "conditions"})->items()) {
    EXPECT_EQ(condition.TextAt({"message"}), kAnswer);
  }
  ASSERT_TRUE(Eventually("Fairlead answers the tenant's request", [&] {
    const Json theirs = api().Get(Path(kTheirs, "theirs")).body;
    return FindCondition(theirs, "Accepted") != nullptr ||
           FindCondition(theirs, "Provisioned") != nullptr;
  })) << process.Log();
  // Another process goes on with the same machines.
  process.Kill();
  ChildProcess& next = StartHook();
  for (const char* name : {"g0", "g1", "g2"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(NothingIsLeft(next));
}

TEST_F(ProvisioningRequestTest, AGangThatCannotBeHadWholeBuysNothing) {
  StartAutoscaler(2);
  ChildProcess& process = StartHook();
  const auto bought = api().Watch(kBought);
  MakeGang("g", 3);
  ASSERT_TRUE(Eventually(
      "the autoscaler has refused",
      [&] {
        return bought->Any([](const Json& request) {
          const Json* const said = FindCondition(request, "Provisioned");
          return said != nullptr && said->TextAt({"reason"}) == "CapacityIsNotFound";
        });
      },
      [&] { return process.Log(); }));
  EXPECT_TRUE(Eventually(
      "the request is taken back", [&] { return api().List(kBought).empty(); },
      [&] { return process.Log(); }));
  EXPECT_TRUE(api().List(kNodes).empty());
  EXPECT_TRUE(Says(process, "CapacityIsNotFound"));
  for (int i = 0; i < 3; ++i) api().Delete(Path(kPods, absl::StrCat("g", i)));
  EXPECT_TRUE(NothingIsLeft(process));
}

}  // namespace
}  // namespace fairlead::integration
