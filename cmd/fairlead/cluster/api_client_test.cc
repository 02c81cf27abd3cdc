#include "cmd/fairlead/cluster/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fairlead::cmd
