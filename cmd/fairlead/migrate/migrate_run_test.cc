// `fairlead migrate` against an API server that refuses, changes and keeps things.
#include "cmd/fairlead/migrate/migrate_run.h"

#include <gmock/gmock.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/migrate/migrate_testing.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using ::testing::HasSubstr;
using Reply = FakeTransport::Reply;

constexpr char kScheduler[] =
    "/apis/apps/v1/namespaces/kai-scheduler/deployments/kai-scheduler-default";
constexpr char kFilePath[] = "/api/v1/namespaces/fairlead/configmaps/fairlead-configuration";
constexpr char kRecordPath[] = "/api/v1/namespaces/fairlead/configmaps/fairlead-migration";

class MigrateRunTest : public ::testing::Test {
 protected:
  MigrateRunTest() {
    transport_.On("GET", "*", Reply::Json(404, R"({"kind":"Status","code":404})"));
    transport_.On("GET", "/apis/apps/v1",
                  Reply::Json(200, R"({"resources":[{"name":"deployments","kind":"Deployment",)"
                                   R"("namespaced":true}]})"));
    transport_.On("GET", "/api/v1",
                  Reply::Json(200, R"({"resources":[{"name":"configmaps","kind":"ConfigMap",)"
                                   R"("namespaced":true}]})"));
    Replicas(2);
    File(testing::kFile);
    transport_.On("PATCH", "*", Reply::Json(200, "{}"));
    transport_.On("DELETE", "*", Reply::Json(200, "{}"));
    pace_.poll = absl::Seconds(1);
    pace_.sleep = [this](absl::Duration time) {
      slept_ += time;
      if (on_sleep_) on_sleep_();
    };
    KaiObjects objects = testing::Installed();
    objects.deployments = {testing::KaiDeploymentObject("kai-scheduler-default", "scheduler", 2),
                           testing::FairleadDeploymentObject()};
    steps_ = *PlanMigration(ReadKaiInstallation(objects), {});
    EXPECT_EQ(steps_.size(), 2U);
  }
  void Replicas(int count) {
    transport_.On("GET", kScheduler,
                  Reply::Json(200, absl::StrCat(R"({"spec":{"replicas":)", count, "}}")));
  }
  void File(const std::string& text) {
    transport_.On("GET", kFilePath, Reply::Json(200, testing::FileObject(text).Compact()));
  }
  void Pods(int count) {
    std::string items;
    for (int i = 0; i < count; ++i) absl::StrAppend(&items, i == 0 ? "{}" : ",{}");
    transport_.On("GET", "/api/v1/namespaces/kai-scheduler/pods",
                  Reply::Json(200, absl::StrCat(R"({"items":[)", items, "]}")));
  }
  std::vector<std::string> Writes() {
    std::vector<std::string> writes;
    for (const auto& exchange : transport_.exchanges()) {
      if (exchange.request.method == "GET") continue;
      writes.push_back(
          absl::StrCat(exchange.request.method, " ",
                       exchange.request.path.substr(exchange.request.path.rfind('/') + 1)));
    }
    return writes;
  }
  absl::Status Run() { return Migrate(api_, "fairlead", {}, steps_, pace_, out_); }
  absl::Status Back() { return MigrateBack(api_, {"fairlead", steps_}, pace_, out_); }

  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  FakeTransport transport_{clock_};
  ApiClient api_{&transport_};
  MigrationPace pace_;
  absl::Duration slept_;
  std::function<void()> on_sleep_;
  std::vector<MigrationStep> steps_;
  std::ostringstream out_;
};

TEST_F(MigrateRunTest, TheRecordIsWrittenBeforeTheFirstStep) {
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Writes(), ::testing::ElementsAre(
                            "PATCH fairlead-migration?fieldManager=fairlead-migrate&force=true",
                            "PATCH kai-scheduler-default", "PATCH fairlead-configuration"));
  const auto patches = transport_.Sent("PATCH", kScheduler);
  EXPECT_EQ(patches[0]->request.body, R"([{"op":"test","path":"/spec/replicas","value":2},)"
                                      R"({"op":"replace","path":"/spec/replicas","value":0}])");
  EXPECT_EQ(patches[0]->request.content_type, kube::kJsonPatch);
}

TEST_F(MigrateRunTest, WithoutARecordNothingIsChanged) {
  transport_.On("PATCH", kRecordPath, Reply::Json(403, R"({"kind":"Status","message":"no"})"));
  EXPECT_EQ(Run().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Writes().size(), 1U);
}

TEST_F(MigrateRunTest, TheNameIsGivenOnceNoSchedulerRuns) {
  Pods(2);
  on_sleep_ = [this] {
    EXPECT_TRUE(transport_.Sent("PATCH", kFilePath).empty());
    if (slept_ == absl::Seconds(3)) Pods(0);
  };
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(slept_, absl::Seconds(3));
  EXPECT_EQ(transport_.Sent("PATCH", kFilePath).size(), 1U);
}

TEST_F(MigrateRunTest, OpenBindRequestsAreFinishedFirst) {
  transport_.On("GET", "/apis/scheduling.run.ai/v1alpha2/bindrequests",
                Reply::Json(200, R"({"items":[{"metadata":{"name":"p","namespace":"a"}}]})"));
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("has not finished: 1, a/p"));
  EXPECT_TRUE(transport_.Sent("PATCH", kFilePath).empty());
  EXPECT_EQ(slept_, pace_.patience);
}

TEST_F(MigrateRunTest, PodsThatDoNotEndKeepTheName) {
  Pods(1);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("pods that still run: 1"));
  EXPECT_TRUE(transport_.Sent("PATCH", kFilePath).empty());
}

TEST_F(MigrateRunTest, WhatWasChangedMeanwhileStopsIt) {
  Replicas(5);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("was changed meanwhile"));
  EXPECT_EQ(Writes().size(), 1U) << "the record alone";
  // The server's own test of the value.
  Replicas(2);
  transport_.On("PATCH", kScheduler, Reply::Json(422, R"({"kind":"Status","message":"test"})"));
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(transport_.Sent("PATCH", kFilePath).empty());
}

TEST_F(MigrateRunTest, AStepThatIsDoneIsNotDoneAgain) {
  Replicas(0);
  File(steps_[1].to.text());
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Writes().size(), 1U);
}

TEST_F(MigrateRunTest, BackLetsTheNameGoAndWaitsBeforeKaiStarts) {
  Replicas(0);
  File(steps_[1].to.text());
  on_sleep_ = [this] {
    EXPECT_EQ(transport_.Sent("PATCH", kFilePath).size(), 1U);
    EXPECT_TRUE(transport_.Sent("PATCH", kScheduler).empty());
  };
  ASSERT_TRUE(Back().ok());
  EXPECT_EQ(slept_, pace_.settle);
  EXPECT_THAT(Writes(),
              ::testing::ElementsAre("PATCH fairlead-configuration", "PATCH kai-scheduler-default",
                                     "DELETE fairlead-migration"));
  EXPECT_THAT(transport_.Sent("PATCH", kScheduler)[0]->request.body, HasSubstr(R"("value":2}])"));
}

TEST_F(MigrateRunTest, BackKeepsWhatTheUserHasChangedSince) {
  Replicas(1);  // somebody has started it with another number
  File(absl::StrCat(steps_[1].to.text(), "events: false\n"));
  const absl::Status status = Back();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("Deployment kai-scheduler/kai-scheduler-default"));
  EXPECT_THAT(Writes(), ::testing::ElementsAre("PATCH fairlead-configuration"))
      << "the record stays";
  const Json patch = *Json::Parse(transport_.Sent("PATCH", kFilePath)[0]->request.body);
  const std::string text = patch.items()[1].TextAt({"value"});
  EXPECT_EQ(text, absl::StrCat(testing::kFile, "events: false\n")) << "only the name has gone";
}

TEST_F(MigrateRunTest, KaiIsNotStartedWhileFairleadKeepsTheName) {
  Replicas(0);
  File("schedulerNames: [kai-scheduler\n");  // cannot be read
  EXPECT_FALSE(Back().ok());
  EXPECT_TRUE(Writes().empty());
}

TEST_F(MigrateRunTest, BackPassesOverWhatIsGone) {
  transport_.On("GET", kScheduler, Reply::Json(404, "{}"));
  File(steps_[1].to.text());
  ASSERT_TRUE(Back().ok());
  EXPECT_THAT(out_.str(), HasSubstr("gone  undo: stop KAI's scheduler"));
}

TEST_F(MigrateRunTest, ListsAreReadPageByPage) {
  transport_.When(
      [](const kube::HttpRequest& request) {
        return absl::StrContains(request.path, "/apis/scheduling.run.ai/v2/queues");
      },
      [](const kube::HttpRequest& request) {
        const bool second = absl::StrContains(request.path, "continue=next");
        return Reply::Json(200, second ? R"({"items":[{"metadata":{"name":"b"}}]})"
                                       : R"({"metadata":{"continue":"next"},)"
                                         R"("items":[{"metadata":{"name":"a"}}]})");
      });
  const auto objects = ReadKaiObjects(api_);
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ(objects->queues.size(), 2U);
  EXPECT_TRUE(objects->configs.empty()) << "a kind that the server lacks";
  transport_.On("GET", "/apis/apps/v1/deployments", Reply::Json(403, "{}"));
  EXPECT_EQ(ReadKaiObjects(api_).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace fairlead::cmd
