// The real process takes over a cluster that KAI has been running (tests/takeover/cluster.yaml), on
// the real API server: running pods stay untouched, and KAI's data stay valid.
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kCluster[] = FAIRLEAD_SOURCE_DIR "/tests/takeover/cluster.yaml";
constexpr char kReservations[] = "/api/v1/namespaces/kai-resource-reservation/pods";
constexpr char kPriorityClasses[] = "/apis/scheduling.k8s.io/v1/priorityclasses";

// AGO(3h) becomes the time three hours before now.
std::string WithTimes(std::string text) {
  const absl::Time now = absl::Now();
  for (size_t at = text.find("AGO("); at != std::string::npos; at = text.find("AGO(", at)) {
    const size_t end = text.find(')', at);
    absl::Duration age;
    EXPECT_TRUE(absl::ParseDuration(text.substr(at + 4, end - at - 4), &age));
    text.replace(at, end + 1 - at,
                 absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now - age, absl::UTCTimeZone()));
  }
  return text;
}

std::string CollectionOf(const Json& object) {
  const std::string kind = object.TextAt({"kind"});
  if (kind == "Node") return kNodes;
  if (kind == "Queue") return kQueues;
  if (kind == "PodGroup") return kGroups;
  if (kind == "PriorityClass") return kPriorityClasses;
  return object.TextAt({"metadata", "namespace"}) == "default" ? kPods : kReservations;
}

std::string NameOf(const Json& object) { return object.TextAt({"metadata", "name"}); }
std::string VersionOf(const Json& object) { return object.TextAt({"metadata", "resourceVersion"}); }
bool IsTerminating(const Json& object) {
  return !object.TextAt({"metadata", "deletionTimestamp"}).empty();
}

class TakeoverTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    CleanMore();
    std::ifstream file(kCluster);
    ASSERT_TRUE(file.good()) << kCluster;
    std::stringstream text;
    text << file.rdbuf();
    const auto documents = YamlToJson(WithTimes(text.str()));
    ASSERT_TRUE(documents.ok()) << documents.status();
    api().Call("POST", "/api/v1/namespaces",
               R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":)"
               R"("kai-resource-reservation"}})");  // it may be there already
    for (const std::string& document : *documents) {
      const auto object = Json::Parse(document);
      ASSERT_TRUE(object.ok()) << object.status();
      const std::string collection = CollectionOf(*object);
      api().Create(collection, document);
      const Json* const status = object->Find("status");
      if (status == nullptr) continue;
      Json patch = Json::Object();
      patch.Set("status", *status);
      api().Merge(Path(collection, NameOf(*object)) + "/status", patch.Compact());
    }
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    CleanMore();
  }
  void CleanMore() {
    if (api().Get("/api/v1/namespaces/kai-resource-reservation").ok()) {
      for (const Json& pod : api().List(kReservations)) {
        api().Delete(Path(kReservations, NameOf(pod)));
      }
    }
    for (const char* name : {"train", "build", "inference"}) {
      api().Delete(Path(kPriorityClasses, name));
    }
  }

  Json Group(const std::string& name) { return api().Get(Path(kGroups, name)).body; }
  // Null if the group has no condition of that pool.
  static const Json* ConditionOf(const Json& group, const std::string& pool) {
    const Json* const conditions = group.At({"status", "schedulingConditions"});
    if (conditions == nullptr) return nullptr;
    for (const Json& condition : conditions->items()) {
      if (condition.TextAt({"nodePool"}) == pool) return &condition;
    }
    return nullptr;
  }
  ::testing::AssertionResult HasDecided() {
    return Eventually("it has decided", [&] {
      return GroupVerdict("pg-over-8e8e").TextAt({"code"}) == "QueueLimitReached" &&
             ConditionOf(Group("pg-train-6f1c"), "default") == nullptr;
    });
  }
  // Versions of the objects that must not be written.
  std::map<std::string, std::string> Versions() {
    std::map<std::string, std::string> versions;
    for (const char* collection : {kPods, kReservations, kGroups, kQueues}) {
      for (const Json& object : api().List(collection)) {
        versions[absl::StrCat(collection, "/", NameOf(object))] = VersionOf(object);
      }
    }
    for (const char* name : {"/pg-over-8e8e", "/pg-train-6f1c"}) {
      versions.erase(absl::StrCat(kGroups, name));
    }
    versions.erase(absl::StrCat(kPods, "/over-0"));
    return versions;
  }
  double Writes(const char* subresource) {
    return api().Metric("apiserver_request_total",
                        {absl::StrCat("subresource=\"", subresource, "\"")});
  }
  // The output of a command of the program.
  Json Ask(std::vector<std::string> arguments) {
    Plane* const plane = Plane::Get();
    arguments.insert(arguments.begin(), FAIRLEAD_BINARY);
    for (const char* more : {"-o", "json", "--kubeconfig"}) arguments.emplace_back(more);
    arguments.push_back(plane->kubeconfig());
    ChildProcess process(arguments, plane->NewFile("answer.log"));
    EXPECT_EQ(process.Wait(kPatience), 0) << process.Log();
    const std::string log = process.Log();
    const size_t begin = log.find("{\n");
    auto answer = Json::Parse(begin == std::string::npos ? "" : log.substr(begin));
    EXPECT_TRUE(answer.ok()) << log;
    return answer.ok() ? *std::move(answer) : Json();
  }
  void MakeKaiPod(const std::string& name, const std::string& queue, const std::string& resources,
                  const std::string& annotations = "") {
    api().Create(
        kPods,
        absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                     R"(","labels":{"kai.scheduler/queue":")", queue, R"("},"annotations":{)",
                     annotations, R"(}},"spec":{"schedulerName":)",
                     R"("kai-scheduler","containers":[{"name":"main","image":"i",)",
                     R"("resources":{"requests":{"cpu":"1"},"limits":{)", resources, "}}}]}}"));
  }
};

TEST_F(TakeoverTest, WhatRunsIsAsItWasAndTheNumbersAreKais) {
  const std::map<std::string, std::string> before = Versions();
  const double bindings = Writes("binding");
  const double evictions = Writes("eviction");
  const Json train = Group("pg-train-6f1c");
  const Json over = Group("pg-over-8e8e");
  const auto history = api().Watch(kPods);
  ChildProcess& process = Start({});
  ASSERT_TRUE(HasDecided());
  ASSERT_TRUE(Eventually("the pod is told too", [&] {
    const Json pod = Pod("over-0");
    const Json* const condition = FindCondition(pod, "PodScheduled");
    return condition != nullptr && condition->TextAt({"reason"}) == "QueueLimitReached";
  }));

  // Not one write to a running object.
  EXPECT_EQ(Versions(), before);
  EXPECT_EQ(Writes("binding"), bindings);
  EXPECT_EQ(Writes("eviction"), evictions);
  EXPECT_FALSE(history->Any(IsTerminating));
  for (const History::Event& event : history->events()) EXPECT_NE(event.type, "DELETED");

  // The entries of another node pool's scheduler are unchanged; ours is the newest.
  for (const char* name : {"pg-train-6f1c", "pg-over-8e8e"}) {
    const Json now = Group(name);
    const Json* const theirs = ConditionOf(now, "pool-b");
    ASSERT_NE(theirs, nullptr) << name;
    EXPECT_EQ(theirs->Compact(),
              ConditionOf(name == NameOf(train) ? train : over, "pool-b")->Compact());
  }
  const Json told = Group("pg-over-8e8e");
  int64_t id = 0;
  EXPECT_TRUE(absl::SimpleAtoi(ConditionOf(told, "default")->TextAt({"transitionID"}), &id));
  EXPECT_GT(id, 4);

  // Compares the program's queues with the sums of KAI's controller.
  const Json queues = Ask({"queues"});
  ASSERT_NE(queues.Find("items"), nullptr);
  std::map<std::string, std::string> allocated;
  int compared = 0;
  for (const Json& queue : queues.Find("items")->items()) {
    const std::string name = queue.TextAt({"name"});
    const Json* const gpu = queue.At({"resources", "nvidia.com/gpu"});
    ASSERT_NE(gpu, nullptr) << name;
    allocated[name] = gpu->TextAt({"allocated"});
    if (gpu->Find("recorded") == nullptr) continue;
    for (const char* what : {"allocated", "allocatedNonPreemptible", "requested"}) {
      // KAI's controllers omit a fraction's number of devices, and requests by memory.
      if (name == "multi" || name == "by-memory" || name == "institute") continue;
      EXPECT_EQ(gpu->TextAt({what}), gpu->TextAt({"recorded", what})) << name << " " << what;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 21);
  EXPECT_EQ(allocated["multi"], "800m");
  EXPECT_EQ(allocated["by-memory"], "250m");
  EXPECT_EQ(allocated["institute"], "16550m");
  const Json one = Ask({"explain", "queue/shared"});
  ASSERT_EQ(one.Find("items")->items().size(), 2u) << one.Compact();
  EXPECT_EQ(one.Find("items")->items()[1].TextAt(
                {"resources", "nvidia.com/gpu", "recorded", "allocated"}),
            "500m");
  EXPECT_EQ(Ask({"explain", "podgroup/pg-train-6f1c", "-n", "default"}).TextAt({"state"}),
            "Running");
  EXPECT_TRUE(process.Running());
}

TEST_F(TakeoverTest, AnotherPoolsSchedulerMayGoOnWriting) {
  Start({});
  ASSERT_TRUE(HasDecided());
  // It writes its entry again, between ours.
  Json group = Group("pg-over-8e8e");
  Json* const conditions = group.At({"status", "schedulingConditions"});
  ASSERT_NE(conditions, nullptr);
  for (Json& condition : conditions->items()) {
    if (condition.TextAt({"nodePool"}) == "pool-b") condition.Set("message", "another reason");
  }
  Json patch = Json::Object();
  Json status = Json::Object();
  status.Set("schedulingConditions", *conditions);
  patch.Set("status", status);
  api().Merge(Path(kGroups, "pg-over-8e8e") + "/status", patch.Compact());
  const std::string last = ConditionOf(Group("pg-over-8e8e"), "default")->TextAt({"transitionID"});
  // The verdict changes: its queue may have as much as it requests, and no node has it.
  api().Merge(Path(kQueues, "limited"), R"({"spec":{"resources":{"gpu":{"limit":2}}}})");
  ASSERT_TRUE(Eventually("another verdict", [&] {
    const std::string code = GroupVerdict("pg-over-8e8e").TextAt({"code"});
    return !code.empty() && code != "QueueLimitReached";
  }));
  const Json now = Group("pg-over-8e8e");
  ASSERT_NE(ConditionOf(now, "pool-b"), nullptr);
  EXPECT_EQ(ConditionOf(now, "pool-b")->TextAt({"message"}), "another reason");
  int64_t before = 0, after = 0;
  ASSERT_TRUE(absl::SimpleAtoi(last, &before));
  ASSERT_TRUE(absl::SimpleAtoi(ConditionOf(now, "default")->TextAt({"transitionID"}), &after));
  EXPECT_GT(after, before);
  EXPECT_EQ(now.At({"status", "schedulingConditions"})->items().size(), 2u);
}

TEST_F(TakeoverTest, MinimumRuntimesCountFromKaisTimestamps) {
  // Only victims are evicted: `half` and `slice` could move to the GPUs of `multi`.
  Start({.more = "actions: {consolidation: false}\nconsolidatingReclaim: false\n"});
  ASSERT_TRUE(HasDecided());
  // `long` has run for three hours, `young` for one; both may be evicted after two.
  MakeKaiPod("claim", "claims", R"("nvidia.com/gpu":"1")");
  ASSERT_TRUE(Eventually("a pod is evicted", [&] {
    for (const Json& pod : api().List(kPods)) {
      if (IsTerminating(pod)) return true;
    }
    return false;
  }));
  for (const Json& pod : api().List(kPods)) {
    EXPECT_EQ(IsTerminating(pod), NameOf(pod) == "long") << NameOf(pod);
  }
  api().Delete(Path(kPods, "long"));
  ASSERT_TRUE(Bound({"claim"}));
  EXPECT_EQ(NodeOf("claim"), "gpu-a");
  MakeKaiPod("second", "claims", R"("nvidia.com/gpu":"1")");
  ASSERT_TRUE(Eventually("it waits", [&] { return !VerdictOf("second").empty(); }));
  EXPECT_FALSE(IsTerminating(Pod("young")));
}

TEST_F(TakeoverTest, ANewFractionJoinsAGpuThatKaiHolds) {
  Start({});
  ASSERT_TRUE(HasDecided());
  const std::map<std::string, std::string> before = Versions();
  // No GPU is free; the GPUs of which `multi` has 0.4 each have capacity, those of `half` and
  // `slice` do not.
  MakeKaiPod("part", "shared", "", R"("gpu-fraction":"0.6")");
  ASSERT_TRUE(Bound({"part"}));
  const Json part = Pod("part");
  EXPECT_EQ(part.TextAt({"spec", "nodeName"}), "gpu-a");
  const std::string group = part.TextAt({"metadata", "labels", "runai-gpu-group"});
  bool known = false;
  for (const Json& reservation : api().List(kReservations)) {
    if (reservation.TextAt({"metadata", "labels", "runai-gpu-group"}) != group) continue;
    known = true;
    EXPECT_EQ(reservation.TextAt({"spec", "nodeName"}), "gpu-a");
    EXPECT_EQ(part.TextAt({"metadata", "annotations", "fairlead.dev/visible-devices"}),
              reservation.TextAt({"metadata", "annotations", "run.ai/reserve_for_gpu_index"}));
  }
  EXPECT_TRUE(known) << "group " << group;
  EXPECT_EQ(api().List(kReservations).size(), 3u);
  std::map<std::string, std::string> after = Versions();
  after.erase(Path(kPods, "part"));
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace fairlead::integration
