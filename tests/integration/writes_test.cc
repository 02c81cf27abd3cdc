// The effect of the project's writer on real objects: foreign fields stay, and an object that was
// created again under its name is not changed by a decision about the former one.
#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/watch/event_queue.h"
#include "kube/write/executor.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

using What = decltype(model::Action::what);

class WritesTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    kube::ExecutorOptions options;
    options.identity.host = "test";  // the server requires it of events
    executor_ = std::make_unique<kube::Executor>(api().transport(), api().transport(), clock_,
                                                 results_, options);
  }
  void TearDown() override {
    executor_.reset();
    IntegrationTest::TearDown();
  }

  // Carries it out and waits for the answer.
  absl::Status Do(What what) {
    model::Action action;
    action.id = ++last_id_;
    action.what = std::move(what);
    executor_->Submit(std::move(action));
    std::optional<absl::Status> status;
    const ::testing::AssertionResult answered = Eventually("an answer", [&] {
      std::vector<model::ClusterEvent> events;
      results_.DrainInto(events, absl::ZeroDuration());
      for (const model::ClusterEvent& event : events) {
        if (const auto* result = std::get_if<model::ActionResult>(&event)) status = result->status;
      }
      return status.has_value();
    });
    return answered ? *status : absl::InternalError(answered.message());
  }

  static std::string Uid(const Json& object) { return object.TextAt({"metadata", "uid"}); }
  Json MakeRequest(const std::string& name) {
    return api().Create(
        kRequests, absl::StrCat(R"({"apiVersion":"fairlead.dev/v1alpha1","kind":)",
                                R"("NodeRequest","metadata":{"name":")", name,
                                R"("},"spec":{"provider":"kwok",)", R"("instanceType":"t"}})"));
  }
  static model::SetPodGroupSchedulability Verdict(const std::string& uid, const std::string& json) {
    return {"default", "x", uid, json, "R", "m"};
  }
  static model::UpdateNodeRequestStatus Launched(const std::string& uid) {
    model::UpdateNodeRequestStatus update;
    update.request.Own().meta.name = "x";
    update.request.Own().meta.uid = uid;
    update.request.Own().phase = model::NodeRequestPhase::kLaunched;
    update.request.Own().launched_at = absl::FromUnixSeconds(1'795'226'439);
    return update;
  }

  RealClock clock_;
  kube::EventQueue results_;
  std::unique_ptr<kube::Executor> executor_;
  uint64_t last_id_ = 0;
};

constexpr char kLimit[] =
    R"({"v":1,"code":"QueueLimitReached","category":"policy","hash":"1","queueBlock":)"
    R"({"queue":"q","resource":"nvidia.com/gpu","limit":"8","used":"8","requested":"1"}})";
constexpr char kCapacity[] =
    R"({"v":1,"code":"InsufficientCapacity","category":"capacity","hash":"2"})";

// ---- events

// The server checks what a series may be, and that nothing else of an event changes.
TEST_F(WritesTest, AnEventThatRepeatsIsOneEventWithASeries) {
  const Json pod = MakePod({.name = "x"});
  model::EmitEvent event{model::Kind::kPod,
                         "default",
                         "x",
                         Uid(pod),
                         true,
                         "FailedScheduling",
                         "note",
                         model::EventAction::kScheduling};
  event.reporter = "default-scheduler";
  event.related.Own() = {model::Kind::kPod, "default", "y", "uid-y"};
  for (int i = 0; i < 2; ++i) {
    const absl::Status done = Do(event);
    ASSERT_TRUE(done.ok()) << done;
  }
  std::vector<Json> found;
  for (const Json& object : api().List("/apis/events.k8s.io/v1/namespaces/default/events")) {
    if (object.TextAt({"regarding", "uid"}) == Uid(pod)) found.push_back(object);
  }
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].TextAt({"reportingController"}), "default-scheduler");
  EXPECT_EQ(found[0].TextAt({"related", "name"}), "y");
  ASSERT_NE(found[0].At({"series", "count"}), nullptr) << found[0].Compact();
  EXPECT_EQ(found[0].At({"series", "count"})->Compact(), "2");
}

// ---- an object that was created again
// --------------------------------------------------------------

TEST_F(WritesTest, WhatWasDecidedAboutAnObjectDoesNotTouchItsSuccessor) {
  struct Row {
    const char* name;
    const char* collection;
    std::function<Json()> make;
    std::function<What(const std::string& uid)> write;
  };
  const auto pod = [this] { return MakePod({.name = "x"}); };
  const auto group = [this] { return MakeGroup("x", 2); };
  const auto request = [this] { return MakeRequest("x"); };
  const auto node = [this] {
    MakeNode("x", 1);
    return api().Get(Path(kNodes, "x")).body;
  };
  const Row rows[] = {
      {"status of a node request", kRequests, request,
       [](const std::string& uid) { return What(Launched(uid)); }},
      {"deletion of a node request", kRequests, request,
       [](const std::string& uid) { return What(model::DeleteNodeRequest{"x", uid}); }},
      {"verdict of a pod group", kGroups, group,
       [](const std::string& uid) { return What(Verdict(uid, kLimit)); }},
      {"end of the verdict of a pod group", kGroups, group,
       [](const std::string& uid) { return What(Verdict(uid, "")); }},
      {"annotations of a pod group", kGroups, group,
       [](const std::string& uid) {
         return What(model::SetPodGroupAnnotations{"default", "x", uid, {{"a", "1"}}});
       }},
      {"verdict of a pod", kPods, pod,
       [](const std::string& uid) {
         return What(model::SetPodUnschedulable{"default", "x", uid, "R", "m", kLimit, "", 0});
       }},
      {"eviction", kPods, pod,
       [](const std::string& uid) { return What(model::EvictPod{"default", "x", uid, "R", "m"}); }},
      {"binding", kPods, pod,
       [](const std::string& uid) {
         return What(model::BindPod{"default", "x", uid, "n", {{"a", "1"}}});
       }},
      {"taint", kNodes, node,
       [](const std::string& uid) {
         return What(model::SetNodeTaint{
             "x", uid, {"fairlead.dev/t", "", model::TaintEffect::kNoSchedule}, true});
       }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = Path(row.collection, "x");
    const std::string former = Uid(row.make());
    api().Delete(path);
    ASSERT_NE(Uid(row.make()), former);
    const Json successor = api().Get(path).body;
    const absl::Status status = Do(row.write(former));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    // To the last field, its version included.
    EXPECT_EQ(api().Get(path).body.Compact(), successor.Compact());
    // With the correct uid the write works: the row tests the precondition and nothing else.
    EXPECT_TRUE(Do(row.write(Uid(successor))).ok());
    const Answer after = api().Get(path);
    EXPECT_NE(after.body.Compact(), successor.Compact());
    if (after.ok()) api().Delete(path);
  }
}

TEST_F(WritesTest, WhatIsGoneIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Do(Launched("u"))));
  EXPECT_TRUE(absl::IsNotFound(Do(Verdict("u", kLimit))));
  EXPECT_TRUE(absl::IsNotFound(Do(model::BindPod{"default", "x", "u", "n", {}})));
}

// ---- statuses of custom kinds
// ----------------------------------------------------------------------

TEST_F(WritesTest, AVerdictReplacesTheFormerOneWhole) {
  const std::string uid = Uid(MakeGroup("x", 2));
  ASSERT_TRUE(Do(Verdict(uid, kLimit)).ok());
  ASSERT_EQ(GroupVerdict("x").TextAt({"queueBlock", "queue"}), "q");
  ASSERT_TRUE(Do(Verdict(uid, kCapacity)).ok());
  EXPECT_EQ(GroupVerdict("x").TextAt({"code"}), "InsufficientCapacity");
  EXPECT_EQ(GroupVerdict("x").Find("queueBlock"), nullptr) << GroupVerdict("x").Compact();
  ASSERT_TRUE(Do(Verdict(uid, "")).ok());
  const Json group = api().Get(Path(kGroups, "x")).body;
  EXPECT_EQ(group.At({"status", "schedulability"}), nullptr) << group.Compact();
  EXPECT_EQ(group.At({"status", "schedulingConditions"}), nullptr) << group.Compact();
}

TEST_F(WritesTest, TimesOfANodeRequestComeAndGo) {
  const std::string uid = Uid(MakeRequest("x"));
  model::UpdateNodeRequestStatus update = Launched(uid);
  update.request.Own().unneeded_since = update.request->launched_at;
  ASSERT_TRUE(Do(update).ok());
  Json request = api().Get(Path(kRequests, "x")).body;
  EXPECT_EQ(request.TextAt({"status", "phase"}), "Launched");
  EXPECT_EQ(request.TextAt({"status", "unneededSince"}), "2026-11-21T02:00:39Z");
  EXPECT_EQ(request.At({"status", "readyAt"}), nullptr);
  update.request.Own().unneeded_since.reset();
  ASSERT_TRUE(Do(update).ok());
  request = api().Get(Path(kRequests, "x")).body;
  EXPECT_EQ(request.At({"status", "unneededSince"}), nullptr);
  EXPECT_EQ(request.TextAt({"status", "launchedAt"}), "2026-11-21T02:00:39Z");
}

TEST_F(WritesTest, WhatTheSchemaForbidsIsInvalidAndSaysWhy) {
  const std::string uid = Uid(MakeGroup("x", 2));
  const absl::Status status = Do(Verdict(uid, R"({"v":1,"code":"C","category":"no","hash":"h"})"));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "category")) << status;
}

// In a cluster with KAI's CRD: a new group has no status, and nothing creates one.
TEST_F(WritesTest, AStatusThatIsNotThereYetIsMade) {
  constexpr char kDefinition[] =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.run.ai";
  constexpr char kDefault[] = "/spec/versions/0/schema/openAPIV3Schema/properties/status/default";
  const auto patch = [&](const std::string& operation) {
    const Answer answer = api().Call(
        "PATCH", kDefinition,
        absl::StrCat(R"([{"op":")", operation, R"(","path":")", kDefault, R"(","value":{}}])"),
        kube::kJsonPatch);
    ASSERT_TRUE(answer.ok()) << answer.text;
    const bool wanted = operation == "add";
    ASSERT_TRUE(Eventually("the definition is in force", [&] {
      // It may be rejected while the server reloads the schema.
      const Answer made = api().Call("POST", kGroups, GroupText("trial", 2));
      if (!made.ok()) return false;
      api().Delete(Path(kGroups, "trial"));
      return (made.body.Find("status") != nullptr) == wanted;
    }));
  };
  patch("remove");
  const std::string uid = Uid(MakeGroup("x", 2));
  EXPECT_TRUE(Do(Verdict(uid, kLimit)).ok());
  EXPECT_EQ(GroupVerdict("x").TextAt({"code"}), "QueueLimitReached");
  EXPECT_TRUE(Do(Verdict(uid, kCapacity)).ok());
  EXPECT_EQ(GroupVerdict("x").TextAt({"code"}), "InsufficientCapacity");
  // Another object: reported as such, although it has no status either.
  api().Delete(Path(kGroups, "x"));
  MakeGroup("x", 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(Do(Verdict(uid, kLimit))));
  EXPECT_EQ(GroupVerdict("x").TextAt({"code"}), "");
  patch("add");
}

// ---- foreign fields
// ---------------------------------------------------------------------------------

TEST_F(WritesTest, FieldsOfOthersStayOnPods) {
  MakeQueue("team", 1, 1);
  MakeNode("n1", 2);
  MakePod({.name = "held", .gpus = 2, .more_metadata = R"("finalizers":["example.com/f"],)"});
  api().Merge(Path(kPods, "held"), R"({"metadata":{"annotations":{"example.com/a":"1"}}})");
  api().Merge(absl::StrCat(Path(kPods, "held"), "/status"),
              R"({"status":{"conditions":[{"type":"example.com/C","status":"True"}]}})");
  Start({});
  ASSERT_TRUE(Eventually("a verdict", [&] { return VerdictOf("held") == "QueueLimitReached"; }));
  const auto expect_all_there = [&] {
    const Json pod = Pod("held");
    EXPECT_NE(FindCondition(pod, "example.com/C"), nullptr) << pod.Compact();
    EXPECT_EQ(pod.TextAt({"metadata", "annotations", "example.com/a"}), "1");
    const Json* const finalizers = pod.At({"metadata", "finalizers"});
    ASSERT_NE(finalizers, nullptr);
    EXPECT_EQ(finalizers->Compact(), R"(["example.com/f"])");
  };
  expect_all_there();
  api().Merge(Path(kQueues, "team"), R"({"spec":{"resources":{"gpu":{"quota":2,"limit":2}}}})");
  ASSERT_TRUE(Bound({"held"}));
  EXPECT_EQ(VerdictOf("held"), "");
  expect_all_there();
}

TEST_F(WritesTest, FieldsOfOthersStayOnGroupsAndQueues) {
  MakeQueue("team", 1, 1);
  const std::string queue_status =
      R"({"status":{"allocated":{"nvidia.com/gpu":"3"},"childQueues":["c"]}})";
  api().Merge(absl::StrCat(Path(kQueues, "team"), "/status"), queue_status);
  const Json queue = api().Get(Path(kQueues, "team")).body;
  MakeGroup("x", 2);
  api().Merge(Path(kGroups, "x"), R"({"metadata":{"annotations":{"example.com/a":"1"},)"
                                  R"("finalizers":["example.com/f"]}})");
  api().Merge(absl::StrCat(Path(kGroups, "x"), "/status"),
              R"({"status":{"resourcesStatus":{"requested":{"nvidia.com/gpu":"2"}},)"
              R"("conditions":[{"type":"example.com/C","status":"True","reason":"R","message":"",)"
              R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  Start({});
  for (const char* name : {"p1", "p2"}) MakePod({.name = name, .group = "x"});
  ASSERT_TRUE(Eventually(
      "a verdict", [&] { return GroupVerdict("x").TextAt({"code"}) == "QueueLimitReached"; }));
  const auto expect_all_there = [&] {
    const Json group = api().Get(Path(kGroups, "x")).body;
    EXPECT_EQ(group.TextAt({"metadata", "annotations", "example.com/a"}), "1");
    EXPECT_NE(group.At({"metadata", "finalizers"}), nullptr);
    EXPECT_EQ(group.TextAt({"status", "resourcesStatus", "requested", "nvidia.com/gpu"}), "2");
    EXPECT_NE(FindCondition(group, "example.com/C"), nullptr) << group.Compact();
  };
  expect_all_there();
  MakeNode("n1", 2);
  api().Merge(Path(kQueues, "team"), R"({"spec":{"resources":{"gpu":{"quota":2,"limit":2}}}})");
  ASSERT_TRUE(Bound({"p1", "p2"}));
  ASSERT_TRUE(Eventually("the verdict is gone",
                         [&] { return GroupVerdict("x").TextAt({"code"}).empty(); }));
  expect_all_there();
  EXPECT_EQ(api().Get(Path(kQueues, "team")).body.Find("status")->Compact(),
            queue.Find("status")->Compact());
}

TEST_F(WritesTest, TaintsOfOthersStayOnNodes) {
  MakeNode("n1", 1);
  api().Merge(Path(kNodes, "n1"),
              R"({"spec":{"taints":[{"key":"example.com/t","effect":"NoSchedule"}]}})");
  const std::string uid = Uid(api().Get(Path(kNodes, "n1")).body);
  const model::Taint ours{"fairlead.dev/t", "v", model::TaintEffect::kNoSchedule};
  const auto taints = [&] {
    const Json node = api().Get(Path(kNodes, "n1")).body;
    const Json* const found = node.At({"spec", "taints"});
    return found == nullptr ? "" : found->Compact();
  };
  ASSERT_TRUE(Do(model::SetNodeTaint{"n1", uid, ours, true}).ok());
  EXPECT_TRUE(absl::StrContains(taints(), "example.com/t")) << taints();
  EXPECT_TRUE(absl::StrContains(taints(), "fairlead.dev/t")) << taints();
  ASSERT_TRUE(Do(model::SetNodeTaint{"n1", uid, ours, false}).ok());
  EXPECT_EQ(taints(), R"([{"key":"example.com/t","effect":"NoSchedule"}])");
}

}  // namespace
}  // namespace fairlead::integration
