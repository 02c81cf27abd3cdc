#include "cmd/fairlead/inspect/owned_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using ::testing::HasSubstr;
using Reply = FakeTransport::Reply;

std::string Pod(absl::string_view name, absl::string_view owner, absl::string_view node = "") {
  return absl::StrCat(R"({"metadata":{"name":")", name, R"(","ownerReferences":[)", owner,
                      R"(]},"spec":{"nodeName":")", node, R"("},"status":{"phase":"Pending"}})");
}
std::string Owner(absl::string_view kind, absl::string_view name, absl::string_view uid) {
  return absl::StrCat(R"({"kind":")", kind, R"(","name":")", name, R"(","uid":")", uid,
                      R"(","controller":true})");
}

class OwnedPodsTest : public ::testing::Test {
 protected:
  OwnedPodsTest() {
    Discover("/apis/batch/v1", "jobs", "Job");
    Discover("/apis/apps/v1", "deployments", "Deployment");
    transport_.On(
        "GET", "/apis/apps/v1",
        Reply::Json(200, R"({"resources":[)"
                         R"({"name":"deployments","kind":"Deployment","namespaced":true},)"
                         R"({"name":"replicasets","kind":"ReplicaSet","namespaced":true}]})"));
  }
  void Discover(const std::string& path, absl::string_view plural, absl::string_view kind) {
    transport_.On(
        "GET", path,
        Reply::Json(200, absl::StrCat(R"({"resources":[{"name":")", plural, R"(","kind":")", kind,
                                      R"(","namespaced":true}]})")));
  }
  void Pods(const std::vector<std::string>& pods) {
    std::string items;
    for (const std::string& pod : pods) absl::StrAppend(&items, items.empty() ? "" : ",", pod);
    transport_.On("GET", "/api/v1/namespaces/ns/pods",
                  Reply::Json(200, absl::StrCat(R"({"items":[)", items, "]}")));
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport transport_{clock_};
  ApiClient client_{&transport_};
};

TEST_F(OwnedPodsTest, TheFirstWaitingPodOfAJob) {
  transport_.On("GET", "/apis/batch/v1/namespaces/ns/jobs/train",
                Reply::Json(200, R"({"metadata":{"uid":"j"},"spec":{"selector":{"matchLabels":)"
                                 R"({"job-name":"train"}}}})"));
  Pods({Pod("train-a", Owner("Job", "train", "j"), "n1"),
        Pod("train-c", Owner("Job", "train", "j")), Pod("train-b", Owner("Job", "train", "j")),
        Pod("train-0", Owner("Job", "train", "of a former life"))});
  const auto found = FindPodOf(client_, {Subject::Kind::kJob, "ns", "train"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "train-b");
  EXPECT_EQ(found->note, "Job ns/train: pods that wait: 2, others: 1; this is pod train-b");
  EXPECT_THAT(transport_.exchanges().back().request.path,
              HasSubstr("labelSelector=job-name%3Dtrain"));
}

TEST_F(OwnedPodsTest, ADeploymentOwnsThroughItsReplicaSets) {
  transport_.On("GET", "/apis/apps/v1/namespaces/ns/deployments/web",
                Reply::Json(200, R"({"metadata":{"uid":"d"},"spec":{}})"));
  const auto set = [](absl::string_view uid) {
    return Reply::Json(200, absl::StrCat(R"({"metadata":{"ownerReferences":[)",
                                         Owner("Deployment", "web", uid), "]}}"));
  };
  transport_.On("GET", "/apis/apps/v1/namespaces/ns/replicasets/web-1", set("d"));
  transport_.On("GET", "/apis/apps/v1/namespaces/ns/replicasets/web-2", set("another"));
  Pods({Pod("web-2-a", Owner("ReplicaSet", "web-2", "r2")),
        Pod("web-1-b", Owner("ReplicaSet", "web-1", "r1"), "n1"),
        Pod("web-1-a", Owner("ReplicaSet", "web-1", "r1"), "n1"), Pod("alone", "")});
  const auto found = FindPodOf(client_, {Subject::Kind::kDeployment, "ns", "web"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "web-1-a");
  EXPECT_EQ(transport_.Sent("GET", "/apis/apps/v1/namespaces/ns/replicasets/web-1").size(), 1u);
}

TEST_F(OwnedPodsTest, SaysWhatIsNotThere) {
  transport_.On(
      "GET", "/apis/batch/v1/namespaces/ns/jobs/none",
      Reply::Json(404, R"({"kind":"Status","code":404,"message":"jobs none not found"})"));
  EXPECT_TRUE(absl::IsNotFound(FindPodOf(client_, {Subject::Kind::kJob, "ns", "none"}).status()));
  transport_.On("GET", "/apis/batch/v1/namespaces/ns/jobs/idle",
                Reply::Json(200, R"({"metadata":{"uid":"j"},"spec":{}})"));
  Pods({});
  const auto idle = FindPodOf(client_, {Subject::Kind::kJob, "ns", "idle"});
  EXPECT_EQ(idle.status().message(), "Job ns/idle has no pods");
}

}  // namespace
}  // namespace fairlead::cmd
