// ResourceClaims on a real API server: from a template, or a claim, to pods that are bound, with
// the claim controller of kube-controller-manager beside us and the rights of
// manifests/base/rbac.yaml. There are no drivers and no kubelet: the test writes the slices and
// ends the pods.
#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/watch/event_queue.h"
#include "kube/write/executor.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kDriver[] = "nic.example.com";
constexpr char kClasses[] = "/apis/resource.k8s.io/v1/deviceclasses";
constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kTemplates[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
constexpr char kRules[] = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
constexpr char kFinalizer[] = "resource.kubernetes.io/delete-protection";

// The spec of a claim: so many devices of the class, and its opaque parameters for the driver.
std::string SpecText(int count) {
  return absl::StrCat(R"({"devices":{"requests":[{"name":"nic","exactly":{"deviceClassName":")",
                      kDriver, R"(","allocationMode":"ExactCount","count":)", count,
                      R"(}}],"config":[{"requests":["nic"],"opaque":{"driver":")", kDriver,
                      R"(","parameters":{"mtu":9000}}}]}})");
}

class ClaimsTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Forget();
    MakeQueue("team", -1, -1);
    api().Create(
        kClasses,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass",)",
                     R"("metadata":{"name":")", kDriver,
                     R"("},"spec":{"selectors":[{"cel":{"expression":)", R"("device.driver == ')",
                     kDriver, R"('"}}],"config":[{"opaque":{"driver":")", kDriver,
                     R"(","parameters":{"mode":"fast"}}}]}})"));
    api().Create(
        kTemplates,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate",)",
                     R"("metadata":{"name":"one-nic"},"spec":{"spec":)", SpecText(1), "}}"));
  }
  void TearDown() override {
    controllers_.reset();
    IntegrationTest::TearDown();
    Forget();
  }
  void Forget() {
    for (const char* collection : {kClaims, kTemplates, kSlices, kClasses, kRules}) {
      Empty(collection);
    }
  }
  void StartClaimController() {
    Plane* const plane = Plane::Get();
    controllers_ = std::make_unique<ChildProcess>(
        plane->ControllerManager("resourceclaim-controller"), plane->NewFile("controllers.log"));
  }
  void MakeDeviceNode(const std::string& name, int devices) {
    MakeNode(name, 0);
    std::string list;
    for (int i = 0; i < devices; ++i) {
      absl::StrAppend(&list, i == 0 ? "" : ",", R"({"name":"nic-)", i,
                      R"(","attributes":{"numa":{"int":)", i % 2, "}}}");
    }
    api().Create(
        kSlices,
        absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
                     R"("metadata":{"name":"slice-)", name, R"("},"spec":{"driver":")", kDriver,
                     R"(","nodeName":")", name, R"(","pool":{"name":")", name,
                     R"(","generation":1,"resourceSliceCount":1},"devices":[)", list, "]}}"));
  }
  // One of the two slices of a node's pool; `rest`: "devices" or "sharedCounters".
  void MakeHalfOfPool(const std::string& node, const std::string& name, const std::string& rest) {
    api().Create(kSlices,
                 absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
                              R"("metadata":{"name":")", name, R"("},"spec":{"driver":")", kDriver,
                              R"(","nodeName":")", node, R"(","pool":{"name":")", node,
                              R"(","generation":1,"resourceSliceCount":2},)", rest, "}}"));
  }
  void MakeClaim(const std::string& name, int count = 1) { MakeClaimOf(name, SpecText(count)); }
  void MakeClaimOf(const std::string& name, const std::string& spec) {
    api().Create(kClaims,
                 absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",)",
                              R"("metadata":{"name":")", name, R"("},"spec":)", spec, "}"));
  }
  // `source`: {"resourceClaimName": ...} or {"resourceClaimTemplateName": ...}, without braces.
  // `placed`: its scheduler, and its node if it has one.
  void MakeClaimPod(const std::string& name, const std::string& source,
                    const std::string& placed = R"("schedulerName":"fairlead")") {
    api().Create(
        kPods,
        absl::StrCat(
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
            R"(","labels":{"kai.scheduler/queue":"team"}},"spec":{)", placed,
            R"(,"resourceClaims":[{"name":"net",)", source,
            R"(}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"},)",
            R"("claims":[{"name":"net"}]}}]}})"));
  }
  Json Claim(const std::string& name) { return api().Get(Path(kClaims, name)).body; }
  // The pod's one claim from a template.
  std::string ClaimOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* const statuses = object.At({"status", "resourceClaimStatuses"});
    if (statuses == nullptr || statuses->items().empty()) return "";
    return statuses->items().at(0).TextAt({"resourceClaimName"});
  }
  static std::vector<std::string> ReservedFor(const Json& claim) {
    std::vector<std::string> names;
    const Json* const reserved = claim.At({"status", "reservedFor"});
    if (reserved == nullptr) return names;
    for (const Json& pod : reserved->items()) names.push_back(pod.TextAt({"name"}));
    return names;
  }
  static std::vector<std::string> Sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }
  // "pool/device" of each.
  static std::vector<std::string> DevicesOf(const Json& claim) {
    std::vector<std::string> devices;
    const Json* const results = claim.At({"status", "allocation", "devices", "results"});
    if (results == nullptr) return devices;
    for (const Json& result : results->items()) {
      devices.push_back(absl::StrCat(result.TextAt({"pool"}), "/", result.TextAt({"device"})));
    }
    return devices;
  }
  // Ends the pod as a kubelet does after its containers.
  void EndPod(const std::string& name) {
    const Answer answer = api().Call("PATCH", Path(kPods, name) + "/status",
                                     R"({"status":{"phase":"Succeeded"}})", kube::kMergePatch);
    EXPECT_TRUE(answer.ok()) << answer.text;
  }
  // Allocates as another scheduler would: `reserved` are JSON objects.
  void Allocate(const std::string& claim, const std::string& node, const std::string& device,
                const std::string& reserved) {
    const Answer answer = api().Call(
        "PATCH", Path(kClaims, claim) + "/status",
        absl::StrCat(R"({"status":{"allocation":{"devices":{"results":[{"request":"nic",)",
                     R"("driver":")", kDriver, R"(","pool":")", node, R"(","device":")", device,
                     R"("}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{)",
                     R"("key":"metadata.name","operator":"In","values":[")", node,
                     R"("]}]}]}},"reservedFor":[)", reserved, "]}}"),
        kube::kMergePatch);
    ASSERT_TRUE(answer.ok()) << answer.text;
  }
  std::string Consumer(const std::string& pod) {
    return absl::StrCat(R"({"resource":"pods","name":")", pod, R"(","uid":")",
                        Pod(pod).TextAt({"metadata", "uid"}), "\"}");
  }
  std::string MessageOf(const std::string& pod) {
    const Json object = Pod(pod);
    const Json* const condition = FindCondition(object, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  }

  std::unique_ptr<ChildProcess> controllers_;
};

// ---- obstacles
// --------------------------------------------------------------------------------------

TEST_F(ClaimsTest, UntilTheClaimIsMadeThePodWaitsAndSaysForWhich) {
  MakeDeviceNode("n1", 1);
  Start({});
  MakeClaimPod("a", R"("resourceClaimTemplateName":"one-nic")");
  ASSERT_TRUE(Eventually(
      "the verdict", [this] { return VerdictOf("a") == "MissingObject"; },
      [this] { return VerdictOf("a"); }));
  EXPECT_TRUE(absl::StrContains(MessageOf("a"), "ResourceClaim net of template one-nic"))
      << MessageOf("a");
  StartClaimController();
  EXPECT_TRUE(Bound({"a"}));
}

TEST_F(ClaimsTest, WhatAnotherSchedulerHasAllocatedIsFollowedAndNotOverwritten) {
  MakeDeviceNode("n1", 1);
  MakeDeviceNode("n2", 2);
  MakeClaim("c");
  MakeClaim("taken");
  MakeClaimPod("foreign", R"("resourceClaimName":"c")",
               R"("schedulerName":"default-scheduler","nodeName":"n2")");
  Allocate("c", "n2", "nic-1", Consumer("foreign"));
  Allocate("taken", "n2", "nic-0", "");
  Start({});
  MakeClaimPod("a", R"("resourceClaimName":"c")");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(NodeOf("a"), "n2");
  const Json claim = Claim("c");
  EXPECT_EQ(DevicesOf(claim), std::vector<std::string>{"n2/nic-1"});
  EXPECT_EQ(Sorted(ReservedFor(claim)), (std::vector<std::string>{"a", "foreign"}));
  // A claim must not get another claim's devices: it goes elsewhere.
  MakeClaim("d");
  MakeClaimPod("b", R"("resourceClaimName":"d")");
  ASSERT_TRUE(Bound({"b"}));
  EXPECT_EQ(DevicesOf(Claim("d")), std::vector<std::string>{"n1/nic-0"});
}

TEST_F(ClaimsTest, WhatAFormerProcessHasReservedIsUsed) {
  MakeDeviceNode("n1", 1);
  MakeDeviceNode("n2", 1);
  MakeClaim("c");
  MakeClaimPod("a", R"("resourceClaimName":"c")");
  Allocate("c", "n2", "nic-0", Consumer("a"));
  const std::string version = Claim("c").TextAt({"metadata", "resourceVersion"});
  Start({});
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(NodeOf("a"), "n2");
  EXPECT_EQ(Claim("c").TextAt({"metadata", "resourceVersion"}), version) << "nothing was to write";
}

TEST_F(ClaimsTest, WhatIsAllocatedOnANodeThatThePodCannotUseIsTakenBack) {
  MakeDeviceNode("n1", 1);
  MakeDeviceNode("n2", 1);
  api().Merge(Path(kNodes, "n2"), R"({"spec":{"unschedulable":true}})");
  MakeClaim("c");
  MakeClaimPod("a", R"("resourceClaimName":"c")");
  Allocate("c", "n2", "nic-0", Consumer("a"));
  Start({});
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(NodeOf("a"), "n1");
  EXPECT_EQ(DevicesOf(Claim("c")), std::vector<std::string>{"n1/nic-0"});
}

// ---- one write, against a claim that has changed since
// -----------------------------------------------

class ClaimWritesTest : public ClaimsTest {
 protected:
  void SetUp() override {
    ClaimsTest::SetUp();
    executor_ = std::make_unique<kube::Executor>(api().transport(), api().transport(), clock_,
                                                 results_, kube::ExecutorOptions{});
    MakeClaim("c");
    seen_ = Claim("c");
  }
  void TearDown() override {
    executor_.reset();
    ClaimsTest::TearDown();
  }
  model::ActionResult Do(decltype(model::Action::what) what) {
    executor_->Submit({++last_id_, std::move(what)});
    std::optional<model::ActionResult> result;
    EXPECT_TRUE(Eventually("an answer", [&] {
      std::vector<model::ClusterEvent> events;
      results_.DrainInto(events, absl::ZeroDuration());
      for (const model::ClusterEvent& event : events) {
        if (const auto* answer = std::get_if<model::ActionResult>(&event)) result = *answer;
      }
      return result.has_value();
    }));
    return result.value_or(model::ActionResult{});
  }
  // The decision on the initial state.
  model::ReserveClaim Reserve() {
    model::ReserveClaim write;
    write.ns = "default";
    write.name = "c";
    write.uid = seen_.TextAt({"metadata", "uid"});
    write.resource_version = seen_.TextAt({"metadata", "resourceVersion"});
    write.allocate = true;
    write.allocation = {"n1", {{"nic", kDriver, "n1", "nic-0"}}, {}};
    write.pods = {{"a", "9a8b7c6d-0000-4000-8000-00000000000a"}};
    return write;
  }
  Json Now() { return Claim("c"); }

  RealClock clock_;
  kube::EventQueue results_;
  std::unique_ptr<kube::Executor> executor_;
  uint64_t last_id_ = 0;
  Json seen_;
};

TEST_F(ClaimWritesTest, AnAllocationOfAnotherSchedulerStands) {
  Allocate("c", "n2", "nic-1", "");
  const std::string version = Now().TextAt({"metadata", "resourceVersion"});
  const model::ActionResult result = Do(Reserve());
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_TRUE(absl::StrContains(result.status.message(), "allocated otherwise")) << result.status;
  EXPECT_EQ(Now().TextAt({"metadata", "resourceVersion"}), version);
}

TEST_F(ClaimWritesTest, AnotherClaimOfTheSameNameIsNotTouched) {
  api().Delete(Path(kClaims, "c"));
  MakeClaim("c");
  const std::string version = Now().TextAt({"metadata", "resourceVersion"});
  const model::ActionResult result = Do(Reserve());
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_EQ(Now().TextAt({"metadata", "resourceVersion"}), version);
}

TEST_F(ClaimWritesTest, AClaimThatGoesIsNotAllocated) {
  api().Merge(Path(kClaims, "c"), R"({"metadata":{"finalizers":["example.com/holds"]}})");
  api().Call("DELETE", Path(kClaims, "c"));
  const model::ActionResult result = Do(Reserve());
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status)) << result.status;
  EXPECT_TRUE(DevicesOf(Now()).empty());
}

TEST_F(ClaimWritesTest, WhatOthersWroteMeanwhileStays) {
  api().Merge(Path(kClaims, "c"),
              R"({"metadata":{"labels":{"x":"y"},"finalizers":["example.com/holds"]}})");
  const model::ActionResult result = Do(Reserve());
  ASSERT_TRUE(result.status.ok()) << result.status;
  Json claim = Now();
  EXPECT_EQ(result.resource_version, claim.TextAt({"metadata", "resourceVersion"}));
  EXPECT_EQ(claim.TextAt({"metadata", "labels", "x"}), "y");
  EXPECT_EQ(claim.At({"metadata", "finalizers"})->items().size(), 2u);
  EXPECT_EQ(DevicesOf(claim), std::vector<std::string>{"n1/nic-0"});
  // Repeated: nothing has to change. One more pod joins the first.
  const model::ActionResult again = Do(Reserve());
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.resource_version, result.resource_version);
  model::ReserveClaim more = Reserve();
  more.pods = {{"b", "9a8b7c6d-0000-4000-8000-00000000000b"}};
  ASSERT_TRUE(Do(more).status.ok());
  EXPECT_EQ(Sorted(ReservedFor(Now())), (std::vector<std::string>{"a", "b"}));
}

TEST_F(ClaimWritesTest, OnlyTheVersionThatWasMeantIsDeallocated) {
  const model::ActionResult reserved = Do(Reserve());
  ASSERT_TRUE(reserved.status.ok()) << reserved.status;
  const std::string uid = Now().TextAt({"metadata", "uid"});
  api().Merge(Path(kClaims, "c"), R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Do(model::DeallocateClaim{"default", "c", uid, reserved.resource_version}).status));
  EXPECT_EQ(DevicesOf(Now()).size(), 1u);
  EXPECT_TRUE(
      Do(model::DeallocateClaim{"default", "c", uid, Now().TextAt({"metadata", "resourceVersion"})})
          .status.ok());
  EXPECT_TRUE(DevicesOf(Now()).empty());
  EXPECT_TRUE(ReservedFor(Now()).empty());
}

// ---- the whole way
// ---------------------------------------------------------------------------------

TEST_F(ClaimsTest, WithTheRightsOfTheManifestsPodsGetTheirDevicesAndGiveThemBack) {
  MakeDeviceNode("n1", 2);
  StartClaimController();
  Start({.kubeconfig = InstallRights()});
  for (const char* pod : {"a", "b"}) {
    MakeClaimPod(pod, R"("resourceClaimTemplateName":"one-nic")");
  }
  ASSERT_TRUE(Bound({"a", "b"}));
  std::set<std::string> devices;
  for (const char* pod : {"a", "b"}) {
    const Json claim = Claim(ClaimOf(pod));
    ASSERT_EQ(DevicesOf(claim).size(), 1u) << claim.Compact();
    devices.insert(DevicesOf(claim)[0]);
    EXPECT_EQ(ReservedFor(claim), std::vector<std::string>{pod});
    EXPECT_EQ(claim.At({"status", "reservedFor"})->items().at(0).TextAt({"uid"}),
              Pod(pod).TextAt({"metadata", "uid"}));
    EXPECT_TRUE(absl::StrContains(claim.At({"metadata", "finalizers"})->Compact(), kFinalizer));
    EXPECT_EQ(claim.At({"status", "allocation", "nodeSelector"})->Compact(),
              R"({"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In",)"
              R"("values":["n1"]}]}]})");
    const Json* const config = claim.At({"status", "allocation", "devices", "config"});
    ASSERT_NE(config, nullptr) << claim.Compact();
    ASSERT_EQ(config->items().size(), 2u);
    EXPECT_EQ(config->items()[0].TextAt({"source"}), "FromClass");
    EXPECT_EQ(config->items()[0].At({"requests"})->Compact(), R"(["nic"])");
    EXPECT_EQ(config->items()[0].TextAt({"opaque", "parameters", "mode"}), "fast");
    EXPECT_EQ(config->items()[1].TextAt({"source"}), "FromClaim");
    EXPECT_EQ(config->items()[1].TextAt({"opaque", "parameters", "mtu"}), "9000");
  }
  EXPECT_EQ(devices, (std::set<std::string>{"n1/nic-0", "n1/nic-1"}));

  MakeClaimPod("c", R"("resourceClaimTemplateName":"one-nic")");
  ASSERT_TRUE(Eventually("no device for a third", [this] { return !VerdictOf("c").empty(); }));
  EXPECT_EQ(NodeOf("c"), "");
  const std::string freed = ClaimOf("a");
  EndPod("a");
  ASSERT_TRUE(Bound({"c"}));
  EXPECT_TRUE(Eventually("the claim controller has taken the reservation back", [&] {
    const Answer answer = api().Get(Path(kClaims, freed));
    return answer.status == 404 || ReservedFor(answer.body).empty();
  }));
}

TEST_F(ClaimsTest, WhatNumbersCannotSayIsAllocatedInTheServersWords) {
  MakeDeviceNode("n1", 3);
  MakeDeviceNode("n2", 2);
  const auto asks = [](const std::string& name, const std::string& mode) {
    return absl::StrCat(R"({"name":")", name, R"(","deviceClassName":")", kDriver, "\",", mode,
                        "}");
  };
  const auto exactly = [](const std::string& mode) {
    return absl::StrCat(R"({"name":"nic","exactly":{"deviceClassName":")", kDriver, "\",", mode,
                        "}}");
  };
  const auto devices = [](const std::string& request, const std::string& more) {
    return absl::StrCat(R"({"devices":{"requests":[)", request, "]", more, "}}");
  };
  const auto request_of = [this](const std::string& claim) {
    const Json object = Claim(claim);
    const Json* const results = object.At({"status", "allocation", "devices", "results"});
    return results == nullptr ? "" : results->items().at(0).TextAt({"request"});
  };
  MakeClaimOf("pair", devices(exactly(R"("count":2)"),
                              absl::StrCat(R"(,"constraints":[{"matchAttribute":")", kDriver,
                                           R"(/numa"}])")));
  MakeClaimOf("all", devices(exactly(R"("allocationMode":"All")"), ""));
  MakeClaimOf("either", devices(absl::StrCat(R"({"name":"nic","firstAvailable":[)",
                                             asks("two", R"("count":2)"), ",",
                                             asks("one", R"("count":1)"), "]}"),
                                ""));
  Start({});
  MakeClaimPod("a", R"("resourceClaimName":"pair")");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(DevicesOf(Claim("pair")), (std::vector<std::string>{"n1/nic-0", "n1/nic-2"}));
  MakeClaimPod("b", R"("resourceClaimName":"all")");
  ASSERT_TRUE(Bound({"b"}));
  EXPECT_EQ(DevicesOf(Claim("all")), (std::vector<std::string>{"n2/nic-0", "n2/nic-1"}));
  EXPECT_EQ(request_of("all"), "nic");
  MakeClaimPod("c", R"("resourceClaimName":"either")");
  ASSERT_TRUE(Bound({"c"}));
  EXPECT_EQ(DevicesOf(Claim("either")), std::vector<std::string>{"n1/nic-1"});
  EXPECT_EQ(request_of("either"), "nic/one");
}

// Two halves of one device, or the whole of it, which needs a toleration.
TEST_F(ClaimsTest, PartitionsAndAdminAccessAreAllocatedInTheServersWords) {
  MakeNode("n1", 0);
  MakeHalfOfPool("n1", "counters",
                 R"("sharedCounters":[{"name":"nic-0","counters":{"lanes":{"value":"8"}}}])");
  const auto part = [](const std::string& name, int lanes, const std::string& more) {
    return absl::StrCat(R"({"name":")", name, R"(","consumesCounters":[{"counterSet":"nic-0",)",
                        R"("counters":{"lanes":{"value":")", lanes, R"("}}}],"attributes":{)",
                        R"("side":{"string":")", name, R"("}})", more, "}");
  };
  MakeHalfOfPool(
      "n1", "devices",
      absl::StrCat(R"("devices":[)", part("left", 4, ""), ",", part("right", 4, ""), ",",
                   part("whole", 8, R"(,"taints":[{"key":"whole","effect":"NoSchedule"}])"), "]"));
  api().Merge("/api/v1/namespaces/default",
              R"({"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}})");
  const auto claim = [this](const std::string& name, const std::string& fields,
                            const std::string& constraint) {
    MakeClaimOf(name, absl::StrCat(R"({"devices":{"requests":[{"name":"nic","exactly":{)",
                                   R"("deviceClassName":")", kDriver, "\",", fields,
                                   R"(}}],"constraints":[)", constraint, "]}}"));
  };
  const std::string distinct = absl::StrCat(R"({"distinctAttribute":")", kDriver, R"(/side"})");
  claim("halves", R"("count":2)", distinct);
  claim(
      "whole",
      absl::StrCat(R"("tolerations":[{"key":"whole","operator":"Exists"}],"selectors":[{"cel":)",
                   R"({"expression":"device.attributes[')", kDriver,
                   R"('].side.matches('^w') || !has(device.attributes['x.io'].side) && false"}}])"),
      "");
  claim("watch",
        R"("allocationMode":"All","adminAccess":true,"tolerations":[{"operator":"Exists"}])", "");
  StartClaimController();
  ChildProcess& first = Start({});
  MakeClaimPod("a", R"("resourceClaimName":"halves")");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(DevicesOf(Claim("halves")), (std::vector<std::string>{"n1/left", "n1/right"}));
  MakeClaimPod("b", R"("resourceClaimName":"whole")");
  MakeClaimPod("c", R"("resourceClaimName":"watch")");
  ASSERT_TRUE(Bound({"c"}));
  EXPECT_EQ(DevicesOf(Claim("watch")),
            (std::vector<std::string>{"n1/left", "n1/right", "n1/whole"}));
  const Json watch = Claim("watch");
  const Json* const results = watch.At({"status", "allocation", "devices", "results"});
  ASSERT_NE(results, nullptr);
  for (const Json& result : results->items()) {
    EXPECT_EQ(result.TextAt({"adminAccess"}), "true");
  }
  ASSERT_TRUE(Eventually("the halves are in use", [this] { return !VerdictOf("b").empty(); }));
  EXPECT_EQ(NodeOf("b"), "");
  // The next process knows what is in use, and what is only looked at.
  first.Kill();
  Start({});
  EndPod("a");
  ASSERT_TRUE(Bound({"b"}));
  EXPECT_EQ(DevicesOf(Claim("whole")), std::vector<std::string>{"n1/whole"});
}

TEST_F(ClaimsTest, ADeviceThatAnAdminTaintedIsGivenOnceTheRuleIsGone) {
  MakeDeviceNode("n1", 2);
  api().Create(kRules,
               absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule",)",
                            R"("metadata":{"name":"broken"},"spec":{"deviceSelector":{"driver":")",
                            kDriver, R"(","pool":"n1","device":"nic-0"},)",
                            R"("taint":{"key":"broken","effect":"NoExecute"}}})"));
  StartClaimController();
  Start({});
  MakeClaim("one");
  MakeClaim("two", 2);
  MakeClaimPod("a", R"("resourceClaimName":"one")");
  ASSERT_TRUE(Bound({"a"}));
  EXPECT_EQ(DevicesOf(Claim("one")), std::vector<std::string>{"n1/nic-1"});
  EndPod("a");
  MakeClaimPod("b", R"("resourceClaimName":"two")");
  ASSERT_TRUE(Eventually(
      "the verdict", [this] { return VerdictOf("b") == "InsufficientCapacity"; },
      [this] { return VerdictOf("b"); }));
  EXPECT_EQ(NodeOf("b"), "");
  EXPECT_TRUE(api().Call("DELETE", Path(kRules, "broken")).ok());
  ASSERT_TRUE(Bound({"b"}));
  EXPECT_EQ(DevicesOf(Claim("two")), (std::vector<std::string>{"n1/nic-0", "n1/nic-1"}));
}

// Both pods run: with kube-scheduler, too, evictions are another controller's.
TEST_F(ClaimsTest, ATaintLeavesWhatRunsAloneAndIsToleratedWithItsSeconds) {
  MakeDeviceNode("n1", 2);
  StartClaimController();
  Start({});
  MakeClaim("before");
  MakeClaimPod("a", R"("resourceClaimName":"before")");
  ASSERT_TRUE(Bound({"a"}));
  api().Create(kRules, R"({"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule",)"
                       R"("metadata":{"name":"broken"},"spec":{"deviceSelector":{},)"
                       R"("taint":{"key":"broken","effect":"NoExecute"}}})");
  MakeClaim("after");
  MakeClaimPod("b", R"("resourceClaimName":"after")");
  ASSERT_TRUE(Eventually(
      "the verdict", [this] { return VerdictOf("b") == "InsufficientCapacity"; },
      [this] { return VerdictOf("b"); }));
  MakeClaimOf("tolerant", absl::StrCat(R"({"devices":{"requests":[{"name":"nic","exactly":{)",
                                       R"("deviceClassName":")", kDriver,
                                       R"(","tolerations":[{"key":"broken",)",
                                       R"("operator":"Exists","effect":"NoExecute",)",
                                       R"("tolerationSeconds":300}]}}]}})"));
  MakeClaimPod("c", R"("resourceClaimName":"tolerant")");
  ASSERT_TRUE(Bound({"c"}));
  const Json claim = Claim("tolerant");
  const Json* const results = claim.At({"status", "allocation", "devices", "results"});
  ASSERT_NE(results, nullptr) << claim.Compact();
  EXPECT_TRUE(absl::StrContains(results->Compact(), "\"tolerationSeconds\":300"))
      << results->Compact();
  EXPECT_EQ(NodeOf("a"), "n1");
  EXPECT_EQ(NodeOf("b"), "");
}

// n1 and n2 are in the rack of the fabric, n3 is not. The nodes take one pod each.
TEST_F(ClaimsTest, ADeviceOfSeveralNodesIsAllocatedOnce) {
  for (const char* node : {"n1", "n2", "n3"}) MakeNode(node, 0);
  for (const char* node : {"n1", "n2"}) {
    api().Merge(Path(kNodes, node), R"({"metadata":{"labels":{"rack":"r0"}}})");
  }
  api().Create(
      kSlices,
      absl::StrCat(
          R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
          R"("metadata":{"name":"fabric"},"spec":{"driver":")", kDriver,
          R"(","nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"rack",)",
          R"("operator":"In","values":["r0"]}]}]},"pool":{"name":"fabric","generation":1,)",
          R"("resourceSliceCount":1},"devices":[{"name":"port"}]}})"));
  StartClaimController();
  ChildProcess& first = Start({});
  MakeClaim("a");
  MakeClaim("b");
  for (const char* pod : {"a", "b"}) {
    MakeClaimPod(pod, absl::StrCat(R"("resourceClaimName":")", pod, "\""));
  }
  ASSERT_TRUE(
      Eventually("one has it", [this] { return NodeOf("a").empty() != NodeOf("b").empty(); }));
  const std::string winner = NodeOf("a").empty() ? "b" : "a", other = winner == "a" ? "b" : "a";
  EXPECT_NE(NodeOf(winner), "n3");
  EXPECT_EQ(DevicesOf(Claim(winner)), std::vector<std::string>{"fabric/port"});
  const Json claim = Claim(winner);
  const Json* const terms = claim.At({"status", "allocation", "nodeSelector", "nodeSelectorTerms"});
  ASSERT_NE(terms, nullptr) << claim.Compact();
  EXPECT_EQ(terms->Compact(),
            R"([{"matchExpressions":[{"key":"rack","operator":"In","values":["r0"]}]}])");
  ASSERT_TRUE(Eventually(
      "the verdict", [&] { return VerdictOf(other) == "InsufficientCapacity"; },
      [&] { return VerdictOf(other); }));
  // The next process knows who has it.
  first.Kill();
  Start({});
  MakeClaim("c");
  MakeClaimPod("c", R"("resourceClaimName":"c")");
  ASSERT_TRUE(Eventually("c waits, too", [this] { return !VerdictOf("c").empty(); }));
  EXPECT_EQ(NodeOf(other) + NodeOf("c"), "");
  EndPod(winner);
  ASSERT_TRUE(Eventually("one of them has it",
                         [&] { return NodeOf(other).empty() != NodeOf("c").empty(); }));
}

TEST_F(ClaimsTest, ASharedClaimKeepsItsPodsTogetherAndIsDeallocatedAfterTheLast) {
  MakeDeviceNode("n1", 1);
  MakeDeviceNode("n2", 1);
  StartClaimController();
  Start({});
  MakeClaim("shared");
  for (const char* pod : {"a", "b"}) MakeClaimPod(pod, R"("resourceClaimName":"shared")");
  ASSERT_TRUE(Bound({"a", "b"}));
  EXPECT_EQ(NodeOf("a"), NodeOf("b"));
  EXPECT_EQ(DevicesOf(Claim("shared")).size(), 1u);
  EXPECT_EQ(Sorted(ReservedFor(Claim("shared"))), (std::vector<std::string>{"a", "b"}));
  EndPod("a");
  EXPECT_TRUE(Eventually("reserved for the other one alone", [this] {
    return ReservedFor(Claim("shared")) == std::vector<std::string>{"b"};
  }));
  EXPECT_EQ(DevicesOf(Claim("shared")).size(), 1u);
  EndPod("b");
  EXPECT_TRUE(Eventually("deallocated", [this] { return DevicesOf(Claim("shared")).empty(); }));
  MakeClaimPod("c", R"("resourceClaimName":"shared")");
  EXPECT_TRUE(Bound({"c"}));
  // The claim controller may add an ended pod once more, and removes it again.
  const std::vector<std::string> reserved = ReservedFor(Claim("shared"));
  EXPECT_EQ(std::count(reserved.begin(), reserved.end(), "c"), 1);
}

}  // namespace
}  // namespace fairlead::integration
