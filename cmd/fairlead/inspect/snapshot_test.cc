#include "cmd/fairlead/inspect/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using ::testing::HasSubstr;
using Reply = FakeTransport::Reply;

class SnapshotTest : public ::testing::Test {
 protected:
  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  FakeTransport transport_{clock_};
};

TEST_F(SnapshotTest, WithoutOurKindsItSaysWhatToInstall) {
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

TEST_F(SnapshotTest, ItWritesNothingAndReadsAllPages) {
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

TEST_F(SnapshotTest, ItSaysWhenItIsJudgedWithoutTheHistoryOfUsage) {
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

TEST_F(SnapshotTest, ItCountsWhatIsReportedOfUsage) {
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

// The scheduler gathers new demand before it plans. A question has no later step.
TEST_F(SnapshotTest, WhatTheHookWouldDoIsJudgedAtOnce) {
  transport_.On("GET", "*", Reply::Json(200, R"({"metadata":{},"items":[]})"));
  transport_.On("GET", "/api/v1/pods", Reply::Json(200, R"({"metadata":{},"items":[{
    "metadata":{"name":"p","namespace":"team","uid":"1"},
    "spec":{"schedulerName":"fairlead","containers":[
      {"name":"c","resources":{"requests":{"cpu":"1","nvidia.com/gpu":"1"}}}]}}]})"));
  core::Options options = core::KwokOptions();
  auto snapshot = TakeSnapshot(transport_, options, hook::Catalog::BuiltIn(), clock_.Now());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->plan.requests.size(), 1u);
  options.hook.cluster_gpu_limit = 0;
  snapshot = TakeSnapshot(transport_, options, hook::Catalog::BuiltIn(), clock_.Now());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->plan.requests.empty());
  ASSERT_EQ(snapshot->view.waiting.size(), 1u);
  EXPECT_EQ(snapshot->view.waiting.front().verdict.code, verdict::Code::kGpuCapReached);
}

}  // namespace
}  // namespace fairlead::cmd
