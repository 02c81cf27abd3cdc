#include "tests/integration/fixture.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "scheduler/model/api_names.h"

namespace fairlead::integration {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

std::string ConfigurationText(const Settings& settings) {
  std::string text = absl::StrCat(
      "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n"
      "hook:\n  enabled: ",
      settings.hook ? "true" : "false", "\n  provider: ", settings.provider,
      "\n  unneededAfter: ", settings.unneeded_after, "\n", settings.more_of_hook,
      "kwok:\n  bootDelay: ", settings.boot_delay,
      "\nleaderElection:\n  resourceNamespace: ", settings.home,
      "\n  leaderElect: ", settings.election.empty() ? "false" : "true", "\n");
  if (!settings.election.empty()) {
    absl::StrAppend(&text, "  leaseDuration: ", settings.election.at(0),
                    "s\n  renewDeadline: ", settings.election.at(1),
                    "s\n  retryPeriod: ", settings.election.at(2), "s\n");
  }
  absl::StrAppend(&text, settings.more);
  return text;
}

int64_t Number(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

}  // namespace

const Json* FindCondition(const Json& object, absl::string_view type) {
  const Json* const conditions = object.At({"status", "conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& condition : conditions->items()) {
    if (condition.TextAt({"type"}) == type) return &condition;
  }
  return nullptr;
}

void IntegrationTest::SetUp() {
  api_ = std::make_unique<Api>(Plane::Get()->config());
  Clean();
}

void IntegrationTest::TearDown() {
  if (HasFailure()) {
    for (const auto& process : processes_) {
      std::cerr << "---- log of process " << process->pid() << "\n" << process->Log();
    }
  }
  processes_.clear();
  Clean();
  for (const std::string& path : installed_) api().Delete(path);
}

void IntegrationTest::Empty(const std::string& collection) {
  for (const Json& object : api().List(collection)) {
    const std::string path = Path(collection, object.TextAt({"metadata", "name"}));
    if (object.At({"metadata", "finalizers"}) != nullptr) {
      api().Merge(path, R"({"metadata":{"finalizers":null}})");
    }
    api().Delete(path);
  }
}

void IntegrationTest::Clean() {
  for (const char* collection : {kPods, kNodes, kGroups, kRequests, kQueues}) {
    Empty(collection);
    ASSERT_TRUE(Eventually(absl::StrCat(collection, " empty"),
                           [&] { return api().List(collection).empty(); }));
  }
  api().Delete(kLease);
}

ChildProcess& IntegrationTest::Start(const Settings& settings) {
  Plane* const plane = Plane::Get();
  const std::string configuration = plane->NewFile("fairlead.yaml");
  std::ofstream(configuration) << ConfigurationText(settings);
  std::vector<std::string> words = {
      FAIRLEAD_BINARY, "run",
      "--kubeconfig",  settings.kubeconfig.empty() ? plane->kubeconfig() : settings.kubeconfig,
      "--config",      configuration,
      "--identity",    settings.identity,
      "--log-level",   "debug",
      "--audit-log",   "-"};
  if (!settings.journal.empty()) words.insert(words.end(), {"--journal", settings.journal});
  words.insert(words.end(), settings.flags.begin(), settings.flags.end());
  processes_.push_back(std::make_unique<ChildProcess>(
      std::move(words), plane->NewFile(absl::StrCat(settings.identity, ".log"))));
  ChildProcess& process = *processes_.back();
  EXPECT_TRUE(Says(process, "msg=synced"));
  return process;
}

std::vector<Json> ObjectsOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  const auto documents = YamlToJson(text.str());
  EXPECT_TRUE(documents.ok()) << file << ": " << documents.status();
  std::vector<Json> objects;
  if (!documents.ok()) return objects;
  for (const std::string& document : *documents) {
    if (document != "null") objects.push_back(*Json::Parse(document));
  }
  EXPECT_FALSE(objects.empty()) << file;
  return objects;
}

std::string OwnedBy(const Json& owner) {
  return absl::StrCat(R"("ownerReferences":[{"apiVersion":")", owner.TextAt({"apiVersion"}),
                      R"(","kind":")", owner.TextAt({"kind"}), R"(","name":")",
                      owner.TextAt({"metadata", "name"}), R"(","uid":")",
                      owner.TextAt({"metadata", "uid"}), R"(","controller":true}],)");
}

void IntegrationTest::DeleteOwner(const std::string& path) {
  api().Call("DELETE", path,
             R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})");
}

void IntegrationTest::Define(const std::string& file) {
  constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const Json& object : ObjectsOf(file)) {
    const std::string name = object.TextAt({"metadata", "name"});
    if (!api().Get(Path(kDefinitions, name)).ok()) api().Create(kDefinitions, object.Compact());
  }
}

void IntegrationTest::Define(const std::string& file, const std::string& collection) {
  Define(file);
  ASSERT_TRUE(Eventually(absl::StrCat(collection, " is served"),
                         [&] { return api().Get(collection).ok(); }));
}

std::string IntegrationTest::InstallRights(const std::vector<std::string>& folders) {
  const std::string namespaces = "/api/v1/namespaces";
  const std::string accounts = "/api/v1/namespaces/fairlead/serviceaccounts";
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
  const std::map<std::string, std::string> collections = {
      {"ServiceAccount", accounts},
      {"ClusterRole", rbac + "clusterroles"},
      {"ClusterRoleBinding", rbac + "clusterrolebindings"},
      {"Role", "roles"},
      {"RoleBinding", "rolebindings"}};
  api().Call("POST", namespaces,
             R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"fairlead"}})");
  for (const std::string& folder : folders) {
    for (const Json& object :
         ObjectsOf(absl::StrCat(FAIRLEAD_SOURCE_DIR "/manifests/", folder, "/rbac.yaml"))) {
      std::string collection = collections.at(object.TextAt({"kind"}));
      if (!absl::StartsWith(collection, "/")) {
        collection = absl::StrCat(rbac, "namespaces/", object.TextAt({"metadata", "namespace"}),
                                  "/", collection);
      }
      installed_.push_back(Path(collection, object.TextAt({"metadata", "name"})));
      api().Delete(installed_.back());
      api().Create(collection, object.Compact());
    }
  }
  const Json token =
      api().Create(Path(accounts, "fairlead") + "/token",
                   R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})");
  return Plane::Get()->KubeconfigWith(token.TextAt({"status", "token"}));
}

::testing::AssertionResult IntegrationTest::Says(ChildProcess& process, const std::string& text) {
  return Eventually(absl::StrCat("\"", text, "\" in the log"),
                    [&] { return absl::StrContains(process.Log(), text); });
}

void IntegrationTest::MakePriorityClass(const std::string& name, int value) {
  constexpr char kClasses[] = "/apis/scheduling.k8s.io/v1/priorityclasses";
  api().Delete(Path(kClasses, name));
  api().Create(kClasses, absl::StrCat(R"({"apiVersion":"scheduling.k8s.io/v1","kind":)",
                                      R"("PriorityClass","metadata":{"name":")", name,
                                      R"("},"value":)", value, "}"));
  installed_.push_back(Path(kClasses, name));
}

void IntegrationTest::MakeQueue(const std::string& name, int quota, int limit) {
  const std::string free = R"({"quota":-1,"limit":-1,"overQuotaWeight":1})";
  api().Create(kQueues,
               absl::StrCat(R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":)",
                            R"({"name":")", name, R"("},"spec":{"resources":{"gpu":{"quota":)",
                            quota, R"(,"limit":)", limit, R"(,"overQuotaWeight":1},"cpu":)", free,
                            R"(,"memory":)", free, "}}}"));
}

Answer RegisterNode(Api& api, model::Node node) {
  const auto send = [&api](const kube::EncodedWrite& write) {
    return api.Call(write.method, write.path, write.body, write.content_type);
  };
  node.ready = false;
  Answer created = send(kube::EncodeCreateNode(node));
  node.ready = true;
  Answer told = send(kube::EncodeNodeStatus(node));
  return created.ok() ? told : created;
}

void IntegrationTest::MakeNode(const std::string& name, int gpus) {
  model::Node node;
  node.meta.name = name;
  node.meta.labels.Set(model::kHostnameLabel, name);
  node.allocatable = {
      {"cpu", 64'000}, {"memory", int64_t{256} << 30}, {"pods", 110}, {kGpu, int64_t{gpus} * 1000}};
  const Answer answer = RegisterNode(api(), std::move(node));
  EXPECT_TRUE(answer.ok()) << answer.text;
}

std::string IntegrationTest::GroupText(const std::string& name, int members,
                                       const std::string& queue) {
  return absl::StrCat(R"({"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup","metadata":)",
                      R"({"name":")", name, R"("},"spec":{"queue":")", queue, R"(","minMember":)",
                      members, "}}");
}

Json IntegrationTest::MakePod(const PodSpec& pod) {
  const std::string annotations =
      pod.group.empty() ? ""
                        : absl::StrCat(R"("annotations":{")", model::kPodGroupAnnotation, R"(":")",
                                       pod.group, R"("},)");
  return api().Create(
      kPods,
      absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{)", pod.more_metadata,
                   annotations, R"("name":")", pod.name, R"(","labels":{)", pod.more_labels, "\"",
                   model::kQueueLabel, R"(":")", pod.queue, R"("}},"spec":{)", pod.more_spec,
                   R"("schedulerName":")", pod.scheduler, R"(","containers":[{"name":"c",)",
                   R"("image":"registry.example/i:1","resources":{"requests":{"cpu":"1","memory":)",
                   R"("1Gi"},"limits":{")", kGpu, R"(":")", pod.gpus, R"("}}}]}})"));
}

int IntegrationTest::BindPod(const std::string& name, const std::string& node) {
  return api()
      .Call(
          "POST", absl::StrCat(Path(kPods, name), "/binding"),
          absl::StrCat(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":")", name,
                       R"("},"target":{"apiVersion":"v1","kind":"Node","name":")", node, R"("}})"))
      .status;
}

std::string IntegrationTest::VerdictOf(const std::string& pod) {
  const std::string text = Pod(pod).TextAt({"metadata", "annotations", model::kVerdictAnnotation});
  const absl::StatusOr<Json> verdict = Json::Parse(text);
  return verdict.ok() ? verdict->TextAt({"code"}) : "";
}

Json IntegrationTest::GroupVerdict(const std::string& group) {
  const Answer answer = api().Get(Path(kGroups, group));
  const Json* const verdict = answer.body.At({"status", "schedulability"});
  return verdict == nullptr ? Json() : *verdict;
}

::testing::AssertionResult IntegrationTest::Bound(const std::vector<std::string>& pods) {
  return Eventually(
      absl::StrCat("bound: ", absl::StrJoin(pods, ", ")),
      [&] {
        return std::all_of(pods.begin(), pods.end(),
                           [this](const std::string& pod) { return !NodeOf(pod).empty(); });
      },
      [&] {
        std::vector<std::string> parts;
        for (const std::string& pod : pods) {
          parts.push_back(absl::StrCat(pod, " on \"", NodeOf(pod), "\" ", VerdictOf(pod)));
        }
        return absl::StrJoin(parts, ", ");
      });
}

void IntegrationTest::ExpectNoNodeOvercommitted() {
  std::map<std::string, int64_t> used;
  for (const Json& pod : api().List(kPods)) {
    const std::string node = pod.TextAt({"spec", "nodeName"});
    const Json* const containers = pod.At({"spec", "containers"});
    if (node.empty() || containers == nullptr) continue;
    used[node] += Number(containers->items().at(0).TextAt({"resources", "limits", kGpu}));
  }
  for (const Json& node : api().List(kNodes)) {
    const std::string name = node.TextAt({"metadata", "name"});
    EXPECT_LE(used[name], Number(node.TextAt({"status", "allocatable", kGpu}))) << name;
  }
}

}  // namespace fairlead::integration
