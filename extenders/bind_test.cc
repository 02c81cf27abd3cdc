#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/write_attempts.h"
#include "extenders/testing.h"

namespace fairlead::extenders {
namespace {

using testing::CachingFilter;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Reply;
using ::testing::SizeIs;

model::BindPod BindingBy(int32_t extender) {
  model::BindPod action{.ns = "ns", .name = "p", .uid = "u1", .node = "a", .annotations = {}};
  action.extender = extender;
  return action;
}

class BindTest : public testing::ClientFixture {
 protected:
  void StartBinder() {
    model::ExtenderConfig binder = CachingFilter();
    binder.bind_verb = "b";
    Start({binder});
  }
  void Bind(int32_t by = 0) {
    client_->Bind(BindingBy(by), [this](const absl::Status& s) { bound_.push_back(s); });
  }
  absl::Status ResultOf(Reply reply) {
    transports_.clear();
    bound_.clear();
    StartBinder();
    OnVerb(0, "b", std::move(reply));
    Bind();
    Pump();
    EXPECT_THAT(bound_, SizeIs(1));
    return bound_.empty() ? absl::UnknownError("no answer") : bound_.front();
  }

  std::vector<absl::Status> bound_;
};

TEST_F(BindTest, TheExtenderIsToldPodAndNode) {
  EXPECT_EQ(ResultOf(Reply::Json(200, R"({"Error":""})")), absl::OkStatus());
  const kube::HttpRequest& request = extender().exchanges().front().request;
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/s/b");
  EXPECT_EQ(request.body, R"({"PodName":"p","PodNamespace":"ns","PodUID":"u1","Node":"a"})");
  EXPECT_EQ(request.traffic, kube::TrafficClass::kWrite);
  EXPECT_THAT(api_.exchanges(), IsEmpty());
}

TEST_F(BindTest, WhatIsRefusedIsInvalidArgument) {
  for (const Reply& reply :
       {Reply::Json(200, R"({"Error":"the node is full"})"), Reply::Json(400, ""),
        Reply::Json(404, ""), Reply::Json(409, ""), Reply::Json(302, ""),
        Reply::Failure(absl::InvalidArgumentError("the path is not escaped")),
        Reply::Failure(absl::UnauthenticatedError("no certificate"))}) {
    const absl::Status status = ResultOf(reply);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(OutcomeOf(status, /*in_doubt=*/false), Outcome::kRefused);
    EXPECT_THAT(status.message(), HasSubstr("extender http://x:1/s: b: "));
  }
  EXPECT_THAT(ResultOf(Reply::Json(200, R"({"Error":"the node is full"})")).message(),
              HasSubstr("the node is full"));
}

TEST_F(BindTest, WhatMayHaveBeenDoneIsUnknown) {
  for (const Reply& reply :
       {Reply::Json(500, ""), Reply::Json(503, ""), Reply::Json(202, ""), Reply::Json(200, "oops"),
        Reply::Json(200, ""), Reply::Failure(absl::UnavailableError("connection reset")),
        Reply::Failure(absl::CancelledError("shut down")),
        Reply::Failure(absl::ResourceExhaustedError("larger than")),
        Reply::Failure(absl::InternalError("libcurl"))}) {
    const absl::Status status = ResultOf(reply);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(OutcomeOf(status, /*in_doubt=*/false), Outcome::kUnknown);
  }
}

TEST_F(BindTest, AnAnswerThatNeverComesIsUnknown) {
  StartBinder();
  Bind();
  Pump();
  extender().Advance(absl::Seconds(5));
  Pump();
  ASSERT_THAT(bound_, SizeIs(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(bound_[0])) << bound_[0];
}

TEST_F(BindTest, BindingsDoNotWaitForQuestions) {
  StartBinder();
  OnVerb(0, "b", Reply::Json(200, "{}"));
  for (int i = 0; i < 100; ++i) Ask();
  Pump();
  Bind();
  Pump();
  EXPECT_THAT(answers_, IsEmpty());
  ASSERT_THAT(bound_, SizeIs(1));
  EXPECT_EQ(bound_[0], absl::OkStatus());
}

TEST_F(BindTest, AnActionThatNamesNoBinderIsInvalid) {
  Start({CachingFilter()});
  for (const int32_t by : {-1, 0, 1}) {
    bound_.clear();
    Bind(by);
    ASSERT_THAT(bound_, SizeIs(1));
    EXPECT_TRUE(absl::IsInvalidArgument(bound_[0])) << bound_[0];
  }
  EXPECT_THAT(extender().exchanges(), IsEmpty());
}

TEST_F(BindTest, AClientThatIsGoneLeavesBindingsUnknown) {
  StartBinder();
  for (int i = 0; i < 100; ++i) Bind();
  Pump();
  client_ = nullptr;
  // Those that waited; the scripted transport drops the rest.
  EXPECT_THAT(bound_, ::testing::Each(::testing::Property(&absl::Status::code,
                                                          absl::StatusCode::kUnavailable)));
  EXPECT_FALSE(bound_.empty());
}

}  // namespace
}  // namespace fairlead::extenders
