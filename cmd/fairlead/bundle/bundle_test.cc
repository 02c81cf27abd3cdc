#include "cmd/fairlead/bundle/bundle.h"

#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/bundle/bundle_reader.h"
#include "cmd/fairlead/bundle/bundle_redaction.h"
#include "cmd/fairlead/inspect/cluster_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/player.h"
#include "journal/recorder.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Reply = kube::FakeTransport::Reply;

constexpr char kCluster[] = R"(
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: acme-vision}
spec: {parentQueue: acme, resources: {gpu: {quota: 4}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: train-jane
  namespace: acme-research
  labels: {kai.scheduler/queue: acme-vision, owner: jane}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "TOKEN-1", gpu-fraction: "0.5"}
spec:
  schedulerName: fairlead
  volumes: [{name: key, secret: {secretName: acme-key}}]
  containers:
  - name: main
    image: registry.acme.example/model
    args: [--password=TOKEN-2]
    env: [{name: PASSWORD, value: TOKEN-3}]
    resources: {requests: {cpu: "1", nvidia.com/gpu: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: of-another-scheduler, namespace: other}
spec: {schedulerName: default-scheduler, containers: []}
---
apiVersion: v1
kind: Node
metadata: {name: rack-7.acme.example, labels: {kubernetes.io/hostname: rack-7.acme.example}}
status: {allocatable: {cpu: "64", memory: 512Gi}}
)";

std::string Text(const std::vector<BundlePart>& parts) {
  std::string text;
  for (const BundlePart& part : parts) {
    absl::StrAppend(&text, part.path, " ", part.json.is_null() ? "" : part.json.Compact(),
                    part.text, part.problem, "\n");
  }
  return text;
}
const BundlePart& PartOf(const std::vector<BundlePart>& parts, absl::string_view path) {
  for (const BundlePart& part : parts) {
    if (part.path == path) return part;
  }
  ADD_FAILURE() << path;
  static const BundlePart& none = *new BundlePart();
  return none;
}

class BundleReaderTest : public ::testing::Test {
 protected:
  std::vector<BundlePart> Read() {
    BundleReader reader(&cluster_.transport(), {"fairlead", "fairlead", {"fairlead"}});
    return reader.ReadAll();
  }
  testing::ReadOnlyCluster cluster_{kCluster};
};

TEST_F(BundleReaderTest, HasWhatDecisionsReadAndNoSecrets) {
  const std::vector<BundlePart> parts = Read();
  const std::string text = Text(parts);
  EXPECT_THAT(text, HasSubstr("acme-vision"));
  EXPECT_THAT(text, HasSubstr("train-jane"));
  EXPECT_THAT(text, HasSubstr("\"gpu-fraction\":\"0.5\""));
  EXPECT_THAT(text, HasSubstr("\"nvidia.com/gpu\":\"1\""));
  for (const char* absent : {"TOKEN", "acme-key", "PASSWORD", "of-another-scheduler"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
  for (const auto& exchange : cluster_.transport().exchanges()) {
    EXPECT_FALSE(absl::StrContains(exchange.request.path, "secrets")) << exchange.request.path;
    EXPECT_EQ(exchange.request.method, "GET");
  }
}

TEST_F(BundleReaderTest, AMissingRightIsNamed) {
  cluster_.transport().On("GET", "/api/v1/nodes",
                          Reply::Json(403, R"({"kind":"Status","message":"no","code":403})"));
  const std::vector<BundlePart> parts = Read();
  EXPECT_EQ(PartOf(parts, "nodes.json").problem, "forbidden: needs the right to list nodes");
  EXPECT_EQ(PartOf(parts, "nodes.json").path, "nodes.json");
  EXPECT_EQ(PartOf(parts, "pods.json").problem, "");
}

TEST_F(BundleReaderTest, AServerThatDoesNotAnswerIsNoFailure) {
  cluster_.transport().On("GET", "*", Reply::Failure(absl::UnavailableError("no route")));
  for (const BundlePart& part : Read()) EXPECT_THAT(part.problem, Not(::testing::IsEmpty()));
}

TEST_F(BundleReaderTest, MetricsAndHealthComeThroughTheServer) {
  cluster_.transport().On(
      "GET", "/api/v1/namespaces/fairlead/pods",
      Reply::Json(200, R"({"items":[{"metadata":{"name":"fairlead-0"},"spec":{"containers":[
                              {"ports":[{"name":"dra","containerPort":1},
                                        {"name":"http","containerPort":9090}]}]}}]})"));
  const std::string proxy = "/api/v1/namespaces/fairlead/pods/fairlead-0:9090/proxy/";
  cluster_.transport().On("GET", proxy + "metrics",
                          Reply::Json(200, "fairlead_queue_gpus{queue=\"acme-vision\"} 2\n"));
  cluster_.transport().On("GET", proxy + "readyz", Reply::Json(503, "not yet"));
  cluster_.transport().On("GET", proxy + "livez", Reply::Json(403, R"({"code":403})"));
  const std::vector<BundlePart> parts = Read();
  EXPECT_THAT(PartOf(parts, "daemon-1/metrics.txt").text, HasSubstr("acme-vision"));
  EXPECT_EQ(PartOf(parts, "daemon-1/readyz.txt").text, "status 503\n");
  EXPECT_THAT(PartOf(parts, "daemon-1/livez.txt").problem, HasSubstr("get pods/proxy"));
}

TEST_F(BundleReaderTest, NamesAreTheSameOnesInAllParts) {
  std::vector<BundlePart> parts = Read();
  parts.push_back({"m",
                   "metrics",
                   BundlePart::Form::kMetrics,
                   {},
                   "# HELP a b\nfairlead_queue_gpus{queue=\"acme-vision\",le=\"0.5\"} 2\n"});
  std::vector<BundleJournal> journals;
  RedactBundle(journal::Player::FromDocuments(plugins::BuiltIn()), {}, parts, journals);
  const std::string text = Text(parts);
  for (const char* absent : {"acme", "jane", "rack", "registry", "research"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
  const std::string queue =
      PartOf(parts, "queues.json").json.items()[0].TextAt({"metadata", "name"});
  const Json& pod = PartOf(parts, "pods.json").json.items()[0];
  EXPECT_EQ(pod.TextAt({"metadata", "labels", "kai.scheduler/queue"}), queue);
  EXPECT_THAT(PartOf(parts, "m").text, HasSubstr(absl::StrCat("queue=\"", queue, "\",le=\"0.5\"")));
  EXPECT_EQ(pod.TextAt({"metadata", "annotations", "gpu-fraction"}), "0.5");
  EXPECT_THAT(text, HasSubstr("\"memory\":\"512Gi\""));
}

TEST_F(BundleReaderTest, OfOtherProgramsNothingIsSaidWithTheirNames) {
  cluster_.transport().On(
      "GET", "/api/v1/nodes",
      Reply::Json(500, R"({"kind":"Status","message":"acme-webhook says no","code":500})"));
  std::vector<BundlePart> parts = Read();
  EXPECT_THAT(PartOf(parts, "nodes.json").problem, Not(HasSubstr("acme")));
  EXPECT_THAT(PartOf(parts, "nodes.json").detail, HasSubstr("acme-webhook"));
}

// A journal that does not replay cannot be redacted; the other one, and the rest, can.
TEST_F(BundleReaderTest, AJournalThatCannotBeRedactedIsLeftOut) {
  std::vector<BundlePart> parts = Read();
  const journal::ReadOptions read = journal::Player::FromDocuments(plugins::BuiltIn());
  std::vector<std::string> records;
  journal::Recorder recorder("0.1", [&](std::string record) { records.push_back(record); });
  recorder.Started(*read(journal::Start{}), hook::Catalog::BuiltIn(), /*continues=*/false);
  std::vector<BundleJournal> journals = {{"bad.journal.gz", "bad", {"acme nonsense"}},
                                         {"good.journal.gz", "good", records}};
  RedactBundle(read, {}, parts, journals);
  EXPECT_THAT(journals[0].problem, HasSubstr("cannot be redacted"));
  EXPECT_TRUE(journals[0].records.empty());
  EXPECT_EQ(journals[1].problem, "");
  EXPECT_EQ(journals[1].records.size(), 1u);
  EXPECT_THAT(Text(parts), Not(HasSubstr("acme")));
  EXPECT_THAT(Text(parts), HasSubstr("kai.scheduler/queue"));
}

TEST_F(BundleReaderTest, LinesOfLogsHaveTheSameNames) {
  std::vector<BundlePart> parts = Read();
  BundlePart log{"log.txt", "log", BundlePart::Form::kLog};
  log.text = "level=info msg=stopped queue=acme-vision\n";
  parts.push_back(log);
  std::vector<BundleJournal> journals;
  RedactBundle(journal::Player::FromDocuments(plugins::BuiltIn()), {}, parts, journals);
  EXPECT_EQ(PartOf(parts, "log.txt").text,
            absl::StrCat("level=info msg=stopped queue=",
                         PartOf(parts, "queues.json").json.items()[0].TextAt({"metadata", "name"}),
                         "\n"));
}

TEST(BundleConfigurationTest, HasNoPasswordsAndKeys) {
  const absl::StatusOr<Json> json = PublicConfiguration(
      "kind: KubeSchedulerConfiguration\n"
      "extenders: [{urlPrefix: 'https://user:TOKEN-1@host:1/x', tlsConfig: {keyData: TOKEN2}}]\n");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(json->Compact(), Not(HasSubstr("TOKEN")));
  EXPECT_THAT(json->Compact(), HasSubstr("https://host:1/x"));
  const absl::StatusOr<Json> own = PublicConfiguration(
      "kind: KubeSchedulerConfiguration\n"
      "profiles: [{pluginConfig: [{name: Own, args: {apiToken: TOKEN-1, dbPassword: TOKEN-2,\n"
      "  url: 'http://host/x?key=TOKEN-3', mail: 'a@b/c'}}]}]\n");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(own->Compact(), Not(HasSubstr("TOKEN-")));
  EXPECT_THAT(own->Compact(), HasSubstr("\"http://host/x\""));
  EXPECT_THAT(own->Compact(), HasSubstr("a@b/c"));
  EXPECT_FALSE(PublicConfiguration("a: [").ok());
}

TEST(BundleTest, WhatDoesNotFitIsTold) {
  Bundle bundle(absl::UnixEpoch(), (64 << 10) + 1000);
  Json items = Json::Array();
  for (int i = 0; i < 100; ++i) items.Add(Json::String("an item"));
  bundle.AddList("items.json", items, "items");
  bundle.Add("large.txt", std::string(5000, 'x'), "a large file");
  bundle.Add("small.txt", "x", "a small file");
  bundle.Lack("nodes", "UNKNOWN", "acme says no");
  const Json manifest = bundle.Manifest(/*details=*/true);
  const Json& list = manifest.Find("files")->items()[0];
  const auto number = [&](const char* field) {
    int64_t out = 0;
    EXPECT_TRUE(absl::SimpleAtoi(list.TextAt({field}), &out)) << field;
    return out;
  };
  EXPECT_GT(number("items"), 10);
  EXPECT_EQ(number("items") + number("itemsLeftOut"), 100);
  EXPECT_LE(number("bytes"), 1000);
  EXPECT_EQ(manifest.Find("files")->items()[1].TextAt({"file"}), "small.txt");
  EXPECT_THAT(manifest.Find("missing")->items()[0].TextAt({"why"}), HasSubstr("5000 bytes"));
  EXPECT_THAT(manifest.Compact(), HasSubstr("acme says no"));
  EXPECT_THAT(bundle.Manifest(/*details=*/false).Compact(), Not(HasSubstr("acme")));
  EXPECT_TRUE(bundle.Archive().ok());
}

// The server's words may have names in them.
TEST(BundleTest, ARedactedArchiveHasNoDetails) {
  const auto content_of = [](const Bundle& bundle) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/bundle_test_", getpid());
    std::ofstream(path, std::ios::binary) << *bundle.Archive();
    const gzFile file = gzopen(path.c_str(), "rb");
    std::string content(1 << 20, '\0');
    content.resize(
        static_cast<size_t>(gzread(file, content.data(), static_cast<unsigned>(content.size()))));
    gzclose(file);
    return content;
  };
  Bundle bundle(absl::UnixEpoch(), 1 << 20);
  bundle.Lack("nodes", "UNKNOWN", "acme says no");
  EXPECT_THAT(content_of(bundle), HasSubstr("acme"));
  bundle.SetRedacted();
  EXPECT_THAT(content_of(bundle), Not(HasSubstr("acme")));
  EXPECT_THAT(content_of(bundle), HasSubstr("UNKNOWN"));
}

}  // namespace
}  // namespace fairlead::cmd
