// Extended resources that a device class gives, on a real API server: the claim and the pod's
// status are as the real kube-scheduler makes them, and the claim controller of
// kube-controller-manager takes them back. There are no drivers and no kubelet.
#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/transport/http.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kFpgaDriver[] = "fpga.example.com";
constexpr char kFpgaResource[] = "example.com/fpga";
constexpr char kFpgaClass[] = "/apis/resource.k8s.io/v1/deviceclasses/fpga";
constexpr char kFpgaClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kFpgaSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kMark[] = "resource.kubernetes.io/extended-resource-claim";

class ExtendedResourcesTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    if (IsSkipped()) return;
    Forget();
    MakeQueue("team", -1, -1);
    api().Create("/apis/resource.k8s.io/v1/deviceclasses",
                 absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass",)",
                              R"("metadata":{"name":"fpga"},"spec":{"extendedResourceName":")",
                              kFpgaResource, R"(","selectors":[{"cel":{"expression":)",
                              R"("device.driver == ')", kFpgaDriver, R"('"}}]}})"));
  }
  void TearDown() override {
    others_.clear();
    IntegrationTest::TearDown();
    if (!IsSkipped()) Forget();
  }
  void Forget() {
    for (const char* collection : {kFpgaClaims, kFpgaSlices}) Empty(collection);
    api().Call("DELETE", kFpgaClass);
  }
  void MakeFpgaNode(const std::string& name, int devices) {
    MakeNode(name, 0);
    std::string list;
    for (int i = 0; i < devices; ++i) {
      absl::StrAppend(&list, i == 0 ? "" : ",", R"({"name":"fpga-)", i, "\"}");
    }
    api().Create(
        kFpgaSlices,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
                     R"("metadata":{"name":"fpgas-)", name, R"("},"spec":{"driver":")", kFpgaDriver,
                     R"(","nodeName":")", name, R"(","pool":{"name":")", name,
                     R"(","generation":1,"resourceSliceCount":1},"devices":[)", list, "]}}"));
  }
  static std::string Container(const std::string& name, int fpgas, const std::string& more = "") {
    return absl::StrCat(R"({"name":")", name, R"(","image":"i",)", more,
                        R"("resources":{"limits":{"cpu":"100m","example.com/fpga":")", fpgas,
                        R"("}}})");
  }
  void MakeFpgaPod(const std::string& name, const std::string& containers,
                   const std::string& init = "", const std::string& scheduler = "fairlead") {
    api().Create(kPods, absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")",
                                     name, R"(","labels":{"kai.scheduler/queue":"team"}},"spec":{)",
                                     R"("schedulerName":")", scheduler, R"(","initContainers":[)",
                                     init, R"(],"containers":[)", containers, "]}}"));
  }
  // Of that pod; an empty object if there is none.
  Json ClaimOf(const std::string& pod) {
    const std::string uid = Pod(pod).TextAt({"metadata", "uid"});
    for (const Json& claim : api().List(kFpgaClaims)) {
      const Json* const owners = claim.At({"metadata", "ownerReferences"});
      if (owners != nullptr && owners->items().at(0).TextAt({"uid"}) == uid) return claim;
    }
    return {};
  }
  static std::string Text(const Json* value) { return value == nullptr ? "" : value->Compact(); }
  std::string RequestsOf(const std::string& pod) {
    return Text(ClaimOf(pod).At({"spec", "devices", "requests"}));
  }
  std::string MappingsOf(const std::string& pod) {
    return Text(Pod(pod).At({"status", "extendedResourceClaimStatus", "requestMappings"}));
  }
  std::string MessageOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* const condition = FindCondition(object, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  }
  void Beside(const std::vector<std::string>& command, const std::string& log) {
    others_.push_back(std::make_unique<ChildProcess>(command, Plane::Get()->NewFile(log)));
  }
  void StartKubeScheduler() {
    const std::string file = Plane::Get()->NewFile("kube-scheduler.yaml");
    std::ofstream(file) << "apiVersion: kubescheduler.config.k8s.io/v1\n"
                           "kind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: "
                        << Plane::Get()->kubeconfig()
                        << "}\nleaderElection: {leaderElect: false}\n";
    Beside(Plane::Get()->KubeScheduler(file), "kube-scheduler.log");
  }

 private:
  std::vector<std::unique_ptr<ChildProcess>> others_;
};

TEST_F(ExtendedResourcesTest, TheClaimIsAsKubeSchedulerMakesIt) {
  if (!Plane::Get()->HasKubeScheduler()) GTEST_SKIP() << "this control plane has no kube-scheduler";
  Settings settings;
  settings.kubeconfig = InstallRights();
  Start(settings);
  StartKubeScheduler();
  struct Case {
    std::string name, containers, init;
    int devices;
  };
  const Case cases[] = {
      {"one", Container("m", 1), "", 1},
      {"two", absl::StrCat(Container("a", 1), ",", Container("b", 2)), "", 3},
      {"starts", Container("m", 1),
       absl::StrCat(Container("i", 2), ",", Container("j", 3), ",",
                    Container("s", 1, R"("restartPolicy":"Always",)")),
       3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string theirs = absl::StrCat(c.name, "-theirs");
    MakeFpgaNode(absl::StrCat("n-", c.name), c.devices);
    MakeFpgaPod(c.name, c.containers, c.init);
    ASSERT_TRUE(Bound({c.name}));
    MakeFpgaNode(absl::StrCat("n-", theirs), c.devices);
    MakeFpgaPod(theirs, c.containers, c.init, "default-scheduler");
    ASSERT_TRUE(Bound({theirs}));
    EXPECT_NE(RequestsOf(c.name), "");
    EXPECT_EQ(RequestsOf(c.name), RequestsOf(theirs));
    EXPECT_EQ(MappingsOf(c.name), MappingsOf(theirs));
    const Json claim = ClaimOf(c.name);
    EXPECT_EQ(claim.TextAt({"metadata", "annotations", kMark}), "true");
    EXPECT_EQ(Pod(c.name).TextAt({"status", "extendedResourceClaimStatus", "resourceClaimName"}),
              claim.TextAt({"metadata", "name"}));
    const Json* const results = claim.At({"status", "allocation", "devices", "results"});
    ASSERT_NE(results, nullptr);
    EXPECT_EQ(results->items().size(), static_cast<size_t>(c.devices));
    EXPECT_EQ(claim.At({"status", "reservedFor"})->items().at(0).TextAt({"name"}), c.name);
  }
}

TEST_F(ExtendedResourcesTest, ANodeWithADevicePluginGivesThemWithoutAClaim) {
  MakeNode("n1", 0);
  const Answer answer = api().Call(
      "PATCH", Path(kNodes, "n1") + "/status",
      R"({"status":{"allocatable":{"example.com/fpga":"1"},"capacity":{"example.com/fpga":"1"}}})",
      kube::kStrategicMergePatch);
  ASSERT_TRUE(answer.ok()) << answer.text;
  Start({});
  MakeFpgaPod("p", Container("m", 1));
  ASSERT_TRUE(Bound({"p"}));
  EXPECT_TRUE(api().List(kFpgaClaims).empty());
  EXPECT_EQ(MappingsOf("p"), "");
}

TEST_F(ExtendedResourcesTest, TheNextPodGetsTheDeviceThatTheLastOneGaveBack) {
  Beside(Plane::Get()->ControllerManager("resourceclaim-controller"), "controllers.log");
  MakeFpgaNode("n1", 1);
  Start({});
  MakeFpgaPod("a", Container("m", 1));
  ASSERT_TRUE(Bound({"a"}));
  MakeFpgaPod("b", Container("m", 1));
  ASSERT_TRUE(Eventually(
      "the verdict", [this] { return VerdictOf("b") == "InsufficientCapacity"; },
      [this] { return VerdictOf("b"); }));
  EXPECT_TRUE(absl::StrContains(MessageOf("b"), "Insufficient example.com/fpga")) << MessageOf("b");
  const Answer ended = api().Call("PATCH", Path(kPods, "a") + "/status",
                                  R"({"status":{"phase":"Succeeded"}})", kube::kMergePatch);
  ASSERT_TRUE(ended.ok()) << ended.text;
  EXPECT_TRUE(Bound({"b"}));
}

TEST_F(ExtendedResourcesTest, AForeignClaimOfThatNameIsTold) {
  MakeFpgaNode("n1", 1);
  MakeFpgaPod("p", Container("m", 1));
  const std::string name =
      absl::StrCat("p-extended-resources-", Pod("p").TextAt({"metadata", "uid"}));
  api().Create(kFpgaClaims,
               absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",)",
                            R"("metadata":{"name":")", name, R"("},"spec":{"devices":{"requests":)",
                            R"([{"name":"r","exactly":{"deviceClassName":"fpga"}}]}}})"));
  Start({});
  ASSERT_TRUE(Eventually("the verdict", [this] { return VerdictOf("p") == "InvalidRequest"; }));
  EXPECT_TRUE(absl::StrContains(MessageOf("p"), "is not of this pod; delete it")) << MessageOf("p");
  api().Delete(Path(kFpgaClaims, name));
  EXPECT_TRUE(Bound({"p"}));
}

}  // namespace
}  // namespace fairlead::integration
