#include "cmd/fairlead/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/fairlead/snapshot.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using ::testing::HasSubstr;
using Reply = FakeTransport::Reply;

constexpr char kBatch[] = R"({"resources":[{"name":"jobs","kind":"Job","namespaced":true},)"
                          R"({"name":"jobs/status","kind":"Job","namespaced":true}]})";

class ApiClientTest : public ::testing::Test {
 protected:
  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  FakeTransport transport_{clock_};
  ApiClient client_{&transport_};
};

TEST_F(ApiClientTest, AppliesThroughDiscovery) {
  transport_.On("GET", "/apis/batch/v1", Reply::Json(200, kBatch));
  transport_.On("PATCH", "/apis/batch/v1/namespaces/ns/jobs/a", Reply::Json(201, "{}"));
  const Json job = *Json::Parse(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"ns"}})");
  ASSERT_TRUE(client_.Apply(job).ok());
  ASSERT_TRUE(client_.Apply(job).ok());
  EXPECT_EQ(transport_.Sent("GET", "/apis/batch/v1").size(), 1u) << "discovery is asked once";
  const auto sent = transport_.Sent("PATCH", "/apis/batch/v1/namespaces/ns/jobs/a");
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_THAT(sent[0]->request.path, HasSubstr("fieldManager=fairlead-day&force=true"));
  EXPECT_EQ(sent[0]->request.content_type, kube::kApplyPatch);
  EXPECT_EQ(sent[0]->request.body, job.Compact());
}

TEST_F(ApiClientTest, DeletingWhatIsGoneIsFine) {
  transport_.On("GET", "/apis/batch/v1", Reply::Json(200, kBatch));
  transport_.On("DELETE", "*", Reply::Json(404, R"({"kind":"Status","code":404})"));
  EXPECT_TRUE(client_.Delete({"batch/v1", "Job", "ns", "a"}).ok());
  transport_.On("GET", "/apis/x/v1", Reply::Json(404, "{}"));
  EXPECT_TRUE(client_.Delete({"x/v1", "Thing", "", "a"}).ok()) << "of a kind that is gone too";
}

TEST_F(ApiClientTest, ErrorsNameTheObjectAndTheServersReason) {
  transport_.On("GET", "/apis/batch/v1", Reply::Json(200, kBatch));
  transport_.On("GET", "/apis/batch/v1/namespaces/ns/jobs/a",
                Reply::Json(403, R"({"kind":"Status","apiVersion":"v1","code":403,)"
                                 R"("reason":"Forbidden","message":"you may not"})"));
  const absl::Status status = client_.Get({"batch/v1", "Job", "ns", "a"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), "GET Job ns/a: you may not");
  EXPECT_EQ(client_.Get({"batch/v1", "Nope", "ns", "a"}).status().message(),
            "the server has no kind Nope in batch/v1");
}

TEST_F(ApiClientTest, ConflictsAreOfTwoKinds) {
  kube::HttpResponse answer;
  answer.status = 409;
  answer.body = R"({"kind":"Status","apiVersion":"v1","code":409,"reason":"AlreadyExists"})";
  EXPECT_EQ(StatusOfAnswer(answer).code(), absl::StatusCode::kAlreadyExists);
  answer.body = R"({"kind":"Status","apiVersion":"v1","code":409,"reason":"Conflict"})";
  EXPECT_EQ(StatusOfAnswer(answer).code(), absl::StatusCode::kAborted);
}

TEST_F(ApiClientTest, ASnapshotOfAClusterWithoutOurKindsSaysWhatToInstall) {
  transport_.On("GET", "*", Reply::Json(404, R"({"kind":"Status","code":404})"));
  for (const char* path : {"/api/v1/nodes", "/api/v1/pods"}) {
    transport_.On("GET", path, Reply::Json(200, R"({"metadata":{},"items":[]})"));
  }
  for (const char* path :
       {"/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/policy/v1/poddisruptionbudgets"}) {
    transport_.On("GET", path, Reply::Json(200, R"({"metadata":{},"items":[]})"));
  }
  const absl::Status status =
      TakeSnapshot(transport_, core::KwokOptions(), hook::Catalog::BuiltIn(), clock_.Now())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Queue (scheduling.run.ai/v2)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("kubectl apply --server-side -f crds/"));
}

TEST_F(ApiClientTest, ASnapshotWritesNothingAndReadsAllPages) {
  const auto empty = Reply::Json(200, R"({"metadata":{},"items":[]})");
  transport_.On("GET", "*", empty);
  transport_.When(
      [](const kube::HttpRequest& request) {
        return request.path.find("/api/v1/nodes") == 0 &&
               request.path.find("continue=more") == std::string::npos;
      },
      [](const kube::HttpRequest&) {
        return Reply::Json(200, R"({"metadata":{"continue":"more"},"items":[)"
                                R"({"metadata":{"name":"n1","uid":"1"},"status":{"allocatable":)"
                                R"({"cpu":"4","memory":"8Gi","pods":"10"}}}]})");
      });
  transport_.When(
      [](const kube::HttpRequest& request) {
        return request.path.find("continue=more") != std::string::npos;
      },
      [](const kube::HttpRequest&) {
        return Reply::Json(200,
                           R"({"metadata":{},"items":[{"metadata":{"name":"n2","uid":"2"}}]})");
      });
  const auto snapshot =
      TakeSnapshot(transport_, core::KwokOptions(), hook::Catalog::BuiltIn(), clock_.Now());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->view.nodes.size(), 2u);
  for (const FakeTransport::Exchange& exchange : transport_.exchanges()) {
    EXPECT_EQ(exchange.request.method, "GET");
  }
}

TEST_F(ApiClientTest, ASnapshotSaysWhenItIsJudgedWithoutTheHistoryOfUsage) {
  transport_.On("GET", "*", Reply::Json(200, R"({"metadata":{},"items":[]})"));
  core::Options options = core::KwokOptions();
  options.engine.usage.emplace();
  options.usage_store = {"ns", "u"};
  const auto notes = [&] {
    const auto snapshot = TakeSnapshot(transport_, options, hook::Catalog::BuiltIn(), clock_.Now());
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.ok() ? snapshot->notes : std::vector<std::string>();
  };
  const char* const map = "/api/v1/namespaces/ns/configmaps/u";
  transport_.On("GET", map, Reply::Json(404, R"({"kind":"Status","code":404})"));
  EXPECT_TRUE(notes().empty());
  transport_.On("GET", map, Reply::Json(403, R"({"kind":"Status","code":403,"message":"no"})"));
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_THAT(notes().front(), HasSubstr("without the history of usage"));
  transport_.On("GET", map, Reply::Json(200, R"({"data":{"usage":"nonsense"}})"));
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_THAT(notes().front(), HasSubstr("usage record"));
}

TEST_F(ApiClientTest, ASnapshotCountsWhatIsReportedOfUsage) {
  transport_.On("GET", "*", Reply::Json(200, R"({"metadata":{},"items":[]})"));
  core::Options options = core::KwokOptions();
  options.engine.usage.emplace();
  options.engine.usage->reported = true;
  options.usage_store = {"ns", "u"};
  const auto take = [&](const FetchUsage& fetch) {
    auto snapshot =
        TakeSnapshot(transport_, options, hook::Catalog::BuiltIn(), clock_.Now(), fetch);
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return snapshot.ok() ? *std::move(snapshot) : Snapshot();
  };
  const Snapshot without = take([](absl::Time) -> absl::StatusOr<model::UsageReport> {
    return absl::UnavailableError("no route");
  });
  ASSERT_EQ(without.notes.size(), 1u);
  EXPECT_THAT(without.notes.front(), HasSubstr("without the history of usage: no route"));
  EXPECT_NE(without.view.history.problem, "");
  EXPECT_EQ(take(nullptr).notes.size(), 1u);
  const Snapshot with = take([](absl::Time now) { return model::UsageReport{now, {}}; });
  EXPECT_TRUE(with.notes.empty());
  EXPECT_EQ(with.view.history.problem, "");
  EXPECT_EQ(with.view.history.as_of, clock_.Now());
  EXPECT_TRUE(transport_.Sent("GET", "/api/v1/namespaces/ns/configmaps/u").empty());
}

}  // namespace
}  // namespace fairlead::cmd
