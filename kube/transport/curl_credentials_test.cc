// The transport with its credentials, its connections and its threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kube/transport/curl_test_fixture.h"

namespace fairlead::kube {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- credentials -------------------------------------------------------------------------------

LoopbackServer::Handler AcceptOnly(const std::string& authorization) {
  return [authorization](const LoopbackServer::Request& request, Connection& c) {
    if (request.headers.at("authorization") == authorization) {
      c.Answer(200, "in");
    } else {
      c.Answer(401, "out");
    }
  };
}

TEST_F(CurlTransportTest, RejectedCredentialsAreRenewedOnce) {
  Start(AcceptOnly("Bearer hunter2-1"), {}, /*changes=*/5);
  const Answer answer = transport_->Call(With("POST", "body"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "in");
  const auto seen = server_->requests();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].body, "body");
  EXPECT_EQ(seen[1].headers.at("authorization"), "Bearer hunter2-1");

  auto stream = std::make_shared<Collector>();
  transport_->Stream(Get("/w"), stream);
  EXPECT_TRUE(stream->AwaitDone().ok());
  EXPECT_EQ(stream->data_, "in");
}

TEST_F(CurlTransportTest, AStreamDoesNotSeeTheFirst401) {
  Start(AcceptOnly("Bearer hunter2-1"), {}, /*changes=*/5);
  auto stream = std::make_shared<Collector>();
  transport_->Stream(Get("/w"), stream);
  EXPECT_TRUE(stream->AwaitDone().ok());
  EXPECT_EQ(stream->status_, 200);
  EXPECT_EQ(stream->data_, "in");
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(CurlTransportTest, TheSecond401IsTheCallers) {
  Start(AcceptOnly("Bearer none"), {}, /*changes=*/5);
  const Answer answer = transport_->Call(Get("/a"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 401);
  EXPECT_EQ(answer->body, "out");
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(CurlTransportTest, WithoutNewerCredentialsThe401IsTheCallers) {
  Start(AcceptOnly("Bearer none"));
  Answer answer = transport_->Call(Get("/a"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 401);
  auto stream = std::make_shared<Collector>();
  transport_->Stream(Get("/w"), stream);
  EXPECT_TRUE(stream->AwaitDone().ok());
  EXPECT_EQ(stream->status_, 401);
  EXPECT_EQ(stream->content_type_, "application/json");
  EXPECT_EQ(stream->data_, "out");
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(CurlTransportTest, FailingAndSlowCredentials) {
  Start(AcceptOnly("Bearer hunter2-0"));
  credentials_->set_mode(ChangingCredentials::Mode::kFailing);
  Answer answer = transport_->Call(Get("/a"));
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status())) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()),
              AllOf(HasSubstr("GET /a: "), HasSubstr("the plugin is missing")));
  credentials_->set_mode(ChangingCredentials::Mode::kSilent);
  HttpRequest request = Get("/a");
  request.timeout = absl::Milliseconds(30);
  answer = transport_->Call(request);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  EXPECT_TRUE(server_->requests().empty());
}

// The renewal fails or takes too long: the caller still gets the server's answer.
TEST_F(CurlTransportTest, A401SurvivesAFailedRenewal) {
  Start([this](const LoopbackServer::Request& request, Connection& c) {
    credentials_->set_mode(request.target == "/fail" ? ChangingCredentials::Mode::kFailing
                                                     : ChangingCredentials::Mode::kSilent);
    c.Answer(401, "out");
  });
  for (const char* path : {"/fail", "/silent"}) {
    credentials_->set_mode(ChangingCredentials::Mode::kGood);
    HttpRequest request = Get(path);
    request.timeout = absl::Milliseconds(200);
    const Answer answer = transport_->Call(request);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 401);
    EXPECT_EQ(answer->body, "out");
  }
}

// ---- connections and threads -------------------------------------------------------------------

TEST_F(CurlTransportTest, ClassesShareNoConnection) {
  Start([](const LoopbackServer::Request& request, Connection& c) {
    c.Answer(200, absl::StrCat(request.connection));
  });
  std::set<std::string> connections;
  for (const TrafficClass traffic :
       {TrafficClass::kRead, TrafficClass::kWatch, TrafficClass::kWrite}) {
    HttpRequest request = Get("/");
    request.traffic = traffic;
    const std::string connection = transport_->Call(request)->body;
    EXPECT_EQ(transport_->Call(request)->body, connection);
    connections.insert(connection);
  }
  EXPECT_EQ(connections.size(), 3u);
}

TEST_F(CurlTransportTest, WritesKeepToTheirConnections) {
  CurlTransportOptions options;
  options.write_connections_max = 2;
  Start([](const LoopbackServer::Request& request, Connection& c) { c.Answer(201, request.body); },
        options);
  // From several threads at once; each answer belongs to its request.
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::vector<std::future<Answer>> answers;
      for (int i = 0; i < 50; ++i) answers.push_back(Send(With("POST", absl::StrCat(t, "-", i))));
      for (int i = 0; i < 50; ++i) {
        const Answer answer = answers[static_cast<size_t>(i)].get();
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_EQ(answer->body, absl::StrCat(t, "-", i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_->requests().size(), 200u);
  EXPECT_LE(server_->connections_accepted(), 2);
}

TEST_F(CurlTransportTest, TimersRunInOrderOnTheIoThreadUntilCancelled) {
  Start([](const LoopbackServer::Request&, Connection& c) { c.Answer(200, ""); });
  std::promise<void> end;
  std::vector<std::string> log;
  std::thread::id timer_thread;
  transport_->After(absl::Milliseconds(40), [&] { end.set_value(); });
  transport_->After(absl::Milliseconds(20), [&] { log.push_back("second"); });
  transport_->After(absl::Milliseconds(1), [&] {
    timer_thread = std::this_thread::get_id();
    log.push_back("first");
  });
  const Timers::Id never =
      transport_->After(absl::Milliseconds(10), [&] { log.push_back("never"); });
  transport_->CancelTimer(never);
  transport_->CancelTimer(never + 1000);
  end.get_future().wait();
  EXPECT_THAT(log, ElementsAre("first", "second"));
  std::promise<std::thread::id> callback_thread;
  transport_->Send(Get("/"),
                   [&](const Answer&) { callback_thread.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(callback_thread.get_future().get(), timer_thread);
  EXPECT_NE(timer_thread, std::this_thread::get_id());
}

TEST_F(CurlTransportTest, CallbacksMayUseTheTransport) {
  Start(
      [](const LoopbackServer::Request& request, Connection& c) { c.Answer(200, request.target); });
  std::promise<std::string> end;
  transport_->Send(Get("/1"), [&](const Answer&) {
    transport_->After(absl::ZeroDuration(), [&] {
      transport_->Send(Get("/2"), [&](const Answer& answer) { end.set_value(answer->body); });
    });
  });
  EXPECT_EQ(end.get_future().get(), "/2");
}

}  // namespace
}  // namespace fairlead::kube
