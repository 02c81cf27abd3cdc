#include "extenders/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "extenders/testing.h"

namespace fairlead::extenders {
namespace {

using testing::CachingFilter;
using testing::CachingScorer;
using ::testing::IsEmpty;
using testing::kNodesPath;
using testing::kPodPath;
using testing::Reply;
using ::testing::SizeIs;

class ClientTest : public testing::ClientFixture {};

TEST_F(ClientTest, OnlySoManyAsksRunAndTheRestFollow) {
  Start({CachingFilter()});
  api_.On("GET", kPodPath, Reply::Hold());
  for (int i = 0; i < Client::kAsksMax + 3; ++i) Ask();
  Pump();
  EXPECT_EQ(api_.open_count(), static_cast<size_t>(Client::kAsksMax));
  api_.Fail(*api_.FindOpen("GET", kPodPath), absl::UnavailableError("x"));
  Pump();
  EXPECT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(api_.open_count(), static_cast<size_t>(Client::kAsksMax));
  while (const auto id = api_.FindOpen("GET", kPodPath)) {
    api_.Fail(*id, absl::UnavailableError("x"));
    Pump();
  }
  EXPECT_THAT(answers_, SizeIs(Client::kAsksMax + 3));
  answers_.clear();
  for (int i = 0; i < Client::kAsksMax; ++i) Ask();
  Pump();
  EXPECT_EQ(api_.open_count(), static_cast<size_t>(Client::kAsksMax))
      << "all places are free again";
}

TEST_F(ClientTest, ACallbackMayAskAgain) {
  Start({CachingFilter()});
  OnFilter(0, R"({"NodeNames":["a"]})");
  const model::AskExtenders action{
      .ns = "ns", .name = "p", .uid = "u1", .extenders = {0}, .nodes = {"a"}};
  int ended = 0;
  client_->Ask(action, [&](const Answer& first) {
    EXPECT_EQ(first.status, absl::OkStatus());
    client_->Ask(action, [&](const Answer& second) {
      EXPECT_EQ(second.status, absl::OkStatus());
      ++ended;
    });
  });
  Pump();
  EXPECT_EQ(ended, 1);
}

TEST_F(ClientTest, OnlyTheNamedExtendersAreAsked) {
  Start({CachingFilter(1), CachingFilter(2), CachingFilter(3)});
  OnFilter(1, R"({"NodeNames":["b"]})");
  client_->Ask({.ns = "ns", .name = "p", .uid = "u1", .extenders = {1}, .nodes = {"a", "b"}},
               [this](const Answer& answer) { answers_.push_back(answer); });
  Pump();
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(Short(answers_[0]), "a:- b:0");
  EXPECT_THAT(Bodies(0), IsEmpty());
  EXPECT_THAT(Bodies(2), IsEmpty());
}

TEST_F(ClientTest, ThePositionOfAFailureIsThatOfTheConfiguration) {
  Start({CachingFilter(1), CachingFilter(2)});
  OnVerb(1, "f", Reply::Json(500, ""));
  client_->Ask({.ns = "ns", .name = "p", .uid = "u1", .extenders = {1}, .nodes = {"a"}},
               [this](const Answer& answer) { answers_.push_back(answer); });
  Pump();
  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_EQ(answers_[0].status.message(), "extender http://x:2/s: f: status 500");
  EXPECT_EQ(answers_[0].failed, 1);
}

TEST_F(ClientTest, AnUnknownExtenderIsInvalid) {
  Start({CachingFilter()});
  for (const int32_t position : {-1, 1}) {
    answers_.clear();
    client_->Ask({.ns = "ns", .name = "p", .uid = "u1", .extenders = {0, position}, .nodes = {"a"}},
                 [this](const Answer& answer) { answers_.push_back(answer); });
    ASSERT_THAT(answers_, SizeIs(1));
    EXPECT_TRUE(absl::IsInvalidArgument(answers_[0].status)) << answers_[0].status;
  }
  EXPECT_THAT(api_.exchanges(), IsEmpty());
}

TEST_F(ClientTest, AsksThatWaitEndWithTheClient) {
  Start({CachingFilter()});
  api_.On("GET", kPodPath, Reply::Hold());
  for (int i = 0; i < Client::kAsksMax + 2; ++i) Ask();
  Pump();
  client_ = nullptr;
  transports_.clear();
  ASSERT_THAT(answers_, SizeIs(2));
  EXPECT_TRUE(absl::IsCancelled(answers_[0].status));
  // The rest: an answer that is late, and those that the API server's transport cancels.
  api_.Respond(*api_.FindOpen("GET", kPodPath), Reply::Json(200, testing::kPodText).response);
  api_.CancelAll();
  Pump();
  ASSERT_THAT(answers_, SizeIs(Client::kAsksMax + 2));
  for (const Answer& answer : answers_) EXPECT_TRUE(absl::IsCancelled(answer.status));
}

TEST_F(ClientTest, ANodeListThatComesAfterTheEndIsSafe) {
  model::ExtenderConfig config = CachingFilter();
  config.node_cache_capable = false;
  Start({config});
  api_.On("GET", kNodesPath, Reply::Hold());
  Ask();
  Pump();
  client_ = nullptr;
  transports_.clear();
  api_.Respond(*api_.FindOpen("GET", kNodesPath), Reply::Json(200, R"({"items":[]})").response);
  Pump();
  // No node is listed, so that no extender has to be asked.
  ASSERT_THAT(answers_, SizeIs(1));
}

TEST_F(ClientTest, AShutdownIsNoFailureOfAnIgnorableExtender) {
  model::ExtenderConfig config = CachingFilter();
  config.ignorable = true;
  Start({config, CachingScorer(2)});
  OnVerb(0, "f", Reply::Failure(absl::CancelledError("shut down")));
  EXPECT_TRUE(absl::IsCancelled(Result().status));
  answers_.clear();
  OnFilter(0, R"({"NodeNames":["a","b"]})");
  OnVerb(1, "p", Reply::Failure(absl::CancelledError("shut down")));
  EXPECT_TRUE(absl::IsCancelled(Result().status));
}

}  // namespace
}  // namespace fairlead::extenders
