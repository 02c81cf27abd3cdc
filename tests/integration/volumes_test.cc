// PersistentVolumeClaims on a real API server, with the volume controller of
// kube-controller-manager beside us and the rights of manifests/base/rbac.yaml. The test is the
// provisioner.
#include "scheduler/model/volumes.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kClasses[] = "/apis/storage.k8s.io/v1/storageclasses";
constexpr char kVolumes[] = "/api/v1/persistentvolumes";
constexpr char kClaims[] = "/api/v1/namespaces/default/persistentvolumeclaims";

class VolumesTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Forget();
    MakeQueue("team", -1, -1);
    MakeClass("local", model::kNoProvisioner);
    MakeClass("zonal", "disk.example.com");
    Plane* const plane = Plane::Get();
    controllers_ = std::make_unique<ChildProcess>(
        plane->ControllerManager("persistentvolume-binder-controller"),
        plane->NewFile("controllers.log"));
  }
  void TearDown() override {
    controllers_.reset();
    IntegrationTest::TearDown();
    Forget();
  }
  void Forget() {
    for (const char* collection : {kClaims, kVolumes, kClasses}) Empty(collection);
  }
  void MakeClass(const std::string& name, const std::string& provisioner) {
    api().Create(kClasses,
                 absl::StrCat(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass",)",
                              R"("metadata":{"name":")", name, R"("},"provisioner":")", provisioner,
                              R"(","volumeBindingMode":"WaitForFirstConsumer"})"));
  }
  void MakeClaim(const std::string& name, const std::string& storage_class) {
    api().Create(kClaims, absl::StrCat(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim",)",
                                       R"("metadata":{"name":")", name,
                                       R"("},"spec":{"accessModes":["ReadWriteOnce"],)",
                                       R"("storageClassName":")", storage_class,
                                       R"(","resources":{"requests":{"storage":"1Gi"}}}})"));
  }
  // On one host. `claim`: the name of that which it is for; empty: it is free.
  void MakeVolume(const std::string& name, const std::string& storage_class,
                  const std::string& node, const std::string& claim = "") {
    const std::string reference =
        claim.empty()
            ? ""
            : absl::StrCat(R"("claimRef":{"namespace":"default","name":")", claim, R"(","uid":")",
                           Claim(claim).TextAt({"metadata", "uid"}), R"("},)");
    api().Create(
        kVolumes,
        absl::StrCat(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":")", name,
                     R"("},"spec":{)", reference, R"("storageClassName":")", storage_class,
                     R"(","capacity":{"storage":"2Gi"},"accessModes":["ReadWriteOnce"],)",
                     R"("persistentVolumeReclaimPolicy":"Retain","local":{"path":"/disk"},)",
                     R"("nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{)",
                     R"("key":"kubernetes.io/hostname","operator":"In","values":[")", node,
                     R"("]}]}]}}}})"));
  }
  void MakeHost(const std::string& name) {
    MakeNode(name, 8);
    api().Merge(
        Path(kNodes, name),
        absl::StrCat(R"({"metadata":{"labels":{"kubernetes.io/hostname":")", name, R"("}}})"));
  }
  void MakePodOf(const std::string& name, const std::string& claim, const std::string& group = "") {
    MakePod({.name = name,
             .group = group,
             .more_spec =
                 absl::StrCat(R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")",
                              claim, R"("}}],)")});
  }
  Json Claim(const std::string& name) { return api().Get(Path(kClaims, name)).body; }
  std::string SelectedNode(const std::string& claim) {
    return Claim(claim).TextAt({"metadata", "annotations", model::kSelectedNodeAnnotation});
  }
  bool Nominated(const std::string& pod, const std::string& node) {
    const auto nominated = [&] { return Pod(pod).TextAt({"status", "nominatedNodeName"}); };
    return Eventually(
        absl::StrCat("nominated node \"", node, "\""), [&] { return nominated() == node; },
        nominated);
  }
  bool Waits(const std::string& pod, const std::string& code) {
    return Eventually(
        absl::StrCat("verdict ", code), [&] { return VerdictOf(pod) == code; },
        [&] { return VerdictOf(pod); });
  }

  std::unique_ptr<ChildProcess> controllers_;
};

TEST_F(VolumesTest, APodWaitsForAClaimThatDoesNotExist) {
  MakeHost("n1");
  MakeVolume("disk", "local", "n1");
  Start({});
  MakePodOf("a", "data");
  ASSERT_TRUE(Waits("a", "MissingObject"));
  const Json pod = Pod("a");
  const Json* const condition = FindCondition(pod, "PodScheduled");
  ASSERT_NE(condition, nullptr);
  EXPECT_TRUE(absl::StrContains(condition->TextAt({"message"}), "PersistentVolumeClaim data"))
      << condition->TextAt({"message"});
  MakeClaim("data", "local");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(Claim("data").TextAt({"spec", "volumeName"}), "disk");
}

// Each of them goes where its own disk is, with no more rights than the manifests give.
TEST_F(VolumesTest, AGangOnLocalDisks) {
  for (const char* host : {"n1", "n2", "n3"}) {
    MakeHost(host);
    MakeVolume(absl::StrCat("disk-of-", host), "local", host);
  }
  Start({.kubeconfig = InstallRights()});
  MakeGroup("gang", 3);
  for (const char* name : {"a", "b", "c"}) MakeClaim(name, "local");
  for (const char* name : {"a", "b", "c"}) MakePodOf(name, name, "gang");
  ASSERT_TRUE(Bound({"a", "b", "c"}));
  std::set<std::string> nodes;
  for (const char* name : {"a", "b", "c"}) {
    nodes.insert(NodeOf(name));
    EXPECT_EQ(Claim(name).TextAt({"spec", "volumeName"}), "disk-of-" + NodeOf(name));
  }
  EXPECT_EQ(nodes.size(), 3u);
  // A fourth finds no disk, and says what it lacks.
  MakeClaim("d", "local");
  MakePodOf("d", "d");
  ASSERT_TRUE(Eventually("a verdict", [&] { return !VerdictOf("d").empty(); }));
  MakeVolume("second-disk", "local", "n2");
  ASSERT_TRUE(Bound({"d"}));
  EXPECT_EQ(NodeOf("d"), "n2");
}

TEST_F(VolumesTest, AProvisionerThatGivesUpAndOneThatDelivers) {
  MakeHost("n1");
  Start({});
  MakeClaim("data", "zonal");
  MakePodOf("a", "data");
  const auto selected = [&](const std::string& node) {
    return Eventually(absl::StrCat("node ", node, " selected"),
                      [&] { return SelectedNode("data") == node; });
  };
  ASSERT_TRUE(selected("n1"));
  EXPECT_EQ(NodeOf("a"), "") << "not before its claim is bound";
  ASSERT_TRUE(Nominated("a", "n1")) << "the binding is slow";
  // Nothing can be provisioned for that node, which is cordoned, too.
  MakeHost("n2");
  api().Merge(Path(kNodes, "n1"), R"({"spec":{"unschedulable":true}})");
  api().Merge(Path(kClaims, "data"), absl::StrCat(R"({"metadata":{"annotations":{")",
                                                  model::kSelectedNodeAnnotation, R"(":null}}})"));
  ASSERT_TRUE(selected("n2"));
  ASSERT_TRUE(Nominated("a", "n2"));
  MakeVolume("made", "zonal", "n2", "data");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(NodeOf("a"), "n2");
  EXPECT_TRUE(Nominated("a", "")) << "cleared by the binding";
}

// The name of a node that the pod does not get does not stay.
TEST_F(VolumesTest, ANominatedNodeIsClearedIfTheBindingFails) {
  MakeHost("n1");
  Start({});
  MakeClaim("data", "zonal");
  MakePodOf("a", "data");
  ASSERT_TRUE(Nominated("a", "n1"));
  api().Merge(Path(kNodes, "n1"), R"({"spec":{"unschedulable":true}})");
  api().Merge(Path(kClaims, "data"), absl::StrCat(R"({"metadata":{"annotations":{")",
                                                  model::kSelectedNodeAnnotation, R"(":null}}})"));
  ASSERT_TRUE(Nominated("a", ""));
  EXPECT_NE(VerdictOf("a"), "");
}

// A restart between the write and the volume.
TEST_F(VolumesTest, ANewProcessGoesOnWithWhatWasSelected) {
  MakeHost("n1");
  MakeHost("n2");
  ChildProcess& first = Start({});
  MakeClaim("data", "zonal");
  MakePodOf("a", "data");
  ASSERT_TRUE(Eventually("a node is selected", [&] { return !SelectedNode("data").empty(); }));
  const std::string node = SelectedNode("data");
  first.Kill();
  Start({.identity = "second"});
  MakeVolume("made", "zonal", node, "data");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(NodeOf("a"), node);
}

}  // namespace
}  // namespace fairlead::integration
