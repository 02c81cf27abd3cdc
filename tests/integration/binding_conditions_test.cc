// Devices that have to be attached after they are allocated (bindingConditions), on a real API
// server, with the rights of manifests/base/rbac.yaml. The test plays the driver: it reports in
// status.devices of the claim.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kFabricDriver[] = "fabric.example.com";
constexpr char kFabricClasses[] = "/apis/resource.k8s.io/v1/deviceclasses";
constexpr char kFabricSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kFabricClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class BindingConditionsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    ForgetAll();
    MakeQueue("team", -1, -1);
    for (const char* node : {"n1", "n2"}) MakeNode(node, 0);
    api().Create(kFabricClasses,
                 absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass",)",
                              R"("metadata":{"name":")", kFabricDriver,
                              R"("},"spec":{"selectors":[{"cel":{"expression":"device.driver == ')",
                              kFabricDriver, R"('"}}]}})"));
    MakeSlice(R"("bindsToNode":true,"bindingConditions":["example.com/Attached"],)"
              R"("bindingFailureConditions":["example.com/Failed"])");
    api().Create(
        kFabricClaims,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",)",
                     R"("metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r",)",
                     R"("exactly":{"deviceClassName":")", kFabricDriver, R"("}}]}}})"));
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    ForgetAll();
  }
  void ForgetAll() {
    for (const char* collection : {kFabricClaims, kFabricSlices, kFabricClasses}) Empty(collection);
  }
  // One device for all nodes.
  void MakeSlice(const std::string& fields) {
    api().Create(
        kFabricSlices,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
                     R"("metadata":{"name":"fabric"},"spec":{"driver":")", kFabricDriver,
                     R"(","allNodes":true,"pool":{"name":"pool","generation":1,)",
                     R"("resourceSliceCount":1},"devices":[{"name":"port",)", fields, "}]}}"));
  }
  void MakeUser(const std::string& name) {
    api().Create(
        kPods,
        absl::StrCat(
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
            R"(","labels":{"kai.scheduler/queue":"team"}},"spec":{"schedulerName":"fairlead",)",
            R"("resourceClaims":[{"name":"net","resourceClaimName":"c"}],"containers":[{)",
            R"("name":"c","image":"i","resources":{"claims":[{"name":"net"}]}}]}})"));
  }
  Json TheClaim() { return api().Get(Path(kFabricClaims, "c")).body; }
  std::string AllocatedAt() {
    const Json claim = TheClaim();
    return claim.TextAt({"status", "allocation", "allocationTimestamp"});
  }
  void AwaitAllocation() {
    ASSERT_TRUE(Eventually(
        "the allocation", [this] { return !AllocatedAt().empty(); },
        [this] { return TheClaim().Compact(); }));
  }
  void Report(const std::string& type, const std::string& status) {
    const Answer answer =
        api().Call("PATCH", Path(kFabricClaims, "c") + "/status",
                   absl::StrCat(R"({"status":{"devices":[{"driver":")", kFabricDriver,
                                R"(","pool":"pool","device":"port","conditions":[{"type":")", type,
                                R"(","status":")", status,
                                R"(","reason":"Test","message":"as the test says",)",
                                R"("lastTransitionTime":"2026-11-01T00:00:00Z"}]}]}})"),
                   kube::kMergePatch);
    ASSERT_TRUE(answer.ok()) << answer.text;
  }
  bool HasEvent(const std::string& reason) {
    const Json events = api().Get("/apis/events.k8s.io/v1/namespaces/default/events").body;
    const Json* const items = events.At({"items"});
    if (items == nullptr) return false;
    for (const Json& event : items->items()) {
      if (event.TextAt({"reason"}) == reason) return true;
    }
    return false;
  }
};

TEST_F(BindingConditionsTest, AFailureDeallocatesTheClaimAndThePodGetsItAnew) {
  Start({.kubeconfig = InstallRights()});
  MakeUser("a");
  AwaitAllocation();
  const std::string first = TheClaim().TextAt({"metadata", "resourceVersion"});
  Report("example.com/Failed", "True");
  ASSERT_TRUE(Eventually("told", [this] { return HasEvent("FailedBinding"); }));
  // Deallocated, and allocated once more: without what was reported of the first time.
  ASSERT_TRUE(Eventually(
      "allocated again",
      [&] {
        const Json claim = TheClaim();
        return claim.At({"status", "devices"}) == nullptr && !AllocatedAt().empty() &&
               claim.TextAt({"metadata", "resourceVersion"}) != first;
      },
      [this] { return TheClaim().Compact(); }));
  EXPECT_EQ(NodeOf("a"), "");
  Report("example.com/Attached", "True");
  EXPECT_TRUE(Bound({"a"}));
}

TEST_F(BindingConditionsTest, ThePodIsBoundWhenTheDriverSaysSoAlsoAcrossARestart) {
  ChildProcess& former = Start({.kubeconfig = InstallRights()});
  MakeUser("a");
  AwaitAllocation();
  const Json claim = TheClaim();
  const Json* const results = claim.At({"status", "allocation", "devices", "results"});
  ASSERT_NE(results, nullptr) << claim.Compact();
  EXPECT_EQ(results->items().at(0).At({"bindingConditions"})->Compact(),
            R"(["example.com/Attached"])");
  EXPECT_EQ(results->items().at(0).At({"bindingFailureConditions"})->Compact(),
            R"(["example.com/Failed"])");
  ASSERT_TRUE(Eventually("told", [this] { return HasEvent("BindingConditionsPending"); }));
  ASSERT_TRUE(Eventually(
      "nominated", [this] { return !Pod("a").TextAt({"status", "nominatedNodeName"}).empty(); }));
  Report("example.com/Attached", "False");
  former.Kill();
  Start({.kubeconfig = InstallRights()});
  const std::string allocated = AllocatedAt();
  EXPECT_EQ(NodeOf("a"), "");
  Report("example.com/Attached", "True");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(AllocatedAt(), allocated);
  EXPECT_TRUE(absl::StrContains(claim.At({"status", "allocation", "nodeSelector"})->Compact(),
                                absl::StrCat(R"("values":[")", NodeOf("a"), "\"]")))
      << claim.Compact();
}

TEST_F(BindingConditionsTest, DevicesForSeveralClaimsAreGivenToNoneAndTheVerdictSaysWhy) {
  Empty(kFabricSlices);
  MakeSlice(R"("allowMultipleAllocations":true,"capacity":{"lanes":{"value":"8"}})");
  Start({.kubeconfig = InstallRights()});
  MakeUser("a");
  ASSERT_TRUE(Eventually(
      "the verdict", [this] { return VerdictOf("a") == "InvalidRequest"; },
      [this] { return VerdictOf("a"); }));
  const Json pod = Pod("a");
  const Json* const condition = FindCondition(pod, "PodScheduled");
  ASSERT_NE(condition, nullptr);
  EXPECT_TRUE(absl::StrContains(condition->TextAt({"message"}),
                                "allowMultipleAllocations), and Fairlead gives such devices to "
                                "none: fabric.example.com/pool/port"))
      << condition->TextAt({"message"});
}

}  // namespace
}  // namespace fairlead::integration
