// `fairlead migrate` on the real API server, with stand-ins for KAI's objects: what is not asked
// for stays as it is, and all of it comes back.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/integration/plane.h"

namespace fairlead::integration {
namespace {

constexpr char kInstalled[] = FAIRLEAD_SOURCE_DIR "/tests/integration/testdata/kai_installed.yaml";
constexpr char kDefinitions[] =
    FAIRLEAD_SOURCE_DIR "/tests/integration/testdata/kai_definitions.yaml";
constexpr char kKaiDeployments[] = "/apis/apps/v1/namespaces/kai-scheduler/deployments";
constexpr char kOurDeployments[] = "/apis/apps/v1/namespaces/fairlead/deployments";
constexpr char kOurMaps[] = "/api/v1/namespaces/fairlead/configmaps";
constexpr char kWebhooks[] =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
constexpr char kConfigs[] = "/apis/kai.scheduler/v1/configs";
constexpr char kShards[] = "/apis/kai.scheduler/v1/schedulingshards";

std::string CollectionOf(const Json& object) {
  const std::string kind = object.TextAt({"kind"});
  const std::string ns = object.TextAt({"metadata", "namespace"});
  if (kind == "Namespace") return "/api/v1/namespaces";
  if (kind == "Config") return kConfigs;
  if (kind == "SchedulingShard") return kShards;
  if (kind == "ValidatingWebhookConfiguration") return kWebhooks;
  if (kind == "ConfigMap") return kOurMaps;
  return absl::StrCat("/apis/apps/v1/namespaces/", ns, "/deployments");
}

class MigrateTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Define(kDefinitions, kShards);
    Forget();
    for (const Json& object : ObjectsOf(kInstalled)) {
      if (object.TextAt({"kind"}) == "Namespace") {
        api().Call("POST", CollectionOf(object), object.Compact());  // it may be there already
      } else {
        api().Create(CollectionOf(object), object.Compact());
      }
    }
    MakeQueue("team", 4, -1);
    MakeGroup("gang", 2);
    MakePod({.name = "p0", .group = "gang", .scheduler = "kai-scheduler"});
  }
  void TearDown() override {
    IntegrationTest::TearDown();
    Forget();
  }
  void Forget() {
    for (const char* collection : {kKaiDeployments, kOurDeployments, kConfigs, kShards}) {
      if (api().Get(collection).ok()) Empty(collection);
    }
    api().Delete(Path(kWebhooks, "queue-validation-v2"));
    for (const char* map : {"fairlead-configuration", "fairlead-migration"}) {
      api().Delete(Path(kOurMaps, map));
    }
  }
  // Every object that could have been touched, without what each write changes of itself.
  std::map<std::string, std::string> Objects(bool with_versions) {
    std::map<std::string, std::string> objects;
    for (const char* collection : {kKaiDeployments, kOurDeployments, kOurMaps, kWebhooks, kConfigs,
                                   kShards, kQueues, kGroups, kPods}) {
      for (Json object : api().List(collection)) {
        Json* const meta = object.Find("metadata");
        for (const char* field : {"managedFields", "generation", "resourceVersion"}) {
          if (!with_versions) meta->Set(field, Json());
        }
        objects[Path(collection, meta->TextAt({"name"}))] = object.Compact();
      }
    }
    return objects;
  }
  struct Ran {
    int code = -1;
    std::string output;
  };
  Ran Run(std::vector<std::string> arguments) {
    Plane* const plane = Plane::Get();
    arguments.insert(arguments.begin(), {FAIRLEAD_BINARY, "migrate"});
    arguments.insert(arguments.end(), {"--kubeconfig", plane->kubeconfig()});
    ChildProcess process(arguments, plane->NewFile("migrate.log"));
    const std::optional<int> code = process.Wait(kPatience);
    return {code.value_or(-1), process.Log()};
  }
  std::string Replicas(const std::string& deployment) {
    return api().Get(Path(kKaiDeployments, deployment)).body.TextAt({"spec", "replicas"});
  }
  std::string File() {
    return api()
        .Get(Path(kOurMaps, "fairlead-configuration"))
        .body.TextAt({"data", "fairlead.yaml"});
  }
};

TEST_F(MigrateTest, ThereAndBackEverythingIsAsItWas) {
  const auto start = Objects(/*with_versions=*/true);
  Ran ran = Run({"check"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "SchedulingShard default: spreads pods")) << ran.output;
  ran = Run({"check", "-o", "json"});
  const auto json = Json::Parse(ran.output);
  ASSERT_TRUE(json.ok()) << ran.output;
  EXPECT_EQ(json->TextAt({"ready"}), "true");
  EXPECT_EQ(Run({}).code, 2) << "neither --dry-run nor --yes";
  EXPECT_EQ(Run({"back", "--dry-run", "--yes"}).code, 2);
  ran = Run({"--dry-run", "--controllers"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "kai-scheduler-default /spec/replicas: 2 -> 0"))
      << ran.output;
  EXPECT_EQ(Objects(/*with_versions=*/true), start) << "all of that has only read";

  const auto before = Objects(/*with_versions=*/false);
  ran = Run({"--yes", "--controllers"});
  ASSERT_EQ(ran.code, 0) << ran.output;
  for (const char* name : {"kai-operator", "kai-scheduler-default", "queue-controller"}) {
    EXPECT_EQ(Replicas(name), "0") << name;
  }
  EXPECT_TRUE(absl::StrContains(File(), "schedulerNames: [fairlead, kai-scheduler] # KAI's name"))
      << File();
  ran = Run({"--yes", "--controllers"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "There is nothing to do.")) << ran.output;

  ran = Run({"back", "--dry-run"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(Replicas("kai-operator"), "0");
  ran = Run({"back", "--yes", "--settle", "0s"});
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(Objects(/*with_versions=*/false), before);
  ran = Run({"back", "--yes"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "There is nothing to do.")) << ran.output;
}

TEST_F(MigrateTest, BackLeavesWhatWasChangedSince) {
  ASSERT_EQ(Run({"--yes"}).code, 0);
  EXPECT_EQ(Replicas("queue-controller"), "1") << "not without --controllers";
  api().Merge(Path(kKaiDeployments, "kai-operator"), R"({"spec":{"replicas":5}})");
  Json patch = Json::Object();
  Json data = Json::Object();
  data.Set("fairlead.yaml", absl::StrCat(File(), "events: false\n"));
  patch.Set("data", std::move(data));
  api().Merge(Path(kOurMaps, "fairlead-configuration"), patch.Compact());
  const Ran ran = Run({"back", "--yes", "--settle", "0s"});
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "Deployment kai-scheduler/kai-operator")) << ran.output;
  EXPECT_EQ(Replicas("kai-operator"), "5");
  EXPECT_EQ(Replicas("kai-scheduler-default"), "2");
  EXPECT_TRUE(absl::StrContains(File(), "schedulerNames: [fairlead] # KAI's name")) << File();
  EXPECT_TRUE(absl::StrContains(File(), "events: false")) << File();
  EXPECT_TRUE(api().Get(Path(kOurMaps, "fairlead-migration")).ok()) << "it has what is left";
}

TEST_F(MigrateTest, SomethingToDoFirstKeepsEverythingAsItIs) {
  api().Delete(Path(kOurDeployments, "fairlead"));
  const auto start = Objects(/*with_versions=*/true);
  Ran ran = Run({"check"});
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_TRUE(absl::StrContains(ran.output, "install Fairlead")) << ran.output;
  ran = Run({"--yes"});
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_EQ(Objects(/*with_versions=*/true), start);
}

}  // namespace
}  // namespace fairlead::integration
