// The webhooks on a real API server, as the account of the manifests: the configurations of
// manifests/admission with the address of the process in the place of the Service.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/credentials/kubeconfig.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

constexpr char kWebhookManifest[] =
    FAIRLEAD_SOURCE_DIR "/manifests/admission/component/webhooks.yaml";
constexpr char kPolicyManifest[] = FAIRLEAD_SOURCE_DIR "/manifests/admission/component/policy.yaml";
constexpr char kRegistration[] = "/apis/admissionregistration.k8s.io/v1/";
constexpr char kWebhookSecretPath[] = "/api/v1/namespaces/fairlead/secrets/fairlead-webhook";
constexpr char kDefaultNamespace[] = "/api/v1/namespaces/default";
constexpr char kRbac[] = "/apis/rbac.authorization.k8s.io/v1/";
constexpr char kJobs[] = "/apis/batch/v1/namespaces/default/jobs";
constexpr char kDeployments[] = "/apis/apps/v1/namespaces/default/deployments";
constexpr char kReplicaSets[] = "/apis/apps/v1/namespaces/default/replicasets";
constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";
constexpr char kOfResearch[] = R"("kai.scheduler/queue":"research")";

std::string QueueJson(const std::string& name, int quota, int limit,
                      const std::string& more_metadata = "") {
  return absl::StrCat(R"({"apiVersion":"scheduling.run.ai/v2","kind":"Queue","metadata":{)",
                      more_metadata, R"("name":")", name,
                      R"("},"spec":{"resources":{"gpu":{"quota":)", quota, R"(,"limit":)", limit,
                      R"(},"cpu":{"quota":-1,"limit":-1},"memory":{"quota":-1,"limit":-1}}}})");
}

std::string PodJson(const std::string& name, const std::string& labels,
                    const std::string& scheduler = "fairlead", const std::string& annotations = "",
                    const std::string& more_metadata = "") {
  return absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{)", more_metadata,
                      R"("name":")", name, R"(","labels":{)", labels, R"(},"annotations":{)",
                      annotations, R"(}},"spec":{"schedulerName":")", scheduler,
                      R"(","containers":[{"name":"c","image":"registry.example/i:1"}]}})");
}

std::string JobJson(const std::string& name, const std::string& labels) {
  return absl::StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":")", name,
                      R"(","labels":{)", labels, R"(}},"spec":{"parallelism":2,"completions":2,)",
                      R"("template":{"spec":{"schedulerName":"fairlead","restartPolicy":"Never",)",
                      R"("containers":[{"name":"c","image":"registry.example/i:1"}]}}}})");
}

class AdmissionTest : public IntegrationTest {
 protected:
  void TearDown() override {
    for (const std::string& path : made_) api().Delete(path);
    for (const Json& job : api().List(kJobs)) {
      DeleteOwner(Path(kJobs, job.TextAt({"metadata", "name"})));
    }
    for (const Json& set : api().List(kReplicaSets)) {
      api().Delete(Path(kReplicaSets, set.TextAt({"metadata", "name"})));
    }
    api().Delete(kWebhookSecretPath);
    api().Merge(kDefaultNamespace,
                R"({"metadata":{"labels":{"fairlead.dev/default-queue":null}}})");
    IntegrationTest::TearDown();
  }

  // The port that the log says of what is served.
  static int PortOf(ChildProcess& process, const std::string& what) {
    const std::string log = process.Log();
    const size_t line = log.find(what);
    const size_t at = line == std::string::npos ? line : log.find("port=", line);
    int port = 0;
    if (at != std::string::npos) {
      const std::string rest = log.substr(at + 5, 6);
      EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &port));
    }
    return port;
  }

  void Make(const std::string& collection, const std::string& name, const std::string& body) {
    made_.push_back(Path(collection, name));
    api().Delete(made_.back());
    api().Create(collection, body);
  }

  // The process with the rights of the manifests; the API server asks it when this returns.
  void Serve(const std::string& more = "", const std::string& rights = "") {
    Settings settings;
    std::vector<std::string> folders = {"base", "admission/component"};
    if (!rights.empty()) folders.push_back(rights);
    settings.kubeconfig = InstallRights(folders);
    settings.home = "fairlead";
    settings.more = more;
    settings.flags = {"--webhook-bind-address", "127.0.0.1:0", "--metrics-bind-address",
                      "127.0.0.1:0"};
    process_ = &Start(settings);
    const int port = PortOf(*process_, "serving webhooks");
    ASSERT_GT(port, 0);
    for (Json& configuration : ObjectsOf(kWebhookManifest)) {
      for (Json& webhook : configuration.Find("webhooks")->items()) {
        const std::string path = webhook.TextAt({"clientConfig", "service", "path"});
        Json client = Json::Object();
        client.Set("url", absl::StrCat("https://127.0.0.1:", port, path));
        webhook.Set("clientConfig", std::move(client));
      }
      const bool validates = configuration.TextAt({"kind"}) == "ValidatingWebhookConfiguration";
      Make(absl::StrCat(kRegistration, validates ? "validatingwebhookconfigurations"
                                                 : "mutatingwebhookconfigurations"),
           "fairlead", configuration.Compact());
    }
    ASSERT_TRUE(Eventually("the API server asks", [this] {
      return api()
                 .Call("POST", absl::StrCat(kQueues, "?dryRun=All"), QueueJson("probe", 8, 4))
                 .status == 422;
    }));
    kube::ClientConfig metrics;
    metrics.server.url = absl::StrCat("http://127.0.0.1:", PortOf(*process_, "serving /livez"));
    metrics_ = std::make_unique<Api>(metrics);
  }

  // A role of the namespace becomes ann's, or that of Kubernetes' controllers.
  void Bind(const std::string& kind, const std::string& role, bool controllers = false) {
    const std::string subject =
        controllers ? R"({"kind":"Group","apiGroup":"rbac.authorization.k8s.io",)"
                      R"("name":"system:serviceaccounts:kube-system"})"
                    : R"({"kind":"ServiceAccount","name":"ann","namespace":"default"})";
    Make(absl::StrCat(kRbac, "namespaces/default/rolebindings"), role,
         absl::StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",)",
                      R"("metadata":{"name":")", role, R"("},"roleRef":{"apiGroup":)",
                      R"("rbac.authorization.k8s.io","kind":")", kind, R"(","name":")", role,
                      R"("},"subjects":[)", subject, "]}"));
  }
  void PermitResearch(bool controllers = false) {
    Make(absl::StrCat(kRbac, "clusterroles"), "queue-research",
         R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",)"
         R"("metadata":{"name":"queue-research"},"rules":[{"apiGroups":["scheduling.run.ai"],)"
         R"("resources":["queues"],"resourceNames":["research"],"verbs":["use"]}]})");
    Bind("ClusterRole", "queue-research", controllers);
  }
  // The account ann may make and change pods and their owners, and use no restricted queue.
  Api MakeAnn() {
    const std::string accounts = absl::StrCat(kDefaultNamespace, "/serviceaccounts");
    Make(accounts, "ann",
         R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"ann"}})");
    Make(absl::StrCat(kRbac, "namespaces/default/roles"), "submitter",
         R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",)"
         R"("metadata":{"name":"submitter"},"rules":[{"apiGroups":["","batch"],)"
         R"("resources":["pods","jobs","configmaps"],"verbs":["create","patch"]}]})");
    Bind("Role", "submitter");
    const Json token = api().Create(
        Path(accounts, "ann") + "/token",
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})");
    return Api(
        *kube::LoadKubeconfig({Plane::Get()->KubeconfigWith(token.TextAt({"status", "token"}))}));
  }

  // The requests that were answered so far, of either webhook.
  double Asked() {
    return metrics_->Metric("fairlead_admission_requests_total", {"defaulted"}) +
           metrics_->Metric("fairlead_admission_requests_total", {"admitted"}) +
           metrics_->Metric("fairlead_admission_requests_total", {"invalid"}) +
           metrics_->Metric("fairlead_admission_requests_total", {"forbidden"});
  }

  ChildProcess* process_ = nullptr;
  std::unique_ptr<Api> metrics_;
  std::vector<std::string> made_;
};

TEST_F(AdmissionTest, RefusesWhatIsWrongAndFillsInTheQueue) {
  Serve();
  const Answer bad = api().Call("POST", kQueues, QueueJson("research", 8, 4));
  EXPECT_EQ(bad.status, 422) << bad.text;
  EXPECT_TRUE(
      absl::StrContains(bad.text, "spec.resources.gpu.quota: GPU quota 8 is above its limit 4"))
      << bad.text;
  api().Create(kQueues, QueueJson("research", 4, 8));
  const Answer pod =
      api().Call("POST", kPods, PodJson("bad", "", "fairlead", R"("gpu-fraction":"1.5")"));
  EXPECT_EQ(pod.status, 422);
  EXPECT_TRUE(absl::StrContains(pod.text, "metadata.annotations[gpu-fraction]")) << pod.text;

  // The queue of the namespace.
  api().Merge(kDefaultNamespace,
              R"({"metadata":{"labels":{"fairlead.dev/default-queue":"research"}}})");
  ASSERT_TRUE(Eventually("the default is written", [this] {
    const Answer tried =
        api().Call("POST", absl::StrCat(kPods, "?dryRun=All"), PodJson("tried", ""));
    return tried.body.TextAt({"metadata", "labels", "kai.scheduler/queue"}) == "research";
  }));
  EXPECT_EQ(api()
                .Create(kPods, PodJson("ours", R"("a":"b")"))
                .TextAt({"metadata", "labels", "kai.scheduler/queue"}),
            "research");
  EXPECT_EQ(api()
                .Create(kPods, PodJson("named", R"("kai.scheduler/queue":"other")"))
                .TextAt({"metadata", "labels", "kai.scheduler/queue"}),
            "other");

  // Pods of others are not asked about, nor is what happens to pods that are there.
  const double before = Asked();
  EXPECT_EQ(api()
                .Create(kPods, PodJson("theirs", "", "other", R"("gpu-fraction":"1.5")"))
                .At({"metadata", "labels", "kai.scheduler/queue"}),
            nullptr);
  api().Merge(Path(kPods, "ours"), R"({"metadata":{"annotations":{"gpu-fraction":"7"}}})");
  api().Merge(Path(kQueues, "research") + "/status", R"({"status":{"childQueues":[]}})");
  api().Merge(Path(kQueues, "research"), R"({"metadata":{"annotations":{"a":"b"}}})");
  api().Delete(Path(kPods, "ours"));
  EXPECT_EQ(Asked(), before);
  api().Merge(Path(kPods, "named"),
              R"({"metadata":{"labels":{"kai.scheduler/queue":"research"}}})");
  api().Merge(Path(kQueues, "research"), R"({"spec":{"priority":7}})");
  EXPECT_EQ(Asked(), before + 2);
}

TEST_F(AdmissionTest, WhoMayNotUseAQueueIsRefused) {
  Serve();
  Api ann = MakeAnn();
  api().Create(kQueues, QueueJson("open", 4, 8));
  api().Create(kQueues,
               QueueJson("research", 4, 8, R"("annotations":{"fairlead.dev/restricted":"true"},)"));
  ASSERT_TRUE(Eventually("the restriction is known", [&] {
    return ann.Call("POST", absl::StrCat(kPods, "?dryRun=All"), PodJson("a", kOfResearch)).status ==
           403;
  }));
  const Answer refused = ann.Call("POST", kPods, PodJson("a", kOfResearch));
  EXPECT_TRUE(
      absl::StrContains(refused.text,
                        "system:serviceaccount:default:ann\\\" lacks the verb \\\"use\\\" on "
                        "queues.scheduling.run.ai \\\"research\\\""))
      << refused.text;
  EXPECT_TRUE(ann.Call("POST", kPods, PodJson("b", R"("kai.scheduler/queue":"open")")).ok());
  // Pods of an owner go where its label says, whatever its kind.
  EXPECT_EQ(ann.Call("POST", kJobs, JobJson("a", kOfResearch)).status, 403);
  EXPECT_EQ(ann.Call("POST", kConfigMaps,
                     absl::StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{)",
                                  R"("name":"a","labels":{)", kOfResearch, "}}}"))
                .status,
            403);
  EXPECT_TRUE(ann.Call("POST", kJobs, JobJson("b", R"("kai.scheduler/queue":"open")")).ok());
  const auto relabel = [&](const std::string& labels) {
    return ann.Call("PATCH", Path(kJobs, "b"),
                    absl::StrCat(R"({"metadata":{"labels":{)", labels, "}}}"), kube::kMergePatch);
  };
  EXPECT_EQ(relabel(kOfResearch).status, 403);
  EXPECT_TRUE(relabel(R"("app":"b")").ok());
  // An administrator may use everything.
  EXPECT_TRUE(api().Call("POST", kPods, PodJson("c", kOfResearch)).ok());
  PermitResearch();
  EXPECT_TRUE(Eventually("the right counts",
                         [&] { return ann.Call("POST", kPods, PodJson("a", kOfResearch)).ok(); }));
}

// Fairlead may use every queue: what it makes of owners is admitted by what their authors may do.
TEST_F(AdmissionTest, AGroupOfOwnersGoesToARestrictedQueueByTheirLabelAlone) {
  Serve("grouping:\n  enabled: true\n", "grouping");
  api().Create(kQueues,
               QueueJson("research", 4, 8, R"("annotations":{"fairlead.dev/restricted":"true"},)"));
  const Json by_project = api().Create(kJobs, JobJson("project", R"("project":"research")"));
  api().Create(kPods, PodJson("project-1", "", "fairlead", "", OwnedBy(by_project)));
  const auto message = [this] {
    const Json pod = Pod("project-1");
    const Json* const condition = FindCondition(pod, "PodScheduled");
    return condition == nullptr ? "" : condition->TextAt({"message"});
  };
  EXPECT_TRUE(Eventually(
      "the pod is told",
      [&] {
        return absl::StrContains(
            message(),
            "the use of queue \"research\" is restricted, so the owners of its "
            "pods must name it by label kai.scheduler/queue");
      },
      message))
      << process_->Log();
  const Json by_label = api().Create(kJobs, JobJson("label", kOfResearch));
  api().Create(kPods, PodJson("label-1", "", "fairlead", "", OwnedBy(by_label)));
  EXPECT_TRUE(Eventually("its group is made", [&] {
    const Json pod = Pod("label-1");
    return !pod.TextAt({"metadata", "annotations", "pod-group-name"}).empty();
  })) << process_->Log();
  ASSERT_EQ(api().List(kGroups).size(), 1U);
  EXPECT_EQ(api().List(kGroups).front().TextAt({"spec", "queue"}), "research");
}

// What stands between a Deployment and its pods has the label of the template.
TEST_F(AdmissionTest, ControllersMayUseTheQueuesOfTheirNamespaces) {
  Serve();
  api().Create(kQueues,
               QueueJson("research", 4, 8, R"("annotations":{"fairlead.dev/restricted":"true"},)"));
  Plane& plane = *Plane::Get();
  std::vector<std::string> command =
      plane.ControllerManager("deployment-controller,replicaset-controller");
  command.emplace_back("--use-service-account-credentials");
  ChildProcess controllers(command, plane.NewFile("controllers.log"));
  Make(kDeployments, "web",
       absl::StrCat(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},)",
                    R"("spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},)",
                    R"("template":{"metadata":{"labels":{"app":"web",)", kOfResearch,
                    R"(}},"spec":{"schedulerName":"fairlead",)",
                    R"("containers":[{"name":"c","image":"registry.example/i:1"}]}}}})"));
  const auto conditions = [this] {
    const Json web = api().Get(Path(kDeployments, "web")).body;
    const Json* const all = web.At({"status", "conditions"});
    return all == nullptr ? "" : all->Compact();
  };
  EXPECT_TRUE(Eventually(
      "the Deployment says who lacks the right",
      [&] { return absl::StrContains(conditions(), "deployment-controller\\\" lacks the verb"); },
      conditions))
      << process_->Log();
  PermitResearch(/*controllers=*/true);
  EXPECT_TRUE(Eventually(
      "its pod is made", [this] { return api().List(kPods).size() == 1; }, conditions,
      absl::Minutes(1)))
      << process_->Log();
}

TEST_F(AdmissionTest, WhatTheBindingWroteIsChangedByNobodyElse) {
  for (Json& object : ObjectsOf(kPolicyManifest)) {
    const bool binds = object.TextAt({"kind"}) == "ValidatingAdmissionPolicyBinding";
    Make(absl::StrCat(kRegistration,
                      binds ? "validatingadmissionpolicybindings" : "validatingadmissionpolicies"),
         object.TextAt({"metadata", "name"}), object.Compact());
  }
  Api ann = MakeAnn();
  MakeQueue("team", -1, -1);
  MakeNode("n1", 8);
  Start({.kubeconfig = InstallRights({"base", "admission/component"})});
  MakePod({.name = "runs"});
  ASSERT_TRUE(Eventually("it is bound with its queue", [this] {
    const Json pod = Pod("runs");
    return !pod.TextAt({"spec", "nodeName"}).empty() &&
           !pod.TextAt({"metadata", "annotations", "fairlead.dev/started-under"}).empty();
  }));
  const auto annotate = [](Api& user, const std::string& pod, const std::string& annotation) {
    return user.Call("PATCH", absl::StrCat(Path(kPods, pod), "?dryRun=All"),
                     absl::StrCat(R"({"metadata":{"annotations":{)", annotation, "}}}"),
                     kube::kMergePatch);
  };
  constexpr char kElsewhere[] = R"("fairlead.dev/started-under":"/other")";
  ASSERT_TRUE(Eventually("the policy holds",
                         [&] { return annotate(ann, "runs", kElsewhere).status == 403; }));
  EXPECT_EQ(annotate(ann, "runs", R"("fairlead.dev/started-as":null)").status, 403);
  EXPECT_EQ(
      ann.Call("POST", kPods,
               R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"placed","annotations":{)"
               R"("fairlead.dev/started-under":"/other"}},"spec":{"nodeName":"n1",)"
               R"("schedulerName":"fairlead","containers":[{"name":"c","image":"i"}]}})")
          .status,
      403);
  EXPECT_TRUE(annotate(ann, "runs", R"("example.com/note":"x")").ok());
  // What waits is bound anew, and that replaces what it says.
  EXPECT_TRUE(ann.Call("POST", kPods,
                       PodJson("restored", R"("kai.scheduler/queue":"team")", "other", kElsewhere))
                  .ok());
  EXPECT_TRUE(annotate(api(), "runs", kElsewhere).ok()) << "an administrator";
}

TEST_F(AdmissionTest, WithoutTheProcessEverythingIsStored) {
  Serve();
  process_->Signal(SIGKILL);
  process_->Wait(absl::Seconds(10));
  api().Create(kQueues, QueueJson("research", 8, 4));
  EXPECT_EQ(MakePod({.name = "p"}).TextAt({"metadata", "name"}), "p");
}

}  // namespace
}  // namespace fairlead::integration
